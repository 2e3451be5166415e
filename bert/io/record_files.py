"""TFRecord files: written completely or not at all; read with an error for every damaged record.

  write_records("train.tf_record", ({"input_ids": [101, 102], "label_ids": [1]} for ...))
  for record in records_of("train.tf_record"):  # bytes of tf.train.Examples

A manifest beside each file (`.NAME.manifest.json`: records, bytes) shows later whether the file is
complete: TFRecord's checksums do not detect a file that ends between two records. Files may be
compressed with gzip, all or some of them.
"""

import contextlib
import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from bert.io import filesystem, tfrecord_bytes
from bert.io.atomic_files import hidden_beside, write_text, written_whole
from bert.io.wording import counted

REMEDY = "Write it again with the program that made it: a fine-tuning run does so by itself."

# The first bytes of a gzip file, "deflate" included. In a plain file they would be the length of a
# first record of 559,903 bytes, or of 16 MB more.
_GZIP_MAGIC = b"\x1f\x8b\x08"


class RecordError(ValueError):
  """A TFRecord file cannot be read, or does not hold the expected features."""


# ---------------------------------------------------------------------------------------------
# Writing.


def serialize_example(features: Mapping[str, Any]) -> bytes:
  """Writes one `tf.train.Example`; the same features give the same bytes in every process.

  Args:
    features: name -> number or (nested) sequence of numbers: integers and booleans become an
      int64_list, floats a float_list; text and bytes a bytes_list.

  Returns:
    The serialized message, features sorted by name.

  Raises:
    TypeError: a value is of another kind.

  Example:
    >>> import tensorflow as tf
    >>> parsed = tf.train.Example.FromString(serialize_example({"ids": [1, 2], "weight": 0.5}))
    >>> list(parsed.features.feature["ids"].int64_list.value)
    [1, 2]
    >>> list(parsed.features.feature["weight"].float_list.value)
    [0.5]
  """
  import tensorflow as tf

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
  """Writes a TFRecord file and its manifest, completely or not at all; returns its records' number.

  An existing file is replaced at the end. Examples are features, see `serialize_example`, or
  serialized records.

  Raises:
    OSError: the file cannot be written; the message names it.
  """
  path = os.fsdecode(path)
  manifest = manifest_path(path)
  count = 0
  with written_whole(path) as writer:
    for example in examples:
      record = example if isinstance(example, bytes) else serialize_example(example)
      writer.write(tfrecord_bytes.framed(record))
      count += 1
    facts = {"records": count, "bytes": writer.tell()}
    writer.flush()
    os.fsync(writer.fileno())  # fails on a full disk before the old manifest is removed
    with contextlib.suppress(FileNotFoundError):
      os.remove(manifest)  # of the old file; a file without a manifest is not checked
  write_text(manifest, json.dumps(facts) + "\n")
  return count


# ---------------------------------------------------------------------------------------------
# Manifests.


def manifest_path(path: str | os.PathLike) -> str:
  """Returns the path of the manifest of a TFRecord file.

  Example:
    >>> manifest_path("data/train.tf_record")
    'data/.train.tf_record.manifest.json'
  """
  return hidden_beside(os.fsdecode(path), "manifest.json")


def read_manifest(path: str | os.PathLike) -> dict[str, Any]:
  """Reads the facts in the manifest of a TFRecord file, such as `records` and `bytes`.

  They are empty if it is missing or unreadable: another program wrote the file, or the manifest was
  lost, so nothing can be compared.
  """
  try:
    facts = json.loads(filesystem.read_bytes(manifest_path(path)))
  except (OSError, ValueError, RecursionError):
    return {}
  return facts if isinstance(facts, dict) else {}


def check_manifest(path: str | os.PathLike) -> dict[str, Any]:
  """Compares a file with its manifest, if it has one, and returns its facts, see `read_manifest`.

  Raises:
    RecordError: the file does not have the size with which it was written.
  """
  path = os.fsdecode(path)
  facts = read_manifest(path)
  expected = facts.get("bytes")
  if not isinstance(expected, int) or not filesystem.exists(path):
    return facts
  found = filesystem.size_bytes(path)
  if expected != found:
    raise RecordError(
      f"{path} has {found} bytes, but was written with {expected} ({facts.get('records')} "
      f"records): it was cut short or changed. {REMEDY} If the file is right, remove "
      f"{manifest_path(path)}."
    )
  return facts


def compression_of(path: str | os.PathLike) -> str:
  """Returns `GZIP` for a compressed file, else ""; by the manifest or the first bytes."""
  stated = read_manifest(path).get("compression")
  if isinstance(stated, str):
    return "GZIP" if stated.upper() == "GZIP" else ""
  try:
    with filesystem.open_to_read(path) as file:
      return "GZIP" if file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC else ""
  except OSError:
    return ""  # The reader of the file reports the error.


# ---------------------------------------------------------------------------------------------
# Reading.


def records_of(path: str | os.PathLike) -> Iterator[bytes]:
  """Yields the serialized records of one file, plain or compressed.

  Raises:
    RecordError: the file is missing, damaged, or differs from its manifest; the message names the
      record.
  """
  path = os.fsdecode(path)
  if not filesystem.exists(path):
    raise RecordError(f"{path} does not exist.")
  if filesystem.is_folder(path):
    raise RecordError(f"{path} is a folder, where a TFRecord file is expected.")
  facts = check_manifest(path)
  number = 0
  try:
    with _opened(path) as reader:
      for record in tfrecord_bytes.unframed(reader):
        number += 1
        yield record
  except (tfrecord_bytes.FrameError, OSError, EOFError, zlib.error) as error:
    raise RecordError(
      f"{path}, record {number + 1}: the file is damaged or cut short there, or is no TFRecord "
      f"file ({error}). {REMEDY}"
    ) from None
  if facts.get("records", number) != number:
    raise RecordError(
      f"{path} holds {counted(number, 'record')}, but was written with {facts['records']}: it was "
      f"cut short or changed. {REMEDY}"
    )


@contextlib.contextmanager
def _opened(path: str) -> Iterator[BinaryIO | gzip.GzipFile]:
  """Opens the bytes of a file, decompressed."""
  with filesystem.open_to_read(path) as file:
    if compression_of(path):
      with gzip.GzipFile(fileobj=file) as reader:
        yield reader
    else:
      yield file
