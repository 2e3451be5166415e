"""Files of transformers' TensorFlow classes, by the names and in the layout of its PyTorch classes.

  weights = open_weights("tf_model.h5", H5File, "bert")
  weights.tensors["bert.pooler.dense.weight"].shape, weights.read("bert.pooler.dense.weight")

A `tf_model.h5`, and a `model.safetensors` that these classes saved, have the names of Keras's
weights, the latter without the model's:

  tf_bert_for_masked_lm/bert/encoder/layer_._0/output/dense/kernel:0

Names end with those of the modules in PyTorch, which `transformers_names.py` finds among the
family's. Kernels are transposed there, and those of versions 4.1 and 4.2 have the heads of
attention as a dimension of their own.
"""

import functools
import math
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bert.checkpoints import transformers_names
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.load_report import abbreviate
from bert.checkpoints.tensor_files import ShardedFiles, TensorFile


class TensorInfo(NamedTuple):
  """An array in a file, and what it is in PyTorch's layout."""

  dtype: np.dtype
  shape: tuple[int, ...]  # in PyTorch's layout
  matrix: tuple[int, ...]  # its shape in the file, with the heads of attention joined
  is_transposed: bool  # whether `shape` is the reverse of `matrix`
  name: str  # in the file


def open_weights(
  path: str | os.PathLike,
  open_file: Callable[[str], TensorFile],
  family: str,
) -> TensorFile:
  """Opens a file of Keras's weights, or several through their `*.index.json`.

  Args:
    path: of the file or of the index.
    open_file: opens a file; its tensors have the names and the layout of Keras.
    family: `model_type`.

  Raises:
    CheckpointError: something is missing or damaged, or has no weight of the family. Values are
      not read.
  """

  def open_one(path: str) -> KerasWeights:
    return KerasWeights(open_file(path), family)

  if os.fsdecode(path).endswith(".index.json"):
    named = functools.partial(_key_of, family=family)
    file: TensorFile = ShardedFiles(path, open_one, named)
  else:
    file = open_one(os.fsdecode(path))
  if not any(transformers_names.is_of_family(name, family) for name in file.tensors):
    names = abbreviate(list(file.tensors), 3) or "none"
    raise CheckpointError(
      f"{file.path} has no weights of a {family} (model_type) of transformers. Its names: {names}. "
      "For a model of Keras alone there is convert_checkpoint.py from_keras, which reads the file "
      'that model.save("model.keras") writes.'
    )
  own_bias, bias_of_decoder = transformers_names.biases_of_words(family)
  if bias_of_decoder in file.tensors:  # ALBERT's, which has both and does not use its own there
    file.tensors.pop(own_bias, None)  # type: ignore[attr-defined]
  return file


def is_of_keras(name: str) -> bool:
  """Tells whether a tensor has the name of a weight of Keras, which TensorFlow numbers.

  Example:
    >>> is_of_keras("bert/pooler/dense/kernel:0"), is_of_keras("bert.pooler.dense.weight")
    (True, False)
  """
  return name.endswith(":0")


class KerasWeights:
  """A file of Keras's weights; values are read one at a time.

  Attributes:
    path: of the file.
    tensors: PyTorch's name -> TensorInfo.
  """

  def __init__(self, file: TensorFile, family: str):
    """Names the tensors of an open file.

    Raises:
      CheckpointError: two of them are the same one.
    """
    self.path = file.path
    self._file = file
    try:
      self.tensors = _named(file.tensors, family)
    except ValueError as reason:
      raise CheckpointError(f"{self.path}: {reason}") from None

  def read(self, name: str) -> np.ndarray:
    """Reads one tensor, in PyTorch's layout.

    Raises:
      CheckpointError: no tensor has this name, or the file has changed.
    """
    if name not in self.tensors:
      raise CheckpointError(f"{self.path} has no tensor {name!r}.")
    info = self.tensors[name]
    values = self._file.read(info.name).reshape(info.matrix)
    return values.T if info.is_transposed else values


def _named(tensors: Mapping[str, Any], family: str) -> dict[str, TensorInfo]:
  """Names tensors as PyTorch does, and describes them in its layout."""
  found: dict[str, TensorInfo] = {}
  for path, (dtype, shape, *_) in tensors.items():
    key, is_transposed = transformers_names.key_of_weight(path, family)
    bias = tensors.get(f"{path.rpartition('/')[0]}/bias:0")
    matrix = _without_heads(shape, bias[1] if bias else ())
    there = matrix[::-1] if is_transposed else matrix
    info = TensorInfo(dtype.newbyteorder("="), there, matrix, is_transposed, path)
    twin = found.setdefault(key, info)
    # Keras stores a weight with each layer that uses it.
    if twin.shape != info.shape or _below_layer(twin.name) != _below_layer(path):
      raise ValueError(f"{twin.name!r:.200} and {path!r:.200} are both {key}.")
  return found


def _key_of(path: str, family: str) -> str:
  return transformers_names.key_of_weight(path, family).name


def _below_layer(path: str) -> str:
  return path.partition("/")[2]


def _without_heads(shape: tuple[int, ...], bias: tuple[int, ...]) -> tuple[int, ...]:
  """Joins the dimensions for heads and their size, of a kernel or a bias.

  Args:
    shape: of a weight.
    bias: the shape of the bias beside a kernel, or of the bias itself.

  Example:
    >>> _without_heads((768, 12, 64), (12, 64)), _without_heads((12, 64, 768), (768,))
    ((768, 768), (768, 768))
    >>> _without_heads((12, 64), (12, 64)), _without_heads((768, 3072), (3072,))
    ((768,), (768, 3072))
  """
  if shape == bias:
    return (math.prod(shape),)
  if len(shape) == 3 and shape[3 - len(bias) :] == bias:
    return math.prod(shape[: 3 - len(bias)]), math.prod(bias)
  return shape
