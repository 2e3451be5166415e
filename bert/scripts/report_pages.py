"""The page that `report.py` writes: of one run, of the runs of a sweep, or of runs to compare.

report_pages.write(["/tmp/mrpc_1", "/tmp/mrpc_2"], "mrpc.html", Chosen(max_examples=500))

`results.json` has all numbers of a sweep; curves and settings are in the directories of its runs.
"""

import os
import urllib.parse
from collections.abc import Sequence
from typing import Any

from bert.figures import training_curves
from bert.io import filesystem, json_files
from bert.predicting import load_run
from bert.reports import runs
from bert.reports.runs import Entry, Runs
from bert.reports.subject import Subject
from bert.scripts import command_line, run_files, run_report, run_subject
from bert.scripts.run_report import FILE
from bert.scripts.run_subject import Chosen

_RESULTS = "results.json"
# Names that tell these results from other files.
_NAMES = {"title", "runs", "groups", "averages", "problems", "notes"}
_OF_EARLIER_VERSIONS = ({"runs", "metrics", "best_seed"}, {"tasks", "missing_tasks"})


def folders_of(words: Sequence[str]) -> list[str]:
  """Returns the directories that a command line names.

  Raises:
    UsageError: it names none, one that does not exist, one twice, or a directory of many runs
      beside another.
  """
  if not words:
    raise command_line.UsageError(
      "Name a run, the --output_dir of its script, or several to compare: report.py RUN [RUN2 ...]."
    )
  for word in words:
    if not filesystem.is_folder(word):
      raise command_line.UsageError(f"{word} is not a directory. Name the --output_dir of a run.")
  if len(words) > 1 and (sweeps := [word for word in words if results_of(word)]):
    raise command_line.UsageError(
      f"{sweeps[0]} is a directory of many runs. Name one of the runs in it, to compare that."
    )
  known: dict[str, str] = {}
  for word in words:
    if (other := known.setdefault(os.path.realpath(word), word)) is not word:
      raise command_line.UsageError(f"{word} is the same directory as {other}. Name another run.")
  return [os.path.normpath(word) for word in words]


def default_file(folders: Sequence[str]) -> str:
  """Names the page.

  Example:
    >>> default_file(["out/a"]), default_file(["out/a", "out/b"])
    ('out/a/report.html', 'out/a/compared_with_b.html')
    >>> default_file(["out/a", "out/b", "out/c"])
    'out/a/compared_with_2_others.html'
  """
  others = [os.path.basename(os.path.abspath(folder)) for folder in folders[1:]]
  if len(others) > 1:
    others = [f"{len(others)}_others"]
  return os.path.join(folders[0], f"compared_with_{others[0]}.html" if others else FILE)


def write(folders: Sequence[str], output_file: str, chosen: Chosen) -> None:
  """Writes the page of one run, of a sweep, or of runs to compare.

  Raises:
    UsageError: runs are of different tasks.
    ValueError: a directory holds no model that was trained, or a file is damaged.
    OSError: the page cannot be written, or a file cannot be read.
  """
  if len(folders) > 1:
    check_tasks(folders)
    run_report.write_page(output_file, lambda: runs.render(_compared(folders, output_file, chosen)))
  elif results_of(folders[0]):
    run_report.write_page(output_file, lambda: page_of_sweep(folders[0], output_file))
  else:
    run_report.write(folders[0], output_file, chosen)


def write_at_end(folder: str) -> None:
  """Writes `FOLDER/report.html` of a sweep whose results are written; a failure is a warning."""
  with run_report.failing_as_warning("All results are written"):
    write([folder], os.path.join(folder, FILE), Chosen())


def _link(folder: str, page: str) -> str:
  """Returns the address of a run's report, or of its directory, as seen from a page."""
  path = os.path.join(folder, FILE)
  if not os.path.isfile(path):
    path = folder + os.sep
  relative = os.path.relpath(path, os.path.dirname(page) or ".").replace(os.sep, "/")
  return urllib.parse.quote(relative) + ("/" if path.endswith(os.sep) else "")


# ---------------------------------------------------------------------------------------------
# Runs of a sweep.


def results_of(folder: str) -> dict[str, Any]:
  """Reads the results of a sweep; empty of another directory.

  Raises:
    ValueError: they are of an earlier version.
  """
  path = os.path.join(folder, _RESULTS)
  found = json_files.read_if_there(path, "Remove it.")
  if any(names <= set(found) for names in _OF_EARLIER_VERSIONS):
    raise ValueError(
      f"{path} is of an earlier version. Give the command of its runs once more, which writes it "
      "anew: finished runs are not repeated."
    )
  return found if set(found) >= _NAMES else {}


def page_of_sweep(folder: str, page: str) -> str:
  """Returns the page of a sweep.

  Args:
    folder: of all runs.
    page: the file, from which links are relative.
  """
  found = results_of(folder)
  entries = [
    Entry(**{**run, "folder": os.path.join(folder, run["folder"])}) for run in found["runs"]
  ]
  has_tasks = any(each.group for each in entries)
  for each in entries:
    each.link = _link(each.folder, page)
    if not has_tasks and os.path.isdir(each.folder):
      each.curves = run_subject.curves_of(each.folder)
  best = next((each.folder for each in entries if each.is_best), None)
  command = run_subject.text_in(best, run_files.COMMAND) if best else ""
  names = ("averages", "problems", "notes")
  values = {name: found[name] for name in names}
  return runs.render(Runs(found["title"], folder, entries, command=command, **values))


# ---------------------------------------------------------------------------------------------
# Runs that a user names.


def _compared(folders: Sequence[str], page: str, chosen: Chosen) -> Runs:
  """Reads runs of one task; two of them answer the eval set."""
  is_pair = len(folders) == 2
  # The page does not explain answers.
  chosen = chosen._replace(is_explained=False, is_answered=chosen.is_answered and is_pair)
  subjects = [run_subject.subject_of(folder, chosen) for folder in folders]
  names = training_curves.run_names(folders)
  entries = [_named(*each, page) for each in zip(names, subjects, strict=True)]
  flags = {name: values for name, values in runs.differing(entries).items() if name != "seed"}
  for number, entry in enumerate(entries):
    entry.setting = ", ".join(f"{name} {values[number] or '–'}" for name, values in flags.items())
  examples = [each.examples for each in subjects if each.examples]
  return Runs(
    subjects[0].task,
    "",
    entries,
    notes=[f"{each.folder}: {what}" for each in subjects for what in each.missing],
    is_comparison=True,
    examples=(examples[0], examples[1]) if len(examples) == 2 else None,
  )


def _named(name: str, subject: Subject, page: str) -> Entry:
  results = {result: float(value) for result, value in subject.results.items()}
  headline = {key: value for key, value in results.items() if key == subject.headline}
  return Entry(
    name,
    subject.folder,
    {**headline, **results},
    collapsed=subject.failure,
    seconds=run_subject.json_in(subject.folder, "run.json").get("seconds"),
    link=_link(subject.folder, page),
    flags={**subject.flags, **{f"version of {key}": v for key, v in subject.versions.items()}},
    curves=subject.curves,
  )


def check_tasks(folders: Sequence[str]) -> None:
  """Checks that runs are of one task, before anything is answered.

  Raises:
    UsageError: they are not.
  """
  first, *others = folders
  task = _task_of(first)
  for other in others:
    if (its_task := _task_of(other)) != task:
      raise command_line.UsageError(
        f"{first} is a run of {' on '.join(task)}, {other} one of {' on '.join(its_task)}. Only "
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
