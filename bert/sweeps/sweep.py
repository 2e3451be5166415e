"""A sweep: runs of a script that are made side by side, resumed, and reported together.

  class Seeds(Sweep):
    ...                    # the command of a run, and what its results are about
  exit_code = Seeds(runs, output_dir, ["do_train", "do_eval"], parallel=2).carry_out()

Each run is a process with a folder of its own. `run.json` there records its settings and what has
finished (`run_states`), so that a sweep resumes at any point: a finished run is not repeated, an
unfinished one continues from its checkpoint, and a folder of other settings is refused.

`run_glue.py` (`glue_sweep`) and `--num_runs` (`many_runs`) are its users. Imports no TensorFlow:
the processes that it starts do.
"""

import functools
import glob
import os
import shutil
import sys
from collections.abc import Iterable, Sequence

from absl import logging

from bert.reports.runs import Entry, Runs
from bert.scripts import run_states
from bert.sweeps import outcomes, parallel_processes, results
from bert.sweeps.outcomes import Outcome, Run
from bert.sweeps.parallel_processes import Job, Processes

FLAGS_OF_RUNS = ("--noreport",)
"""What every process of a sweep is given: there is one report of all runs."""


def program_of(script: str) -> list[str]:
  """Returns the beginning of the command line of `bert`'s module, or `.py` file, `script`."""
  return [sys.executable, *([script] if script.endswith(".py") else ["-m", f"bert.{script}"])]


def has_checkpoint(folder: str) -> bool:
  """Tells whether a folder holds weights for a prediction."""
  patterns = ("model.ckpt-*.index", "best/*.index")
  return any(glob.glob(os.path.join(glob.escape(folder), each)) for each in patterns)


