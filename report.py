"""Makes a report of a run: one HTML file with its results, curves and examples.

  python report.py /tmp/mrpc_output                      # writes /tmp/mrpc_output/report.html
  python report.py /tmp/squad_output --eval_file=dev.json --output_file=squad.html

The folder is the --output_dir of a run of any task, yours among them (--plugin). Its eval set is
answered once more for the examples: the model is read from the folder, the data from where the run
found them, or from --data_dir or --eval_file. Where the data are gone, the report has the rest.

The file needs no network and no scripts, prints well, and is the same, byte for byte, each time.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import os
import random
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np
from absl import flags, logging

from bert.checks import data_checks, findings
from bert.figures import event_files
from bert.io import atomic_files, filesystem, json_files, vocabulary_kind
from bert.io.wording import in_one_message
from bert.predicting import load_run
from bert.predicting.predictor import Predictor
from bert.reports import html_page
from bert.reports.subject import Examples, Subject
from bert.scripts import (
  command_line,
  flag_groups,
  output_files,
  path_flags,
  result_files,
  run_files,
  run_settings,
  trained_task,
)
from bert.tasks.answering import Answering
from bert.training import hardware

FLAGS = flags.FLAGS

# Files of data by the flags of tasks.
_DATA_FILES = ("train_file", "dev_file", "test_file", "predict_file")
_MOST_CHECKED = 20_000  # examples of a file whose tokens are counted


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Report"):
    path_flags.define(
      "run", None, "The --output_dir of a run; also as a word without a flag.", local=True
    )
    path_flags.define("output_file", None, "The report. [RUN/report.html]", local=True)
    path_flags.define("data_dir", None, "The folder of the data. [that of the run]", local=True)
    path_flags.define(
      "eval_file", None, "The labelled file to answer. [that of the run]", local=True
    )
    flags.DEFINE_integer(
      "max_examples", 2000, "Answer at most this many examples, a random sample of more."
    )
    flags.DEFINE_integer("batch_size", 32, "Sequences in a batch.")


def main(argv: Sequence[str]) -> None:
  """Writes the report."""
  folder = folder_of([*([FLAGS.run] if FLAGS.run else []), *argv[1:]])
  run_settings.from_flags().check_at_least(1, "max_examples", "batch_size")
  output_file = FLAGS.output_file or os.path.join(folder, "report.html")
  output_files.prepare([output_file])
  hardware.start_tensorflow()
  html = html_page.render(subject_of(folder))
  atomic_files.write_text(output_file, html)
  logging.info("Wrote %s, %.1f MB.", output_file, len(html.encode()) / 1e6)


def folder_of(words: Sequence[str]) -> str:
  """Returns the folder of the run.

  Raises:
    UsageError: none is named, or several, or it is no folder.
  """
  if len(words) != 1:
    raise command_line.UsageError(
      "Name one run, the --output_dir of its script: report.py RUN."
      + (f" {len(words)} were named; two runs are not compared yet." if words else "")
    )
  folder = os.path.normpath(words[0])
  if not filesystem.is_folder(folder):
    raise command_line.UsageError(f"{words[0]} is no folder. Name the --output_dir of a run.")
  return folder


# ---------------------------------------------------------------------------------------------
# What is known of a run.


def subject_of(folder: str) -> Subject:
  """Reads a run, and answers its eval set.

  Raises:
    ValueError: the folder holds no fine-tuned model.
  """
  run = load_run.find_run(folder)
  known = _json_in(folder, run_files.FLAGS)
  answering, _ = load_run.answering_of(run)
  subject = Subject(
    folder=folder,
    task=str(known.get("task_name") or run.kind.name),
    results=results_of(folder),
    headline="eval_accuracy",
    failure=_json_in(folder, "dev_summary.json").get("failure"),
    flags=known,
    versions=_json_in(folder, run_files.VERSIONS),
    command=trained_task.command(run.kind, known) if known else "",
    facts=facts_of(run, folder),
    curves=curves_of(folder),
    usage=usage_of(folder, answering.example),
  )
  missing = [] if subject.results else ["The folder has no eval_results.txt: --do_eval writes it."]
  try:
    if not known:
      raise ValueError("the folder has no flags.json, which says where the data are.")
    task = task_of(run, folder, known)
    subject.headline = task.headline
    subject.examples = examples_of(task, run, folder, answering)
    subject.headline = task.headline  # the data may say it
    subject.findings = findings_of(task, run)
  except (ValueError, OSError) as error:
    missing.append(f"There are no examples: {in_one_message(error)}")
    logging.warning("The report has no examples: %s", in_one_message(error))
  subject.missing = missing
  return subject


def _json_in(folder: str, name: str) -> dict[str, Any]:
  return json_files.read_if_there(os.path.join(folder, name), "Remove it.")


def results_of(folder: str) -> dict[str, str]:
  """Returns the numbers of `eval_results.txt` as they are written there; none without one."""
  path = os.path.join(folder, "eval_results.txt")
  if not filesystem.is_file(path):
    return {}
  result_files.read_eval_results(path)  # it raises for what is no number
  with open(path, encoding="utf-8") as reader:
    return dict(line.rstrip("\n").split(" = ", 1) for line in reader if " = " in line)


def facts_of(run: load_run.Run, folder: str) -> dict[str, str]:
  """Returns a few facts about model and run."""
  config = run.config
  facts = {
    config.family.title: f"with {config.num_hidden_layers} layers of {config.hidden_size}",
    "texts of at most": f"{run.max_seq_length} tokens",
  }
  seconds = _json_in(folder, "run.json").get("seconds")
  return {**facts, **({"took": _duration(seconds)} if seconds else {})}


def _duration(seconds: float) -> str:
  """Writes a time.

  Example:
    >>> _duration(42.4), _duration(672.4), _duration(7300)
    ('42 s', '11 min', '2.0 h')
  """
  if seconds < 120:
    return f"{seconds:.0f} s"
  return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def curves_of(folder: str) -> event_files.Run | None:
  """Reads the curves of a run; None where it has none."""
  try:
    return event_files.read_run(folder)
  except event_files.NoScalarsError:
    return None


def usage_of(folder: str, example: dict[str, Any]) -> dict[str, str]:
  """Returns three ways to use the model."""
  named = shlex.quote(folder)
  return {
    "A line of text for each example": f"python predict.py --init_checkpoint={named} < texts.txt",
    "A page and a service": f"python serve.py --model={named}",
    "Python": "from bert.predicting.predictor import Predictor\n"
    f"Predictor.load({folder!r})([{example!r}])",
  }


# ---------------------------------------------------------------------------------------------
# Examples and their answers.


def task_of(run: load_run.Run, folder: str, known: dict[str, Any]) -> Any:
  """Makes the run's task, which reads the labelled set."""
  changed: dict[str, Any] = {}
  if FLAGS.data_dir:
    changed |= dict.fromkeys(_DATA_FILES[:3]) | {"data_dir": FLAGS.data_dir}
  if FLAGS.eval_file:
    changed |= run.kind.task_class().settings_of_eval_file(FLAGS.eval_file)
  known = {**known, "max_seq_length": run.max_seq_length}
  changed = {name: value for name, value in changed.items() if name in known}
  lower = run.facts.get("do_lower_case", True)
  return trained_task.make(run.kind, run.config, run.vocab_file, lower, folder, known, **changed)


