"""Records on disk -> batches of features, in the original's order.

Features travel as TFRecord files of `tf.train.Example`s under the original's names. `write_records`
makes such a file in one piece or not at all; `record_input_fn` reads it:

  write_records("train.tf_record", ({"input_ids": [101, 102], "label_ids": [1]} for ...))
  input_fn = record_input_fn(
    "train.tf_record", classifier_features(128), is_training=True, drop_remainder=True)
  dataset = input_fn({"batch_size": 32, "seed": 12345, "skip_examples": 0})

Training repeats, shuffles in a buffer of 100, and batches. The order derives from the seed alone,
so a resumed run drops as many shuffled records as were consumed, unparsed, and goes on with the
very next batch. Each batch is cut to its own longest example: padding costs time and changes
nothing. To have less of it, `group_by_length` puts examples of similar lengths into one batch
(length_groups.py), or `pack_sequences` puts several into one row (sequence_packing.py).

Reading, parsing and all that follows are operations of a graph without Python. They run in threads
of their own, two batches ahead of the training step.

A file that is missing, cut short, damaged or written for another length is reported as a
`RecordError` that names the file and the record. Files may be compressed with gzip, all or some.
"""

import contextlib
import gzip
import itertools
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context

from bert.io import tfrecord_bytes
from bert.io.atomic_files import force_to_disk, hidden_beside, write_text
from bert.training import length_groups, sequence_packing

# As the original has it; the buffer holds serialized records, so its memory is small.
SHUFFLE_BUFFER = 100

_LENGTH_FEATURES = ("input_ids", "input_mask", "segment_ids")
# What a gzip file begins with, "deflate" included. A plain file that began so would have a first
# record of 559,903 bytes or 16 MB more.
_GZIP_MAGIC = b"\x1f\x8b\x08"
_REMEDY = "Write it anew with the program that made it: run_classifier.py does so in every run."

# Masks drawn in evaluation do not change with the seed of a run: its losses stay comparable.
_EVAL_SEED = 0

FeatureSpec = Mapping[str, tf.io.FixedLenFeature]
# `transform(features, numbers int64 [B], seed)` -> features; see `record_input_fn`.
Transform = Callable[[Mapping[str, tf.Tensor], tf.Tensor, int], Mapping[str, tf.Tensor]]


class RecordError(ValueError):
  """A TFRecord file cannot be read, or does not hold what was asked for."""


# ---------------------------------------------------------------------------------------------
# Writing.


def serialize_example(features: Mapping[str, Any]) -> bytes:
  """One `tf.train.Example`; the same features give the same bytes in every process.

  Args:
    features: name -> number or (nested) sequence of numbers: integers and booleans become an
      int64_list, floats a float_list; text and bytes a bytes_list.

  Returns:
    The serialized message, features sorted by name.

  Raises:
    TypeError: a value is of another kind.

  Example:
    >>> parsed = tf.train.Example.FromString(serialize_example({"ids": [1, 2], "weight": 0.5}))
    >>> list(parsed.features.feature["ids"].int64_list.value)
    [1, 2]
    >>> list(parsed.features.feature["weight"].float_list.value)
    [0.5]
  """
  example = tf.train.Example()
  for name, value in features.items():
    _fill(example.features.feature[name], name, value)
  # A protobuf map is otherwise written in an order that changes from process to process.
  return example.SerializeToString(deterministic=True)


def _fill(feature, name: str, value) -> None:
  if isinstance(value, (str, bytes)):
    feature.bytes_list.value.append(value.encode() if isinstance(value, str) else value)
    return
  array = np.asarray(value)
  if array.dtype.kind in "iub":
    feature.int64_list.value.extend(array.ravel().astype(np.int64).tolist())
  elif array.dtype.kind == "f":
    feature.float_list.value.extend(array.ravel().tolist())
  else:
    raise TypeError(f"Feature {name!r}: cannot store {value!r}, neither integers nor floats.")


