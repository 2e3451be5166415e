"""Fine-tunes BERT on every task of GLUE, over the paper's grid, and makes one table of the results.

  python run_glue.py --glue_dir=glue --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --output_dir=/tmp/glue_output

finds the tasks in the folders below --glue_dir (CoLA, SST-2, MRPC, STS-B, QQP, MNLI, QNLI, RTE,
WNLI, AX) and trains each with every learning rate, number of epochs and seed: one process of
run_classifier.py each, --parallel_runs side by side. Flags after a lone -- go to run_classifier.py:

  python run_glue.py --glue_dir=glue --tasks=MRPC,RTE --seeds=1,2,3 --parallel_runs=2 \\
    --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/glue_output -- --dtype=bfloat16

It writes results.txt, results.json and report.html, and for GLUE's server submission.zip with the
predictions of each task's best run. After a stop or a failure the same command continues: finished
runs are not repeated, and runs of other settings are refused.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import functools
import itertools
import math
import os
import sys
from collections.abc import Mapping, Sequence

from absl import flags

from bert import run_classifier
from bert.scripts import (
  command_line,
  flag_groups,
  output_folder,
  path_flags,
  resolution,
  run_states,
  shared_flags,
)
from bert.scripts.classifier_settings import ClassifierSettings
from bert.scripts.run_settings import ModelSettings
from bert.sweeps import glue
from bert.sweeps.glue import DIAGNOSTIC, TASKS
from bert.sweeps.glue_sweep import GlueSweep
from bert.sweeps.outcomes import Run

FLAGS = flags.FLAGS

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

# Each run has its own value. After `--` the same would hold for all runs.
_OF_A_RUN = (
  "task_name",
  "data_dir",
  "do_train",
  "do_eval",
  "learning_rate",
  "num_train_epochs",
  "seed",
)


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Tasks and results"):
    path_flags.define(
      "glue_dir",
      None,
      "Folder with a folder for each task, or `download` to fetch them.",
      local=True,
    )
    path_flags.define("output_dir", None, "Folder for all runs and results.", local=True)
    flags.DEFINE_list("tasks", None, "Which tasks. [all that --glue_dir has]")
    flags.DEFINE_bool(
      "do_predict", True, "Predict the test sets with the best runs, and write submission.zip."
    )
  with flag_groups.flag_group("Grid (the paper's appendix A.3)"):
    flags.DEFINE_list("learning_rates", ["2e-5", "3e-5", "5e-5"], "Peak learning rates.")
    flags.DEFINE_list("epochs", ["2", "3", "4"], "Numbers of epochs.")
    flags.DEFINE_list("seeds", ["1", "2", "3"], "Seeds: one run for each setting and seed.")
    flags.DEFINE_integer("train_batch_size", 32, "Sequences in a training batch.")
  with flag_groups.flag_group("Running"):
    flags.DEFINE_integer("parallel_runs", 1, "Number of runs side by side.")
    flags.DEFINE_list(
      "gpus", [], "Numbers of the GPUs to spread the runs over, such as 0,1. [all for each run]"
    )
    shared_flags.define_report_flag("all runs have ended: scores of all tasks and runs")
  flag_groups.define(ModelSettings)
  flag_groups.mark_required(["glue_dir", "output_dir", "vocab_file", "bert_config_file"])


# ---------------------------------------------------------------------------------------------
# The plan.


def main(_, further_flags: Sequence[str] = ()) -> int:
  """Runs the sweep with the flags after `--` for run_classifier.py, and reports.

  Returns:
    The exit code: 1 if a run failed, 128 and the signal's number if one came.
  """
  check_flags()
  own = resolution.with_model_files(flag_groups.read(ModelSettings))
  command_line.check_required(own.values)
  values = {**own.values, "train_batch_size": FLAGS.train_batch_size}
  given = [f"--{name}={values[name]}" for name in _PASSED_ON if values[name] is not None]
  flags_of_runs = ["--keep_checkpoint_max=1", *given, *further_flags]
  settings = read_settings(flags_of_runs, further_flags)
  tasks = choose_tasks()
  output_folder.prepare(FLAGS.output_dir)
  runs = plan_runs(tasks, {**settings, **run_states.identities_of_model(own)})
  options = {"parallel": FLAGS.parallel_runs, "gpus": FLAGS.gpus, "with_page": FLAGS.report}
  folder, do_predict = FLAGS.output_dir, FLAGS.do_predict
  return GlueSweep(tasks, runs, flags_of_runs, folder, do_predict, **options).carry_out()


def check_flags() -> None:
  """Checks the flags before any file is read.

  Raises:
    UsageError: a flag is missing or has an invalid value.
  """
  if not FLAGS.init_checkpoint or None in (FLAGS.glue_dir, FLAGS.output_dir):
    command_line.check_required()
  command_line.check_at_least(1, "parallel_runs")
  for name in ("learning_rates", "epochs", "seeds"):
    numbers_of_flag(name)


def numbers_of_flag(name: str) -> list:
  """Reads a list flag, each number once: whole ones for `seeds`, positive ones otherwise.

  Raises:
    UsageError: a word is not such a number, or the list is empty.
  """
  numbers = []
  for word in FLAGS[name].value:
    try:
      number = int(word) if name == "seeds" else float(word)
    except ValueError:
      number = math.nan
    if not (math.isfinite(number) and (name == "seeds" or number > 0)):
      needed = "whole" if name == "seeds" else "positive"
      raise command_line.UsageError(f"--{name}: must be {needed} numbers, not {word!r}.")
    numbers.append(number)
  if not numbers:
    raise command_line.UsageError(f"--{name} is empty.")
  return list(dict.fromkeys(numbers))


def read_settings(flags_of_runs: Sequence[str], further_flags: Sequence[str]) -> dict:
  """Returns the settings of run_classifier.py that all runs share, checked before any run starts.

  Args:
    flags_of_runs: all flags of all runs.
    further_flags: those among them that came after `--`.

  Returns:
    Name of a flag -> value, of those that may change results.

  Raises:
    UsageError: a flag has an invalid value, or is not allowed after `--`.
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
    settings = flag_groups.read(ClassifierSettings)
  settings.check_training()
  return {
    name: value for name, value in settings.values.items() if name not in run_states.NO_SETTINGS
  }


