"""Texts to BERT's inputs as graph functions.

  inputs = pack(pieces_a, pieces_b, frame, 128)           # [CLS] a [SEP] b [SEP], truncated
  inputs = join(pieces, None, None, frame)                # [CLS] a [SEP]

These functions do for a batch what training does in Python for each example, so that an exported
model that reads strings needs no Python code (`task_model.py`).

Letters in shapes: B = batch size, S = sequence length, (P) = tokens of each text, ragged.
"""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from bert.text.sequence_layout import BERT

Inputs = dict[str, tf.Tensor]


class Frame(NamedTuple):
  """The special tokens around the tokens of a text."""

  cls_id: int
  sep_id: int

  @classmethod
  def of(cls, vocab: Mapping[str, int]) -> "Frame":
    """Creates the frame of a WordPiece vocabulary."""
    return cls(vocab[BERT.cls], vocab[BERT.sep])


def truncated_lengths(
  lengths_a: tf.Tensor, lengths_b: tf.Tensor, max_length
) -> tuple[tf.Tensor, tf.Tensor]:
  """Computes how many tokens of each text are kept so that pairs fit: int64 `[B]`, `[B]`.

  The longer text loses its last token, repeatedly; see `Layout.kept_lengths`.

  Args:
    lengths_a: int64 `[B]`, tokens of the first texts.
    lengths_b: int64 `[B]`, tokens of the second texts.
    max_length: int64 `[B]` or `[]`.

  Example:
    >>> [kept.numpy().tolist() for kept in truncated_lengths(
    ...     tf.constant([6, 6, 1], tf.int64), tf.constant([6, 1, 9], tf.int64), 5)]
    [[3, 4, 1], [2, 1, 4]]
  """
  max_length = tf.cast(max_length, tf.int64)
  kept_b = tf.minimum(lengths_b, tf.maximum(max_length // 2, max_length - lengths_a))
  return tf.minimum(lengths_a, max_length - kept_b), kept_b


def pack(
  pieces_a: tf.RaggedTensor, pieces_b: tf.RaggedTensor, frame: Frame, seq_length: int
) -> Inputs:
  """Joins `[CLS] a [SEP]`, then `b [SEP]` if any, as `convert_single_example` does; see `join`.

  Args:
    pieces_a: int32 `[B, (P)]`.
    pieces_b: int32 `[B, (P)]`; a text without tokens makes no second segment.
    frame: the special tokens.
    seq_length: longest sequence; the longer text is truncated first.
  """
  has_b = pieces_b.row_lengths() > 0  # [B]
  num_special = 2 + tf.cast(has_b, tf.int64)
  kept_a, kept_b = truncated_lengths(
    pieces_a.row_lengths(), pieces_b.row_lengths(), seq_length - num_special
  )
  return join(first_pieces(pieces_a, kept_a), first_pieces(pieces_b, kept_b), has_b, frame)


def join(
  pieces_a: tf.RaggedTensor,
  pieces_b: tf.RaggedTensor | None,
  has_b: tf.Tensor | None,
  frame: Frame,
) -> Inputs:
  """Joins `[CLS] a [SEP]`, then `b [SEP]` where `has_b`; nothing is truncated.

  Args:
    pieces_a: int32 `[B, (P)]`.
    pieces_b: int32 `[B, (P)]`; None without second texts.
    has_b: bool `[B]`, likewise.
    frame: the special tokens.

  Returns:
    int32 `[B, S]`, S of the longest of the batch: `input_word_ids`, `input_mask`,
    `input_type_ids`.
  """
  one_each = tf.ones_like(pieces_a.row_lengths())
  parts = [_repeated(frame.cls_id, one_each), pieces_a, _repeated(frame.sep_id, one_each)]
  if pieces_b is not None:
    parts += [pieces_b, _repeated(frame.sep_id, tf.cast(has_b, tf.int64))]
  ids = tf.concat(parts, axis=1)
  # A batch without texts also has a [CLS] column, because the model needs one.
  length = tf.maximum(ids.bounding_shape(axis=1), 2)
  word_ids = ids.to_tensor(BERT.pad_id, shape=tf.stack([-1, length]))  # [B, S]
  positions = tf.range(tf.shape(word_ids, tf.int64)[1])[tf.newaxis]  # [1, S]
  is_piece = positions < ids.row_lengths()[:, tf.newaxis]
  is_second = is_piece & (positions >= pieces_a.row_lengths()[:, tf.newaxis] + 2)
  return {
    "input_word_ids": word_ids,
    "input_mask": tf.cast(is_piece, tf.int32),
    "input_type_ids": tf.cast(is_second, tf.int32),
  }


def first_pieces(pieces: tf.RaggedTensor, counts: tf.Tensor) -> tf.RaggedTensor:
  """Returns the first `counts` (int64 `[B]`) tokens of each row."""
  places = tf.ragged.range(pieces.row_lengths()).flat_values
  stays = places < tf.gather(counts, pieces.value_rowids())
  return tf.RaggedTensor.from_row_lengths(tf.boolean_mask(pieces.flat_values, stays), counts)


def _repeated(token_id: int, counts: tf.Tensor) -> tf.RaggedTensor:
  """Creates rows of one token, repeated `counts` (int64 `[B]`) times."""
  values = tf.fill([tf.reduce_sum(counts)], tf.constant(token_id, tf.int32))
  return tf.RaggedTensor.from_row_lengths(values, counts)
