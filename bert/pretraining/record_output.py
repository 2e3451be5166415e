"""Files of pre-training records, with a manifest beside each.

  with RecordFiles(["a.tfrecord", "b.tfrecord"], {"max_seq_length": 128}) as files:
    files.write(record, num_tokens=97)

The files appear when all of them are complete.
"""

import contextlib
import gzip
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from bert.io.atomic_files import force_to_disk, hidden_beside, sha256_of, write_text
from bert.io.record_files import manifest_path
from bert.io.tfrecord_bytes import framed

_WRITE_BUFFER_BYTES = 1 << 20


class Batch(NamedTuple):
  """Serialized examples, and the number of tokens of each without padding."""

  records: list[bytes]
  lengths: list[int]


class RecordFiles:
  """TFRecord files, filled in turn; at the end either all of them are renamed into place or none.

  They are first written under temporary names in the same folders. Beside each file is a manifest
  (`.NAME.manifest.json`) with the numbers of records and bytes, the sha256, and `facts`; readers
  refuse a file that does not fit its manifest.

  Attributes:
    count: the number of records written so far.
  """

  def __init__(self, paths: Sequence[str], facts: Mapping[str, Any]):
    """Opens the files, which replace existing ones at the end.

    The facts, for the manifests, have `max_seq_length`, for the share of padding; `compression`
    "GZIP" compresses the files.
    """
    self._paths, self._facts = list(map(os.fsdecode, paths)), dict(facts)
    self._temporary = [hidden_beside(path, "tmp") for path in self._paths]
    self._records, self._tokens = [0] * len(self._paths), [0] * len(self._paths)
    self.count = 0
    self._writers = []
    try:
      with self._explained():
        for path in self._temporary:
          self._writers.append(_open_records(path, facts.get("compression")))
    except OSError:
      self._close_and_remove()
      raise

  def write_batch(self, batch: Batch) -> None:
    """Writes its examples."""
    for record, num_tokens in zip(batch.records, batch.lengths, strict=True):
      self.write(record, num_tokens)

  def write(self, record: bytes, num_tokens: int) -> None:
    """Writes a serialized example that has `num_tokens` tokens, without padding."""
    self.write_framed(framed(record), num_tokens)

  def write_framed(self, record: bytes | memoryview, num_tokens: int) -> None:
    """Writes a record with its length and checksums, see `tfrecord_bytes.framed`."""
    index = self.count % len(self._paths)
    with self._explained():
      self._writers[index].write(record)
    self._records[index] += 1
    self._tokens[index] += num_tokens
    self.count += 1

  def __enter__(self):
    return self

  def __exit__(self, exc_type, exc_value, traceback):
    try:
      if exc_type is None:
        with self._explained():
          for writer in self._writers:
            writer.close()
        self._publish()
    finally:
      self._close_and_remove()

  def _publish(self) -> None:
    """Finishes all slow work before the first rename, to make an interruption there unlikely."""
    for temporary in self._temporary:
      force_to_disk(temporary)
    manifests = [self._manifest(index) for index in range(len(self._paths))]
    for path in self._paths:
      with contextlib.suppress(FileNotFoundError):
        os.remove(manifest_path(path))  # of an older file
    for temporary, path in zip(self._temporary, self._paths, strict=True):
      os.replace(temporary, path)
    for path, manifest in zip(self._paths, manifests, strict=True):
      write_text(manifest_path(path), json.dumps(manifest) + "\n")

  def _manifest(self, index: int) -> dict[str, Any]:
    places = self._records[index] * self._facts["max_seq_length"]
    return {
      "records": self._records[index],
      "bytes": os.path.getsize(self._temporary[index]),
      "sha256": sha256_of(self._temporary[index]),
      **self._facts,
      "padding_share": round(1 - self._tokens[index] / places, 4) if places else 0.0,
    }

  def _close_and_remove(self) -> None:
    for writer in self._writers:
      with contextlib.suppress(OSError):  # closing tries to write again, also on a full disk
        writer.close()
    for path in self._temporary:
      with contextlib.suppress(OSError):
        os.remove(path)

  @contextlib.contextmanager
  def _explained(self) -> Iterator[None]:
    try:
      yield
    except OSError as error:
      message = f"Cannot write {', '.join(self._paths)}: {error.strerror or error}"
      raise OSError(message) from None


def _open_records(path: str, compression: str | None) -> BinaryIO | gzip.GzipFile:
  file = open(path, "wb", buffering=_WRITE_BUFFER_BYTES)  # noqa: SIM115 (closed by `RecordFiles`)
  if compression == "GZIP":
    return _GzipFile(file)
  return file


class _GzipFile(gzip.GzipFile):
  """A gzip file without name and time in its header: equal records give equal bytes."""

  def __init__(self, file: BinaryIO):
    super().__init__(filename="", mode="wb", fileobj=file, mtime=0)
    self._file_below = file

  def close(self) -> None:
    """Also closes the file below, which `GzipFile` leaves open."""
    try:
      super().close()
    finally:
      self._file_below.close()


def remove_records(paths: Iterable[str]) -> None:
  """Removes files of records and their manifests that are on a local disk."""
  for path in paths:
    for name in (path, manifest_path(path)):
      with contextlib.suppress(FileNotFoundError):
        os.remove(name)
