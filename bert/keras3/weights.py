"""Loads weights of Keras models from files, by the original's variable names.

  report = load(variables, "uncased_L-12_H-768_A-12", skip_mismatch=True)
  print(report.summary())

It needs no TensorFlow: `bert/checkpoints/numpy_reader.py` reads the original's files with NumPy.
"""

import importlib
import os
from collections.abc import Callable, Mapping

import keras
import numpy as np
from absl import logging

from bert.checkpoints import (
  model_files,
  model_garden,
  model_source,
  transformers_folder,
)
from bert.checkpoints.bundle_files import IN_SAVED_MODEL, KERAS_SUFFIX, CheckpointError
from bert.checkpoints.load_report import (
  LoadReport,
  Mismatch,
  abbreviate,
  encoder_scope,
  is_training_state,
)
from bert.checkpoints.model_source import Kind
from bert.checkpoints.numpy_reader import CheckpointReader, find_prefix
from bert.io.wording import counted
from bert.keras3 import saving
from bert.model import families
from bert.model.configuration import BertConfig


def original_names(layer: keras.layers.Layer, scope: str) -> dict[str, keras.Variable]:
  """Returns the weights of a layer by the original's names.

  A name is the variable's path with the layer's name replaced by `scope`.

  Args:
    layer: a built layer.
    scope: such as `bert`; empty for variables without a scope, such as those of a classifier.
  """
  names = {}
  for variable in layer.weights:
    name = variable.path.removeprefix(layer.path + "/")
    names[f"{scope}/{name}" if scope else name] = variable
  return names


# ---------------------------------------------------------------------------------------------
# Loading.

_GENERATOR, _GENERATOR_HEAD = "generator/", "generator_predictions/"  # of ELECTRA


def load(
  variables: Mapping[str, keras.Variable],
  path: str | os.PathLike,
  skip_mismatch: bool = True,
  allowed_missing: tuple[str, ...] = (),
  family: str | None = None,
  warn: Callable[[str], None] | None = None,
) -> LoadReport:
  """Loads variables from a file.

  Args:
    variables: name in the file -> variable.
    path: an original checkpoint's prefix or folder; a file of weights that transformers saved, or
      its folder; or a `.keras` file.
    skip_mismatch: warn of variables that are missing or differ in shape; otherwise raise an error.
    allowed_missing: prefixes of names that may be missing without a warning.
    family: `model_type` of a file of transformers without a `config.json` beside it.
    warn: logs the warning; by default absl does.

  Raises:
    ValueError: the file cannot be read or contains none of the variables; or `skip_mismatch` is
      False and a variable is missing or differs in shape. No variable is assigned then.
  """
  shapes, read = open_weights(path, family)
  _check_family(variables, shapes, path)
  places = _places(variables, shapes)
  shapes = {name: shapes[place] for name, place in places.items()}
  common = [name for name in variables if name in shapes]
  here = {name: tuple(variables[name].shape) for name in common}
  report = LoadReport(
    source=os.fsdecode(path),
    loaded=[name for name in common if here[name] == tuple(shapes[name])],
    missing=[name for name in variables if name not in shapes],
    mismatched=[
      Mismatch(name, str(list(shapes[name])), str(list(here[name])))
      for name in common
      if here[name] != tuple(shapes[name])
    ],
    unexpected=[name for name in shapes if name not in variables and not is_training_state(name)],
  )
  _check(report, variables, shapes, skip_mismatch, allowed_missing, warn)
  for name in report.loaded:
    variables[name].assign(read(places[name]))
  return report


def _check_family(wanted, found, path) -> None:
  """Raises a ValueError if the names are those of models of two families."""
  ours, theirs = families.family_of_variables(wanted), families.family_of_variables(found)
  if ours and theirs and ours is not theirs:
    raise ValueError(
      f"{os.fsdecode(path)} has a model of {theirs.title}, but this is one of {ours.title}, whose "
      "layers would get none of its weights. BERT.from_checkpoint, and from_pretrained of the "
      "models with heads, make the right one."
    )


def _places(wanted, found) -> dict[str, str]:
  """Maps the model's name of each variable in a file to its name there.

  They differ in checkpoints of ELECTRA: the name of a head's task is free, and a model with the
  head for masked tokens is the generator, if the file has both models of pre-training.
  """
  places = {name: name for name in found}
  if has_generator(found) and any(name.startswith(_GENERATOR_HEAD) for name in wanted):
    scope = encoder_scope(wanted)
    discriminator = [name for name in places if name.startswith(scope)]
    for name in discriminator:
      if not name.startswith(f"{scope}embeddings/"):
        del places[name]
    own = [name for name in found if name.startswith(_GENERATOR)]
    places |= {scope + name.removeprefix(_GENERATOR): places.pop(name) for name in own}
  task, theirs = _task_scope(wanted), _task_scope(found)
  if task and theirs:
    own = [name for name in found if name.startswith(theirs)]
    places |= {task + name.removeprefix(theirs): places.pop(name) for name in own}
  return places


