"""A sweep: runs of a script that are made side by side, resumed, and reported together.

  class Seeds(Sweep):
    ...                    # the command of a run, what is left of it, and what it has scored
  exit_code = Seeds(runs, output_dir, parallel=2).carry_out()

Each run is a process with a folder of its own. `run.json` there records its settings and what has
finished (`run_states`), so that a sweep resumes at any point: a finished run is not repeated, an
unfinished one continues from its checkpoint, and a folder of other settings is refused.

`run_glue.py` (`glue_sweep`) and `--num_runs` (`many_runs`) are its users. Imports no TensorFlow:
the processes that it starts do.
"""

import dataclasses
import functools
import os
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from absl import logging

from bert.scripts import run_states
from bert.sweeps import parallel_processes
from bert.sweeps.parallel_processes import Job, Processes
from bert.sweeps.report import SweepReport


@dataclasses.dataclass(frozen=True)
class Run:
  """One run of a sweep."""

  seed: int  # its `--seed`
  folder: str  # its `--output_dir`
  # Everything that decides its result, by name, in JSON types.
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False, hash=False)

  def __str__(self):
    return f"seed {self.seed}"


_Run = TypeVar("_Run", bound=Run)


@dataclasses.dataclass
class Outcome(Generic[_Run]):
  """The outcome of a run."""

  run: _Run  # the run
  results: Mapping[str, float] | None = None  # metric -> number, or None if it has not finished
  headline: tuple[str, ...] = ()  # the metrics whose mean is the score
  metrics: tuple[str, ...] = ()  # the metrics to show, the headline first
  collapsed: str | None = None  # why the model is no better than a constant answer, or None
  failure: str | None = None  # why the process failed, or None
  examples: int = 0  # number of dev examples
  seconds: float | None = None  # that the process took
  steps: int | None = None  # of its training, where they are not among the results

  @property
  def score(self) -> float:
    """The number by which runs are compared; larger is better."""
    return statistics.fmean(self.results[name] for name in self.headline)

  @property
  def is_settled(self) -> bool:
    """Whether it has finished or failed."""
    return self.results is not None or self.failure is not None


def finished(outcomes: Iterable[Outcome[_Run]]) -> list[Outcome[_Run]]:
  """Leaves out runs without results."""
  return [outcome for outcome in outcomes if outcome.results is not None]


def ranked(outcomes: Iterable[Outcome[_Run]]) -> list[Outcome[_Run]]:
  """Sorts finished runs, the best first; equal scores keep their order."""
  return sorted(finished(outcomes), key=lambda outcome: -outcome.score)


FLAGS_OF_RUNS = ("--noreport",)
"""What every process of a sweep is given: there is one report of all runs."""


def program_of(script: str) -> list[str]:
  """Returns the beginning of the command line of `bert`'s module, or `.py` file, `script`."""
  return [sys.executable, *([script] if script.endswith(".py") else ["-m", f"bert.{script}"])]


