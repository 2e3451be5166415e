"""The report of many runs: a table of each metric's mean, spread and interval, and JSON."""

import dataclasses
import json
import os
from collections.abc import Callable, Sequence

from bert.io.wording import counted
from bert.sweeps.report import SweepReport
from bert.sweeps.sweep import Outcome, finished, ranked
from bert.tasks import run_statistics
from bert.tasks.run_statistics import Summary, shown, title


class ManyRunsReport(SweepReport):
  """What several runs say together."""

  def __init__(self, script: str, outcomes: Sequence[Outcome], problems: Sequence[str] = ()):
    """Computes nothing yet.

    Outcomes are in the order of the seeds; `problems` are failures other than those of runs.
    """
    self._script = os.path.basename(script).removesuffix(".py")
    self._outcomes = outcomes
    self._finished = finished(outcomes)
    self._best = next(iter(ranked(self._finished)), None)
    self.metrics = self._best.metrics if self._best else ()
    broken = [outcome for outcome in outcomes if outcome.failure]
    self.problems = [
      *(f"{outcome.run} did not finish: {outcome.failure}" for outcome in broken),
      *problems,
    ]

  @property
  def collapsed(self) -> list[Outcome]:
    """The runs that finished, but are no better than a constant answer."""
    return [outcome for outcome in self._finished if outcome.collapsed]

  def summaries(self, with_collapsed: bool = True) -> dict[str, Summary]:
    """Returns metric -> statistics over the runs that finished; empty without one."""
    runs = [each for each in self._finished if with_collapsed or not each.collapsed]
    if not runs:
      return {}
    return {
      name: run_statistics.summarize([outcome.results[name] for outcome in runs])
      for name in self.metrics
    }

  # -------------------------------------------------------------------------------------------
  # The table.

  def _rows(self) -> list[list[str]]:
    rows = [["seed", *map(title, self.metrics), "minutes", ""], []]
    rows += map(self._row_of_run, self._outcomes)
    if self._finished:
      rows += [[], *self._rows_of(self.summaries(), extremes=True)]
    others = len(self._finished) - len(self.collapsed)
    if self.collapsed and others:
      head = f"without the {counted(len(self.collapsed), 'failed run')}:"
      rows += [[], [head], *self._rows_of(self.summaries(with_collapsed=False))]
    return rows

  def _row(self, head: str, value_of: Callable[[str], float | None], *more: str) -> list[str]:
    values = [(name, value_of(name)) for name in self.metrics]
    return [head, *("-" if v is None else shown(name, v) for name, v in values), *more]

  def _row_of_run(self, outcome: Outcome) -> list[str]:
    results = outcome.results or {}
    minutes = "" if outcome.seconds is None else f"{outcome.seconds / 60:.1f}"
    notes = ["best"] if outcome is self._best and not outcome.collapsed else []
    note = ", ".join([*notes, "FAILED"] if outcome.collapsed else notes)
    if outcome.results is None:
      note = "did not finish"
    return self._row(str(outcome.run.seed), results.get, minutes, note)

  def _rows_of(self, summaries: dict[str, Summary], extremes: bool = False) -> list[list[str]]:
    def low(name):
      return summaries[name].interval and summaries[name].interval[0]

    def high(name):
      return summaries[name].interval and summaries[name].interval[1]

    rows = [self._row("mean", lambda name: summaries[name].mean)]
    rows.append(self._row("SD", lambda name: summaries[name].deviation))
    rows.append(self._row("95% from", low))
    rows.append(self._row("95% to", high))
    if extremes:
      rows.append(self._row("lowest", lambda name: summaries[name].minimum))
      rows.append(self._row("highest", lambda name: summaries[name].maximum))
    return rows

  def _notes(self) -> list[str]:
    if not self._finished:
      return ["No run has finished."]
    notes = [
      "SD is the sample standard deviation over the runs. 95% is the interval of the mean by "
      "Student's t: mean ± t * SD / sqrt(runs). It is about runs with other seeds on these data, "
      "not about other dev examples."
    ]
    for outcome in self.collapsed:
      notes.append(f"FAILED: {outcome.run}: {outcome.collapsed}.")
    if self._best.collapsed:
      notes.append("Every run has FAILED: none is better than one answer to everything.")
    else:
      notes.append(
        f"Best run: {self._best.run}, {self._best.run.folder}. The dev set chose it, and its score "
        "on that set is therefore too high to expect elsewhere; the mean is not."
      )
    return notes

  def _head(self):
    head = f"{counted(len(self._outcomes), 'run')} of {self._script}.py"
    if self._best:
      head += f", {counted(self._best.examples, 'dev example')}"
    return [head, ""]

  def json(self) -> str:
    """See base class."""
    summaries, others = self.summaries(), self.summaries(with_collapsed=False)
    content = {
      "script": self._script,
      "headline": self.metrics[0] if self.metrics else None,
      "interval": "95%, of the mean, Student's t",
      "metrics": {name: dataclasses.asdict(each) for name, each in summaries.items()},
      "metrics_without_failed": {name: dataclasses.asdict(each) for name, each in others.items()},
      "best_seed": self._best.run.seed if self._best else None,
      "failed_seeds": [outcome.run.seed for outcome in self.collapsed],
      "runs": list(map(_json_of, self._outcomes)),
      "problems": self.problems,
    }
    return json.dumps(content, indent=2) + "\n"


def _json_of(outcome: Outcome) -> dict:
  names = ("results", "metrics", "collapsed", "failure", "examples", "seconds")
  values = {name: getattr(outcome, name) for name in names}
  return {"seed": outcome.run.seed, "folder": outcome.run.folder, **values}
