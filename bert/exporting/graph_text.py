"""Texts to BERT's inputs, and positions in the texts, as graph functions.

  words = split_words(texts, " \\t\\r\\n")                  # and where they stand
  inputs = pack(pieces_a, pieces_b, frame, 128)           # [CLS] a [SEP] b [SEP], cut to fit
  windows = all_windows(num_pieces, sizes, steps)         # a text too long for one sequence
  inputs = join(questions, windows.cut(pieces), None, frame)

These functions do for a batch what training does in Python for each example, so that an exported
model needs no Python code to answer texts (`task_model.py`).

Letters in shapes: B = batch size, S = sequence length, N = characters, W = words of all texts,
R = windows of all texts, (P) = tokens of each text, ragged.
"""

from collections.abc import Mapping
from typing import NamedTuple

import tensorflow as tf

from bert.text.sequence_layout import BERT, Layout

Inputs = dict[str, tf.Tensor]

_REPLACEMENT = 0xFFFD  # for each invalid byte; not a blank


# ---------------------------------------------------------------------------------------------
# Words and their positions.


class Words(NamedTuple):
  """Words of all texts, concatenated."""

  strings: tf.Tensor  # string `[W]`
  row_splits: tf.Tensor  # int64 `[B + 1]`, boundaries of texts, in words
  byte_starts: tf.Tensor  # int64 `[W]`, each word's first byte in its text
  char_starts: tf.Tensor  # int32 `[W]`, each word's first character in its text
  num_chars: tf.Tensor  # int32 `[W]`, its length

  def by_text(self, values: tf.Tensor) -> tf.RaggedTensor:
    """Groups `[W, ...]` to `[B, (words), ...]`."""
    return tf.RaggedTensor.from_row_splits(values, self.row_splits, validate=False)


def split_words(texts: tf.Tensor, blanks: str) -> Words:
  r"""Splits texts, string `[B]` of UTF-8, at any of the characters `blanks`.

  Example:
    >>> words = split_words(tf.constant([" Für  wen?", ""]), " \n")
    >>> [word.decode() for word in words.strings.numpy()], words.row_splits.numpy().tolist()
    (['Für', 'wen?'], [0, 2, 2])
    >>> words.byte_starts.numpy().tolist(), words.char_starts.numpy().tolist()
    ([1, 7], [1, 6])
  """
  codes, offsets = tf.strings.unicode_decode_with_offsets(texts, "UTF-8", "replace", _REPLACEMENT)
  rows, places = codes.value_rowids(), tf.ragged.range(codes.row_lengths()).flat_values  # [N]
  is_last = places == tf.gather(codes.row_lengths(), rows) - 1
  is_letter = tf.reduce_all(codes.flat_values[:, tf.newaxis] != [ord(b) for b in blanks], axis=1)
  follows_letter = tf.roll(is_letter, 1, 0) & (places > 0)
  precedes_letter = tf.roll(is_letter, -1, 0) & ~is_last
  first = tf.where(is_letter & ~follows_letter)[:, 0]  # [W]
  last = tf.where(is_letter & ~precedes_letter)[:, 0]
  return words_at(texts, codes, offsets, first, last)


def words_at(
  texts: tf.Tensor,
  codes: tf.RaggedTensor,
  offsets: tf.RaggedTensor,
  first: tf.Tensor,
  last: tf.Tensor,
) -> Words:
  """Finds the words from their first and last characters, int64 `[W]`, of all texts.

  `codes` and `offsets` `[B, (characters)]` are the decoded `texts`, and the byte of each character.
  """
  rows, places = codes.value_rowids(), tf.ragged.range(codes.row_lengths()).flat_values  # [N]
  is_last = places == tf.gather(codes.row_lengths(), rows) - 1
  # A character ends where the next one begins, the last one with its text.
  text_bytes = tf.gather(tf.cast(tf.strings.length(texts), tf.int64), rows)
  byte_limits = tf.where(is_last, text_bytes, tf.roll(offsets.flat_values, -1, 0))
  word_rows, byte_starts = tf.gather(rows, first), tf.gather(offsets.flat_values, first)
  num_bytes = tf.gather(byte_limits, last) - byte_starts
  return Words(
    strings=tf.strings.substr(tf.gather(texts, word_rows), byte_starts, num_bytes),
    row_splits=tf.searchsorted(
      word_rows, tf.range(tf.size(texts, tf.int64) + 1), out_type=tf.int64
    ),
    byte_starts=byte_starts,
    char_starts=tf.cast(tf.gather(places, first), tf.int32),
    num_chars=tf.cast(last - first, tf.int32) + 1,
  )


