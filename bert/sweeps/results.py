"""The results of a sweep: a table as text, JSON, and a page, all of the same values.

What they show is computed in `reports.runs`, where the page is made.
"""

import json
import os
import textwrap
from collections.abc import Sequence
from typing import Any

from absl import logging

from bert.io import atomic_files
from bert.io.wording import aligned, counted
from bert.reports import runs
from bert.reports.runs import Entry, Group, Runs
from bert.scripts import report_pages
from bert.tasks.run_statistics import titles

_WIDTH = 100
_HEADER = ("Task", "Metrics", "Best run", "Score", "Mean ± SD", "Best setting", "Runs")


def write(found: Runs, output_dir: str, with_page: bool = False) -> str:
  """Writes `results.txt`, `results.json`, and `report.html` if that is wanted; returns the text.

  A page that fails is a warning.
  """
  content = runs.contents(found, 0)
  base = os.path.join(output_dir, "results")
  table = text(content)
  atomic_files.write_text(f"{base}.txt", table)
  atomic_files.write_text(f"{base}.json", json.dumps(runs.numbers(content), indent=2) + "\n")
  logging.info("Wrote %s.txt and %s.json.", base, base)
  if with_page:
    report_pages.write_at_end(output_dir)
  return table


def text(content: dict[str, Any]) -> str:
  """Writes `runs.contents` as tables and paragraphs."""
  found, groups = content["runs"], content["groups"]
  value = f"{content['value']} " if content["value"] is not None else ""
  head = f"{found.title}, {counted(len(found.entries), 'run')}: {value}{content['value_name']}"
  sections = _of_tasks(groups) if len(groups) > 1 else _of_runs(*groups)
  # Columns are aligned over all sections, between which there are rules.
  lines = iter(aligned([row for section in sections for row in section]))
  tables = [[next(lines) for _ in section] for section in sections]
  rule = "-" * max(len(line) for table in tables for line in table)
  body = [line for table in tables for line in (rule, *table)][1:]
  best = content["best"]
  notes = [*content["sentences"], *found.notes, content["hint"]]
  notes += [f"Best run: {best.name}, {os.path.join(found.folder, best.folder)}."] if best else []
  notes += [
    f"FAILED: {', '.join(filter(None, (each.group, each.name)))}: {each.collapsed}."
    for each in found.entries
    if each.collapsed
  ]
  paragraphs = [textwrap.fill(note, _WIDTH, break_long_words=False) for note in filter(None, notes)]
  problems = [f"PROBLEM: {problem}" for problem in found.problems]
  return "\n".join([head, "", *body, "", *paragraphs, *problems]) + "\n"


def _of_runs(group: Group) -> list[list[Sequence[str]]]:
  """Returns the rows of a table of runs: its header, the runs, and what sums them up."""
  head: Sequence[str] = ("run", *titles(group.metrics).values(), "minutes", "")
  rows: list[Sequence[str]] = [
    (
      each.name,
      *map(runs.figure, map(each.results.get, group.metrics), group.decimals),
      "–" if each.seconds is None else f"{each.seconds / 60:.1f}",
      _remark(each),
    )
    for each in group.entries
  ]
  summed: list[Sequence[str]] = [(row.name, *row.cells, "", "") for row in group.rows]
  return [section for section in ([head], rows, summed) if section]


def _remark(entry: Entry) -> str:
  if entry.failure:
    return "did not finish"
  return "FAILED" if entry.collapsed else "best" if entry.is_best else ""


def _of_tasks(groups: Sequence[Group]) -> list[list[Sequence[str]]]:
  """Returns the rows of a table of tasks: its header, and the best run and setting of each."""
  return [[_HEADER], [_row_of_task(group) for group in groups]]


def _row_of_task(group: Group) -> Sequence[str]:
  count = f"{group.finished} of {len(group.entries)}"
  for number, what in (
    (len(group.entries) - group.finished, "did not finish"),
    (sum(bool(each.collapsed) for each in group.entries), "failed"),
  ):
    count += f", {number} {what}" if number else ""
  best = group.best
  if not best:
    return (group.name, *["–"] * 5, count)
  digits = group.decimals[0]
  names = [name for name in best.results if name != "score"]
  return (
    group.name,
    " / ".join(names),
    " / ".join(runs.figure(best.results[name], digits) for name in names),
    runs.figure(best.score, digits),
    runs.spread(group.best_summary, digits),
    best.setting,
    count,
  )
