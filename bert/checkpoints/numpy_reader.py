"""Reads TensorFlow's checkpoints in plain Python and NumPy: no TensorFlow is needed.

  reader = CheckpointReader("uncased_L-12_H-768_A-12/bert_model.ckpt")
  reader.contents["bert/pooler/dense/bias"]     # ([768], dtype('float32'))
  reader.read("bert/pooler/dense/bias")         # the array

`reading.py` opens checkpoints of all formats; which one is meant is a question for `finding.py`.

The format is TensorFlow's tensor bundle. `PREFIX.index` is a sorted table in LevelDB's format:
blocks of (key, value), each followed by one byte for its compression and by a checksum; then a
block that says where the others are, and a footer that says where that is. The key is a tensor's
name, the value a protocol buffer: type, shape, and place of the bytes in `PREFIX.data-*`.
"""

import math
import struct
from collections.abc import Iterator
from typing import NamedTuple

import ml_dtypes  # noqa: F401 - so NumPy has bfloat16
import numpy as np

from bert.checkpoints import bundle_files
from bert.checkpoints.bundle_files import OBJECT_GRAPH, CheckpointError
from bert.io import filesystem
from bert.io.protobuf_fields import fields, messages, varint
from bert.io.tfrecord_bytes import masked_crc32c

MAGIC = 0xDB4775248B80FB57
FOOTER_BYTES = 48
_STRING = 7  # number of this type there
_MAX_DIMENSIONS = 32  # of an array, in the oldest NumPy that this runs on
_MAX_NUMBER = (1 << 63) - 1  # of bytes, and of values
# Number of the type in TensorFlow's protocol buffers.
DTYPES: dict[int, np.dtype] = {
  1: np.dtype("<f4"),
  2: np.dtype("<f8"),
  3: np.dtype("<i4"),
  4: np.dtype("u1"),
  5: np.dtype("<i2"),
  6: np.dtype("i1"),
  9: np.dtype("<i8"),
  10: np.dtype("?"),
  14: np.dtype("bfloat16"),
  17: np.dtype("<u2"),
  19: np.dtype("<f2"),
  22: np.dtype("<u4"),
  23: np.dtype("<u8"),
}
_OTHER = np.dtype(object)  # of texts, and of all other types

VALUE = ".ATTRIBUTES/VARIABLE_VALUE"  # the last part of a variable's key, if object-based
# Fields of an `OBJECT_GRAPH`: of the graph its nodes, of a node its attributes, and of these.
_NODES, _ATTRIBUTES = 1, 2
_ATTRIBUTE, _NAME, _KEY = 1, 2, 3


class _Entry(NamedTuple):
  dtype: int
  shape: tuple[int, ...]
  shard: int
  offset: int  # in bytes
  size: int  # in bytes
  checksum: int


# ---------------------------------------------------------------------------------------------
# Reading.


