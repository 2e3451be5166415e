"""The safetensors format: named tensors in a file that contains no code.

  write("model.safetensors", {"a": np.zeros([2, 3], np.float32)}, {"format": "pt"})
  weights = open_weights("model.safetensors")
  weights.tensors["a"].shape, weights.read("a")

A file is: 8 bytes, a little-endian number N; N bytes of JSON; then the values, one tensor after the
other, little-endian, row by row. The JSON has the type and shape of each tensor, and the range of
its bytes, counted from the end of the JSON:

  {"__metadata__": {"format": "pt"},
   "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}

Large models come in several files, with a `model.safetensors.index.json` that says which tensor is
in which. Why not the package `safetensors`: with NumPy it cannot read bfloat16, which many models
are saved in; and every script reads these files, not only those with an extra installed.
Description of the format: https://github.com/huggingface/safetensors#format
"""

import json
import math
import os
import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bert.checkpoints import keras_weights, tensor_files
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.formats import SHARDS_SUFFIX
from bert.checkpoints.tensor_files import MAX_HEADER_BYTES, ShardedFiles, TensorFile
from bert.io import filesystem, other_formats
from bert.io.atomic_files import written_whole

_METADATA = "__metadata__"
_DTYPES = {
  "BOOL": np.dtype(np.bool_),
  "U8": np.dtype("u1"),
  "I8": np.dtype("i1"),
  "U16": np.dtype("<u2"),
  "I16": np.dtype("<i2"),
  "F16": np.dtype("<f2"),
  "U32": np.dtype("<u4"),
  "I32": np.dtype("<i4"),
  "F32": np.dtype("<f4"),
  "U64": np.dtype("<u8"),
  "I64": np.dtype("<i8"),
  "F64": np.dtype("<f8"),
}


class SafetensorsError(CheckpointError):
  """A file is missing, damaged, or of another format."""


class TensorInfo(NamedTuple):
  """The entry of a tensor in a header."""

  dtype: np.dtype  # of the array that reading it gives
  shape: tuple[int, ...]  # its sizes
  start: int  # where its bytes begin, counted from the end of the header
  end: int  # where they end


# ---------------------------------------------------------------------------------------------
# Reading.


def open_weights(path: str | os.PathLike, family: str = "bert") -> TensorFile:
  """Opens a `*.safetensors`, or several through their `*.safetensors.index.json`.

  Those that transformers' TensorFlow classes saved get the names and the layout of PyTorch's.

  Args:
    path: of the file or of the index.
    family: `model_type`, by which the former are named.

  Raises:
    SafetensorsError: something is missing or damaged. Values are not read.
  """
  is_sharded = os.fsdecode(path).endswith(SHARDS_SUFFIX)
  whole = None if is_sharded else SafetensorsFile(path)
  names = whole.tensors if whole else tensor_files.read_index(path, SafetensorsError)
  if any(map(keras_weights.is_of_keras, names)):
    return keras_weights.open_weights(path, SafetensorsFile, SafetensorsError, family)
  return whole or ShardedFiles(path, SafetensorsFile, SafetensorsError)


class SafetensorsFile:
  """A file whose header has been read and checked; values are read one tensor at a time.

  Attributes:
    path: of the file.
    tensors: name -> TensorInfo, in the order of the header.
    metadata: the texts stored with them.
  """

  def __init__(self, path: str | os.PathLike):
    """Reads the header.

    Raises:
      SafetensorsError: the file is missing, too short or too long, or its header is invalid.
    """
    self.path = os.fsdecode(path)
    try:
      size = filesystem.size_bytes(self.path)
      with filesystem.open_to_read(self.path) as reader:
        header, self._values_start = _read_header(reader, size)
      self.metadata = _checked_metadata(header.pop(_METADATA, {}))
      self.tensors = {name: _tensor_info(name, entry) for name, entry in header.items()}
      _check_places(self.tensors, size - self._values_start)
    except OSError as error:
      raise SafetensorsError(f"{self.path} cannot be read: {error.strerror or error}.") from None
    except ValueError as error:
      raise SafetensorsError(f"{self.path} is not a whole safetensors file: {error}") from None

  def read(self, name: str) -> np.ndarray:
    """One tensor.

    Raises:
      SafetensorsError: no tensor has this name, or the file has changed.
    """
    if name not in self.tensors:
      raise SafetensorsError(f"{self.path} has no tensor {name!r}.")
    info = self.tensors[name]
    values = np.empty(info.shape, info.dtype)
    with filesystem.open_to_read(self.path) as reader:
      reader.seek(self._values_start + info.start)
      # A view as bytes, because bfloat16 does not support the buffer protocol.
      content = values.reshape(-1).view(np.uint8).data
      count = reader.readinto(content)  # type: ignore[attr-defined]
    if count != info.end - info.start:
      raise SafetensorsError(f"{self.path} became shorter while it was read.")
    return values


