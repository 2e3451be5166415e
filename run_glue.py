"""Fine-tunes BERT on every task of GLUE, over the paper's grid, and makes one table of it.

  python run_glue.py --glue_dir=glue --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --output_dir=/tmp/glue_output

finds the tasks in the folders below --glue_dir (CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE,
WNLI, AX) and trains each with every learning rate, number of epochs and seed: one process of
run_classifier.py each, --parallel_runs side by side. Flags after a lone -- go to run_classifier.py:

  python run_glue.py --glue_dir=glue --tasks=MRPC,RTE --seeds=1,2,3 --parallel_runs=2 \\
    --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/glue_output -- --dtype=bfloat16

It leaves results.txt, results.json and results.png, and submission.zip for GLUE's server with what
each task's best run predicts. Stopped or failed, the same command goes on where it was: finished
runs are not repeated, and those of other settings are refused.
"""

import dataclasses
import functools
import itertools
import json
import math
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence

from absl import flags, logging

from bert import run_classifier
from bert.checkpoints import released_models
from bert.figures import drawing
from bert.io import atomic_files
from bert.scripts import (
  command_line,
  flag_groups,
  glue_report,
  glue_runs,
  output_folder,
  parallel_processes,
  run_settings,
  shared_flags,
)
from bert.scripts.glue_runs import DIAGNOSTIC, TASKS, Outcome, Run
from bert.scripts.parallel_processes import Job

FLAGS = flags.FLAGS

COMMAND = (sys.executable, "-m", "bert.run_classifier")
"""What a run is started with."""

# Passed on to run_classifier.py if they have a value.
_PASSED_ON = (
  "bert_config_file",
  "vocab_file",
  "init_checkpoint",
  "do_lower_case",
  "max_seq_length",
  "dtype",
  "train_batch_size",
)

# Each run has its own. After `--` they would hold for all runs alike.
_OF_A_RUN = (
  "task_name",
  "data_dir",
  "do_train",
  "do_eval",
  "learning_rate",
  "num_train_epochs",
  "seed",
)

# Flags of run_classifier.py that decide where files are and how often something is written, but no
# result. The files of the model count by their content.
_NO_SETTINGS = {
  *("task_name", "data_dir", "output_dir", "export_dir"),
  *("do_train", "do_eval", "do_predict", "do_export", "verbose_errors"),
  *("bert_config_file", "vocab_file", "init_checkpoint"),
  *("save_checkpoints_steps", "keep_checkpoint_max", "save_summary_steps", "log_every_steps"),
  *("iterations_per_loop", "pad_to_max_length", "eval_batch_size", "predict_batch_size"),
}


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Tasks and results"):
    flags.DEFINE_string(
      "glue_dir", None, "Folder with a folder for each task, or `download` to fetch them."
    )
    flags.DEFINE_string("output_dir", None, "Folder for all runs and results.")
    flags.DEFINE_list("tasks", None, "Which tasks. [all that --glue_dir has]")
    flags.DEFINE_bool(
      "do_predict", True, "Predict the test sets with the best runs, and write submission.zip."
    )
  with flag_groups.flag_group("Grid (the paper's appendix A.3)"):
    flags.DEFINE_list("learning_rates", ["2e-5", "3e-5", "5e-5"], "Peak learning rates.")
    flags.DEFINE_list("epochs", ["2", "3", "4"], "Numbers of epochs.")
    flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds: so many runs for each setting.")
    flags.DEFINE_integer("train_batch_size", 32, "Sequences in a training batch.")
  with flag_groups.flag_group("Running"):
    flags.DEFINE_integer("parallel_runs", 1, "How many runs side by side.")
    flags.DEFINE_list(
      "gpus", [], "Numbers of the GPUs to spread the runs over, such as 0,1. [all for each run]"
    )
    flags.DEFINE_enum(
      "keep_checkpoints",
      "best",
      ["best", "all", "none"],
      "Which runs keep their checkpoints: each task's best one, all, or none.",
    )
    flags.DEFINE_bool(
      "redo", False, "Remove runs of other settings, and repeat them, instead of refusing them."
    )
    flags.DEFINE_bool("dry_run", False, "Print the commands and leave.")
  shared_flags.define_model_flags()
  flag_groups.mark_required(["glue_dir", "output_dir", "vocab_file", "bert_config_file"])