class CheckpointReader:
  """Names, shapes and values of a checkpoint.

  Attributes:
    prefix: the checkpoint's prefix.
    contents: name -> (shape, dtype), sorted by name; of texts the dtype is that of objects.
  """

  def __init__(self, prefix: str):
    """Reads the index, and compares sizes: the files are whole then.

    Raises:
      CheckpointError: a file is missing or damaged, or not in the tensor bundle format.
    """
    self.prefix = prefix
    self._shards = bundle_files.data_files(prefix)
    path = prefix + ".index"
    try:
      with filesystem.open_to_read(path) as file:
        table = dict(_table_entries(file.read()))
      _check_header(dict(fields(table.pop(b""))), len(self._shards))
      entries = {key: _parse_entry(value) for key, value in table.items()}
      self._entries = {key.decode(): entry for key, entry in entries.items()}
    except (ValueError, LookupError, struct.error) as error:
      raise CheckpointError(
        f"{path} is damaged, or not the index of a checkpoint: {error}"
      ) from None
    self.contents = {
      name: (list(entry.shape), DTYPES.get(entry.dtype, _OTHER).newbyteorder("="))
      for name, entry in sorted(self._entries.items())
    }
    self._check_data_size()

  def _check_data_size(self) -> None:
    """Raises an error if data files are shorter or longer than the index declares.

    This comes before any tensor is read: an index that declares terabytes is refused, not
    allocated.
    """
    numbers = [each for each in self.contents.values() if each[1] != _OTHER]
    declared_bytes = sum(math.prod(shape) * dtype.itemsize for shape, dtype in numbers)
    stored_bytes = sum(bundle_files.describe(path)["bytes"] for path in self._shards)
    # The length of texts is not in their shape; object-based checkpoints have one.
    exact = len(numbers) == len(self.contents)
    if stored_bytes < declared_bytes or (exact and stored_bytes != declared_bytes):
      raise CheckpointError(
        f"{', '.join(self._shards)}: {stored_bytes:,} bytes, but {self.prefix}.index declares "
        f"tensors of {declared_bytes:,} bytes. The file is truncated or belongs to another "
        "checkpoint."
      )

  def read(self, name: str) -> np.ndarray:
    """One tensor, checked against its checksum.

    Raises:
      CheckpointError: it is damaged, or of a type that no weight has.
    """
    entry = self._find(name)
    if entry.dtype not in DTYPES:
      path = self._path(entry)
      raise CheckpointError(f"{path}: {name} has the non-numeric type {entry.dtype}.")
    dtype = DTYPES[entry.dtype]
    content = self._content(name, entry, math.prod(entry.shape) * dtype.itemsize)
    if masked_crc32c(content) != entry.checksum:
      raise CheckpointError(f"{self._path(entry)}: {name} is damaged.")
    return np.frombuffer(content, dtype).reshape(entry.shape)

  def read_string(self, name: str) -> bytes:
    """Returns a tensor that is one string, checked against its checksum.

    Raises:
      CheckpointError: it is damaged, or something else.
    """
    entry = self._find(name)
    content = self._content(name, entry, entry.size)
    # Stored are the length as a varint, a checksum of the lengths, and the string.
    length, start = varint(content + bytes(10), 0)
    summed = struct.pack("<I", length & 0xFFFFFFFF) + content[start:]
    is_one = entry.dtype == _STRING and not entry.shape and start + 4 + length == entry.size
    if not is_one or masked_crc32c(summed) != entry.checksum:
      raise CheckpointError(f"{self._path(entry)}: {name} is damaged, or is no string.")
    return content[start + 4 :]

  def variable_keys(self) -> dict[str, list[str]]:
    """Maps names of variables to the keys of their values, in an object-based checkpoint.

    Such a checkpoint, the format of TensorFlow 2 and Keras, stores values under paths of Python
    attributes. One more tensor, a string, holds the graph of all objects
    (`TrackableObjectGraph`, a protocol buffer), with the names of variables. Several variables
    may have the same name.

    Returns:
      For instance `{"kernel": ["model/layer_with_weights-6/kernel/.ATTRIBUTES/..."]}`; empty for
      other checkpoints.

    Raises:
      CheckpointError: the graph is damaged.
    """
    found: dict[str, list[str]] = {}
    if OBJECT_GRAPH not in self.contents:
      return found
    try:
      for node in messages(self.read_string(OBJECT_GRAPH), _NODES):
        for attribute in messages(node, _ATTRIBUTES):
          entry = dict(fields(attribute))
          kind, name, key = (entry.get(n, b"").decode() for n in (_ATTRIBUTE, _NAME, _KEY))
          if kind == "VARIABLE_VALUE" and key not in found.get(name, []):
            found.setdefault(name, []).append(key)
    except (ValueError, AttributeError) as error:
      raise CheckpointError(f"{self.prefix}: {OBJECT_GRAPH} is damaged: {error}") from None
    return found

  def _find(self, name: str) -> _Entry:
    if name not in self._entries:
      raise CheckpointError(f"{self.prefix} has no tensor {name!r}.")
    return self._entries[name]

  def _path(self, entry: _Entry) -> str:
    if entry.shard >= len(self._shards):
      raise CheckpointError(f"{self.prefix}.index is damaged: it names a file {entry.shard}.")
    return self._shards[entry.shard]

  def _content(self, name: str, entry: _Entry, expected: int) -> bytes:
    """Returns the bytes of a tensor, if there are as many as expected."""
    path = self._path(entry)
    try:
      # All before reading: a declared size must not become an allocation of exabytes.
      is_there = entry.offset + entry.size <= filesystem.size_bytes(path)
      if not is_there or expected != entry.size:
        raise CheckpointError(
          f"{path}: {name} {list(entry.shape)} is damaged: it would be {entry.size:,} bytes from "
          f"byte {entry.offset:,} on."
        )
      with filesystem.open_to_read(path) as file:
        file.seek(entry.offset)
        content = file.read(entry.size)
    except FileNotFoundError:
      raise CheckpointError(f"{path} does not exist.") from None
    if len(content) != entry.size:
      raise CheckpointError(f"{path}: {name} is damaged.")
    return content


