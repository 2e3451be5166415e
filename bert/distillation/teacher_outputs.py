"""The teacher's outputs of all training records, computed once and stored with them.

  compute_and_write("train.tf_record", "train_taught.tf_record", create_model_fn, outputs_of, ...)
  input_fn = with_outputs(input_fn, "train_taught.tf_record")

Each record of the second file is one of the first, with the outputs as further features: `logits`
of a step are its feature `teacher_logits`. So the order of the data is the same with and without.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert.distillation.methods import Step, Tensors
from bert.io import record_files
from bert.model.variables import VariableStore, traced_once, use_store
from bert.training.input_pipeline import RecordInputFn
from bert.training.run_config import ModeKeys

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
  create_model_fn: Callable[[Any], Callable],
  outputs_of: Callable[[Step], Tensors],
) -> int:
  """Computes the outputs of all records, and writes both.

  Args:
    path: the file to write, which appears when it is complete.
    input_fn: of training, over one file.
    batch_size: of the computation.
    create_model_fn: the script's `model_fn` with a `methods.Distillation`.
    outputs_of: see `logits.LogitsMethod.teacher_outputs`.

  Returns:
    The number of records.

  Raises:
    RecordError: a file of `input_fn` is damaged.
    OSError: the file cannot be written.
  """
  in_order = input_fn.again(
    is_training=False,
    drop_remainder=False,
    repeat=False,
    group_by_length=False,
    pack_sequences=False,
  )
  batches = in_order({"batch_size": batch_size})
  outputs = _graph(create_model_fn, outputs_of, batches.element_spec)
  length = input_fn.features["input_ids"].shape[-1]
  rows = itertools.chain.from_iterable(_rows(outputs(batch), length) for batch in batches)
  records = itertools.chain.from_iterable(map(record_files.records_of, input_fn.files))
  return record_files.write_records(path, _joined(records, rows))


def _graph(create_model_fn, outputs_of, element_spec):
  """A function from a batch to the teacher's outputs of it.

  The script's `model_fn` says how its outputs are computed; what else it builds is never run.
  """
  recorder = _Recorder(outputs_of)
  model_fn = create_model_fn(recorder)

  @tf.function(autograph=False)
  def outputs(features):
    with use_store(VariableStore()):
      model_fn(features, None, ModeKeys.TRAIN, {})
    return recorder.outputs

  with traced_once():
    return outputs.get_concrete_function(element_spec)


class _Recorder:
  """Takes the place of a `methods.Distillation`."""

  def __init__(self, outputs_of):
    self._outputs_of = outputs_of
    self.outputs: dict[str, tf.Tensor] = {}

  def teach(self, spec, features, outputs, label_losses, forward, parts=1):
    self.outputs = self._outputs_of(Step(features, outputs, label_losses, forward, parts))
    return spec.loss


def _rows(outputs: Mapping[str, tf.Tensor], length: int) -> Iterator[dict[str, np.ndarray]]:
  """The outputs of each example of a batch, of full length."""
  arrays = {name: value.numpy() for name, value in outputs.items()}
  for name, value in arrays.items():
    if _is_sequence(name, value.ndim) and value.shape[1] < length:
      missing = [(0, 0), (0, length - value.shape[1]), *[(0, 0)] * (value.ndim - 2)]
      arrays[name] = np.pad(value, missing, constant_values=_PADDING)
  for index in range(len(next(iter(arrays.values())))):
    yield {name: value[index] for name, value in arrays.items()}


def _is_sequence(name: str, rank: int) -> bool:
  """Whether outputs `[B, S]` or `[B, S, C]` have a value for each token."""
  return rank == 3 or name in ("start_logits", "end_logits")


def _joined(records, rows) -> Iterator[bytes]:
  for record, row in zip(records, rows, strict=True):
    example = tf.train.Example.FromString(record)
    for name, values in row.items():
      shape = example.features.feature[f"{PREFIX}{name}_shape"]
      shape.int64_list.value.extend(values.shape)
      example.features.feature[PREFIX + name].float_list.value.extend(values.ravel().tolist())
    yield example.SerializeToString(deterministic=True)


def with_outputs(input_fn: RecordInputFn, path: str) -> RecordInputFn:
  """Adds the outputs in a file of `write` to an input_fn over it; RecordError if damaged."""
  example = tf.train.Example.FromString(next(record_files.records_of(path)))
  known = example.features.feature
  features, sequences = {}, []
  for name in known:
    if name.startswith(PREFIX) and not name.endswith("_shape"):
      shape = list(known[f"{name}_shape"].int64_list.value)
      features[name] = tf.io.FixedLenFeature(shape, tf.float32)
      if _is_sequence(name.removeprefix(PREFIX), 1 + len(shape)):
        sequences.append(name)
  return input_fn.again(
    files=path,
    features={**input_fn.features, **features},
    length_features=(*input_fn.length_features, *sequences),
  )
