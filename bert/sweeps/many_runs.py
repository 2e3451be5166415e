"""Several runs that differ in their seed, made by one command (`--num_runs`, `--seeds`).

Each run is a process of the same script with a folder of its own, OUTPUT_DIR/seed_N. They share the
records of features (OUTPUT_DIR/features), which are written once. When all have ended, their
outputs are averaged (OUTPUT_DIR/ensemble), then their weights, as far as the dev score does not
fall (OUTPUT_DIR/soup), and `many_runs_report` writes what they say together.

A folder continues at any point: a finished run is not repeated, an unfinished one continues from
its checkpoint, more seeds are added, and other settings are refused. This process does not import
TensorFlow until it draws: those that it starts do.
"""

import dataclasses
import glob
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from bert.io import downloads
from bert.scripts import (
  command_line,
  flag_groups,
  output_folder,
  path_flags,
  run_settings,
  run_states,
  seeds,
)
from bert.scripts.run_settings import RunSettings
from bert.sweeps import dev_scores, parallel_processes, sweep, weight_soup
from bert.sweeps.many_runs_report import ManyRunsReport
from bert.sweeps.sweep import Outcome, Run, Sweep
from bert.training import hardware

FEATURES, ENSEMBLE, SOUP = "features", "ensemble", "soup"  # folders in OUTPUT_DIR

# The beginning of such a line in the log of a run, and how many are repeated.
_WARNING, _MOST_REPEATED = "WARNING:", 12

# Flags that this program gives its runs, or that are its own.
_NOT_PASSED_ON = {
  *("num_runs", "seeds", "parallel_runs", "gpus", "average_weights", "seed", "report"),
  *("output_dir", "export_dir", "do_train", "do_eval", "do_predict", "do_export"),
  *("features_dir", "save_outputs", "average_runs", "save_summary_steps"),
}


def main(script: str, settings: RunSettings, defaults: Mapping[str, Any]) -> int:
  """Makes the runs, or what is left of them, and reports.

  Args:
    script: the name of the script's module, such as `run_classifier`, or the path of a `.py` file.
    settings: of the command line, checked.
    defaults: flag -> value, for flags that have another default in this run than in `--help`.

  Returns:
    The exit code: 1 if a run or a later step failed, 128 and the signal's number if one came.

  Raises:
    ValueError: the folder holds other runs than these, or one that is not of this kind.
  """
  check_folder(settings.output_dir)
  settings = _with_files(settings)
  flags_of_runs = _flags_of_runs(defaults)
  output_folder.prepare(settings.output_dir)
  return ManyRuns(script, settings, flags_of_runs).carry_out()


# ---------------------------------------------------------------------------------------------
# The plan.


def check_folder(output_dir: str) -> None:
  """Refuses a folder with the files of a single run; the ValueError names one."""
  names = ("checkpoint", "model.ckpt-*.index", "eval_results.txt", "flags.json", "events.out.*")
  root = glob.escape(output_dir)
  found = [path for name in names for path in sorted(glob.glob(os.path.join(root, name)))]
  if found:
    raise ValueError(
      f"--output_dir={output_dir} holds a single run ({os.path.basename(found[0])}): many runs "
      "need a folder of their own. Give another --output_dir."
    )


def _with_files(settings: RunSettings) -> RunSettings:
  """Fetches model and data now, once, and not in each of several processes side by side."""
  settings = run_settings.with_model_files(settings)
  command_line.check_required(settings.values)
  if settings.get("data_dir") == "download":
    downloads.source("data").download_task_data(settings.task_name)
  return settings


def _flags_of_runs(defaults: Mapping[str, Any]) -> list[str]:
  """Collects the words of the command line that each run gets as they are."""
  words = []
  for flag in flag_groups.script_flags():
    if flag.name in _NOT_PASSED_ON:
      continue
    if command_line.flag_was_given(flag.name):
      words.append(flag.serialize())
    elif flag.name in defaults:
      words.append(f"--{flag.name}={defaults[flag.name]}")
  return [word for word in words if word]


