"""The runs of a sweep over GLUE: their tasks, settings and state, and the best one of a task.

Each run is one process of `run_classifier.py` with a folder of its own, OUTPUT_DIR/TASK/SETTING.
Beside the files of `run_classifier.py`, `run.json` records the settings of the run and whether it
has finished. A sweep can therefore resume at any point: a finished run is not repeated, an
unfinished one continues from its checkpoint, and one with other settings is refused.

`run_glue.py` is the script. Neither imports TensorFlow: the processes they start do.
"""

import collections
import dataclasses
import glob
import math
import os
import shutil
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from bert.scripts import result_files, run_states

# ---------------------------------------------------------------------------------------------
# Tasks.


class Metric(NamedTuple):
  """One of the numbers that GLUE scores a task by.

  Attributes:
    title: in the table.
    key: in the results file.
    suffix: of the results file: MNLI has two.
  """

  title: str
  key: str
  suffix: str = ""


@dataclasses.dataclass(frozen=True)
class Task:
  """A task as GLUE scores and collects it (https://gluebenchmark.com/faq).

  Attributes:
    name: as GLUE writes it.
    metrics: the official ones; the task's score is their mean.
    test_sets: (suffix of the prediction files, file of the data folder, file to submit without
      its ending).
    train_files: files that the data folder must contain.
  """

  name: str
  metrics: tuple[Metric, ...]
  test_sets: tuple[tuple[str, str, str], ...] = ()
  train_files: tuple[str, ...] = ("train.tsv", "dev.tsv")

  def score(self, results: Mapping[str, float]) -> float:
    """The mean of the official metrics.

    Args:
      results: `Metric.title` -> number.
    """
    return statistics.fmean(results.values())


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
      (
        ("", "test_matched.tsv", "MNLI-m"),
        ("_mismatched", "test_mismatched.tsv", "MNLI-mm"),
      ),
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
  """The data folders below `glue_dir`: name of the task -> path, in GLUE's order.

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
  """The `test_sets` of a task whose file exists, the file with its path."""
  return [
    (suffix, os.path.join(data_dir, file), submission)
    for suffix, file, submission in task.test_sets
    if _is_file(data_dir, file)
  ]


def _is_file(folder: str, name: str) -> bool:
  return os.path.isfile(os.path.join(folder, name))


def plain(name: str) -> str:
  """A task's name without the differences between its spellings."""
  return name.lower().replace("-", "").replace("_", "")


# ---------------------------------------------------------------------------------------------
# Runs and their state.


@dataclasses.dataclass(frozen=True)
class Run:
  """One point of the grid.

  Attributes:
    task: name in `TASKS`.
    learning_rate: peak rate.
    epochs: passes over the training data.
    seed: of the run.
    folder: its `--output_dir`.
    settings: everything that decides its result, by name, in JSON types.
  """

  task: str
  learning_rate: float
  epochs: float
  seed: int
  folder: str
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False, hash=False)

  @property
  def setting(self) -> tuple[float, float]:
    """The part that runs with other seeds share."""
    return self.learning_rate, self.epochs

  def __str__(self):
    return f"{self.task}, {describe(self.setting)}, seed {self.seed}"


def describe(setting: tuple[float, float]) -> str:
  """A point of the grid without its seed, for people.

  Example:
    >>> describe((2e-5, 3.0))
    'rate 2e-05, 3 epochs'
  """
  return f"rate {setting[0]:g}, {setting[1]:g} epochs"


def folder_name(learning_rate: float, epochs: float, seed: int) -> str:
  """The folder of a run within that of its task.

  Example:
    >>> folder_name(2e-5, 3.0, 1)
    'lr2e-05_epochs3_seed1'
  """
  return f"lr{learning_rate:g}_epochs{epochs:g}_seed{seed}"


def conflict(run: Run) -> str | None:
  """Why `run` must not continue in its folder: its files have other settings; None if it may."""
  return run_states.conflict(run.folder, run.settings)


def has_something_to_lose(folder: str) -> bool:
  """Whether it holds more than a run writes before its first checkpoint."""
  has_results = os.path.isfile(os.path.join(folder, "eval_results.txt"))
  return has_results or has_checkpoint(folder) or not run_states.read_state(folder)


