"""A `.keras` file, which Keras alone reads: scripts get the command that converts it."""

import importlib
import os
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from bert.checkpoints.bundle_files import CheckpointError


def _refuse(path: str | os.PathLike, family: str | None = None) -> NoReturn:
  """Raises a CheckpointError that names the command."""
  del family
  path = os.fsdecode(path)
  raise CheckpointError(
    f"{path} is a whole model of Keras. Make a checkpoint of it first: "
    f"python convert_checkpoint.py from_keras --init_checkpoint={path} --output_dir=NEW_FOLDER"
  )


# The functions of a format (`formats.py`), and of what describes a model (`config_files.py`).
open_weights = read_facts = read_config = _refuse


def load_model(path: str) -> Any:
  """Loads the model in a `.keras` file, without what it was compiled with.

  Raises:
    CheckpointError: the file is damaged, or has a class that Keras does not know.
  """
  import keras

  importlib.import_module("bert.keras3")  # which registers its classes
  try:
    return keras.models.load_model(path, compile=False)
  except Exception as error:  # of the archive, of HDF5, or of any class
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    raise CheckpointError(f"{path} cannot be loaded by Keras: {reason}") from error


def open_variables(
  path: str,
) -> tuple[dict[str, tuple[list[int], np.dtype]], Callable[[str], np.ndarray]]:
  """Opens the BERT in a `.keras` file.

  Returns:
    Name -> shape and type, and a function that reads a value by name; both as `reading.Checkpoint`.
  """
  saving = importlib.import_module("bert.keras3.saving")
  variables = saving.checkpoint_variables(load_model(path))
  contents = {name: (list(v.shape), np.dtype(np.float32)) for name, v in variables.items()}
  return contents, lambda name: saving.float32(name, variables[name])


def describe(path: str) -> Any:
  """Describes the BERT in a `.keras` file, see `keras_model.describe`."""
  return importlib.import_module("bert.keras3.saving").describe(load_model(path))
