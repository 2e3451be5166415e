"""Records on disk -> batches of features, in the original's order.

Features are stored in TFRecord files of `tf.train.Example`s under the original's names, see
`bert/io/record_files.py`, which writes them. `record_input_fn` reads them:

  input_fn = record_input_fn(
    "train.tf_record", classifier_features(128), is_training=True, drop_remainder=True)
  dataset = input_fn({"batch_size": 32, "seed": 12345, "skip_examples": 0})

Training repeats, shuffles in a buffer of 100, and batches. The order derives from the seed alone,
so a resumed run drops as many shuffled records as were consumed, unparsed, and continues with the
very next batch. Each batch is cut to its own longest example: padding costs time and does not
change results. For less padding, `group_by_length` puts examples of similar lengths into one batch
(length_groups.py).

Reading, parsing and all that follows are operations of a graph without Python. They run in threads
of their own, two batches ahead of the training step.

A file that is missing, cut short, damaged or written for another length is reported as a
`RecordError` that names the file and the record.
"""

import dataclasses
import functools
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from bert.io.record_files import REMEDY, RecordError, compression_of, read_manifest, records_of
from bert.training import length_groups

# As in the original; the buffer holds serialized records, so it takes little memory.
SHUFFLE_BUFFER = 100

_LENGTH_FEATURES = ("input_ids", "input_mask", "segment_ids")

# Masks drawn in evaluation do not change with the seed of a run: its losses stay comparable.
_EVAL_SEED = 0

FeatureSpec = Mapping[str, tf.io.FixedLenFeature]
# `transform(features, numbers int64 [B], seed)` -> features; see `record_input_fn`.
Transform = Callable[[Mapping[str, tf.Tensor], tf.Tensor, int], Mapping[str, tf.Tensor]]


# ---------------------------------------------------------------------------------------------
# Reading.


@dataclasses.dataclass(frozen=True, eq=False)
class RecordInputFn:
  """An input_fn over TFRecord files, as the original's `file_based_input_fn_builder` made them.

  Its `params` are `batch_size`, `seed` (determines the order in training), and `skip_examples`: the
  number of records that the run has consumed, in training's order. Its dataset yields name -> `[B]`
  or `[B, T]`, int32 or float32.


  Raises:
    RecordError: a file is missing or empty, or its first record does not match `features`.
    ValueError: `group_by_length` is given without an `input_mask`, which gives lengths.
  """

  files: Any  # a file or several, in reading order
  features: FeatureSpec  # name -> `tf.io.FixedLenFeature`; a record with another length is an error
  is_training: bool  # repeat without end and shuffle; otherwise one pass in the order of the files
  drop_remainder: bool  # drop the last batch if it is not full
  _: dataclasses.KW_ONLY
  shuffle_buffer: int = SHUFFLE_BUFFER  # number of records among which the next one is drawn
  # Keep the full length, as the original does. Otherwise each batch is cut to its longest example
  # by `input_mask`.
  pad_to_max_length: bool = False
  # Features to cut along the last axis of `input_mask`.
  length_features: Sequence[str] = _LENGTH_FEATURES
  round_length_to: int = 8  # cut to a multiple of this, so that few lengths occur; 1 cuts exactly
  repeat: bool | None = None  # whether to start over at the end; as `is_training` by default
  # Applied to the features of a batch, in the graph, before it is cut. It receives the number of
  # each example: in training the position in the stream, which is never repeated; in evaluation the
  # position in the files, the same in each pass. And a seed: that of the order in training, a
  # constant in evaluation.
  transform: Transform | None = None
  # In training, make batches of similar lengths by `input_mask`. Evaluation keeps its order.
  group_by_length: bool = False
  # Finds the first record that is wrong; by default, one that does not match `features`.
  first_fault: Callable[[], ValueError | None] | None = None

  def __post_init__(self):
    """Checks the arguments and the first records."""
    if self.group_by_length and "input_mask" not in self.features:
      raise ValueError("Without 'input_mask' among the features, lengths are unknown.")
    files = [self.files] if isinstance(self.files, (str, os.PathLike)) else self.files
    object.__setattr__(self, "files", [os.fsdecode(file) for file in files])
    if not self.files:
      raise RecordError("No TFRecord file was given: the pattern matches nothing.")
    for path in self.files:
      _check_file(path, self.features, limit=1)

  def __call__(self, params: Mapping[str, Any]) -> tf.data.Dataset:
    """Makes the batches."""
    batch_size = params["batch_size"]
    repeat = self.is_training if self.repeat is None else self.repeat
    seed = params.get("seed", 12345)  # only `Estimator` gives one
    if self.is_training:
      skipped = params.get("skip_examples", 0)
      records = _training_records(self.files, repeat, seed)
      records = shuffled(records, self.shuffle_buffer, seed)
      # The skipped records are neither parsed nor batched: a million take about a second.
      if self.group_by_length:
        records = _grouped_by_length(records, self.files, self.features, batch_size, seed, skipped)
      else:
        records = records.skip(skipped)
      records = records.enumerate(start=skipped)
    else:
      seed = _EVAL_SEED
      records = _in_order(self.files).enumerate()
      records = records.repeat() if repeat else records
    batches = records.batch(batch_size, drop_remainder=self.drop_remainder)
    # AutoGraph would read and rewrite the source of what is called, in 0.1 s.
    finish = tf.autograph.experimental.do_not_convert(functools.partial(self._finish, seed))
    batches = batches.map(finish, num_parallel_calls=2)
    return batches.prefetch(2).with_options(_options())

  def _finish(self, seed, numbers, batch):
    """Parses a batch of records, transforms it, and trims it."""
    parsed = _parse(batch, self.features)
    parsed = parsed if self.transform is None else self.transform(parsed, numbers, seed)
    return (
      parsed
      if self.pad_to_max_length
      else _trim(parsed, self.length_features, self.round_length_to)
    )

  def explain_error(self, error: Exception) -> ValueError | None:
    """Finds the record behind a TensorFlow error, reading all files again; None if none is bad."""
    about_data = (tf.errors.DataLossError, tf.errors.InvalidArgumentError, tf.errors.NotFoundError)
    if not isinstance(error, about_data):
      return None
    if self.first_fault:
      return self.first_fault()
    try:
      for path in self.files:
        _check_file(path, self.features, limit=None)
    except RecordError as clear:
      return clear
    return None


