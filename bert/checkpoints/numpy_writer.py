"""Writes the original's checkpoints in plain Python and NumPy: no TensorFlow is needed.

  write("small/bert_model.ckpt", {"bert/pooler/dense/bias": np.zeros([768], np.float32)})

For models in memory on JAX or PyTorch. The runs of the scripts write theirs with `saving.py`. The
format is described in `numpy_reader.py`, which reads what this module writes, as TensorFlow does.
"""

import os
import struct
from collections.abc import Iterable, Mapping

import numpy as np

from bert.checkpoints.bundle_files import DATA_SUFFIX
from bert.checkpoints.numpy_reader import DTYPES, FOOTER_BYTES, MAGIC
from bert.io.atomic_files import written_whole
from bert.io.tfrecord_bytes import masked_crc32c, varint

_HEADER = b"\x08\x01\x1a\x02\x08\x01"  # BundleHeaderProto: one data file, version 1


def write(prefix: str | os.PathLike, tensors: Mapping[str, np.ndarray]) -> None:
  """Writes a checkpoint, its index last: without one it does not exist for any reader.

  Args:
    prefix: its folder must exist. A checkpoint of the same name is replaced.
    tensors: name -> array of a type in `numpy_reader.DTYPES`.

  Raises:
    KeyError: an array is of another type.
    OSError: a file cannot be written.
  """
  prefix = os.fsdecode(prefix)
  numbers = {dtype: number for number, dtype in DTYPES.items()}
  entries, offset = [(b"", _HEADER)], 0
  with written_whole(prefix + DATA_SUFFIX) as writer:
    for name in sorted(tensors, key=str.encode):
      array = np.asarray(tensors[name])
      array = array.astype(array.dtype.newbyteorder("<"), copy=False)
      content = array.tobytes()
      writer.write(content)
      entry = _entry(numbers[array.dtype], array.shape, offset, content)
      entries.append((name.encode(), entry))
      offset += len(content)
  with written_whole(prefix + ".index") as writer:
    writer.write(_table(entries))


def _entry(dtype: int, shape: Iterable[int], offset: int, content: bytes) -> bytes:
  """BundleEntryProto: type, shape, place in the data file and checksum of a tensor."""
  dims = b"".join(_message(2, _number(1, size)) for size in shape)
  place = _number(4, offset) + _number(5, len(content))
  checksum = b"\x35" + struct.pack("<I", masked_crc32c(content))
  return _number(1, dtype) + _message(2, dims) + place + checksum


def _table(entries: list[tuple[bytes, bytes]]) -> bytes:
  """Returns a sorted table of one block, as LevelDB has them."""
  table = _block(entries)
  data = _handle(0, table)
  meta = _block([])
  meta_handle = _handle(len(table), meta)
  table += meta
  index = _block([(entries[-1][0], data)])
  footer = meta_handle + _handle(len(table), index)
  return table + index + footer.ljust(FOOTER_BYTES - 8, b"\0") + struct.pack("<Q", MAGIC)


def _block(entries: list[tuple[bytes, bytes]]) -> bytes:
  """Entries, each with its whole key; where each begins; not compressed; a checksum."""
  content, starts = b"", []
  for key, value in entries:
    starts.append(len(content))
    content += varint(0) + varint(len(key)) + varint(len(value)) + key + value
  starts = starts or [0]
  content += struct.pack(f"<{len(starts) + 1}I", *starts, len(starts)) + b"\0"
  return content + struct.pack("<I", masked_crc32c(content))


def _handle(offset: int, block: bytes) -> bytes:
  """Returns where a block is, and its size without type and checksum."""
  return varint(offset) + varint(len(block) - 5)


def _number(field: int, value: int) -> bytes:
  """Returns a field of a protocol buffer; 0 is the default and not written."""
  return varint(field << 3) + varint(value) if value else b""


def _message(field: int, content: bytes) -> bytes:
  return varint(field << 3 | 2) + varint(len(content)) + content