class Sweep:
  """Makes what is left of a sweep's runs, and collects what they score.

  A kind of sweep derives from it and overrides the methods of the first part.

  Attributes:
    outcomes: run -> its outcome, in the order of the sweep.
    output_dir: the folder of all runs.
    problems: failures other than those of runs.
    processes: starts processes, while the sweep is carried out.
    num_made: runs that were left to be made.
  """

  processes: Processes
  num_made: int = 0

  def __init__(
    self,
    runs: Iterable[Run],
    output_dir: str,
    steps: Sequence[str],
    parallel: int = 1,
    gpus: Sequence[str] = (),
    with_page: bool = False,
  ):
    """Starts nothing.

    Args:
      runs: in the order in which they are made.
      output_dir: the folder of all runs, which exists.
      steps: such as "do_train", that each run makes.
      parallel: how many runs are made side by side.
      gpus: see `parallel_processes.run_jobs`.
      with_page: whether `report.html` is written.
    """
    self.outcomes = {run: Outcome(run) for run in runs}
    self.output_dir = output_dir
    self.problems: list[str] = []
    self._steps, self._parallel, self._gpus = list(steps), parallel, gpus
    self._with_page = with_page

  # -------------------------------------------------------------------------------------------
  # What a kind of sweep says.

  def _command(self, run: Run, *steps: str) -> list[str]:
    """Returns the command line that makes steps of a run."""
    raise NotImplementedError

  def _results(self) -> Runs:
    """Returns what the report is about; its entries and problems are added."""
    raise NotImplementedError

  def _read(self, outcome: Outcome) -> None:
    """Reads a finished run's scores; ValueError for a damaged file, OSError for a missing one."""
    outcome.read()

  def _figures(self, outcome: Outcome) -> dict[str, float]:
    """Returns the numbers of a run that the report shows, the score first."""
    return {name: outcome.results[name] for name in outcome.metrics}

  def _prepare(self) -> None:
    """Refuses folders with files of another run, and removes those that came to nothing.

    Raises:
      ValueError: there are such folders; it names one.
    """
    found = {run: run_states.conflict(run.folder, run.settings) for run in self.outcomes}
    conflicts = {run: why for run, why in found.items() if why}
    refused = [run for run in conflicts if _has_something_to_lose(run.folder)]
    if refused:
      first = min(refused, key=lambda run: run.folder)
      raise ValueError(
        f"{len(refused)} of the runs were made with other settings. {first.folder}: "
        f"{conflicts[first]}. Give the same flags, or another --output_dir."
      )
    for run, why in conflicts.items():
      logging.warning("Repeating %s: %s.", run, why)
      shutil.rmtree(run.folder)

  def _after_run(self) -> None:
    """Is called when a run has finished; does nothing by default."""

  def _finish(self) -> None:
    """Makes what follows all runs; what fails is noted. Ends early after a signal."""

  # -------------------------------------------------------------------------------------------
  # The sweep.

  def carry_out(self) -> int:
    """Runs the sweep, alone in its folder, and writes and prints the report.

    Returns:
      The exit code: 1 if a run or a later step failed, 128 and the signal's number if one came.

    Raises:
      ValueError: the folder is in use, or holds other runs than these.
    """
    with (
      parallel_processes.stop_signals() as stop,
      parallel_processes.exclusive(self.output_dir) as lock,
    ):
      self.processes = Processes(self._parallel, self._gpus, stop, lock)
      self._prepare()
      self._make_runs()
      if not stop.received:
        self._finish()
      if stop.received:
        print(
          f"\nStopped. {self._progress()} The same command continues from here.", file=sys.stderr
        )
        return stop.exit_code
      found = self._results()
      found.entries = [self._entry(outcome) for outcome in self.outcomes.values()]
      broken = [each for each in self.outcomes.values() if each.failure]
      found.problems = [
        *(f"{each.run} did not finish: {each.failure}" for each in broken),
        *self.problems,
      ]
      print(f"\n{results.write(found, self.output_dir, self._with_page)}")
      return 1 if found.problems else 0

  @property
  def finished(self) -> list[Outcome]:
    """The outcomes that have results, in the order of the sweep."""
    return outcomes.finished(self.outcomes.values())

  @property
  def is_stopped(self) -> bool:
    """Whether a signal has come."""
    return bool(self.processes.stop.received)

  def outcomes_of(self, task: str) -> list[Outcome]:
    """Returns the outcomes of the runs of a task."""
    return [outcome for run, outcome in self.outcomes.items() if run.task == task]

  def best_run(self, task: str = "") -> Outcome | None:
    """Returns the best run of the best setting of a task."""
    return next(iter(outcomes.best_setting(self.outcomes_of(task))), None)

  def note_problem(self, what: str, reason: str, folder: str | None = None) -> None:
    """Logs that something beside the runs, such as "the export", has failed."""
    if self.is_stopped:
      return
    log = f" ({os.path.join(folder, parallel_processes.LOG_FILE)})" if folder else ""
    logging.error("FAILED: %s: %s%s", what, reason, log)
    self.problems.append(f"{what}: {reason}{log}")

  def _progress(self) -> str:
    return f"{len(self.finished)} of {len(self.outcomes)} runs have finished."

  def _entry(self, outcome: Outcome) -> Entry:
    run = outcome.run
    is_best = outcome is self.best_run(run.task)
    return Entry(
      run.name,
      os.path.relpath(run.folder, self.output_dir),
      self._figures(outcome) if outcome.results else {},
      group=run.task,
      setting=run.setting,
      failure=outcome.failure,
      collapsed=outcome.collapsed,
      seconds=outcome.seconds,
      # Where all runs of WNLI answer alike, one of them is still its best.
      is_best=is_best and bool(run.task or not outcome.collapsed),
    )

  # -------------------------------------------------------------------------------------------
  # Runs.

  def _make_runs(self) -> None:
    """Makes the runs that have not finished, and reads the others."""
    jobs = []
    for run, outcome in self.outcomes.items():
      if steps := self._steps_left(run):
        state = run_states.read_state(run.folder)
        run_states.write_state(run.folder, **{"done": [], **state, "settings": run.settings})
        on_end = functools.partial(self._run_ended, outcome)
        jobs.append(Job(self._command(run, *steps), run.folder, on_end))
      else:
        self._try_to_read(outcome)
    log = parallel_processes.LOG_FILE
    logging.info("%s %d are to be done; each has a %s.", self._progress(), len(jobs), log)
    self.num_made = len(jobs)
    self.processes.run(jobs)

  def done(self, run: Run) -> set[str]:
    """Returns the steps of a run that have succeeded, with the settings in its folder."""
    state = run_states.read_state(run.folder)
    # Until version 0.1 run_glue.py wrote `finished`.
    return set(state.get("done") or (["do_train", "do_eval"] if state.get("finished") else ()))

  def _steps_left(self, run: Run) -> list[str]:
    done = self.done(run)
    if done.issuperset(self._steps):
      return []
    # What has been trained is not trained again: predictions of it may come later.
    return [step for step in self._steps if step != "do_train" or step not in done]

  def _run_ended(self, outcome: Outcome, code: int, seconds: float) -> None:
    run = outcome.run
    if code:
      outcome.failure = parallel_processes.reason_of_failure(run.folder, code)
    else:
      self._try_to_read(outcome)
    settled = sum(each.is_settled for each in self.outcomes.values())
    number = f"[{settled}/{len(self.outcomes)}]"
    if outcome.failure:
      log = os.path.join(run.folder, parallel_processes.LOG_FILE)
      logging.error("%s %s FAILED: %s (%s)", number, run, outcome.failure, log)
      return
    state = run_states.read_state(run.folder)
    outcome.seconds = seconds + state.get("seconds", 0.0)
    done = sorted({*state.get("done", ()), *self._steps})
    state |= {"settings": run.settings, "done": done, "seconds": outcome.seconds}
    run_states.write_state(run.folder, **state)
    logging.info("%s %s: %s (%.0f s)", number, run, outcome.describe(), outcome.seconds)
    self._after_run()

  def _try_to_read(self, outcome: Outcome) -> None:
    """Notes the results of a run, or why they cannot be read."""
    try:
      self._read(outcome)
      outcome.seconds = run_states.read_state(outcome.run.folder).get("seconds")
    except (OSError, ValueError) as error:
      outcome.failure = str(error)


def _has_something_to_lose(folder: str) -> bool:
  """Tells whether a folder holds more than a run writes before its first checkpoint."""
  has_results = os.path.isfile(os.path.join(folder, "eval_results.txt"))
  return has_results or has_checkpoint(folder) or not run_states.read_state(folder)