def choose_tasks() -> dict[str, str]:
  """Returns name of a task -> its data folder, in GLUE's order.

  Raises:
    UsageError: `--tasks` names one that GLUE does not have.
    ValueError: `--glue_dir` lacks a task that is asked for, or all.
  """
  known = {glue.plain(name): name for name in (*TASKS, DIAGNOSTIC.name)}
  for word in FLAGS.tasks or ():
    if glue.plain(word) not in known:
      raise command_line.UsageError(f"--tasks: {word} is not one of {', '.join(known.values())}.")
  asked = [known[glue.plain(word)] for word in FLAGS.tasks or known]
  if FLAGS.glue_dir == "download":
    from bert.tasks import public_data

    download = public_data.download_task_data
    return {name: download(name) for name in known.values() if name in asked}
  found = glue.find_tasks(FLAGS.glue_dir)
  if FLAGS.tasks and (missing := [name for name in asked if name not in found]):
    raise ValueError(f"--glue_dir={FLAGS.glue_dir} does not have {', '.join(missing)}.")
  return {name: path for name, path in found.items() if name in asked}


def plan_runs(tasks: Mapping[str, str], settings: Mapping) -> list[Run]:
  """Returns the grid: task by task, setting by setting, the seeds of a setting one after another.

  Args:
    tasks: see `choose_tasks`.
    settings: all that decides the results of all runs.
  """
  runs = []
  for task in (name for name in tasks if name in TASKS):
    data = glue.identity_of_data(TASKS[task], tasks[task])
    grid = itertools.product(*map(numbers_of_flag, ("learning_rates", "epochs", "seeds")))
    for rate, epochs, seed in grid:
      folder = os.path.join(FLAGS.output_dir, task, glue.folder_name(rate, epochs, seed))
      own = {"learning_rate": rate, "num_train_epochs": epochs, "seed": seed, "data": data}
      all_settings = {**settings, **own}
      runs.append(Run(seed, folder, all_settings, task, glue.setting_of(rate, epochs)))
  return runs


def start(argv: Sequence[str] | None = None) -> None:
  """Runs the script on a command line, by default the program's own."""
  argv = list(sys.argv if argv is None else argv)
  end = argv.index("--") if "--" in argv else len(argv)
  script = functools.partial(main, further_flags=argv[end + 1 :])
  command_line.run(script, define_flags, argv[:end], __doc__)


if __name__ == "__main__":
  start()
