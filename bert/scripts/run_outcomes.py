"""What a run of many has left: its dev scores, and whether it counts as failed."""

import dataclasses
import glob
import math
import os
from collections.abc import Iterable, Mapping

from bert.scripts import result_files, run_outputs


@dataclasses.dataclass
class Outcome:
  """The outcome of a run, or of an average of runs.

  Attributes:
    seed: of the run; None of an average.
    folder: its `--output_dir`.
    results: name -> number, all of `eval_results*.txt`; those of a second set have its suffix. None
      if it has not finished.
    metrics: names of the results to show, the one by which runs are compared first.
    collapsed: why the model is no better than a constant answer, or None.
    failure: why the process failed, or None.
    examples: number of the dev set.
    seconds: that the process took.
  """

  seed: int | None
  folder: str
  results: Mapping[str, float] | None = None
  metrics: tuple[str, ...] = ()
  collapsed: str | None = None
  failure: str | None = None
  examples: int = 0
  seconds: float | None = None

  def read(self) -> None:
    """Reads the files of a run that has finished.

    Raises:
      ValueError: one is damaged, or a score is not a finite number.
      OSError: one cannot be read.
    """
    summary = run_outputs.read_summary(self.folder)
    results = read_figures(self.folder)
    headline = summary["headline"]
    if not math.isfinite(results.get(headline, math.nan)):
      shown = results.get(headline, "missing")
      raise ValueError(f"{self.folder}/eval_results.txt: {headline} is {shown}.")
    names = dict.fromkeys((headline, *summary["metrics"]))
    further = [key for name in names for key in results if key.startswith(f"{name}_mis")]
    self.metrics = tuple(name for name in (*names, *further) if name in results)
    self.collapsed, self.examples = summary["failure"], summary["examples"]
    self.results = results

  @property
  def score(self) -> float:
    """The result by which runs are compared; larger is better."""
    return self.results[self.metrics[0]]

  @property
  def is_settled(self) -> bool:
    """Whether it has finished or failed."""
    return self.results is not None or self.failure is not None


def read_figures(folder: str) -> dict[str, float]:
  """All numbers of `eval_results*.txt`; those of a second set have its suffix."""
  results = {}
  paths = sorted(glob.glob(os.path.join(glob.escape(folder), "eval_results*.txt")))
  for path in paths:
    suffix = os.path.basename(path).removeprefix("eval_results").removesuffix(".txt")
    for name, value in result_files.read_eval_results(path).items():
      results[name + suffix] = value
  return results


def ranked(outcomes: Iterable[Outcome]) -> list[Outcome]:
  """Finished runs, the best first; of equal scores in their order."""
  done = [outcome for outcome in outcomes if outcome.results is not None]
  return sorted(done, key=lambda outcome: -outcome.score)


def title(metric: str) -> str:
  """The name of a metric for people.

  Example:
    >>> title("eval_accuracy"), title("eval_accuracy_mismatched"), title("exact_match")
    ('accuracy', 'accuracy (mismatched)', 'exact match')
  """
  name = metric.removeprefix("eval_")
  if name.endswith("_mismatched"):
    return f"{title(name.removesuffix('_mismatched'))} (mismatched)"
  return name.replace("_", " ")


def shown(metric: str, value: float) -> str:
  """A number as the table has it: shares with four digits, SQuAD's percentages with two.

  Example:
    >>> shown("eval_accuracy", 0.79657), shown("f1", 46.2)
    ('0.7966', '46.20')
  """
  return f"{value:.4f}" if metric.startswith("eval_") else f"{value:.2f}"


def describe(outcome: Outcome) -> str:
  """The scores of a finished run in one line."""
  scores = [f"{title(name)} {shown(name, outcome.results[name])}" for name in outcome.metrics]
  return ", ".join(scores) + (f"; FAILED: {outcome.collapsed}" if outcome.collapsed else "")
