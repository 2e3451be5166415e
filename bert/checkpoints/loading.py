"""Assigns the values of a checkpoint to variables by name: all of them, or those it contains.

restore("out/model.ckpt-20", variables)               # to continue a run
report = init_from_checkpoint("bert_model.ckpt", variables)  # to start one
print(report.summary())
"""

from collections.abc import Mapping

import tensorflow as tf
from absl import logging

from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.load_report import (
  LoadReport,
  Mismatch,
  abbreviate,
  encoder_scope,
  is_training_state,
)
from bert.checkpoints.reading import Checkpoint, check_named, open_checkpoint
from bert.io.wording import counted
from bert.model import families


def restore(prefix: str, variables: Mapping[str, tf.Variable]) -> None:
  """Assigns every variable its value in the checkpoint; nothing may be missing or differ.

  All names, shapes and types are compared before the first value is read. Values are read and
  assigned one at a time. If one of them is damaged, those before it are already assigned.

  Args:
    prefix: the checkpoint's prefix.
    variables: name in the checkpoint -> variable. `global_step` may be int32 or int64.

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
    lines = [f"{prefix} does not fit this model:"]
    lines += [f"{name}: not in the checkpoint" for name in missing]
    lines += map(str, mismatched)
    raise CheckpointError("\n  ".join(lines))
  # Evaluation has no slots, so those of the checkpoint are not worth a line.
  trains = any(map(is_training_state, variables))
  unused = [n for n in contents if n not in variables and (trains or not is_training_state(n))]
  if unused:
    logging.info("%s: %s not used: %s", prefix, counted(len(unused), "tensor"), abbreviate(unused))
  for name, variable in variables.items():
    _assign(variable, checkpoint, name)


def init_from_checkpoint(
  prefix: str | Checkpoint,
  variables: Mapping[str, tf.Variable],
  required_scope: str | None = None,
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

  Returns:
    A report of what was loaded. Print its `summary()`.

  Raises:
    CheckpointError: a shape differs under `required_scope`, no variable there (or none at all) is
      in the checkpoint, or a file is damaged. Nothing is assigned, except in the last case.
  """
  checkpoint = prefix if isinstance(prefix, Checkpoint) else open_checkpoint(prefix)
  prefix, contents = checkpoint.prefix, checkpoint.contents
  check_named(prefix, contents)
  if required_scope is None:
    required_scope = encoder_scope(variables)
  weights = {name: v for name, v in variables.items() if not is_training_state(name)}
  common = [name for name in weights if name in contents]
  mismatched = [
    _mismatch(name, contents[name], weights[name])
    for name in common
    if not _fits_after_cast(contents[name], weights[name])
  ]
  _check_required(prefix, list(weights), list(contents), mismatched, required_scope)
  skipped = {mismatch.name for mismatch in mismatched}
  loaded = [name for name in common if name not in skipped]
  for name in loaded:
    _assign(weights[name], checkpoint, name)
  return LoadReport(
    source=prefix,
    loaded=loaded,
    missing=[name for name in weights if name not in contents],
    unexpected=[n for n in contents if n not in variables and not is_training_state(n)],
    mismatched=mismatched,
    required_scope=required_scope,
  )


def _check_required(prefix, wanted, found, mismatched, required_scope):
  """Checks that a checkpoint is of this model: its family, shapes of the body, common names."""
  ours, theirs = families.family_of_variables(wanted), families.family_of_variables(found)
  if ours and theirs and ours is not theirs:
    raise CheckpointError(
      f"{prefix} is of {theirs.title}, but the model is of {ours.title} by its configuration. Give "
      f"the configuration that came with this checkpoint, or a checkpoint of {ours.title}."
    )
  wrong = [str(m) for m in mismatched if m.name.startswith(required_scope)]
  if wrong:
    raise CheckpointError(
      f"{prefix} is of a model with other sizes (compare its bert_config.json):\n  "
      + "\n  ".join(wrong[:10])
      + (f"\n  and {len(wrong) - 10} more" if len(wrong) > 10 else "")
    )
  body = [name for name in wanted if name.startswith(required_scope)] or wanted
  if not set(body) & set(found):
    raise CheckpointError(
      f"{prefix} has none of the variables that this model would take from it.\n"
      f"  The model asks for: {abbreviate(body)}\n"
      f"  The checkpoint has: {abbreviate(found)}"
    )


def _mismatch(name, found, variable) -> Mismatch:
  shape, dtype = found
  in_model = f"{variable.dtype.name} {variable.shape.as_list()}"
  return Mismatch(name, f"{tf.as_dtype(dtype).name} {list(shape)}", in_model)


def _fits_exactly(name, found, variable) -> bool:
  shape, dtype = found
  same_type = dtype == variable.dtype
  if name == "global_step":
    same_type = dtype.is_integer and variable.dtype.is_integer
  return same_type and list(shape) == variable.shape.as_list()


def _fits_after_cast(found, variable) -> bool:
  shape, dtype = found
  same_type = dtype == variable.dtype or (dtype.is_floating and variable.dtype.is_floating)
  return same_type and list(shape) == variable.shape.as_list()


def _assign(variable, checkpoint, name):
  """Reads one tensor and assigns it."""
  # Lifted out of any traced function: a value read while tracing is assigned once, not each step.
  with tf.init_scope():
    variable.assign(tf.cast(checkpoint.read(name), variable.dtype))