class Sweep(Generic[_Run]):
  """Makes what is left of a sweep's runs, and collects what they score.

  A kind of sweep derives from it and overrides the methods of the first part.

  Attributes:
    outcomes: run -> its outcome, in the order of the sweep.
    output_dir: the folder of all runs.
    problems: failures other than those of runs.
    processes: starts processes, while the sweep is carried out.
  """

  processes: Processes

  def __init__(
    self,
    runs: Iterable[_Run],
    output_dir: str,
    parallel: int = 1,
    gpus: Sequence[str] = (),
    with_page: bool = False,
  ):
    """Starts nothing.

    The folder of all runs exists; see `parallel_processes.run_jobs` for `parallel` and `gpus`, and
    `SweepReport.write` for `with_page`.
    """
    self.outcomes = {run: Outcome(run) for run in runs}
    self.output_dir = output_dir
    self.problems: list[str] = []
    self._parallel, self._gpus = parallel, gpus
    self._with_page = with_page

  # -------------------------------------------------------------------------------------------
  # What a kind of sweep says.

  def _check_folders(self) -> None:
    """Refuses folders in which a run must not continue, by a ValueError that names one."""
    raise NotImplementedError

  def _run_all(self) -> None:
    """Makes the runs and what follows them; what fails is noted. Ends early after a signal."""
    raise NotImplementedError

  def _steps_left(self, run: _Run) -> list[str]:
    """Returns the steps, such as "do_train", that a run still has to make; [] if it is finished."""
    raise NotImplementedError

  def _command(self, run: _Run, *steps: str) -> list[str]:
    """Returns the command line that makes steps of a run."""
    raise NotImplementedError

  def _mark_started(self, run: _Run) -> None:
    """Writes `run.json` before a run starts or continues."""
    raise NotImplementedError

  def _mark_finished(self, run: _Run, seconds: float) -> None:
    """Writes `run.json` when a run has finished and has results."""
    raise NotImplementedError

  def _read_results(self, outcome: Outcome[_Run]) -> None:
    """Reads a finished run's scores; ValueError for a damaged file, OSError for a missing one."""
    raise NotImplementedError

  def _describe_results(self, outcome: Outcome[_Run]) -> str:
    """Returns the scores of a finished run in one line."""
    raise NotImplementedError

  def _after_run(self, run: _Run) -> None:
    """Is called when a run has finished; does nothing by default."""

  def _report(self) -> SweepReport:
    """Returns the report of what has been made."""
    raise NotImplementedError

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
      self._check_folders()
      self._run_all()
      if stop.received:
        print(
          f"\nStopped. {self.progress()} The same command continues from here.", file=sys.stderr
        )
        return stop.exit_code
      report = self._report()
      report.write(self.output_dir, self._with_page)
      print(f"\n{report.text()}")
      return 1 if report.problems else 0

  def progress(self) -> str:
    """Says how many runs have finished."""
    return f"{len(self.finished)} of {len(self.outcomes)} runs have finished."

  @property
  def finished(self) -> list[Outcome[_Run]]:
    """The outcomes that have results, in the order of the sweep."""
    return finished(self.outcomes.values())

  @property
  def is_stopped(self) -> bool:
    """Whether a signal has come."""
    return bool(self.processes.stop.received)

  def conflicts(self) -> dict[_Run, str]:
    """Returns, of each run that must not continue in its folder, why."""
    found = {run: run_states.conflict(run.folder, run.settings) for run in self.outcomes}
    return {run: why for run, why in found.items() if why}

  def make_runs(self) -> int:
    """Makes the runs that have not finished, reads the others, and returns their number."""
    jobs = []
    for run, outcome in self.outcomes.items():
      if steps := self._steps_left(run):
        self._mark_started(run)
        on_end = functools.partial(self._run_ended, outcome)
        jobs.append(Job(self._command(run, *steps), run.folder, on_end))
      else:
        self._read(outcome)
    log = parallel_processes.LOG_FILE
    logging.info("%s %d are to be done; each has a %s.", self.progress(), len(jobs), log)
    self.processes.run(jobs)
    return len(jobs)

  def _run_ended(self, outcome: Outcome[_Run], code: int, seconds: float) -> None:
    run = outcome.run
    if code:
      outcome.failure = parallel_processes.reason_of_failure(run.folder, code)
    else:
      self._read(outcome)
    settled = sum(each.is_settled for each in self.outcomes.values())
    number = f"[{settled}/{len(self.outcomes)}]"
    if outcome.failure:
      log = os.path.join(run.folder, parallel_processes.LOG_FILE)
      logging.error("%s %s FAILED: %s (%s)", number, run, outcome.failure, log)
      return
    self._mark_finished(run, seconds)
    outcome.seconds = run_states.read_state(run.folder).get("seconds")
    shown = self._describe_results(outcome)
    logging.info("%s %s: %s (%.0f s)", number, run, shown, outcome.seconds)
    self._after_run(run)

  def _read(self, outcome: Outcome[_Run]) -> None:
    """Notes the results of a run, or why they cannot be read."""
    try:
      self._read_results(outcome)
      outcome.seconds = run_states.read_state(outcome.run.folder).get("seconds")
    except (OSError, ValueError) as error:
      outcome.failure = str(error)

  def note_problem(self, what: str, reason: str, folder: str | None = None) -> None:
    """Logs that something beside the runs, such as "the export", has failed."""
    if self.is_stopped:
      return
    log = f" ({os.path.join(folder, parallel_processes.LOG_FILE)})" if folder else ""
    logging.error("FAILED: %s: %s%s", what, reason, log)
    self.problems.append(f"{what}: {reason}{log}")
