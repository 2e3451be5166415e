"""The fields of a serialized protocol buffer, read without its definition.

dict(fields(data))       # number of the field -> its value; of a repeated one the last
"""

from collections.abc import Iterator
from typing import Any

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # how a value is written


def fields(message: bytes) -> Iterator[tuple[int, Any]]:
  """Yields number and value of each field: an int, or bytes (numbers of fixed size, too).

  Example:
    >>> list(fields(b"\\x08\\x96\\x01\\x12\\x02ab"))
    [(1, 150), (2, b'ab')]

  Raises:
    ValueError: the message is damaged, or ends too early.
  """
  position = 0
  while position < len(message):
    key, position = varint(message, position)
    kind = key & 7
    if kind == _VARINT:
      value, position = varint(message, position)
      yield key >> 3, value
      continue
    if kind == _BYTES:
      size, position = varint(message, position)
    elif kind in (_FIXED32, _FIXED64):
      size = 4 if kind == _FIXED32 else 8
    else:
      raise ValueError(f"a field has the unknown wire type {kind}")
    if position + size > len(message):
      raise ValueError("a field would end after its message")
    yield key >> 3, message[position : position + size]
    position += size


def messages(message: bytes, number: int) -> Iterator[bytes]:
  """Yields the embedded messages of a field; see `fields`."""
  every = (value for field, value in fields(message) if field == number)
  return (value for value in every if isinstance(value, bytes))


def varint(data: bytes, position: int) -> tuple[int, int]:
  """Returns a number (7 bits per byte, low bits first), and the position after it.

  Example:
    >>> varint(bytes([0x96, 0x01]), 0)
    (150, 2)

  Raises:
    ValueError: it does not end within ten bytes.
  """
  value = shift = 0
  for after, byte in enumerate(data[position : position + 10], position + 1):
    value |= (byte & 0x7F) << shift
    shift += 7
    if byte < 0x80:
      return value, after
  raise ValueError("a number has no end")
