"""The page of a sweep over tasks: what each task scores, with which setting, and what failed.

  html = grid.render(Grid("/tmp/glue_output", results))

The numbers are those of the sweep's `results.json`; nothing of them is computed again.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert.reports import html_page


@dataclasses.dataclass
class Grid:
  """The runs of a sweep.

  Attributes:
    folder: of all runs, as its user names it.
    results: the content of `results.json`, see `sweeps.glue_report`.
    links: folder of a run, as `results` has it -> address of its report or its folder.
  """

  folder: str
  results: Mapping[str, Any]
  links: Mapping[str, str] = dataclasses.field(default_factory=dict)


class TaskRow(NamedTuple):
  """What is shown of a task beside its figures."""

  task: str
  figures: Mapping[str, Any]  # of `results`
  finished: int  # runs
  broken: int  # that did not finish
  failed: int  # whose model is no better than one answer to everything
  steps: int | None  # of the best run
  minutes: float  # of all runs together
  link: str  # of the best run


def render(grid: Grid) -> str:
  """Makes the page."""
  return html_page.page("grid.html", functools.partial(contents, grid), numbers)


def contents(grid: Grid, most_cases: int) -> dict[str, Any]:
  """Returns what the page shows; it has no examples, whose number therefore does not matter."""
  del most_cases
  rows = [_row(grid, task, figures) for task, figures in grid.results["tasks"].items()]
  return {
    "grid": grid,
    "results": grid.results,
    "averages": {
      name: grid.results[name]
      for name in ("average", "average_without_wnli")
      if name in grid.results
    },
    "rows": rows,
    "num_scored": sum("best" in row.figures for row in rows),
    "num_runs": sum(len(row.figures["runs"]) for row in rows),
    "num_finished": sum(row.finished for row in rows),
    "hours": sum(row.minutes for row in rows) / 60,
  }


def _row(grid: Grid, task: str, figures: Mapping[str, Any]) -> TaskRow:
  runs = figures["runs"]
  best = next((run for run in runs if run["folder"] == figures.get("best_run")), {})
  return TaskRow(
    task,
    figures,
    sum(run["metrics"] is not None for run in runs),
    sum(run["failure"] is not None for run in runs),
    sum(bool(run.get("collapsed")) for run in runs),
    best.get("steps"),
    sum(run.get("seconds") or 0.0 for run in runs) / 60,
    grid.links.get(best.get("folder", ""), ""),
  )


def numbers(shown: dict[str, Any]) -> dict[str, Any]:
  """Returns those of `results.json`."""
  return dict(shown["results"])