def write_records(path: str | os.PathLike, examples: Iterable[Mapping[str, Any] | bytes]) -> int:
  """Writes a TFRecord file, completely or not at all.

  The file is written aside in the same folder, forced to disk and renamed, so that no reader ever
  finds half of one under its final name, whenever the program was stopped. A manifest beside it
  (`.NAME.manifest.json`: records, bytes) tells whether the file is whole later on: TFRecord's
  checksums do not notice when a file ends early between two records.

  Args:
    path: final name; an existing file is replaced at the end.
    examples: features of each record (see `serialize_example`), or records already serialized.

  Returns:
    How many records were written.

  Raises:
    OSError: the file cannot be written; the message names it.
  """
  path = os.fspath(path)
  temporary, manifest = hidden_beside(path, "tmp"), hidden_beside(path, "manifest.json")
  count = 0
  try:
    with tf.io.TFRecordWriter(temporary) as writer:
      for example in examples:
        writer.write(example if isinstance(example, bytes) else serialize_example(example))
        count += 1
    force_to_disk(temporary)
    facts = {"records": count, "bytes": os.path.getsize(temporary)}
    with contextlib.suppress(FileNotFoundError):
      os.remove(manifest)  # Of the old file; without one the new file is simply not checked.
    os.replace(temporary, path)
    write_text(manifest, json.dumps(facts) + "\n")
  except tf.errors.OpError as error:
    raise OSError(f"Cannot write {path}: {error.message}") from None
  finally:
    with contextlib.suppress(OSError):
      os.remove(temporary)
  force_to_disk(os.path.dirname(path) or ".")
  return count


# ---------------------------------------------------------------------------------------------
# Reading.


class RecordInputFn:
  """What `record_input_fn` returns: `input_fn(params)`, and an explanation of what went wrong.

  Attributes:
    files: in reading order.
    features: name -> `tf.io.FixedLenFeature`.
  """

  def __init__(self, files, features, build):
    self.files = files
    self.features = features
    self._build = build

  def __call__(self, params: Mapping[str, Any]) -> tf.data.Dataset:
    """The batches, see `record_input_fn`."""
    return self._build(params)

  def explain_error(self, error: Exception) -> RecordError | None:
    """Finds the record behind an error of TensorFlow's, by reading everything once more.

    Returns:
      The error to raise instead, or None if all records are fine: then it was not about them.
    """
    about_data = (tf.errors.DataLossError, tf.errors.InvalidArgumentError, tf.errors.NotFoundError)
    if not isinstance(error, about_data):
      return None
    try:
      for path in self.files:
        _check_file(path, self.features, limit=None)
    except RecordError as clear:
      return clear
    return None