def has_generator(names) -> bool:
  """Checks whether a checkpoint has the generator of an ELECTRA beside the discriminator."""
  return any(name.startswith(_GENERATOR) for name in names)


def _task_scope(names) -> str | None:
  """Finds the scope of the only head of an ELECTRA."""
  heads = [name for name in names if name.startswith("task_specific/")]
  scopes = {"/".join(name.split("/")[:2]) + "/" for name in heads}
  return scopes.pop() if len(scopes) == 1 else None


def _check(report, variables, shapes, skip_mismatch, allowed_missing, warn):
  """Raises or warns as described in `load`."""
  if not report.loaded:
    raise ValueError(
      f"{report.source} has no variable of this model. The model needs "
      f"{abbreviate(list(variables))}; the file has {abbreviate(list(shapes))}. "
      f"{' '.join(report.skipped()[:3])}"
    )
  skipped = [line for line in report.skipped() if not line.startswith(allowed_missing or ("\0",))]
  if not skipped:
    return
  reason = " (they are missing, or the shapes did not match)" if report.mismatched else ""
  count = counted(len(skipped), "variable")
  summary = f"{report.source}: {count} skipped, left random{reason}:"
  text = "\n  ".join([summary, *skipped])
  if not skip_mismatch:
    raise ValueError(text)
  (warn or logging.warning)(text)


def open_weights(
  path: str | os.PathLike, family: str | None = None
) -> tuple[dict[str, tuple], Callable[[str], np.ndarray]]:
  """Opens a file: shapes by name, and a function that reads a value by name; see `load`.

  Raises:
    ValueError: the path is not an original checkpoint, a file of weights that transformers saved,
      or a `.keras` file that contains a BERT.
  """
  kind, path = model_source.located(path)
  if path.endswith(KERAS_SUFFIX):
    variables = saving.checkpoint_variables(load_model(path))
    shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
    return shapes, lambda name: saving.float32(name, variables[name])
  prefix = os.path.join(path, IN_SAVED_MODEL) if kind is Kind.SAVED_MODEL else path
  if kind is Kind.SAVED_MODEL and model_garden.holds_encoder(prefix):
    kind = Kind.CHECKPOINT
  if kind in (Kind.SAVED_MODEL, Kind.EXPORT):
    raise ValueError(
      f"{path} is an export, which Keras reads as keras.layers.TFSMLayer. For a model with its own "
      "layers make a checkpoint of it: convert_checkpoint.py from_saved_model."
    )
  if kind in (Kind.FILE, Kind.TRANSFORMERS):
    weights = transformers_folder.open_weights(path, family)
    return {name: tuple(shape) for name, (shape, _) in weights.contents.items()}, weights.read
  prefix = find_prefix(prefix)
  reader = model_garden.open_weights(prefix) or CheckpointReader(prefix)
  return reader.shapes, reader.read


def load_model(path: str) -> keras.Model:
  """Loads the model in a `.keras` file, without what it was compiled with.

  Raises:
    CheckpointError: the file is damaged, or has a class that Keras does not know.
  """
  importlib.import_module("bert.keras3")  # which registers its classes
  try:
    return keras.models.load_model(path, compile=False)
  except Exception as error:  # of the archive, of HDF5, or of any class
    reason = str(error).strip().partition("\n")[0] or type(error).__name__
    raise CheckpointError(f"{path} cannot be loaded by Keras: {reason}") from error


# ---------------------------------------------------------------------------------------------
# Files beside weights.


def read_config(path: str | os.PathLike) -> BertConfig:
  """Reads the `bert_config.json`, or transformers' `config.json`, beside weights.

  A `.keras` file contains its sizes.

  Raises:
    ValueError: there is no such file, or it is invalid.
  """
  path = model_source.local_path(path)
  if path.endswith(KERAS_SUFFIX):
    return BertConfig.from_dict(saving.describe(load_model(path)).config)
  file = model_files.find(path).config
  if file is None:
    folder = model_files.folder_of(path)
    raise ValueError(f"{folder} has no bert_config.json; pass the model's sizes to BERT(...).")
  return BertConfig.from_json_file(file)


def vocabulary_sizes(path: str | os.PathLike) -> dict[str, int]:
  """Returns `vocab_size` and `type_vocab_size` of weights; empty if they are unknown."""
  try:
    shapes, _ = open_weights(path)
  except ValueError:
    return {}  # loading reports the error
  tables = {"vocab_size": "word_embeddings", "type_vocab_size": "token_type_embeddings"}
  scopes = {family.scope for family in families.FAMILIES.values()}
  return {
    size: shapes[name][0]
    for size, table in tables.items()
    for scope in scopes
    if (name := f"{scope}/embeddings/{table}") in shapes
  }
