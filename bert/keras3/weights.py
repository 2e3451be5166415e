"""Weights of Keras models by the original's variable names: where they come from, what fits.

  report = load(variables, "uncased_L-12_H-768_A-12", skip_mismatch=True)
  print(report.summary())

Nothing here needs TensorFlow: `bert/checkpoints/numpy_reader.py` reads the original's files in
plain Python.
"""

import dataclasses
import os
import re
from collections.abc import Callable, Mapping

import keras
import numpy as np
from absl import logging

from bert.checkpoints.numpy_reader import CheckpointReader, find_prefix
from bert.model.configuration import BertConfig

_TRAINING_STATE = re.compile(r"global_step$|loss_scale/|.*/adam_[mv]$")


@dataclasses.dataclass(frozen=True)
class LoadReport:
  """What `load` did, by the original's variable names.

  Attributes:
    source: the file or checkpoint.
    loaded: variables that took their value from it.
    missing: variables it does not have; they keep their random values.
    mismatched: (name, shape there, shape here) of those left out because the shapes differ.
    unexpected: what it has and the model has not (the state of a training run is not counted).
  """

  source: str
  loaded: list[str]
  missing: list[str]
  mismatched: list[tuple[str, tuple, tuple]]
  unexpected: list[str]

  def skipped(self) -> list[str]:
    """A line for each variable that keeps its random values."""
    lines = [
      f"{name}: {list(there)} there, {list(here)} here" for name, there, here in self.mismatched
    ]
    return lines + [f"{name}: not there" for name in self.missing]

  def summary(self) -> str:
    """A few lines for people."""
    wanted = len(self.loaded) + len(self.skipped())
    lines = [f"{self.source}: {len(self.loaded)} of {wanted} variables loaded."]
    lines += [f"  skipped, random: {line}" for line in self.skipped()]
    if self.unexpected:
      lines.append(f"  not used: {', '.join(self.unexpected)}")
    return "\n".join(lines)


def original_names(layer: keras.layers.Layer, scope: str) -> dict[str, keras.Variable]:
  """The weights of a layer by the original's names.

  They are the variables' paths, where the layer's own name gives way to `scope`.

  Args:
    layer: a layer that is built.
    scope: for instance `bert`; empty for variables without any, such as a classifier's.
  """
  names = {}
  for variable in layer.weights:
    name = variable.path.removeprefix(layer.path + "/")
    names[f"{scope}/{name}" if scope else name] = variable
  return names


# ---------------------------------------------------------------------------------------------
# Loading.


def load(
  variables: Mapping[str, keras.Variable],
  path: str | os.PathLike,
  skip_mismatch: bool = True,
  allowed_missing: tuple[str, ...] = (),
) -> LoadReport:
  """Gives variables their values in a file.

  Args:
    variables: name in the file -> variable.
    path: an original checkpoint's prefix or folder; a safetensors file that transformers saved, or
      its folder; or a `.keras` file.
    skip_mismatch: warn of variables that the file cannot give a value, rather than raise.
    allowed_missing: beginnings of names that may be missing without a warning.

  Raises:
    ValueError: the file cannot be used, or has nothing for these variables, or not `skip_mismatch`
      and something is missing or differs in shape. Nothing is assigned then.
  """
  shapes, read = open_weights(path)
  common = [name for name in variables if name in shapes]
  here = {name: tuple(variables[name].shape) for name in common}
  report = LoadReport(
    source=os.fspath(path),
    loaded=[name for name in common if here[name] == tuple(shapes[name])],
    missing=[name for name in variables if name not in shapes],
    mismatched=[(n, tuple(shapes[n]), here[n]) for n in common if here[n] != tuple(shapes[n])],
    unexpected=[
      name for name in shapes if name not in variables and not _TRAINING_STATE.match(name)
    ],
  )
  _check(report, variables, shapes, skip_mismatch, allowed_missing)
  for name in report.loaded:
    variables[name].assign(read(name))
  return report


