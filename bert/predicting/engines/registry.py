"""The engines by name; only the one that is asked for is imported.

  engine = load("onnxruntime", "export/onnx/model.onnx", threads=2)

A module of an engine has a function `load(path, ...)`, which returns an `engine.Engine`.
"""

import importlib
import importlib.util
import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from bert.io import installation
from bert.predicting.engines.engine import Engine


class EngineKind(NamedTuple):
  """An engine that may be installed."""

  module: str  # of this project
  library: str  # what it needs
  extra: str = ""  # of this project, with that library; "" where it is always installed
  format: str = ""  # of `exporting.model_folder.FILES`, which it reads; "" of checkpoints


_ENGINES = {
  "tensorflow": EngineKind("bert.predicting.engines.tensorflow", "tensorflow"),
  "onnxruntime": EngineKind("bert.predicting.engines.onnxruntime", "onnxruntime", "onnx", "onnx"),
  "litert": EngineKind("bert.predicting.engines.litert", "ai_edge_litert", "litert", "litert"),
}

NAMES = tuple(_ENGINES)

FORMATS = {name: kind.format for name, kind in _ENGINES.items() if kind.format}
"""Engine -> the format of an export that it reads."""


def is_installed(name: str) -> bool:
  """Returns whether the library of an engine is installed; imports nothing."""
  return importlib.util.find_spec(_ENGINES[name].library) is not None


def load(name: str, path: str, **options: Any) -> Engine:
  """Loads a model with an engine.

  Args:
    name: of the engine.
    path: of the model, in the engine's format.
    **options: of the engine.

  Raises:
    MissingExtraError: the engine is not installed; the message says how to install it.
    ValueError: there is no such engine, or the model cannot be loaded.
  """
  return module_of(name).load(path, **options)


def module_of(name: str) -> Any:
  """Imports the module of an engine; see `load` for the errors."""
  check_name(name)
  kind = _ENGINES[name]
  if not kind.extra:
    return importlib.import_module(kind.module)
  with installation.extra(kind.extra, f"the engine {name}"):
    return importlib.import_module(kind.module)


def format_of(name: str, folder: str | os.PathLike) -> str:
  """Returns the format that an engine reads in an export; `folder` is for the message.

  Raises:
    ValueError: the engine does not exist, or reads checkpoints alone.
  """
  check_name(name)
  if name not in FORMATS:
    raise ValueError(
      f"The engine {name} reads checkpoints, but {os.fspath(folder)} is an export of other "
      f"formats: give the folder of the run, or one of the engines {', '.join(FORMATS)}."
    )
  return FORMATS[name]


def check_name(name: str, known: Iterable[str] = NAMES) -> None:
  """Raises a ValueError for an engine that does not exist."""
  if name not in known:
    raise ValueError(f"There is no engine {name!r}; known are {', '.join(known)}.")


def check_not_of_export(
  folder: str | os.PathLike, engine: str = "auto", precision: str = "float32"
) -> None:
  """Raises a ValueError where a folder is no export, and only an export has what is asked for.

  Args:
    folder: of a run, a checkpoint or a SavedModel.
    engine: one of `NAMES`, or auto.
    precision: of the weights.
  """
  path = os.fspath(folder)
  if precision != "float32":
    raise ValueError(
      f"{path} is no export: precision={precision} is of models that export_hub.py writes, with "
      "--format=onnx or litert."
    )
  if engine in FORMATS:
    raise ValueError(
      f"{path} is no export, and only the engine tensorflow reads it. For {engine}: export_hub.py "
      f"--init_checkpoint={path} --format={FORMATS[engine]} --export_dir=EXPORT."
    )
