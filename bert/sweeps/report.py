"""The report of a sweep: a table with notes as text, JSON, and a page."""

import os
import textwrap
from collections.abc import Sequence

from absl import logging

from bert.io import atomic_files
from bert.io.wording import aligned
from bert.scripts import report_pages

_WIDTH = 100


class SweepReport:
  """What the runs of a sweep say together; a kind of sweep derives its own from it.

  Attributes:
    problems: one line for each process that failed.
  """

  problems: Sequence[str]

  def _head(self) -> list[str]:
    """Returns the lines above the table."""
    return []

  def _rows(self) -> Sequence[Sequence[str]]:
    """Returns the cells of the table, its header first.

    A row without cells is a rule, a row with a single one is a line of its own.
    """
    raise NotImplementedError

  def _notes(self) -> list[str]:
    """Returns what a reader of the table must know, a paragraph each."""
    raise NotImplementedError

  def json(self) -> str:
    """Returns every run and every figure of the table, unrounded."""
    raise NotImplementedError

  def text(self) -> str:
    """Returns the table as plain text."""
    rows = [row for row in self._rows() if len(row) > 1]
    width = max(map(len, rows))
    lines = iter(aligned([(*row, *[""] * (width - len(row))) for row in rows]))
    table = [next(lines) if len(row) > 1 else "".join(row) for row in self._rows()]
    rule = "-" * max(map(len, table))
    notes = [textwrap.fill(note, _WIDTH, break_long_words=False) for note in self._notes()]
    problems = [f"PROBLEM: {problem}" for problem in self.problems]
    body = [line or rule for line in table]
    return "\n".join([*self._head(), *body, "", *notes, *problems]) + "\n"

  def write(self, output_dir: str, with_page: bool = False) -> None:
    """Writes `results.txt`, `results.json`, and `report.html` if that is wanted.

    A page that fails is a warning.
    """
    base = os.path.join(output_dir, "results")
    atomic_files.write_text(f"{base}.txt", self.text())
    atomic_files.write_text(f"{base}.json", self.json())
    logging.info("Wrote %s.txt and %s.json.", base, base)
    if with_page:
      report_pages.write_at_end(output_dir)
