"""The results of a sweep over GLUE: a table of scores, the average, and the files to submit.

Scores are those of the dev sets. GLUE's own scores are those of its test sets, whose labels only
its server has: https://gluebenchmark.com/submit takes the `submission.zip` of `write_submission`.
"""

import dataclasses
import json
import os
import statistics
import zipfile
from collections.abc import Iterable, Mapping, Sequence

from bert.io import atomic_files, tables
from bert.sweeps.glue_runs import DIAGNOSTIC, TASKS, GridRun, best_setting, describe
from bert.sweeps.report import SweepReport
from bert.sweeps.sweep import Outcome, finished

_HEADER = ("Task", "Metrics", "Best run", "Score", "Mean ± SD", "Best setting", "Runs")


@dataclasses.dataclass
class TaskScore:
  """What the runs of a task have scored."""

  task: str  # its name
  outcomes: Sequence[Outcome[GridRun]]  # of every run of the grid
  # The finished runs of the best setting, the best one first; may be empty.
  ranked: Sequence[Outcome[GridRun]] = ()

  def __post_init__(self):
    self.ranked = best_setting(self.outcomes)

  @property
  def best(self) -> float:
    """Score of the best run of the best setting."""
    return self.ranked[0].score

  @property
  def mean(self) -> float:
    """Mean over the best setting's seeds."""
    return statistics.fmean(outcome.score for outcome in self.ranked)

  @property
  def median(self) -> float:
    """Median over the best setting's seeds."""
    return statistics.median(outcome.score for outcome in self.ranked)

  @property
  def spread(self) -> float | None:
    """Sample standard deviation over the best setting's seeds; None for a single one."""
    scores = [outcome.score for outcome in self.ranked]
    return statistics.stdev(scores) if len(scores) > 1 else None

  @property
  def finished(self) -> int:
    """Number of runs of the grid that have finished."""
    return len(finished(self.outcomes))

  @property
  def broken(self) -> list[Outcome[GridRun]]:
    """The runs that did not finish."""
    return [outcome for outcome in self.outcomes if outcome.failure is not None]

  @property
  def collapsed(self) -> list[Outcome[GridRun]]:
    """The runs whose model is no better than one answer to everything."""
    return [outcome for outcome in self.outcomes if outcome.collapsed]


def glue_average(scores: Mapping[str, float]) -> float:
  """Computes GLUE's macro-average: each task counts once, however many metrics it has.

  Args:
    scores: task -> mean of its official metrics; MNLI's two accuracies are one score.

  Example, BERT-Base of the paper (table 1; F1 and accuracy, Pearson and Spearman of the
  leaderboard), which the leaderboard lists with 78.3:
    >>> scores = {"CoLA": 52.1, "SST-2": 93.5, "MRPC": (88.9 + 84.8) / 2,
    ...           "STS-B": (87.1 + 85.8) / 2, "QQP": (71.2 + 89.2) / 2, "MNLI": (84.6 + 83.4) / 2,
    ...           "QNLI": 90.5, "RTE": 66.4, "WNLI": 65.1}
    >>> round(glue_average(scores), 1)
    78.3
  """
  return statistics.fmean(scores.values())


# ---------------------------------------------------------------------------------------------
# The table.


class GlueReport(SweepReport):
  """The figures of all tasks.

  Args:
    summaries: one for each task of the sweep, in GLUE's order.
    problems: further failures, listed below the table.
  """

  def __init__(self, summaries: Sequence[TaskScore], problems: Iterable[str] = ()):
    self.summaries = summaries
    self.problems = [
      *(f"{o.run} did not finish: {o.failure}" for summary in summaries for o in summary.broken),
      *problems,
    ]

  @property
  def scored(self) -> list[TaskScore]:
    """The tasks that have a score."""
    return [summary for summary in self.summaries if summary.ranked]

  @property
  def missing(self) -> list[str]:
    """The tasks of GLUE without a score."""
    return [name for name in TASKS if name not in {summary.task for summary in self.scored}]

  def averages(self) -> dict[str, dict[str, float]]:
    """Returns `best` and `mean` of each average: over all tasks, and over all but WNLI."""
    groups = {"average": self.scored}
    others = [summary for summary in self.scored if summary.task != "WNLI"]
    if 0 < len(others) < len(self.scored):
      groups["average_without_wnli"] = others
    return {
      name: {
        "best": glue_average({summary.task: summary.best for summary in group}),
        "mean": glue_average({summary.task: summary.mean for summary in group}),
      }
      for name, group in groups.items()
      if group
    }

  def _rows(self):
    rows = [_HEADER, [], *map(_row, self.summaries), *([[]] if self.scored else [])]
    titles = {"average": "Average", "average_without_wnli": "without WNLI"}
    count = f"{len(self.scored)} of {len(TASKS)} tasks"
    for name, average in self.averages().items():
      cells = (titles[name], "", "", _percent(average["best"]), _percent(average["mean"]))
      rows.append((*cells, count if name == "average" else "", ""))
    return rows

  def _notes(self):
    notes = [
      "Dev sets, times 100. A task's score is the mean of its metrics. The best setting has the "
      "highest mean over its seeds; SD is the sample standard deviation over them; the best run is "
      "that setting's best seed."
    ]
    if self.missing:
      names = ", ".join(self.missing)
      notes.append(f"Not in the average: {names}. It is therefore not GLUE's own average.")
    if "WNLI" not in self.missing:
      notes.append(
        "WNLI's dev set repeats training sentences with other labels: few models exceed 56.3, the "
        "share of its more frequent label. The paper leaves WNLI out of its average, and counts "
        "MNLI's two accuracies as two tasks there."
      )
    collapsed = [outcome for summary in self.summaries for outcome in summary.collapsed]
    return notes + [f"FAILED: {outcome.run}: {outcome.collapsed}." for outcome in collapsed]

  def json(self):
    """Returns every run and every figure of the table, unrounded, from -1 to 1."""
    content = {
      "tasks": {summary.task: _json_of(summary) for summary in self.summaries},
      **self.averages(),
      "missing_tasks": self.missing,
      "problems": self.problems,
    }
    return json.dumps(content, indent=2) + "\n"