def record_input_fn(
  files: str | os.PathLike | Sequence[str | os.PathLike],
  features: FeatureSpec,
  is_training: bool,
  drop_remainder: bool,
  *,
  shuffle_buffer: int = SHUFFLE_BUFFER,
  pad_to_max_length: bool = False,
  length_features: Sequence[str] = _LENGTH_FEATURES,
  round_length_to: int = 8,
  repeat: bool | None = None,
  transform: Transform | None = None,
  group_by_length: bool = False,
  pack_sequences: bool = False,
  packed_rows: int | None = None,
) -> RecordInputFn:
  """An input_fn over TFRecord files, as `file_based_input_fn_builder` made them.

  Its `params` are `batch_size`, `seed` (governs the order in training), and `skip_examples`: of the
  records in training's order, how many the run has consumed.

  Args:
    files: a file or several.
    features: name -> `tf.io.FixedLenFeature`; a record with another length is an error.
    is_training: repeat without end and shuffle; otherwise one pass in the order of the files.
    drop_remainder: leave out a last batch that is short.
    shuffle_buffer: among so many records the next one is drawn.
    pad_to_max_length: keep the full length, as the original does. Otherwise each batch is cut to
      its longest example by `input_mask`.
    length_features: features `[B, S]` to cut.
    round_length_to: cut to a multiple of this, so that few lengths occur; 1 cuts exactly.
    repeat: whether to start over at the end; as `is_training` by default.
    transform: what to make of the features of a batch, in the graph, before it is cut. It receives
      the number of each example: in training the position in the stream, which never comes again;
      in evaluation the position in the files, the same in each pass. And a seed: that of the order
      in training, always the same one in evaluation.
    group_by_length: in training, make batches of similar lengths by `input_mask`. Evaluation keeps
      its order.
    pack_sequences: put several examples into one row, see `sequence_packing.pack`. A batch still
      has B examples, but fewer rows. `length_features` are those with a value for each token.
    packed_rows: so many rows in each packed batch; by default as many as it needs.

  Returns:
    The input_fn. Its dataset yields name -> `[B]` or `[B, T]`, int32 or float32.

  Raises:
    RecordError: a file is missing or empty, or its first record is not as `features` says.
    ValueError: `group_by_length` and `pack_sequences` are both wanted, though sequences of equal
      length leave no gaps to fill; or one of them without an `input_mask` to tell lengths.
  """
  if group_by_length and pack_sequences:
    raise ValueError("group_by_length and pack_sequences exclude each other.")
  if (group_by_length or pack_sequences) and "input_mask" not in features:
    raise ValueError("Without 'input_mask' among the features, lengths are unknown.")
  paths = [os.fspath(f) for f in ([files] if isinstance(files, (str, os.PathLike)) else files)]
  if not paths:
    raise RecordError("No TFRecord file was given: the pattern matches nothing.")
  for path in paths:
    _check_file(path, features, limit=1)
  repeat = is_training if repeat is None else repeat

  def build(params):
    batch_size = params["batch_size"]
    seed = params.get("seed", 12345)  # only `Estimator` gives one
    if is_training:
      skipped = params.get("skip_examples", 0)
      records = _training_records(paths, repeat, seed)
      records = shuffled(records, shuffle_buffer, seed)
      # The skipped records are neither parsed nor batched: a million take about a second.
      if group_by_length:
        records = _grouped_by_length(records, paths, features, batch_size, seed, skipped)
      else:
        records = records.skip(skipped)
      records = records.enumerate(start=skipped)
    else:
      seed = _EVAL_SEED
      records = _in_order(paths).enumerate()
      records = records.repeat() if repeat else records

    def finish(numbers, batch):
      parsed = _parse(batch, features)
      parsed = parsed if transform is None else transform(parsed, numbers, seed)
      if pack_sequences:
        paddings = dict.fromkeys(length_features, 0)
        return sequence_packing.pack(parsed, num_rows=packed_rows, token_features=paddings)
      return parsed if pad_to_max_length else _trim(parsed, length_features, round_length_to)

    batches = records.batch(batch_size, drop_remainder=drop_remainder)
    batches = batches.map(finish, num_parallel_calls=2)
    return batches.prefetch(2).with_options(_options())

  return RecordInputFn(paths, features, build)


def file_based_input_fn_builder(
  input_file: str | os.PathLike | Sequence[str],
  seq_length: int,
  is_training: bool,
  drop_remainder: bool,
  pad_to_max_length: bool = False,
) -> RecordInputFn:
  """The input_fn of `run_classifier.py`, under the original's name and with its arguments."""
  return record_input_fn(
    input_file,
    classifier_features(seq_length),
    is_training,
    drop_remainder,
    pad_to_max_length=pad_to_max_length,
  )


def classifier_features(seq_length: int, label: tf.io.FixedLenFeature | None = None) -> FeatureSpec:
  """The features of `run_classifier.py`'s records.

  Args:
    seq_length: length of `input_ids`, `input_mask` and `segment_ids`.
    label: shape and type of `label_ids`; one integer by default.
  """
  ids = tf.io.FixedLenFeature([seq_length], tf.int64)
  number = tf.io.FixedLenFeature([], tf.int64)
  return {
    "input_ids": ids,
    "input_mask": ids,
    "segment_ids": ids,
    "label_ids": label or number,
    "is_real_example": number,
  }


def count_records(path: str | os.PathLike) -> int:
  """How many records a file holds.

  Raises:
    RecordError: it is missing, damaged, or not as its manifest says.
  """
  return sum(1 for _ in records_of(path))