# ---------------------------------------------------------------------------------------------
# The plan.


def main(_, further_flags: Sequence[str] = ()) -> int | None:
  """Does what the flags say.

  Args:
    further_flags: those after `--`, for run_classifier.py.

  Returns:
    The exit code: 1 if a run failed, 128 and the signal's number if one came.
  """
  check_flags()
  own = run_settings.from_flags()
  if not (FLAGS.dry_run and released_models.is_wanted(own.init_checkpoint)):
    own = run_settings.with_model_files(own)
    command_line.check_required(own.values)
  given = [f"--{name}={own.values[name]}" for name in _PASSED_ON if own.values[name] is not None]
  flags_of_runs = ["--keep_checkpoint_max=1", *given, *further_flags]
  settings = read_settings(flags_of_runs, further_flags)
  tasks = choose_tasks()
  if FLAGS.dry_run:
    print_commands(Sweep(tasks, plan_runs(tasks), flags_of_runs))
    return None
  output_folder.prepare(FLAGS.output_dir)
  runs = plan_runs(tasks, {**settings, **identities_of_model(own)})
  with (
    parallel_processes.stop_signals() as stop,
    parallel_processes.exclusive(FLAGS.output_dir) as lock,
  ):
    make_room(runs)
    sweep = Sweep(tasks, runs, flags_of_runs, stop, lock)
    sweep.run()
    if stop.received:
      print(f"\nStopped. {sweep.progress()} The same command goes on from here.", file=sys.stderr)
      return stop.exit_code
    return 0 if report(sweep) else 1


def check_flags() -> None:
  """Checks what flags alone tell.

  Raises:
    UsageError: a flag is missing or has a value that it cannot have.
  """
  if not FLAGS.init_checkpoint or None in (FLAGS.glue_dir, FLAGS.output_dir):
    command_line.check_required()
  run_settings.from_flags().check_at_least(1, "parallel_runs")
  for name in ("learning_rates", "epochs", "seeds"):
    numbers_of_flag(name)


def numbers_of_flag(name: str) -> list:
  """The numbers of a list flag, each once: whole ones for `seeds`, positive ones otherwise.

  Raises:
    UsageError: a word is no such number, or there is none.
  """
  numbers = []
  for word in FLAGS[name].value:
    try:
      number = int(word) if name == "seeds" else float(word)
    except ValueError:
      number = math.nan
    if not (math.isfinite(number) and (name == "seeds" or number > 0)):
      needed = "whole" if name == "seeds" else "positive"
      raise command_line.UsageError(f"--{name}: {needed} numbers are needed, not {word!r}.")
    numbers.append(number)
  if not numbers:
    raise command_line.UsageError(f"--{name} is empty.")
  return list(dict.fromkeys(numbers))


def read_settings(flags_of_runs: Sequence[str], further_flags: Sequence[str]) -> dict:
  """What run_classifier.py makes of the flags that all runs share, checked before any run starts.

  Args:
    flags_of_runs: all of them.
    further_flags: those of them that came after `--`.

  Returns:
    Name of a flag -> value, of those that may change results.

  Raises:
    UsageError: a flag has a value it cannot have, or is not one for all runs.
  """
  here = {each["name"] for each in flag_groups.describe()} - {"verbose_errors"}
  for word in further_flags:
    name = word.lstrip("-").partition("=")[0]
    if word.startswith("-") and {name, name.removeprefix("no")} & {*here, *_OF_A_RUN}:
      raise command_line.UsageError(
        f"{word} after -- would replace what run_glue.py gives each run. Its own flags, before --, "
        "set the model and the grid."
      )
  with flag_groups.defined_flags(run_classifier.define_flags):
    command_line.parse(["run_classifier.py", *flags_of_runs])
    settings = run_settings.from_flags()
    run_settings.check_training(settings)
    names = [each["name"] for each in flag_groups.describe()]
    return {name: settings.values[name] for name in names if name not in _NO_SETTINGS}


