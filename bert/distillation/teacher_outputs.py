"""The teacher's outputs of all training records, computed once and stored with them.

  write("train_taught.tf_record", input_fn, batch_size, outputs_of, head.is_of_tokens)
  input_fn = with_outputs(input_fn, "train_taught.tf_record", head.is_of_tokens)

Each record of the second file is one of the first, with the outputs as further features: `logits`
of a step are its feature `teacher_logits`. So the order of the data is the same with and without.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import tensorflow as tf

from bert.distillation.methods import Step, Tensors
from bert.io import record_files
from bert.model.variables import traced_once
from bert.training.input_pipeline import RecordInputFn

PREFIX = "teacher_"

# Where batches are shorter than records: no score of a place in padding counts.
_PADDING = -10000.0


def outputs_in(step: Step) -> dict[str, tf.Tensor] | None:
  """The outputs that a batch brings, or None."""
  stored = {name: step.features.get(PREFIX + name) for name in step.outputs}
  return None if None in stored.values() else stored


def write(
  path: str,
  input_fn: RecordInputFn,
  batch_size: int,
  outputs_of: Callable[[Tensors], Tensors],
  is_of_tokens: Callable[[str], bool] = lambda name: False,
) -> int:
  """Computes the outputs of all records, and writes both.

  Args:
    path: the file to write, which appears when it is complete.
    input_fn: of training, over one file.
    batch_size: of the computation.
    outputs_of: the features of a batch -> the teacher's outputs.
    is_of_tokens: whether the output of a name has a value for each token, see `task_head.Head`.

  Returns:
    The number of records.

  Raises:
    RecordError: a file of `input_fn` is damaged.
    OSError: the file cannot be written.
  """
  in_order = input_fn.again(
    is_training=False, drop_remainder=False, repeat=False, group_by_length=False
  )
  batches = in_order({"batch_size": batch_size})
  with traced_once():
    graph = tf.function(outputs_of, autograph=False).get_concrete_function(batches.element_spec)
  length = input_fn.features["input_ids"].shape[-1]

  def padded(name):
    return length if is_of_tokens(name) else 0

  rows = itertools.chain.from_iterable(_rows(graph(batch), padded) for batch in batches)
  records = itertools.chain.from_iterable(map(record_files.records_of, input_fn.files))
  return record_files.write_records(path, _joined(records, rows))


def _rows(
  outputs: Mapping[str, tf.Tensor], padded: Callable[[str], int]
) -> Iterator[dict[str, np.ndarray]]:
  """Yields the outputs of each example of a batch, of the length that `padded` says at least."""
  arrays = {name: value.numpy() for name, value in outputs.items()}
  for name, value in arrays.items():
    missing = padded(name) - value.shape[1] if value.ndim > 1 else 0
    if missing > 0:
      places = [(0, 0), (0, missing), *[(0, 0)] * (value.ndim - 2)]
      arrays[name] = np.pad(value, places, constant_values=_PADDING)
  for index in range(len(next(iter(arrays.values())))):
    yield {name: value[index] for name, value in arrays.items()}


def _joined(records, rows) -> Iterator[bytes]:
  for record, row in zip(records, rows, strict=True):
    example = tf.train.Example.FromString(record)
    for name, values in row.items():
      shape = example.features.feature[f"{PREFIX}{name}_shape"]
      shape.int64_list.value.extend(values.shape)
      example.features.feature[PREFIX + name].float_list.value.extend(values.ravel().tolist())
    yield example.SerializeToString(deterministic=True)


def with_outputs(
  input_fn: RecordInputFn, path: str, is_of_tokens: Callable[[str], bool] = lambda name: False
) -> RecordInputFn:
  """Adds the outputs in a file of `write` to an input_fn over it; RecordError if damaged."""
  example = tf.train.Example.FromString(next(record_files.records_of(path)))
  known = example.features.feature
  features = {
    name: tf.io.FixedLenFeature(list(known[f"{name}_shape"].int64_list.value), tf.float32)
    for name in known
    if name.startswith(PREFIX) and not name.endswith("_shape")
  }
  sequences = [name for name in features if is_of_tokens(name.removeprefix(PREFIX))]
  return input_fn.again(
    files=path,
    features={**input_fn.features, **features},
    length_features=(*input_fn.length_features, *sequences),
  )
