"""What a sentencepiece model says of itself, read without a library.

  model = read(data)
  model.pieces[0]                # Piece("<pad>", score=0.0, kind=3)

The file is a serialized `sentencepiece.ModelProto`; only what is needed of it is read.
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

NORMAL, CONTROL, USER_DEFINED = 1, 3, 4  # kinds of pieces
UNIGRAM = 1  # kind of model

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # how a value is written


class Piece(NamedTuple):
  """A piece; its id is its place."""

  text: str
  score: float
  kind: int


class PieceModel(NamedTuple):
  """A model."""

  pieces: list[Piece]
  algorithm: int  # UNIGRAM is ALBERT's
  unk_id: int
  byte_fallback: bool  # whether unknown characters become bytes
  charsmap: bytes  # the table of its normalization


def read(data: bytes) -> PieceModel:
  """Reads the bytes of a model; raises a ValueError if they are not one."""
  pieces: list[Piece] = []
  trainer: dict[int, Any] = {}
  charsmap = b""
  try:
    for number, value in _fields(data):
      if number == 1:
        pieces.append(_piece(value))
      elif number == 2:
        trainer = dict(_fields(value))
      elif number == 3:
        charsmap = dict(_fields(value)).get(2, b"")
  except (IndexError, struct.error, UnicodeDecodeError, TypeError) as error:
    raise ValueError(f"not a complete sentencepiece model ({type(error).__name__})") from None
  algorithm, unk_id = trainer.get(3, UNIGRAM), trainer.get(40, 0)
  return PieceModel(pieces, algorithm, unk_id, bool(trainer.get(35, 0)), charsmap)


def _piece(data: bytes) -> Piece:
  fields = dict(_fields(data))
  [score] = struct.unpack("<f", fields.get(2, bytes(4)))
  return Piece(fields[1].decode(), score, fields.get(3, NORMAL))


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
  """Yields number and value (bytes or a number) of each field of a message."""
  position = 0
  while position < len(data):
    key, position = _varint(data, position)
    kind = key & 7
    if kind == _VARINT:
      value, position = _varint(data, position)
      yield key >> 3, value
      continue
    if kind == _BYTES:
      size, position = _varint(data, position)
    elif kind in (_FIXED32, _FIXED64):
      size = 4 if kind == _FIXED32 else 8
    else:
      raise IndexError(kind)
    end = position + size
    if end > len(data):
      raise IndexError(end)
    yield key >> 3, data[position:end]
    position = end


def _varint(data: bytes, position: int) -> tuple[int, int]:
  """Returns a number, and the position after it."""
  value = shift = 0
  while True:
    byte = data[position]
    position += 1
    value |= (byte & 0x7F) << shift
    shift += 7
    if byte < 0x80:
      return value, position
