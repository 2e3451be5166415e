"""Several runs that differ in their seed, made by one command (`--num_runs`, `--seeds`).

Each run is a process of the same script with a folder of its own, OUTPUT_DIR/seed_N. They share the
records of features (OUTPUT_DIR/features), which are written once. When all have ended, their
outputs are averaged (OUTPUT_DIR/ensemble), then their weights, as far as the dev score does not
fall (OUTPUT_DIR/soup), and `runs_report.py` writes what they say together.

A folder continues at any point: a finished run is not repeated, an unfinished one continues from
its checkpoint, more seeds are added, and other settings are refused. This process does not import
TensorFlow until it draws: those that it starts do.
"""

import dataclasses
import functools
import glob
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from bert.scripts import (
  command_line,
  flag_groups,
  output_folder,
  parallel_processes,
  path_flags,
  run_outcomes,
  run_settings,
  run_states,
  runs_report,
  seeds,
  weight_soup,
)
from bert.scripts.parallel_processes import Job
from bert.scripts.run_outcomes import Outcome
from bert.scripts.run_settings import RunSettings
from bert.training import hardware

FEATURES, ENSEMBLE, SOUP = "features", "ensemble", "soup"  # folders in OUTPUT_DIR

# Flags that this program gives its runs, or that are its own.
_NOT_PASSED_ON = {
  *("num_runs", "seeds", "parallel_runs", "gpus", "average_weights", "seed"),
  *("output_dir", "export_dir", "do_train", "do_eval", "do_predict", "do_export"),
  *("features_dir", "save_outputs", "average_runs", "save_summary_steps"),
}


@dataclasses.dataclass(frozen=True)
class Run:
  """One run.

  Attributes:
    seed: of the run.
    folder: its `--output_dir`.
    settings: everything that decides its result, by name, in JSON types.
  """

  seed: int
  folder: str
  settings: Mapping[str, Any] = dataclasses.field(compare=False, hash=False)

  @property
  def name(self) -> str:
    """The name of its folder."""
    return os.path.basename(self.folder)


