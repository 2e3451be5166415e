"""Assigns the values of a checkpoint to variables by name, whatever framework they are of.

  restore("out/model.ckpt-20", variables)                      # to continue a run
  report = init_from_checkpoint("bert_model.ckpt", variables)  # to start one
  report = load(model.checkpoint_variables(), "uncased_L-12_H-768_A-12")   # of a Keras model
  print(report.summary())

A variable has `shape`, `dtype` and `assign`. This module needs no TensorFlow, except to assign
variables of TensorFlow.
"""

import importlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from bert import families
from bert.checkpoints import finding, model_source
from bert.checkpoints.bundle_files import KERAS_SUFFIX, CheckpointError
from bert.checkpoints.load_report import (
  LoadReport,
  Mismatch,
  abbreviate,
  encoder_scope,
  is_training_state,
)
from bert.checkpoints.reading import Checkpoint, Contents, check_named, open_checkpoint
from bert.io.wording import counted

Assign = Callable[[Any, np.ndarray], None]  # gives a variable its value


# ---------------------------------------------------------------------------------------------
# Variables of TensorFlow.


def _assign_once(variable, value: np.ndarray) -> None:
  """Assigns a value to a variable of TensorFlow, also while a function is traced."""
  import tensorflow as tf

  # Lifted out of the traced function: a value read while tracing is not assigned in each step.
  with tf.init_scope():
    variable.assign(tf.cast(value, variable.dtype))


def restore(prefix: str, variables: Mapping[str, Any], assign: Assign = _assign_once) -> None:
  """Assigns every variable its value in the checkpoint; nothing may be missing or differ.

  All names, shapes and types are compared before the first value is read. Values are read and
  assigned one at a time. If one of them is damaged, those before it are already assigned.

  Args:
    prefix: the checkpoint's prefix.
    variables: name in the checkpoint -> variable. `global_step` may be int32 or int64.
    assign: gives a variable its value.

  Raises:
    CheckpointError: a variable is missing or differs in shape or type; or a file is damaged.
  """
  checkpoint = open_checkpoint(prefix)
  contents = checkpoint.contents
  missing = [name for name in variables if name not in contents]
  mismatched = [
    _mismatch(name, contents[name], variable)
    for name, variable in variables.items()
    if name in contents and not _fits_exactly(name, contents[name], variable)
  ]
  if missing or mismatched:
    lines = [*map(str, mismatched), *(f"{name}: not in the checkpoint" for name in missing)]
    raise _misfit(prefix, contents, variables, lines)
  # Evaluation has no slots, so those of the checkpoint are not worth a line.
  trains = any(map(is_training_state, variables))
  unused = [n for n in contents if n not in variables and (trains or not is_training_state(n))]
  if unused:
    logging.info("%s: %s not used: %s", prefix, counted(len(unused), "tensor"), abbreviate(unused))
  for name, variable in variables.items():
    assign(variable, checkpoint.read(name))


def init_from_checkpoint(
  prefix: str | Checkpoint,
  variables: Mapping[str, Any],
  required_scope: str | None = None,
  assign: Assign = _assign_once,
) -> LoadReport:
  """Assigns values by name to the variables that the checkpoint has; the others keep theirs.

  The state of a training run (Adam slots, `global_step`) is neither read nor required. A variable
  outside `required_scope`, such as a head's, whose shape differs is skipped and reported, where the
  original stopped: a classifier for three classes may start from one for two.

  Args:
    prefix: the checkpoint, or its prefix; see `finding.find`.
    variables: name in the checkpoint -> variable.
    required_scope: name prefix of variables whose shape must match if the checkpoint has them; by
      default that of the model's encoder.
    assign: gives a variable its value.

  Returns:
    A report of what was loaded. Print its `summary()`.

  Raises:
    CheckpointError: a shape differs under `required_scope`, no variable there (or none at all) is
      in the checkpoint, or a file is damaged. Nothing is assigned, except in the last case.
  """
  checkpoint = prefix if isinstance(prefix, Checkpoint) else open_checkpoint(prefix)
  check_named(checkpoint.prefix, checkpoint.contents)
  weights = {name: v for name, v in variables.items() if not is_training_state(name)}
  report = _compare(checkpoint.prefix, checkpoint.contents, weights, required_scope)
  required = [m for m in report.mismatched if m.name.startswith(report.required_scope)]
  if required:
    raise _misfit(checkpoint.prefix, checkpoint.contents, weights, list(map(str, required)))
  body = [name for name in weights if name.startswith(report.required_scope)] or list(weights)
  if not set(body) & set(checkpoint.contents):
    raise _nothing_common(checkpoint.prefix, body, checkpoint.contents)
  for name in report.loaded:
    assign(weights[name], checkpoint.read(name))
  return report


# ---------------------------------------------------------------------------------------------
# Variables of Keras.