def _read_header(reader, size: int) -> tuple[dict[str, Any], int]:
  """Returns the JSON at the beginning of a file of `size` bytes, and where the values begin."""
  if size < 8:
    raise SafetensorsError(f"it has {size} bytes, too few for a header.")
  start = reader.read(max(8, other_formats.LONGEST))
  tensor_files.check_is_no_page(start)
  (length,) = struct.unpack("<Q", start[:8])
  reader.seek(8)
  # Both before reading: a damaged length must not become an allocation of exabytes.
  if length > MAX_HEADER_BYTES:
    raise SafetensorsError(
      f"its header would have {length:,} bytes, the maximum is {MAX_HEADER_BYTES:,}."
    )
  if length > size - 8:
    raise SafetensorsError(f"its header should have {length:,} bytes, only {size - 8:,} follow.")
  return tensor_files.json_object(reader.read(length)), 8 + length


def _checked_metadata(metadata) -> dict[str, str]:
  if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
    raise SafetensorsError(f"{_METADATA} has values that are not strings.")
  return metadata


def _tensor_info(name: str, entry) -> TensorInfo:
  """Reads an entry of the header, and checks that type, shape and place agree."""
  if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
    raise SafetensorsError(f"{name!r} needs dtype, shape and data_offsets, and nothing else.")
  shape, offsets = entry["shape"], entry["data_offsets"]
  if not isinstance(shape, list) or not tensor_files.is_shape(shape):
    raise SafetensorsError(f"the shape of {name!r} is {shape!r:.80}.")
  is_range = isinstance(offsets, list) and len(offsets) == 2 and tensor_files.is_shape(offsets)
  if not is_range or offsets[0] > offsets[1]:
    raise SafetensorsError(f"data_offsets of {name!r} are {offsets!r:.80}.")
  dtype = _dtype_called(entry["dtype"])
  if dtype is None:
    raise SafetensorsError(
      f"{name!r} is of type {entry['dtype']!r}; known: {', '.join([*_DTYPES, 'BF16'])}."
    )
  size_bytes = math.prod(shape) * dtype.itemsize
  if size_bytes != offsets[1] - offsets[0]:
    raise SafetensorsError(
      f"{name!r}, {entry['dtype']} {shape}, takes {size_bytes:,} bytes, but its data_offsets are "
      f"{offsets}."
    )
  if tensor_files.is_larger_than_any_array(shape, dtype):
    raise SafetensorsError(f"{name!r} of shape {shape!r:.80} is larger than any array.")
  return TensorInfo(dtype, tuple(shape), *offsets)


def _check_places(tensors: Mapping[str, TensorInfo], size: int) -> None:
  """Checks that values do not overlap, leave no gap, and end at the end of the file."""
  position, before = 0, "the header"
  for name, info in sorted(tensors.items(), key=lambda item: item[1][2:]):
    if info.start != position:
      what = "overlap" if info.start < position else "leave a hole"
      raise SafetensorsError(f"the values of {before!r} and {name!r} {what}.")
    position, before = info.end, name
  if position != size:
    raise SafetensorsError(
      f"its tensors take {position:,} bytes, but it has {size:,}: it was cut short or extended."
    )


# ---------------------------------------------------------------------------------------------
# Types.


def _dtype_called(name) -> np.dtype | None:
  if name == "BF16":
    return tensor_files.bfloat16()
  return _DTYPES.get(name) if isinstance(name, str) else None


def _name_of(dtype: np.dtype) -> str:
  """Returns the name of a type in the format.

  Example:
    >>> _name_of(np.dtype(">f4"))
    'F32'
  """
  if dtype.name == "bfloat16":
    return "BF16"
  names = {known: name for name, known in _DTYPES.items()}
  if dtype.newbyteorder("<") not in names:
    raise SafetensorsError(f"The format has no type {dtype.name}.")
  return names[dtype.newbyteorder("<")]


# ---------------------------------------------------------------------------------------------
# Writing.


def write(
  path: str | os.PathLike,
  tensors: Mapping[str, np.ndarray],
  metadata: Mapping[str, str] | None = None,
) -> None:
  """Writes a file, whole or not at all; see `atomic_files.written_whole`.

  Args:
    path: its name; the folder must exist.
    tensors: name -> array. The widest types come first, which aligns each tensor to its item size.
    metadata: texts to store with them.

  Raises:
    SafetensorsError: an array is of a type that the format does not have.
    OSError: it cannot be written.
  """
  arrays = {name: np.asarray(array) for name, array in tensors.items()}
  order = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
  header = _encode_header({name: arrays[name] for name in order}, metadata)
  with written_whole(path) as writer:
    writer.write(struct.pack("<Q", len(header)) + header)
    for name in order:
      writer.write(_little_endian(arrays[name]).tobytes())


def _encode_header(arrays: Mapping[str, np.ndarray], metadata) -> bytes:
  """The JSON for arrays that follow each other, padded with blanks to a multiple of 8 bytes."""
  header: dict[str, Any] = {_METADATA: dict(metadata)} if metadata else {}
  position = 0
  for name, array in arrays.items():
    if name == _METADATA:
      raise SafetensorsError(f"No tensor can be called {_METADATA}.")
    header[name] = {
      "dtype": _name_of(array.dtype),
      "shape": list(array.shape),
      "data_offsets": [position, position + array.nbytes],
    }
    position += array.nbytes
  encoded = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
  return encoded + b" " * (-len(encoded) % 8)


def _little_endian(array: np.ndarray) -> np.ndarray:
  if array.dtype.name == "bfloat16":
    array = array.view(np.uint16)
  return array.astype(array.dtype.newbyteorder("<"), copy=False)
