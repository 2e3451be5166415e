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
import dataclasses
import sys
from collections.abc import Iterator, Sequence

from absl import flags, logging

from bert.checkpoints import model_source
from bert.checkpoints.model_source import Kind, ModelSource
from bert.checks.findings import Finding, RunUnderCheck, examine, note, number_of, to_json, to_text
from bert.model.configuration import BertConfig
from bert.scripts import (
  command_line,
  flag_groups,
  model_flags,
  model_labels,
  path_flags,
  run_settings,
  shared_flags,
  trained_task,
)
from bert.tasks import kinds, label_schemes
from bert.training import hardware

_DATA_FILES = ("train_file", "dev_file", "test_file", "predict_file", "eval_input_file")
# Further flags of runs, so that a run's command line can be given unchanged.
_IGNORED_SWITCHES = ("do_train", "do_eval", "do_predict", "do_export", "use_tpu")
_IGNORED_NUMBERS = (
  "learning_rate",
  "num_train_epochs",
  "warmup_proportion",
  "num_train_steps",
  "num_warmup_steps",
  "save_checkpoints_steps",
  "eval_batch_size",
  "predict_batch_size",
  "doc_stride",
)


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("What to check"):
    path_flags.define("data_dir", None, "The folder of the data, or of --task_name.")
    path_flags.define(
      "input_file", None, "Data files: paths or patterns, joined by commas.", several=True
    )
    for name in _DATA_FILES:
      path_flags.define(name, None, "Like --input_file, by the name of a run_*.py.", several=True)
    path_flags.define("output_dir", None, "The folder of the run's checkpoints.", local=True)
    flags.DEFINE_integer("max_examples", 100_000, "Check at most this many examples of each file.")
    flags.DEFINE_bool("checksums", True, "Read record files completely, to compare their sha256.")
  _define_format_flags()
  shared_flags.define_model_flags()
  with flag_groups.flag_group("Memory and disk"):
    flags.DEFINE_integer("train_batch_size", 32, "Sequences in a training batch.")
    flags.DEFINE_integer("gradient_accumulation_steps", 1, "Parts of a training batch.")
    flags.DEFINE_integer(
      "max_predictions_per_seq", None, "Masked words of a sequence in pre-training. [the records']"
    )
    flags.DEFINE_integer("keep_checkpoint_max", 5, "The number of checkpoints that are kept.")
  with flag_groups.flag_group("Report"):
    flags.DEFINE_enum("format", "text", ["text", "json"], "Output as lines of text or as JSON.")
  with flag_groups.flag_group("Flags of a run that are accepted without effect"):
    for name in _IGNORED_SWITCHES:
      flags.DEFINE_bool(name, False, "See run_*.py.")
    for name in _IGNORED_NUMBERS:
      flags.DEFINE_float(name, None, "See run_*.py.")


def _define_format_flags() -> None:
  with flag_groups.flag_group("Format of the data (as in the run)"):
    flags.DEFINE_string("task_name", None, "MRPC, ..., csv, or the name of a task of your own.")
    if own := _own_task(sys.argv):
      own.task_class().define_task_flags()
      return
    flags.DEFINE_string("separator", None, "Separates the columns of CoNLL files.")
    flags.DEFINE_integer("token_column", None, "Column of the word in CoNLL files.")
    schemes = label_schemes.SCHEMES
    flags.DEFINE_enum("label_scheme", None, schemes, "How labels of CoNLL files encode entities.")
    flags.DEFINE_string("comment_prefix", None, "Prefix of comments in CoNLL files.")
  shared_flags.define_table_flags()


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
  settings = run_settings.from_flags()
  if own := _own_task(sys.argv):
    settings = settings.replace(task_name=own.name)
  settings.check_at_least(
    1, "train_batch_size", "gradient_accumulation_steps", "max_examples", "max_seq_length"
  )
  logging.set_verbosity(logging.ERROR)  # The findings repeat what readers log.
  with contextlib.suppress(ImportError):  # then a finding names what is missing
    hardware.start_tensorflow()
  source = _source_of(settings)
  findings = [*_of_released_model(source), *diagnose(subject_of(settings, source))]
  print(to_json(findings) if settings.format == "json" else to_text(findings))
  return 1 if number_of("error", findings) else 0


def _source_of(settings: run_settings.RunSettings) -> ModelSource | None:
  """The model of `--init_checkpoint`; None without one, or if there is no such model."""
  try:
    return model_source.identify(settings.init_checkpoint) if settings.init_checkpoint else None
  except (ValueError, OSError):
    return None  # `model_checks.check_checkpoint` reports it among its findings.


def subject_of(settings: run_settings.RunSettings, source: ModelSource | None) -> RunUnderCheck:
  """The run that the flags describe, with the model of `--init_checkpoint`."""
  config = None
  if source and source.kind is Kind.RELEASED:
    config = BertConfig.from_name(source.path)
    settings = settings.replace(init_checkpoint=None)
  elif source or not settings.init_checkpoint:
    settings = run_settings.with_model_files(settings)
    with contextlib.suppress(ValueError, OSError):  # reported among the findings
      settings = run_settings.with_stored_case(settings)
      settings = _as_trained(settings)
  files = filter(None, (settings.values[name] for name in ("input_file", *_DATA_FILES)))
  # The default length is that of run_classifier.py; it does not apply to records or questions.
  is_length_meant = "max_seq_length" in settings.given or settings.task_name
  return RunUnderCheck.of(
    settings.values,
    config=config,
    input_file=",".join(files),
    max_seq_length=settings.max_seq_length if is_length_meant else None,
    settings=settings,
  )


def _as_trained(settings: run_settings.RunSettings) -> run_settings.RunSettings:
  """Of a run that does not train: the lengths and the labels of the one that did."""
  if settings.do_train or not (settings.do_eval or settings.do_predict or settings.do_export):
    return settings
  from bert.checkpoints import finding

  if settings.init_checkpoint:
    checkpoint = finding.find(settings.init_checkpoint)
    settings = dataclasses.replace(settings, checkpoint=checkpoint)
  settings = model_flags.with_lengths_of_run(settings)
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