def _row(summary: TaskScore) -> Sequence[str]:
  runs = f"{summary.finished} of {len(summary.outcomes)}"
  if summary.broken:
    runs += f", {len(summary.broken)} did not finish"
  if summary.collapsed:
    runs += f", {len(summary.collapsed)} failed"
  titles = " / ".join(metric.title for metric in TASKS[summary.task].metrics)
  if not summary.ranked:
    return (summary.task, titles, "-", "-", "-", "-", runs)
  results = summary.ranked[0].results
  spread = "" if summary.spread is None else f" ± {_percent(summary.spread)}"
  return (
    summary.task,
    " / ".join(results),
    " / ".join(map(_percent, results.values())),
    _percent(summary.best),
    _percent(summary.mean) + spread,
    describe(summary.ranked[0].run.setting),
    runs,
  )


def _percent(value: float) -> str:
  return f"{100 * value:.1f}"


def _json_of(summary: TaskScore) -> dict:
  runs = [
    {
      "learning_rate": outcome.run.learning_rate,
      "epochs": outcome.run.epochs,
      "seed": outcome.run.seed,
      "folder": outcome.run.folder,
      "metrics": outcome.results,
      "score": None if outcome.results is None else outcome.score,
      "steps": outcome.steps,
      "seconds": outcome.seconds,
      "failure": outcome.failure,
      "collapsed": outcome.collapsed,
    }
    for outcome in summary.outcomes
  ]
  if not summary.ranked:
    return {"runs": runs}
  best = summary.ranked[0]
  return {
    "metrics": best.results,
    "best": summary.best,
    "mean": summary.mean,
    "median": summary.median,
    "standard_deviation": summary.spread,
    "seeds": [outcome.run.seed for outcome in summary.ranked],
    "learning_rate": best.run.learning_rate,
    "epochs": best.run.epochs,
    "best_run": best.run.folder,
    "runs": runs,
  }


# ---------------------------------------------------------------------------------------------
# The submission.

_SUBMISSION_FILES = (
  *(submission for task in TASKS.values() for _, _, submission in task.test_sets),
  DIAGNOSTIC.name,
)


def submission_text(task: str, predictions_file: str, test_file: str) -> str:
  """Writes a task's predictions as GLUE's server reads them: `index` and `prediction`.

  Args:
    task: its name; scores of STS-B are kept within 0 to 5, as GLUE's are.
    predictions_file: `predictions.tsv` of run_classifier.py.
    test_file: the texts that were predicted; its column `index` or `id`, if any, identifies rows.

  Raises:
    ValueError: the files differ in rows, as after --skip_bad_rows: GLUE needs every row.
  """
  with open(predictions_file, encoding="utf-8") as reader:
    values = [line.rstrip("\n").split("\t")[1] for line in reader][1:]
  indices = _indices(test_file)
  if len(indices) != len(values):
    raise ValueError(
      f"{test_file} has {len(indices)} rows, but {predictions_file} has {len(values)}: GLUE "
      "accepts only complete submissions."
    )
  if task == "STS-B":
    values = [_score_text(value) for value in values]
  rows = [f"{index}\t{value}\n" for index, value in zip(indices, values, strict=True)]
  return "".join(["index\tprediction\n", *rows])


def _indices(test_file: str) -> list[str]:
  header, *rows = tables.read_tsv(test_file)
  is_named = header[0].lower() in ("index", "id")
  return [row[0] if is_named else str(number) for number, row in enumerate(rows)]


def _score_text(text: str) -> str:
  """Writes a score of STS-B.

  Example:
    >>> _score_text("5.2093"), _score_text("-0.1"), _score_text("3.14159")
    ('5.000', '0.000', '3.142')
  """
  return f"{min(max(float(text), 0.0), 5.0):.3f}"


def write_submission(output_dir: str, texts: Mapping[str, str]) -> str:
  """Writes `submission/NAME.tsv` of each text and `submission.zip` of all; returns the latter."""
  folder = os.path.join(output_dir, "submission")
  os.makedirs(folder, exist_ok=True)
  for name in os.listdir(folder):
    if name.endswith(".tsv") and name[:-4] not in texts:  # of an earlier sweep over other tasks
      os.remove(os.path.join(folder, name))
  path = os.path.join(output_dir, "submission.zip")
  temporary = path + ".tmp"
  with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
    for name, text in texts.items():
      atomic_files.write_text(os.path.join(folder, f"{name}.tsv"), text)
      archive.write(os.path.join(folder, f"{name}.tsv"), f"{name}.tsv")
  atomic_files.force_to_disk(temporary)
  os.replace(temporary, path)
  return path


def missing_from_submission(names: Iterable[str]) -> list[str]:
  """Lists the files that GLUE's server expects in addition to these.

  Example:
    >>> missing_from_submission(set(_SUBMISSION_FILES) - {"MNLI-mm", "AX"})
    ['MNLI-mm', 'AX']
  """
  present = set(names)
  return [name for name in _SUBMISSION_FILES if name not in present]
