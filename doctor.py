"""Checks a planned run for mistakes before hours are spent on it.

It takes the flags of the run, and checks versions, configuration, vocabulary, checkpoint, data,
memory and disk, each separately and against the others:

  python doctor.py --bert_config_file=$BERT_BASE_DIR/bert_config.json \\
    --vocab_file=$BERT_BASE_DIR/vocab.txt --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \\
    --task_name=MRPC --data_dir=$GLUE_DIR/MRPC --max_seq_length=128 --output_dir=/tmp/mrpc_output

Data are a folder of GLUE, of your own tables or of a task of your own (--task_name), or files whose
kind is recognised: TFRecords, SQuAD's JSON, CoNLL, CSV, TSV, JSON Lines, plain text (--data_dir or
--input_file):

  python doctor.py --bert_config_file=... --vocab_file=... --input_file='records/*.tfrecord'

Each line is a finding: `ok`, `note`, `warning` (probably spoils the result) or `error` (makes
the run fail), with its location and a remedy. The exit code is 1 if there is an error, else 0. The
`run_*` scripts do the cheap checks themselves when they start (bert/checks/at_start).
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import contextlib
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

from absl import logging

from bert.checkpoints import model_source
from bert.checkpoints.model_source import Kind, ModelSource
from bert.checks.findings import Finding, RunUnderCheck, examine, note, number_of, to_json, to_text
from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups, model_labels, resolution, trained_task
from bert.scripts.run_settings import ModelSettings, TableSettings
from bert.scripts.settings import Path, Settings, at_least, setting
from bert.tasks import kinds, label_schemes
from bert.training import hardware

_DATA_FILES = ("train_file", "dev_file", "test_file", "predict_file", "eval_input_file")
_LIKE_INPUT = "Like --input_file, by the name of a run_*.py."


def _ignored(default: Any = None) -> Any:
  """Makes a setting of runs, so that a run's command line can be given unchanged."""
  return setting(default, "See run_*.py.")


class IgnoredSettings(Settings, title="Flags of a run that are accepted without effect"):
  """What a run does, and how it learns."""

  do_train: bool = _ignored(False)
  do_eval: bool = _ignored(False)
  do_predict: bool = _ignored(False)
  do_export: bool = _ignored(False)
  use_tpu: bool = _ignored(False)
  learning_rate: float | None = _ignored()
  num_train_epochs: float | None = _ignored()
  warmup_proportion: float | None = _ignored()
  num_train_steps: float | None = _ignored()
  num_warmup_steps: float | None = _ignored()
  save_checkpoints_steps: float | None = _ignored()
  eval_batch_size: float | None = _ignored()
  predict_batch_size: float | None = _ignored()
  doc_stride: float | None = _ignored()


class OutputSettings(Settings, title="Report"):
  """How findings are printed."""

  format: str = setting("text", "Output as lines of text or as JSON.", choices=["text", "json"])


class MemorySettings(Settings, title="Memory and disk"):
  """What a run needs."""

  train_batch_size: int = setting(32, "Sequences in a training batch.", at_least(1))
  gradient_accumulation_steps: int = setting(1, "Parts of a training batch.", at_least(1))
  max_predictions_per_seq: int | None = setting(
    None, "Masked words of a sequence in pre-training. [the records']"
  )
  keep_checkpoint_max: int = setting(5, "The number of checkpoints that are kept.")


class FileSettings(Settings, title="Format of the data (as in the run)"):
  """How CoNLL files are read."""

  separator: str | None = setting(None, "Separates the columns of CoNLL files.")
  token_column: int | None = setting(None, "Column of the word in CoNLL files.")
  label_scheme: str | None = setting(
    None, "How labels of CoNLL files encode entities.", choices=label_schemes.SCHEMES
  )
  comment_prefix: str | None = setting(None, "Prefix of comments in CoNLL files.")


class DoctorSettings(
  OutputSettings, MemorySettings, IgnoredSettings, ModelSettings, title="What to check"
):
  """The settings of this script, beside how data are read."""

  data_dir: str | None = setting(None, "The folder of the data, or of --task_name.", path=Path())
  input_file: str | None = setting(
    None, "Data files: paths or patterns, joined by commas.", path=Path(several=True)
  )
  train_file: str | None = setting(None, _LIKE_INPUT, path=Path(several=True))
  dev_file: str | None = setting(None, _LIKE_INPUT, path=Path(several=True))
  test_file: str | None = setting(None, _LIKE_INPUT, path=Path(several=True))
  predict_file: str | None = setting(None, _LIKE_INPUT, path=Path(several=True))
  eval_input_file: str | None = setting(None, _LIKE_INPUT, path=Path(several=True))
  task_name: str | None = setting(None, "MRPC, ..., csv, or the name of a task of your own.")
  output_dir: str | None = setting(
    None, "The folder of the run's checkpoints.", path=Path(local=True)
  )
  max_examples: int = setting(
    100_000, "Check at most this many examples of each file.", at_least(1)
  )
  checksums: bool = setting(True, "Read record files completely, to compare their sha256.")

  required = ()