def plan(settings: RunSettings) -> list[Run]:
  """Plans the runs of the command line, in the order of their seeds."""
  known = {flag.name: flag for flag in flag_groups.script_flags()}
  shared = {
    name: value
    for name, value in settings.values.items()
    # What a file holds counts, wherever it lies: see `run_outputs.write_once`.
    if name in known and not path_flags.is_path(known[name]) and name not in run_states.NO_SETTINGS
  }
  shared |= run_states.identities_of_model(settings)
  return [
    Run(seed, os.path.join(settings.output_dir, f"seed_{seed}"), {**shared, "seed": seed})
    for seed in seeds.of_settings(settings) or ()
  ]


def _done(folder: str) -> set[str]:
  """Returns the steps of a run that have succeeded, with the settings in its folder."""
  return set(run_states.read_state(folder).get("done", ()))


# ---------------------------------------------------------------------------------------------
# The work.


class ManyRuns(Sweep[Run]):
  """Makes the runs, then averages them."""

  def __init__(self, script: str, settings: RunSettings, flags_of_runs: Sequence[str]):
    """Starts nothing; see `main`. The settings have the model's files."""
    parallel, gpus = settings.parallel_runs, settings.gpus
    super().__init__(plan(settings), settings.output_dir, parallel, gpus, settings.report)
    self._script = script
    self._settings = settings
    self._flags = flags_of_runs
    self._wanted = [s for s in ("do_train", "do_eval", "do_predict") if settings.get(s)]
    self._ensemble: Outcome | None = None
    self._soup: weight_soup.Result | None = None

  def _check_folders(self):
    """Refuses folders of other settings, and a report of runs that do not exist."""
    for run, why in self.conflicts().items():
      raise ValueError(
        f"{run.folder} was made with other settings: {why}. Give the same flags, or another "
        "--output_dir."
      )
    missing = [run.folder for run in self.outcomes if "do_train" not in _done(run.folder)]
    if missing and not self._settings.do_train:
      names = ", ".join(map(os.path.basename, missing))
      raise ValueError(
        f"--output_dir={self.output_dir} has no finished {names}: train with --do_train."
      )

  def _run_all(self):
    self._write_state()
    for step in (self._make_runs, self._average_outputs, self._average_weights, self._export):
      if not self.is_stopped:
        step()

  def _report(self):
    if "tensorflow" not in sys.modules:
      # It reads the curves: on the CPU, since other programs may need the GPU by now.
      os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
      hardware.start_tensorflow()
    outcomes = list(self.outcomes.values())
    return ManyRunsReport(self._script, outcomes, self._ensemble, self._soup, self.problems)

  def _path(self, name: str) -> str:
    return os.path.join(self.output_dir, name)

  def _write_state(self, **state: Any) -> None:
    """Marks the folder as one of many runs."""
    before = run_states.read_state(self.output_dir)
    known = before.get("seeds", [])
    every = [*known, *(run.seed for run in self.outcomes if run.seed not in known)]
    run_states.write_state(self.output_dir, **{**before, "seeds": every, **state})

  # -------------------------------------------------------------------------------------------
  # Runs.

  def _make_runs(self) -> None:
    if self.make_runs():
      self._write_state(averaged=None)
      self._repeat_warnings()

  def _repeat_warnings(self) -> None:
    """Logs what the first run warned of: it is about the data of all runs, and lies in its log."""
    path = os.path.join(next(iter(self.outcomes)).folder, parallel_processes.LOG_FILE)
    if not os.path.isfile(path):
      return
    with open(path, encoding="utf-8", errors="replace") as reader:
      lines = [line.rstrip() for line in reader if line.startswith(_WARNING)]
    found = [line.split(":", 2)[-1] for line in dict.fromkeys(lines)]
    for text in found[:_MOST_REPEATED]:
      logging.warning("%s", text)
    if len(found) > _MOST_REPEATED:
      logging.warning("%d further warnings are in %s.", len(found) - _MOST_REPEATED, path)

  def _steps_left(self, run):
    done = _done(run.folder)
    if done.issuperset(self._wanted):
      return []
    # What has been trained is not trained again: predictions of it may come later.
    return [step for step in self._wanted if step != "do_train" or step not in done]

  def _command(self, run, *steps):
    return [*self._command_in(run.folder, *steps), f"--seed={run.seed}", *self._record_flags()]

  def _command_in(self, folder: str, *steps: str) -> list[str]:
    return [
      *sweep.program_of(self._script),
      *self._flags,
      *sweep.FLAGS_OF_RUNS,
      # The curves need more than one point every 100 steps.
      f"--save_summary_steps={self._settings.save_summary_steps}",
      f"--output_dir={folder}",
      *(f"--{name}" for name in steps),
    ]

  def _record_flags(self) -> tuple[str, str]:
    return f"--features_dir={self._path(FEATURES)}", "--save_outputs"

  def _mark_started(self, run):
    state = run_states.read_state(run.folder)
    run_states.write_state(run.folder, **{"done": [], **state, "settings": run.settings})

  def _mark_finished(self, run, seconds):
    state = run_states.read_state(run.folder)
    seconds += state.get("seconds", 0.0)
    done = sorted({*state.get("done", ()), *self._wanted})
    run_states.write_state(run.folder, settings=run.settings, done=done, seconds=seconds)

  def _read_results(self, outcome):
    dev_scores.read(outcome)

  def _describe_results(self, outcome):
    return dev_scores.describe(outcome)

  # -------------------------------------------------------------------------------------------
  # What they are together.

  @property
  def _averaged(self) -> dict[str, Any]:
    """What is averaged, as `run.json` keeps it."""
    steps = [step for step in self._wanted if step != "do_train"]
    return {"seeds": [outcome.run.seed for outcome in self.finished], "steps": steps}

  def _is_averaged(self, what: str) -> bool:
    state = run_states.read_state(self.output_dir).get("averaged") or {}
    return state.get(what, {}).get("of") == self._averaged

  def _note_averaged(self, what: str, **state: Any) -> None:
    before = run_states.read_state(self.output_dir).get("averaged") or {}
    self._write_state(averaged={**before, what: {"of": self._averaged, **state}})

  def _average_outputs(self) -> None:
    """Scores, and predicts with, the mean of the outputs."""
    if len(self.finished) < 2:
      return
    folder = self._path(ENSEMBLE)
    if not self._is_averaged(ENSEMBLE):
      steps = [step for step in self._wanted if step != "do_train"]
      folders = ",".join(outcome.run.folder for outcome in self.finished)
      command = [*self._command_in(folder, *steps), f"--average_runs={folders}"]
      reason = self.processes.run_one(command, folder)
      if reason is not None:
        self.note_problem("the ensemble", reason, folder)
        return
      self._note_averaged(ENSEMBLE)
    ensemble = Outcome(Run(None, folder))
    try:
      dev_scores.read(ensemble)
      self._ensemble = ensemble
    except (OSError, ValueError) as error:
      self.problems.append(f"the ensemble: {error}")

  def _average_weights(self) -> None:
    """Writes the greedy soup, if it beats the median run."""
    if not self._settings.average_weights or len(self.finished) < 2:
      return
    if self._is_averaged(SOUP):
      state = run_states.read_state(self.output_dir)["averaged"][SOUP]
      self._soup = weight_soup.Result(**state["result"])
      return
    folder = self._path(SOUP)
    try:
      self._soup = weight_soup.make(folder, self.finished, self._score_of_weights)
    except (OSError, ValueError) as error:
      self.note_problem("the averaged weights", str(error), folder)
    if self._soup:
      self._note_averaged(SOUP, result=dataclasses.asdict(self._soup))

  def _score_of_weights(self, folder: str) -> Outcome | None:
    """Evaluates the weights in a folder; returns None after a signal."""
    command = [*self._command_in(folder, "do_eval"), *self._record_flags()]
    reason = self.processes.run_one(command, folder)
    if reason:
      raise ValueError(reason)
    if reason == "":
      return None
    outcome = Outcome(Run(None, folder))
    dev_scores.read(outcome)
    return outcome

  def _export(self) -> None:
    if not self._settings.get("do_export") or not self.finished:
      return
    best = sweep.ranked(self.finished)[0].run
    target = f"--export_dir={self._settings.export_dir}"
    command = [*self._command_in(best.folder, "do_export"), target]
    reason = self.processes.run_one(command, best.folder)
    if reason is not None:
      self.note_problem("the export", reason, best.folder)
    else:
      has_failed = all(outcome.collapsed for outcome in self.finished)
      logging.log(
        logging.WARNING if has_failed else logging.INFO,
        "Exported %s, seed %d, to %s.",
        "a run that FAILED, as all runs did" if has_failed else "the best run",
        *(best.seed, self._settings.export_dir),
      )
