"""Integers and floats -> the bytes of `tf.train.Example`s -> the bytes of a TFRecord file.

  records = encode_examples({"input_ids": ids, "masked_lm_weights": weights})  # [n, S], [n, P]
  file.write(b"".join(map(framed, records)))
  records = unframed(file)

The bytes are those of `record_files.serialize_example` and `tf.io.TFRecordWriter`, which the
tests compare; here they are made for thousands of records at once, from arrays, and without
TensorFlow, whose import takes seconds and hundreds of megabytes.

A protocol buffer is a sequence of fields: a tag, then, for all types used here, a length and the
bytes. An integer is a varint: 7 bits in each byte, the lowest first, the eighth bit set in all but
the last. (https://protobuf.dev/programming-guides/encoding, tensorflow/core/example/*.proto)
"""

import functools
import gzip
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

import google_crc32c
import numpy as np

# Tags of length-delimited fields: the field's number times 8, plus 2.
_FEATURES = b"\x0a"  # Example.features
_ENTRY, _KEY, _VALUE = b"\x0a", b"\x0a", b"\x12"  # an entry of the map Features.feature
_FLOAT_LIST, _INT64_LIST = b"\x12", b"\x1a"  # Feature.float_list, Feature.int64_list
_PACKED = b"\x0a"  # FloatList.value, Int64List.value

_HEAD = struct.Struct("<QI")
_PIECE_BYTES = 1 << 24  # read at once, whatever length the file declares
_FRAME_BYTES = 16  # of TFRecord, around each record: length, its checksum, the record's checksum


class FrameError(ValueError):
  """The bytes of a TFRecord file are damaged or cut short."""


# ---------------------------------------------------------------------------------------------
# Arrays -> Examples.


def encode_examples(features: Mapping[str, np.ndarray]) -> Iterator[bytes]:
  """Serializes n examples, whose features are sorted by name.

  Each array is `[n, k]` with a k of its own: integers and booleans become an int64_list, floats a
  float_list (float32).

  Raises:
    TypeError: an array holds something else.

  Example:
    >>> [record] = encode_examples({"ids": np.array([[1, 300]])})
    >>> record.hex(" ")
    '0a 10 0a 0e 0a 03 69 64 73 12 07 1a 05 0a 03 01 ac 02'
  """
  # The order of protobuf's deterministic serialization: of "ab" and "a", the longer one first.
  names = sorted(features, key=lambda name: name.encode() + b"\xff")
  columns = [_entries(name.encode(), features[name]) for name in names]
  for entries in zip(*columns, strict=True):
    # One call of join, not two: this loop runs once for each record.
    body = b"".join([part for entry in entries for part in entry])
    yield _FEATURES + varint(len(body)) + body


def _entries(name: bytes, array: np.ndarray) -> Iterator[tuple[bytes, bytes]]:
  """Yields, for each row, the bytes before its values in the message, and the values."""
  if array.dtype.kind in "iub":
    ends: Iterable[int]
    kind, (data, ends) = _INT64_LIST, _varint_rows(array)
  elif array.dtype.kind == "f":
    kind, data = _FLOAT_LIST, np.ascontiguousarray(array, "<f4").tobytes()
    ends = range(4 * array.shape[1], len(data) + 1, 4 * array.shape[1] or 1)
  else:
    raise TypeError(f"Feature {name.decode()!r}: cannot store {array.dtype}.")
  if not array.shape[1]:
    ends = [0] * len(array)
  start = 0
  for end in ends:
    yield _entry_head(name, kind, end - start), data[start:end]
    start = end


@functools.lru_cache(maxsize=1 << 14)  # a feature's rows have few different lengths
def _entry_head(name: bytes, kind: bytes, size: int) -> bytes:
  """Writes the tags and lengths before `size` bytes of packed values."""
  head = _PACKED + varint(size) if size else b""
  for tag in (kind, _VALUE):
    head = tag + varint(len(head) + size) + head
  head = _KEY + varint(len(name)) + name + head
  return _ENTRY + varint(len(head) + size) + head