_GENERATOR, _GENERATOR_HEAD = "generator/", "generator_predictions/"  # of ELECTRA


def original_names(layer: Any, scope: str) -> dict[str, Any]:
  """Returns the weights of a layer by the original's names.

  A name is the variable's path with the layer's name replaced by `scope`.

  Args:
    layer: a built layer of Keras.
    scope: such as `bert`; empty for variables without a scope, such as those of a classifier.
  """
  names = {}
  for variable in layer.weights:
    name = variable.path.removeprefix(layer.path + "/")
    names[f"{scope}/{name}" if scope else name] = variable
  return names


def load(
  variables: Mapping[str, Any],
  path: str | os.PathLike,
  skip_mismatch: bool = True,
  allowed_missing: tuple[str, ...] = (),
  family: str | None = None,
  warn: Callable[[str], None] | None = None,
) -> LoadReport:
  """Loads variables from a file.

  Args:
    variables: name in the file -> variable.
    path: what `finding.find` takes, or a `.keras` file.
    skip_mismatch: warn of variables that are missing or differ in shape; otherwise raise an error.
    allowed_missing: prefixes of names that may be missing without a warning.
    family: `model_type` of a file of transformers without a `config.json` beside it.
    warn: logs the warning; by default absl does.

  Raises:
    ValueError: the file cannot be read or contains none of the variables; or `skip_mismatch` is
      False and a variable is missing or differs in shape. No variable is assigned then.
  """
  contents, read = _open(path, family)
  places = _places(variables, contents)
  contents = {name: contents[place] for name, place in places.items()}
  source = os.fsdecode(path)
  report = _compare(source, contents, variables)
  if not report.loaded:
    raise _nothing_common(source, variables, contents, report.mismatched)
  skipped = [line for line in report.skipped() if not line.startswith(allowed_missing or ("\0",))]
  if skipped and not skip_mismatch:
    raise _misfit(source, contents, variables, skipped)
  if skipped:
    cause = _differences(contents, variables)
    start = f"{cause}: {source}" if cause else source
    reason = " (they are missing, or the shapes did not match)" if report.mismatched else ""
    count = counted(len(skipped), "variable")
    text = "\n  ".join([f"{start}: {count} skipped, left random{reason}:", *skipped])
    (warn or logging.warning)(text)
  for name in report.loaded:
    variables[name].assign(read(places[name]))
  return report


def open_weights(
  path: str | os.PathLike, family: str | None = None
) -> tuple[dict[str, tuple], Callable[[str], np.ndarray]]:
  """Opens a file: shapes by name, and a function that reads a value by name; see `load`.

  Raises:
    ValueError: there are no weights of a BERT at this path.
  """
  contents, read = _open(path, family)
  return {name: tuple(shape) for name, (shape, _) in contents.items()}, read


def _open(path, family) -> tuple[Contents, Callable[[str], np.ndarray]]:
  path = model_source.local_path(path)
  if path.endswith(KERAS_SUFFIX):
    saving = importlib.import_module("bert.keras3.saving")
    variables = saving.checkpoint_variables(load_keras(path))
    contents = {name: (list(v.shape), np.dtype(np.float32)) for name, v in variables.items()}
    return contents, lambda name: saving.float32(name, variables[name])
  checkpoint = finding.find(path, family)
  return checkpoint.contents, checkpoint.read


def load_keras(path: str) -> Any:
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


def _places(wanted: Iterable[str], found: Iterable[str]) -> dict[str, str]:
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


def has_generator(names: Iterable[str]) -> bool:
  """Checks whether a checkpoint has the generator of an ELECTRA beside the discriminator."""
  return any(name.startswith(_GENERATOR) for name in names)


def _task_scope(names) -> str | None:
  """Finds the scope of the only head of an ELECTRA."""
  heads = [name for name in names if name.startswith("task_specific/")]
  scopes = {"/".join(name.split("/")[:2]) + "/" for name in heads}
  return scopes.pop() if len(scopes) == 1 else None


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


# ---------------------------------------------------------------------------------------------
# Comparing.


def _compare(
  source: str, contents: Contents, variables: Mapping[str, Any], required_scope: str | None = None
) -> LoadReport:
  """Compares a file with a model; a CheckpointError says that they are of two families."""
  ours, theirs = families.family_of_variables(variables), families.family_of_variables(contents)
  if ours and theirs and ours is not theirs:
    raise CheckpointError(
      f"{source} is of {theirs.title}, but the model is of {ours.title} by its configuration. Give "
      f"the configuration that came with this checkpoint, or a checkpoint of {ours.title}."
    )
  common = [name for name in variables if name in contents]
  mismatched = [
    _mismatch(name, contents[name], variables[name])
    for name in common
    if not _fits_after_cast(contents[name], variables[name])
  ]
  skipped = {mismatch.name for mismatch in mismatched}
  return LoadReport(
    source=source,
    loaded=[name for name in common if name not in skipped],
    missing=[name for name in variables if name not in contents],
    unexpected=[n for n in contents if n not in variables and not is_training_state(n)],
    mismatched=mismatched,
    required_scope=encoder_scope(variables) if required_scope is None else required_scope,
  )


