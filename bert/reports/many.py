"""The page of runs that differ in their seed: their scores, their curves, and what most get wrong.

  html = many.render(ManyRuns("/tmp/mrpc", "MRPC", results))

The numbers are those of the sweep's `results.json`; nothing of them is computed again.
"""

import collections
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bert.figures.event_files import Run
from bert.reports import charts, html_page, several
from bert.tasks.shown import Case, Shown

_MOST_CURVES = 24  # as many styles of lines there are


@dataclasses.dataclass
class Answers:
  """What several runs answered to the same examples.

  Attributes:
    shown: how the task shows them.
    seeds: of the runs.
    cases: of each run, those of all examples that are shown.
    gold: what is right for each of them, None where it is unknown.
    numbers: their places in the file, from 1.
    total: how many examples the set has.
    source: the name of the set.
  """

  shown: Shown
  seeds: Sequence[int]
  cases: Sequence[Sequence[Case]]
  gold: Sequence[Any]
  numbers: Sequence[int]
  total: int
  source: str = "dev"


@dataclasses.dataclass
class ManyRuns:
  """The runs of a sweep.

  Attributes:
    folder: of all runs, as its user names it.
    task: the name of the task or of the data.
    results: the content of `results.json`, see `sweeps.many_runs_report`.
    best_folder: of the best run; "" without one.
    command: the command line of that run; "" where it is unknown.
    versions: of Python and libraries there.
    curves: of the runs, as far as they have some.
    links: seed -> address of the run's own report, where there is one.
    answers: None where the runs have saved none.
    missing: what the page lacks, sentences.
  """

  folder: str
  task: str
  results: Mapping[str, Any]
  best_folder: str = ""
  command: str = ""
  versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
  curves: Sequence[Run] = ()
  links: Mapping[int, str] = dataclasses.field(default_factory=dict)
  answers: Answers | None = None
  missing: Sequence[str] = ()


class Row(NamedTuple):
  """A line of the table of scores."""

  name: str
  values: Sequence[float | None]  # of each metric
  minutes: float | None = None
  note: str = ""
  is_bad: bool = False
  link: str = ""


def render(runs: ManyRuns) -> str:
  """Makes the page."""
  return html_page.page("many.html", functools.partial(contents, runs), numbers)


def contents(runs: ManyRuns, most_cases: int) -> dict[str, Any]:
  """Returns what the page shows.

  Args:
    runs: the runs.
    most_cases: examples that are shown.
  """
  found = runs.results
  metrics = list(found["metrics"])
  finished = [each for each in found["runs"] if each["results"] is not None]
  groups = [("", _summary_rows(found["metrics"], metrics))]
  if found["failed_seeds"] and found["metrics_without_failed"]:
    groups.append(("without failed runs", _summary_rows(found["metrics_without_failed"], metrics)))
  groups.append(("", _average_rows(found, metrics)))
  return {
    "runs": runs,
    "results": found,
    "metrics": metrics,
    "finished": finished,
    "summary": found["metrics"].get(found["headline"]),
    "collapsed": [each for each in finished if each["collapsed"]],
    "rows": [_row(runs, each, metrics) for each in found["runs"]],
    "groups": [(name, rows) for name, rows in groups if rows],
    "curves": charts.learning_curves(*runs.curves[:_MOST_CURVES]),
    "num_curves": min(len(runs.curves), _MOST_CURVES),
    "examples": of_answers(runs.answers, most_cases) if runs.answers else None,
  }


def _row(runs: ManyRuns, run: Mapping[str, Any], metrics: Sequence[str]) -> Row:
  is_best = run["seed"] == runs.results["best_seed"] and not run["collapsed"]
  note = "best" if is_best else "failed" if run["collapsed"] else ""
  note = "did not finish" if run["results"] is None else note
  return Row(
    f"seed {run['seed']}",
    [(run["results"] or {}).get(name) for name in metrics],
    None if run["seconds"] is None else run["seconds"] / 60,
    note,
    is_bad=note not in ("", "best"),
    link=runs.links.get(run["seed"], ""),
  )


