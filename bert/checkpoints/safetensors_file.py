"""The safetensors format, read and written by the library of this name.

  write("model.safetensors", {"a": np.zeros([2, 3], np.float32)}, {"format": "pt"})
  weights = open_weights("model.safetensors")
  weights.tensors["a"].shape, weights.read("a")

Large models come in several files, with a `model.safetensors.index.json` that says which tensor is
in which. Description of the format: https://github.com/huggingface/safetensors#format
"""

import os
import shutil
import struct
import tempfile
from collections.abc import Mapping

import numpy as np
import safetensors
import safetensors.numpy

from bert.checkpoints import keras_weights, tensor_files
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.formats import SHARDS_SUFFIX
from bert.checkpoints.tensor_files import ShardedFiles, TensorFile, TensorInfo
from bert.io import filesystem, other_formats
from bert.io.atomic_files import written_whole

# NumPy has them with ml_dtypes.
_DTYPES = {
  **{"BOOL": "?", "U8": "u1", "I8": "i1", "U16": "u2", "I16": "i2", "F16": "f2"},
  **{"U32": "u4", "I32": "i4", "F32": "f4", "U64": "u8", "I64": "i8", "F64": "f8"},
  "BF16": "bfloat16",
}


def open_weights(path: str | os.PathLike, family: str = "bert") -> TensorFile:
  """Opens a `*.safetensors`, or several through their `*.safetensors.index.json`.

  Those that transformers' TensorFlow classes saved get the names and the layout of PyTorch's.

  Args:
    path: of the file or of the index.
    family: `model_type`, by which the former are named.

  Raises:
    CheckpointError: something is missing or damaged. Values are not read.
  """
  is_sharded = os.fsdecode(path).endswith(SHARDS_SUFFIX)
  whole = None if is_sharded else SafetensorsFile(path)
  names = whole.tensors if whole else tensor_files.read_index(path)
  if any(map(keras_weights.is_of_keras, names)):
    return keras_weights.open_weights(path, SafetensorsFile, family)
  return whole or ShardedFiles(path, SafetensorsFile)


class SafetensorsFile:
  """A file whose header has been read and checked; values are read one tensor at a time.

  Attributes:
    path: of the file.
    tensors: name -> TensorInfo.
  """

  def __init__(self, path: str | os.PathLike):
    """Reads the header.

    Raises:
      CheckpointError: the file is missing, too short or too long, or its header is invalid.
    """
    self.path = os.fsdecode(path)
    # The library maps local files; the copy of another one is removed with this object.
    self._copy = tempfile.NamedTemporaryFile() if filesystem.is_remote(path) else None  # noqa: SIM115
    try:
      with filesystem.open_to_read(self.path) as reader:
        start = reader.read(max(8, other_formats.LONGEST))
        tensor_files.check_is_no_page(start)
        if self._copy:
          reader.seek(0)
          shutil.copyfileobj(reader, self._copy)
          self._copy.flush()
        with self._opened() as file:
          slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
        # Of a name that occurs twice the library would take the last tensor.
        reader.seek(8)
        tensor_files.json_object(reader.read(*struct.unpack("<Q", start[:8])))
      self.tensors = {name: _tensor_info(name, each) for name, each in slices.items()}
    except OSError as error:
      raise CheckpointError(f"{self.path} cannot be read: {error.strerror or error}.") from None
    except (ValueError, safetensors.SafetensorError) as error:
      raise self._error(error) from None

  def _opened(self) -> safetensors.safe_open:
    return safetensors.safe_open(self._copy.name if self._copy else self.path, "np")

  def _error(self, reason: Exception) -> CheckpointError:
    text = " ".join(str(reason).removeprefix("Error while deserializing header: ").split())
    return CheckpointError(f"{self.path} is not a whole safetensors file: {text:.300}")

  def read(self, name: str) -> np.ndarray:
    """One tensor.

    Raises:
      CheckpointError: no tensor has this name, or the file has changed.
    """
    if name not in self.tensors:
      raise CheckpointError(f"{self.path} has no tensor {name!r}.")
    try:
      with self._opened() as file:
        return file.get_tensor(name)
    except (OSError, ValueError, safetensors.SafetensorError) as error:
      raise self._error(error) from None


def _tensor_info(name: str, entry) -> TensorInfo:
  kind, shape = entry.get_dtype(), entry.get_shape()
  if kind not in _DTYPES:
    raise ValueError(f"{name!r:.80} is of type {kind}; known: {', '.join(_DTYPES)}.")
  dtype = np.dtype(_DTYPES[kind])
  if not tensor_files.is_shape(shape) or tensor_files.is_larger_than_any_array(shape, dtype):
    raise ValueError(f"{name!r:.80} of shape {shape!r:.80} is larger than any array.")
  return TensorInfo(dtype, tuple(shape))


def write(
  path: str | os.PathLike,
  tensors: Mapping[str, np.ndarray],
  metadata: Mapping[str, str] | None = None,
) -> None:
  """Writes a file, whole or not at all; see `atomic_files.written_whole`.

  Args:
    path: its name; the folder must exist.
    tensors: name -> array.
    metadata: texts to store with them.

  Raises:
    CheckpointError: an array is of a type that the format does not have.
    OSError: it cannot be written.
  """
  # The library writes memory as it lies there, also of a transposed array.
  arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}
  try:
    content = safetensors.numpy.save(arrays, dict(metadata) if metadata else None)
  except safetensors.SafetensorError as error:
    raise CheckpointError(f"{os.fsdecode(path)} cannot be written: {error}") from None
  with written_whole(path) as writer:
    writer.write(content)