def identities_of_model(settings: run_settings.RunSettings) -> dict:
  """The content of the model's files, which is part of a run's settings."""
  return {
    "bert_config": glue_runs.identity([settings.bert_config_file]),
    "vocabulary": glue_runs.identity([settings.vocab_file]),
    "weights": glue_runs.identity_of_weights(settings.init_checkpoint),
  }


def choose_tasks() -> dict[str, str]:
  """Name of a task -> its data folder, in GLUE's order.

  Raises:
    UsageError: `--tasks` names one that GLUE does not have.
    ValueError: `--glue_dir` lacks a task that is asked for, or all.
  """
  known = {glue_runs.plain(name): name for name in (*TASKS, DIAGNOSTIC.name)}
  for word in FLAGS.tasks or ():
    if glue_runs.plain(word) not in known:
      raise command_line.UsageError(f"--tasks: {word} is none of {', '.join(known.values())}.")
  asked = [known[glue_runs.plain(word)] for word in FLAGS.tasks or known]
  if FLAGS.glue_dir == "download":
    return {name: _download(name) for name in known.values() if name in asked}
  found = glue_runs.find_tasks(FLAGS.glue_dir)
  if FLAGS.tasks and (missing := [name for name in asked if name not in found]):
    raise ValueError(f"--glue_dir={FLAGS.glue_dir} does not have {', '.join(missing)}.")
  return {name: path for name, path in found.items() if name in asked}


def _download(name: str) -> str:
  from bert.tasks import public_data

  return "download" if FLAGS.dry_run else public_data.download_task_data(name)


def plan_runs(tasks: Mapping[str, str], settings: Mapping | None = None) -> list[Run]:
  """The grid: task by task, setting by setting, the seeds of a setting one after another.

  Args:
    tasks: see `choose_tasks`.
    settings: what decides the results of all runs; None leaves the runs' settings empty.
  """
  runs = []
  for task in (name for name in tasks if name in TASKS):
    data = None if settings is None else glue_runs.identity_of_data(TASKS[task], tasks[task])
    grid = itertools.product(*map(numbers_of_flag, ("learning_rates", "epochs", "seeds")))
    for rate, epochs, seed in grid:
      folder = os.path.join(FLAGS.output_dir, task, glue_runs.folder_name(rate, epochs, seed))
      own = {"learning_rate": rate, "num_train_epochs": epochs, "seed": seed, "data": data}
      runs.append(Run(task, rate, epochs, seed, folder, {**(settings or {}), **own}))
  return runs


def make_room(runs: Iterable[Run]) -> None:
  """Refuses folders that hold something else than their run, or with `--redo` removes them.

  Raises:
    ValueError: names them, and what differs.
  """
  conflicts = {run: why for run in runs if (why := glue_runs.conflict(run))}
  at_stake = {run for run in conflicts if glue_runs.has_something_to_lose(run.folder)}
  # What this script did not make is never removed.
  refused = [run for run in at_stake if not (FLAGS.redo and glue_runs.read_state(run.folder))]
  if refused:
    first = min(refused, key=lambda run: run.folder)
    raise ValueError(
      f"{len(refused)} of the runs were made with other settings. {first.folder}: "
      f"{conflicts[first]}. Give the same flags, another --output_dir, or --redo to remove and "
      "repeat what run_glue.py has made."
    )
  for run in conflicts:
    logging.warning("Repeating %s: %s.", run, conflicts[run])
    shutil.rmtree(run.folder)


def print_commands(sweep: "Sweep") -> None:
  """Prints what would be run."""
  for run in sweep.outcomes:
    state = "  # has finished" if glue_runs.read_state(run.folder).get("finished") else ""
    print(shlex.join(sweep.command(run, "do_train", "do_eval")) + state)


# ---------------------------------------------------------------------------------------------
# The sweep.