def _summary_rows(summaries: Mapping[str, Any], metrics: Sequence[str]) -> list[Row]:
  if not summaries:
    return []

  def row(title: str, key: str, place: int | None = None) -> Row:
    values = [summaries[name][key] for name in metrics]
    return Row(title, values if place is None else [each and each[place] for each in values])

  return [
    row("mean", "mean"),
    row("standard deviation", "deviation"),
    row("95 % from", "interval", 0),
    row("95 % to", "interval", 1),
    row("lowest", "minimum"),
    row("highest", "maximum"),
  ]


def _average_rows(found: Mapping[str, Any], metrics: Sequence[str]) -> list[Row]:
  """Returns the ensemble, and the soup where it was kept."""
  soup = found["soup"]
  averages = {"ensemble": found["ensemble"], "soup": soup["results"] if soup else None}
  if soup and not soup["is_kept"]:
    averages.pop("soup")
  return [
    Row(name, [results.get(metric) for metric in metrics])
    for name, results in averages.items()
    if results
  ]


# ---------------------------------------------------------------------------------------------
# Examples.


def of_answers(answers: Answers, most_cases: int) -> dict[str, Any] | None:
  """Returns the examples that most runs get wrong; None where nothing says what is wrong.

  Where answers are right by degrees, these are the examples with the highest mean loss.
  """
  examples = list(zip(*answers.cases, strict=True))  # [N] of the cases of all runs
  wrong = [_wrong(cases) for cases in examples]
  losses = [several.mean([case.loss for case in cases]) for cases in examples]
  by_degrees = not examples or None in wrong
  if by_degrees and (not examples or None in losses):
    return None
  order = sorted(range(len(examples)), key=lambda n: (-(wrong[n] or 0), -(losses[n] or 0.0), n))
  if by_degrees:
    order = [n for n in order if losses[n]]
  else:
    order = [n for n in order if 2 * wrong[n] > len(answers.seeds)]
  return {
    "source": answers.source,
    "count": len(examples),
    "total": answers.total,
    "by_degrees": by_degrees,
    "counts": [] if by_degrees else _counts(wrong, len(answers.seeds)),
    "num_wrong": len(order),
    "loss_name": answers.shown.loss_name,
    "baseline": answers.shown.baseline(answers.gold),
    "cases": [
      several.card(answers.numbers[n], _grouped(answers.seeds, examples[n]))
      for n in order[:most_cases]
    ],
  }


def _wrong(cases: Sequence[Case]) -> int | None:
  """Counts wrong answers to an example; None where they are right by degrees, or unknown."""
  rights = [case.is_right for case in cases]
  return None if None in rights else rights.count(False)


def _counts(wrong: Sequence[int | None], num_runs: int) -> list[tuple[int, int]]:
  """Returns (N, how many examples N runs get wrong), for each N."""
  return [(number, list(wrong).count(number)) for number in range(num_runs + 1)]


def _grouped(seeds: Sequence[int], cases: Sequence[Case]) -> list[tuple[str, list[Case]]]:
  """Groups equal answers, the most frequent first."""
  groups: dict[Any, list[tuple[int, Case]]] = collections.defaultdict(list)
  for seed, case in zip(seeds, cases, strict=True):
    key = (case.predicted, tuple(case.passages), tuple(case.values.items()))
    groups[key].append((seed, case))
  ranked = sorted(groups.values(), key=len, reverse=True)
  return [(_named([n for n, _ in each]), [case for _, case in each]) for each in ranked]


def _named(seeds: Sequence[int]) -> str:
  """Names runs.

  Example:
    >>> _named([3]), _named([1, 2])
    ('seed 3', 'seeds 1, 2')
  """
  return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


# ---------------------------------------------------------------------------------------------
# The numbers of the page, for programs.


def numbers(shown: dict[str, Any]) -> dict[str, Any]:
  """Returns those of `results.json`, and of the examples."""
  examples = shown["examples"]
  found = {"task": shown["runs"].task, **shown["results"]}
  if examples:
    names = ("source", "count", "total", "counts", "num_wrong")
    found["examples"] = {
      **{name: examples[name] for name in names},
      "most_wrong": [
        {
          "number": each["number"],
          "gold": each["gold"],
          "answers": [answer._asdict() for answer in each["answers"]],
        }
        for each in examples["cases"]
      ],
    }
  return found
