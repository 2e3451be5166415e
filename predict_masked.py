"""Predicts the words at [MASK], and whether one text follows another.

  python predict_masked.py --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --text="The capital of France is [MASK]." --text="It rains. ||| The street is [MASK]."

An item is a text, or two texts with ||| between them. The answer lists the most probable word
pieces for each [MASK]; for two texts also the probability that the second follows the first, if the
checkpoint has the next-sentence head. With an ELECTRA, whose generator guesses, the discriminator
says of each token how probably it was replaced. With files, one item per line and one JSON object
per line:

  python predict_masked.py --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --input_file=texts.txt --output_file=answers.jsonl

From Python: `Predictor.load(..., task="masked_words")`.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import sys
from collections.abc import Callable, Iterable, Iterator

from absl import flags

from bert.io import text_lines
from bert.predicting.predictor import Predictor
from bert.scripts import command_line, flag_groups, path_flags, shared_flags
from bert.scripts.run_settings import ModelFiles
from bert.training import hardware

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Texts and answers"):
    flags.DEFINE_multi_string("text", [], "A text with [MASK]. May be given several times.")
    path_flags.define(
      "input_file", "-", "Without --text: texts, one per line; - is standard input."
    )
    path_flags.define(
      "output_file", None, "Output, one JSON object per text. Without it a table is printed."
    )
    flags.DEFINE_integer("top_k", 5, "Number of word pieces for each [MASK].")
    flags.DEFINE_integer("batch_size", 32, "Number of texts in a batch.")
    shared_flags.define_prediction_dtype_flag()
  flag_groups.define(ModelFiles)


def main(_) -> None:
  """Answers each text."""
  check_flags()
  hardware.start_tensorflow()
  # At a terminal, returns a result before the next line is read.
  is_interactive = not FLAGS.text and FLAGS.input_file == "-" and sys.stdin.isatty()
  predictor = load_predictor()
  if is_interactive:
    predictor.chunk_size = 1
  results = predictor.stream(*read_texts())
  if FLAGS.output_file:
    with text_lines.written_output(FLAGS.output_file) as writer:
      for result in results:
        writer.write(text_lines.to_json(result))
  else:
    for result in results:
      print(to_table(result), flush=True)


def check_flags() -> None:
  """Checks the flags, before anything is loaded.

  Raises:
    UsageError: a flag is missing or has an invalid value.
    OSError: `--output_file` cannot be written.
  """
  if not FLAGS.init_checkpoint:
    raise command_line.UsageError("Name a model: --init_checkpoint.")
  if FLAGS.text and command_line.flag_was_given("input_file"):
    raise command_line.UsageError("--text and --input_file exclude each other.")
  command_line.check_at_least(1, "top_k", "batch_size")
  if FLAGS.output_file:
    text_lines.check_output_file(FLAGS.output_file, input_file=FLAGS.input_file)


def load_predictor() -> Predictor:
  """Returns the predictor of the model that the flags name."""
  options = shared_flags.model_options("top_k", "batch_size", "dtype")
  return Predictor.load(FLAGS.init_checkpoint, task="masked_words", **options)


def read_texts() -> tuple[Iterator[tuple[str, str | None]], Callable[[int], str]]:
  """Returns the texts of `--text`, or of the lines of `--input_file` that are not empty.

  And a function that says where the n-th of those that were read is from.
  """
  name = "--text" if FLAGS.text else FLAGS.input_file
  lines: Iterable[str] = FLAGS.text or text_lines.read_lines(FLAGS.input_file)
  places = []

  def texts():
    for number, line in enumerate(lines, start=1):
      if line.strip():
        places.append(number)
        yield text_lines.split_pair(line)

  return texts(), lambda count: text_lines.place(name, places[count - 1])


def to_table(result: dict) -> str:
  """Returns the table that is printed for a result.

  Example:
    >>> print(to_table({"text": "It is [MASK].", "text_b": "Oh.", "next_sentence": 0.25,
    ...   "masks": [[{"token": "wet", "probability": 0.9}, {"token": "so", "probability": 0.05}]]}))
    It is [MASK]. ||| Oh.
      mask 1         wet 0.9000  so 0.0500
      next sentence  0.2500
  """
  lines = [" ||| ".join(result[name] for name in ("text", "text_b") if name in result)]
  for number, pieces in enumerate(result["masks"], start=1):
    guesses = "  ".join(f"{piece['token']} {piece['probability']:.4f}" for piece in pieces)
    lines.append(f"  {f'mask {number}':<13}  {guesses}")
  if "tokens" in result:
    verdicts = (f"{each['token']} {each['replaced']:.4f}" for each in result["tokens"])
    lines.append(f"  replaced       {'  '.join(verdicts)}")
  if "next_sentence" in result:
    lines.append(f"  next sentence  {result['next_sentence']:.4f}")
  return "\n".join(lines)


if __name__ == "__main__":
  command_line.run(main, define_flags)
