"""Checkpoints written so that no crash can damage them.

`save` survives being killed at any moment:

  1. everything is written into a sub-folder `.tmp-model.ckpt-20`, and forced to disk;
  2. the files are renamed into place, the index last: files without an index do not exist for any
     reader, so this one rename makes the checkpoint visible;
  3. the `checkpoint` file is replaced, by a rename too;
  4. only then are checkpoints beyond `keep` removed, their index first, and `model.ckpt-0`, which
     a run writes before its first step so that a crash costs no initialization.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from bert.checkpoints import bundle_files
from bert.checkpoints.bundle_files import (
  DATA_SUFFIX,
  FILE_SUFFIX,
  REPLACED,
  SIDECAR_SUFFIX,
  STEP_NAME,
  TEMPORARY,
  CheckpointError,
  read_pointer,
)
from bert.checkpoints.finding import list_checkpoints, problem_of
from bert.checkpoints.reading import first_line, names_and_shapes, read_state
from bert.io import filesystem
from bert.io.atomic_files import force_to_disk, write_text

_UNTRAINED = "model.ckpt-0"


def save(
  directory: str,
  step: int,
  tensors: Mapping[str, Any],
  state: Mapping[str, Any],
  keep: int | None = 5,
) -> str:
  """Writes a checkpoint `directory/model.ckpt-STEP`, completely or not at all.

  Args:
    directory: local folder, created if it does not exist.
    step: number of finished training steps.
    tensors: name -> tensor, variable or array. On an accelerator they are all copied to the host.
    state: JSON-serializable values that are not variables, for `reading.read_state`.
    keep: how many checkpoints to keep, this one included; None or 0 keeps all, also that of step 0.

  Returns:
    The prefix.

  Raises:
    CheckpointError: it cannot be written. Earlier checkpoints are unchanged.
    TypeError: `state` is not JSON-able.
  """
  directory = os.fsdecode(directory)
  if filesystem.is_remote(directory):
    raise CheckpointError(f"Checkpoints are written to local folders only, not to {directory}.")
  name = f"model.ckpt-{int(step)}"
  temporary = os.path.join(directory, TEMPORARY + name)
  state = json.loads(json.dumps(dict(state)))  # fails here, before anything is written
  tensors = {name: tf.convert_to_tensor(tensor) for name, tensor in tensors.items()}
  try:
    os.makedirs(directory, exist_ok=True)
    _remove_leftovers(directory)
    _write_aside(os.path.join(temporary, name), tensors, state)
    _move_into_place(temporary, directory, name)
    kept, superseded = _retention(directory, name, keep)
    _write_pointer(directory, kept)
  except (OSError, tf.errors.OpError, CheckpointError) as error:
    shutil.rmtree(temporary, ignore_errors=True)
    raise CheckpointError(_explain_failure(directory, name, tensors, error)) from None
  _purge(directory, superseded)
  return os.path.join(directory, name)


def clean(newest: str, keep: int | None = 5) -> None:
  """Removes the remains of a killed `save` beside `newest`, the checkpoint that it wrote.

  The next `save` would do so too, but none follows the last step of a run. No other process may
  save to the folder.
  """
  directory, name = os.path.split(newest)
  match = STEP_NAME.match(name)
  if not match or REPLACED in directory:
    return  # another program wrote it, or `save` has not finished replacing it
  _, superseded = _retention(directory, name, keep)
  # A later one, which the `checkpoint` file does not name, may have been copied there by a user.
  earlier = [n for n in superseded if int(STEP_NAME.match(n).group(1)) < int(match.group(1))]
  _remove_leftovers(directory)
  _purge(directory, earlier)


def _write_aside(prefix, tensors, state):
  """Writes the files of a checkpoint, forces them to disk, and reads the index back."""
  os.makedirs(os.path.dirname(prefix))
  with tf.device("CPU:0"):
    tf.raw_ops.SaveV2(
      prefix=prefix,
      tensor_names=list(tensors),
      shape_and_slices=[""] * len(tensors),
      tensors=list(tensors.values()),
    )
  bundle_files.write_sidecar(prefix, state)
  for suffix in (DATA_SUFFIX, ".index"):
    force_to_disk(prefix + suffix)
  names_and_shapes(prefix)  # a file that is too short never replaces anything


def _move_into_place(temporary, directory, name):
  """Renames the files of a checkpoint to their final names, the index last."""
  prefix = os.path.join(directory, name)
  if os.path.exists(prefix + ".index") and problem_of(prefix) is None:
    _keep_replaced(directory, name)
  _delete(prefix)
  for suffix in (DATA_SUFFIX, SIDECAR_SUFFIX):
    os.replace(os.path.join(temporary, name + suffix), prefix + suffix)
  force_to_disk(directory)  # or a power cut may keep the next rename and lose these
  os.replace(os.path.join(temporary, name + ".index"), prefix + ".index")
  force_to_disk(directory)
  shutil.rmtree(temporary, ignore_errors=True)


def _keep_replaced(directory, name):
  """Gives a complete checkpoint a second name until its successor of the same step is complete.

  It happens after going back: resumed from step 10, a run reaches 20 again. Without this, killing
  it between two renames would leave neither the old step 20 nor the new one.
  """
  folder = os.path.join(directory, REPLACED + name)
  shutil.rmtree(folder, ignore_errors=True)
  os.makedirs(folder)
  for path in reversed(bundle_files.files_of(os.path.join(directory, name))):
    twin = os.path.join(folder, os.path.basename(path))
    try:
      os.link(path, twin)
    except OSError:  # a file system without hard links
      shutil.copy2(path, twin)
      force_to_disk(twin)
  force_to_disk(folder)
  force_to_disk(directory)


def _retention(directory, name, keep):
  """Splits the whole checkpoints into those to keep, the newest last, and those to remove.

  The order is that of writing, as in TensorFlow's `Saver`, not that of steps: after going back to
  step 10, the later steps of the abandoned run go first.
  """
  try:
    listed = [os.path.basename(path) for path in read_pointer(directory)[1:]]
  except CheckpointError:
    listed = []
  whole = [os.path.basename(p) for _, p in list_checkpoints(directory) if REPLACED not in p]
  rank = {other: position for position, other in enumerate(listed)}
  by_age = sorted((other for other in whole if other != name), key=lambda n: rank.get(n, -1))
  untrained = [other for other in by_age if keep and _is_untrained(directory, other)]
  by_age = [other for other in by_age if other not in untrained] + [name]
  first_kept = max(0, len(by_age) - keep) if keep else 0
  return by_age[first_kept:], untrained + by_age[:first_kept]


def _is_untrained(directory, name):
  """Tells whether a run wrote a checkpoint before its first step; a converted one is no run's."""
  return name == _UNTRAINED and "run" in read_state(os.path.join(directory, name))


