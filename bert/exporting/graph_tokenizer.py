"""`tokenization.FullTokenizer` as TensorFlow ops, exactly.

The graph works like this: all texts of a batch are decoded to one vector of code points, tables
give the replacement of each (`unicode_tables`), words begin where neighbours differ in kind, and
WordPiece splits the words.

Letters in shapes: B = batch size, N = characters and W = words of a batch, M = characters after
decomposition, C = characters of all words, P = tokens of all words.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert.exporting import unicode_tables as tables
from bert.io import installation

_MAX_WORD_CHARS = 200  # as tokenization.WordpieceTokenizer has it
_MAX_CHAR_BYTES = 4
_NO_WORD = " "  # is in no vocabulary, so it becomes [UNK]
_REPLACEMENT = 0xFFFD  # for invalid bytes; the tokenizer drops it, as it drops them


# ---------------------------------------------------------------------------------------------
# Characters.


class _Characters(NamedTuple):
  """Characters of all texts."""

  codes: tf.Tensor  # int32 [N], code points
  kinds: tf.Tensor  # int32 [N], `SPACE`, `ALONE` or `LETTER` of `unicode_tables`
  row_splits: tf.Tensor  # int64 [B + 1], boundaries of texts in `codes`
  origins: tf.Tensor  # int32 [N], index of the decoded character that each comes from


def _look_up(table: tables.PagedTable, codes: tf.Tensor) -> tf.Tensor:
  """Looks up the cells of `codes`, int32 of the same shape."""
  page = tf.gather(tf.constant(table.pages), tf.bitwise.right_shift(codes, 8))
  cells = tf.gather(tf.constant(table.cells), page + tf.bitwise.bitwise_and(codes, 255))
  return tf.cast(cells, tf.int32)


def _kind(cells: tf.Tensor) -> tf.Tensor:
  return tf.bitwise.bitwise_and(tf.bitwise.right_shift(cells, tables.KIND_SHIFT), 3)


def _has(cells: tf.Tensor, flag: int) -> tf.Tensor:
  return tf.not_equal(tf.bitwise.bitwise_and(cells, flag), 0)


def _normalize(
  character_tables: tables.CharacterTables, codes: tf.Tensor, row_splits: tf.Tensor
) -> tuple[_Characters, tf.Tensor]:
  """Cleans, lower-cases, strips accents: steps 1, 2 and 4 of `tokenization`.

  `codes` int32 [N] are the decoded characters; texts begin and end at `row_splits` int64 [B + 1].

  Returns:
    The characters that remain, blanks among them, and for all decoded ones their table cells [N].
  """
  cells = _look_up(character_tables.main, codes)

  def one_to_one():
    changed = tf.bitwise.bitwise_xor(codes, tf.bitwise.bitwise_and(cells, tables.CODE_MASK))
    return _Characters(changed, _kind(cells), row_splits, tf.range(tf.size(codes)))

  if character_tables.slow is None:
    characters = one_to_one()
  else:
    characters = tf.cond(
      tf.reduce_max(cells) >= tables.SLOW,
      lambda: _normalize_slowly(character_tables.slow, codes, cells, row_splits),
      one_to_one,
    )
  return _without_dropped(characters), cells


def _without_dropped(characters: _Characters) -> _Characters:
  kept = tf.not_equal(characters.kinds, tables.DROPPED)
  return tf.cond(
    tf.reduce_all(kept), lambda: characters, lambda: _select(characters, tf.where(kept)[:, 0])
  )


def _select(characters: _Characters, indices: tf.Tensor) -> _Characters:
  """Returns the characters at `indices`, which are in order."""
  return _Characters(
    tf.gather(characters.codes, indices),
    tf.gather(characters.kinds, indices),
    tf.searchsorted(indices, characters.row_splits, out_type=tf.int64),
    tf.gather(characters.origins, indices),
  )


# ---------------------------------------------------------------------------------------------
# The same for texts in which a character depends on others, or becomes several.


def _normalize_slowly(
  slow: tables.SlowTables, codes: tf.Tensor, cells: tf.Tensor, row_splits: tf.Tensor
) -> _Characters:
  vanished = (_kind(cells) == tables.DROPPED) & ~_has(cells, tables.ACCENT)
  indices = tf.where(~vanished)[:, 0]  # the rules below apply after cleaning
  codes, cells = tf.gather(codes, indices), tf.gather(cells, indices)
  rows = tf.searchsorted(row_splits, indices, side="right")  # [N], counted from 1
  codes = _with_final_sigmas(slow.sigma, codes, rows)
  elements, sources = _expand(slow.expansion, slow.pool, codes)
  properties = _look_up(slow.element, elements)
  combining = tf.bitwise.right_shift(properties, tables.CLASS_SHIFT)
  rows = tf.gather(rows, sources)
  order = _canonical_order(combining, rows)
  sources = tf.gather(sources, order)
  kinds = tf.bitwise.bitwise_and(tf.gather(properties, order), 3)
  # Which characters are Chinese is decided before decomposition.
  is_chinese = tf.gather(_has(cells, tables.CHINESE), sources)
  return _Characters(
    codes=tf.gather(elements, order),
    kinds=tf.where(is_chinese, tables.ALONE, kinds),
    row_splits=tf.searchsorted(rows, tf.range(1, tf.size(row_splits) + 1), out_type=tf.int64),
    origins=tf.cast(tf.gather(indices, sources), tf.int32),
  )


def _neighbours(values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns all but the last, and all but the first."""
  return values[:-1], values[1:]


