"""A sweep over GLUE: every run of the grid in a process of its own, then predictions with the best.

`run_glue.py` is the script; `glue_runs` knows what a run is and in which state its folder is.
"""

import dataclasses
import functools
import json
import os
import sys
from collections.abc import Iterator, Sequence

from absl import logging

from bert.scripts import glue_runs, parallel_processes, run_states
from bert.scripts.glue_runs import DIAGNOSTIC, TASKS, Outcome, Run
from bert.scripts.parallel_processes import Job

COMMAND = (sys.executable, "-m", "bert.run_classifier")
"""The program of a run."""


@dataclasses.dataclass(frozen=True)
class Options:
  """How to run a sweep.

  Attributes:
    output_dir: folder of all runs.
    do_predict: whether to predict the test sets with the best runs.
    keep_checkpoints: which runs keep their checkpoints: `best`, `all` or `none`.
    parallel_runs: number of runs side by side.
    gpus: numbers of the GPUs over which runs are spread; empty: each run sees all.
  """

  output_dir: str
  do_predict: bool
  keep_checkpoints: str
  parallel_runs: int
  gpus: Sequence[str] = ()


def command(run: Run, data_dir: str, flags_of_runs: Sequence[str], *what: str) -> list[str]:
  """The command line that does `what`, such as "do_train", in the folder of a run."""
  return [
    *COMMAND,
    f"--task_name={run.task}",
    f"--data_dir={data_dir}",
    f"--output_dir={run.folder}",
    *(f"--{name}" for name in what),
    f"--learning_rate={run.learning_rate:g}",
    f"--num_train_epochs={run.epochs:g}",
    f"--seed={run.seed}",
    *flags_of_runs,
  ]


