"""The page of a sweep, read from its folder: written when it ends, or later by `report.py`.

  sweep_pages.write("/tmp/mrpc", "/tmp/mrpc/report.html", Chosen())

`results.json` there has all figures; curves, settings and outputs lie in the folders of the runs.
"""

import math
import os
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from bert.figures.event_files import Run
from bert.io import json_files
from bert.io.wording import in_one_message
from bert.predicting import load_run
from bert.reports import grid, many
from bert.scripts import (
  answered_examples,
  run_files,
  run_outputs,
  run_report,
  run_subject,
  trained_task,
)
from bert.scripts.run_subject import Chosen
from bert.tasks import kinds

RESULTS = "results.json"
"""The file of a sweep with all its figures."""

# What tells the figures of seeds and those of tasks from other files.
_OF_MANY_RUNS, _OF_TASKS = {"runs", "metrics", "best_seed"}, {"tasks", "missing_tasks"}
_DATA_CHANGED = (
  "the data are not those that the runs were evaluated on: they have changed, or lie elsewhere."
)


def results_of(folder: str) -> dict[str, Any]:
  """Reads the figures of a sweep; empty of a folder that is none."""
  found = json_files.read_if_there(os.path.join(folder, RESULTS), "Remove it.")
  is_sweep = any(names <= set(found) for names in (_OF_MANY_RUNS, _OF_TASKS))
  return found if is_sweep else {}


def write(folder: str, output_file: str, chosen: Chosen) -> None:
  """Makes the page of a sweep.

  Raises:
    OSError: the file cannot be written, or one of the sweep cannot be read.
    ValueError: a file of the sweep is damaged.
  """
  run_report.write_page(output_file, lambda: page_of(folder, output_file, chosen))


def write_at_end(folder: str) -> None:
  """Writes `FOLDER/report.html` of a sweep whose figures are written; what fails is a warning."""
  with run_report.failing_as_warning("All results are written"):
    write(folder, os.path.join(folder, run_report.FILE), Chosen())


def page_of(folder: str, output_file: str, chosen: Chosen) -> str:
  """Returns the page of a sweep; its links are relative to its file. See `write`."""
  found, place = results_of(folder), os.path.dirname(output_file)
  if set(found) >= _OF_TASKS:
    return grid.render(_grid(folder, found, place))
  return many.render(_many_runs(folder, found, place, chosen))


def _grid(folder: str, found: Mapping[str, Any], place: str) -> grid.Grid:
  """Reads a sweep over tasks: each run has a folder in that of its task."""
  links = {}
  for task, summary in found["tasks"].items():
    for run in summary["runs"]:
      # The folder may have moved since its runs wrote their places down.
      path = os.path.join(folder, task, os.path.basename(run["folder"]))
      links[run["folder"]] = _link(path, place) or (_address(path, place) + "/")
  return grid.Grid(folder, found, links)


def _link(folder: str, place: str) -> str:
  """Returns the address of a run's report, as seen from a folder; "" where there is none."""
  path = os.path.join(folder, run_report.FILE)
  return _address(path, place) if os.path.isfile(path) else ""


def _address(path: str, place: str) -> str:
  return urllib.parse.quote(os.path.relpath(path, place or ".").replace(os.sep, "/"))


# ---------------------------------------------------------------------------------------------
# Runs that differ in their seed.


def _many_runs(folder: str, found: Mapping[str, Any], place: str, chosen: Chosen) -> many.ManyRuns:
  # The folder may have moved since its runs wrote their places down.
  folders = {
    run["seed"]: os.path.join(folder, os.path.basename(run["folder"])) for run in found["runs"]
  }
  links = {seed: _link(each, place) for seed, each in folders.items()}
  runs = many.ManyRuns(
    folder,
    found["script"],
    found,
    curves=_curves(list(folders.values())),
    links={seed: link for seed, link in links.items() if link},
  )
  if found["best_seed"] is None:
    return runs
  runs.best_folder = folders[found["best_seed"]]
  flags = run_subject.json_in(runs.best_folder, run_files.FLAGS)
  runs.task = run_subject.title_of(flags, kinds.known_script(found["script"])) or found["script"]
  runs.command = run_subject.text_in(runs.best_folder, run_files.COMMAND)
  runs.versions = run_subject.json_in(runs.best_folder, run_files.VERSIONS)
  finished = {run["seed"]: folders[run["seed"]] for run in found["runs"] if run["results"]}
  try:
    if chosen.is_answered:
      runs.answers = _answers(finished, runs.best_folder, found["ensemble"] or {}, chosen)
  except Exception as error:
    # Data that are gone, or a method of a user's task that fails: the rest of the page is there.
    runs.missing = [f"There are no examples: {in_one_message(error)}"]
    logging.warning("The report has no examples: %s", in_one_message(error))
  return runs


def _curves(folders: Sequence[str]) -> list[Run]:
  found = (run_subject.curves_of(folder) for folder in folders if os.path.isdir(folder))
  return [each for each in found if each]


def _answers(
  folders: Mapping[int, str], best: str, ensemble: Mapping[str, float], chosen: Chosen
) -> many.Answers:
  """Reads what runs have answered to the set that they were evaluated on.

  Args:
    folders: seed -> folder, of the runs that finished.
    best: one of these folders.
    ensemble: scores of the mean of the outputs, by which the data are recognised.
    chosen: what to show.

  Raises:
    ValueError: outputs are missing, or are not of these data.
    OSError: data cannot be read.
  """
  run = load_run.find_run(best)
  flags = run_subject.json_in(best, run_files.FLAGS)
  task = run_subject.task_of(run, best, flags, chosen)
  data = task.data_sets(task.scored_split)[0]
  names = [os.path.basename(folder) for folder in folders.values()]
  if not all(run_outputs.has_outputs(each, data.record_name) for each in folders.values()):
    raise ValueError(f"{', '.join(names)} have saved no outputs, see --save_outputs.")
  answers = _checked_answers(task, data, list(folders.values()), ensemble)
  answering, _ = load_run.answering_of(run)
  places = answered_examples.sample(len(data.examples), chosen.max_examples)
  examples = [data.examples[n] for n in places]
  items = trained_task.items_of(task, examples)
  shown, gold = task.shown(answering), [task.gold(each) for each in examples]
  return many.Answers(
    shown,
    list(folders),
    [
      [shown.case(*three) for three in zip(items, gold, [each[n] for n in places], strict=True)]
      for each in answers
    ],
    gold,
    [n + 1 for n in places],
    len(data.examples),
    data.split + data.suffix,
  )


def _checked_answers(
  task: Any, data: Any, folders: Sequence[str], ensemble: Mapping[str, float]
) -> list[Sequence[Mapping[str, Any]]]:
  """Returns the answers of each run, which are of these data; see `_answers`."""
  found = [run_outputs.read_outputs(folder, data.record_name) for folder in folders]
  mean = run_outputs.mean_outputs(folders, data.record_name, found[0][1])
  try:
    scores = task.score(data, mean)
  except (IndexError, ValueError):  # they are not as many
    raise ValueError(_DATA_CHANGED) from None
  for name, score in ensemble.items():
    # Files have seven digits.
    if name in scores and not math.isclose(scores[name], score, rel_tol=1e-5, abs_tol=1e-6):
      raise ValueError(_DATA_CHANGED)
  answers = [task.answers_of_outputs(data, outputs) for outputs, _ in found]
  if any(each is None or len(each) != len(data) for each in answers):
    raise ValueError("answers to these examples do not follow from the outputs of the runs.")
  return answers