# ---------------------------------------------------------------------------------------------
# Packing: tokens to rows.


class Frame(NamedTuple):
  """What stands around the tokens of a text."""

  cls_id: int  # number of [CLS]
  sep_id: int  # number of [SEP]
  layout: Layout = BERT  # of the tokenizer

  @classmethod
  def of(cls, vocab: Mapping[str, int], layout: Layout) -> "Frame":
    """Creates the frame of a tokenizer."""
    return cls(vocab[layout.cls], vocab[layout.sep], layout)

  def num_special(self, has_b: tf.Tensor) -> tf.Tensor:
    """Counts the special tokens added to a text or a pair: int64, of the shape of `has_b`."""
    return 2 + self.layout.separators * tf.cast(has_b, tf.int64)


def truncated_lengths(
  lengths_a: tf.Tensor, lengths_b: tf.Tensor, max_length, layout: Layout = BERT
) -> tuple[tf.Tensor, tf.Tensor]:
  """Computes how many tokens of each text are kept so that pairs fit: int64 `[B]`, `[B]`.

  The longer text loses its last token, repeatedly; see `Layout.kept_lengths`.

  Args:
    lengths_a: int64 `[B]`, tokens of the first texts.
    lengths_b: int64 `[B]`, tokens of the second texts.
    max_length: int64 `[B]` or `[]`.
    layout: of the tokenizer.

  Example:
    >>> [kept.numpy().tolist() for kept in truncated_lengths(
    ...     tf.constant([6, 6, 1], tf.int64), tf.constant([6, 1, 9], tf.int64), 5)]
    [[3, 4, 1], [2, 1, 4]]
  """
  max_length = tf.cast(max_length, tf.int64)
  kept_b = tf.minimum(lengths_b, tf.maximum(max_length // 2, max_length - lengths_a))
  kept_a = tf.minimum(lengths_a, max_length - kept_b)
  if layout.second_stays_longer:
    is_first = lengths_a <= lengths_b
    other_a = tf.minimum(lengths_a, tf.maximum(max_length // 2, max_length - lengths_b))
    other_b = tf.minimum(lengths_b, max_length - other_a)
    return tf.where(is_first, other_a, kept_a), tf.where(is_first, other_b, kept_b)
  return kept_a, kept_b


def pack(
  pieces_a: tf.RaggedTensor, pieces_b: tf.RaggedTensor, frame: Frame, seq_length: int
) -> Inputs:
  """Joins `[CLS] a [SEP]`, then `b [SEP]` if any, as `convert_single_example` does; see `join`.

  Args:
    pieces_a: int32 `[B, (P)]`.
    pieces_b: int32 `[B, (P)]`; a text without tokens makes no second segment.
    frame: what stands around the tokens.
    seq_length: longest sequence; the longer text is cut first.
  """
  has_b = pieces_b.row_lengths() > 0  # [B]
  kept_a, kept_b = truncated_lengths(
    pieces_a.row_lengths(),
    pieces_b.row_lengths(),
    seq_length - frame.num_special(has_b),
    frame.layout,
  )
  return join(first_pieces(pieces_a, kept_a), first_pieces(pieces_b, kept_b), has_b, frame)


def join(
  pieces_a: tf.RaggedTensor,
  pieces_b: tf.RaggedTensor | None,
  has_b: tf.Tensor | None,
  frame: Frame,
  seq_length: int | None = None,
) -> Inputs:
  """Joins `[CLS] a [SEP]`, then `b [SEP]` where `has_b`; nothing is truncated.

  Args:
    pieces_a: int32 `[B, (P)]`.
    pieces_b: int32 `[B, (P)]`; None without second texts.
    has_b: bool `[B]`, likewise.
    frame: what stands around the tokens.
    seq_length: S; by default that of the longest of the batch, as padding only costs time.

  Returns:
    int32 `[B, S]`: `input_word_ids`, `input_mask`, `input_type_ids`.
  """
  one_each = tf.ones_like(pieces_a.row_lengths())
  sep_id, layout = frame.sep_id, frame.layout
  parts = [repeated(frame.cls_id, one_each), pieces_a, repeated(sep_id, one_each)]
  if pieces_b is not None:
    is_there = tf.cast(has_b, tf.int64)
    between = [repeated(sep_id, is_there) for _ in range(layout.separators - 1)]
    parts += [*between, pieces_b, repeated(sep_id, is_there)]
  ids = tf.concat(parts, axis=1)
  # A batch without texts also has a [CLS] column, because the model needs one.
  length = seq_length or tf.maximum(ids.bounding_shape(axis=1), 2)
  word_ids = ids.to_tensor(layout.pad_id, shape=tf.stack([-1, length]))  # [B, S]
  positions = tf.range(tf.shape(word_ids, tf.int64)[1])[tf.newaxis]  # [1, S]
  is_piece = positions < ids.row_lengths()[:, tf.newaxis]
  is_second = is_piece & (positions >= pieces_a.row_lengths()[:, tf.newaxis] + 2)
  is_second &= layout.has_segments
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


def repeated(token_id: int, counts: tf.Tensor) -> tf.RaggedTensor:
  """Creates rows of one token, repeated `counts` (int64 `[B]`) times."""
  values = tf.fill([tf.reduce_sum(counts)], tf.constant(token_id, tf.int32))
  return tf.RaggedTensor.from_row_lengths(values, counts)


# ---------------------------------------------------------------------------------------------
# Windows: a row for each part of a long text.


class Windows(NamedTuple):
  """Windows of all texts, in the order of texts."""

  rows: tf.Tensor  # int64 `[R]`, the text of each window
  indexes: tf.Tensor  # int64 `[R]`, its number among those of its text
  starts: tf.Tensor  # int64 `[R]`, its first token
  lengths: tf.Tensor  # int64 `[R]`, its tokens

  def places(self, row_starts: tf.Tensor) -> tf.RaggedTensor:
    """Returns indices into all texts' tokens, which begin at `row_starts`: int64 `[R, (P)]`."""
    starts = tf.gather(row_starts, self.rows) + self.starts
    return tf.ragged.range(starts, starts + self.lengths)

  def cut(self, pieces: tf.RaggedTensor) -> tf.RaggedTensor:
    """Cuts `[B, (P)]` into windows `[R, (P)]`."""
    places = self.places(pieces.row_starts())
    return places.with_values(tf.gather(pieces.values, places.values))


def all_windows(
  num_pieces: tf.Tensor, sizes: tf.Tensor, steps: tf.Tensor, moves_back: bool = False
) -> Windows:
  """Creates windows from start to end.

  Args:
    num_pieces: int64 `[B]`; a text without tokens has no window.
    sizes: int64 `[B]`, tokens of a full window.
    steps: int64 `[B]`, tokens between the starts of two windows, at most the size.
    moves_back: whether the last one moves back to be full; else it has the remaining tokens.

  Example:
    >>> one = lambda n: tf.constant([n], tf.int64)
    >>> windows = all_windows(one(10), one(6), one(3))
    >>> windows.starts.numpy().tolist(), windows.lengths.numpy().tolist()
    ([0, 3, 6], [6, 6, 4])
    >>> all_windows(one(10), one(6), one(3), moves_back=True).starts.numpy().tolist()
    [0, 3, 4]
  """
  beyond = tf.maximum(num_pieces - sizes, 0)
  counts = tf.where(num_pieces > 0, 1 + (beyond + steps - 1) // steps, 0)
  indexes = tf.ragged.range(counts)
  rows, indexes = indexes.value_rowids(), indexes.flat_values
  starts = indexes * tf.gather(steps, rows)
  if moves_back:
    starts = tf.minimum(starts, tf.gather(beyond, rows))
  lengths = tf.minimum(tf.gather(sizes, rows), tf.gather(num_pieces, rows) - starts)
  return Windows(rows, indexes, starts, lengths)


def shows_most(windows: Windows, row_starts: tf.Tensor, num_pieces, bonus: float = 0.0):
  """Selects, for each token, the window with most context on the side where it has less.

  Args:
    windows: R windows.
    row_starts: int64 `[B]`, each text's first token among those of all texts.
    num_pieces: int64 `[]`, of all texts.
    bonus: for each token of a window, added to the count of tokens that are compared.

  Returns:
    bool `[R, (P)]`: whether this window is the selected one; of equal ones the first.
  """
  places = windows.places(row_starts)
  left = tf.ragged.range(windows.lengths).flat_values
  rows = places.value_rowids()
  lengths = tf.gather(windows.lengths, rows)
  # In float64, as in Python, so that ties are the same in both.
  scores = tf.cast(tf.minimum(left, lengths - 1 - left), tf.float64)
  scores += bonus * tf.cast(lengths, tf.float64)
  best = tf.math.unsorted_segment_max(scores, places.values, num_pieces)
  indexes = tf.gather(windows.indexes, rows)
  is_best = scores == tf.gather(best, places.values)
  candidates = tf.where(is_best, indexes, tf.int64.max)
  first = tf.math.unsorted_segment_min(candidates, places.values, num_pieces)
  return places.with_values(tf.gather(first, places.values) == indexes)