class Sweep:
  """Trains every run, then predicts with the best one of each task.

  Attributes:
    outcomes: of each run, in the order of the grid.
    problems: what failed beside training.
  """

  def __init__(self, tasks, runs, shared_flags, stop=None, lock=None):
    """Starts nothing.

    Args:
      tasks: name -> data folder.
      runs: see `plan_runs`.
      shared_flags: of run_classifier.py, for every run.
      stop: the `StopSignals` of the sweep.
      lock: see `parallel_processes.exclusive`.
    """
    self._tasks = tasks
    self._shared_flags = shared_flags
    self._stop = stop
    self._lock = lock
    self.outcomes = {run: Outcome(run) for run in runs}
    self.problems: list[str] = []

  def run(self) -> None:
    """Trains, predicts, cleans up; what fails is noted. Ends early after a signal."""
    self._train()
    if FLAGS.do_predict and not self._stop.received:
      self._run_jobs(self._prediction_jobs())
    if FLAGS.do_predict and not self._stop.received:
      self._run_jobs(self._diagnostic_jobs())
    if FLAGS.keep_checkpoints == "none" and not (self._stop.received or self.problems):
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

  def command(self, run: Run, *what: str) -> list[str]:
    """The command line that does `what`, such as "do_train", in the folder of a run."""
    return [
      *COMMAND,
      f"--task_name={run.task}",
      f"--data_dir={self._tasks[run.task]}",
      f"--output_dir={run.folder}",
      *(f"--{name}" for name in what),
      f"--learning_rate={run.learning_rate:g}",
      f"--num_train_epochs={run.epochs:g}",
      f"--seed={run.seed}",
      *self._shared_flags,
    ]

  def _run_jobs(self, jobs):
    parallel_processes.run_jobs(jobs, FLAGS.parallel_runs, self._stop, FLAGS.gpus, self._lock)

  # -------------------------------------------------------------------------------------------
  # Training.

  def _train(self):
    jobs = []
    for run, outcome in self.outcomes.items():
      if glue_runs.is_finished(run):
        outcome.results = glue_runs.read_results(run)
      else:
        glue_runs.write_state(run.folder, settings=run.settings, finished=False)
        command = self.command(run, "do_train", "do_eval")
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
    glue_runs.write_state(run.folder, settings=run.settings, finished=True, seconds=seconds)
    shown = ", ".join(f"{title} {100 * v:.1f}" for title, v in outcome.results.items())
    logging.info("%s %s: %s (%.0f s)", number, run, shown, seconds)
    self._remove_superfluous()

  def _remove_superfluous(self):
    if FLAGS.keep_checkpoints == "all":
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
      is_predicted = glue_runs.read_state(run.folder).get("predicted") == tests
      wants_weights = task == "MNLI" and self._diagnostic_is_due(run)
      has_weights = glue_runs.has_checkpoint(run.folder)
      if is_predicted and (has_weights or not wants_weights):
        continue
      # The grid has grown: a run whose checkpoint is gone became the best. Its seed brings it back.
      again = [] if has_weights else ["do_train", "do_eval"]
      command = self.command(run, *again, "do_predict")
      yield Job(command, run.folder, functools.partial(self._prediction_ended, run, tests))

  def find_test_files(self, task: str) -> list[tuple[str, str, str]]:
    """See `glue_runs.find_test_files`."""
    return glue_runs.find_test_files(TASKS.get(task, DIAGNOSTIC), self._tasks[task])

  def _identity_of_tests(self, task):
    return glue_runs.identity(path for _, path, _ in self.find_test_files(task))

  def _prediction_ended(self, run, tests, code, seconds):
    if code:
      reason = parallel_processes.reason_of_failure(run.folder, code)
      self._note_problem(f"predicting the test set with {run}: {reason}")
      return
    glue_runs.write_state(run.folder, **{**glue_runs.read_state(run.folder), "predicted": tests})
    logging.info("Predicted the test set with %s (%.0f s)", run, seconds)

  def _note_problem(self, problem):
    logging.error("FAILED: %s", problem)
    self.problems.append(problem)

  def _diagnostic_folder(self):
    return os.path.join(FLAGS.output_dir, DIAGNOSTIC.name)

  def _diagnostic_state(self, run):
    """What `run.json` of the diagnostic set says once `run`, of MNLI, has predicted it."""
    settings = json.loads(json.dumps(run.settings))  # as the file gives them back
    tests = self._identity_of_tests(DIAGNOSTIC.name)
    return {"settings": settings, "finished": True, "predicted": tests}

  def _diagnostic_is_due(self, run):
    if run is None or DIAGNOSTIC.name not in self._tasks:
      return False
    return glue_runs.read_state(self._diagnostic_folder()) != self._diagnostic_state(run)

  def _diagnostic_jobs(self):
    run, folder = self.best_run("MNLI"), self._diagnostic_folder()
    if not self._diagnostic_is_due(run) or not glue_runs.has_checkpoint(run.folder):
      return
    glue_runs.write_state(folder, finished=False)
    best = os.path.join(run.folder, "best")  # of evaluation during training
    # A folder of its own, or it would write over what the run predicts for MNLI.
    command = [
      *self.command(dataclasses.replace(run, task=DIAGNOSTIC.name, folder=folder), "do_predict"),
      f"--init_checkpoint={best if os.path.isdir(best) else run.folder}",
    ]
    yield Job(command, folder, functools.partial(self._diagnostic_ended, run))

  def _diagnostic_ended(self, run, code, seconds):
    folder = self._diagnostic_folder()
    if code:
      self._note_problem(f"predicting AX: {parallel_processes.reason_of_failure(folder, code)}")
      return
    glue_runs.remove_checkpoints(folder)
    glue_runs.write_state(folder, **self._diagnostic_state(run))
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
      if tests and glue_runs.read_state(folder).get("predicted") == self._identity_of_tests(task):
        for suffix, path, name in tests:
          yield task, name, os.path.join(folder, f"predictions{suffix}.tsv"), path


