"""Names, shapes and values in a checkpoint, whatever its format.

  checkpoint = open_checkpoint("out/model.ckpt-20")
  checkpoint.contents["bert/pooler/dense/bias"]  # ([768], dtype('float32'))
  checkpoint.read("bert/pooler/dense/bias")

Checkpoints of the original and of this project (`bundle_files.py`) are read by `numpy_reader.py`;
SavedModels and checkpoints of TensorFlow 2 get the original's names by `object_based.py`, and files
of transformers by `transformers_folder.py`. A run that starts from a checkpoint of the original
loads neither. No TensorFlow is needed here.
Opening one checks that its files are whole; values are read and checked one tensor at a time.
"""

import os
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from bert.checkpoints import bundle_files, formats
from bert.checkpoints.bundle_files import (
  INDEX_SUFFIX,
  KERAS_SUFFIX,
  OBJECT_GRAPH,
  CheckpointError,
)
from bert.checkpoints.numpy_reader import CheckpointReader
from bert.io import filesystem, tokenizer_settings

Contents = dict[str, tuple[list[int], np.dtype]]  # name -> (shape, dtype), sorted by name


def open_checkpoint(prefix: str, family: str | None = None) -> "Checkpoint":
  """Opens a checkpoint, after checking that its files are whole.

  The values are not read: this takes milliseconds for a checkpoint of any size.

  Args:
    prefix: the checkpoint's prefix, for instance `out/model.ckpt-20`; a file of transformers'
      weights, `model.safetensors` or `model.safetensors.index.json`.
    family: `model_type` of a file of transformers without a `config.json` beside it.

  Raises:
    CheckpointError: a file is missing, damaged, or does not belong to the others.
  """
  if is_of_transformers(prefix):
    from bert.checkpoints import transformers_folder

    return Checkpoint(prefix, transformers_folder.open_weights(prefix, family))
  reader = CheckpointReader(prefix)
  bundle_files.check_sidecar(prefix)
  if OBJECT_GRAPH in reader.contents:
    from bert.checkpoints import object_based

    return Checkpoint(prefix, object_based.named(reader) or reader)
  return Checkpoint(prefix, reader)


def is_of_transformers(path: str) -> bool:
  """Tells whether a file has weights of transformers, by its name.

  Raises:
    CheckpointError: it is a `.keras` file, which Keras alone reads.
  """
  # The prefix of a checkpoint may have any ending: its user chose it.
  if not formats.is_file_of_others(path) or filesystem.exists(path + INDEX_SUFFIX):
    return False
  if path.endswith(KERAS_SUFFIX):
    formats.refuse_keras(path)
  return True


def names_and_shapes(prefix: str) -> Contents:
  """Returns name, shape and type of each tensor of a checkpoint, see `open_checkpoint`.

  A SavedModel lists its variables by their own names, not by the keys under which they are stored.
  """
  return open_checkpoint(prefix).contents


def read_tensors(prefix: str, names: Iterable[str]) -> dict[str, np.ndarray]:
  """Reads values of any model.

  Args:
    prefix: the checkpoint's prefix.
    names: a subset of those returned by `names_and_shapes`.

  Raises:
    CheckpointError: a file is damaged.
  """
  checkpoint = open_checkpoint(prefix)
  return {name: checkpoint.read(name) for name in names}


def read_state(prefix: str) -> dict[str, Any]:
  """The `state` given to `save`; empty for a checkpoint without a sidecar, as the original's.

  Raises:
    CheckpointError: the sidecar is damaged, or of a newer version of this project.
  """
  return bundle_files.read_sidecar(prefix).get("state", {})


def read_facts(prefix: str) -> dict[str, Any]:
  """What is known of the task of a model: the fingerprint of its run, or of transformers' folders
  what their configuration says; empty for other checkpoints.

  Raises:
    ValueError: the sidecar or the configuration is damaged.
  """
  if is_of_transformers(prefix):
    from bert.checkpoints import transformers_folder

    return transformers_folder.read_facts(prefix)
  return read_state(prefix).get("fingerprint", {})


class Checkpoint:
  """An open checkpoint.

  Attributes:
    prefix: of its files; of a format with one file its path.
    contents: see `Contents`.
  """

  def __init__(self, prefix: str, weights: Any):
    """Takes open weights: `contents` and `read`, of another program's also `do_lower_case`."""
    self.prefix, self._weights = prefix, weights
    self.contents: Contents = {n: (list(shape), t) for n, (shape, t) in weights.contents.items()}

  def read(self, name: str) -> np.ndarray:
    """Reads one tensor; a CheckpointError if it is damaged.

    A format without checksums finds only changes of a file's length.
    """
    return self._weights.read(name)

  @property
  def do_lower_case(self) -> bool | None:
    """Whether its model is uncased: as a run stored it, else as files of transformers state it.

    None if that is not known.
    """
    if not isinstance(self._weights, CheckpointReader):
      return self._weights.do_lower_case
    stored = self.facts.get("do_lower_case")
    if isinstance(stored, bool):
      return stored
    return tokenizer_settings.in_folder(os.path.dirname(self.prefix)).do_lower_case

  @property
  def state(self) -> dict[str, Any]:
    """See `read_state`."""
    return read_state(self.prefix)

  @property
  def facts(self) -> dict[str, Any]:
    """See `read_facts`."""
    return read_facts(self.prefix)


def first_line(error: BaseException) -> str:
  """Returns the message of an error in one line, without the names of TensorFlow's operations."""
  text = getattr(error, "message", None) or str(error)
  text = re.sub(r"\{\{.*?\}\} ?| ?\[Op:\w+\]", "", text).strip()
  return text.splitlines()[0] if text else type(error).__name__


def check_named(prefix: str, names) -> None:
  """Checks that tensors have variables' names; a CheckpointError for those of Python attributes."""
  if OBJECT_GRAPH in names:
    from bert.checkpoints import object_based

    raise CheckpointError(object_based.about_unnamed(prefix))
