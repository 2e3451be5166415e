"""Batches of arrays and tables: those of TensorFlow 1.15.5, whose output stands here."""

import numpy as np
import pytest

from bert_tf1.estimator import inputs
from bert_tf1.real import tf

X = {
  "words": np.array(["u", "vé", "w", "x", "y"]),
  "pairs": np.arange(10, dtype=np.float32).reshape(5, 2),
  "bytes": np.array([b"1", b"2", b"3", b"4", b"5"], dtype=object),
}
Y = np.arange(5)


def batches(input_fn, limit: int = 20, seed: int | None = None) -> list:
  """What an Estimator would get of `input_fn`, up to `limit` batches."""
  found = []
  with tf.Graph().as_default():
    tf.set_random_seed(seed)
    tensors = input_fn()
    with tf.train.MonitoredSession() as session:
      while not session.should_stop() and len(found) < limit:
        found.append(session.run(tensors))
  return found


@pytest.mark.parametrize(
  ("arguments", "expected"),
  [
    ({"batch_size": 2}, [[0, 1], [2, 3], [4]]),
    ({"batch_size": 2, "num_epochs": 2}, [[0, 1], [2, 3], [4, 0], [1, 2], [3, 4]]),
    ({"batch_size": 7}, [[0, 1, 2, 3, 4]]),
    ({"batch_size": 3, "num_epochs": None}, [[0, 1, 2], [3, 4, 0], [1, 2, 3], [4, 0, 1]]),
  ],
)
def test_rows_come_in_order_and_batches_span_epochs(arguments, expected):
  found = batches(inputs.numpy_input_fn(X, Y, shuffle=False, **arguments), limit=4)
  assert [y.tolist() for _, y in found] == expected[:4]
  for x, y in found:
    assert list(x) == ["bytes", "pairs", "words"]
    assert x["pairs"].tolist() == X["pairs"][y].tolist()
    assert x["words"].tolist() == [word.encode() for word in X["words"][y]]
    assert x["bytes"].tolist() == X["bytes"][y].tolist()


def test_shapes_are_known_where_no_batch_is_short():
  with tf.Graph().as_default():
    endless, _ = inputs.numpy_input_fn(X, Y, 2, num_epochs=None, shuffle=True)()
    ending, _ = inputs.numpy_input_fn(X, Y, 2, shuffle=True)()
  assert endless["pairs"].shape.as_list() == [2, 2]
  assert ending["pairs"].shape.as_list() == [None, 2]
  assert (ending["pairs"].dtype, ending["words"].dtype) == (tf.float32, tf.string)


def test_features_and_targets_keep_their_form():
  array = np.arange(3)
  assert [b.tolist() for b in batches(inputs.numpy_input_fn(array, shuffle=False))] == [[0, 1, 2]]
  targets = {"t": np.arange(3.0), "s": np.ones([3, 2], np.int32)}
  ((x, y),) = batches(inputs.numpy_input_fn(array, targets, shuffle=False))
  assert x.tolist() == [0, 1, 2]
  assert {name: value.tolist() for name, value in y.items()} == {
    "s": [[1, 1], [1, 1], [1, 1]],
    "t": [0.0, 1.0, 2.0],
  }


def test_shuffled_rows_are_all_there_and_repeat_under_a_seed():
  def order(seed):
    input_fn = inputs.numpy_input_fn(np.arange(50), 2 * np.arange(50), 8, 2, shuffle=True)
    found = batches(input_fn, seed=seed)
    assert [len(x) for x, _ in found] == [8] * 12 + [4]
    assert all((y == 2 * x).all() for x, y in found)
    return np.concatenate([x for x, _ in found]).tolist()

  first = order(7)
  assert sorted(first) == sorted([*range(50)] * 2)
  assert first != sorted(first)
  assert order(7) == first


def test_a_name_that_is_not_there_is_named():
  with pytest.raises(AttributeError, match=r"did you mean tf.estimator.inputs.numpy_input_fn"):
    inputs.numpy_input  # noqa: B018


def test_epochs_count_for_each_thread():
  found = batches(inputs.numpy_input_fn(np.arange(5), shuffle=False, num_threads=2))
  assert sorted(np.concatenate(found).tolist()) == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]


