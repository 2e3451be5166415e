"""A sweep over GLUE: every run of the grid in a process of its own, then predictions with the best.

`run_glue.py` is the script; `glue_runs` knows what a run is and which one is the best.
"""

import dataclasses
import functools
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence

from absl import logging

from bert.scripts import run_states
from bert.sweeps import glue_report, glue_runs, parallel_processes
from bert.sweeps.glue_runs import DIAGNOSTIC, TASKS, GridRun
from bert.sweeps.parallel_processes import Job
from bert.sweeps.sweep import FLAGS_OF_RUNS, Outcome, Sweep

COMMAND = (sys.executable, "-m", "bert.run_classifier")
"""The program of a run."""


@dataclasses.dataclass(frozen=True)
class Options:
  """How to run a sweep."""

  output_dir: str  # folder of all runs
  do_predict: bool  # whether to predict the test sets with the best runs
  parallel_runs: int  # number of runs side by side
  report: bool  # whether to write report.html
  # Numbers of the GPUs over which runs are spread; empty: each run sees all.
  gpus: Sequence[str] = ()


def command(run: GridRun, data_dir: str, flags_of_runs: Sequence[str], *steps: str) -> list[str]:
  """Returns the command line that makes steps, such as "do_train", in the folder of a run."""
  return [
    *COMMAND,
    f"--task_name={run.task}",
    f"--data_dir={data_dir}",
    f"--output_dir={run.folder}",
    *(f"--{name}" for name in steps),
    f"--learning_rate={run.learning_rate:g}",
    f"--num_train_epochs={run.epochs:g}",
    f"--seed={run.seed}",
    *flags_of_runs,
    *FLAGS_OF_RUNS,
  ]


