"""Which checkpoint is meant: the newest of a run, or the one that `--init_checkpoint` names.

latest("out")                            # out/model.ckpt-20, the whole one to resume from
find_checkpoint("small")  # small/bert_model.ckpt; a released model's name is downloaded
"""

import os

from absl import logging

from bert.checkpoints import formats, model_source
from bert.checkpoints.bundle_files import (
  BEST,
  IN_SAVED_MODEL,
  OBJECT_GRAPH,
  REPLACED,
  STEP_NAME,
  CheckpointError,
  has_left_best,
  is_saved_model,
  named_in,
  read_pointer,
)
from bert.checkpoints.load_report import abbreviate
from bert.checkpoints.model_source import Kind
from bert.checkpoints.reading import Checkpoint, check_named, names_and_shapes, open_checkpoint
from bert.io import filesystem


def latest(directory: str) -> str | None:
  """Finds the checkpoint to resume from: the one `directory/checkpoint` names, if it is whole.

  Otherwise the newest whole one, with a warning that names the skipped ones and the reasons; None
  if there is none.
  """
  return _prefix_of(_open_latest(directory))


def _prefix_of(checkpoint: Checkpoint | None) -> str | None:
  return checkpoint.prefix if checkpoint else None


def _open_latest(directory: str) -> Checkpoint | None:
  directory = os.fsdecode(directory)
  candidates = [prefix for _, prefix in reversed(_numbered_prefixes(directory))]
  skipped = []
  try:
    pointed = [os.path.join(directory, name) for name in read_pointer(directory)[:1]]
  except CheckpointError as error:
    pointed, skipped = [], [str(error)]
  found = None
  for prefix in dict.fromkeys(pointed + candidates):
    try:
      found = open_checkpoint(prefix)
      break
    except CheckpointError as error:
      skipped.append(str(error))
  if skipped:
    what = _prefix_of(found) or "nothing"
    logging.warning("Resuming from %s. Skipped: %s", what, " | ".join(skipped))
  return found


def best(directory: str) -> str | None:
  """Finds the prefix of a run's best weights, if it kept them (`--eval_every_steps`), or None."""
  return _prefix_of(_open_best(directory))


def _open_best(directory: str) -> Checkpoint | None:
  folder = os.path.join(os.fsdecode(directory), BEST)
  found = _open_latest(folder) if filesystem.is_folder(folder) else None
  if not found:
    return None
  newest = _open_latest(directory)
  if newest and has_left_best(newest.prefix):
    logging.warning(
      "Using %s, not %s: after its last evaluation the run went on without --eval_every_steps.",
      *(newest.prefix, found.prefix),
    )
    return None
  is_older = newest and os.path.basename(newest.prefix) != os.path.basename(found.prefix)
  rest = f" The newest is {newest.prefix}." if newest and is_older else ""
  logging.info("Using the best checkpoint, %s.%s", found.prefix, rest)
  return found


def list_checkpoints(directory: str) -> list[tuple[int, str]]:
  """(step, prefix) of the whole checkpoints `model.ckpt-STEP` of a directory, by ascending step."""
  whole = {}
  for step, prefix in _numbered_prefixes(os.fsdecode(directory)):
    if problem_of(prefix) is None:
      whole[step] = prefix
  return sorted(whole.items())


def find(path: str | os.PathLike, family: str | None = None) -> Checkpoint:
  """Finds and opens the whole checkpoint, of BERT's names, that `--init_checkpoint=path` means.

  Args:
    path: a prefix; one of its files; a directory that this project or the original trained in; the
      folder of a released model, with its `bert_model.ckpt`; an exported encoder's folder, or the
      one around it; an encoder of the Model Garden, as a SavedModel or a checkpoint; a folder that
      transformers saved, with its `model.safetensors`, `tf_model.h5` or `pytorch_model.bin`, the
      first of these that is there; one of these files; or the name of a released model, see
      `model_source.identify`.
    family: `model_type` of a file of transformers without a `config.json` beside it.

  Raises:
    CheckpointError: nothing was found; the message lists what exists, and what to do.
    DownloadError: a released model cannot be downloaded.
  """
  kind, place = model_source.located(path)
  is_file = kind in (Kind.CHECKPOINT, Kind.FILE)
  checkpoint = open_checkpoint(place, family) if is_file else _open_in_folder(place, family)
  check_named(checkpoint.prefix, checkpoint.contents)
  return checkpoint


def find_checkpoint(path: str | os.PathLike) -> str:
  """Returns the prefix of the checkpoint that `find` finds; of a format with one file its path."""
  return find(path).prefix


def _open_in_folder(folder: str, family: str | None) -> Checkpoint:
  if is_saved_model(folder):
    return _open_saved_model(folder)
  trained = _open_best(folder) or _open_latest(folder)
  if trained:
    return trained
  encoder = os.path.join(folder, "encoder")
  if is_saved_model(encoder):
    return _open_saved_model(encoder)
  prefixes = named_in(folder)
  if len(prefixes) == 1:
    return open_checkpoint(os.path.join(folder, prefixes[0]))
  if prefixes:
    raise CheckpointError(f"{folder} has several checkpoints, name one: {abbreviate(prefixes, 10)}")
  if formats.is_folder_of_others(filesystem.list_folder(folder)):
    from bert.checkpoints import transformers_folder

    if weights := transformers_folder.find_weights(folder):
      return open_checkpoint(weights, family)
  raise CheckpointError(
    f"{folder} has no checkpoint (no *.index file).{model_source.nearby(folder)}"
  )


def _open_saved_model(folder: str) -> Checkpoint:
  prefix = os.path.join(folder, IN_SAVED_MODEL)
  found = open_checkpoint(prefix) if filesystem.exists(prefix + ".index") else None
  if found is None or OBJECT_GRAPH in found.contents:
    raise CheckpointError(
      f"{folder} is a SavedModel whose variables do not have BERT's names (bert/...). Give an "
      "encoder that this project exported, or BERT's or ALBERT's of the Model Garden; or a "
      "checkpoint: a prefix such as out/model.ckpt-1000, or the folder of a released model."
    )
  return found


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
