"""Random streams: uniform, independent, the same one by one and in arrays."""

import numpy as np

from bert.pretraining.random_streams import Stream, draw, draw_uniform, stream_key


def test_published_numbers_of_splitmix64():
  # The first outputs for the seed 1234567, from the reference implementation (prng.di.unimi.it).
  stream = Stream(1234567)
  assert [stream.bits() for _ in range(3)] == [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
  ]


def test_arrays_hold_the_same_numbers():
  keys = [0, 1, 2**64 - 1, stream_key(5)]
  expected = []
  for key in keys:
    stream = Stream(key)
    expected.append([stream.bits() for _ in range(10)])
  assert draw(np.array(keys, np.uint64)[:, None], np.arange(10)).tolist() == expected
  stream = Stream(keys[3])
  uniform = draw_uniform(np.array(keys[3:], np.uint64), np.arange(5))
  assert uniform.tolist() == [stream.random() for _ in range(5)]


def test_numbers_are_uniform_and_streams_are_not_alike():
  keys = np.array([stream_key(12345, 0, number) for number in range(500)], np.uint64)
  uniform = draw_uniform(keys[:, None], np.arange(500))
  assert 0 <= uniform.min() < uniform.max() < 1
  counts = np.histogram(uniform, bins=50, range=(0, 1))[0]
  chi_square = ((counts - 5000) ** 2 / 5000).sum()
  assert 20 < chi_square < 100  # 49 expected; beyond these bounds once in 10,000 seeds
  for correlation in (np.corrcoef(uniform)[0, 1:], np.corrcoef(uniform.T)[0, 1:]):
    assert abs(correlation).max() < 0.25  # 5 standard deviations of 500 pairs
