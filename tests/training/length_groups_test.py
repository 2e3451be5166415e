"""Windows of a stream, sorted by length and dealt in random batches; entered anywhere."""

import numpy as np
import pytest
import tensorflow as tf

from bert.training.length_groups import (
  deal_by_length,
  dealing_order,
  records_that_matter,
  sequence_lengths,
  window_size,
)

LENGTHS = np.random.RandomState(0).randint(1, 60, 1000)


def order_of(lengths, batch_size, seed=(1, 0)):
  return dealing_order(tf.constant(lengths), batch_size, tf.constant(seed, tf.int64)).numpy()


def dealt(count=1000, batch_size=4, window=40, seed=1, skip=0, repeat=1):
  """The numbers of records whose lengths are LENGTHS, in the order dealt."""
  records = tf.data.Dataset.range(count).repeat(repeat)

  def lengths_of(numbers):
    return tf.gather(LENGTHS, numbers)

  dataset = deal_by_length(records, lengths_of, batch_size, window, seed, skip)
  return np.array([int(number) for number in dataset])


def test_the_order_is_a_permutation_of_sorted_batches():
  order = order_of(LENGTHS, 8)
  assert sorted(order) == list(range(1000))
  batches = LENGTHS[order].reshape(-1, 8)
  by_length = batches[np.argsort(batches.mean(axis=1), kind="stable")]
  # Batches side by side overlap in no more than one length.
  assert (by_length[1:].min(axis=1) >= by_length[:-1].max(axis=1)).all()


@pytest.mark.parametrize("count", [0, 1, 3, 7])
def test_what_makes_no_batch_stays_last(count):
  order = order_of(LENGTHS[: 40 + count], 8)
  whole = (40 + count) // 8 * 8
  assert order[whole:].tolist() == list(range(whole, 40 + count))
  assert sorted(order[:whole]) == list(range(whole))


@pytest.mark.parametrize("skip", [0, 1, 4, 39, 40, 41, 76, 80, 399, 400, 996, 1000])
def test_it_can_be_entered_anywhere(skip):
  np.testing.assert_array_equal(dealt(skip=skip), dealt()[skip:])


def test_windows_grow_with_the_data_up_to_fifty_batches():
  assert window_size(10, 32) == 32
  assert window_size(3668, 32) == 28 * 32
  enough = records_that_matter(32)
  assert window_size(enough, 32) == window_size(10**12, 32) == 1600
  assert window_size(enough - 1, 32) < 1600


def test_lengths_reach_to_the_last_token_of_any_axis():
  mask = tf.constant([[[1, 0, 0], [1, 1, 0]], [[0, 0, 0], [0, 0, 0]], [[0, 0, 1], [1, 0, 0]]])
  assert sequence_lengths(mask).numpy().tolist() == [2, 1, 3]