def _check(report, variables, shapes, skip_mismatch, allowed_missing):
  """Raises or warns, as `load` says."""
  if not report.loaded:
    raise ValueError(
      f"{report.source} has nothing for this model, which looks for {_first(variables)}; "
      f"it has {_first(shapes)}. {' '.join(report.skipped()[:3])}"
    )
  skipped = [line for line in report.skipped() if not line.startswith(allowed_missing or ("\0",))]
  if not skipped:
    return
  what = f"{report.source}: {len(skipped)} variables are skipped and stay random:"
  text = "\n  ".join([what, *skipped])
  if not skip_mismatch:
    raise ValueError(text)
  logging.warning(text)


def _first(names) -> str:
  names = list(names)
  return ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")


def open_weights(
  path: str | os.PathLike,
) -> tuple[dict[str, tuple], Callable[[str], np.ndarray]]:
  """Shapes by name, and a function that reads a value.

  Raises:
    ValueError: it is no original checkpoint, no safetensors file, and no `.keras` file with a BERT
      in it.
  """
  if os.fspath(path).endswith(".keras"):
    variables = _read_keras_file(path)
    shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
    return shapes, lambda name: keras.ops.convert_to_numpy(variables[name])
  if _is_of_transformers(path):
    from bert.checkpoints import transformers_folder

    weights = transformers_folder.open_weights(path)
    return {name: tuple(shape) for name, (shape, _) in weights.contents.items()}, weights.read
  reader = CheckpointReader(find_prefix(path))
  return reader.shapes, reader.read


def _is_of_transformers(path) -> bool:
  """Whether it is a safetensors file, or a folder with one and without an original checkpoint."""
  if os.path.isdir(path):
    names = os.listdir(path)
    return any("safetensors" in name for name in names) and not any(
      name.endswith(".index") for name in names
    )
  return os.fspath(path).endswith((".safetensors", ".safetensors.index.json"))


def _read_keras_file(path) -> dict[str, keras.Variable]:
  """The variables of a BERT, by itself or inside of another model, in a `.keras` file."""
  from bert.keras3.encoder import BERT  # which imports this module

  model = keras.saving.load_model(path, compile=False, safe_mode=True)
  found = [layer for layer in (model, *model._flatten_layers()) if isinstance(layer, BERT)]
  if not found:
    raise ValueError(f"{path} holds {type(model).__name__} {model.name!r}, and no BERT in it.")
  return found[0].checkpoint_variables()


# ---------------------------------------------------------------------------------------------
# What lies beside weights.


def read_config(path: str | os.PathLike) -> BertConfig:
  """The sizes in the `bert_config.json`, or in transformers' `config.json`, beside weights.

  Raises:
    ValueError: there is none, or it is bad.
  """
  folder = os.fspath(path) if os.path.isdir(path) else os.path.dirname(os.fspath(path))
  original, other = (os.path.join(folder, name) for name in ("bert_config.json", "config.json"))
  if os.path.isfile(original):
    return BertConfig.from_json_file(original)
  if os.path.isfile(other):
    from bert.checkpoints import transformers_folder

    return BertConfig.from_dict(transformers_folder.read_config(other))
  raise ValueError(f"There is no {original}: make the model with BERT(...) of the right sizes.")


def vocabulary_sizes(path: str | os.PathLike) -> dict[str, int]:
  """`vocab_size` and `type_vocab_size` of weights; empty if they do not say."""
  if os.fspath(path).endswith(".keras"):
    return {}
  try:
    shapes, _ = open_weights(path)
  except ValueError:
    return {}  # loading will say it better
  tables = {"vocab_size": "word_embeddings", "type_vocab_size": "token_type_embeddings"}
  names = {size: f"bert/embeddings/{table}" for size, table in tables.items()}
  return {size: shapes[name][0] for size, name in names.items() if name in shapes}
