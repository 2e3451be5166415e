"""The page that `report.py` writes of what it is given: one run, or two to compare.

html = report_pages.page_of(["/tmp/mrpc_1", "/tmp/mrpc_2"], Chosen(max_examples=500))
"""

import os
from collections.abc import Sequence

from bert.io import filesystem, json_files
from bert.predicting import load_run
from bert.reports import comparison, html_page
from bert.scripts import command_line, run_files, run_subject
from bert.scripts.run_subject import Chosen


def folders_of(words: Sequence[str]) -> list[str]:
  """Returns the folders that a command line names, one or two.

  Raises:
    UsageError: it names none, or more, one that does not exist, or one twice.
  """
  if not 1 <= len(words) <= 2:
    raise command_line.UsageError(
      "Name a run, the --output_dir of its script, or two to compare: report.py RUN [RUN2]."
      + (f" {len(words)} were named." if words else "")
    )
  for word in words:
    if not filesystem.is_folder(word):
      raise command_line.UsageError(f"{word} is no folder. Name the --output_dir of a run.")
  if len({os.path.realpath(word) for word in words}) < len(words):
    raise command_line.UsageError(f"{words[1]} is the same folder as {words[0]}. Name another run.")
  return [os.path.normpath(word) for word in words]


def default_file(folders: Sequence[str]) -> str:
  """Names the page.

  Example:
    >>> default_file(["out/a"]), default_file(["out/a", "out/b"])
    ('out/a/report.html', 'out/a/compared_with_b.html')
  """
  others = [os.path.basename(os.path.abspath(folder)) for folder in folders[1:]]
  return os.path.join(folders[0], f"compared_with_{others[0]}.html" if others else "report.html")


def page_of(folders: Sequence[str], chosen: Chosen) -> str:
  """Makes the page of one run, or of two.

  Raises:
    UsageError: two runs are of different tasks.
    ValueError: a folder holds no fine-tuned model.
  """
  if len(folders) == 1:
    return html_page.render(run_subject.subject_of(folders[0], chosen))
  check_tasks(*folders)
  return comparison.render(*(run_subject.subject_of(folder, chosen) for folder in folders))


def check_tasks(first: str, second: str) -> None:
  """Checks that two runs are of one task, before anything is answered.

  Raises:
    UsageError: they are not.
  """
  tasks = [_task_of(folder) for folder in (first, second)]
  if tasks[0] != tasks[1]:
    raise command_line.UsageError(
      f"{first} is a run of {' on '.join(tasks[0])}, {second} one of {' on '.join(tasks[1])}. Only "
      "runs of the same task can be compared."
    )


def _task_of(folder: str) -> tuple[str, ...]:
  """Returns the script of a run and, where it has one, the name of its data."""
  kind = load_run.find_run(folder).kind
  script = kind.script if kind.file else f"{kind.script}.py"
  path = os.path.join(folder, run_files.FLAGS)
  name = json_files.read_if_there(path, "Remove it.").get("task_name")
  return (script, str(name).upper()) if name else (script,)
