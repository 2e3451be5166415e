"""Words, packing and windows in graphs, against the Python functions that training uses."""

import itertools
import random

import numpy as np
import pytest
import tensorflow as tf

from bert.exporting import graph_text
from bert.tasks import squad, squad_features, tagging
from bert.tasks.classification import InputExample, convert_single_example

# ---------------------------------------------------------------------------------------------
# Words.

_BLANKS = " \t\r\n\u202f"  # those of squad.split_words


def words_of(texts):
  """For each text, what squad.split_words says of it."""
  words = graph_text.split_words(tf.constant(texts, tf.string), _BLANKS)
  strings, chars = words.by_text(words.strings), words.by_text(words.char_starts)
  splits = words.row_splits.numpy().tolist()
  for row, (first, limit) in enumerate(itertools.pairwise(splits)):
    for word in range(first, limit):
      string, start = words.strings[word].numpy(), int(words.byte_starts[word])
      assert texts[row].encode()[start : start + len(string)] == string
      assert len(string.decode()) == words.num_chars[word]
  return [
    ([word.decode() for word in row.numpy()], starts.numpy().tolist())
    for row, starts in zip(strings, chars, strict=True)
  ]


def test_words_are_those_of_squad():
  rng = random.Random(3)
  texts = ["".join(rng.choices(_BLANKS + "aé½中😀\u00a0", k=rng.randrange(12))) for _ in range(300)]
  assert words_of(texts) == [squad.split_words(text) for text in texts]


def test_words_of_no_text_and_of_no_words():
  assert words_of([]) == []
  assert words_of(["", " \n", "a", ""]) == [([], []), ([], []), (["a"], [0]), ([], [])]


def test_invalid_bytes_are_letters():
  words = graph_text.split_words(tf.constant([b"a\xff\xe4 b", b"\x80"]), " ")
  assert words.strings.numpy().tolist() == [b"a\xff\xe4", b"b", b"\x80"]
  assert words.byte_starts.numpy().tolist() == [0, 4, 0]


# ---------------------------------------------------------------------------------------------
# Packing.


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


# ---------------------------------------------------------------------------------------------
# Windows.

_LENGTHS = [0, 1, 5, 6, 7, 40, 0, 23, 610]
# With the last one, lengths of windows differ so much that it matters.
_SHAPES = [(6, 3), (6, 6), (140, 64), (1, 1), (300, 290)]


def windows_and_flags(size, step, **options):
  """For each text, `(start, length)` of its windows, and whether each shows most of its pieces."""
  moves_back = "bonus" not in options
  pieces = tf.RaggedTensor.from_row_lengths(tf.range(sum(_LENGTHS)), _LENGTHS)
  sizes, steps = (tf.fill([len(_LENGTHS)], tf.constant(n, tf.int64)) for n in (size, step))
  windows = graph_text.all_windows(pieces.row_lengths(), sizes, steps, moves_back)
  flags = graph_text.shows_most(windows, pieces.row_starts(), tf.size(pieces.values), **options)
  found = [([], []) for _ in _LENGTHS]
  for row, start, length, shown, part in zip(
    *(x.numpy() for x in (windows.rows, windows.starts, windows.lengths)),
    flags,
    windows.cut(pieces),
    strict=True,
  ):
    assert part.numpy().tolist() == pieces[row][start : start + length].numpy().tolist()
    found[row][0].append((start, length))
    found[row][1].append(shown.numpy().tolist())
  return found


@pytest.mark.ci
@pytest.mark.parametrize(("size", "step"), _SHAPES)
def test_windows_are_those_of_squad(size, step):
  for length, (spans, flags) in zip(
    _LENGTHS, windows_and_flags(size, step, bonus=0.01), strict=True
  ):
    expected = squad_features._doc_spans(length, size, step)
    assert spans == [tuple(span) for span in expected]
    expected_flags = squad_features._max_context_flags(expected, length)
    assert flags == [[bool(byte) for byte in window] for window in expected_flags]


@pytest.mark.ci
@pytest.mark.parametrize(("size", "step"), _SHAPES)
def test_windows_are_those_of_ner(size, step):
  for length, (spans, flags) in zip(_LENGTHS, windows_and_flags(size, step), strict=True):
    if length:
      expected = tagging.windows(length, size, step)
      assert [(start, start + length) for start, length in spans] == expected
      owners = tagging.owners(expected, length)
      assert flags == [
        (owners[start:end] == index).tolist() for index, (start, end) in enumerate(expected)
      ]
      assert np.concatenate(flags).sum() == length
