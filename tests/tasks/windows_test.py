"""Windows over long documents: the rules, records and batches."""

import numpy as np
import pytest

from bert import run_classifier
from bert.io import record_files
from bert.tasks.classification import InputExample, PaddingInputExample, convert_single_example
from bert.tasks.windows import WindowOptions, WindowReader
from tests.kit.long_texts import (
  SEP,
  VOCAB,
  batches,
  letters_of,
  random_pairs,
  tokenizer_in,
  windows_of,
  words,
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  return tokenizer_in(tmp_path_factory.mktemp("model"))


# ---------------------------------------------------------------------------------------------
# Windows of a document.


def test_the_end_of_a_very_long_text_is_not_read(tokenizer):
  _, found, reader = windows_of(tokenizer, words(16), max_windows=3)
  assert letters_of(found["input_ids"]) == ["abcdef|", "defghi|", "ghijkl|"]
  assert reader._counts["cut"] == 1
  _, _, reader = windows_of(tokenizer, words(12), max_windows=3)
  assert reader._counts["cut"] == 0


def test_a_stride_longer_than_a_window_skips_nothing(tokenizer):
  _, found, _ = windows_of(tokenizer, words(18), stride=50)
  assert letters_of(found["input_ids"][:3]) == ["abcdef|", "ghijkl|", "mnopqr|"]
  assert found["num_windows"] == 3


def test_of_a_pair_the_longer_text_is_shown_in_windows(tokenizer):
  first, found, _ = windows_of(tokenizer, "x y", words(8), length=9, stride=2)
  assert letters_of(found["input_ids"][:3]) == ["xy|abcd|", "xy|cdef|", "xy|efgh|"]
  assert found["num_windows"] == 3
  assert first.segment_ids == [0, 0, 0, 0, 1, 1, 1, 1, 1]

  first, found, _ = windows_of(tokenizer, words(8), "x y", length=9, stride=2)
  assert letters_of(found["input_ids"][:3]) == ["abcd|xy|", "cdef|xy|", "efgh|xy|"]
  assert first.segment_ids == [0, 0, 0, 0, 0, 0, 1, 1, 1]


def test_of_two_long_texts_the_shorter_one_is_cut(tokenizer):
  _, found, reader = windows_of(tokenizer, words(5), words(7, 10), length=9, stride=3)
  assert letters_of(found["input_ids"][:3]) == ["abc|klm|", "abc|nop|", "abc|opq|"]
  assert found["num_windows"] == 3
  assert reader._counts["other cut"] == 1
  assert reader._counts["cut"] == 0


@pytest.mark.parametrize(
  ("text_a", "text_b"),
  [(words(3), None), (words(6), None), (words(2), words(3)), ("", None), ("", words(2)), ("a", "")],
)
def test_a_document_that_fits_has_the_features_of_today(tokenizer, text_a, text_b):
  first, found, reader = windows_of(tokenizer, text_a, text_b)
  plain = convert_single_example(9, InputExample("x", text_a, text_b, "0"), ["0"], 8, tokenizer)
  assert vars(first) == vars(plain)
  assert found["num_windows"] == 1
  np.testing.assert_array_equal(found["input_ids"], [plain.input_ids, *[[0] * 8] * 3])
  assert reader._counts["cut"] == reader._counts["other cut"] == 0


def test_properties_of_all_windows(tokenizer):
  """The first is what truncation reads; each has the same mask; together they show every piece."""
  for text_a, text_b in random_pairs(200):
    example = InputExample("x", text_a, text_b, "0")
    plain = convert_single_example(9, example, ["0"], 10, tokenizer)
    first, found, reader = windows_of(tokenizer, text_a, text_b, 10, 4, max_windows=30)
    assert vars(first) == vars(plain)
    rows = found["input_ids"][: found["num_windows"]]
    assert rows[0].tolist() == plain.input_ids
    assert not found["input_ids"][found["num_windows"] :].any()
    assert ((rows > 0) == plain.input_mask).all()
    assert ((rows == SEP) == (rows[0] == SEP)).all()
    longer = max(text_a.split(), (text_b or "").split(), key=len)
    seen = {VOCAB[i] for i in np.unique(rows)}
    assert seen >= set(longer)
    assert reader._counts["cut"] == 0


def test_each_text_is_tokenized_once(tokenizer):
  class Counting:
    convert_tokens_to_ids = tokenizer.convert_tokens_to_ids

    def tokenize(self, text):
      tokenized.append(text)
      return tokenizer.tokenize(text)

  tokenized = []
  windows_of(Counting(), words(20), "x")
  assert tokenized == [words(20), "x"]


def test_an_example_that_fills_a_batch_has_one_window(tokenizer):
  reader = WindowReader(tokenizer, WindowOptions(3, 4))
  first = convert_single_example(0, PaddingInputExample(), ["0"], 8, reader)
  found = reader.windows_of(PaddingInputExample(), first)
  assert found["num_windows"] == 1
  assert not found["input_ids"].any()


# ---------------------------------------------------------------------------------------------
# Records and batches.


def test_batches_are_cut_to_the_longest_window(tokenizer, tmp_path):
  path, windows = str(tmp_path / "short.tf_record"), WindowOptions(3, 5)
  examples = [InputExample("0", words(4), None, "0"), InputExample("1", words(20), None, "0")]
  run_classifier.file_based_convert_examples_to_features(
    examples, ["0"], 16, tokenizer, path, windows=windows
  )
  input_fn = run_classifier.file_based_input_fn_builder(path, 16, False, False, windows=windows)
  shapes = [tuple(batch["input_ids"].shape) for batch in input_fn({"batch_size": 1})]
  assert shapes == [(1, 8, 1), (1, 16, 3)]


def test_more_windows_than_word_pieces_are_all_kept(tokenizer, tmp_path):
  path, windows = str(tmp_path / "long.tf_record"), WindowOptions(1, 30)
  examples = [InputExample("0", words(60), None, "0")]
  run_classifier.file_based_convert_examples_to_features(
    examples, ["0"], 16, tokenizer, path, windows=windows
  )
  input_fn = run_classifier.file_based_input_fn_builder(path, 16, False, False, windows=windows)
  (batch,) = input_fn({"batch_size": 1})
  assert batch["input_ids"].shape == (1, 16, 30)
  assert int(batch["num_windows"][0]) == 30


def test_records_without_windows_are_refused(tokenizer, tmp_path):
  path, example = str(tmp_path / "plain.tf_record"), InputExample("0", "a", None, "0")
  run_classifier.file_based_convert_examples_to_features([example], ["0"], 8, tokenizer, path)
  with pytest.raises(record_files.RecordError, match=r"plain.tf_record, record 1: "):
    batches(path, 1)
