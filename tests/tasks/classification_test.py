"""Examples and their features."""

import hypothesis
import hypothesis.strategies as st
import pytest
from absl import logging

from bert.io.tables import DataError
from bert.tasks import classification
from bert.tasks.classification import InputExample, convert_single_example


class WordTokenizer:
  """Splits at spaces; a word's id is the length of its text plus 200, [CLS] is 101, [SEP] 102."""

  def tokenize(self, text):
    return text.split()

  def convert_tokens_to_ids(self, tokens):
    return [{"[CLS]": 101, "[SEP]": 102}.get(token, 200 + len(token)) for token in tokens]


def convert(example, labels=("0", "1"), length=8, problem_type="classification", index=9):
  return convert_single_example(index, example, labels, length, WordTokenizer(), problem_type)


@pytest.mark.parametrize("text_b", [None, "", "   "])
def test_a_second_text_without_tokens_is_none(text_b):
  assert convert(InputExample("g", "a", text_b, "0")).input_ids[:4] == [101, 201, 102, 0]


def test_long_texts_fill_the_length_exactly():
  assert convert(InputExample("g", "a " * 50, label="0")).input_mask == [1] * 8
  features = convert(InputExample("g", "a " * 50, "bb " * 50, "0"))
  assert features.input_ids == [101, 201, 201, 201, 102, 202, 202, 102]


def pop_one_by_one(tokens_a, tokens_b, max_length):
  while len(tokens_a) + len(tokens_b) > max_length:
    (tokens_a if len(tokens_a) > len(tokens_b) else tokens_b).pop()


@hypothesis.settings(deadline=None)  # machines may be slow
@hypothesis.given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 60))
def test_truncation_is_that_of_popping_one_by_one(len_a, len_b, max_length):
  a, b = list(range(len_a)), list(range(len_b))
  expected_a, expected_b = list(a), list(b)
  pop_one_by_one(expected_a, expected_b, max_length)
  classification._truncate_seq_pair(a, b, max_length)
  assert (a, b) == (expected_a, expected_b)


def test_no_room_for_special_tokens():
  assert convert(InputExample("g", "a", label="0"), length=2).input_ids == [101, 102]
  with pytest.raises(ValueError, match="max_seq_length is 2, but must be at least 3"):
    convert(InputExample("g", "a", "b", label="0"), length=2)


def test_regression_label():
  label = convert(InputExample("g", "a", label=3.8), ["score"], problem_type="regression").label_id
  assert label == 3.8
  assert isinstance(label, float)


def test_multi_label():
  example = InputExample("g", "a", label=("z", "x"))
  assert convert(example, ["x", "y", "z"], problem_type="multi_label").label_id == [1, 0, 1]
  example = InputExample("g", "a", label=())
  assert convert(example, ["x", "y", "z"], problem_type="multi_label").label_id == [0, 0, 0]


@pytest.mark.parametrize(
  ("label", "problem_type"), [("2", "classification"), (("2",), "multi_label")]
)
def test_unknown_label_names_its_place_and_what_is_known(label, problem_type):
  with pytest.raises(DataError, match=r"dev.tsv, line 7: the label '2' is unknown.*'0', '1'"):
    convert(InputExample("g", "a", None, label, "dev.tsv, line 7"), problem_type=problem_type)
  # What a processor of somebody else made has no source.
  with pytest.raises(DataError, match="example dev-7: the label '2'"):
    convert(InputExample("dev-7", "a", label=label), problem_type=problem_type)


def test_missing_and_unfit_labels():
  with pytest.raises(DataError, match="example g: the example has no label"):
    convert(InputExample("g", "a"))
  with pytest.raises(DataError, match="example g: the label 'x' is not a number"):
    convert(InputExample("g", "a", label="x"), problem_type="regression")


def test_five_examples_are_logged_as_in_the_original(monkeypatch):
  lines = []

  def log(level, message, *args):
    if level == logging.INFO:
      lines.append(message % args)

  monkeypatch.setattr(logging, "log", log)
  for index in range(8):
    convert(InputExample(f"dev-{index}", "a bb", label="1"), length=5, index=index)
  assert lines[:7] == [
    "*** Example ***",
    "guid: dev-0",
    "tokens: [CLS] a bb [SEP]",
    "input_ids: 101 201 202 102 0",
    "input_mask: 1 1 1 1 0",
    "segment_ids: 0 0 0 0 0",
    "label: 1 (id = 1)",
  ]
  assert lines.count("*** Example ***") == 5


def test_an_example_without_a_label_is_not_logged_as_if_it_had_one(caplog):
  with caplog.at_level("INFO", logger="absl"):
    convert(InputExample("test-1", "a", label="0", is_labelled=False), length=5, index=0)
  assert caplog.messages[-1] == "label: none (stored as id 0)"
