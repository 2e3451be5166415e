"""GLUE as a sweep sees it: its tasks, their folders, and how they are scored.

Scores are those of the dev sets. GLUE's own scores are those of its test sets, whose labels only
its server has.
"""

import dataclasses
import os
import statistics
from collections.abc import Mapping
from typing import NamedTuple

from absl import logging

from bert.scripts import run_states


class Metric(NamedTuple):
  """One of the numbers that GLUE scores a task by."""

  title: str  # in the table
  key: str  # in the results


@dataclasses.dataclass(frozen=True)
class Task:
  """A task as GLUE scores and collects it (https://gluebenchmark.com/faq)."""

  name: str  # as GLUE writes it
  metrics: tuple[Metric, ...]  # the official ones; the score of the task is their mean
  # (suffix of the prediction files, file of the data folder, file to submit without its ending).
  test_sets: tuple[tuple[str, str, str], ...] = ()
  train_files: tuple[str, ...] = ("train.tsv", "dev.tsv")  # files that the data folder must contain


_ACCURACY = (Metric("accuracy", "eval_accuracy"),)
_ACCURACY_F1 = (Metric("accuracy", "eval_accuracy"), Metric("F1", "eval_f1"))


def _task(name: str, metrics: tuple[Metric, ...]) -> Task:
  return Task(name, metrics, (("", "test.tsv", name),))


TASKS: dict[str, Task] = {
  task.name: task
  for task in (
    _task("CoLA", (Metric("Matthews", "eval_matthews_corrcoef"),)),
    _task("SST-2", _ACCURACY),
    _task("MRPC", _ACCURACY_F1),
    _task("STS-B", (Metric("Pearson", "eval_pearson"), Metric("Spearman", "eval_spearman"))),
    _task("QQP", _ACCURACY_F1),
    Task(
      "MNLI",
      (
        Metric("accuracy m", "eval_accuracy"),
        Metric("accuracy mm", "eval_accuracy_mismatched"),
      ),
      (("", "test_matched.tsv", "MNLI-m"), ("_mismatched", "test_mismatched.tsv", "MNLI-mm")),
      ("train.tsv", "dev_matched.tsv"),
    ),
    _task("QNLI", _ACCURACY),
    _task("RTE", _ACCURACY),
    _task("WNLI", _ACCURACY),
  )
}
"""GLUE's nine tasks, in the order of its leaderboard."""

DIAGNOSTIC = Task("AX", (), (("", "diagnostic.tsv", "AX"), ("", "AX.tsv", "AX")), ())
"""GLUE's tenth set: nothing to train or evaluate on; a model of MNLI predicts it."""

_OTHER_FOLDERS = {"diagnostic": DIAGNOSTIC.name}  # what GLUE's own script calls it


def find_tasks(glue_dir: str) -> dict[str, str]:
  """Finds the data folders below `glue_dir`: name of the task -> path, in GLUE's order.

  Case, `-` and `_` of the folders' names do not matter. A folder without training or dev data is
  left out with a warning; folders of other names are ignored.

  Raises:
    ValueError: the folder does not exist, or contains no task.
  """
  if not os.path.isdir(glue_dir):
    raise ValueError(f"--glue_dir={glue_dir} is not a folder.")
  names = {plain(name): name for name in (*TASKS, DIAGNOSTIC.name)} | _OTHER_FOLDERS
  found = {}
  for folder in sorted(os.listdir(glue_dir)):
    name, path = names.get(plain(folder)), os.path.join(glue_dir, folder)
    if name and os.path.isdir(path) and _is_complete(name, path):
      found.setdefault(name, path)
  if not found:
    raise ValueError(
      f"--glue_dir={glue_dir} contains no task of GLUE: folders such as {', '.join(TASKS)}, with "
      "train.tsv and dev.tsv in each."
    )
  return {name: found[name] for name in (*TASKS, DIAGNOSTIC.name) if name in found}


def _is_complete(name: str, path: str) -> bool:
  if name == DIAGNOSTIC.name:
    return bool(find_test_files(DIAGNOSTIC, path))
  missing = [each for each in TASKS[name].train_files if not _is_file(path, each)]
  if missing:
    logging.warning("%s is left out: %s has no %s.", name, path, " and no ".join(missing))
  return not missing


def find_test_files(task: Task, data_dir: str) -> list[tuple[str, str, str]]:
  """Finds the `test_sets` of a task whose file exists; the file comes with its path."""
  return [
    (suffix, os.path.join(data_dir, file), submission)
    for suffix, file, submission in task.test_sets
    if _is_file(data_dir, file)
  ]


def _is_file(folder: str, name: str) -> bool:
  return os.path.isfile(os.path.join(folder, name))


def plain(name: str) -> str:
  """Removes from a task's name the differences between its spellings."""
  return name.lower().replace("-", "").replace("_", "")


# ---------------------------------------------------------------------------------------------
# Runs and scores.


def identity_of_data(task: Task, data_dir: str) -> str:
  """Returns the identity of all files on which a run is trained and evaluated."""
  names = [*task.train_files, "dev_mismatched.tsv"]
  return run_states.identity(
    os.path.join(data_dir, name) for name in names if _is_file(data_dir, name)
  )


def setting_of(learning_rate: float, epochs: float) -> str:
  """Names a point of the grid, without its seed.

  Example:
    >>> setting_of(2e-5, 3.0)
    'rate 2e-05, 3 epochs'
  """
  return f"rate {learning_rate:g}, {epochs:g} epochs"


def folder_name(learning_rate: float, epochs: float, seed: int) -> str:
  """Names the folder of a run within that of its task.

  Example:
    >>> folder_name(2e-5, 3.0, 1)
    'lr2e-05_epochs3_seed1'
  """
  return f"lr{learning_rate:g}_epochs{epochs:g}_seed{seed}"


def average(scores: Mapping[str, float]) -> float:
  """Computes GLUE's macro-average: each task counts once, however many metrics it has.

  Args:
    scores: task -> mean of its official metrics; MNLI's two accuracies are one score.

  Example, BERT-Base of the paper (table 1; F1 and accuracy, Pearson and Spearman of the
  leaderboard), which the leaderboard lists with 78.3:
    >>> scores = {"CoLA": 52.1, "SST-2": 93.5, "MRPC": (88.9 + 84.8) / 2,
    ...           "STS-B": (87.1 + 85.8) / 2, "QQP": (71.2 + 89.2) / 2, "MNLI": (84.6 + 83.4) / 2,
    ...           "QNLI": 90.5, "RTE": 66.4, "WNLI": 65.1}
    >>> round(average(scores), 1)
    78.3
  """
  return statistics.fmean(scores.values())
