"""The report of a run: written when the run ends, or later by `report.py`.

A report that cannot be made costs a run nothing: all its files are there before, and what is wrong
is a warning.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from absl import logging

from bert.io import atomic_files, filesystem
from bert.io.wording import in_one_message
from bert.predicting.known_rows import KnownRows
from bert.reports import html_page
from bert.scripts import command_line, run_subject
from bert.scripts.run_settings import RunSettings

FILE = "report.html"
"""Its name in the folder of a run."""


def write(folder: str, output_file: str, chosen: run_subject.Chosen) -> None:
  """Makes the report of a run.

  Raises:
    OSError: the file cannot be written.
    ValueError: the folder holds no model that was trained.
  """
  write_page(output_file, lambda: html_page.render(run_subject.subject_of(folder, chosen)))


def write_page(output_file: str, make: Callable[[], str]) -> None:
  """Makes a page, writes it, and logs how long both took; an OSError if it cannot be written."""
  start = time.monotonic()
  html = make()
  atomic_files.write_text(output_file, html)
  seconds = time.monotonic() - start
  logging.info("Wrote %s, %.1f MB, in %.1f s.", output_file, len(html.encode()) / 1e6, seconds)


def write_at_end(settings: RunSettings, run_passes: int, known_rows: KnownRows) -> None:
  """Writes `OUTPUT_DIR/report.html` of a run that is complete but for this.

  Its examples are those that the run evaluated; a run that only trained has none.

  Args:
    settings: of the run.
    run_passes: examples that it computed, see `answered_examples.Budget`.
    known_rows: what its model gave for them.
  """
  folder = settings.output_dir
  if filesystem.is_remote(folder):
    logging.info("No report: %s is remote. Copy the folder, then: report.py FOLDER.", folder)
    return
  has_results = os.path.isfile(settings.path("eval_results.txt"))
  chosen = run_subject.Chosen(is_answered=has_results, run_passes=run_passes, known_rows=known_rows)
  with failing_as_warning("The run itself is complete"):
    write(folder, os.path.join(folder, FILE), chosen)


@contextlib.contextmanager
def failing_as_warning(what_is_safe: str) -> Iterator[None]:
  """Makes a warning of an error while a report is written; of a program's developer it is none."""
  try:
    yield
  except Exception as error:
    # Whatever it is, a bug of ours or of a user's task among them: all else is there.
    if command_line.wants_traceback():
      raise
    logging.warning(
      "No report: %s.%s %s; --noreport leaves the report out.",
      *(in_one_message(error).rstrip("."), command_line.log_traceback(error), what_is_safe),
    )
