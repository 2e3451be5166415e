"""PyTorch's files of weights, `pytorch_model.bin`, without PyTorch.

  weights = open_weights("pytorch_model.bin")
  weights.tensors["bert.pooler.dense.bias"].shape, weights.read("bert.pooler.dense.bias")

`torch.save` has written two forms of a dictionary of tensors. Since PyTorch 1.6 it is a zip archive
that is not compressed: `NAME/data.pkl` has names and shapes, and each `NAME/data/KEY` the values of
a storage. Before, it was a row of pickles (a magic number, the version, what the machine was, names
and shapes, the keys of all storages), then for each key the count of its elements and their values.
Several tensors may lie in one storage: tied weights do. `torch_pickle.py` reads the pickles, of
which nothing is run; values are read when they are asked for.

Large models come in several files, with a `pytorch_model.bin.index.json` that says which tensor is
in which.
"""

import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bert.checkpoints import tensor_files, torch_pickle
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.tensor_files import ShardedFiles
from bert.checkpoints.torch_pickle import PickleError, Storage, StoredTensor
from bert.io import filesystem

_ZIP = b"PK\x03\x04"
_PICKLE = b"\x80"  # of protocol 2 or newer
_TAR = (257, b"ustar")  # at this place
_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_COUNT = struct.Struct("<q")
# Of a zip archive, before each member: 26 bytes, and the lengths of a name and of other fields.
_LENGTHS_IN_HEADER = struct.Struct("<26xHH")
_BIG_ENDIAN = "it was written by a big-endian machine. Save it again on another one."
_MAX_MEMBERS = 100_000
# All tensors together, in bytes, by those of the file: tied weights lie there once.
_MAX_SHARING = 8


class _Place(NamedTuple):
  """Where a storage is in the file."""

  start: int  # its first byte; in an archive that of its header
  size: int  # in bytes
  crc: int | None = None  # the checksum of a member of an archive


class TensorInfo(NamedTuple):
  """A tensor of a file, and where it is."""

  dtype: np.dtype
  shape: tuple[int, ...]
  strides: tuple[int, ...]  # in bytes
  offset: int  # of its first element in the storage, in bytes
  place: _Place  # of the storage


def open_weights(path: str | os.PathLike) -> "TorchFile | ShardedFiles":
  """Opens a `*.bin`, `*.pt` or `*.pth`, or several through their `*.index.json`.

  Raises:
    CheckpointError: something is missing or damaged, or asks to run something. Values are not read.
  """
  if os.fsdecode(path).endswith(".index.json"):
    return ShardedFiles(path, TorchFile)
  return TorchFile(path)


class TorchFile:
  """A file whose names and shapes have been read and checked; values are read one at a time.

  Attributes:
    path: of the file.
    tensors: name -> TensorInfo, in the order of the file.
  """

  def __init__(self, path: str | os.PathLike):
    """Reads names and shapes.

    Raises:
      CheckpointError: see `open_weights`.
    """
    self.path = os.fsdecode(path)
    try:
      size = filesystem.size_bytes(self.path)
      with filesystem.open_to_read(self.path) as file:
        value, places = _read_saved(file, size)
      self.tensors = _tensors(value, places, size)
    except OSError as error:
      raise CheckpointError(f"{self.path} cannot be read: {error.strerror or error}.") from None
    except PickleError as error:
      raise CheckpointError(
        f"{self.path} is not read, and nothing in it was run: {error} A file of weights is what "
        "torch.save(model.state_dict(), ...) writes."
      ) from None
    except ValueError as error:
      raise CheckpointError(f"{self.path} is not a whole file of PyTorch: {error}") from None

  def read(self, name: str) -> np.ndarray:
    """One tensor, its rows one after the other.

    Raises:
      CheckpointError: no tensor has this name, or the file has changed.
    """
    if name not in self.tensors:
      raise CheckpointError(f"{self.path} has no tensor {name!r}.")
    info = self.tensors[name]
    if 0 in info.shape:
      return np.empty(info.shape, info.dtype)
    try:
      with filesystem.open_to_read(self.path) as file:
        content = _content(file, info.place)
      values = np.ndarray(info.shape, info.dtype, content, info.offset, info.strides)
    except (ValueError, TypeError, struct.error, OSError) as error:
      raise CheckpointError(f"{self.path}: {name} cannot be read: {error}") from None
    return np.array(values, info.dtype.newbyteorder("="), order="C")


