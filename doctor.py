"""Looks for what would spoil a run, before hours are spent on it.

It takes the flags of the run that is planned, and checks versions, configuration, vocabulary,
checkpoint, data, memory and disk, each by itself and against the others:

  python doctor.py --bert_config_file=$BERT_BASE_DIR/bert_config.json \\
    --vocab_file=$BERT_BASE_DIR/vocab.txt --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt \\
    --task_name=MRPC --data_dir=$GLUE_DIR/MRPC --max_seq_length=128 --output_dir=/tmp/mrpc_output

Data are a folder of GLUE or of your own tables (--task_name), or files that tell what they are:
TFRecords, SQuAD's JSON, CoNLL, CSV, TSV, JSON lines, plain text (--data_dir or --input_file):

  python doctor.py --bert_config_file=... --vocab_file=... --input_file='records/*.tfrecord'

Each line is a finding: `ok`, `note`, `warning` (it probably spoils the result) or `error` (it
spoils the run), where, what, and what to do. The exit code is 1 if there is an error, else 0. The
`run_*` scripts do the cheap part of it by themselves when they start (bert/checks/start_checks.py).
"""

from collections.abc import Iterator

from absl import flags, logging

from bert.checkpoints import released_models
from bert.checks.findings import Finding, Subject, examine, note, number_of, to_json, to_text
from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups, run_settings, shared_flags

FLAGS = flags.FLAGS

_DATA_FILES = ("train_file", "dev_file", "test_file", "predict_file", "eval_input_file")
_COLUMNS = ("text_a_column", "text_b_column", "id_column")
_TABLE_FLAGS = (
  *_COLUMNS,
  *("label_column", "labels", "problem_type", "label_separator", "header", "skip_bad_rows"),
)
_CONLL_FLAGS = {  # flag -> field of `conll_files.ConllFormat`
  "separator": "separator",
  "token_column": "token_column",
  "label_column": "label_column",
  "label_scheme": "scheme",
  "comment_prefix": "comment_prefix",
}

# Of a run's other flags, so that its command line can be given as it is.
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
  with flag_groups.flag_group("What to look at"):
    flags.DEFINE_string("data_dir", None, "Folder with the data; with --task_name, of that task.")
    flags.DEFINE_string("input_file", None, "Data files: paths or patterns, joined by commas.")
    for name in _DATA_FILES:
      flags.DEFINE_string(
        name, None, "One more of them, under the name that a run_*.py has for it."
      )
    flags.DEFINE_string("output_dir", None, "Where checkpoints will go.")
    flags.DEFINE_integer("max_examples", 100_000, "So many examples of each file are looked at.")
    flags.DEFINE_bool("checksums", True, "Read records to their last byte for their sha256.")
  _define_format_flags()
  shared_flags.define_model_flags()
  with flag_groups.flag_group("Memory and disk"):
    flags.DEFINE_integer("train_batch_size", 32, "Sequences in a training batch.")
    flags.DEFINE_integer("gradient_accumulation_steps", 1, "Parts a batch is taken in.")
    flags.DEFINE_integer(
      "max_predictions_per_seq", None, "Masked words of a sequence in pre-training. [the records']"
    )
    flags.DEFINE_integer("keep_checkpoint_max", 5, "How many checkpoints will be kept.")
  with flag_groups.flag_group("Report"):
    flags.DEFINE_enum("format", "text", ["text", "json"], "Lines to read, or JSON to process.")
  with flag_groups.flag_group("Accepted, so that a run's flags can be given; without effect here"):
    for name in _IGNORED_SWITCHES:
      flags.DEFINE_bool(name, False, "As of run_*.py.")
    for name in _IGNORED_NUMBERS:
      flags.DEFINE_float(name, None, "As of run_*.py.")


