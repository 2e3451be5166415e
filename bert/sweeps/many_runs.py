"""Several runs that differ in their seed, made by one command (`--num_runs`).

Each run is a process of the same script with its own directory, OUTPUT_DIR/seed_N. When all have
ended, the results that they wrote are compared.

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

from bert.io import filesystem
from bert.io.wording import counted
from bert.reports.runs import Runs
from bert.scripts import (
  flag_groups,
  output_folder,
  resolution,
  run_files,
  run_states,
  run_subject,
)
from bert.scripts.run_settings import FineTuningSettings
from bert.sweeps import parallel_processes, sweep
from bert.sweeps.outcomes import Run
from bert.sweeps.sweep import Sweep
from bert.tasks import kinds
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


def main(script: str, settings: FineTuningSettings, defaults: Mapping[str, Any]) -> int:
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


def _with_files(settings: FineTuningSettings) -> FineTuningSettings:
  """Fetches model and data now, once, and not in each of several processes side by side."""
  settings = resolution.with_model_files(settings)
  settings.check_required()
  if settings.data_dir == "download":
    from bert.tasks import public_data  # which talks to the network

    folder = public_data.download_task_data(settings.get("task_name"))
    settings = settings.replace(data_dir=folder)
  return settings


def _flags_of_runs(settings: FineTuningSettings, defaults: Mapping[str, Any]) -> list[str]:
  """Collects the words of the command line that each run gets as they are."""
  passed_on = {*settings.given, *defaults, *(["data_dir"] if settings.data_dir else [])}
  return [
    flag_groups.word_of(name, value)
    for name, value in settings.values.items()
    if name in passed_on - _NOT_PASSED_ON and value is not None
  ]


def plan(settings: FineTuningSettings) -> list[Run]:
  """Plans the runs of the command line, in the order of their seeds."""
  declared = type(settings).declared()
  shared = {
    name: value
    for name, value in settings.values.items()
    if not declared[name].path and name not in run_states.NO_SETTINGS
  }
  shared |= run_states.identities_of_model(settings)
  shared["data"] = run_states.identity(_data_files(settings))
  return [
    Run(seed, os.path.join(settings.output_dir, f"seed_{seed}"), {**shared, "seed": seed})
    for seed in settings.seeds
  ]


def _data_files(settings: FineTuningSettings) -> list[str]:
  """Lists the files that runs train and evaluate on, as far as their names show it."""
  found = [settings.get(f"{name}_file") for name in ("train", "dev", "predict")]
  if folder := settings.data_dir:
    names = sorted(filesystem.list_folder(folder))
    names = [name for name in names if any(part in name.lower() for part in _PARTS_OF_DATA_FILES)]
    found += [os.path.join(folder, name) for name in names]
  return [path for path in found if path and filesystem.is_file(path)]


# ---------------------------------------------------------------------------------------------
# The work.


class ManyRuns(Sweep):
  """Makes the runs, compares them, and exports the best one."""

  def __init__(self, script: str, settings: FineTuningSettings, flags_of_runs: Sequence[str]):
    """Starts nothing; see `main`. The settings have the model's files."""
    super().__init__(
      plan(settings),
      settings.output_dir,
      [step for step in ("do_train", "do_eval", "do_predict") if settings.get(step)],
      settings.parallel_runs,
      settings.gpus,
      settings.report,
    )
    self._script = script
    self._settings = settings
    self._flags = flags_of_runs

  def _prepare(self):
    """Refuses also a report of runs that do not exist; marks the folder as one of many runs."""
    super()._prepare()
    missing = [run.folder for run in self.outcomes if "do_train" not in self.done(run)]
    if missing and not self._settings.do_train:
      names = ", ".join(map(os.path.basename, missing))
      raise ValueError(
        f"--output_dir={self.output_dir} has no finished {names}: train with --do_train."
      )
    before = run_states.read_state(self.output_dir)
    known = before.get("seeds", [])
    every = [*known, *(run.seed for run in self.outcomes if run.seed not in known)]
    run_states.write_state(self.output_dir, **{**before, "seeds": every})

  def _command(self, run, *steps):
    return [
      *sweep.program_of(self._script),
      *self._flags,
      *sweep.FLAGS_OF_RUNS,
      # The curves need more than one point every 100 steps.
      f"--save_summary_steps={self._settings.save_summary_steps}",
      f"--output_dir={run.folder}",
      *(f"--{name}" for name in steps),
      f"--seed={run.seed}",
    ]

  def _finish(self):
    if self.num_made:
      repeat_warnings(next(iter(self.outcomes)).folder)
    best = self.best_run()
    if not best or not self._settings.do_export:
      return
    target = f"--export_dir={self._settings.export_dir}"
    folder = best.run.folder
    reason = self.processes.run_one([*self._command(best.run, "do_export"), target], folder)
    if reason is not None:
      self.note_problem("the export", reason, folder)
      return
    logging.log(
      logging.WARNING if best.collapsed else logging.INFO,
      "Exported %s, seed %d, to %s.",
      "a run that FAILED, as all runs did" if best.collapsed else "the best run",
      *(best.run.seed, self._settings.export_dir),
    )

  def _results(self):
    if self._with_page and "tensorflow" not in sys.modules:
      # The page reads the curves: on the CPU, since other programs may need the GPU by now.
      os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
      hardware.start_tensorflow()
    script = os.path.basename(self._script).removesuffix(".py")
    best = self.best_run()
    flags = run_subject.json_in(best.run.folder, run_files.FLAGS) if best else {}
    title = run_subject.title_of(flags, kinds.known_script(script)) or script
    notes = [f"{counted(best.examples, 'dev example')}."] if best else []
    return Runs(title, self.output_dir, [], notes=notes)


def repeat_warnings(folder: str) -> None:
  """Logs what the first run warned of: it is about the data of all runs, and lies in its log."""
  path = os.path.join(folder, parallel_processes.LOG_FILE)
  if not os.path.isfile(path):
    return
  with open(path, encoding="utf-8", errors="replace") as reader:
    lines = [line.rstrip() for line in reader if line.startswith(_WARNING)]
  found = [line.split(":", 2)[-1] for line in dict.fromkeys(lines)]
  for text in found[:_MOST_REPEATED]:
    logging.warning("%s", text)
  if len(found) > _MOST_REPEATED:
    logging.warning("%d further warnings are in %s.", len(found) - _MOST_REPEATED, path)
