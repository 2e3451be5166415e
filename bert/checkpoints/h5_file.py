"""Weights of transformers' TensorFlow classes in HDF5, `tf_model.h5`.

  weights = open_weights("tf_model.h5", "bert")
  weights.tensors["bert.pooler.dense.weight"].shape, weights.read("bert.pooler.dense.weight")

Versions 2 to 4 of transformers wrote them with Keras 2: a group for each of the model's layers, in
it groups along the name of a weight, and at their end an array in one piece:

  /bert/tf_bert_for_masked_lm/bert/encoder/layer_._0/output/dense/kernel:0

Large models come in several files without the group and the model's name, and with a
`tf_model.h5.index.json` that says which weight is in which. `keras_weights.py` finds the names in
PyTorch.

Nothing is followed out of the file: links, external and virtual arrays are refused.
"""

import contextlib
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from bert.checkpoints import keras_weights, tensor_files, transformers_heads
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.tensor_files import TensorFile, TensorInfo
from bert.io import filesystem, other_formats

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_STATE = "optimizer_weights"  # group of what a whole model's file has beside the model
_MAX_NODES = 100_000  # groups and arrays; of a large BERT there are 2,000
_MAX_DEPTH = 32
_TYPES = "?bBhHiIlLqQefd"  # numbers of the types that all readers know, by NumPy's letters


def open_weights(path: str | os.PathLike, family: str) -> TensorFile:
  """Opens a `*.h5`, or several through their `*.h5.index.json`, by the names of PyTorch's classes.

  Args:
    path: of the file or of the index.
    family: `model_type`.

  Raises:
    CheckpointError: something is missing or damaged, or has no weight of the family. Values are not
      read.
  """
  return keras_weights.open_weights(path, H5File, family)


class H5File:
  """A file whose arrays have been found and checked; values are read one at a time.

  Attributes:
    path: of the file.
    tensors: path in the file -> TensorInfo.
  """

  def __init__(self, path: str | os.PathLike):
    """Finds the arrays.

    Raises:
      CheckpointError: the file is missing or damaged, or has something else than plain arrays.
    """
    self.path = os.fsdecode(path)
    with _opened(self.path) as h5:
      self.tensors = {name: _tensor_info(name, dataset) for name, dataset in _datasets(h5)}

  def read(self, name: str) -> np.ndarray:
    """Reads one array, as it lies there.

    Raises:
      CheckpointError: no array has this name, or the file has changed.
    """
    if name not in self.tensors:
      raise CheckpointError(f"{self.path} has no tensor {name!r}.")
    with _opened(self.path) as h5:
      return h5[name][()].astype(self.tensors[name].dtype.newbyteorder("="), copy=False)


def read_class(path: str | os.PathLike) -> str | None:
  """Returns PyTorch's name of the class that a `*.h5` is of, by its names; None if that is unknown.

  Raises:
    CheckpointError: see `H5File`.
  """
  parts = {part: None for name in H5File(path).tensors for part in name.split("/")}
  return next(filter(None, map(transformers_heads.class_named, parts)), None)


# ---------------------------------------------------------------------------------------------
# HDF5.


@contextlib.contextmanager
def _opened(path: str) -> Iterator[Any]:
  """Opens a file with h5py.

  Raises:
    CheckpointError: see `H5File`; also for errors within the block.
  """
  import h5py  # installed with Keras and with TensorFlow

  try:
    with filesystem.open_to_read(path) as file:
      start = file.read(max(len(_SIGNATURE), other_formats.LONGEST))
      tensor_files.check_is_no_page(start)
      if not start.startswith(_SIGNATURE):
        raise ValueError(f"it begins with {start[:8]!r}, not as HDF5 does.")
      file.seek(0)
      with h5py.File(file, "r") as h5:
        yield h5
  except OSError as error:
    if error.errno is None:  # of HDF5, about what is in the file
      raise CheckpointError(f"{path} is not a whole file of weights: {error}.") from None
    raise CheckpointError(f"{path} cannot be read: {error.strerror}.") from None
  except (ValueError, KeyError, RuntimeError, TypeError, OverflowError) as error:
    reason = error.args[0] if error.args else type(error).__name__  # a KeyError's has quotes
    raise CheckpointError(f"{path} is not a whole file of weights: {reason}") from None


def _datasets(h5) -> Iterator[tuple[str, Any]]:
  """Path and array of all arrays of a model, along plain links alone."""
  import h5py

  count, groups = 0, [("", h5, 0)]
  while groups:
    prefix, group, depth = groups.pop()
    for name in group:
      path, count = prefix + name, count + 1
      if count > _MAX_NODES or depth > _MAX_DEPTH:
        raise ValueError("its groups are nested too deeply, or are too many.")
      link = group.get(name, getlink=True)
      if not isinstance(link, h5py.HardLink):
        raise ValueError(f"{path!r:.200} is a link to elsewhere, which is not followed.")
      node = group[name]
      if isinstance(node, h5py.Dataset):
        yield path, node
      elif isinstance(node, h5py.Group) and path != _STATE:
        groups.append((f"{path}/", node, depth + 1))


def _tensor_info(path: str, dataset) -> TensorInfo:
  """Returns type and shape of an array, which must lie in one piece in the file.

  So no array can be larger than the file.
  """
  dtype, shape = dataset.dtype, dataset.shape
  if dtype.char not in _TYPES or dtype.names:
    raise ValueError(f"{path!r:.200} is of type {dtype!s:.80}, not of numbers.")
  if shape is None or not tensor_files.is_shape(shape):
    raise ValueError(f"{path!r:.200} has no shape.")
  is_elsewhere = dataset.is_virtual or dataset.external
  if is_elsewhere or dataset.chunks or dataset.compression:
    raise ValueError(f"{path!r:.200} does not lie in the file in one piece, uncompressed.")
  if dataset.id.get_storage_size() != math.prod(shape) * dtype.itemsize:
    raise ValueError(f"{path!r:.200} of shape {list(shape)!r:.80} was never written in full.")
  return TensorInfo(dtype, shape)