class DataSettings(DoctorSettings, FileSettings, TableSettings):
  """All settings, of data that the project's own tasks read."""


def settings_class(argv: Sequence[str]) -> type[Any]:
  """Returns the class of settings for a command line, which is not read yet."""
  if own := _own_task(argv):
    return types.new_class("Settings", (DoctorSettings, own.task_class().settings_class))
  return DataSettings


def define_flags() -> None:
  """Defines this script's flags."""
  flag_groups.define(settings_class(sys.argv))


def _own_task(argv: Sequence[str]) -> kinds.Kind | None:
  """Returns the task of one's own that a command line names, which is not read yet.

  Without `--task_name` that of `--plugin`, if it is the only one.
  """
  own = {kind.name: kind for kind in kinds.registered().values() if kind.file}
  if name := command_line.value_in(argv, "task_name"):
    return own.get(name)
  is_named = command_line.value_in(argv, "plugin") and len(own) == 1
  return next(iter(own.values())) if is_named else None


def main(_) -> int:
  """Prints the findings; returns 1 if one of them is an error."""
  settings = flag_groups.read(settings_class(sys.argv))
  if own := _own_task(sys.argv):
    settings = settings.replace(task_name=own.name)
  Settings.check(settings)  # what it says of values, not what a run must have
  logging.set_verbosity(logging.ERROR)  # The findings repeat what readers log.
  with contextlib.suppress(ImportError):  # then a finding names what is missing
    hardware.start_tensorflow()
  source = _source_of(settings)
  findings = [*_of_released_model(source), *diagnose(subject_of(settings, source))]
  print(to_json(findings) if settings.format == "json" else to_text(findings))
  return 1 if number_of("error", findings) else 0


def _source_of(settings: Any) -> ModelSource | None:
  """The model of `--init_checkpoint`; None without one, or if there is no such model."""
  try:
    return model_source.identify(settings.init_checkpoint) if settings.init_checkpoint else None
  except (ValueError, OSError):
    return None  # `model_checks.check_checkpoint` reports it among its findings.


def subject_of(settings: Any, source: ModelSource | None) -> RunUnderCheck:
  """The run that the flags describe, with the model of `--init_checkpoint`."""
  config = None
  if source and source.kind is Kind.RELEASED:
    config = BertConfig.from_name(source.path)
    settings = settings.replace(init_checkpoint=None)
  elif source or not settings.init_checkpoint:
    settings = resolution.with_model_files(settings)
    with contextlib.suppress(ValueError, OSError):  # reported among the findings
      settings = resolution.with_stored_case(settings)
      settings = _as_trained(settings)
  files = filter(None, (getattr(settings, name) for name in ("input_file", *_DATA_FILES)))
  # The default length is that of run_classifier.py; it does not apply to records or questions.
  is_length_meant = "max_seq_length" in settings.given or settings.task_name
  return RunUnderCheck.of(
    settings.values,
    config=config,
    input_file=",".join(files),
    max_seq_length=settings.max_seq_length if is_length_meant else None,
    settings=settings,
  )


def _as_trained(settings: Any) -> Any:
  """Of a run that does not train: the lengths and the labels of the one that did."""
  if settings.do_train or not (settings.do_eval or settings.do_predict or settings.do_export):
    return settings
  from bert.checkpoints import finding

  if settings.init_checkpoint:
    checkpoint = finding.find(settings.init_checkpoint)
    settings = settings.replace(checkpoint=checkpoint)
  settings = resolution.with_lengths_of_run(settings)
  is_named = (settings.task_name or "csv").lower() not in ("csv", "ner")  # it has its own labels
  if is_named or settings.get("labels") or settings.get("problem_type") == "regression":
    return settings
  model = model_labels.of_settings(settings)
  labels = model and model.facts.get("problem_type") != "regression" and model.labels
  return settings.replace(labels=labels) if labels else settings


def _of_released_model(source: ModelSource | None) -> Iterator[Finding]:
  if source and source.kind is Kind.RELEASED:
    yield note(f"{source.path} would be downloaded; its sizes are known, its files not checked.")


# ---------------------------------------------------------------------------------------------
# Checks.


def diagnose(subject: RunUnderCheck) -> Iterator[Finding]:
  """Runs all checks in order; a check may store data in the subject for later ones."""
  from bert.checks import data_checks, machine_checks, model_checks

  if subject.make_task is None:
    settings = subject.settings
    values = settings if isinstance(settings, dict) else settings.values
    name = "csv" if subject.task_name in kinds.registered() else subject.task_name
    known = {"data_dir": subject.data_dir, "task_name": name or "csv"}
    subject.make_task = trained_task.reader_of({**values, **known})
  yield from examine(
    (
      machine_checks.check_versions,
      machine_checks.check_namesakes,
      machine_checks.check_devices,
      model_checks.check_config,
      model_checks.check_vocabulary,
      model_checks.check_checkpoint,
      model_checks.check_checkpoint_values,
      data_checks.check_data,
      model_checks.check_resumed,  # also compares the task, which the data show
      machine_checks.check_memory,
      machine_checks.check_disk,
    ),
    subject,
  )


if __name__ == "__main__":
  command_line.run(main, define_flags)
