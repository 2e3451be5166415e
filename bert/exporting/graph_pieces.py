"""`sentence_pieces.SentencePieceTokenizer` as TensorFlow ops, exactly.

tensorflow_text has the sentencepiece model itself as an op. Around it, tables do what
`preprocess_text` does to each character (`unicode_tables`), and constants what the rule of numbers
before commas makes of each piece that it concerns.

Letters in shapes: B = batch size, N = characters of a batch, M = characters after preparation,
P = pieces of all texts.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert.exporting import unicode_tables as tables
from bert.exporting.graph_characters import expand, look_up, utf8_lengths, with_final_sigmas
from bert.io import installation
from bert.text import vocabulary_file
from bert.text.sentence_pieces import SPACE, SentencePieceTokenizer

_COMMA = ","
_BLANK = ord(" ")


class _Prepared(NamedTuple):
  """Texts as the sentencepiece model reads them."""

  codes: tf.Tensor  # int32 [M], code points
  row_splits: tf.Tensor  # int64 [B + 1], boundaries of texts
  origins: tf.Tensor  # int32 [M], index of the decoded character that each comes from

  def strings(self) -> tf.Tensor:
    """Normalizes texts: string [B]."""
    ragged = tf.RaggedTensor.from_row_splits(self.codes, self.row_splits, validate=False)
    return tf.strings.unicode_encode(ragged, "UTF-8")


class _Words(NamedTuple):
  """What `str.split` finds; bool [N] each."""

  is_letter: tf.Tensor  # all but spaces
  starts_word: tf.Tensor  # its first letter
  is_kept: tf.Tensor  # letters, and one space between words


class _Parts(NamedTuple):
  """What becomes of each piece: itself, or the parts of a number and a comma (module docstring)."""

  counts: np.ndarray  # int32, by id: number of parts
  starts: np.ndarray  # int32, by id: its first part
  ids: np.ndarray  # int32, by part: its id
  firsts: np.ndarray  # int32, by part: its first character in its piece, without "▁"
  limits: np.ndarray  # int32, by part: the character after its last
  lengths: np.ndarray  # int32, by id: characters of the piece, without "▁"; of an unknown one 1


class PieceTokenizer:
  """`SentencePieceTokenizer` as graph functions.

  Attributes:
    tracked: resources of the SavedModel.
  """

  def __init__(self, tokenizer: SentencePieceTokenizer):
    """Takes the tokenizer to be exported; its `special_tokens` do not matter here.

    Raises:
      VocabularyError: the model has no comma, so that unknown pieces may end in one.
    """
    operations = installation.text_operations("An export that reads text")
    if _COMMA not in tokenizer.vocab:
      raise vocabulary_file.VocabularyError(
        f"{tokenizer.vocab_file} has no piece for a comma: such a model cannot be exported."
      )
    self._tables = tables.piece_tables(tokenizer.do_lower_case)
    self._parts = _parts_of(tokenizer)
    # As strings, since an unknown piece has the id of its spelling.
    self._model = operations.SentencepieceTokenizer(tokenizer.model, tf.string)
    initializer = tf.lookup.KeyValueTensorInitializer(
      list(tokenizer.vocab), list(tokenizer.vocab.values()), tf.string, tf.int32
    )
    self._ids = tf.lookup.StaticHashTable(
      initializer, tokenizer.unk_id, experimental_is_anonymous=True
    )
    self.tracked = [self._model, initializer, self._ids]

  def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
    """Returns ids, int32 [B, 1, (tokens)]: the tokens themselves mark where words begin."""
    decoded = tf.strings.unicode_decode(text, "UTF-8", "ignore")
    prepared = self._prepare(decoded.values, decoded.row_splits, self._words(decoded))
    pieces = self._model.tokenize(prepared.strings())
    ids = self._ids.lookup(pieces.values)
    if len(self._parts.ids) == len(self._parts.counts):
      return _as_words(ids, pieces.row_splits)
    parts, owners = self._parts_of_ids(ids)
    return _as_words(tf.gather(self._parts.ids, parts), _expanded(pieces.row_splits, owners))

  # -------------------------------------------------------------------------------------------
  # Preparation.

  def _words(self, decoded: tf.RaggedTensor) -> _Words:
    rows = decoded.value_rowids()
    is_letter = look_up(self._tables.is_space, decoded.values) == 0
    in_same_text = rows[1:] == rows[:-1]
    follows_letter = _shifted_right(is_letter[:-1] & in_same_text, is_letter)
    precedes_letter = tf.concat([is_letter[1:] & in_same_text, [False]], 0)[: tf.size(is_letter)]
    letters_before = tf.cumsum(tf.cast(is_letter, tf.int32), exclusive=True)
    firsts = tf.gather(letters_before, tf.gather(decoded.row_starts(), rows))
    is_kept = is_letter | (precedes_letter & (letters_before > firsts))
    return _Words(is_letter, is_letter & ~follows_letter, is_kept)

  def _prepare(self, codes: tf.Tensor, row_splits: tf.Tensor, words: _Words) -> _Prepared:
    kept = tf.where(words.is_kept)[:, 0]
    codes = tf.gather(tf.where(words.is_letter, codes, _BLANK), kept)
    row_splits = tf.searchsorted(kept, row_splits, out_type=tf.int64)
    codes, sources = expand(self._tables.expansion, self._tables.pool, codes)
    row_splits = tf.searchsorted(tf.cast(sources, tf.int64), row_splits, out_type=tf.int64)
    if self._tables.lower is not None:
      codes = self._lower(codes, row_splits)
    return _Prepared(codes, row_splits, tf.cast(tf.gather(kept, sources), tf.int32))

  def _lower(self, codes: tf.Tensor, row_splits: tf.Tensor) -> tf.Tensor:
    def with_sigmas():
      places = tf.range(tf.size(codes, tf.int64))
      rows = tf.searchsorted(row_splits, places, side="right")
      return with_final_sigmas(self._tables.sigma, codes, rows)

    has_sigma = tf.reduce_any(codes == tables.CAPITAL_SIGMA)
    codes = tf.cond(has_sigma, with_sigmas, lambda: codes)
    return tf.bitwise.bitwise_xor(codes, look_up(self._tables.lower, codes))

  def _parts_of_ids(self, ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the parts of tokens, and the token of each part."""
    counts = tf.gather(self._parts.counts, ids)
    owners = tf.repeat(tf.range(tf.size(ids)), counts)
    places = tf.range(tf.size(owners)) - tf.gather(tf.cumsum(counts, exclusive=True), owners)
    return tf.gather(tf.gather(self._parts.starts, ids), owners) + places, owners

  # -------------------------------------------------------------------------------------------
  # Offsets.

  def tokenize_with_offsets(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
    """Returns ids as `tokenize` does; first byte, and byte after the last, int64 of that shape.

    They are those of `SentencePieceTokenizer.tokenize_with_offsets`, in bytes.
    """
    decoded, first_bytes = tf.strings.unicode_decode_with_offsets(text, "UTF-8", "ignore")
    words = self._words(decoded)
    prepared = self._prepare(decoded.values, decoded.row_splits, words)
    pieces, starts, limits = self._model.tokenize_with_offsets(prepared.strings())
    ids, rows = self._ids.lookup(pieces.values), pieces.value_rowids()
    first, limit = self._characters(prepared, ids, rows, starts.values, limits.values)
    parts, owners = self._parts_of_ids(ids)
    first, limit = self._of_parts(ids, parts, owners, first, limit)
    row_splits = _expanded(pieces.row_splits, owners)

    # From characters of the prepared texts to bytes of the original ones.
    first_bytes = first_bytes.values
    limit_bytes = _with_accents(first_bytes + utf8_lengths(decoded.values), prepared, words)
    rows = tf.gather(rows, owners)
    ends = tf.cast(tf.strings.length(text), tf.int64)
    is_at_end = first >= tf.gather(prepared.row_splits, rows + 1)
    origins = tf.concat([prepared.origins, [0]], 0)
    first_bytes = tf.gather(tf.concat([first_bytes, [0]], 0), tf.gather(origins, first))
    starts = tf.where(is_at_end, tf.gather(ends, rows), first_bytes)
    limit_bytes = tf.gather(tf.concat([limit_bytes, [0]], 0), tf.maximum(limit - 1, 0))
    limits = tf.where(limit > first, limit_bytes, starts)
    ids = tf.gather(self._parts.ids, parts)
    return tuple(_as_words(values, row_splits) for values in (ids, starts, limits))

  def _characters(self, prepared: _Prepared, ids, rows, starts, limits):
    """Finds first and last (exclusive) character of each token without spaces, int64 [P].

    Args:
      prepared: texts of M characters.
      ids: int32 [P].
      rows: int64 [P], the text of each.
      starts: [P], first byte in the prepared text.
      limits: [P], the byte after the last.
    """
    byte_starts = tf.concat([[0], tf.cumsum(utf8_lengths(prepared.codes))], 0)  # [M + 1]
    row_bytes = tf.gather(tf.gather(byte_starts, prepared.row_splits), rows)
    first, limit = (
      tf.searchsorted(byte_starts, row_bytes + tf.cast(x, tf.int64), out_type=tf.int64)
      for x in (starts, limits)
    )
    is_letter = look_up(self._tables.is_space, prepared.codes) == 0
    letters = tf.concat([tf.where(is_letter)[:, 0], [tf.size(is_letter, tf.int64)]], 0)
    letters_before = tf.concat([[0], tf.cumsum(tf.cast(is_letter, tf.int64))], 0)  # [M + 1]
    is_empty = tf.gather(letters_before, first) == tf.gather(letters_before, limit)
    last = tf.gather(letters, tf.maximum(tf.gather(letters_before, limit) - 1, 0))
    first = tf.gather(letters, tf.gather(letters_before, first))
    first = tf.minimum(first, tf.gather(prepared.row_splits, rows + 1))
    # "▁" alone, or one of several pieces of the character that follows.
    is_part = tf.gather(self._parts.lengths, ids) > 0
    is_part &= first < tf.gather(prepared.row_splits, rows + 1)
    return first, tf.where(is_empty, first + tf.cast(is_part, tf.int64), last + 1)

  def _of_parts(self, ids, parts, owners, first, limit):
    """Finds the characters of each part, or of its token if normalization changed their number."""
    is_equal = limit - first == tf.gather(tf.cast(self._parts.lengths, tf.int64), ids)
    first, limit, is_equal = (tf.gather(x, owners) for x in (first, limit, is_equal))
    is_equal &= tf.gather(tf.gather(self._parts.counts, ids), owners) > 1
    own_first, own_limit = (
      first + tf.gather(tf.cast(x, tf.int64), parts)
      for x in (self._parts.firsts, self._parts.limits)
    )
    return tf.where(is_equal, own_first, first), tf.where(is_equal, own_limit, limit)


def _with_accents(limits: tf.Tensor, prepared: _Prepared, words: _Words) -> tf.Tensor:
  """Computes the byte after each character and its accents in the same word: int64 [M].

  `limits` int64 [N] is the byte after each decoded character; `words` are of these.
  """
  num_chars = tf.size(limits)
  count = tf.math.unsorted_segment_sum(tf.ones_like(prepared.origins), prepared.origins, num_chars)
  # Each group is a character that stays, and the dropped ones after it in its word.
  groups = tf.cumsum(tf.cast((count > 0) | words.starts_word | ~words.is_letter, tf.int32))
  reach = tf.math.unsorted_segment_max(limits, groups, num_chars + 1)
  indices = tf.range(tf.size(prepared.origins))
  last = tf.math.unsorted_segment_max(indices, prepared.origins, num_chars)
  is_last = tf.gather(last, prepared.origins) == indices
  return tf.where(
    is_last,
    tf.gather(reach, tf.gather(groups, prepared.origins)),
    tf.gather(limits, prepared.origins),
  )


def _shifted_right(values: tf.Tensor, like: tf.Tensor) -> tf.Tensor:
  """Puts False before `values`; returns nothing where `like` is empty."""
  return tf.concat([[False], values], 0)[: tf.size(like)]


def _expanded(row_splits: tf.Tensor, owners: tf.Tensor) -> tf.Tensor:
  """Converts boundaries of texts in tokens to boundaries in parts."""
  return tf.searchsorted(tf.cast(owners, tf.int64), row_splits, out_type=tf.int64)


def _as_words(values: tf.Tensor, row_splits: tf.Tensor) -> tf.RaggedTensor:
  pieces = tf.RaggedTensor.from_row_splits(values, row_splits, validate=False)
  texts = tf.range(tf.size(row_splits, tf.int64))
  return tf.RaggedTensor.from_row_splits(pieces, texts, validate=False)


def _parts_of(tokenizer: SentencePieceTokenizer) -> _Parts:
  """Computes `tokenizer.parts` of each sentencepiece token."""
  size = len(tokenizer.vocab)
  counts, starts, lengths = (np.zeros([size], np.int32) for _ in range(3))
  ids: list[int] = []
  firsts: list[int] = []
  limits: list[int] = []
  for piece, index in tokenizer.vocab.items():
    parts = tokenizer.parts(piece)
    counts[index], starts[index] = len(parts), len(ids)
    lengths[index] = 1 if index == tokenizer.unk_id else len(piece.replace(SPACE, ""))
    ids += tokenizer.convert_tokens_to_ids(parts)
    ends = np.cumsum([len(part.replace(SPACE, "")) for part in parts])
    if ends[-1] != lengths[index]:  # normalization changes the number: no part has a place
      ends = np.full_like(ends, lengths[index])
      firsts += [0] * len(parts)
    else:
      firsts += [0, *ends[:-1].tolist()]
    limits += ends.tolist()
  by_part = np.array([ids, firsts, limits], np.int32)
  return _Parts(counts, starts, by_part[0], by_part[1], by_part[2], lengths)
