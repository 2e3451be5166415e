"""Which checkpoint is meant: the newest of a run, or the one that `--init_checkpoint` names.

latest("out")                            # out/model.ckpt-20, the whole one to resume from
find_checkpoint("small")  # small/bert_model.ckpt; a released model's name is downloaded
"""

import os
import re

from absl import logging

from bert.checkpoints import model_source, transformers_folder
from bert.checkpoints.bundle_files import (
  BEST,
  IN_SAVED_MODEL,
  REPLACED,
  STEP_NAME,
  CheckpointError,
  is_saved_model,
)
from bert.checkpoints.load_report import abbreviate
from bert.checkpoints.model_source import Kind
from bert.checkpoints.object_graph import OBJECT_GRAPH
from bert.checkpoints.reading import check_named, names_and_shapes
from bert.checkpoints.safetensors_file import SafetensorsError
from bert.io import filesystem


def latest(directory: str) -> str | None:
  """The checkpoint to resume from: the one `directory/checkpoint` names, if it is whole.

  Otherwise the newest whole one, with a warning that names the skipped ones and the reasons.

  Returns:
    A prefix, or None if there is no whole checkpoint.
  """
  directory = os.fspath(directory)
  candidates = [prefix for _, prefix in reversed(_numbered_prefixes(directory))]
  skipped = []
  try:
    pointed = [os.path.join(directory, name) for name in read_pointer(directory)[:1]]
  except CheckpointError as error:
    pointed, skipped = [], [str(error)]
  for prefix in dict.fromkeys(pointed + candidates):
    problem = problem_of(prefix)
    if problem is None:
      break
    skipped.append(problem)
  else:
    prefix = None
  if skipped:
    logging.warning("Resuming from %s. Skipped: %s", prefix or "nothing", " | ".join(skipped))
  return prefix


def best(directory: str) -> str | None:
  """The best weights of the run in a directory, if it kept them (`--eval_every_steps`).

  Returns:
    A prefix, or None.
  """
  folder = os.path.join(os.fspath(directory), BEST)
  prefix = latest(folder) if filesystem.is_folder(folder) else None
  if prefix:
    logging.info("Using the best checkpoint, %s.", prefix)
  return prefix


def list_checkpoints(directory: str) -> list[tuple[int, str]]:
  """(step, prefix) of the whole checkpoints `model.ckpt-STEP` of a directory, by ascending step."""
  whole = {}
  for step, prefix in _numbered_prefixes(os.fspath(directory)):
    if problem_of(prefix) is None:
      whole[step] = prefix
  return sorted(whole.items())


def find_checkpoint(path: str | os.PathLike) -> str:
  """The prefix that a user means by `--init_checkpoint=path`.

  Args:
    path: a prefix; one of its files; a directory that this project or the original trained in; the
      folder of a released model, with its `bert_model.ckpt`; an exported encoder's folder, or the
      one around it; an encoder of the Model Garden, as a SavedModel or a checkpoint; a folder that
      transformers saved, with its `model.safetensors`; a `.keras` file; or the name of a released
      model, see `model_source.identify`.

  Returns:
    The prefix of a whole checkpoint whose variables have BERT's names; of weights that transformers
    or Keras saved, which have none, their file.

  Raises:
    CheckpointError: nothing was found; the message lists what exists, and what to do.
    DownloadError: a released model cannot be downloaded.
  """
  kind, prefix = model_source.located(path)
  if kind not in (Kind.CHECKPOINT, Kind.SAFETENSORS, Kind.KERAS):
    prefix = _find_in_folder(prefix)
  check_named(prefix, names_and_shapes(prefix))
  return prefix


def _find_in_folder(folder: str) -> str:
  names = filesystem.list_folder(folder)
  if is_saved_model(folder):
    return _find_in_saved_model(folder)
  trained = best(folder) or latest(folder)
  if trained:
    return trained
  encoder = os.path.join(folder, "encoder")
  if is_saved_model(encoder):
    return _find_in_saved_model(encoder)
  prefixes = [name.removesuffix(".index") for name in names if name.endswith(".index")]
  if "bert_model.ckpt" in prefixes:
    prefixes = ["bert_model.ckpt"]
  if len(prefixes) == 1:
    return os.path.join(folder, prefixes[0])
  if prefixes:
    raise CheckpointError(f"{folder} has several checkpoints, name one: {abbreviate(prefixes, 10)}")
  try:
    weights = transformers_folder.find_weights(folder)
  except SafetensorsError as error:
    raise CheckpointError(str(error)) from None
  if weights:
    return weights
  raise CheckpointError(
    f"{folder} has no checkpoint (no *.index file).{model_source.nearby(folder)}"
  )


def _find_in_saved_model(folder: str) -> str:
  prefix = os.path.join(folder, IN_SAVED_MODEL)
  if not filesystem.exists(prefix + ".index") or OBJECT_GRAPH in names_and_shapes(prefix):
    raise CheckpointError(
      f"{folder} is a SavedModel whose variables do not have BERT's names (bert/...). Give an "
      "encoder that this project exported, or BERT's or ALBERT's of the Model Garden; or a "
      "checkpoint: a prefix such as out/model.ckpt-1000, or the folder of a released model."
    )
  return prefix


def problem_of(prefix: str) -> str | None:
  """Why a checkpoint cannot be used; None if it is whole."""
  try:
    names_and_shapes(prefix)
  except CheckpointError as error:
    return str(error)
  return None


def _numbered_prefixes(directory: str) -> list[tuple[int, str]]:
  """(step, prefix) of everything with an index, whole or not, by ascending step.

  Of two with the same step, the later in the list is the one in its regular place.
  """
  prefixes = []
  for entry in filesystem.list_folder(directory):
    name = entry.removeprefix(REPLACED).removesuffix(".index")
    match = STEP_NAME.match(name)
    if match and entry == REPLACED + name:
      prefixes.append((int(match.group(1)), os.path.join(directory, entry, name)))
    elif match and entry == name + ".index":
      prefixes.append((int(match.group(1)), os.path.join(directory, name)))
  regular_last = sorted(prefixes, key=lambda item: (item[0], REPLACED not in item[1]))
  return [item for item in regular_last if filesystem.exists(item[1] + ".index")]


def read_pointer(directory: str) -> list[str]:
  """The names in the `checkpoint` file: the current one, then all, oldest first; [] without a file.

  Raises:
    CheckpointError: the file names no checkpoint.
  """
  path = os.path.join(directory, "checkpoint")
  try:
    text = filesystem.read_bytes(path).decode("utf-8") if filesystem.exists(path) else None
  except (OSError, ValueError) as error:
    raise CheckpointError(f"{path} is damaged: {error}") from None
  if text is None:
    return []
  pattern = r'^\s*{}:\s*"([^"\n]+)"'
  current = re.findall(pattern.format("model_checkpoint_path"), text, re.MULTILINE)
  every = re.findall(pattern.format("all_model_checkpoint_paths"), text, re.MULTILINE)
  if not current:
    raise CheckpointError(f"{path} is damaged: no model_checkpoint_path in it")
  return [_relocated(name) for name in current[:1] + every]


def _relocated(name: str) -> str:
  """A name; of a path that no longer exists, because the folder was moved, its last part."""
  gone = os.path.isabs(name) and not filesystem.exists(name + ".index")
  return os.path.basename(name) if gone else name