# ---------------------------------------------------------------------------------------------
# The results.


def report(sweep: Sweep) -> bool:
  """Prints and writes the table and the submission; returns whether all went well."""
  if FLAGS.do_predict:
    submit(sweep)
  tasks = dict.fromkeys(run.task for run in sweep.outcomes)
  summaries = [glue_report.Summary(task, sweep.outcomes_of(task)) for task in tasks]
  result = glue_report.Report(summaries, sweep.problems)
  base = os.path.join(FLAGS.output_dir, "results")
  atomic_files.write_text(f"{base}.txt", result.text())
  atomic_files.write_text(f"{base}.json", result.json())
  drawing.plot_table(result.rows(), f"{base}.png", "GLUE, dev sets", result.notes())
  print(f"\n{result.text()}")
  logging.info("Wrote %s.txt, %s.json and %s.png.", base, base, base)
  return not result.problems


def submit(sweep: Sweep) -> None:
  """Writes the submission of what is predicted; a task that does not fit is noted as a problem."""
  texts = {}
  for task, name, predictions_file, test_file in sweep.predictions():
    try:
      texts[name] = glue_report.submission_text(task, predictions_file, test_file)
    except (OSError, ValueError) as error:
      sweep.problems.append(f"{name}.tsv of the submission: {error}")
  if not texts:
    return
  path = glue_report.write_submission(FLAGS.output_dir, texts)
  missing = glue_report.missing_from_submission(texts)
  more = f"; GLUE's server asks for {', '.join(missing)} as well" if missing else ""
  logging.info("Wrote %s: %s%s.", path, ", ".join(texts), more)


def start(argv: Sequence[str] | None = None) -> None:
  """Runs the script on a command line, by default the program's own."""
  argv = list(sys.argv if argv is None else argv)
  end = argv.index("--") if "--" in argv else len(argv)
  script = functools.partial(main, further_flags=argv[end + 1 :])
  command_line.run(script, define_flags, argv[:end], __doc__)


if __name__ == "__main__":
  start()
