"""The runs of a sweep over GLUE: tasks, points of the grid, results, and the best run of a task.

Each run is one process of `run_classifier.py` with a folder of its own, OUTPUT_DIR/TASK/SETTING.
`run_glue.py` is the script; see `sweep` for how runs are made and resumed.
"""

import collections
import dataclasses
import glob
import math
import os
import shutil
import statistics
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from absl import logging

from bert.scripts import result_files, run_states
from bert.sweeps.sweep import Outcome, Run, finished, ranked

# ---------------------------------------------------------------------------------------------
# Tasks.


class Metric(NamedTuple):
  """One of the numbers that GLUE scores a task by."""

  title: str  # in the table
  key: str  # in the results file
  suffix: str = ""  # of the results file: MNLI has two


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
        Metric("accuracy mm", "eval_accuracy", "_mismatched"),
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
# Runs and their results.


@dataclasses.dataclass(frozen=True, kw_only=True)
class GridRun(Run):
  """One point of the grid."""

  task: str  # name in `TASKS`
  learning_rate: float  # peak rate
  epochs: float  # passes over the training data

  @property
  def setting(self) -> tuple[float, float]:
    """What runs with other seeds share."""
    return self.learning_rate, self.epochs

  def __str__(self):
    return f"{self.task}, {describe(self.setting)}, seed {self.seed}"


def describe(setting: tuple[float, float]) -> str:
  """Writes a point of the grid, without its seed, for people.

  Example:
    >>> describe((2e-5, 3.0))
    'rate 2e-05, 3 epochs'
  """
  return f"rate {setting[0]:g}, {setting[1]:g} epochs"


def folder_name(learning_rate: float, epochs: float, seed: int) -> str:
  """Names the folder of a run within that of its task.

  Example:
    >>> folder_name(2e-5, 3.0, 1)
    'lr2e-05_epochs3_seed1'
  """
  return f"lr{learning_rate:g}_epochs{epochs:g}_seed{seed}"


def has_something_to_lose(folder: str) -> bool:
  """Tells whether a folder holds more than a run writes before its first checkpoint."""
  has_results = os.path.isfile(os.path.join(folder, "eval_results.txt"))
  return has_results or has_checkpoint(folder) or not run_states.read_state(folder)


def is_finished(run: GridRun) -> bool:
  """Tells whether a run has results, with these settings, from a process that succeeded."""
  has_results = os.path.isfile(os.path.join(run.folder, "eval_results.txt"))
  is_done = bool(run_states.read_state(run.folder).get("finished"))
  return has_results and is_done and not run_states.conflict(run.folder, run.settings)


def read_results(outcome: Outcome[GridRun]) -> None:
  """Reads the official metrics of a finished run, by their titles, each from -1 to 1.

  Raises:
    ValueError: a results file lacks one, or it is not finite; a file is damaged.
    OSError: the results file does not exist.
  """
  results = {}
  for metric in TASKS[outcome.run.task].metrics:
    path = os.path.join(outcome.run.folder, f"eval_results{metric.suffix}.txt")
    if metric.suffix and not os.path.isfile(path):
      continue  # MNLI without dev_mismatched.tsv
    values = result_files.read_eval_results(path)
    results[metric.title] = values.get(metric.key, math.nan)
    outcome.steps = int(values["global_step"]) if "global_step" in values else None
    if not math.isfinite(results[metric.title]):
      raise ValueError(f"{path}: {metric.key} is {values.get(metric.key, 'missing')}.")
  outcome.results = results
  outcome.headline = outcome.metrics = tuple(results)
  outcome.collapsed = result_files.read_summary(outcome.run.folder).get("failure")


def identity_of_data(task: Task, data_dir: str) -> str:
  """Returns the identity of all files on which a run is trained and evaluated."""
  names = [*task.train_files, "dev_mismatched.tsv"]
  return run_states.identity(
    os.path.join(data_dir, name) for name in names if _is_file(data_dir, name)
  )


# ---------------------------------------------------------------------------------------------
# The best run of a task.


def best_setting(outcomes: Iterable[Outcome[GridRun]]) -> list[Outcome[GridRun]]:
  """Finds the finished runs of the best setting, the best run first; [] if none is settled.

  The best setting has the highest mean over its seeds: the single best run of a large grid is
  mostly luck. A setting with a failed seed counts only if every setting has one. A setting with
  runs still to be done does not count yet.
  """
  by_setting = collections.defaultdict(list)
  for outcome in outcomes:
    by_setting[outcome.run.setting].append(outcome)

  def rank(members):
    done = finished(members)
    return len(done) == len(members), statistics.fmean(outcome.score for outcome in done)

  candidates = [
    members
    for members in by_setting.values()
    if all(outcome.is_settled for outcome in members) and finished(members)
  ]
  return ranked(max(candidates, key=rank, default=[]))


def superfluous(outcomes: Sequence[Outcome[GridRun]]) -> list[GridRun]:
  """Finds the finished runs of a task that can no longer become its best one.

  Of settled settings, all runs except the best one of the best setting; of a setting with runs
  still to be done, all finished runs except the best so far.
  """
  kept = [outcome.run for outcome in best_setting(outcomes)[:1]]
  for setting in {outcome.run.setting for outcome in outcomes}:
    members = [outcome for outcome in outcomes if outcome.run.setting == setting]
    if finished(members) and not all(outcome.is_settled for outcome in members):
      kept.append(ranked(members)[0].run)
  return [outcome.run for outcome in finished(outcomes) if outcome.run not in kept]


# The pointer first: were it last, an interruption would leave it pointing nowhere.
_LARGE = ("checkpoint", "model.ckpt-*", "best", "*.tf_record", ".*.manifest.json")


def has_checkpoint(folder: str) -> bool:
  """Tells whether a folder holds weights for a prediction."""
  return bool(_find(folder, "model.ckpt-*.index", "best/*.index"))


def remove_checkpoints(folder: str) -> None:
  """Removes large files that can be made again; results, logs and curves stay."""
  for path in _find(folder, *_LARGE):
    if os.path.isdir(path):
      shutil.rmtree(path)
    else:
      os.remove(path)


def _find(folder: str, *patterns: str) -> list[str]:
  root = glob.escape(folder)
  return [path for pattern in patterns for path in glob.glob(os.path.join(root, pattern))]
