"""What a report says of a run of any task: read from its folder, and its eval set answered again.

subject = run_subject.subject_of("/tmp/mrpc_output", Chosen(max_examples=500))
html = html_page.render(subject)
"""

import json
import os
import shlex
from collections.abc import Mapping
from typing import Any, NamedTuple

from absl import logging

from bert.checkpoints import model_files
from bert.checks import data_checks, findings
from bert.figures import event_files
from bert.io import filesystem, installation, json_files
from bert.io.wording import in_one_message
from bert.model.configuration import BertConfig
from bert.predicting import load_run
from bert.predicting.known_rows import KnownRows
from bert.reports.subject import Subject
from bert.scripts import (
  answered_examples,
  command_line,
  pretraining_subject,
  result_files,
  run_files,
  table_split,
  trained_task,
)
from bert.scripts.answered_examples import Budget, NotKnownError
from bert.tasks import kinds, public_data, run_statistics, usage

# Files of data by the flags of tasks.
_DATA_FILES = ("train_file", "dev_file", "test_file", "predict_file")
_TABLE = "csv"  # the task of a user's own table
_PROBLEMS = {"regression": "Text scores", "multi_label": "Text labels"}
_MOST_CHECKED = 20_000  # examples of a file whose tokens are counted


class Chosen(NamedTuple):
  """What is to be answered for a report, and how.

  Attributes:
    data_dir: the folder of the data; None for that of the run.
    eval_file: the labelled file; None for that of the run.
    max_examples: of a larger set, a random sample of N examples is answered.
    batch_size: sequences in a batch.
    is_answered: whether examples are answered at all.
    is_explained: whether it is computed what words contributed.
    run_passes, known_rows: see `answered_examples.Budget`; None where a report may take its time.
  """

  data_dir: str | None = None
  eval_file: str | None = None
  max_examples: int = 2000
  batch_size: int = 32
  is_answered: bool = True
  is_explained: bool = True
  run_passes: int | None = None
  known_rows: KnownRows | None = None


def subject_of(folder: str, chosen: Chosen) -> Subject:
  """Reads a run, and answers its eval set.

  Raises:
    ValueError: the folder holds no model that was trained.
  """
  from bert.checkpoints import finding, reading

  prefix = finding.find_checkpoint(folder)
  facts = reading.read_facts(prefix)
  if not learned_no_task(facts):
    return _of_task(folder, chosen)
  subject = _read(folder, BertConfig.from_json_file(model_files.need_config(folder)))
  pretraining_subject.complete(subject, facts)
  return subject


def learned_no_task(facts: Mapping[str, Any]) -> bool:
  """Tells whether a run with these facts is one of pre-training."""
  return bool(facts) and kinds.of_facts(facts) is None


def _read(folder: str, config: BertConfig) -> Subject:
  """Reads what the files of any run say."""
  results, summary = results_of(folder), result_files.read_summary(folder)
  return Subject(
    folder=folder,
    task="",
    results=results,
    headline=summary.get("headline", "eval_accuracy"),
    failure=summary.get("failure"),
    flags=json_in(folder, run_files.FLAGS),
    versions=json_in(folder, run_files.VERSIONS),
    command=text_in(folder, run_files.COMMAND),
    facts=facts_of(config, folder),
    curves=curves_of(folder),
    evaluated=summary.get("examples"),
    missing=[] if results else ["The folder has no eval_results.txt: --do_eval writes it."],
  )


def _of_task(folder: str, chosen: Chosen) -> Subject:
  run = load_run.find_run(folder)
  decoder, head = load_run.decoder_of(run), load_run.head_of(run)
  subject = _read(folder, run.config)
  known = subject.flags
  subject.task = title_of(known, run.kind)
  subject.usage = usage_of(folder, decoder.example)
  subject.facts = {**subject.facts, "texts of at most": f"{run.max_seq_length} tokens"}
  subject.facts |= teacher_of(known)
  try:
    if not known:
      raise ValueError("the folder has no flags.json, which says where the data are.")
    task = task_of(run, folder, known, chosen)
    subject.headline = task.headline
    if chosen.is_answered:
      _answer(subject, task, run, decoder, head, chosen)
    subject.headline = task.headline  # the data may say it
    subject.findings = findings_of(task, run)
  except Exception as error:
    # Data that are gone, or a method of a user's task that fails: the rest of the report is there.
    is_plain = isinstance(error, (ValueError, OSError))
    if not (is_plain or run.kind.file):
      raise
    why = in_one_message(error) if is_plain else f"{type(error).__name__}: {in_one_message(error)}"
    subject.missing = [*subject.missing, f"There are no examples: {why}"]
    logging.warning("The report has no examples: %s%s", why, command_line.log_traceback(error))
  return subject


def _answer(
  subject: Subject, task: Any, run: load_run.Run, decoder: Any, head: Any, chosen: Chosen
) -> None:
  """Answers the examples of a report, and says how to get those that the run has no answers to."""
  budget = Budget(chosen.max_examples, chosen.is_explained, chosen.run_passes, chosen.known_rows)
  more = f"come with: python report.py {shlex.quote(subject.folder)}"
  try:
    found = answered_examples.examples_of(task, run, decoder, head, budget, chosen.batch_size)
  except NotKnownError as error:
    subject.missing = [*subject.missing, f"There are no examples: {error} They {more}"]
    logging.info("The report has no examples: %s They %s", error, more)
    return
  subject.examples = found
  if len(found.cases) < min(chosen.max_examples, found.total):
    subject.missing = [*subject.missing, f"More examples {more}"]


