"""The runs of a sweep, what they have scored, and which one is the best."""

import collections
import dataclasses
import glob
import math
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bert.scripts import result_files
from bert.tasks.run_statistics import shown, title


@dataclasses.dataclass(frozen=True)
class Run:
  """One run of a sweep: a process with a directory of its own."""

  seed: int  # its `--seed`
  folder: str  # its `--output_dir`
  # Everything that decides its result, by name, in JSON types.
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False, hash=False)
  task: str = ""  # where the sweep has several
  setting: str = ""  # what it shares with runs of other seeds, where the sweep has several

  @property
  def name(self) -> str:
    """Its name among the runs of its task."""
    return ", ".join(filter(None, (self.setting, f"seed {self.seed}")))

  def __str__(self):
    return ", ".join(filter(None, (self.task, self.name)))


@dataclasses.dataclass
class Outcome:
  """The outcome of a run."""

  run: Run  # the run
  results: Mapping[str, float] | None = None  # metric -> number, or None if it has not finished
  headline: tuple[str, ...] = ()  # the metrics whose mean is the score
  metrics: tuple[str, ...] = ()  # the metrics to show, the headline first
  collapsed: str | None = None  # why the model is no better than a constant answer, or None
  failure: str | None = None  # why the process failed, or None
  examples: int = 0  # number of dev examples
  seconds: float | None = None  # that the process took

  @property
  def score(self) -> float:
    """The number by which runs are compared; larger is better."""
    return statistics.fmean(self.results[name] for name in self.headline)

  @property
  def is_settled(self) -> bool:
    """Whether it has finished or failed."""
    return self.results is not None or self.failure is not None

  def read(self) -> None:
    """Reads the files of a run that has finished, `dev_summary.json` and `eval_results*.txt`.

    Raises:
      ValueError: a file is damaged, or a score is not a finite number.
      OSError: a file cannot be read.
    """
    folder = self.run.folder
    summary = result_files.read_summary(folder)
    if not {"headline", "metrics", "failure", "examples"} <= set(summary):
      path = os.path.join(folder, result_files.SUMMARY_FILE)
      raise ValueError(f"{path} is missing, or is damaged: repeat the run.")
    results = _read_results(folder)
    headline = summary["headline"]
    if not math.isfinite(results.get(headline, math.nan)):
      found = results.get(headline, "missing")
      raise ValueError(f"{folder}/eval_results.txt: {headline} is {found}.")
    names = dict.fromkeys((headline, *summary["metrics"]))
    further = [key for name in names for key in results if key.startswith(f"{name}_mis")]
    self.headline = (headline,)
    self.metrics = tuple(name for name in (*names, *further) if name in results)
    self.collapsed, self.examples = summary["failure"], summary["examples"]
    self.results = results

  def describe(self) -> str:
    """Writes the scores of a finished run in one line."""
    scores = [f"{title(name)} {shown(name, self.results[name])}" for name in self.metrics]
    return ", ".join(scores) + (f"; FAILED: {self.collapsed}" if self.collapsed else "")


def _read_results(folder: str) -> dict[str, float]:
  """Reads all numbers of `eval_results*.txt`; those of a second set have its suffix."""
  results = {}
  for path in sorted(glob.glob(os.path.join(glob.escape(folder), "eval_results*.txt"))):
    suffix = os.path.basename(path).removeprefix("eval_results").removesuffix(".txt")
    for name, value in result_files.read_eval_results(path).items():
      results[name + suffix] = value
  return results


def finished(outcomes: Iterable[Outcome]) -> list[Outcome]:
  """Leaves out runs without results."""
  return [outcome for outcome in outcomes if outcome.results is not None]


def ranked(outcomes: Iterable[Outcome]) -> list[Outcome]:
  """Sorts finished runs, the best first; equal scores keep their order."""
  return sorted(finished(outcomes), key=lambda outcome: -outcome.score)


def best_setting(outcomes: Iterable[Outcome]) -> list[Outcome]:
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


def superfluous(outcomes: Sequence[Outcome]) -> list[Run]:
  """Finds the finished runs that can no longer become the best one.

  Of settled settings, all runs except the best one of the best setting; of a setting with runs
  still to be done, all finished runs except the best so far.
  """
  kept = [outcome.run for outcome in best_setting(outcomes)[:1]]
  for setting in {outcome.run.setting for outcome in outcomes}:
    members = [outcome for outcome in outcomes if outcome.run.setting == setting]
    if finished(members) and not all(outcome.is_settled for outcome in members):
      kept.append(ranked(members)[0].run)
  return [outcome.run for outcome in finished(outcomes) if outcome.run not in kept]
