"""Several runs that differ in their seed, made by one command (`--num_runs`).

Each run is a process of the same script with its own directory, OUTPUT_DIR/seed_N. When all have
ended, `many_runs_report` compares the results that they wrote.

A directory continues at any point: a finished run is not repeated, an unfinished one continues from
its checkpoint, more seeds are added, and other settings are refused. This process does not import
TensorFlow until it draws curves: those that it starts do.
"""

import glob
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from bert.io import downloads, filesystem
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
from bert.sweeps import dev_scores, parallel_processes, sweep
from bert.sweeps.many_runs_report import ManyRunsReport
from bert.sweeps.sweep import Run, Sweep
from bert.training import hardware

# The beginning of such a line in the log of a run, and how many are repeated.
_WARNING, _MOST_REPEATED = "WARNING:", 12

# Flags that this program gives its runs, or that are its own.
_NOT_PASSED_ON = {
  *("num_runs", "parallel_runs", "gpus", "seed", "report", "save_summary_steps"),
  *("output_dir", "export_dir", "do_train", "do_eval", "do_predict", "do_export"),
}

# Names of files in `--data_dir` on which a run is trained or evaluated have one of these.
_PARTS_OF_DATA_FILES = ("train", "dev", "val")


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
  flags_of_runs = _flags_of_runs(settings, defaults)
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
    folder = downloads.source("data").download_task_data(settings.task_name)
    settings = settings.replace(data_dir=folder)
  return settings


def _flags_of_runs(settings: RunSettings, defaults: Mapping[str, Any]) -> list[str]:
  """Collects the words of the command line that each run gets as they are."""
  words = []
  for flag in flag_groups.script_flags():
    if flag.name in _NOT_PASSED_ON:
      continue
    if flag.name == "data_dir" and settings.data_dir:  # also the split that all runs share
      words.append(f"--data_dir={settings.data_dir}")
    elif command_line.flag_was_given(flag.name):
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
    if name in known and not path_flags.is_path(known[name]) and name not in run_states.NO_SETTINGS
  }
  shared |= run_states.identities_of_model(settings)
  shared["data"] = run_states.identity(_data_files(settings))
  return [
    Run(seed, os.path.join(settings.output_dir, f"seed_{seed}"), {**shared, "seed": seed})
    for seed in seeds.of_settings(settings)
  ]


def _data_files(settings: RunSettings) -> list[str]:
  """Lists the files that runs train and evaluate on, as far as their names show it."""
  found = [settings.get(f"{name}_file") for name in ("train", "dev", "predict")]
  if folder := settings.get("data_dir"):
    names = sorted(filesystem.list_folder(folder))
    names = [name for name in names if any(part in name.lower() for part in _PARTS_OF_DATA_FILES)]
    found += [os.path.join(folder, name) for name in names]
  return [path for path in found if path and filesystem.is_file(path)]


def _done(folder: str) -> set[str]:
  """Returns the steps of a run that have succeeded, with the settings in its folder."""
  return set(run_states.read_state(folder).get("done", ()))


# ---------------------------------------------------------------------------------------------
# The work.


class ManyRuns(Sweep[Run]):
  """Makes the runs, compares them, and exports the best one."""

  def __init__(self, script: str, settings: RunSettings, flags_of_runs: Sequence[str]):
    """Starts nothing; see `main`. The settings have the model's files."""
    parallel, gpus = settings.parallel_runs, settings.gpus
    super().__init__(plan(settings), settings.output_dir, parallel, gpus, settings.report)
    self._script = script
    self._settings = settings
    self._flags = flags_of_runs
    self._wanted = [s for s in ("do_train", "do_eval", "do_predict") if settings.get(s)]

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
    if self.make_runs():
      self._repeat_warnings()
    if not self.is_stopped:
      self._export()

  def _report(self):
    if self._settings.report and "tensorflow" not in sys.modules:
      # The page reads the curves: on the CPU, since other programs may need the GPU by now.
      os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
      hardware.start_tensorflow()
    return ManyRunsReport(self._script, list(self.outcomes.values()), self.problems)

  def _write_state(self) -> None:
    """Marks the folder as one of many runs."""
    before = run_states.read_state(self.output_dir)
    known = before.get("seeds", [])
    every = [*known, *(run.seed for run in self.outcomes if run.seed not in known)]
    run_states.write_state(self.output_dir, **{**before, "seeds": every})

  # -------------------------------------------------------------------------------------------
  # Runs.

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
    return [*self._command_in(run.folder, *steps), f"--seed={run.seed}"]

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
