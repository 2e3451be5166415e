"""What the readers of files of named tensors share: one tensor's values, and several files as one.

  file.tensors["bert.pooler.dense.bias"]     # its type and shape first
  file.read("bert.pooler.dense.bias")

The readers are `safetensors_file.py`, `torch_file.py` and `h5_file.py`. All give the names and the
layout of transformers' PyTorch classes.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import ml_dtypes  # noqa: F401 - so NumPy has bfloat16
import numpy as np

from bert.checkpoints.bundle_files import CheckpointError
from bert.io import filesystem, other_formats

MAX_HEADER_BYTES = 100_000_000  # of JSON: 100 kB are plenty for a BERT
_MAX_DIMENSIONS = 32  # of an array, in the oldest NumPy that this runs on
_MAX_TENSOR_BYTES = 1 << 62


class TensorInfo(NamedTuple):
  """A tensor of a file."""

  dtype: np.dtype
  shape: tuple[int, ...]


class TensorFile(Protocol):
  """An open file, whose header has been read and checked.

  Attributes:
    path: of the file, or of the index of several.
    tensors: name -> (type, shape, ...).
  """

  path: str

  @property
  def tensors(self) -> Mapping[str, Any]:
    """See class."""

  def read(self, name: str) -> np.ndarray:
    """Reads one tensor; a CheckpointError if no tensor has this name, or the file has changed."""


class ShardedFiles:
  """Several files, read as one.

  Attributes:
    path: of the index.
    tensors: name -> as in the file that has it.
  """

  def __init__(
    self,
    path: str | os.PathLike,
    open_file: Callable[[str], TensorFile],
    named: Callable[[str], str] = str,
  ):
    """Reads the index, and the headers of all files.

    Args:
      path: of the index.
      open_file: opens one of the files.
      named: the name of a tensor in its file, by its name in the index.

    Raises:
      CheckpointError: a file is missing or damaged, or lacks a tensor that the index puts there.
    """
    self.path = os.fsdecode(path)
    weight_map = {named(name): shard for name, shard in read_index(path).items()}
    folder = os.path.dirname(self.path)
    shards = {name: open_file(os.path.join(folder, name)) for name in set(weight_map.values())}
    self._shard_of = {name: shards[shard] for name, shard in weight_map.items()}
    absent = [name for name, shard in self._shard_of.items() if name not in shard.tensors]
    if absent:
      shard = self._shard_of[absent[0]].path
      raise CheckpointError(f"{shard} has no tensor {absent[0]!r}, but {self.path} says it has.")
    self.tensors = {name: shard.tensors[name] for name, shard in self._shard_of.items()}

  def read(self, name: str) -> np.ndarray:
    """One tensor; see `TensorFile.read`."""
    if name not in self._shard_of:
      raise CheckpointError(f"{self.path} has no tensor {name!r}.")
    return self._shard_of[name].read(name)


def read_index(path: str | os.PathLike) -> dict[str, str]:
  """Reads which tensor is in which of several files.

  Args:
    path: of the index.

  Returns:
    Tensor's name -> name of the file that has it.

  Raises:
    CheckpointError: it is missing or damaged.
  """
  path = os.fsdecode(path)
  kind = path.removesuffix(".index.json").rpartition(".")[2]
  try:
    if filesystem.size_bytes(path) > MAX_HEADER_BYTES:
      raise ValueError(f"more than {MAX_HEADER_BYTES:,} bytes.")
    with filesystem.open_to_read(path) as reader:
      content = reader.read()
    check_is_no_page(content)
    weight_map = json_object(content).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
      raise ValueError("it has no weight_map.")
    for name, shard in weight_map.items():
      # A plain name: an index from elsewhere must not lead out of its folder.
      if not isinstance(shard, str) or os.path.basename(shard) != shard or shard in ("", ".."):
        raise ValueError(f"{name!r} would be in {shard!r}, which is not the name of a file.")
  except OSError as reason:
    raise CheckpointError(f"{path} cannot be read: {reason.strerror or reason}.") from None
  except ValueError as reason:
    raise CheckpointError(f"{path} is not an index of {kind} files: {reason}") from None
  return weight_map


# ---------------------------------------------------------------------------------------------
# Headers.


def json_object(data: bytes) -> dict[str, Any]:
  """Returns a JSON object in which no key occurs twice; other JSON is a ValueError.

  Example:
    >>> json_object(b'{"a": 1}')
    {'a': 1}
    >>> json_object(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ValueError: its JSON has 'a' twice.
  """
  twins: list[str] = []

  def noting_twins(pairs):
    content: dict[str, Any] = {}
    for key, value in pairs:
      if key in content:
        twins.append(key)
      content[key] = value
    return content

  try:
    content = json.loads(data.decode("utf-8"), object_pairs_hook=noting_twins)
  except (ValueError, RecursionError) as error:
    raise ValueError(f"its JSON is bad: {error}.") from None
  if twins:
    raise ValueError(f"its JSON has {twins[0]!r} twice.")
  if not isinstance(content, dict):
    raise ValueError(f"its JSON is a {type(content).__name__}, not an object.")
  return content


def check_is_no_page(start: bytes) -> None:
  """Refuses (ValueError) a pointer of git-lfs, or a web page, by the first bytes of a file."""
  if other := other_formats.find(start, pages_alone=True):
    raise ValueError(f"it is {other[0]}. {other[1]}")


def is_size(value) -> bool:
  """Tells whether a value is an integer of at least 0; true and false are not integers.

  Example:
    >>> is_size(2), is_size(True), is_size(-1), is_size(2.0)
    (True, False, False, False)
  """
  return type(value) is int and value >= 0


def is_shape(value: Sequence[Any]) -> bool:
  """Tells whether all are sizes, and not more of them than an array can have."""
  return len(value) <= _MAX_DIMENSIONS and all(map(is_size, value))


def is_larger_than_any_array(shape: Sequence[int], dtype: np.dtype) -> bool:
  """Tells whether NumPy could not even describe an array.

  It multiplies the other sizes even where one of them is 0.
  """
  limit = _MAX_TENSOR_BYTES // dtype.itemsize
  for size in filter(None, shape):
    limit //= size
  return limit == 0
