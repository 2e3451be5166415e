"""The engines by name; only the one that is asked for is imported.

  engine = load("onnxruntime", "export/onnx/model.onnx", threads=2)

A module of an engine has a function `load(path, ...)`, which returns an `engine.Engine`.
"""

import importlib
import importlib.util
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bert.exporting import model_files
from bert.io import filesystem, installation
from bert.predicting.engines.engine import Engine


class EngineKind(NamedTuple):
  """An engine that may be installed."""

  module: str  # of this project
  library: str  # what it needs
  extra: str = ""  # of this project, with that library; "" where it is always installed
  format: str = ""  # of `exporting.model_files.FILES`, which it reads
  computed: Mapping[str, str] = {}  # precision -> that of the file, if not each has its own file

  @property
  def precisions(self) -> Mapping[str, str]:
    """Precision -> the precision of the file, among the `FILES` of the format."""
    return self.computed or {name: name for name in model_files.FILES.get(self.format, ())}


_ENGINES = {
  "onnxruntime": EngineKind("bert.predicting.engines.onnxruntime", "onnxruntime", "onnx", "onnx"),
  "openvino": EngineKind(
    "bert.predicting.engines.openvino",
    "openvino",
    "openvino",
    "onnx",
    computed={"float32": "float32", "bfloat16": "float32"},
  ),
  "litert": EngineKind("bert.predicting.engines.litert", "ai_edge_litert", "litert", "litert"),
  "tensorflow": EngineKind(
    "bert.predicting.engines.tensorflow", "tensorflow", format=model_files.SAVED_MODEL
  ),
}

NAMES = tuple(_ENGINES)

FORMATS = {name: kind.format for name, kind in _ENGINES.items()}
"""Engine -> the format of an export that it reads."""

PRECISIONS = tuple(dict.fromkeys(name for kind in _ENGINES.values() for name in kind.precisions))
"""Those of the models of exports."""


class ExportedModel(NamedTuple):
  """A way to compute an export."""

  engine: str
  precision: str
  file: str  # relative to the folder


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


def engine_for(precision: str) -> str:
  """Returns the first engine that computes exports in a precision, for messages."""
  able = [name for name in FORMATS if precision in _ENGINES[name].precisions]
  return (able or list(FORMATS))[0]


def models_in(folder: str | os.PathLike) -> Iterator[ExportedModel]:
  """Yields the ways to compute an export, whether the engine is installed or not."""
  for name, kind in _ENGINES.items():
    for precision, of_file in kind.precisions.items():
      file = model_files.FILES[kind.format][of_file]
      if filesystem.is_file(os.path.join(folder, file)):
        yield ExportedModel(name, precision, file)


def model_file(name: str, folder: str | os.PathLike, precision: str = "float32") -> str:
  """Returns the path of the model that an engine reads in an export.

  Raises:
    ValueError: the engine does not exist, or does not compute in that precision; or the folder does
      not have the model.
  """
  check_name(name)
  kind = _ENGINES[name]
  if name == "tensorflow" and not filesystem.is_file(
    os.path.join(folder, model_files.FILES[kind.format]["float32"])
  ):
    others = ", ".join(each for each in NAMES if each != name)
    raise ValueError(
      f"The engine {name} reads checkpoints and SavedModels, but {os.fsdecode(folder)} is an "
      f"export of other formats: give the directory of the run, or one of the engines {others}."
    )
  if kind.computed and precision not in kind.computed:
    raise ValueError(
      f"The engine {name} does not compute in precision={precision}, but in "
      f"{' and '.join(kind.computed)}."
    )
  return model_files.model_file(folder, kind.format, kind.precisions.get(precision, precision))


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
  path = os.fsdecode(folder)
  if precision != "float32":
    raise ValueError(
      f"{path} is no export: precision={precision} is of models that export_hub.py writes, with "
      "--format=onnx or litert."
    )
  if engine not in ("auto", "tensorflow"):
    raise ValueError(
      f"{path} is no export, and only the engine tensorflow reads it. For {engine}: export_hub.py "
      f"--init_checkpoint={path} --format={FORMATS[engine]} --export_dir=EXPORT."
    )