class Sweep:
  """Trains every run, then predicts with the best one of each task.

  Attributes:
    outcomes: of each run, in the order of the grid.
    problems: failures other than those of training.
  """

  def __init__(self, options, tasks, runs, flags_of_runs, stop, lock):
    """Starts nothing.

    Args:
      options: `Options`.
      tasks: name -> data folder.
      runs: the grid, see `glue_runs.Run`.
      flags_of_runs: of run_classifier.py, for every run.
      stop: the `StopSignals` of the sweep.
      lock: see `parallel_processes.exclusive`.
    """
    self._options = options
    self._tasks = tasks
    self._flags_of_runs = flags_of_runs
    self._stop = stop
    self._lock = lock
    self.outcomes = {run: Outcome(run) for run in runs}
    self.problems: list[str] = []

  def run(self) -> None:
    """Trains, predicts, cleans up; what fails is noted. Ends early after a signal."""
    self._train()
    if self._options.do_predict and not self._stop.received:
      self._run_jobs(self._prediction_jobs())
    if self._options.do_predict and not self._stop.received:
      self._run_jobs(self._diagnostic_jobs())
    if self._options.keep_checkpoints == "none" and not (self._stop.received or self.problems):
      for run in self.outcomes:
        if glue_runs.is_finished(run):
          glue_runs.remove_checkpoints(run.folder)

  def progress(self) -> str:
    """How far it has come."""
    finished = sum(outcome.results is not None for outcome in self.outcomes.values())
    return f"{finished} of {len(self.outcomes)} runs have finished."

  def outcomes_of(self, task: str) -> list[Outcome]:
    """The task's runs."""
    return [outcome for outcome in self.outcomes.values() if outcome.run.task == task]

  def best_run(self, task: str) -> Run | None:
    """The best run of the best setting."""
    ranked = glue_runs.best_setting(self.outcomes_of(task))
    return ranked[0].run if ranked else None

  def _command(self, run: Run, *what: str) -> list[str]:
    return command(run, self._tasks[run.task], self._flags_of_runs, *what)

  def _run_jobs(self, jobs):
    options = self._options
    parallel_processes.run_jobs(jobs, options.parallel_runs, self._stop, options.gpus, self._lock)

  # -------------------------------------------------------------------------------------------
  # Training.

  def _train(self):
    jobs = []
    for run, outcome in self.outcomes.items():
      if glue_runs.is_finished(run):
        outcome.results = glue_runs.read_results(run)
      else:
        run_states.write_state(run.folder, settings=run.settings, finished=False)
        command = self._command(run, "do_train", "do_eval")
        jobs.append(Job(command, run.folder, functools.partial(self._training_ended, run)))
    logging.info("%s %d are to be done.", self.progress(), len(jobs))
    self._run_jobs(jobs)
    self._remove_superfluous()

  def _training_ended(self, run, code, seconds):
    outcome = self.outcomes[run]
    try:
      outcome.results = glue_runs.read_results(run) if code == 0 else None
      outcome.failure = parallel_processes.reason_of_failure(run.folder, code) if code else None
    except (OSError, ValueError) as error:
      outcome.failure = str(error)
    settled = sum(each.is_settled for each in self.outcomes.values())
    number = f"[{settled}/{len(self.outcomes)}]"
    if outcome.failure:
      log = os.path.join(run.folder, parallel_processes.LOG_FILE)
      logging.error("%s %s FAILED: %s (%s)", number, run, outcome.failure, log)
      return
    run_states.write_state(run.folder, settings=run.settings, finished=True, seconds=seconds)
    shown = ", ".join(f"{title} {100 * v:.1f}" for title, v in outcome.results.items())
    logging.info("%s %s: %s (%.0f s)", number, run, shown, seconds)
    self._remove_superfluous()

  def _remove_superfluous(self):
    if self._options.keep_checkpoints == "all":
      return
    for task in {run.task for run in self.outcomes}:
      for run in glue_runs.superfluous(self.outcomes_of(task)):
        glue_runs.remove_checkpoints(run.folder)

  # -------------------------------------------------------------------------------------------
  # Prediction.

  def _prediction_jobs(self):
    for task in self._tasks:
      run = self.best_run(task) if task in TASKS else None
      if run is None or not self.find_test_files(task):
        continue
      tests = self._identity_of_tests(task)
      is_predicted = run_states.read_state(run.folder).get("predicted") == tests
      wants_weights = task == "MNLI" and self._diagnostic_is_due(run)
      has_weights = glue_runs.has_checkpoint(run.folder)
      if is_predicted and (has_weights or not wants_weights):
        continue
      # The grid has grown: a run whose checkpoint is gone became the best. Its seed brings it back.
      again = [] if has_weights else ["do_train", "do_eval"]
      command = self._command(run, *again, "do_predict")
      yield Job(command, run.folder, functools.partial(self._prediction_ended, run, tests))

  def find_test_files(self, task: str) -> list[tuple[str, str, str]]:
    """See `glue_runs.find_test_files`."""
    return glue_runs.find_test_files(TASKS.get(task, DIAGNOSTIC), self._tasks[task])

  def _identity_of_tests(self, task):
    return run_states.identity(path for _, path, _ in self.find_test_files(task))

  def _prediction_ended(self, run, tests, code, seconds):
    if code:
      reason = parallel_processes.reason_of_failure(run.folder, code)
      self._note_problem(f"predicting the test set with {run}: {reason}")
      return
    run_states.write_state(run.folder, **{**run_states.read_state(run.folder), "predicted": tests})
    logging.info("Predicted the test set with %s (%.0f s)", run, seconds)

  def _note_problem(self, problem):
    logging.error("FAILED: %s", problem)
    self.problems.append(problem)

  def _diagnostic_folder(self):
    return os.path.join(self._options.output_dir, DIAGNOSTIC.name)

  def _diagnostic_state(self, run):
    """What `run.json` of the diagnostic set says once `run`, of MNLI, has predicted it."""
    settings = json.loads(json.dumps(run.settings))  # as the file gives them back
    tests = self._identity_of_tests(DIAGNOSTIC.name)
    return {"settings": settings, "finished": True, "predicted": tests}

  def _diagnostic_is_due(self, run):
    if run is None or DIAGNOSTIC.name not in self._tasks:
      return False
    return run_states.read_state(self._diagnostic_folder()) != self._diagnostic_state(run)

  def _diagnostic_jobs(self):
    run, folder = self.best_run("MNLI"), self._diagnostic_folder()
    if not self._diagnostic_is_due(run) or not glue_runs.has_checkpoint(run.folder):
      return
    run_states.write_state(folder, finished=False)
    best = os.path.join(run.folder, "best")  # of evaluation during training
    # A folder of its own, or it would write over what the run predicts for MNLI.
    command = [
      *self._command(dataclasses.replace(run, task=DIAGNOSTIC.name, folder=folder), "do_predict"),
      f"--init_checkpoint={best if os.path.isdir(best) else run.folder}",
    ]
    yield Job(command, folder, functools.partial(self._diagnostic_ended, run))

  def _diagnostic_ended(self, run, code, seconds):
    folder = self._diagnostic_folder()
    if code:
      self._note_problem(f"predicting AX: {parallel_processes.reason_of_failure(folder, code)}")
      return
    glue_runs.remove_checkpoints(folder)
    run_states.write_state(folder, **self._diagnostic_state(run))
    logging.info("Predicted AX with %s (%.0f s)", run, seconds)

  def predictions(self) -> Iterator[tuple[str, str, str, str]]:
    """(task, file to submit, predictions, test file) of all that is predicted."""
    for task in self._tasks:
      run = self.best_run(task if task in TASKS else "MNLI")
      if run is None:
        continue
      folder = run.folder if task in TASKS else self._diagnostic_folder()
      if task not in TASKS and self._diagnostic_is_due(run):
        continue
      tests = self.find_test_files(task)
      if tests and run_states.read_state(folder).get("predicted") == self._identity_of_tests(task):
        for suffix, path, name in tests:
          yield task, name, os.path.join(folder, f"predictions{suffix}.tsv"), path
