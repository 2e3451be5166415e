"""GLUE's grid: every run in a process of its own, then predictions with the best of each task.

`run_glue.py` is the script, `sweep` makes and resumes the runs.
"""

import dataclasses
import functools
import glob
import os
import shutil
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence

from absl import logging

from bert.reports.runs import Runs
from bert.scripts import run_states
from bert.sweeps import glue, glue_submission, outcomes, parallel_processes
from bert.sweeps.glue import DIAGNOSTIC, TASKS
from bert.sweeps.outcomes import Run
from bert.sweeps.parallel_processes import Job
from bert.sweeps.sweep import FLAGS_OF_RUNS, Sweep, has_checkpoint

COMMAND = (sys.executable, "-m", "bert.run_classifier")
"""The program of a run."""

# The pointer first: were it last, an interruption would leave it pointing nowhere.
_LARGE = ("checkpoint", "model.ckpt-*", "best", "*.tf_record", ".*.manifest.json")


class GlueSweep(Sweep):
  """Trains every run, then predicts with the best one of each task."""

  def __init__(
    self,
    tasks: Mapping[str, str],
    runs: Sequence[Run],
    flags_of_runs: Sequence[str],
    output_dir: str,
    do_predict: bool = True,
    **options,
  ):
    """Starts nothing.

    Args:
      tasks: name -> data folder.
      runs: the grid; settings have `learning_rate` and `num_train_epochs`.
      flags_of_runs: of run_classifier.py, for every run.
      output_dir: the folder of all runs.
      do_predict: whether to predict the test sets with the best runs.
      **options: see `Sweep`.
    """
    super().__init__(runs, output_dir, ["do_train", "do_eval"], **options)
    self._tasks = tasks
    self._flags_of_runs = flags_of_runs
    self._do_predict = do_predict

  def _command(self, run, *steps):
    return [
      *COMMAND,
      f"--task_name={run.task}",
      f"--data_dir={self._tasks[run.task]}",
      f"--output_dir={run.folder}",
      *(f"--{name}" for name in steps),
      f"--learning_rate={run.settings['learning_rate']:g}",
      f"--num_train_epochs={run.settings['num_train_epochs']:g}",
      f"--seed={run.seed}",
      *self._flags_of_runs,
      *FLAGS_OF_RUNS,
    ]

  def _read(self, outcome):
    """Reads a run's official metrics; MNLI may lack dev_mismatched.tsv."""
    outcome.read()
    metrics = [each.key for each in TASKS[outcome.run.task].metrics]
    outcome.headline = outcome.metrics = tuple(key for key in metrics if key in outcome.results)

  def _figures(self, outcome):
    titles = {each.key: each.title for each in TASKS[outcome.run.task].metrics}
    found = {titles[key]: 100 * outcome.results[key] for key in outcome.metrics}
    return {"score": 100 * outcome.score, **found} if len(found) > 1 else found

  def _results(self):
    best = {task: outcomes.best_setting(self.outcomes_of(task)) for task in TASKS}
    scored = {
      task: [100 * each.score for each in ranked] for task, ranked in best.items() if ranked
    }
    means = {task: statistics.fmean(scores) for task, scores in scored.items()}
    groups = {
      "": means,
      "With the best seed of each task": {task: scores[0] for task, scores in scored.items()},
      "Without WNLI": {task: mean for task, mean in means.items() if task != "WNLI"},
    }
    if "WNLI" not in means:
      del groups["Without WNLI"]
    averages = {name: glue.average(scores) for name, scores in groups.items() if scores}
    return Runs("GLUE", self.output_dir, [], averages=averages, notes=_notes(means))

  def _after_run(self):
    """Removes the checkpoints that no prediction can need any more."""
    for task in {run.task for run in self.outcomes}:
      for run in outcomes.superfluous(self.outcomes_of(task)):
        remove_checkpoints(run.folder)

  def _finish(self):
    self._after_run()
    if not self._do_predict:
      return
    for jobs in (self._prediction_jobs, self._diagnostic_jobs):
      if not self.is_stopped:
        self.processes.run(jobs())
    remove_checkpoints(self._diagnostic_folder())
    if not self.is_stopped:
      self._submit()

  # -------------------------------------------------------------------------------------------
  # Prediction.

  def _prediction_jobs(self):
    for task in self._tasks:
      best = self.best_run(task)
      if best is None or not self._find_test_files(task):
        continue
      run = best.run
      tests = self._identity_of_tests(task)
      is_predicted = run_states.read_state(run.folder).get("predicted") == tests
      wants_weights = task == "MNLI" and self._diagnostic_is_due(run)
      has_weights = has_checkpoint(run.folder)
      if is_predicted and (has_weights or not wants_weights):
        continue
      # The grid has grown: a run whose checkpoint is gone became the best. Its seed brings it back.
      again = [] if has_weights else ["do_train", "do_eval"]
      command = self._command(run, *again, "do_predict")
      what, state = f"the test set with {run}", {"predicted": tests}
      yield Job(command, run.folder, functools.partial(self._predicted, what, run.folder, state))

  def _find_test_files(self, task: str) -> list[tuple[str, str, str]]:
    return glue.find_test_files(TASKS.get(task, DIAGNOSTIC), self._tasks[task])

  def _identity_of_tests(self, task):
    return run_states.identity(path for _, path, _ in self._find_test_files(task))

  def _predicted(self, what, folder, state, code, seconds):
    if code:
      reason = parallel_processes.reason_of_failure(folder, code)
      self.note_problem(f"predicting {what}", reason)
      return
    run_states.write_state(folder, **{**run_states.read_state(folder), **state})
    logging.info("Predicted %s (%.0f s)", what, seconds)

  def _diagnostic_folder(self):
    return os.path.join(self.output_dir, DIAGNOSTIC.name)

  def _diagnostic_state(self, run):
    """Returns the `run.json` of the diagnostic set once `run`, of MNLI, has predicted it."""
    tests = self._identity_of_tests(DIAGNOSTIC.name)
    return {"predicted": tests, "by": os.path.basename(run.folder)}

  def _diagnostic_is_due(self, run):
    if DIAGNOSTIC.name not in self._tasks:
      return False
    return run_states.read_state(self._diagnostic_folder()) != self._diagnostic_state(run)

  def _diagnostic_jobs(self):
    best, folder = self.best_run("MNLI"), self._diagnostic_folder()
    if best is None or not self._diagnostic_is_due(run := best.run):
      return
    if not has_checkpoint(run.folder):
      return
    run_states.write_state(folder)
    best = os.path.join(run.folder, "best")  # of evaluation during training
    # A folder of its own, or it would write over what the run predicts for MNLI.
    command = [
      *self._command(dataclasses.replace(run, task=DIAGNOSTIC.name, folder=folder), "do_predict"),
      f"--init_checkpoint={best if os.path.isdir(best) else run.folder}",
    ]
    state = self._diagnostic_state(run)
    yield Job(command, folder, functools.partial(self._predicted, DIAGNOSTIC.name, folder, state))

  def _submit(self) -> None:
    """Writes the submission of all predictions; a task whose files do not fit is a problem."""
    texts = {}
    for task, name, predictions_file, test_file in self._predictions():
      try:
        texts[name] = glue_submission.submission_text(task, predictions_file, test_file)
      except (OSError, ValueError) as error:
        self.problems.append(f"{name}.tsv of the submission: {error}")
    if not texts:
      return
    path = glue_submission.write_submission(self.output_dir, texts)
    missing = glue_submission.missing_from_submission(texts)
    more = f"; GLUE's server expects {', '.join(missing)} as well" if missing else ""
    logging.info("Wrote %s: %s%s.", path, ", ".join(texts), more)

  def _predictions(self) -> Iterator[tuple[str, str, str, str]]:
    """Yields (task, file to submit, predictions, test file) of all that is predicted."""
    for task in self._tasks:
      best = self.best_run(task if task in TASKS else "MNLI")
      if best is None or (task not in TASKS and self._diagnostic_is_due(best.run)):
        continue
      folder = best.run.folder if task in TASKS else self._diagnostic_folder()
      tests = self._find_test_files(task)
      if tests and run_states.read_state(folder).get("predicted") == self._identity_of_tests(task):
        for suffix, path, name in tests:
          yield task, name, os.path.join(folder, f"predictions{suffix}.tsv"), path


def _notes(scores: Mapping[str, float]) -> list[str]:
  notes = [
    "Dev sets, times 100. A score is the mean of a task's metrics. The best setting has the "
    "highest mean over its seeds; the best run is that setting's best seed."
  ]
  if missing := [task for task in TASKS if task not in scores]:
    notes.append(
      f"Not in the average: {', '.join(missing)}. It is therefore not GLUE's own average."
    )
  if "WNLI" in scores:
    notes.append(
      "WNLI's dev set repeats training sentences with other labels: few models exceed 56.3, the "
      "share of its more frequent label. The paper leaves WNLI out of its average, and counts "
      "MNLI's two accuracies as two tasks there."
    )
  return notes


def remove_checkpoints(folder: str) -> None:
  """Removes large files that can be made again; results, logs and curves stay."""
  root = glob.escape(folder)
  for path in [path for each in _LARGE for path in glob.glob(os.path.join(root, each))]:
    if os.path.isdir(path):
      shutil.rmtree(path)
    else:
      os.remove(path)
