"""Predicts with a fine-tuned model, a pre-trained one or an export: tables, or lines of text.

  python predict.py --init_checkpoint=/tmp/tickets_output --input_file=new.csv --output_file=out.csv
  python predict.py --init_checkpoint=/tmp/mrpc_output --vocab_file=vocab.txt < pairs.txt
  python predict.py --init_checkpoint=/tmp/squad_output/export --input_file=questions.jsonl
  python predict.py --task=vectors --init_checkpoint=uncased_L-12_H-768_A-12 < texts.txt
  python predict.py --init_checkpoint=/tmp/mrpc_export --engine=onnxruntime < pairs.txt

A table is a .csv, .tsv or .jsonl file with a header or keys. The columns of the texts are those of
the run that trained, or have the names of the inputs, such as `text_a` or `text`, and `question`
and `context`. The output has all columns of the input, `prediction`, and the probabilities: a table
where its name ends in .csv or .tsv, else JSON Lines.

In other files and from standard input, each line holds a text, or two texts with ` ||| ` between
them, or a JSON object with the inputs by name, such as
`{"question": "Who?", "context": "It was me."}` or `{"context": "She", "choices": ["a", "b"]}`. The
output has a line for each.

More text than one machine can take (docs/much_text.md), into out.jsonl-00000-of-00020 and so on:

  python predict.py --runner=beam --init_checkpoint=/shared/mrpc_output --batch_invariant \\
    --input_file=/shared/pairs/*.txt --output_file=/shared/out.jsonl \\
    --beam_args="--runner=FlinkRunner --flink_master=..."

From Python: `bert.predicting.predictor.Predictor`.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import errno
import functools
import os
import sys
from collections.abc import Iterator

from absl import flags, logging

from bert.io import filesystem
from bert.io.text_lines import STANDARD_STREAM, check_output_file, read_lines, written_output
from bert.predicting import answer_lines, answer_tables, load_export, text_shards
from bert.predicting.predictor import Predictor
from bert.scripts import (
  command_line,
  flag_groups,
  path_flags,
  runner_flags,
  shared_flags,
)
from bert.scripts.run_settings import ModelFiles
from bert.training import hardware

FLAGS = flags.FLAGS

_TABLES = (".csv", ".tsv")


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Prediction"):
    flags.DEFINE_enum(
      "task",
      "answers",
      ["answers", "vectors", "masked_words"],
      "answers: the task the model was fine-tuned for. vectors: one vector for each text, the mean "
      "of the last layer. masked_words: word pieces for each [MASK], from a pre-trained model.",
    )
    path_flags.define(
      "input_file",
      "-",
      "Input: a table, .csv, .tsv or .jsonl; else one item per line; - is standard input.",
      several=True,
    )
    path_flags.define(
      "output_file",
      "-",
      "Output: a table, .csv or .tsv; else one JSON object per line; - is standard output.",
    )
    flags.DEFINE_string(
      "text_a_column", None, "Column of the (first) text in a table. [that of the run, or text_a]"
    )
    flags.DEFINE_string(
      "text_b_column", None, "Column of the second text in a table. [that of the run, or text_b]"
    )
    flags.DEFINE_bool(
      "header", None, "Whether the first row of a table names the columns. [as in the run's]"
    )
    shared_flags.define_skip_bad_rows_flag()
    flags.DEFINE_integer("batch_size", 32, "Number of items in a batch.")
    shared_flags.define_prediction_dtype_flag()
    shared_flags.define_engine_flags()
    shared_flags.define_batch_invariant_flag()
  runner_flags.define_for_lines()
  flag_groups.define(ModelFiles)


def main(_) -> None:
  """Predicts line by line."""
  check_flags()
  if runner_flags.is_beam():
    write = functools.partial(answer_lines.write_answers, result_name=_result_name())
    plugins = tuple(FLAGS.plugin.split(",")) if FLAGS.plugin else ()
    runner_flags.write_shards(text_shards.Work(predictor_of_flags(), write, plugins))
    return
  if not load_export.is_export(FLAGS.init_checkpoint):
    hardware.start_tensorflow()
  is_interactive = FLAGS.input_file == STANDARD_STREAM and sys.stdin.isatty()
  predictor = load_predictor()
  if is_interactive:
    predictor.chunk_size = 1  # returns a result before the next line is read
  source = "standard input" if FLAGS.input_file == STANDARD_STREAM else FLAGS.input_file
  if answer_tables.is_table(FLAGS.input_file) or FLAGS.output_file.endswith(_TABLES):
    results = _table_lines(predictor, source)
  else:
    lines = read_lines(FLAGS.input_file)
    results = answer_lines.json_lines(predictor, lines, source, _result_name())
  with written_output(FLAGS.output_file) as writer:
    count = 0
    for line in results:
      count += 1
      writer.write(line)
      if is_interactive:
        writer.flush()
  if not count:
    logging.warning("%s has no line: nothing was predicted.", source)


def _table_lines(predictor: Predictor, source: str) -> Iterator[bytes]:
  """Yields the output of a table, or a table as the output of lines."""
  write = answer_tables.writer(FLAGS.output_file)
  if answer_tables.is_table(FLAGS.input_file):
    given = (FLAGS.text_a_column, FLAGS.text_b_column)
    columns = zip(predictor.processor.inputs, given, strict=False)
    rows = answer_tables.read(
      FLAGS.input_file,
      predictor,
      {name: column for name, column in columns if column is not None},
      FLAGS.header,
      FLAGS.skip_bad_rows,
      is_streamed=not FLAGS.output_file.endswith(_TABLES),
    )
  else:
    items = answer_lines.parse_lines(read_lines(FLAGS.input_file), source)
    rows = answer_tables.of_lines(items, source)
  for row, result in answer_tables.answered(predictor, rows, _result_name()):
    yield write(row, result)


def _result_name() -> str | None:
  """The name of a result in its JSON object, if it is not an object itself."""
  return "vector" if FLAGS.task == "vectors" else None


def check_flags() -> None:
  """Checks the flags, before anything is loaded.

  Raises:
    UsageError: no model is named, or the engine cannot be.
    OSError: `--output_file` cannot be written.
  """
  if not FLAGS.init_checkpoint:
    raise command_line.UsageError("Name a model: --init_checkpoint.")
  command_line.check_at_least(1, "batch_size")
  if load_export.is_export(FLAGS.init_checkpoint):
    runner_flags.check_engine()
  runner_flags.check("num_shards")
  if runner_flags.is_beam():
    _check_no_table()
    runner_flags.check_files()
  else:
    check_output_file(FLAGS.output_file, input_file=FLAGS.input_file)
    if answer_tables.is_table(FLAGS.input_file) and not filesystem.exists(FLAGS.input_file):
      raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), FLAGS.input_file)
  ignored = ("bert_config_file", "do_lower_case") if FLAGS.task == "answers" else ()
  command_line.explain_ignored_flags(dict.fromkeys(ignored, "the model has its own"))


def _check_no_table() -> None:
  """Raises a UsageError where workers would read, or write, a table line by line."""
  for name in ("input_file", "output_file"):
    if FLAGS[name].value.endswith(_TABLES):
      raise command_line.UsageError(
        f"--runner=beam: --{name}={FLAGS[name].value} is a table. Workers read lines of text or "
        "JSON objects with the inputs by name, and write lines of JSON."
      )


def load_predictor() -> Predictor:
  """Returns the predictor of the model that the flags name."""
  return predictor_of_flags()()


def predictor_of_flags() -> functools.partial:
  """Returns a call, which other processes can make as well, that loads the predictor."""
  options = shared_flags.model_options("task", "batch_size", "batch_invariant", "dtype")
  options |= {"engine": FLAGS.engine, "precision": FLAGS.precision}
  if FLAGS.task == "answers":  # the model has its own, see `check_flags`
    options |= {"bert_config_file": None, "do_lower_case": None}
  return functools.partial(Predictor.load, FLAGS.init_checkpoint, **options)


if __name__ == "__main__":
  command_line.run(main, define_flags)
