"""What both exported tokenizers do with characters: tables, capital sigmas, decomposition.

Letters in shapes: N = characters of all texts of a batch, M = what they become.
"""

import numpy as np
import tensorflow as tf

from bert.exporting import unicode_tables as tables


def look_up(table: tables.PagedTable, codes: tf.Tensor) -> tf.Tensor:
  """Looks up the cells of `codes`, int32 of the same shape."""
  page = tf.gather(tf.constant(table.pages), tf.bitwise.right_shift(codes, 8))
  cells = tf.gather(tf.constant(table.cells), page + tf.bitwise.bitwise_and(codes, 255))
  return tf.cast(cells, tf.int32)


def neighbours(values: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Returns all but the last, and all but the first."""
  return values[:-1], values[1:]


def with_final_sigmas(sigma: tables.PagedTable, codes: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
  """Lower-cases each capital sigma that ends a word, as `str.lower` does: to ς and not to σ."""
  roles = look_up(sigma, codes)
  indices = tf.where(roles != tables.SKIPPED)[:, 0]
  is_cased = tf.gather(roles, indices) == tables.CASED
  in_same_text = tf.equal(*neighbours(tf.gather(rows, indices)))
  before, after = neighbours(is_cased)
  follows_cased = tf.concat([[False], before & in_same_text], 0)
  precedes_cased = tf.concat([after & in_same_text, [False]], 0)
  is_sigma = tf.gather(codes, indices) == tables.CAPITAL_SIGMA
  finals = tf.boolean_mask(indices, is_sigma & follows_cased & ~precedes_cased)
  update = tf.fill(tf.shape(finals), tables.FINAL_SIGMA)
  return tf.tensor_scatter_nd_update(codes, finals[:, tf.newaxis], update)


def expand(
  expansion: tables.PagedTable, pool: np.ndarray, codes: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
  """Replaces characters, int32 [N]: code points, and the index of each one's source, int32 [M].

  The cells of `expansion` are as in `unicode_tables.SlowTables.expansion`, and point into `pool`.
  """
  entries = look_up(expansion, codes)
  stays = tf.equal(entries, 0)
  length_mask = (1 << tables.LENGTH_BITS) - 1
  lengths = tf.where(stays, 1, tf.bitwise.bitwise_and(entries, length_mask))
  sources = tf.repeat(tf.range(tf.size(codes)), lengths)
  place = tf.range(tf.size(sources)) - tf.gather(tf.cumsum(lengths, exclusive=True), sources)
  start = tf.gather(tf.bitwise.right_shift(entries, tables.LENGTH_BITS), sources)
  from_pool = tf.gather(tf.constant(pool), start + place)
  return tf.where(tf.gather(stays, sources), tf.gather(codes, sources), from_pool), sources


def utf8_lengths(codes: tf.Tensor) -> tf.Tensor:
  """Counts the bytes that each code point takes, int64."""
  limits = tf.constant([0x80, 0x800, 0x10000])
  return 1 + tf.reduce_sum(tf.cast(codes[:, tf.newaxis] >= limits, tf.int64), axis=1)