def _content(file, place: _Place) -> bytes:
  """Reads a storage, and compares its checksum where there is one."""
  file.seek(place.start)
  if place.crc is not None:
    name_bytes, extra_bytes = _LENGTHS_IN_HEADER.unpack(file.read(_LENGTHS_IN_HEADER.size))
    file.seek(name_bytes + extra_bytes, os.SEEK_CUR)
  content = file.read(place.size)
  if len(content) < place.size:
    raise ValueError("the file became shorter while it was read.")
  if place.crc not in (None, zlib.crc32(content)):
    raise ValueError("its checksum is wrong.")
  return content


def _read_saved(file, size: int) -> tuple[Any, dict[str, _Place]]:
  """Returns what was saved, and the places of its storages by their keys."""
  start = file.read(sum(map(len, _TAR[1:])) + _TAR[0])
  file.seek(0)
  tensor_files.check_is_no_page(start)
  if start.startswith(_ZIP):
    pickled, places = _read_archive(file)
  elif start.startswith(_PICKLE):
    pickled, places = _read_row_of_pickles(file, size)
  elif start[_TAR[0] :] == _TAR[1]:
    raise ValueError("it is an archive of tar, as PyTorch before 0.2 wrote. Save it again.")
  else:
    raise ValueError(f"it begins with {start[:8]!r}, which none of them does.")
  for storage in pickled.storages.values():
    _check_size(storage, places)
  return pickled.value, places


def _check_size(storage: Storage, places: Mapping[str, _Place]) -> None:
  """Checks that a storage is there, and as large as it is said to be."""
  if storage.key not in places:
    raise ValueError(f"its storage {storage.key!r:.80} is missing.")
  needed = storage.length * _dtype(storage).itemsize
  if needed != places[storage.key].size:
    raise ValueError(
      f"its storage {storage.key!r:.80} of {storage.length:,} elements takes {needed:,} bytes, but "
      f"{places[storage.key].size:,} are there."
    )


def _dtype(storage: Storage) -> np.dtype:
  return np.dtype(torch_pickle.STORAGES[storage.kind])


# ---------------------------------------------------------------------------------------------
# The two forms.


def _read_archive(file) -> tuple[torch_pickle.Pickled, dict[str, _Place]]:
  """Reads the form since PyTorch 1.6."""
  try:
    with zipfile.ZipFile(file) as archive:
      members = _members(archive)
      pickles = [name for name in members if name.endswith("/data.pkl")]
      if len(pickles) != 1:
        raise ValueError(f"it is a zip archive with {len(pickles)} files data.pkl, not one.")
      root = pickles[0].removesuffix("data.pkl")
      order = f"{root}byteorder"
      if order in members and archive.read(order) != b"little":
        raise ValueError(_BIG_ENDIAN)
      if members[pickles[0]].size > torch_pickle.MAX_BYTES:
        raise ValueError(f"its data.pkl has more than {torch_pickle.MAX_BYTES:,} bytes.")
      content = archive.read(pickles[0])
  # Of zipfile, for a newer version, and for places before the file or beyond all numbers.
  except (
    *(zipfile.BadZipFile, EOFError, struct.error, RuntimeError, OverflowError, OSError),
  ) as error:
    raise ValueError(f"its archive is damaged ({error!s:.80}).") from None
  data = f"{root}data/"
  storages = {n.removeprefix(data): members[n] for n in members if n.startswith(data)}
  return torch_pickle.load(io.BytesIO(content)), storages


