"""The state of runs that one program starts and resumes: `run.json` in the folder of each.

It holds the settings of the run, all that decides its result, and what has finished. A finished run
is so never repeated, an unfinished one continues from its checkpoint, and a folder of other
settings is refused. `run_glue.py` and `--num_runs` keep it. Imports no TensorFlow.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from bert.checkpoints import formats, model_source
from bert.io import atomic_files, filesystem, json_files
from bert.scripts.run_settings import ModelFiles

STATE_FILE = "run.json"

# Flags that decide where files are and how often something is written, but change no result. The
# model's files count by their content.
NO_SETTINGS = frozenset(
  {
    *("task_name", "data_dir", "output_dir", "export_dir"),
    *("do_train", "do_eval", "do_predict", "do_export", "verbose_errors", "plugin", "report"),
    *("bert_config_file", "vocab_file", "spm_model_file", "init_checkpoint"),
    *("save_checkpoints_steps", "keep_checkpoint_max", "save_summary_steps", "log_every_steps"),
    *("num_runs", "parallel_runs", "gpus"),
    *("iterations_per_loop", "pad_to_max_length", "eval_batch_size", "predict_batch_size"),
  }
)


def read_state(folder: str) -> dict:
  """Reads `run.json`: `settings`, `finished`, `seconds`, `predicted`; {} without the file.

  A ValueError says that it is damaged.
  """
  return json_files.read_if_there(os.path.join(folder, STATE_FILE), f"Remove {folder}.")


def seeds_of(folder: str) -> list[int]:
  """Lists the seeds of the runs that `--num_runs` has made in a folder; [] if it is no such one."""
  try:
    seeds = read_state(folder).get("seeds")
  except (OSError, ValueError):  # Any other program's run.json.
    return []
  return seeds if isinstance(seeds, list) else []


def write_state(folder: str, **state) -> None:
  """Makes the folder, and replaces the content of `run.json`."""
  os.makedirs(folder, exist_ok=True)
  text = json.dumps(state, indent=2, sort_keys=True) + "\n"
  atomic_files.write_text(os.path.join(folder, STATE_FILE), text)


def conflict(folder: str, settings: Mapping[str, Any]) -> str | None:
  """Why a run of these settings must not continue in a folder: its files have others; else None.

  The settings decide the result of the run, whose folder need not exist, by name, in JSON types.
  """
  state = read_state(folder)
  if not state:
    is_used = os.path.isdir(folder) and os.listdir(folder)
    return f"it has files, but no {STATE_FILE} with their settings" if is_used else None
  before = state.get("settings", {})
  # A flag that one of the two versions of the program does not know cannot have been given.
  changed = [key for key in settings if key in before and before[key] != settings[key]]
  return "; ".join(f"{key} was {before[key]}, now {settings[key]}" for key in changed) or None


# ---------------------------------------------------------------------------------------------
# Which files a run was made from.


def identity(paths: Iterable[str]) -> str:
  """Returns a name for the content of files, independent of their paths."""
  digest = hashlib.sha256()
  for path in paths:
    with filesystem.open_to_read(path) as reader:
      while block := reader.read(1 << 20):
        digest.update(block)
  return digest.hexdigest()[:16]


def identity_of_weights(init_checkpoint: str | None) -> str | None:
  """Of a checkpoint. Its index has a checksum of every tensor, so its tensors are not read; weights
  that transformers saved have none, and are read.

  Raises:
    ValueError: the checkpoint does not exist.
  """
  if not init_checkpoint:
    return None
  kind, path = model_source.identify(init_checkpoint)
  if kind is model_source.Kind.CHECKPOINT:
    return identity([path + ".index"])
  if kind is model_source.Kind.FILE:
    return identity([path])
  for folder in ("", "variables", os.path.join("encoder", "variables")):
    place = os.path.join(path, folder)
    names = filesystem.list_folder(place)
    files = [name for name in names if name.endswith((".index", ".safetensors"))]
    if files := files or list(filter(formats.is_older_weights, names)):
      return identity(os.path.join(place, name) for name in files)
  raise ValueError(f"--init_checkpoint={init_checkpoint} has no checkpoint (no .index file).")


def identities_of_model(settings: ModelFiles) -> dict[str, str | None]:
  """Returns the content of the model's files, which is part of a run's settings."""
  return {
    "bert_config": identity([settings.bert_config_file]),
    "vocabulary": identity([settings.vocab_file]),
    "weights": identity_of_weights(settings.init_checkpoint),
  }