record_input_fn = RecordInputFn  # as scripts call it: it makes an input_fn


def classifier_features(seq_length: int, label: tf.io.FixedLenFeature | None = None) -> FeatureSpec:
  """Returns the features of `run_classifier.py`'s records; the label is one integer by default."""
  ids = tf.io.FixedLenFeature([seq_length], tf.int64)
  number = tf.io.FixedLenFeature([], tf.int64)
  return {
    "input_ids": ids,
    "input_mask": ids,
    "segment_ids": ids,
    "label_ids": label or number,
    "is_real_example": number,
  }


def _in_order(paths: Sequence[str]) -> tf.data.Dataset:
  """Reads serialized records of all files, one file after the other."""
  compressions = [compression_of(path) for path in paths]
  if len(set(compressions)) == 1:
    return tf.data.TFRecordDataset(paths, compressions[0])
  return tf.data.Dataset.from_tensor_slices((paths, compressions)).flat_map(tf.data.TFRecordDataset)


def shuffled(dataset: tf.data.Dataset, buffer_size: int, seed: int) -> tf.data.Dataset:
  """Shuffles a dataset by this seed alone, the same in every iteration.

  `tf.random.set_seed`, which a calling program may use, changes the order of `Dataset.shuffle` even
  with a seed of its own. A resumed run would then continue in another order.
  """
  # Not through `set_seed`, which would restart the random numbers of the calling program.
  state = context.context()
  global_seed, state._seed = state._seed, None
  try:
    return dataset.shuffle(buffer_size, seed, reshuffle_each_iteration=False)
  finally:
    state._seed = global_seed