def _members(archive: zipfile.ZipFile) -> dict[str, _Place]:
  """Name -> place of each member; all of them are stored as they are."""
  entries = archive.infolist()
  members = {e.filename: _Place(e.header_offset, e.file_size, e.CRC) for e in entries}
  if len(entries) > _MAX_MEMBERS or len(members) < len(entries):
    raise ValueError("its archive has a name twice, or too many of them.")
  for entry in entries:
    if entry.flag_bits & 1:
      raise ValueError(f"{entry.filename!r:.80} is encrypted.")
    # So no archive can grow while it is read.
    if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size:
      raise ValueError(f"{entry.filename!r:.80} is compressed, which PyTorch never does.")
  return members


def _read_row_of_pickles(file, size: int) -> tuple[torch_pickle.Pickled, dict[str, _Place]]:
  """Reads the form before PyTorch 1.6."""
  stream = io.BytesIO(file.read(torch_pickle.MAX_BYTES))
  magic = torch_pickle.load(stream).value
  if type(magic) is not int or magic != _MAGIC:
    raise PickleError("it is a pickle, but not one of PyTorch.")
  version, machine = torch_pickle.load(stream).value, torch_pickle.load(stream).value
  if type(version) is not int or version != _VERSION or not isinstance(machine, dict):
    raise ValueError("it is of an unknown version.")
  if machine.get("little_endian") is not True:
    raise ValueError(_BIG_ENDIAN)
  pickled, keys = torch_pickle.load(stream), torch_pickle.load(stream).value
  if type(keys) is not list or not all(type(key) is str for key in keys):
    raise ValueError("its list of storages is none.")
  if len(set(keys)) < len(keys) or set(keys) != set(pickled.storages):
    raise ValueError("its list of storages is not that of its tensors.")
  places, position = {}, stream.tell()
  for key in keys:
    storage = pickled.storages[key]
    file.seek(position)
    count = file.read(_COUNT.size)
    if len(count) < _COUNT.size or _COUNT.unpack(count)[0] != storage.length:
      raise ValueError(f"its storage {key!r:.80} is not where it should be: it was cut short.")
    places[key] = _Place(position + _COUNT.size, storage.length * _dtype(storage).itemsize)
    position += _COUNT.size + places[key].size
  if position != size:
    raise ValueError(f"its storages end at {position:,} bytes, but it has {size:,}.")
  return pickled, places


# ---------------------------------------------------------------------------------------------
# Tensors.


def _tensors(value, places: Mapping[str, _Place], size: int) -> dict[str, TensorInfo]:
  """Describes the tensors of a state dictionary."""
  if not isinstance(value, dict) or not value:
    raise ValueError("it holds no dictionary of tensors, as model.state_dict() makes.")
  for name, tensor in value.items():
    if type(name) is not str:
      raise ValueError("a name in its dictionary is no text.")
    if type(tensor) is not StoredTensor:
      raise ValueError(
        f"{name!r:.80} is no tensor: give a file of what model.state_dict() makes, and of nothing "
        "else."
      )
    _check_tensor(name, tensor)
  found = {}
  for name, (storage, offset, shape, strides) in value.items():
    dtype = _dtype(storage)
    steps = tuple(stride * dtype.itemsize for stride in strides)
    place = places[storage.key]
    found[name] = TensorInfo(dtype, shape, steps, offset * dtype.itemsize, place)
  total_bytes = sum(math.prod(info.shape) * info.dtype.itemsize for info in found.values())
  if total_bytes > _MAX_SHARING * size:
    raise ValueError(f"its tensors would take {total_bytes:,} bytes, but it has {size:,}.")
  return found


def _check_tensor(name: str, tensor: StoredTensor) -> None:
  """Checks that a tensor lies within its storage, and has not more elements than that."""
  storage, offset, shape, strides = tensor
  if tensor_files.is_larger_than_any_array(shape, _dtype(storage)):
    raise ValueError(f"{name!r:.80} of shape {list(shape)!r:.80} is larger than any array.")
  last = sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
  is_inside = offset + last < storage.length if 0 not in shape else offset <= storage.length
  # With strides of 0 a storage of one element could become any number of them.
  if not is_inside or math.prod(shape) > storage.length:
    raise ValueError(
      f"{name!r:.80} of shape {list(shape)!r:.80} lies outside of its storage, which has "
      f"{storage.length:,} elements."
    )