def _with_final_sigmas(sigma: tables.PagedTable, codes: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
  """Lower-cases each capital sigma that ends a word, as `str.lower` does: to ς and not to σ."""
  roles = _look_up(sigma, codes)
  indices = tf.where(roles != tables.SKIPPED)[:, 0]
  is_cased = tf.gather(roles, indices) == tables.CASED
  in_same_text = tf.equal(*_neighbours(tf.gather(rows, indices)))
  before, after = _neighbours(is_cased)
  follows_cased = tf.concat([[False], before & in_same_text], 0)
  precedes_cased = tf.concat([after & in_same_text, [False]], 0)
  is_sigma = tf.gather(codes, indices) == tables.CAPITAL_SIGMA
  finals = tf.boolean_mask(indices, is_sigma & follows_cased & ~precedes_cased)
  update = tf.fill(tf.shape(finals), tables.FINAL_SIGMA)
  return tf.tensor_scatter_nd_update(codes, finals[:, tf.newaxis], update)


def _expand(
  expansion: tables.PagedTable, pool: np.ndarray, codes: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Replaces characters, int32 [N]: code points, and the index of each one's source, int32 [M].

  The cells of `expansion` are as in `unicode_tables.SlowTables.expansion`, and point into `pool`.
  """
  entries = _look_up(expansion, codes)
  stays = tf.equal(entries, 0)
  length_mask = (1 << tables.LENGTH_BITS) - 1
  lengths = tf.where(stays, 1, tf.bitwise.bitwise_and(entries, length_mask))
  sources = tf.repeat(tf.range(tf.size(codes)), lengths)
  place = tf.range(tf.size(sources)) - tf.gather(tf.cumsum(lengths, exclusive=True), sources)
  start = tf.gather(tf.bitwise.right_shift(entries, tables.LENGTH_BITS), sources)
  from_pool = tf.gather(tf.constant(pool), start + place)
  return tf.where(tf.gather(stays, sources), tf.gather(codes, sources), from_pool), sources


def _canonical_order(combining: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
  """Computes the stable permutation that sorts each run of combining characters by class.

  Classes are int32 [N], 0 for characters that do not combine; `rows` [N] tells each one's text.
  """
  begins_text = tf.concat([[True], tf.not_equal(*_neighbours(rows))], 0)
  runs = tf.cumsum(tf.cast(begins_text | tf.equal(combining, 0), tf.int64))
  keys = runs * 256 + tf.cast(combining, tf.int64)
  indices = tf.range(tf.size(keys, tf.int64))
  return tf.cond(
    tf.reduce_all(tf.less_equal(*_neighbours(keys))),
    lambda: indices,
    lambda: tf.cast(tf.argsort(keys * tf.size(keys, tf.int64) + indices), tf.int64),
  )


# ---------------------------------------------------------------------------------------------
# Words.


class _Words(NamedTuple):
  """Words of all texts."""

  codes: tf.Tensor  # int32 [C], code points
  splits: tf.Tensor  # int64 [W + 1], where words begin and end in `codes`
  row_splits: tf.Tensor  # int64 [B + 1], boundaries of texts, in words
  origins: tf.Tensor  # int32 [C], which decoded character each comes from


def _split_into_words(characters: _Characters) -> _Words:
  """Splits at blanks, and before and after each character that is a separate word."""
  is_letter = tf.equal(characters.kinds, tables.LETTER)
  follows_letter = tf.tensor_scatter_nd_update(
    tf.concat([[False], is_letter], 0),
    characters.row_splits[:, tf.newaxis],
    tf.zeros_like(characters.row_splits, tf.bool),
  )[:-1]
  begins_word = ~(is_letter & follows_letter)
  indices = tf.where(characters.kinds >= tables.ALONE)[:, 0]
  kept = _select(characters, indices)
  starts = tf.where(tf.gather(begins_word, indices))[:, 0]
  return _Words(
    codes=kept.codes,
    splits=tf.concat([starts, tf.size(kept.codes, tf.int64)[tf.newaxis]], 0),
    row_splits=tf.searchsorted(starts, kept.row_splits, out_type=tf.int64),
    origins=kept.origins,
  )


def _word_strings(words: _Words) -> tf.Tensor:
  """Replaces words that are too long for WordPiece: string [W]."""
  ragged = tf.RaggedTensor.from_row_splits(words.codes, words.splits, validate=False)
  strings = tf.strings.unicode_encode(ragged, "UTF-8")
  is_too_long = ragged.row_lengths() > _MAX_WORD_CHARS
  return tf.cond(
    tf.reduce_any(is_too_long), lambda: tf.where(is_too_long, _NO_WORD, strings), lambda: strings
  )


# ---------------------------------------------------------------------------------------------
# The tokenizer.


class ExactTokenizer:
  """`tokenization.FullTokenizer` as graph functions."""

  def __init__(self, tokens: Sequence[str], do_lower_case: bool, **splitting: Any):
    """Takes the vocabulary as tokens in the order of their ids, and `BasicTokenizer`'s options."""
    operations = installation.text_operations("An export that reads text")
    self._tables = tables.character_tables(do_lower_case, **splitting)
    self._wordpiece = operations.FastWordpieceTokenizer(
      list(tokens),
      token_out_type=tf.int32,
      no_pretokenization=True,
      max_bytes_per_word=_MAX_WORD_CHARS * _MAX_CHAR_BYTES,
    )

  def words(self, text: tf.Tensor) -> tf.RaggedTensor:
    """Splits texts as `tokenization.BasicTokenizer`, long words replaced: string [B, (words)]."""
    decoded = tf.strings.unicode_decode(text, "UTF-8", "replace", _REPLACEMENT)
    characters, _ = _normalize(self._tables, decoded.flat_values, decoded.row_splits)
    words = _split_into_words(characters)
    return tf.RaggedTensor.from_row_splits(_word_strings(words), words.row_splits, validate=False)

  def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
    """Returns ids of tokens, int32 [B, (words), (tokens)]."""
    words = self.words(text)
    return words.with_values(self._wordpiece.tokenize(words.values))

  def tokenize_with_offsets(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
    """Returns ids as `tokenize` does; first byte, and byte after the last, int64 of that shape."""
    decoded, first_bytes = tf.strings.unicode_decode_with_offsets(
      text, "UTF-8", "replace", _REPLACEMENT
    )
    codes, row_splits = decoded.flat_values, decoded.row_splits
    characters, cells = _normalize(self._tables, codes, row_splits)
    words = _split_into_words(characters)
    pieces, starts_in_words, _ = self._wordpiece.tokenize_with_offsets(_word_strings(words))
    piece_ids = _piece_of_each_character(words, starts_in_words)
    starts = first_bytes.flat_values
    limits = starts + _utf8_lengths(codes)
    reach = _with_accents(limits, cells, row_splits)
    limits = tf.where(
      _is_last_of_origin(words), tf.gather(reach, words.origins), tf.gather(limits, words.origins)
    )
    starts = tf.math.segment_min(tf.gather(starts, words.origins), piece_ids)
    limits = tf.math.segment_max(limits, piece_ids)
    ragged = [pieces, pieces.with_values(starts), pieces.with_values(limits)]
    return tuple(
      tf.RaggedTensor.from_row_splits(values, words.row_splits, validate=False) for values in ragged
    )


def _utf8_lengths(codes: tf.Tensor) -> tf.Tensor:
  """Counts the bytes that each code point takes, int64."""
  limits = tf.constant([0x80, 0x800, 0x10000])
  return 1 + tf.reduce_sum(tf.cast(codes[:, tf.newaxis] >= limits, tf.int64), axis=1)


def _piece_of_each_character(words: _Words, starts_in_words: tf.RaggedTensor) -> tf.Tensor:
  """Numbers the tokens of [W] words with [C] characters: int64 [C].

  `starts_in_words` [W, (tokens)] is the byte of its word at which each token begins. A token
  reaches to the next one, so its end need not be known; of a replaced word it would be wrong.
  """
  lengths = _utf8_lengths(words.codes)
  char_starts = tf.cumsum(lengths, exclusive=True)
  word_starts = tf.gather(char_starts, words.splits[:-1])
  starts = (tf.cast(starts_in_words, tf.int64) + word_starts[:, tf.newaxis]).flat_values
  return tf.searchsorted(starts, char_starts, side="right", out_type=tf.int64) - 1


def _is_last_of_origin(words: _Words) -> tf.Tensor:
  """Marks the last of the characters that one became, which gets the accents after it: bool [C]."""
  indices = tf.range(tf.size(words.origins))
  num_origins = tf.reduce_max(tf.concat([words.origins, [-1]], 0)) + 1
  last = tf.math.unsorted_segment_max(indices, words.origins, num_origins)
  return tf.equal(tf.gather(last, words.origins), indices)


def _with_accents(limits: tf.Tensor, cells: tf.Tensor, row_splits: tf.Tensor) -> tf.Tensor:
  """Extends each character, `limits` int64 [N], over the accents that follow it in its word.

  `cells` int32 [N] are of the table; texts begin and end at `row_splits` int64 [B + 1].
  """
  is_accent = _has(cells, tables.ACCENT)
  is_gone = tf.equal(_kind(cells), tables.DROPPED)
  begins_text = tf.tensor_scatter_nd_update(
    tf.zeros([tf.size(cells) + 1], tf.bool),
    row_splits[:, tf.newaxis],
    tf.ones_like(row_splits, tf.bool),
  )[:-1]
  # Each group is a character, blanks included, and the dropped characters after it.
  groups = tf.cumsum(tf.cast(begins_text | ~is_gone, tf.int64))
  reach = tf.math.segment_max(tf.where(is_accent | ~is_gone, limits, 0), groups)
  is_chinese = _has(cells, tables.CHINESE)
  return tf.where(is_chinese, limits, tf.gather(reach, groups))
