"""`tf.contrib.data` and `tf.data.experimental` take the arguments of 1.15 and give its batches.

The expected elements are what TensorFlow 1.15.5 gave for the same lines.
Alone: python -m pytest tf1/tests/contrib/data_test.py
"""

import numpy as np
import pytest

from bert_tf1.contrib import data
from bert_tf1.real import tf

Dataset = tf.data.Dataset


def elements(make) -> list:
  """The elements of the dataset that `make` builds in a graph of its own, as lists."""
  with tf.Graph().as_default():
    element = tf.data.make_one_shot_iterator(make()).get_next()
    found = []
    with tf.Session() as session:
      while True:
        try:
          found.append(tf.nest.map_structure(np.ndarray.tolist, _arrays(session.run(element))))
        except tf.errors.OutOfRangeError:
          return found


def _arrays(element):
  return tf.nest.map_structure(np.asarray, element)


@pytest.mark.parametrize("module", [data, tf.data.experimental])
def test_map_and_batch(module):
  by_threes = [[0, 2, 4], [6, 8, 10], [12, 14, 16], [18]]
  double = lambda x: x * 2  # noqa: E731
  assert elements(lambda: Dataset.range(10).apply(module.map_and_batch(double, 3))) == by_threes
  with_names = elements(
    lambda: Dataset.range(10).apply(
      module.map_and_batch(
        lambda x: (x, {"a": x * 2}), batch_size=4, num_parallel_batches=2, drop_remainder=True
      )
    )
  )
  assert with_names == [([0, 1, 2, 3], {"a": [0, 2, 4, 6]}), ([4, 5, 6, 7], {"a": [8, 10, 12, 14]})]
  calls = elements(
    lambda: Dataset.range(5).apply(
      module.map_and_batch(double, tf.constant(4, tf.int64), num_parallel_calls=2)
    )
  )
  assert calls == [[0, 2, 4, 6], [8]]


def test_map_and_batch_is_one_operation():
  with tf.Graph().as_default() as graph:
    dataset = Dataset.range(4).apply(data.map_and_batch(lambda x: x, 2, drop_remainder=True))
    assert tf.data.get_output_shapes(dataset).as_list() == [2]
    tf.data.make_one_shot_iterator(dataset)
    made = {
      node.op for function in graph.as_graph_def().library.function for node in function.node_def
    }
  assert "MapAndBatchDataset" in made


@pytest.mark.parametrize("module", [data, tf.data.experimental])
def test_parallel_interleave(module):
  repeated = lambda x: Dataset.from_tensors(x).repeat(3)  # noqa: E731
  in_turns = module.parallel_interleave(repeated, cycle_length=2, block_length=2)
  expected = [0, 0, 1, 1, 0, 1, 2, 2, 3, 3, 2, 3]
  assert elements(lambda: Dataset.range(4).apply(in_turns)) == expected
  sloppy = module.parallel_interleave(
    repeated, cycle_length=2, sloppy=True, buffer_output_elements=2, prefetch_input_elements=1
  )
  assert sorted(elements(lambda: Dataset.range(4).apply(sloppy))) == sorted(expected)


def test_sloppy_interleave():
  files = lambda: Dataset.range(3).apply(  # noqa: E731
    data.sloppy_interleave(lambda x: Dataset.from_tensors(x).repeat(2), 2)
  )
  assert sorted(elements(files)) == [0, 0, 1, 1, 2, 2]


def test_batches_of_one_size_only():
  drop = data.batch_and_drop_remainder(4)
  assert elements(lambda: Dataset.range(6).apply(drop)) == [[0, 1, 2, 3]]
  ranges = lambda: Dataset.range(1, 6).map(tf.range)  # noqa: E731
  padded = data.padded_batch_and_drop_remainder(2, [None], np.int64(9))
  assert elements(lambda: ranges().apply(padded)) == [
    [[0, 9], [0, 1]],
    [[0, 1, 2, 9], [0, 1, 2, 3]],
  ]


def test_shuffle_and_repeat():
  both = data.shuffle_and_repeat(10, 2, seed=3)
  found = elements(lambda: Dataset.range(5).apply(both))
  assert sorted(found[:5]) == sorted(found[5:]) == [0, 1, 2, 3, 4]
  assert found == elements(lambda: Dataset.range(5).apply(both))


def test_unbatch_and_ignored_errors():
  assert elements(lambda: Dataset.range(5).batch(4).apply(data.unbatch())) == [0, 1, 2, 3, 4]
  inverted = lambda: Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(  # noqa: E731
    lambda x: tf.check_numerics(1.0 / x, "x")
  )
  assert elements(lambda: inverted().apply(data.ignore_errors())) == [1.0, 0.5]


def test_bucket_by_sequence_length():
  texts = [[1], [1, 2], [1, 2, 3], [4], [5, 6], [7, 8, 9, 1]]
  by_length = data.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3], [2, 2])
  dataset = lambda: Dataset.from_generator(lambda: iter(texts), tf.int32, [None])  # noqa: E731
  assert elements(lambda: dataset().apply(by_length)) == [
    [[1, 0], [1, 2]],
    [[4, 0], [5, 6]],
    [[1, 2, 3, 0], [7, 8, 9, 1]],
  ]