def _write_pointer(directory, names):
  """Replaces the `checkpoint` file: a CheckpointState message in protobuf's text format."""
  lines = [f'model_checkpoint_path: "{names[-1]}"']
  lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
  write_text(os.path.join(directory, "checkpoint"), "\n".join(lines) + "\n")


def _remove_leftovers(directory):
  """Removes the remains of an interrupted `save`: unfinished folders, files without an index."""
  names = filesystem.list_folder(directory)
  for name in names:
    path = os.path.join(directory, name)
    stem = FILE_SUFFIX.sub("", name)
    if name.startswith(TEMPORARY) and STEP_NAME.match(name.removeprefix(TEMPORARY)):
      shutil.rmtree(path, ignore_errors=True)
    elif STEP_NAME.match(stem) and stem != name and stem + ".index" not in names:
      with contextlib.suppress(OSError):
        os.remove(path)


def _purge(directory, names):
  """Removes superseded checkpoints. A failure costs disk space, not the run."""
  for name in names:
    try:
      _delete(os.path.join(directory, name))
    except OSError as error:
      logging.warning("Cannot remove an old checkpoint, continuing: %s", error)
  for name in filesystem.list_folder(directory):
    if name.startswith(REPLACED) and STEP_NAME.match(name.removeprefix(REPLACED)):
      shutil.rmtree(os.path.join(directory, name), ignore_errors=True)


def _delete(prefix):
  """Removes the files of a checkpoint, the index first: the rest is then invisible."""
  for path in bundle_files.files_of(prefix):
    os.remove(path)


def _explain_failure(directory, name, tensors, error) -> str:
  size_mib = sum(t.shape.num_elements() * t.dtype.size for t in tensors.values()) / 2**20
  try:
    free = f"{shutil.disk_usage(directory).free / 2**20:,.1f} MiB free there"
  except OSError:
    free = "free space unknown"
  return (
    f"Cannot write {os.path.join(directory, name)} ({size_mib:,.1f} MiB, {free}): "
    f"{first_line(error)}. Earlier checkpoints are untouched."
  )