def _in_order(paths: Sequence[str]) -> tf.data.Dataset:
  """Serialized records of all files, one file after the other."""
  compressions = [compression_of(path) for path in paths]
  if len(set(compressions)) == 1:
    return tf.data.TFRecordDataset(paths, compressions[0])
  return tf.data.Dataset.from_tensor_slices((paths, compressions)).flat_map(tf.data.TFRecordDataset)


def shuffled(dataset: tf.data.Dataset, buffer_size: int, seed: int) -> tf.data.Dataset:
  """A dataset in an order that this seed alone decides, the same in every iteration.

  `tf.random.set_seed`, which programs around this one may call, changes what `Dataset.shuffle` does
  with its own seed. A resumed run would go on in another order then.
  """
  # Not through `set_seed`, which would begin the sequence of the others' random numbers anew.
  state = context.context()
  global_seed, state._seed = state._seed, None
  try:
    return dataset.shuffle(buffer_size, seed, reshuffle_each_iteration=False)
  finally:
    state._seed = global_seed


def _training_records(paths: Sequence[str], repeat: bool, seed: int) -> tf.data.Dataset:
  """Serialized records; several files are shuffled and read four at a time."""
  if len(paths) == 1:
    records = _in_order(paths)
    return records.repeat() if repeat else records
  compressions = [compression_of(path) for path in paths]
  files = tf.data.Dataset.from_tensor_slices((paths, compressions))
  files = files.repeat() if repeat else files
  files = shuffled(files, len(paths), seed)
  # In the original the order of arrival decided; here the order is the same in every run.
  return files.interleave(
    tf.data.TFRecordDataset,
    cycle_length=min(4, len(paths)),
    num_parallel_calls=min(4, len(paths)),
    deterministic=True,
  )


def _grouped_by_length(records, paths, features: FeatureSpec, batch_size, seed, skipped):
  """Records in an order in which batches have similar lengths, after so many of them."""

  def lengths_of(serialized):
    masks = tf.io.parse_example(serialized, {"input_mask": features["input_mask"]})
    return length_groups.sequence_lengths(masks["input_mask"])

  count = _count_up_to(paths, length_groups.records_that_matter(batch_size))
  window = length_groups.window_size(count, batch_size)
  return length_groups.deal_by_length(records, lengths_of, batch_size, window, seed, skipped)


def _count_up_to(paths: Sequence[str], limit: int) -> int:
  """How many records there are, without reading more than `limit` of them."""
  count = 0
  for path in paths:
    stated = read_manifest(path).get("records")
    if not isinstance(stated, int):
      stated = sum(1 for _ in itertools.islice(records_of(path), limit - count))
    count = min(count + stated, limit)
  return count


def _parse(batch, features: FeatureSpec) -> dict[str, tf.Tensor]:
  """Serialized `[B]` -> name -> `[B, ...]`, integers as int32, which TPUs need."""
  parsed = tf.io.parse_example(batch, features)
  return {
    name: tf.cast(value, tf.int32) if value.dtype == tf.int64 else value
    for name, value in parsed.items()
  }