def title_of(known: Mapping[str, Any], kind: kinds.Kind | None) -> str:
  """Says what the data of a run are; "" of an unknown one.

  Example:
    >>> title_of({"task_name": "sst-2", "data_dir": "glue/SST-2"}, None)
    'SST-2'
    >>> title_of({"task_name": "csv", "data_dir": "out/reviews/"}, kinds.find("sentences"))
    'Text classification: reviews'
    >>> title_of({"predict_file": "faq/dev.json"}, kinds.find("squad"))
    'Question answering: dev.json'
  """
  name = str(known.get("task_name") or "")
  if public_data.is_public_task(name):
    is_sample = _is_sample(known.get("data_dir"))
    return public_data.spelled(name) + (", a synthetic sample" if is_sample else "")
  what = name
  if not name or name.lower() == _TABLE:
    own = kind.decoder_class().title or kind.name if kind else name
    what = _PROBLEMS.get(str(known.get("problem_type")), own)
  files = [known.get(flag) for flag in ("dev_file", "predict_file", "train_file")]
  files.append(table_split.table_of(known.get("data_dir")))
  data = os.path.basename(os.path.normpath(next(filter(None, files), "")))
  return f"{what}: {data}" if what and data not in ("", ".", "..") else what


def _is_sample(folder: str | None) -> bool:
  """Tells whether data are the synthetic ones that come with the project."""
  if not folder or filesystem.is_remote(folder):
    return False
  return os.path.realpath(folder).startswith(os.path.realpath(installation.SAMPLES) + os.sep)


def json_in(folder: str, name: str) -> dict[str, Any]:
  """Reads a file of a run; empty where it is missing."""
  return json_files.read_if_there(os.path.join(folder, name), "Remove it.")


def text_in(folder: str, name: str) -> str:
  """Reads a text of a run; "" where it is missing."""
  path = os.path.join(folder, name)
  if not os.path.isfile(path):
    return ""
  with open(path, encoding="utf-8") as reader:
    return reader.read().strip()


def results_of(folder: str) -> dict[str, str]:
  """Returns the numbers of `eval_results.txt` as they are written there; none without one."""
  path = os.path.join(folder, "eval_results.txt")
  return result_files.spelled_results(path) if filesystem.is_file(path) else {}


def facts_of(config: BertConfig, folder: str) -> dict[str, str]:
  """Returns a few facts about model and run."""
  facts = {config.family.title: f"with {config.num_hidden_layers} layers of {config.hidden_size}"}
  seconds = json_in(folder, "run.json").get("seconds")
  return {**facts, **({"took": _duration(seconds)} if seconds else {})}


def teacher_of(known: Mapping[str, Any]) -> dict[str, str]:
  """Says of whom a student has learned, and how good that one is."""
  teacher = known.get("teacher")
  if not teacher or not os.path.isdir(teacher):
    return {"learned from": teacher} if teacher else {}
  config = json_in(teacher, run_files.CONFIG)
  sizes = [config.get(name) for name in ("num_hidden_layers", "hidden_size")]
  known_of = ["{} layers of {}".format(*sizes)] if all(sizes) else []
  scores = [f"{run_statistics.title(name)} {value}" for name, value in results_of(teacher).items()]
  return {"learned from": ", ".join([teacher, *known_of, *scores[:1]])}


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
  """Returns three ways to use the model, with an item of the run's data where one is known."""
  named = shlex.quote(folder)
  request = shlex.quote(json.dumps({"items": [example]}, ensure_ascii=False))
  return {
    "Python": usage.in_python(folder, example),
    "Lines of text": f"python predict.py --init_checkpoint={named} <<'END'\n"
    f"{usage.as_line(example)}\nEND",
    "A page and a service": f"python serve.py --model={named}\n"
    f"curl -s localhost:8080/answer -d {request}",
  }


# ---------------------------------------------------------------------------------------------
# Its data.


def task_of(run: load_run.Run, folder: str, known: Mapping[str, Any], chosen: Chosen) -> Any:
  """Makes the run's task, which reads the labelled set."""
  changed: dict[str, Any] = {}
  if chosen.data_dir:
    changed |= dict.fromkeys(_DATA_FILES[:3]) | {"data_dir": chosen.data_dir}
  known = {**known, "max_seq_length": run.max_seq_length}
  changed = {name: value for name, value in changed.items() if name in known}
  lower = run.facts.get("do_lower_case", True)
  return trained_task.make(
    run.kind, run.config, run.vocab_file, lower, folder, known, chosen.eval_file, **changed
  )


def findings_of(task: Any, run: load_run.Run) -> list[findings.Finding]:
  """Looks at the data as `doctor.py` does."""
  settings = task.settings
  files = [settings.get(name) for name in _DATA_FILES]
  values = {**settings.values, "vocab_file": run.vocab_file}
  if run.kind.name != "sentences":
    values["task_name"] = run.kind.name
  subject = findings.RunUnderCheck.of(
    values,
    config=run.config,
    input_file=",".join(filter(None, files)),
    settings=settings,
    make_task=trained_task.reader_of(task.settings.values),
    vocab=task.tokenizer.vocab,
    max_examples=_MOST_CHECKED,
  )
  order = ("error", "warning", "note", "ok")
  found = findings.examine([data_checks.check_data], subject)
  return sorted(found, key=lambda each: order.index(each.level))