def examples_of(task: Any, run: load_run.Run, folder: str, answering: Answering) -> Examples:
  """Answers the labelled set, or a sample of it."""
  data = task.data_sets(task.scored_split)[0]
  chosen = sample(len(data.examples), FLAGS.max_examples)
  examples = [data.examples[n] for n in chosen]
  items = trained_task.items_of(task, examples)
  answers = Predictor.from_run(folder, batch_size=FLAGS.batch_size)(items)
  shown = task.shown(answering)
  expected = [task.expected(example) for example in examples]
  cases = [shown.case(*three) for three in zip(items, expected, answers, strict=True)]
  unknown = run_unknown_id(answering)
  rows = [[row["input_ids"] for row in answering.rows(item)] for item in items]
  return Examples(
    shown,
    expected,
    cases,
    [n + 1 for n in chosen],
    [max(map(len, each), default=0) for each in rows],
    [float(np.mean([i == unknown for ids in each for i in ids] or [0])) for each in rows],
    len(data.examples),
    data.split + data.suffix,
    trained_task.scores_of(task, data, answers, "the report has none of its own")
    if len(chosen) == len(data.examples)
    else {},
  )


def sample(total: int, most: int) -> list[int]:
  """Chooses examples, the same each time, in their order.

  Example:
    >>> sample(3, 5), len(sample(100, 5))
    ([0, 1, 2], 5)
  """
  if total <= most:
    return list(range(total))
  return sorted(random.Random(12345).sample(range(total), most))


def run_unknown_id(answering: Answering) -> int:
  """Returns the id of the unknown token; -1 where the vocabulary has none."""
  vocab = answering.tokenizer.vocab
  return vocab.get(vocabulary_kind.unknown_token(vocab), -1)


def findings_of(task: Any, run: load_run.Run) -> list[findings.Finding]:
  """Looks at the data as `doctor.py` does."""
  if not run.kind.data:
    return []
  settings = task.settings
  files = [settings.get(name) for name in _DATA_FILES]
  if run.kind.file:
    settings = settings.replace(task_name=run.kind.name)
  subject = findings.RunUnderCheck.of(
    {**settings.values, "vocab_file": run.vocab_file},
    config=run.config,
    input_file=",".join(filter(None, files)),
    settings=settings,
    vocab=task.tokenizer.vocab,
    max_examples=_MOST_CHECKED,
  )
  order = ("error", "warning", "note", "ok")
  found = findings.examine([data_checks.check_data], subject)
  return sorted(found, key=lambda each: order.index(each.level))


if __name__ == "__main__":
  command_line.run(main, define_flags, takes_arguments=True)
