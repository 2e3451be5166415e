"""The formats of checkpoints that other programs write, one module each.

  formats.of("bert/model.safetensors").open_weights("bert/model.safetensors").contents
  formats.of("bert_model.ckpt")      # None: a bundle of TensorFlow's, see `numpy_reader.py`

A file shows its format by its ending, or by a mark inside. Only this module imports the module of a
format, when such a file is met: a run that starts from a checkpoint of the original or of this
project loads none of them. A new format of weights is a row of `_WEIGHTS`, and a module with two
functions: `open_weights(path, family=None)` gives `Weights` of a file that is whole, `family` being
the `model_type` where no configuration says it; `read_facts(path)` gives what is known of the task,
as `reading.read_facts`. Both raise `CheckpointError`s.
"""

import importlib
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from bert.checkpoints.bundle_files import INDEX_SUFFIX, KERAS_SUFFIX, OBJECT_GRAPH
from bert.io import filesystem

SAFETENSORS_SUFFIX = ".safetensors"
SHARDS_SUFFIX = ".safetensors.index.json"  # of the index of several safetensors files
# Transformers' other files of weights, each with the index of several such files.
H5_NAMES = ("tf_model.h5", "tf_model.h5.index.json")
TORCH_NAMES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
H5_SUFFIXES = (".h5", ".h5.index.json")
TORCH_SUFFIXES = (".bin", ".pt", ".pth", ".bin.index.json")
CONFIG = "config.json"  # of transformers

_WEIGHTS = {
  KERAS_SUFFIX: "bert.checkpoints.keras_file",
  **dict.fromkeys(
    (SAFETENSORS_SUFFIX, SHARDS_SUFFIX, *H5_SUFFIXES, *TORCH_SUFFIXES),
    "bert.checkpoints.transformers_folder",
  ),
}
_MARKS = {
  OBJECT_GRAPH: "bert.checkpoints.object_based",  # a tensor in a bundle
  INDEX_SUFFIX: "bert.checkpoints.index_config",  # whose shapes are the configuration
  CONFIG: "bert.checkpoints.transformers_config",
}


class Weights(Protocol):
  """Open weights, under the original's names and in its layout.

  Attributes:
    contents: name -> (shape, type), sorted by name.
    do_lower_case: whether the model is uncased; None if that is not known.
  """

  @property
  def contents(self) -> Mapping[str, tuple[Sequence[int], Any]]:
    """See class."""

  @property
  def do_lower_case(self) -> bool | None:
    """See class."""

  def read(self, name: str) -> np.ndarray:
    """Reads one tensor; raises a `CheckpointError` if it is damaged."""


def of(path: str | os.PathLike) -> Any:
  """Returns the module of the format of a file; None for TensorFlow's and for unknown ones."""
  name = _row(path)
  # The prefix of a checkpoint may have any ending: its user chose it.
  if name is None or filesystem.exists(os.fsdecode(path) + INDEX_SUFFIX):
    return None
  return with_mark(name)


def with_mark(mark: str) -> Any:
  """Returns the module for an ending, or for a mark inside a file."""
  return importlib.import_module({**_WEIGHTS, **_MARKS}[mark])


def is_file_of_others(path: str | os.PathLike) -> bool:
  """Tells whether `of` knows the format of a file, by its name.

  Example:
    >>> is_file_of_others("bert/model.safetensors"), is_file_of_others("bert/model.ckpt-20")
    (True, False)
  """
  return _row(path) is not None


def _row(path: str | os.PathLike) -> str | None:
  return next((ending for ending in _WEIGHTS if os.fsdecode(path).endswith(ending)), None)


def is_folder_of_others(names: Collection[str]) -> bool:
  """Tells whether files of these names are a folder that transformers saved."""
  endings = (SAFETENSORS_SUFFIX, SHARDS_SUFFIX)
  return any(name.endswith(endings) or name in (*H5_NAMES, *TORCH_NAMES) for name in names)


def is_older_weights(name: str) -> bool:
  """Tells whether a file has transformers' weights of the time before safetensors, by its name.

  Example:
    >>> is_older_weights("tf_model-00001-of-00002.h5"), is_older_weights("training_args.bin")
    (True, False)
  """
  return name.startswith(("tf_model", "pytorch_model")) and is_file_of_others(name)


def find_weights(folder: str) -> str | None:
  """Returns the file with the weights in a folder that transformers saved; None without one."""
  is_theirs = is_folder_of_others(filesystem.list_folder(folder))
  return with_mark(SAFETENSORS_SUFFIX).find_weights(folder) if is_theirs else None


def describes_model(path: str | os.PathLike) -> bool:
  """Tells whether weights may be their own configuration, by the name of a file."""
  return os.fsdecode(path).endswith((KERAS_SUFFIX, INDEX_SUFFIX))