def _check_header(header: dict[int, int | bytes], shards: int) -> None:
  declared = _number(header, 1, default=1)
  if declared != shards:
    raise CheckpointError(f"it is of {declared:,} data files, not of {shards}")
  if _number(header, 2):
    raise CheckpointError("it was written by a big-endian machine")


def _parse_entry(message: bytes) -> _Entry:
  entry = dict(fields(message))
  if 7 in entry:
    raise CheckpointError(
      "it has a partitioned variable, which is not supported: save it in one piece"
    )
  shape = fields(_message(entry.get(2, b"")))
  dims = tuple(_number(dict(fields(_message(dim))), 1) for number, dim in shape if number == 2)
  # NumPy multiplies the other sizes even where one of them is 0.
  if len(dims) > _MAX_DIMENSIONS or math.prod(filter(None, dims)) > _MAX_NUMBER // 16:
    raise CheckpointError("a tensor's shape is larger than any array's")
  return _Entry(
    dtype=_number(entry, 1),
    shape=dims,
    shard=_number(entry, 3),
    offset=_number(entry, 4),
    size=_number(entry, 5),
    checksum=int.from_bytes(_message(entry.get(6, b"")), "little"),
  )


def _number(message: dict[int, int | bytes], number: int, default: int = 0) -> int:
  """Returns a field that must be a number of at least 0."""
  value = message.get(number, default)
  if not isinstance(value, int) or value > _MAX_NUMBER:
    raise CheckpointError(f"its field {number} is not a size")
  return value


def _message(value: int | bytes) -> bytes:
  """Returns a field that must be an embedded message."""
  if not isinstance(value, bytes):
    raise CheckpointError("it has a number instead of a message")
  return value


# ---------------------------------------------------------------------------------------------
# LevelDB's table.


def _table_entries(content: bytes) -> Iterator[tuple[bytes, bytes]]:
  """Yields every (key, value) of a sorted table."""
  footer = content[-FOOTER_BYTES:]
  if len(footer) < FOOTER_BYTES or struct.unpack("<Q", footer[-8:]) != (MAGIC,):
    raise CheckpointError("it does not end as one")
  _, position = _handle(footer, 0)  # of the meta block, which is empty
  index, _ = _handle(footer, position)
  for _, handle in _block_entries(content, *index):
    yield from _block_entries(content, *_handle(handle, 0)[0])


def _handle(data: bytes, position: int) -> tuple[tuple[int, int], int]:
  """Returns the (offset, size) of a block, and the position after its handle."""
  offset, position = varint(data, position)
  size, position = varint(data, position)
  return (offset, size), position


def _block_entries(content: bytes, offset: int, size: int) -> Iterator[tuple[bytes, bytes]]:
  """Every (key, value) of a block; a key is stored without the prefix it shares with the last."""
  if offset + size + 5 > len(content):
    raise CheckpointError("a block would end after the end of the file")
  compression, checksum = struct.unpack_from("<BI", content, offset + size)
  if compression:
    raise CheckpointError("its blocks are compressed")
  if masked_crc32c(content[offset : offset + size + 1]) != checksum:
    raise CheckpointError("a checksum is wrong")
  block = content[offset : offset + size]
  (num_restarts,) = struct.unpack("<I", block[-4:])
  end = size - 4 - 4 * num_restarts
  position, key = 0, b""
  while position < end:
    shared, position = varint(block, position)
    rest, position = varint(block, position)
    length, position = varint(block, position)
    key = key[:shared] + block[position : position + rest]
    position += rest + length
    if position > end:
      raise CheckpointError("an entry would end after its block")
    yield key, block[position - length : position]
