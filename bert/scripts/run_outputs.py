"""What several runs on the same data share, and what is averaged over them.

| file | of | holds |
|---|---|---|
| `NAME.tf_record`, `NAME.key.json` | `--features_dir` | features, and what they were made from |
| `outputs_NAME.npz` | `--save_outputs` | what the model says of each example: `outputs`, `key` |
| `dev_summary.json` | `--save_outputs` | the metrics to report, and whether the model has failed |

NAME is `eval` or `predict`, as of the records. `outputs` is float32: `[N, C]` probabilities of
classes or choices, `[N, 1]` scores (regression), or, of named entities, the probabilities of all
words of the file, `[words, C]`. A key is a digest of the examples: outputs of other examples are
never averaged. run_squad.py needs no such file, its `nbest_predictions.json` has it all.
"""

import contextlib
import hashlib
import json
import os
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from bert.io import atomic_files, json_files

SUMMARY_FILE = "dev_summary.json"
WAIT_SECONDS = 0.1


def key_of(*parts: Any) -> str:
  """A digest of values: equal in each process, for the same values, wherever their files lie.

  Args:
    *parts: JSON types, and objects with such attributes; sequences of them may be long.
  """
  digest = hashlib.sha256()
  for part in parts:
    for each in part if isinstance(part, list) else [part]:
      digest.update(json.dumps(each, sort_keys=True, default=_content).encode() + b"\n")
    digest.update(b"\n")
  return digest.hexdigest()[:16]


def _content(value: Any) -> Any:
  if isinstance(value, set | frozenset):
    return sorted(value)
  # Where an example was read from is no part of it.
  return {name: each for name, each in vars(value).items() if name != "source"}


# ---------------------------------------------------------------------------------------------
# Records that are written once.


def write_once(path: str, key: str, write: Callable[[str], Any]) -> Any:
  """Writes a file of records unless it is there; of several processes one does, the others wait.

  Args:
    path: of the file; its folder is made.
    key: of all that decides its content.
    write: writes it; what it returns is kept for all, JSON.

  Returns:
    What `write` returned.

  Raises:
    ValueError: the file is there, but with other content.
  """
  folder = os.path.dirname(path)
  os.makedirs(folder, exist_ok=True)
  with _turn(folder):
    known = known_of(path)
    if known and known.get("key") != key:
      raise ValueError(
        f"{path} was made from other data or with other settings: since the first run, its data "
        "file or a flag such as --max_seq_length has changed. Restore it, or give another folder."
      )
    if not known:
      known = write_with_key(path, key, write)
    else:
      logging.info("Reading %s, which has been written before.", path)
  return known["result"]


def known_of(path: str) -> dict[str, Any]:
  """Returns what `write_with_key` kept of a file; empty if that was not written to its end."""
  return json_files.read_if_there(_key_file(path), "Remove it.") if os.path.isfile(path) else {}


def write_with_key(path: str, key: str, write: Callable[[str], Any]) -> dict[str, Any]:
  """Writes a file, and beside it `key` and the `result` of `write`, which are returned."""
  if os.path.isfile(_key_file(path)):
    os.remove(_key_file(path))
  known = {"key": key, "result": write(path)}
  atomic_files.write_text(_key_file(path), json.dumps(known) + "\n")
  return known


def _key_file(path):
  return os.path.splitext(path)[0] + ".key.json"


@contextlib.contextmanager
def _turn(folder: str) -> Iterator[None]:
  """Holds the folder, after others if need be."""
  with contextlib.ExitStack() as stack:
    while True:
      try:
        stack.enter_context(atomic_files.hold_folder(folder))
        break
      except atomic_files.FolderInUseError:
        time.sleep(WAIT_SECONDS)
    yield


# ---------------------------------------------------------------------------------------------
# Outputs.


def write_outputs(folder: str, name: str, key: str, outputs: np.ndarray) -> None:
  """Writes `outputs_NAME.npz`.

  Args:
    folder: of the run.
    name: `eval` or `predict`, with the suffix of a second set.
    key: of the examples.
    outputs: float `[N, ...]`, one row for each example or word.
  """
  with atomic_files.written_whole(_outputs_file(folder, name)) as writer:
    np.savez_compressed(writer, outputs=np.asarray(outputs, np.float32), key=np.array(key))


def has_outputs(folder: str, name: str) -> bool:
  """Tells whether a run has saved outputs of a set."""
  return os.path.isfile(_outputs_file(folder, name))


def read_outputs(folder: str, name: str) -> tuple[np.ndarray, str]:
  """Reads what `write_outputs` wrote: the outputs, float32, and the key of their examples.

  Raises:
    ValueError: the file does not exist, or is damaged.
  """
  path = _outputs_file(folder, name)
  try:
    with np.load(path, allow_pickle=False) as content:
      return content["outputs"], str(content["key"])
  except FileNotFoundError:
    raise ValueError(
      f"{path} does not exist: run {folder} once more, with --save_outputs and --do_eval or "
      "--do_predict."
    ) from None
  except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
    raise ValueError(f"{path} is damaged ({error}).") from None


def mean_outputs(folders: Sequence[str], name: str, key: str) -> np.ndarray:
  """The mean of what several runs say of the same examples.

  Args:
    folders: of the runs.
    name: as in `write_outputs`.
    key: of the examples that are expected.

  Returns:
    float32, of their shape.

  Raises:
    ValueError: a run has no such outputs, or those of other examples.
  """
  total = None
  for folder in folders:
    outputs, found = read_outputs(folder, name)
    if found != key or (total is not None and outputs.shape != total.shape):
      raise ValueError(
        f"{_outputs_file(folder, name)} is of other examples than those that are read now: the "
        "data have changed since that run. Restore them, or repeat the run."
      )
    outputs = outputs.astype(np.float64)
    total = outputs if total is None else total + outputs
  if total is None:
    raise ValueError("There is no run to average.")
  return (total / len(folders)).astype(np.float32)


def _outputs_file(folder: str, name: str) -> str:
  return os.path.join(folder, f"outputs_{name}.npz")


# ---------------------------------------------------------------------------------------------
# The summary of a run's dev set.


def write_summary(
  folder: str, headline: str, metrics: Sequence[str], failure: str | None, examples: int
) -> None:
  """Writes `dev_summary.json`.

  Args:
    folder: of the run.
    headline: the metric by which runs are compared.
    metrics: those to report, the headline among them, as in `eval_results.txt`.
    failure: why the model counts as failed, or None; see `constant_answers`.
    examples: their number.
  """
  summary = {
    "headline": headline,
    "metrics": list(metrics),
    "failure": failure,
    "examples": examples,
  }
  atomic_files.write_text(os.path.join(folder, SUMMARY_FILE), json.dumps(summary, indent=2) + "\n")


def failure_of(folder: str) -> str | None:
  """Says why the model of a run counts as failed.

  None if it does not, or if the run has written no `dev_summary.json`.
  """
  path = os.path.join(folder, SUMMARY_FILE)
  return json_files.read_if_there(path, "Remove it.").get("failure")


def read_summary(folder: str) -> Mapping[str, Any]:
  """The content of `dev_summary.json`, as `write_summary` names it.

  Raises:
    OSError: it does not exist.
    ValueError: it is damaged.
  """
  path = os.path.join(folder, SUMMARY_FILE)
  content = json_files.read_if_there(path, "Remove it.")
  if not {"headline", "metrics", "failure", "examples"} <= set(content):
    raise ValueError(f"{path} does not exist, or is damaged: repeat the run.")
  return content
