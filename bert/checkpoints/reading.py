"""Names, shapes and values in a checkpoint, whatever its format.

  checkpoint = open_checkpoint("out/model.ckpt-20")
  checkpoint.contents["bert/pooler/dense/bias"]  # ([768], dtype('float32'))
  checkpoint.read("bert/pooler/dense/bias")

Checkpoints of the original and of this project (`bundle_files.py`) are read by `numpy_reader.py`;
those that other programs wrote, and SavedModels, by the modules of their formats (`formats.py`).
No TensorFlow is needed here.
Opening one checks that its files are whole; values are read and checked one tensor at a time.
"""

import os
import re
from collections.abc import Iterable
from typing import Any

import numpy as np

from bert.checkpoints import bundle_files, formats
from bert.checkpoints.bundle_files import OBJECT_GRAPH, CheckpointError
from bert.checkpoints.numpy_reader import CheckpointReader
from bert.io import tokenizer_settings

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
  if theirs := formats.of(prefix):
    return ForeignWeights(prefix, theirs.open_weights(prefix, family))
  bundle = Bundle(prefix)
  if OBJECT_GRAPH not in bundle.contents:
    return bundle
  weights = formats.with_mark(OBJECT_GRAPH).named(bundle)
  return ForeignWeights(prefix, weights) if weights else bundle


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
  if theirs := formats.of(prefix):
    return theirs.read_facts(prefix)
  return read_state(prefix).get("fingerprint", {})


# ---------------------------------------------------------------------------------------------
# Open checkpoints.


class Checkpoint:
  """An open checkpoint.

  Attributes:
    prefix: of its files; of a format with one file its path.
    contents: see `Contents`.
  """

  prefix: str
  contents: Contents

  @property
  def do_lower_case(self) -> bool | None:
    """Whether its model is uncased: as a run stored it, else as files of transformers state it.

    None if that is not known.
    """
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

  def read(self, name: str) -> np.ndarray:
    """Reads one tensor; a CheckpointError if it is damaged."""
    raise NotImplementedError


class Bundle(CheckpointReader, Checkpoint):
  """A checkpoint of TensorFlow's format, with the names in it."""

  def __init__(self, prefix: str):
    """See `open_checkpoint`."""
    super().__init__(prefix)
    bundle_files.check_sidecar(prefix)


class ForeignWeights(Checkpoint):
  """Weights in a format of another program, under the original's names."""

  def __init__(self, prefix: str, weights: formats.Weights):
    """Takes open weights."""
    self.prefix, self._weights = prefix, weights
    self.contents = {name: (list(s), dtype) for name, (s, dtype) in weights.contents.items()}

  @property
  def do_lower_case(self) -> bool | None:
    """See base class."""
    return self._weights.do_lower_case

  def read(self, name: str) -> np.ndarray:
    """See base class; a format without checksums finds only changes of a file's length."""
    return self._weights.read(name)


def first_line(error: BaseException) -> str:
  """Returns the message of an error in one line, without the names of TensorFlow's operations."""
  text = getattr(error, "message", None) or str(error)
  text = re.sub(r"\{\{.*?\}\} ?| ?\[Op:\w+\]", "", text).strip()
  return text.splitlines()[0] if text else type(error).__name__


def check_named(prefix: str, names) -> None:
  """Checks that tensors have variables' names; a CheckpointError for those of Python attributes."""
  if OBJECT_GRAPH in names:
    raise CheckpointError(formats.with_mark(OBJECT_GRAPH).about_unnamed(prefix))
