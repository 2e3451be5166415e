"""`tf.estimator.inputs`: batches of numpy arrays and of pandas tables.

Arguments, batches and messages are those of TensorFlow 1.15.5. There, threads fed a queue; here
`tf.data` draws row numbers and a function takes these rows from the arrays. So the arrays are no
constants of the graph, one thread gives the same batches as several, and shuffling is repeatable
under `tf.set_random_seed`. As in 1.15:
  - rows are repeated first, then shuffled, then batched: a batch may span two epochs;
  - the last batch is short, unless rows are repeated without end;
  - shuffled rows begin at a random one and mix within `queue_capacity` rows;
  - `num_epochs` is that of each thread.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

__all__ = ["numpy_input_fn", "pandas_input_fn"]

Columns = dict[str, np.ndarray]


def _check_shuffle(shuffle: Any) -> None:
  if not isinstance(shuffle, bool):
    raise ValueError(
      "shuffle must be provided and explicitly set as boolean "
      f"(it is recommended to set it as True for training); got {shuffle}"
    )


def _random_row(num_rows: int) -> int:
  seed = tf.get_default_graph().seed
  return (random if seed is None else random.Random(seed)).randrange(num_rows)


def _row_numbers(
  num_rows: int,
  batch_size: int,
  num_epochs: int | None,
  shuffle: bool,
  capacity: int,
  num_threads: int,
) -> tf.data.Dataset:
  """Batches of row numbers, int64 `[batch_size]` or fewer at the end."""
  start = _random_row(num_rows) if shuffle else 0
  rows = tf.data.Dataset.range(start, start + num_rows).map(lambda row: row % num_rows)
  rows = rows.repeat(None if num_epochs is None else num_epochs * num_threads)
  if shuffle:
    rows = rows.shuffle(capacity)
  return rows.batch(batch_size, drop_remainder=num_epochs is None)


def _batches(arrays: list[np.ndarray], row_numbers: tf.data.Dataset) -> list[tf.Tensor]:
  """Returns a tensor of the next batch per array."""
  # Python strings become UTF-8; numpy's own would have to be ASCII.
  arrays = [array.astype(object) if array.dtype.kind == "U" else array for array in arrays]
  dtypes = [tf.as_dtype(array.dtype) for array in arrays]

  def take(rows: tf.Tensor) -> tuple[tf.Tensor, ...]:
    taken = tf.numpy_function(lambda rows: [array[rows] for array in arrays], [rows], dtypes)
    for tensor, array in zip(taken, arrays, strict=True):
      tensor.set_shape([rows.shape[0], *array.shape[1:]])
    return tuple(taken)

  batches = tf.data.make_one_shot_iterator(row_numbers.map(take).prefetch(1))
  return list(batches.get_next())


def _named_arrays(x: Any) -> Columns:
  """Returns the features by name, sorted; an array alone has an empty name."""
  if isinstance(x, Mapping):
    if not x:
      raise ValueError("x cannot be an empty dict")
    return dict(sorted(x.items()))
  if not isinstance(x, np.ndarray):
    raise TypeError(f"x must be a dict or array; got {type(x).__name__}")
  if x.size == 0:
    raise ValueError("x cannot be an empty array")
  return {"": x}


def _named_targets(y: Any, features: Columns) -> Columns:
  """Returns the targets by name, sorted; an array alone has an empty name."""
  if y is None:
    return {}
  if not isinstance(y, Mapping):
    return {"": y}
  if not y:
    raise ValueError("y cannot be empty dict, use None instead.")
  duplicates = set(features) & set(y)
  if duplicates:
    raise ValueError(f"{len(duplicates)} duplicate keys are found in both x and y: {duplicates}")
  return dict(sorted(y.items()))


def _check_lengths(features: Columns, targets: Columns, y: Any) -> int:
  """Returns the number of rows, which is the same in all arrays."""
  for name, array in [*features.items(), *targets.items()]:
    if not isinstance(array, np.ndarray):
      raise TypeError(f"{name or 'y'} must be a numpy array; got {type(array).__name__}")
  lengths = {array.shape[0] for array in [*features.values(), *targets.values()]}
  if len(lengths) == 1:
    return lengths.pop()
  shapes = {name: array.shape for name, array in targets.items()}
  raise ValueError(
    "Length of tensors in x and y is mismatched. All elements in x and y must have the same "
    f"length.\nShapes in x: { {name: array.shape for name, array in features.items()} }\n"
    f"Shapes in y: {(shapes if isinstance(y, Mapping) else shapes.get(''))}\n"
  )


def numpy_input_fn(
  x: np.ndarray | Mapping[str, np.ndarray],
  y: np.ndarray | Mapping[str, np.ndarray] | None = None,
  batch_size: int = 128,
  num_epochs: int | None = 1,
  shuffle: bool | None = None,
  queue_capacity: int = 1000,
  num_threads: int = 1,
) -> Callable[[], Any]:
  """Returns an input_fn that gives batches of arrays.

  Args:
    x: features: an array `[rows, ...]`, or name to array.
    y: targets, likewise; None for none.
    batch_size: rows in a batch.
    num_epochs: how often each row is given; None for no end.
    shuffle: whether rows are shuffled; must be given.
    queue_capacity: number of rows among which they are shuffled.
    num_threads: how often `num_epochs` is counted; see above.

  Returns:
    A function that returns the features in the form of `x`, or (features, targets).

  Raises:
    ValueError: `shuffle` is no bool; and, from the input_fn: empty x or y, a name in both, or
      arrays of different lengths.
    TypeError: from the input_fn: neither an array nor a dictionary of arrays.
  """
  _check_shuffle(shuffle)

  def input_fn() -> Any:
    features = _named_arrays(x)
    targets = _named_targets(y, features)
    num_rows = _check_lengths(features, targets, y)
    numbers = _row_numbers(num_rows, batch_size, num_epochs, shuffle, queue_capacity, num_threads)
    tensors = _batches([*features.values(), *targets.values()], numbers)
    given_features = dict(zip(features, tensors, strict=False))
    given_targets = dict(zip(targets, tensors[len(features) :], strict=True))
    result = given_features if isinstance(x, Mapping) else tensors[0]
    if y is None:
      return result
    return result, given_targets if isinstance(y, Mapping) else tensors[-1]

  return input_fn


def _table_columns(x: Any, y: Any, target_column: str) -> tuple[Columns, Columns]:
  """Returns the columns of the features and of the targets."""
  features = {name: x[name].values for name in x.columns}
  if y is None:
    return features, {}
  if target_column in features:
    raise ValueError(
      f"Cannot use name {target_column} for target column: DataFrame already has a column with "
      f"that name: {x.columns}"
    )
  if not np.array_equal(x.index, y.index):
    raise ValueError(
      f"Index for x and y are mismatched.\nIndex for x: {x.index}\nIndex for y: {y.index}\n"
    )
  if hasattr(y, "columns"):
    return features, {name: y[name].values for name in y.columns}
  return features, {target_column: y.values}


def pandas_input_fn(
  x: Any,
  y: Any = None,
  batch_size: int = 128,
  num_epochs: int | None = 1,
  shuffle: bool | None = None,
  queue_capacity: int | None = 1000,
  num_threads: int = 1,
  target_column: str = "target",
) -> Callable[[], Any]:
  """Returns an input_fn that gives batches of a pandas table.

  Args:
    x: pandas `DataFrame` of the features.
    y: `Series` or `DataFrame` of the targets with the index of `x`; None for none.
    batch_size, num_epochs, shuffle, num_threads: see `numpy_input_fn`.
    queue_capacity: likewise; None for four times the rows of `x`.
    target_column: a name that is no column of `x`.

  Returns:
    A function that returns features by name, or (features, target); the target of a `DataFrame`
    is a dictionary too.

  Raises:
    ValueError: `shuffle` is no bool, a column called `target_column`, or different indexes.
    TypeError: `x` is no table, or `target_column` no string.
  """
  if not hasattr(x, "columns"):
    raise TypeError(f"x must be a pandas DataFrame; got {type(x).__name__}")
  _check_shuffle(shuffle)
  if not isinstance(target_column, str):
    raise TypeError("target_column must be a string type")
  features, targets = _table_columns(x, y, target_column)
  capacity = 4 * len(x) if queue_capacity is None else queue_capacity

  def input_fn() -> Any:
    numbers = _row_numbers(len(x), batch_size, num_epochs, shuffle, capacity, num_threads)
    tensors = _batches([*features.values(), *targets.values()], numbers)
    given_features = dict(zip(features, tensors, strict=False))
    if y is None:
      return given_features
    given_targets = tensors[len(features) :]
    if hasattr(y, "columns"):
      return given_features, dict(zip(targets, given_targets, strict=True))
    return given_features, given_targets[0]

  return input_fn


__getattr__ = unknown_name(__name__)