def _misfit(source, contents, variables, lines: list[str]) -> CheckpointError:
  """Says why weights do not fit: which sizes differ, what to do, and the variables."""
  cause = _differences(contents, variables)
  start = f"{cause}: {source} does not fit." if cause else f"{source} does not fit this model."
  more = [f"and {len(lines) - 10} more"] if len(lines) > 10 else []
  remedy = "Give the configuration that belongs to it, or weights of this model's sizes."
  return CheckpointError("\n  ".join([f"{start} {remedy}", *lines[:10], *more]))


def _nothing_common(source, wanted, found, mismatched=()) -> CheckpointError:
  lines = [
    f"{source} has none of the variables that this model would take from it.",
    f"The model asks for: {abbreviate(list(wanted))}",
    f"The checkpoint has: {abbreviate(list(found))}",
  ]
  return CheckpointError("\n  ".join([*lines, *map(str, mismatched[:3])]))


def _mismatch(name: str, found, variable) -> Mismatch:
  shape, dtype = found
  in_model = f"{_dtype_name(variable.dtype)} {list(variable.shape)}"
  return Mismatch(name, f"{_dtype_name(dtype)} {list(shape)}", in_model)


def _dtype_name(dtype) -> str:
  """Returns the name of a type of NumPy, TensorFlow or Keras."""
  return getattr(dtype, "name", dtype)


def _fits_exactly(name: str, found, variable) -> bool:
  shape, dtype = found
  theirs, ours = _dtype_name(dtype), _dtype_name(variable.dtype)
  same_type = theirs == ours or (name == "global_step" and theirs[:3] == ours[:3] == "int")
  return same_type and list(shape) == list(variable.shape)


def _fits_after_cast(found, variable) -> bool:
  shape, dtype = found
  theirs, ours = _dtype_name(dtype), _dtype_name(variable.dtype)
  same_type = theirs == ours or ("float" in theirs and "float" in ours)
  return same_type and list(shape) == list(variable.shape)


# ---------------------------------------------------------------------------------------------
# How the sizes of a model in a file differ from those of the model that is to take its weights.

Shapes = Mapping[str, Sequence[int]]

# A size -> names of variables that show it, and the dimension that does.
_SHOWN_BY = {
  "hidden size": (re.compile(r".+/self/query/kernel"), 0),
  "intermediate size": (re.compile(r".+/intermediate/dense/kernel"), 1),
  "vocabulary size": (re.compile(r".+/embeddings/word_embeddings"), 0),
  "embedding size": (re.compile(r".+/embeddings/word_embeddings"), 1),
  "positions": (re.compile(r".+/embeddings/position_embeddings"), 0),
  "segments": (re.compile(r".+/embeddings/token_type_embeddings"), 0),
  "labels": (re.compile(r"output_bias"), 0),
}
_LAYER = re.compile(r"(.+)/encoder/layer_\d+/")


def _differences(contents: Contents, variables: Mapping[str, Any]) -> str:
  """Describes the sizes of a file and of a model that differ; empty if none that is known does.

  For instance "the file has hidden size 384, the model 768".
  """
  found: Shapes = {name: shape for name, (shape, _) in contents.items()}
  wanted: Shapes = {name: variable.shape for name, variable in variables.items()}
  theirs, ours = _sizes(found, wanted), _sizes(wanted, found)
  differing = [size for size in ours if size in theirs and theirs[size] != ours[size]]
  if "hidden size" in differing and "embedding size" in differing:
    differing.remove("embedding size")  # which follows it in most families
  return "; ".join(
    f"the file has {_written(size, theirs[size])}, the model {ours[size]}" for size in differing
  )


def _written(size: str, number: int) -> str:
  return f"{size} {number}" if size.endswith("size") else f"{number} {size}"


def _sizes(shapes: Shapes, others: Shapes) -> dict[str, int]:
  """Reads the sizes of a model from variables that the other model has as well."""
  sizes: dict[str, int] = {}
  for size, (names, dimension) in _SHOWN_BY.items():
    for name, shape in shapes.items():
      if name in others and names.fullmatch(name) and len(shape) > dimension:
        sizes.setdefault(size, shape[dimension])
  scopes = {match[1] for match in map(_LAYER.match, others) if match}
  layers = {match[0] for match in map(_LAYER.match, shapes) if match and match[1] in scopes}
  if layers:
    sizes["layers"] = len(layers)
  return sizes