def _training_records(paths: Sequence[str], repeat: bool, seed: int) -> tf.data.Dataset:
  """Reads serialized records; several files are shuffled and read four at a time."""
  if len(paths) == 1:
    records = _in_order(paths)
    return records.repeat() if repeat else records
  compressions = [compression_of(path) for path in paths]
  files = tf.data.Dataset.from_tensor_slices((paths, compressions))
  files = files.repeat() if repeat else files
  files = shuffled(files, len(paths), seed)
  # The original's order depended on the speed of each read; here it is the same in every run.
  return files.interleave(
    tf.data.TFRecordDataset,
    cycle_length=min(4, len(paths)),
    num_parallel_calls=min(4, len(paths)),
    deterministic=True,
  )


def _grouped_by_length(records, paths, features: FeatureSpec, batch_size, seed, skipped):
  """Orders records so that batches have similar lengths, after the `skipped` first."""

  def lengths_of(serialized):
    masks = tf.io.parse_example(serialized, {"input_mask": features["input_mask"]})
    return length_groups.sequence_lengths(masks["input_mask"])

  count = _count_up_to(paths, length_groups.records_that_matter(batch_size))
  window = length_groups.window_size(count, batch_size)
  return length_groups.deal_by_length(records, lengths_of, batch_size, window, seed, skipped)


def _count_up_to(paths: Sequence[str], limit: int) -> int:
  """Counts records, at most `limit`; no more than that are read."""
  count = 0
  for path in paths:
    stated = read_manifest(path).get("records")
    if not isinstance(stated, int):
      stated = sum(1 for _ in itertools.islice(records_of(path), limit - count))
    count = min(count + stated, limit)
  return count


def _parse(batch, features: FeatureSpec) -> dict[str, tf.Tensor]:
  """Parses serialized `[B]` to name -> `[B, ...]`, integers as int32, which TPUs need."""
  parsed = tf.io.parse_example(batch, features)
  return {
    name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
    for name, value in parsed.items()
  }


def _trim(parsed, length_features: Sequence[str], multiple: int) -> dict[str, tf.Tensor]:
  """Cuts `length_features` after the last position marked by any `input_mask` of the batch."""
  if "input_mask" not in parsed:
    return parsed
  longest = tf.reduce_max(length_groups.sequence_lengths(parsed["input_mask"]))
  length = -(-longest // multiple) * multiple
  # The mask ends with S: `[B, S]` beside ids of windows `[B, S, K]`, `[B, N, S]` of several texts.
  cut = (*[slice(None)] * (parsed["input_mask"].shape.rank - 1), slice(None, length))
  return {name: value[cut] if name in length_features else value for name, value in parsed.items()}


def _options() -> tf.data.Options:
  options = tf.data.Options()
  options.deterministic = True
  options.autotune.enabled = False
  # Parsing is cheap, and the training step needs the other cores.
  options.threading.private_threadpool_size = 2
  return options


# ---------------------------------------------------------------------------------------------
# Faults of files.


def _check_file(path: str, features: FeatureSpec, limit: int | None) -> None:
  """Raises `RecordError` unless the first `limit` records (None: all) match `features`."""
  number = 0
  for number, record in enumerate(records_of(path), start=1):
    problem = _problem(record, features)
    if problem:
      raise RecordError(f"{path}, record {number}: {problem} {REMEDY}")
    if number == limit:
      return
  if not number:
    raise RecordError(f"{path} holds no record. {REMEDY}")


def _problem(record: bytes, features: FeatureSpec) -> str | None:
  """Explains why a record does not match `features`; returns None if it does."""
  try:
    example = tf.train.Example.FromString(record)
  except Exception:  # The parser's exception type differs between protobuf's implementations.
    return "not a tf.train.Example."
  for name, spec in features.items():
    if name not in example.features.feature:
      present = ", ".join(sorted(example.features.feature)) or "no features at all"
      return f"feature {name!r} is missing; the record has {present}."
    kind = example.features.feature[name].WhichOneof("kind")
    wanted_kind = "int64_list" if spec.dtype == tf.int64 else "float_list"
    if kind != wanted_kind:
      return f"feature {name!r} is a {kind}, but a {wanted_kind} is expected."
    found = len(getattr(example.features.feature[name], kind).value)
    wanted = int(np.prod(spec.shape))
    if found != wanted:
      return (
        f"feature {name!r} has {found} values, but {wanted} are expected. "
        "Was the file written with another maximum length?"
      )
  return None