def is_finished(run: Run) -> bool:
  """Whether its results exist, with these settings, from a process that succeeded."""
  is_there = os.path.isfile(os.path.join(run.folder, "eval_results.txt"))
  return is_there and bool(run_states.read_state(run.folder).get("finished")) and not conflict(run)


def read_results(run: Run) -> dict[str, float]:
  """The official metrics of a finished run by their titles, each from -1 to 1.

  Raises:
    ValueError: a results file lacks one, or it is not finite.
    OSError: the results file does not exist.
  """
  results = {}
  for metric in TASKS[run.task].metrics:
    path = os.path.join(run.folder, f"eval_results{metric.suffix}.txt")
    if metric.suffix and not os.path.isfile(path):
      continue  # MNLI without dev_mismatched.tsv
    values = result_files.read_eval_results(path)
    results[metric.title] = values.get(metric.key, math.nan)
    if not math.isfinite(results[metric.title]):
      raise ValueError(f"{path}: {metric.key} is {values.get(metric.key, 'missing')}.")
  return results


# ---------------------------------------------------------------------------------------------
# Which files a run was made from.


def identity_of_data(task: Task, data_dir: str) -> str:
  """Of all files on which a run is trained and evaluated."""
  names = [*task.train_files, "dev_mismatched.tsv"]
  return run_states.identity(
    os.path.join(data_dir, name) for name in names if _is_file(data_dir, name)
  )


# ---------------------------------------------------------------------------------------------
# The best run of a task.


@dataclasses.dataclass
class Outcome:
  """The outcome of a run.

  Attributes:
    run: the run.
    results: title of a metric -> number, or None if it has not finished.
    failure: why it failed, or None.
  """

  run: Run
  results: dict[str, float] | None = None
  failure: str | None = None

  @property
  def score(self) -> float:
    """GLUE's score of the run."""
    return TASKS[self.run.task].score(self.results)

  @property
  def is_settled(self) -> bool:
    """Whether it has finished or failed."""
    return self.results is not None or self.failure is not None


def best_setting(outcomes: Iterable[Outcome]) -> list[Outcome]:
  """The finished runs of the best setting, the best run first; [] if no setting is settled.

  The best setting has the highest mean over its seeds: the single best run of a large grid is
  mostly luck. A setting with a failed seed counts only if every setting has one. A setting with
  runs still to be done does not count yet.
  """
  by_setting = collections.defaultdict(list)
  for outcome in outcomes:
    by_setting[outcome.run.setting].append(outcome)

  def rank(members):
    done = [outcome for outcome in members if outcome.results is not None]
    return len(done) == len(members), statistics.fmean(outcome.score for outcome in done)

  candidates = [
    members
    for members in by_setting.values()
    if all(outcome.is_settled for outcome in members)
    and any(outcome.results is not None for outcome in members)
  ]
  best = max(candidates, key=rank, default=[])
  done = [outcome for outcome in best if outcome.results is not None]
  return sorted(done, key=lambda outcome: outcome.score, reverse=True)


def superfluous(outcomes: Sequence[Outcome]) -> list[Run]:
  """The finished runs of a task that can no longer become its best one.

  Of settled settings, all runs except the best one of the best setting; of a setting with runs
  still to be done, all finished runs except the best so far.
  """
  kept = [outcome.run for outcome in best_setting(outcomes)[:1]]
  for setting in {outcome.run.setting for outcome in outcomes}:
    members = [outcome for outcome in outcomes if outcome.run.setting == setting]
    done = [outcome for outcome in members if outcome.results is not None]
    if done and not all(outcome.is_settled for outcome in members):
      kept.append(max(done, key=lambda outcome: outcome.score).run)
  return [o.run for o in outcomes if o.results is not None and o.run not in kept]


# The pointer first: were it last, an interruption would leave it pointing nowhere.
_LARGE = ("checkpoint", "model.ckpt-*", "best", "*.tf_record", ".*.manifest.json")


def has_checkpoint(folder: str) -> bool:
  """Whether the folder holds weights for a prediction."""
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