def _define_format_flags() -> None:
  with flag_groups.flag_group("How the data are written (as of run_classifier.py and run_ner.py)"):
    flags.DEFINE_string("task_name", None, "The task of run_classifier.py: MRPC, ..., or csv.")
    for name in _COLUMNS:
      flags.DEFINE_string(name, None, "A column of --task_name=csv: name or number from 0.")
    flags.DEFINE_string("label_column", None, "Column of the label, in tables and CoNLL files.")
    flags.DEFINE_list("labels", None, "All labels of --task_name=csv, in order.")
    flags.DEFINE_enum(
      "problem_type",
      None,
      ["classification", "regression", "multi_label"],
      "What the label of --task_name=csv is.",
    )
    flags.DEFINE_string("label_separator", None, "What joins the labels of a row.")
    flags.DEFINE_bool("header", None, "Whether the first row names the columns.")
    flags.DEFINE_bool("skip_bad_rows", None, "Leave malformed rows out.")
    flags.DEFINE_string("separator", None, "What separates the columns of CoNLL files.")
    flags.DEFINE_integer("token_column", None, "Column of the word in CoNLL files.")
    flags.DEFINE_string("label_scheme", None, "How labels of CoNLL files spell entities.")
    flags.DEFINE_string("comment_prefix", None, "Lines of CoNLL files that begin so are no words.")


def main(_) -> int:
  """Prints the findings; returns 1 if there is an error among them."""
  settings = run_settings.from_flags()
  settings.check_at_least(
    1, "train_batch_size", "gradient_accumulation_steps", "max_examples", "max_seq_length"
  )
  # What readers would log is said by findings.
  logging.set_verbosity(logging.ERROR)
  findings = [*_of_released_model(), *diagnose(subject_of(settings))]
  print(to_json(findings) if FLAGS.format == "json" else to_text(findings))
  return 1 if number_of("error", findings) else 0


def subject_of(settings: run_settings.RunSettings) -> Subject:
  """What the flags show."""
  subject = Subject(
    data_dir=FLAGS.data_dir,
    input_file=",".join(filter(None, (FLAGS[name].value for name in ("input_file", *_DATA_FILES)))),
    task_name=FLAGS.task_name,
    do_lower_case=FLAGS.do_lower_case,
    # The default of run_classifier.py says nothing about records or questions.
    max_seq_length=FLAGS.max_seq_length if _is_length_meant() else None,
    max_predictions_per_seq=FLAGS.max_predictions_per_seq,
    train_batch_size=-(-FLAGS.train_batch_size // FLAGS.gradient_accumulation_steps),
    dtype=FLAGS.dtype,
    output_dir=FLAGS.output_dir,
    keep_checkpoint_max=FLAGS.keep_checkpoint_max,
    max_examples=FLAGS.max_examples,
    checksums=FLAGS.checksums,
    table_options={name: FLAGS[name].value for name in _TABLE_FLAGS},
    conll_options=_conll_options(),
  )
  if released_models.is_wanted(settings.init_checkpoint):
    subject.config = BertConfig.from_name(settings.init_checkpoint)
  else:
    settings = run_settings.with_model_files(settings)
    subject.init_checkpoint = settings.init_checkpoint
  subject.bert_config_file, subject.vocab_file = settings.bert_config_file, settings.vocab_file
  return subject


def _conll_options() -> dict:
  given = {field: FLAGS[flag].value for flag, field in _CONLL_FLAGS.items()}
  if (column := given["label_column"]) is not None:  # of a table it may be a name
    given["label_column"] = int(column) if column.lstrip("-").isdecimal() else None
  return {field: value for field, value in given.items() if value is not None}


def _of_released_model() -> Iterator[Finding]:
  if released_models.is_wanted(FLAGS.init_checkpoint):
    yield note(
      f"{FLAGS.init_checkpoint} would be downloaded; its sizes are known, its files not checked."
    )


def _is_length_meant() -> bool:
  return command_line.flag_was_given("max_seq_length") or bool(FLAGS.task_name)


# ---------------------------------------------------------------------------------------------
# Checks.


def diagnose(subject: Subject) -> Iterator[Finding]:
  """Runs all checks, one by one.

  Args:
    subject: what to look at; checks leave in it what they learn.
  """
  from bert.checks import data_checks, machine_checks, model_checks

  yield from examine(
    (
      machine_checks.check_versions,
      machine_checks.check_namesakes,
      machine_checks.check_devices,
      model_checks.check_config,
      model_checks.check_vocabulary,
      model_checks.check_checkpoint,
      model_checks.check_checkpoint_values,
      model_checks.check_resumed,
      data_checks.check_data,
      machine_checks.check_memory,
      machine_checks.check_disk,
    ),
    subject,
  )


if __name__ == "__main__":
  command_line.run(main, define_flags)