def test_arrays_are_no_constants_of_the_graph():
  with tf.Graph().as_default() as graph:
    inputs.numpy_input_fn(np.zeros([1000, 1000]), shuffle=False)()
  assert graph.as_graph_def().ByteSize() < 100_000


# As 1.15.5 said it, but for the last: there an AttributeError.
@pytest.mark.parametrize(
  ("x", "y", "error", "message"),
  [
    ({}, Y, ValueError, "x cannot be an empty dict"),
    ([1], Y, TypeError, "x must be a dict or array; got list"),
    (np.zeros([0]), Y, ValueError, "x cannot be an empty array"),
    (X, {}, ValueError, "y cannot be empty dict, use None instead."),
    ({"a": Y}, {"a": Y}, ValueError, "1 duplicate keys are found in both x and y: {'a'}"),
    ({"a": Y}, {"b": Y[:2]}, ValueError, "{'a': (5,)}\nShapes in y: {'b': (2,)}\n"),
    (Y, Y[:2], ValueError, "Shapes in y: (2,)\n"),
    ({"a": Y, "b": Y[:2]}, None, ValueError, "{'a': (5,), 'b': (2,)}\nShapes in y: None\n"),
    (Y, [1, 2, 3, 4, 5], TypeError, "y must be a numpy array; got list"),
  ],
)
def test_arrays_that_do_not_fit_are_refused(x, y, error, message):
  with tf.Graph().as_default(), pytest.raises(error) as raised:
    inputs.numpy_input_fn(x, y, shuffle=False)()
  assert message in str(raised.value)


@pytest.mark.parametrize("make", [inputs.numpy_input_fn, inputs.pandas_input_fn])
@pytest.mark.parametrize("shuffle", [None, "no"])
def test_shuffle_must_be_given(make, shuffle):
  table = Table({"a": Y}) if make is inputs.pandas_input_fn else Y
  with pytest.raises(ValueError, match=f"shuffle must be provided .* got {shuffle}"):
    make(table, shuffle=shuffle)


class Table(dict):
  """As much of a pandas DataFrame as is read: this project does not depend on pandas."""

  def __init__(self, columns, index=(0, 1, 2)):
    super().__init__({name: Series(values, index) for name, values in columns.items()})
    self.columns, self.index = list(columns), np.array(index)

  def __len__(self):
    return len(self.index)


class Series:
  """As much of a pandas Series as is read."""

  def __init__(self, values, index=(0, 1, 2)):
    self.values, self.index = np.array(values), np.array(index)


TABLE = Table({"z": [1, 2, 3], "s": np.array(["a", "b", "c"], object), "f": [0.1, 0.2, 0.3]})


def test_a_table_gives_its_columns():
  target = Series([7, 8, 9])
  found = batches(inputs.pandas_input_fn(TABLE, target, 2, shuffle=False))
  assert [y.tolist() for _, y in found] == [[7, 8], [9]]
  assert list(found[0][0]) == ["z", "s", "f"]
  assert found[0][0]["s"].tolist() == [b"a", b"b"]
  assert [x["f"].tolist() for x, _ in found] == [[0.1, 0.2], [0.3]]
  alone = batches(inputs.pandas_input_fn(TABLE, None, 2, None, False, None), limit=2)
  assert [x["z"].tolist() for x in alone] == [[1, 2], [3, 1]]


def test_a_table_of_targets_gives_a_dictionary():
  targets = Table({"z": [1, 1, 1], "t": [4, 5, 6]})
  ((x, y),) = batches(inputs.pandas_input_fn(TABLE, targets, shuffle=False))
  assert (x["z"].tolist(), y["z"].tolist(), y["t"].tolist()) == ([1, 2, 3], [1, 1, 1], [4, 5, 6])


@pytest.mark.parametrize(
  ("arguments", "error", "message"),
  [
    ({"x": Y}, TypeError, "x must be a pandas DataFrame; got ndarray"),
    ({"target_column": 3}, TypeError, "target_column must be a string type"),
    ({"target_column": "z"}, ValueError, "Cannot use name z for target column"),
    ({"y": Series(Y[:3], [4, 5, 6])}, ValueError, "Index for x and y are mismatched"),
  ],
)
def test_tables_that_do_not_fit_are_refused(arguments, error, message):
  with pytest.raises(error, match=message):
    inputs.pandas_input_fn(**{"x": TABLE, "y": Series([7, 8, 9]), "shuffle": True, **arguments})