def _trim(parsed, length_features: Sequence[str], multiple: int) -> dict[str, tf.Tensor]:
  """Cuts `length_features` behind the last position that any `input_mask` of the batch marks."""
  if "input_mask" not in parsed:
    return parsed
  longest = tf.reduce_max(length_groups.sequence_lengths(parsed["input_mask"]))
  length = -(-longest // multiple) * multiple
  return {
    name: value[:, :length] if name in length_features else value for name, value in parsed.items()
  }


def _options() -> tf.data.Options:
  options = tf.data.Options()
  options.deterministic = True
  options.autotune.enabled = False
  # Parsing needs little, and the training step wants the other cores.
  options.threading.private_threadpool_size = 2
  return options


# ---------------------------------------------------------------------------------------------
# What is wrong with a file.


def _check_file(path: str, features: FeatureSpec, limit: int | None) -> None:
  """Raises `RecordError` unless the first `limit` records (None: all) are as `features` says."""
  number = 0
  for number, record in enumerate(records_of(path), start=1):
    problem = _problem(record, features)
    if problem:
      raise RecordError(f"{path}, record {number}: {problem} {_REMEDY}")
    if number == limit:
      return
  if not number:
    raise RecordError(f"{path} holds no record. {_REMEDY}")


def read_manifest(path: str | os.PathLike) -> dict[str, Any]:
  """What is known of a TFRecord file: the manifest beside it, `.NAME.manifest.json`.

  Returns:
    Facts such as records and bytes; none where the manifest is missing or unreadable: another
    program wrote the file, or the manifest was lost, and there is nothing to compare with.
  """
  try:
    with tf.io.gfile.GFile(hidden_beside(os.fspath(path), "manifest.json"), "r") as file:
      facts = json.loads(file.read())
  except (tf.errors.OpError, OSError, ValueError, RecursionError):
    return {}
  return facts if isinstance(facts, dict) else {}


def compression_of(path: str | os.PathLike) -> str:
  """`GZIP` for a compressed file, else an empty string; by the manifest or the first bytes."""
  stated = read_manifest(path).get("compression")
  if isinstance(stated, str):
    return "GZIP" if stated.upper() == "GZIP" else ""
  try:
    with tf.io.gfile.GFile(os.fspath(path), "rb") as file:
      return "GZIP" if file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC else ""
  except tf.errors.OpError:
    return ""  # Whoever reads it tells what is wrong.


def check_manifest(path: str | os.PathLike) -> dict[str, Any]:
  """Compares the size of a file with its manifest, if it has one.

  Returns:
    The facts of the manifest, see `read_manifest`.

  Raises:
    RecordError: the file is not as long as it was written.
  """
  path = os.fspath(path)
  facts = read_manifest(path)
  expected = facts.get("bytes")
  if not isinstance(expected, int) or not tf.io.gfile.exists(path):
    return facts
  found = tf.io.gfile.stat(path).length
  if expected != found:
    raise RecordError(
      f"{path} has {found} bytes, but was written with {expected} ({facts.get('records')} "
      f"records): it was cut short or changed. {_REMEDY} If it is as it should be, remove "
      f"{hidden_beside(path, 'manifest.json')}."
    )
  return facts


def records_of(path: str | os.PathLike) -> Iterator[bytes]:
  """The serialized records of one file, plain or compressed.

  Raises:
    RecordError: the file is missing, is not as its manifest says, or is damaged; the message names
      the record.
  """
  path = os.fspath(path)
  if not tf.io.gfile.exists(path):
    raise RecordError(f"{path} does not exist.")
  if tf.io.gfile.isdir(path):
    raise RecordError(f"{path} is a folder, where a TFRecord file is expected.")
  facts = check_manifest(path)
  number = 0
  try:
    with _opened(path) as reader:
      for record in tfrecord_bytes.unframed(reader):
        number += 1
        yield record
  except (tfrecord_bytes.FrameError, OSError, EOFError, zlib.error, tf.errors.OpError) as error:
    raise RecordError(
      f"{path}, record {number + 1}: the file is damaged or cut short there, or is no TFRecord "
      f"file ({error}). {_REMEDY}"
    ) from None
  if facts.get("records", number) != number:
    raise RecordError(
      f"{path} holds {number} records, but was written with {facts['records']}: it was cut short "
      f"or changed. {_REMEDY}"
    )


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
  """The bytes of a file, decompressed."""
  with tf.io.gfile.GFile(path, "rb") if "://" in path else open(path, "rb") as file:
    if compression_of(path):
      with gzip.GzipFile(fileobj=file) as reader:
        yield reader
    else:
      yield file


def _problem(record: bytes, features: FeatureSpec) -> str | None:
  """Why a record is not as `features` says, or None."""
  try:
    example = tf.train.Example.FromString(record)
  except Exception:  # The parser's exception type differs between protobuf's implementations.
    return "not a tf.train.Example."
  for name, spec in features.items():
    if name not in example.features.feature:
      present = ", ".join(sorted(example.features.feature)) or "none at all"
      return f"feature {name!r} is missing; there are {present}."
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
