"""Predicts with a fine-tuned model, a pre-trained one or an export: text lines to JSON lines.

  python predict.py --init_checkpoint=/tmp/mrpc_output --vocab_file=vocab.txt < pairs.txt
  python predict.py --saved_model=/tmp/squad_output/export --input_file=questions.jsonl
  python predict.py --task=vectors --init_checkpoint=uncased_L-12_H-768_A-12 < texts.txt
  python predict.py --init_checkpoint=/tmp/mrpc_export --engine=onnxruntime < pairs.txt

A line holds a text, or two texts with ` ||| ` between them, or a JSON object with the inputs by
name, such as `{"question": "Who?", "context": "It was me."}` or
`{"context": "She", "choices": ["a", "b"]}`.

From Python: `bert.predicting.predictor.Predictor`.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from absl import flags, logging

from bert.io.text_lines import (
  STANDARD_STREAM,
  check_output_file,
  read_lines,
  split_pair,
  to_json,
  written_output,
)
from bert.predicting import load_export, masked_words
from bert.predicting.predictor import Predictor
from bert.scripts import command_line, flag_groups, path_flags, run_settings, shared_flags
from bert.training import hardware

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Prediction"):
    path_flags.define(
      "saved_model",
      None,
      "Folder of an exported model, such as OUTPUT_DIR/export of --do_export. Without it, "
      "--init_checkpoint names the model; for --task=answers, the OUTPUT_DIR of a run.",
    )
    flags.DEFINE_enum(
      "task",
      "answers",
      ["answers", "vectors", "fill_mask"],
      "answers: the task the model was fine-tuned for. vectors: one vector for each text, the mean "
      "of the last layer. fill_mask: word pieces for each [MASK], from a pre-trained model.",
    )
    path_flags.define("input_file", "-", "Input, one item per line; - is standard input.")
    path_flags.define("output_file", "-", "Output, one JSON object per line; - is standard output.")
    flags.DEFINE_integer("batch_size", 32, "Number of items in a batch.")
    shared_flags.define_prediction_dtype_flag()
    shared_flags.define_engine_flags()
    shared_flags.define_batch_invariant_flag()
  shared_flags.define_model_flags(runs_model=False)


def main(_) -> None:
  """Predicts line by line."""
  check_flags()
  if not is_export():
    hardware.start_tensorflow()
  is_interactive = FLAGS.input_file == STANDARD_STREAM and sys.stdin.isatty()
  predictor = load_predictor()
  if is_interactive:
    predictor.chunk_size = 1  # returns a result before the next line is read
  source = "standard input" if FLAGS.input_file == STANDARD_STREAM else FLAGS.input_file
  items = parse_lines(read_lines(FLAGS.input_file), source)
  with written_output(FLAGS.output_file) as writer:
    count = 0
    for result in predictor.stream(items, source):
      count += 1
      writer.write(to_json({"vector": result} if FLAGS.task == "vectors" else result))
      if is_interactive:
        writer.flush()
  if not count:
    logging.warning("%s has no line: nothing was predicted.", source)


def is_export() -> bool:
  """Tells whether the model is an export for other engines than TensorFlow."""
  return bool(FLAGS.init_checkpoint) and load_export.is_export(FLAGS.init_checkpoint)


def check_flags() -> None:
  """Checks the flags, before anything is loaded.

  Raises:
    UsageError: no model is named, or two, or the engine cannot be.
    OSError: `--output_file` cannot be written.
  """
  if bool(FLAGS.saved_model) == bool(FLAGS.init_checkpoint):
    raise command_line.UsageError("Name one model: --saved_model or --init_checkpoint.")
  run_settings.from_flags().check_at_least(1, "batch_size")
  check_output_file(FLAGS.output_file, input_file=FLAGS.input_file)
  _check_engine()
  ignored = []
  if FLAGS.saved_model:
    ignored = ["bert_config_file", "vocab_file", "spm_model_file", "do_lower_case"]
    ignored += [] if FLAGS.task == "vectors" else ["dtype"]
    ignored += ["max_seq_length"] if FLAGS.task == "answers" else []
  elif FLAGS.task == "answers":
    ignored = ["bert_config_file", "do_lower_case"]
  command_line.explain_ignored_flags(dict.fromkeys(ignored, "the model has its own"))


def _check_engine() -> None:
  """Raises a UsageError where the engine cannot compute the model, or the task."""
  asked = [f"--{name}={FLAGS[name].value}" for name in ("engine", "precision")]
  is_other = FLAGS.engine not in ("auto", "tensorflow") or FLAGS.precision != "float32"
  if FLAGS.saved_model and is_other:
    raise command_line.UsageError(
      f"{' '.join(asked)}: --saved_model is TensorFlow's alone. Write the model of another engine "
      "with export_hub.py --format=onnx or litert, and name its folder as --init_checkpoint."
    )
  if FLAGS.task == "fill_mask" and (is_other or is_export()):
    raise command_line.UsageError(
      "--task=fill_mask is computed by TensorFlow, from a checkpoint: exports for other engines "
      "have no head for masked words."
    )


def load_predictor() -> Predictor:
  """Returns the predictor of the model that the flags name."""
  path = FLAGS.saved_model or FLAGS.init_checkpoint
  vocab_file = FLAGS.spm_model_file or FLAGS.vocab_file
  options: dict[str, Any] = {
    "batch_size": FLAGS.batch_size,
    "batch_invariant": FLAGS.batch_invariant,
  }
  length_was_given = command_line.flag_was_given("max_seq_length")
  if FLAGS.task == "answers":
    if FLAGS.saved_model:
      return Predictor.from_saved_model(path, **options)
    if length_was_given:
      options["max_seq_length"] = FLAGS.max_seq_length
    engine = {"engine": FLAGS.engine, "precision": FLAGS.precision}
    return Predictor.load(path, vocab_file=vocab_file, dtype=FLAGS.dtype, **engine, **options)
  options["max_seq_length"] = FLAGS.max_seq_length if length_was_given else None
  if FLAGS.task == "vectors" or not FLAGS.saved_model:
    options["dtype"] = FLAGS.dtype
  if not FLAGS.saved_model:
    options |= {"bert_config_file": FLAGS.bert_config_file, "vocab_file": vocab_file}
    if command_line.flag_was_given("do_lower_case"):
      options["do_lower_case"] = FLAGS.do_lower_case
  if FLAGS.task == "vectors":
    if is_export() or FLAGS.engine not in ("auto", "tensorflow"):
      options |= {"engine": FLAGS.engine, "precision": FLAGS.precision}
    return Predictor.from_checkpoint(path, **options)  # also reads an exported encoder
  if FLAGS.saved_model:
    return masked_words.from_saved_model(path, **options)
  return masked_words.from_checkpoint(path, **options)


# ---------------------------------------------------------------------------------------------
# Lines of input.


def parse_lines(lines: Iterable[str], source: str) -> Iterator[str | tuple[str, ...] | dict]:
  """Yields the items on lines; the ValueError of an invalid one names `source` and the line."""
  for number, line in enumerate(lines, start=1):
    try:
      item = _parse_line(line)
    except ValueError as error:
      raise ValueError(f"{source}, line {number}: {error}") from None
    yield item


def _parse_line(line: str) -> str | tuple[str, ...] | dict:
  """Returns the item on a line: a text, a pair, or a JSON object of inputs."""
  item = _json_object(line)
  if item is not None:
    return item
  text_a, text_b = split_pair(line)
  return text_a if text_b is None else (text_a, text_b)


def _json_object(line: str) -> dict | None:
  """Returns the JSON object on a line; None for a text, even one that begins with a brace.

  Raises:
    ValueError: it contains half of a surrogate pair, which is possible in JSON but not in UTF-8.
  """
  if not line.startswith("{"):
    return None
  try:
    item = json.loads(line)
    json.dumps(item, ensure_ascii=False).encode()
  except UnicodeEncodeError:
    raise ValueError(f"{line!r:.80} holds half of a surrogate pair.") from None
  except (ValueError, RecursionError):
    return None
  return item


if __name__ == "__main__":
  command_line.run(main, define_flags)