def main(script: str, settings: RunSettings, defaults: Mapping[str, Any]) -> int:
  """Makes the runs, or what is left of them, and reports.

  Args:
    script: the name of the script's module, such as `run_classifier`.
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
  runs = plan(settings)
  with (
    parallel_processes.stop_signals() as stop,
    parallel_processes.exclusive(settings.output_dir) as lock,
  ):
    check_same_runs(runs, settings)
    work = Work(script, settings, runs, flags_of_runs, stop, lock)
    work.run()
    if stop.received:
      print(f"\nStopped. {work.progress()} The same command continues from here.", file=sys.stderr)
      return stop.exit_code
    return 0 if work.report() else 1


# ---------------------------------------------------------------------------------------------
# The plan.


def check_folder(output_dir: str) -> None:
  """Refuses a folder with the files of a single run.

  Raises:
    ValueError: names one of them.
  """
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
    from bert.tasks import public_data

    public_data.download_task_data(settings.task_name)
  return settings


def _flags_of_runs(defaults: Mapping[str, Any]) -> list[str]:
  """The words of the command line that each run gets as they are."""
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
  """The runs of the command line, in the order of their seeds."""
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


def check_same_runs(runs: Sequence[Run], settings: RunSettings) -> None:
  """Refuses folders of other settings, and a report of runs that do not exist.

  Raises:
    ValueError: names one, and what differs.
  """
  for run in runs:
    if why := run_states.conflict(run.folder, run.settings):
      raise ValueError(
        f"{run.folder} was made with other settings: {why}. Give the same flags, or another "
        "--output_dir."
      )
  if settings.do_train:
    return
  missing = [run.name for run in runs if not _is_done(run, "do_train")]
  if missing:
    raise ValueError(
      f"--output_dir={settings.output_dir} has no finished {', '.join(missing)}: train with "
      "--do_train."
    )


def _is_done(run: Run, *steps: str) -> bool:
  """Whether these steps of a run have succeeded, with these settings."""
  return set(steps) <= set(run_states.read_state(run.folder).get("done", ()))


# ---------------------------------------------------------------------------------------------
# The work.


class Work:
  """Makes the runs, then averages them.

  Attributes:
    outcomes: of each run, by seed.
    problems: failures other than those of runs.
  """

  def __init__(self, script, settings, runs, flags_of_runs, stop, lock):
    """Starts nothing.

    Args:
      script: the name of the script's module.
      settings: of the command line, with the model's files.
      runs: see `plan`.
      flags_of_runs: for every process.
      stop: the `StopSignals` of this program.
      lock: see `parallel_processes.exclusive`.
    """
    self._script = script
    self._settings = settings
    self._runs = list(runs)
    self._flags = flags_of_runs
    self._stop = stop
    self._lock = lock
    self._wanted = [s for s in ("do_train", "do_eval", "do_predict") if settings.get(s)]
    self.outcomes = {run.seed: Outcome(run.seed, run.folder) for run in runs}
    self.problems: list[str] = []
    self._ensemble: Outcome | None = None
    self._soup: weight_soup.Result | None = None

  def run(self) -> None:
    """Makes what is left; what fails is noted. Ends early after a signal."""
    self._write_state()
    for step in (self._make_runs, self._average_outputs, self._average_weights, self._export):
      if not self._stop.received:
        step()

  def progress(self) -> str:
    """How far it has come."""
    finished = sum(outcome.results is not None for outcome in self.outcomes.values())
    return f"{finished} of {len(self.outcomes)} runs have finished."

  @property
  def _finished(self) -> list[Outcome]:
    return [outcome for outcome in self.outcomes.values() if outcome.results is not None]

  def _path(self, name: str) -> str:
    return os.path.join(self._settings.output_dir, name)

  def _command(self, folder: str, *what: str) -> list[str]:
    return [
      *(sys.executable, "-m", f"bert.{self._script}"),
      *self._flags,
      # As with --plots: the picture needs more than one point every 100 steps.
      f"--save_summary_steps={self._settings.save_summary_steps}",
      f"--output_dir={folder}",
      *(f"--{name}" for name in what),
    ]

  def _run_jobs(self, jobs: Sequence[Job]) -> None:
    settings = self._settings
    parallel = settings.parallel_runs
    parallel_processes.run_jobs(jobs, parallel, self._stop, settings.gpus, self._lock)

  def _run_job(self, command: Sequence[str], folder: str) -> str | None:
    """Runs one process; returns why it failed, "" after a signal, None if it succeeded."""
    codes: list[int] = []
    os.makedirs(folder, exist_ok=True)
    self._run_jobs([Job(command, folder, lambda code, _: codes.append(code))])
    if not codes:
      return ""
    return parallel_processes.reason_of_failure(folder, codes[0]) if codes[0] else None

  def _write_state(self, **state: Any) -> None:
    """Marks the folder as one of many runs."""
    before = run_states.read_state(self._settings.output_dir)
    known = before.get("seeds", [])
    every = [*known, *(run.seed for run in self._runs if run.seed not in known)]
    run_states.write_state(self._settings.output_dir, **{**before, "seeds": every, **state})

  # -------------------------------------------------------------------------------------------
  # Runs.

  def _make_runs(self) -> None:
    jobs = []
    for run in self._runs:
      if _is_done(run, *self._wanted):
        self._read(run)
        continue
      state = run_states.read_state(run.folder)
      run_states.write_state(run.folder, **{"done": [], **state, "settings": run.settings})
      # What has been trained is not trained again: predictions of it may come later.
      steps = [s for s in self._wanted if s != "do_train" or not _is_done(run, "do_train")]
      more = (f"--seed={run.seed}", f"--features_dir={self._path(FEATURES)}", "--save_outputs")
      command = [*self._command(run.folder, *steps), *more]
      jobs.append(Job(command, run.folder, functools.partial(self._ended, run)))
    log = self._path(os.path.join("seed_*", parallel_processes.LOG_FILE))
    logging.info("%s %d are to be done. Their logs: %s", self.progress(), len(jobs), log)
    self._run_jobs(jobs)
    if jobs:
      self._write_state(averaged=None)

  def _ended(self, run: Run, code: int, seconds: float) -> None:
    outcome = self.outcomes[run.seed]
    if code:
      outcome.failure = parallel_processes.reason_of_failure(run.folder, code)
    else:
      state = run_states.read_state(run.folder)
      seconds += state.get("seconds", 0.0)
      done = sorted({*state.get("done", ()), *self._wanted})
      run_states.write_state(run.folder, settings=run.settings, done=done, seconds=seconds)
      self._read(run)
    settled = sum(each.is_settled for each in self.outcomes.values())
    number = f"[{settled}/{len(self.outcomes)}]"
    if outcome.failure:
      log = os.path.join(run.folder, parallel_processes.LOG_FILE)
      logging.error("%s seed %d FAILED: %s (%s)", number, run.seed, outcome.failure, log)
      return
    shown = run_outcomes.describe(outcome)
    logging.info("%s seed %d: %s (%.0f s)", number, run.seed, shown, seconds)

  def _read(self, run: Run) -> None:
    """Notes the results of a run that has finished."""
    outcome = self.outcomes[run.seed]
    try:
      outcome.read()
      outcome.seconds = run_states.read_state(run.folder).get("seconds")
    except (OSError, ValueError) as error:
      outcome.failure = str(error)

  # -------------------------------------------------------------------------------------------
  # What they are together.

  @property
  def _averaged(self) -> dict[str, Any]:
    """What has been averaged, as `run.json` keeps it."""
    steps = [step for step in self._wanted if step != "do_train"]
    return {"seeds": [outcome.seed for outcome in self._finished], "steps": steps}

  def _is_averaged(self, what: str) -> bool:
    state = run_states.read_state(self._settings.output_dir).get("averaged") or {}
    return state.get(what, {}).get("of") == self._averaged

  def _note_averaged(self, what: str, **state: Any) -> None:
    before = run_states.read_state(self._settings.output_dir).get("averaged") or {}
    self._write_state(averaged={**before, what: {"of": self._averaged, **state}})

  def _average_outputs(self) -> None:
    """Scores, and predicts with, the mean of the outputs."""
    if len(self._finished) < 2:
      return
    folder = self._path(ENSEMBLE)
    if not self._is_averaged(ENSEMBLE):
      steps = [step for step in self._wanted if step != "do_train"]
      folders = ",".join(outcome.folder for outcome in self._finished)
      command = [*self._command(folder, *steps), f"--average_runs={folders}"]
      reason = self._run_job(command, folder)
      if reason is not None:
        self._note_problem("the ensemble", folder, reason)
        return
      self._note_averaged(ENSEMBLE)
    self._ensemble = Outcome(None, folder)
    try:
      self._ensemble.read()
    except (OSError, ValueError) as error:
      self.problems.append(f"the ensemble: {error}")
      self._ensemble = None

  def _average_weights(self) -> None:
    """Writes the greedy soup, if it beats the median run."""
    if not self._settings.average_weights or len(self._finished) < 2:
      return
    if self._is_averaged(SOUP):
      state = run_states.read_state(self._settings.output_dir)["averaged"][SOUP]
      self._soup = weight_soup.Result(**state["result"])
      return
    folder = self._path(SOUP)
    try:
      self._soup = weight_soup.make(folder, self._finished, self._score_of_weights)
    except (OSError, ValueError) as error:
      self._note_problem("the averaged weights", folder, str(error))
    if self._soup:
      self._note_averaged(SOUP, result=dataclasses.asdict(self._soup))

  def _score_of_weights(self, folder: str) -> Outcome | None:
    """The dev score of a folder with weights; None after a signal."""
    more = (f"--features_dir={self._path(FEATURES)}", "--save_outputs")
    reason = self._run_job([*self._command(folder, "do_eval"), *more], folder)
    if reason:
      raise ValueError(reason)
    if reason == "":
      return None
    outcome = Outcome(None, folder)
    outcome.read()
    return outcome

  def _export(self) -> None:
    if not self._settings.get("do_export") or not self._finished:
      return
    best = run_outcomes.ranked(self._finished)[0]
    target = f"--export_dir={self._settings.export_dir}"
    reason = self._run_job([*self._command(best.folder, "do_export"), target], best.folder)
    if reason is not None:
      self._note_problem("the export", best.folder, reason)
    else:
      logging.info("Exported the best run, seed %d, to %s.", best.seed, self._settings.export_dir)

  def _note_problem(self, what: str, folder: str, reason: str) -> None:
    if self._stop.received:
      return
    log = os.path.join(folder, parallel_processes.LOG_FILE)
    logging.error("FAILED: %s: %s (%s)", what, reason, log)
    self.problems.append(f"{what}: {reason} ({log})")

  # -------------------------------------------------------------------------------------------

  def report(self) -> bool:
    """Prints and writes the report; returns whether every process succeeded."""
    report = runs_report.Report(
      self._script,
      list(self.outcomes.values()),
      self._ensemble,
      self._soup,
      self.problems,
    )
    if "tensorflow" not in sys.modules:
      # It reads the curves: on the CPU, since other programs may need the GPU by now.
      os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
      hardware.start_tensorflow()
    report.write(self._settings.output_dir)
    print(f"\n{report.text()}")
    return not report.problems