def varint(number: int) -> bytes:
  """Encodes a number from 0 on as a varint.

  Example:
    >>> varint(5), varint(300)
    (b'\\x05', b'\\xac\\x02')
  """
  groups = bytearray()
  while number > 0x7F:
    groups.append(number & 0x7F | 0x80)
    number >>= 7
  groups.append(number)
  return bytes(groups)


def _varint_rows(array: np.ndarray) -> tuple[bytes, list[int]]:
  """Encodes all numbers of `[n, k]` as varints; returns also at which byte each row ends.

  Example:
    >>> _varint_rows(np.array([[1, 300], [2, 3]]))
    (b'\\x01\\xac\\x02\\x02\\x03', [3, 5])
  """
  rows, columns = array.shape
  if array.size and array.min() >= 0 and array.max() <= 0x7F:  # masks and segments
    data = array.astype(np.uint8).tobytes()
    return data, list(range(columns, len(data) + 1, columns))
  numbers = array.astype(np.int64).astype(np.uint64).reshape(-1, 1)  # negative ones: 10 bytes
  largest = int(numbers.max(initial=0))
  shifts = np.arange(0, max(largest.bit_length(), 1), 7, dtype=np.uint64)
  rest = numbers >> shifts  # [n * k, bytes of the largest number]
  groups = (rest & np.uint64(0x7F)).astype(np.uint8)
  groups[:, :-1] |= (rest[:, 1:] != 0).astype(np.uint8) << 7
  used = rest != 0
  used[:, 0] = True
  ends = np.cumsum(used.sum(axis=1))
  return groups[used].tobytes(), ends[columns - 1 :: columns].tolist() if columns else [0] * rows


# ---------------------------------------------------------------------------------------------
# Records -> a TFRecord file, and back.


def framed(record: bytes) -> bytes:
  """Puts a record into TFRecord framing: its length and checksums around it."""
  return _frame_head(len(record)) + record + struct.pack("<I", masked_crc32c(record))


@functools.lru_cache(maxsize=1 << 14)
def _frame_head(length: int) -> bytes:
  head = struct.pack("<Q", length)
  return head + struct.pack("<I", masked_crc32c(head))


def masked_crc32c(data: bytes) -> int:
  """Computes the CRC-32C, rotated and shifted: a CRC of data that contain CRCs would be weak."""
  crc = google_crc32c.value(data)
  return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed_size(head: bytes | memoryview) -> int:
  """Returns the number of bytes of a framed record; its first 8 bytes suffice."""
  return int.from_bytes(head[:8], "little") + _FRAME_BYTES


def unframed(reader: BinaryIO | gzip.GzipFile) -> Iterator[bytes]:
  """Yields the records of an uncompressed TFRecord file, each checked against its checksums.

  TensorFlow's reader allocates as much memory as a length declares, and the process dies if that
  fails. Here a wrong length costs no more memory than the file has bytes.

  Raises:
    FrameError: the next record is damaged, or the file ends within it.

  Example:
    >>> import io
    >>> list(unframed(io.BytesIO(framed(b"one") + framed(b""))))
    [b'one', b'']
  """
  while head := reader.read(_HEAD.size):
    if len(head) < _HEAD.size:
      raise FrameError(f"only {len(head)} bytes of its header exist")
    length, checksum = _HEAD.unpack(head)
    if masked_crc32c(head[:8]) != checksum:
      raise FrameError("the checksum of its length is wrong")
    record = _read_whole(reader, length)
    if _read_whole(reader, 4) != struct.pack("<I", masked_crc32c(record)):
      raise FrameError("its checksum is wrong")
    yield record


def _read_whole(reader: BinaryIO | gzip.GzipFile, size: int) -> bytes:
  pieces = []
  while size and (piece := reader.read(min(size, _PIECE_BYTES))):
    pieces.append(piece)
    size -= len(piece)
  if size:
    raise FrameError(f"the file ends {size:,} bytes before it does")
  return b"".join(pieces)
