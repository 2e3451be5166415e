"""Training batches of similar lengths: little padding is computed, and the order stays random.

  records = deal_by_length(
    records, lengths_of, batch_size=32, window=1600, seed=12345, skip_examples=0)

A stream of records, shuffled already, is cut into windows. Each window is sorted by length, dealt
into batches, and the batches come in random order. So no more than a window is in memory, whatever
the size of the data; every record comes as often as before, and within a window of where it came
before. Randomness depends on the seed and the number of the window only: the stream can be resumed
anywhere, at the cost of reading one window.

The procedure is that of `LengthGroupedSampler` in transformers, applied to a stream.
"""

from collections.abc import Callable

import tensorflow as tf

# Of transformers: enough batches for lengths to differ little within one, ...
_BATCHES_PER_WINDOW = 50
# ... unless the data are few. A window that went through them twice would put the two copies of a
# record, which have the same length, into one batch.
_WINDOWS_PER_EPOCH = 4


def sequence_lengths(input_mask: tf.Tensor) -> tf.Tensor:
  """Computes the lengths of sequences up to their last 1: int `[B, ..., S]` to int32 `[B]`.

  At least 1, since a model needs a first token even if an example is all padding.

  Example:
    >>> sequence_lengths(tf.constant([[1, 1, 0], [1, 0, 1], [0, 0, 0]])).numpy().tolist()
    [2, 3, 1]
  """
  ends = tf.where(input_mask > 0, tf.range(1, tf.shape(input_mask)[-1] + 1), 0)
  return tf.maximum(tf.reduce_max(ends, axis=tf.range(1, tf.rank(ends))), 1)


def window_size(num_records: int, batch_size: int) -> int:
  """Computes the number of records to sort together: whole batches, at most a quarter of all.

  Counts above `records_that_matter` give the same result.

  Example:
    >>> window_size(3668, 32), window_size(10**9, 32), window_size(100, 32)
    (896, 1600, 32)
  """
  batches = num_records // (_WINDOWS_PER_EPOCH * batch_size)
  return batch_size * max(1, min(_BATCHES_PER_WINDOW, batches))


def records_that_matter(batch_size: int) -> int:
  """Computes the number of records from which `window_size` has its maximum."""
  return _WINDOWS_PER_EPOCH * _BATCHES_PER_WINDOW * batch_size


def deal_by_length(
  records: tf.data.Dataset,
  lengths_of: Callable[[tf.Tensor], tf.Tensor],
  batch_size: int,
  window: int,
  seed: int,
  skip_examples: int = 0,
) -> tf.data.Dataset:
  """Reorders a stream so that every `batch_size` records in a row have similar lengths.

  Args:
    records: serialized, in a random order that is the same each time.
    lengths_of: serialized `[n]` -> int `[n]`.
    batch_size: of the batches that will be made of the result.
    window: records to sort at a time, a multiple of `batch_size`.
    seed: determines the order of batches, and the order of records of equal length.
    skip_examples: number of records of the result to skip. The windows before are not parsed.

  Returns:
    The same records. Those that remain at the end of the stream, too few for a batch, stay last.
  """
  first_window, skip_in_window = divmod(skip_examples, window)

  def deal(number, serialized):
    order = dealing_order(lengths_of(serialized), batch_size, tf.stack([seed, number]))
    return tf.gather(serialized, order)

  windows = records.skip(first_window * window).batch(window).enumerate(start=first_window)
  return windows.map(deal).unbatch().skip(skip_in_window)


def dealing_order(lengths: tf.Tensor, batch_size: int, seed: tf.Tensor) -> tf.Tensor:
  """Sorts by length, cuts into batches, shuffles the batches: int32 `[n]`, indices in that order.

  Args:
    lengths: int `[n]`.
    batch_size: the remainder of n keeps its place at the end: if sorted, the longest records would
      always be the ones in a short batch, or dropped.
    seed: int64 `[2]`.

  Example:
    >>> order = dealing_order(tf.constant([9, 5, 8, 4, 7]), 2, seed=tf.constant([1, 0]))
    >>> order.numpy().tolist()
    [2, 0, 3, 1, 4]
  """
  count = tf.size(lengths)
  whole = count - count % batch_size
  # A random fraction added to whole numbers shuffles equal lengths and does not affect others.
  ties, turns = tf.unstack(tf.random.stateless_uniform([2, whole], seed, dtype=tf.float64))
  by_length = tf.argsort(tf.cast(lengths[:whole], tf.float64) + ties)
  batches = tf.reshape(by_length, [-1, batch_size])
  shuffled = tf.gather(batches, tf.argsort(turns[: whole // batch_size]))
  return tf.concat([tf.reshape(shuffled, [-1]), tf.range(whole, count)], axis=0)