class GlueSweep(Sweep[GridRun]):
  """Trains every run, then predicts with the best one of each task."""

  def __init__(
    self,
    options: Options,
    tasks: Mapping[str, str],
    runs: Sequence[GridRun],
    flags_of_runs: Sequence[str],
  ):
    """Starts nothing.

    Data folders are by the names of their tasks; the flags are of run_classifier.py, for every run.
    """
    parallel, gpus = options.parallel_runs, options.gpus
    super().__init__(runs, options.output_dir, parallel, gpus, options.report)
    self._options = options
    self._tasks = tasks
    self._flags_of_runs = flags_of_runs

  def _check_folders(self):
    """Refuses folders with files of another run, and removes those that came to nothing."""
    conflicts = self.conflicts()
    refused = [run for run in conflicts if glue_runs.has_something_to_lose(run.folder)]
    if refused:
      first = min(refused, key=lambda run: run.folder)
      raise ValueError(
        f"{len(refused)} of the runs were made with other settings. {first.folder}: "
        f"{conflicts[first]}. Give the same flags, or another --output_dir."
      )
    for run, why in conflicts.items():
      logging.warning("Repeating %s: %s.", run, why)
      shutil.rmtree(run.folder)

  def _run_all(self):
    self.make_runs()
    self._remove_superfluous()
    for jobs in (self._prediction_jobs, self._diagnostic_jobs):
      if self._options.do_predict and not self.is_stopped:
        self.processes.run(jobs())

  def _report(self):
    """Writes the submission, and returns the report."""
    if self._options.do_predict:
      self._submit()
    tasks = dict.fromkeys(run.task for run in self.outcomes)
    scores = [glue_report.TaskScore(task, self._outcomes_of(task)) for task in tasks]
    return glue_report.GlueReport(scores, self.problems)

  def _outcomes_of(self, task: str) -> list[Outcome[GridRun]]:
    return [outcome for run, outcome in self.outcomes.items() if run.task == task]

  def _best_run(self, task: str) -> GridRun | None:
    """Returns the best run of the best setting."""
    ranked = glue_runs.best_setting(self._outcomes_of(task))
    return ranked[0].run if ranked else None

  # -------------------------------------------------------------------------------------------
  # Training.

  def _steps_left(self, run):
    return [] if glue_runs.is_finished(run) else ["do_train", "do_eval"]

  def _command(self, run, *steps):
    return command(run, self._tasks[run.task], self._flags_of_runs, *steps)

  def _mark_started(self, run):
    run_states.write_state(run.folder, settings=run.settings, finished=False)

  def _mark_finished(self, run, seconds):
    run_states.write_state(run.folder, settings=run.settings, finished=True, seconds=seconds)

  def _read_results(self, outcome):
    glue_runs.read_results(outcome)

  def _describe_results(self, outcome):
    return ", ".join(f"{title} {100 * value:.1f}" for title, value in outcome.results.items())

  def _after_run(self, run):
    """Removes the checkpoints that no prediction can need any more."""
    self._remove_superfluous()

  def _remove_superfluous(self):
    for task in {run.task for run in self.outcomes}:
      for run in glue_runs.superfluous(self._outcomes_of(task)):
        glue_runs.remove_checkpoints(run.folder)

  # -------------------------------------------------------------------------------------------
  # Prediction.

  def _prediction_jobs(self):
    for task in self._tasks:
      run = self._best_run(task) if task in TASKS else None
      if run is None or not self._find_test_files(task):
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

  def _find_test_files(self, task: str) -> list[tuple[str, str, str]]:
    return glue_runs.find_test_files(TASKS.get(task, DIAGNOSTIC), self._tasks[task])

  def _identity_of_tests(self, task):
    return run_states.identity(path for _, path, _ in self._find_test_files(task))

  def _prediction_ended(self, run, tests, code, seconds):
    if code:
      reason = parallel_processes.reason_of_failure(run.folder, code)
      self.note_problem(f"predicting the test set with {run}", reason)
      return
    run_states.write_state(run.folder, **{**run_states.read_state(run.folder), "predicted": tests})
    logging.info("Predicted the test set with %s (%.0f s)", run, seconds)

  def _diagnostic_folder(self):
    return os.path.join(self.output_dir, DIAGNOSTIC.name)

  def _diagnostic_state(self, run):
    """Returns the `run.json` of the diagnostic set once `run`, of MNLI, has predicted it."""
    settings = json.loads(json.dumps(run.settings))  # as the file gives them back
    tests = self._identity_of_tests(DIAGNOSTIC.name)
    return {"settings": settings, "finished": True, "predicted": tests}

  def _diagnostic_is_due(self, run):
    if run is None or DIAGNOSTIC.name not in self._tasks:
      return False
    return run_states.read_state(self._diagnostic_folder()) != self._diagnostic_state(run)

  def _diagnostic_jobs(self):
    run, folder = self._best_run("MNLI"), self._diagnostic_folder()
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
      self.note_problem("predicting AX", parallel_processes.reason_of_failure(folder, code))
      return
    glue_runs.remove_checkpoints(folder)
    run_states.write_state(folder, **self._diagnostic_state(run))
    logging.info("Predicted AX with %s (%.0f s)", run, seconds)

  def _submit(self) -> None:
    """Writes the submission of all predictions; a task whose files do not fit is a problem."""
    texts = {}
    for task, name, predictions_file, test_file in self._predictions():
      try:
        texts[name] = glue_report.submission_text(task, predictions_file, test_file)
      except (OSError, ValueError) as error:
        self.problems.append(f"{name}.tsv of the submission: {error}")
    if not texts:
      return
    path = glue_report.write_submission(self.output_dir, texts)
    missing = glue_report.missing_from_submission(texts)
    more = f"; GLUE's server expects {', '.join(missing)} as well" if missing else ""
    logging.info("Wrote %s: %s%s.", path, ", ".join(texts), more)

  def _predictions(self) -> Iterator[tuple[str, str, str, str]]:
    """Yields (task, file to submit, predictions, test file) of all that is predicted."""
    for task in self._tasks:
      run = self._best_run(task if task in TASKS else "MNLI")
      if run is None:
        continue
      folder = run.folder if task in TASKS else self._diagnostic_folder()
      if task not in TASKS and self._diagnostic_is_due(run):
        continue
      tests = self._find_test_files(task)
      if tests and run_states.read_state(folder).get("predicted") == self._identity_of_tests(task):
        for suffix, path, name in tests:
          yield task, name, os.path.join(folder, f"predictions{suffix}.tsv"), path
