"""The page that `report.py` writes of what it is given: a run, many of a sweep, two to compare.

report_pages.write(["/tmp/mrpc_1", "/tmp/mrpc_2"], "mrpc.html", Chosen(max_examples=500))
"""

import os
from collections.abc import Sequence

from bert.io import filesystem, json_files
from bert.predicting import load_run
from bert.reports import comparison
from bert.scripts import command_line, run_files, run_report, run_subject, sweep_pages
from bert.scripts.run_report import FILE
from bert.scripts.run_subject import Chosen


def folders_of(words: Sequence[str]) -> list[str]:
  """Returns the folders that a command line names, one or two.

  Raises:
    UsageError: it names none, or more, one that does not exist, or one twice, or a folder of many
      runs beside another.
  """
  if not 1 <= len(words) <= 2:
    raise command_line.UsageError(
      "Name a run, the --output_dir of its script, or two to compare: report.py RUN [RUN2]."
      + (f" {len(words)} were named." if words else "")
    )
  for word in words:
    if not filesystem.is_folder(word):
      raise command_line.UsageError(f"{word} is no folder. Name the --output_dir of a run.")
  sweeps = [word for word in words if sweep_pages.results_of(word)]
  if sweeps and len(words) > 1:
    raise command_line.UsageError(
      f"{sweeps[0]} is a folder of many runs. Name one of the runs in it, to compare that."
    )
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
  return os.path.join(folders[0], f"compared_with_{others[0]}.html" if others else FILE)


def write(folders: Sequence[str], output_file: str, chosen: Chosen) -> None:
  """Writes the page of one run, of a sweep, or of two runs.

  Raises:
    UsageError: two runs are of different tasks.
    ValueError: a folder holds no model that was trained.
    OSError: the file cannot be written.
  """
  if len(folders) == 1:
    is_sweep = bool(sweep_pages.results_of(folders[0]))
    write_one = sweep_pages.write if is_sweep else run_report.write
    write_one(folders[0], output_file, chosen)
    return
  check_tasks(*folders)
  chosen = chosen._replace(is_explained=False)  # the page does not show it
  subjects = (run_subject.subject_of(folder, chosen) for folder in folders)
  run_report.write_page(output_file, lambda: comparison.render(*subjects))


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
  from bert.checkpoints import finding, reading

  facts = reading.read_facts(finding.find_checkpoint(folder))
  if run_subject.learned_no_task(facts):
    return ("pre-training",)
  kind = load_run.find_run(folder).kind
  script = kind.script if kind.file else f"{kind.script}.py"
  path = os.path.join(folder, run_files.FLAGS)
  name = json_files.read_if_there(path, "Remove it.").get("task_name")
  return (script, str(name).upper()) if name else (script,)
