"""Batches of texts as arrays."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert import tokenization
from bert.tasks import classification
from bert.text import sequence_layout
from tests.kit.tokenizer_definition import PIECES, mixed_text


@pytest.fixture
def tokenizer(vocab_file):
  return tokenization.FullTokenizer(vocab_file)


def features_of(tokenizer, text, pair, length):
  example = classification.InputExample(None, text, pair, "0")
  features = classification.convert_single_example(9, example, ["0"], length, tokenizer)
  return [features.input_ids, features.input_mask, features.segment_ids]


def as_rows(batch):
  assert list(batch) == ["input_ids", "input_mask", "segment_ids"]
  assert all(array.dtype == np.int32 for array in batch.values())
  return np.stack(list(batch.values()), axis=1).tolist()


texts_and_pairs = st.lists(st.tuples(mixed_text, st.one_of(st.none(), mixed_text)), max_size=6)


@given(texts_and_pairs, st.integers(3, 40))
@settings(deadline=None)
def test_batches_hold_the_rows_of_convert_single_example(vocab_file, pairs, length):
  tokenizer = tokenization.FullTokenizer(vocab_file)
  texts, seconds = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
  expected = [features_of(tokenizer, *pair, length) for pair in pairs]
  assert as_rows(tokenizer.encode_batch(texts, seconds, length)) == expected
  trimmed = tokenizer.encode_batch(texts, seconds, length, pad_to_longest=True)
  longest = max((sum(mask) for _, mask, _ in expected), default=0)
  shortened = [[column[:longest] for column in row] for row in expected]
  assert as_rows(trimmed) == shortened
  assert trimmed["input_ids"].shape == (len(pairs), longest)


def test_without_a_length_nothing_is_cut(tokenizer):
  batch = tokenizer.encode_batch(["wa " * 600, "un"], ["the", None])
  assert batch["input_ids"].shape == (2, 604)
  assert batch["input_ids"].tolist()[1][:4] == [1, PIECES.index("un"), 2, 0]
  assert batch["segment_ids"].sum(axis=1).tolist() == [2, 0]
  assert batch["input_mask"].sum(axis=1).tolist() == [604, 3]


def test_an_empty_batch(tokenizer):
  assert tokenizer.encode_batch([])["input_ids"].shape == (0, 0)
  assert tokenizer.encode_batch([], max_seq_length=8)["input_ids"].shape == (0, 8)


def test_unusable_batches(tokenizer):
  with pytest.raises(ValueError, match="max_seq_length is 2, but must be at least 3"):
    tokenizer.encode_batch(["a", "b"], [None, "b"], max_seq_length=2)
  with pytest.raises(ValueError, match="2 texts, but 1 text_pairs"):
    tokenizer.encode_batch(["a", "b"], ["a"])
  with pytest.raises(ValueError, match=r"texts .*: 'ab'"):
    tokenizer.encode_batch("ab")
  with pytest.raises(ValueError, match="not int: 5"):
    tokenizer.encode_batch([5])
  tokenizer.vocab.pop("[SEP]")
  with pytest.raises(tokenization.UnknownItemError, match=r"'\[SEP\]' is not in the vocabulary"):
    tokenizer.encode_batch(["a"])


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 40))
def test_kept_lengths_are_those_of_the_loop(length_a, length_b, max_length):
  kept = [length_a, length_b]
  while sum(kept) > max_length:
    kept[0 if kept[0] > kept[1] else 1] -= 1
  assert sequence_layout.BERT.kept_lengths(length_a, length_b, max_length) == tuple(kept)
