"""A `.keras` file, which Keras alone reads: scripts get the command that converts it."""

import importlib
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from bert.checkpoints.bundle_files import CheckpointError


def refuse(path: str) -> NoReturn:
  """Raises a CheckpointError that names the command."""
  raise CheckpointError(
    f"{path} is a whole model of Keras. Make a checkpoint of it first: "
    f"python convert_checkpoint.py from_keras --init_checkpoint={path} --output_dir=NEW_FOLDER"
  )


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
