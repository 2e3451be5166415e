"""Packing in graphs, against the Python functions that training uses."""

import random

import pytest
import tensorflow as tf

from bert.exporting import graph_text
from bert.tasks.classification import InputExample, convert_single_example


class _Numbers:
  """A tokenizer of texts that are numbers already."""

  def tokenize(self, text):
    return text.split()

  def convert_tokens_to_ids(self, tokens):
    return [int({"[CLS]": 2, "[SEP]": 3}.get(token, token)) for token in tokens]


@pytest.mark.parametrize("seq_length", [3, 4, 5, 8, 13, 64])
def test_packed_as_in_training(seq_length):
  rng = random.Random(seq_length)
  texts = [
    tuple(" ".join(str(rng.randrange(5, 99)) for _ in range(rng.randrange(12))) for _ in "ab")
    for _ in range(300)
  ]
  pieces = [
    tf.ragged.constant([[int(n) for n in text.split()] for text in column], tf.int32)
    for column in zip(*texts, strict=True)
  ]
  packed = graph_text.pack(*pieces, graph_text.Frame(2, 3), seq_length)
  length = packed["input_word_ids"].shape[1]
  assert length <= seq_length
  for row, (a, b) in enumerate(texts):
    example = InputExample("x", a, b, "0")
    expected = convert_single_example(9, example, ["0"], seq_length, _Numbers())
    assert packed["input_word_ids"][row].numpy().tolist() == expected.input_ids[:length]
    assert packed["input_mask"][row].numpy().tolist() == expected.input_mask[:length]
    assert packed["input_type_ids"][row].numpy().tolist() == expected.segment_ids[:length]
    assert sum(expected.input_mask[length:]) == 0


def test_an_empty_batch_is_packed():
  nothing = tf.RaggedTensor.from_row_lengths(tf.zeros([0], tf.int32), tf.zeros([0], tf.int64))
  packed = graph_text.pack(nothing, nothing, graph_text.Frame(2, 3), 8)
  assert packed["input_word_ids"].shape == [0, 2]
