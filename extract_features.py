"""Vectors of texts: outputs of BERT's layers for each word piece, or one vector per text.

The command of 2018 works unchanged, and writes the same JSON lines:

  python extract_features.py --input_file=/tmp/input.txt --output_file=/tmp/output.jsonl \\
    --vocab_file=$BERT_BASE_DIR/vocab.txt --bert_config_file=$BERT_BASE_DIR/bert_config.json \\
    --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt --layers=-1,-2,-3,-4 \\
    --max_seq_length=128 --batch_size=8

A line of the input is a text, or two: "Who was Jim Henson ? ||| Jim Henson was a puppeteer".
JSON takes 10 bytes per number and is slow to read. For more than a few texts:

  python extract_features.py --input_file=texts.txt --output_file=vectors.npz \\
    --init_checkpoint=uncased_L-12_H-768_A-12 --layers=-1 --output_format=npz --pooling=mean

A text larger than one machine (docs/much_text.md), into files vectors.npz-00000-of-00020 and so on:

  python extract_features.py --runner=beam --input_file=/shared/texts/*.txt \\
    --output_file=/shared/vectors.npz --output_format=npz --pooling=mean --layers=-1 \\
    --init_checkpoint=/shared/uncased_L-12_H-768_A-12 --batch_invariant \\
    --beam_args="--runner=FlinkRunner --flink_master=..."

The similarity of the two texts of each line, for models trained on similarity:

  python extract_features.py --similarity --input_file=pairs.txt --output_file=- \\
    --init_checkpoint=out/model.ckpt-1000 --layers=-1
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from absl import flags, logging

from bert.io import filesystem, text_lines
from bert.predicting import load_export, sentence_vectors, text_shards, vector_files
from bert.predicting.predictor import Predictor
from bert.predicting.vector_files import WRITERS
from bert.scripts import (
  command_line,
  flag_groups,
  path_flags,
  resolution,
  runner_flags,
  shared_flags,
)
from bert.scripts.run_settings import ModelFiles, TpuSwitch

FLAGS = flags.FLAGS


class ExtractionSettings(ModelFiles, TpuSwitch, title="Model"):
  """The settings of the model."""


def define_flags() -> None:
  """Defines this script's flags; names, types and defaults of 2018 are unchanged."""
  with flag_groups.flag_group("Texts and vectors"):
    path_flags.define(
      "input_file",
      None,
      "Texts, one on each line, or two with ||| between them; - for stdin.",
      several=True,
    )
    path_flags.define("output_file", None, "Output file of the vectors; - prints the JSON lines.")
    flags.DEFINE_string(
      "layers", "-1,-2,-3,-4", "Layers, separated by commas: 0 is the first, -1 the last."
    )
    flags.DEFINE_enum(
      "output_format",
      "jsonl",
      list(WRITERS),
      "jsonl: the original's lines of JSON. npz: arrays for numpy.load; vectors of pieces are "
      "concatenated, text i at row_splits[i]:row_splits[i + 1].",
    )
    flags.DEFINE_enum(
      "pooling",
      None,
      sentence_vectors.POOLINGS,
      "none: a vector for each word piece, as in the original. Or one for each text: that of "
      "[CLS], or mean or max over its pieces. [that of a model of run_similarity.py, else none]",
    )
    flags.DEFINE_bool(
      "similarity",
      False,
      "Write the cosine of the two texts of each line, from the first of --layers, pooled by "
      "--pooling or mean. Not meaningful for pre-trained BERT: use a model of run_similarity.py.",
    )
    flags.DEFINE_integer("batch_size", 32, "Texts in a batch; more if they are short.")
    shared_flags.define_batch_invariant_flag()
    flags.DEFINE_bool(
      "use_one_hot_embeddings", False, "Has no effect: words are looked up by index on any device."
    )
    shared_flags.define_prediction_dtype_flag()
    shared_flags.define_engine_flags()
  runner_flags.define_for_lines()
  flag_groups.define(ExtractionSettings)
  flag_groups.mark_required(
    ["input_file", "vocab_file", "bert_config_file", "init_checkpoint", "output_file"]
  )


# ---------------------------------------------------------------------------------------------
# Texts: the original's names, for programs that import them.


class InputExample:
  """A text or a pair of texts.

  Attributes:
    unique_id: the number of its line, from 0.
    text_a: the first text.
    text_b: the second, or None.
  """

  def __init__(self, unique_id, text_a, text_b):
    self.unique_id = unique_id
    self.text_a = text_a
    self.text_b = text_b


class InputFeatures:
  """A text as input of the model.

  Attributes:
    unique_id: that of the example.
    tokens: its pieces, with [CLS] and [SEP], without padding.
    input_ids: `seq_length` ints.
    input_mask: 1 for a piece, 0 for padding.
    input_type_ids: 0 for the first text, 1 for the second, 0 for padding.
  """

  def __init__(self, unique_id, tokens, input_ids, input_mask, input_type_ids):
    self.unique_id = unique_id
    self.tokens = tokens
    self.input_ids = input_ids
    self.input_mask = input_mask
    self.input_type_ids = input_type_ids


def generate_examples(input_file: str) -> Iterator[InputExample]:
  """Yields the texts of a file (`-`: standard input) line by line; an empty line is a text, too."""
  for unique_id, line in enumerate(text_lines.read_lines(input_file)):
    yield InputExample(unique_id, *text_lines.split_pair(line))


def read_examples(input_file: str) -> list[InputExample]:
  """Returns all of `generate_examples`, as the original has it."""
  return list(generate_examples(input_file))


def convert_examples_to_features(
  examples: Iterable[InputExample], seq_length: int, tokenizer
) -> list[InputFeatures]:
  """Converts texts to ids, padded to `seq_length` as in the original; the first five are logged."""
  converted = []
  for index, example in enumerate(examples):
    pair = (example.text_a, example.text_b)
    features = sentence_vectors.text_features(tokenizer, pair, seq_length)
    tokens, *columns = (features[name] for name in ("tokens", *sentence_vectors.INPUTS))
    padding = [0] * (seq_length - len(tokens))
    converted.append(
      InputFeatures(example.unique_id, tokens, *(column + padding for column in columns))
    )
    if index < 5:
      _log_example(converted[-1])
  return converted


def _log_example(features: InputFeatures) -> None:
  logging.info("*** Example ***")
  logging.info("unique_id: %s", features.unique_id)
  logging.info("tokens: %s", " ".join(features.tokens))
  for name in ("input_ids", "input_mask", "input_type_ids"):
    logging.info("%s: %s", name, " ".join(map(str, getattr(features, name))))


# ---------------------------------------------------------------------------------------------
# For an Estimator, as in the original. The job below does not need it.


def input_fn_builder(features: Iterable[InputFeatures], seq_length: int) -> Callable:
  """An input_fn over features, which it takes one by one instead of as one large constant."""

  def input_fn(params):
    import tensorflow as tf

    def generate():
      for feature in features:
        yield {
          "unique_ids": feature.unique_id,
          "input_ids": feature.input_ids,
          "input_mask": feature.input_mask,
          "input_type_ids": feature.input_type_ids,
        }

    sequence = tf.TensorSpec([seq_length], tf.int32)
    spec = dict.fromkeys(("input_ids", "input_mask", "input_type_ids"), sequence)
    spec = {"unique_ids": tf.TensorSpec([], tf.int32), **spec}
    dataset = tf.data.Dataset.from_generator(generate, output_signature=spec)
    return dataset.batch(params["batch_size"], drop_remainder=False)

  return input_fn


def model_fn_builder(
  bert_config, init_checkpoint, layer_indexes, use_tpu, use_one_hot_embeddings
) -> Callable:
  """Returns the `model_fn` of an `estimator.Estimator` that predicts.

  Args:
    bert_config: a `BertConfig`.
    init_checkpoint: the checkpoint of the weights.
    layer_indexes: the layers; prediction `layer_output_<i>`, float32 `[B, S, W]`, is the i-th.
    use_tpu: has no effect here.
    use_one_hot_embeddings: look words up by a matrix product.
  """
  del use_tpu

  def model_fn(features, labels, mode, params):
    from bert.modeling import BertModel
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels, params
    if mode != ModeKeys.PREDICT:
      raise ValueError(f"Only PREDICT modes are supported: {mode}")
    model = BertModel(
      config=bert_config,
      is_training=False,
      input_ids=features["input_ids"],
      input_mask=features["input_mask"],
      token_type_ids=features["input_type_ids"],
      use_one_hot_embeddings=use_one_hot_embeddings,
    )
    layers = model.get_all_encoder_layers()
    outputs = {f"layer_output_{i}": layers[index] for i, index in enumerate(layer_indexes)}
    predictions = {"unique_id": features["unique_ids"], **outputs}
    return EstimatorSpec(mode, predictions=predictions, init_checkpoint=init_checkpoint)

  return model_fn


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> None:
  """Extracts vectors as the flags say."""
  load = functools.partial(Predictor.load, **_options(check_flags()))
  write = functools.partial(vector_files.write_vectors, output_format=FLAGS.output_format)
  if FLAGS.similarity:
    write = functools.partial(vector_files.write_similarities)
  if runner_flags.is_beam():
    needs_index = FLAGS.similarity or FLAGS.output_format != "npz"
    runner_flags.write_shards(text_shards.Work(load, write), needs_index)
    return
  predictor = load()
  lines = _logged(text_lines.read_lines(FLAGS.input_file))
  start = time.monotonic()
  count = write(predictor, FLAGS.output_file, lines, source=FLAGS.input_file)
  seconds = time.monotonic() - start
  logging.info(
    "Wrote %s: %d texts, %.1f a second.", FLAGS.output_file, count, count / max(seconds, 1e-9)
  )


def _options(layers: Sequence[int]) -> dict[str, Any]:
  """Returns the model, and options of `Predictor.load`."""
  options = shared_flags.model_options(
    *("init_checkpoint", "engine", "precision", "batch_size", "batch_invariant", "dtype")
  )
  model = options.pop("init_checkpoint")
  options |= {"model": model, "layers": layers, "pooling": FLAGS.pooling}
  options["task"] = "vectors" if FLAGS.similarity else "features"
  if FLAGS.similarity and FLAGS.pooling == "none":
    options["pooling"] = None
  if load_export.is_export(model):
    runner_flags.check_engine()
    return options
  settings = resolution.resolve(flag_groups.read(ExtractionSettings))
  names = ("bert_config_file", "vocab_file", "do_lower_case")
  options |= {name: getattr(settings, name) for name in names}
  return options | {"model": settings.init_checkpoint}


def check_flags() -> list[int]:
  """Checks the flags, before anything is loaded; returns the numbers of `--layers`.

  Raises:
    UsageError: a flag is missing or has an invalid value.
    OSError: `--output_file` cannot be written.
  """
  # A released model brings its config and vocabulary, hence the second check in `main`.
  if not FLAGS.init_checkpoint or None in (FLAGS.input_file, FLAGS.output_file):
    command_line.check_required()
  if FLAGS.use_tpu:
    raise command_line.UsageError(
      "--use_tpu: features are extracted on this machine's GPU or CPU. Omit it."
    )
  command_line.check_at_least(1, "batch_size")
  command_line.check_at_least(3, "max_seq_length")
  if FLAGS.output_file == "-" and FLAGS.output_format != "jsonl":
    raise command_line.UsageError(f"--output_format={FLAGS.output_format} needs an --output_file.")
  is_local = FLAGS.output_format != "jsonl" and not runner_flags.is_beam()
  if is_local and filesystem.is_remote(FLAGS.output_file):
    raise command_line.UsageError(
      f"--output_format={FLAGS.output_format} is written to a local disk only; copy it from there."
    )
  if FLAGS.similarity and FLAGS.output_format != "jsonl":
    raise command_line.UsageError("--similarity writes JSON lines only.")
  runner_flags.check("num_shards")
  if runner_flags.is_beam():
    runner_flags.check_files()
  else:
    text_lines.check_output_file(FLAGS.output_file, input_file=FLAGS.input_file)
  return parse_layers(FLAGS.layers)


def parse_layers(text: str) -> list[int]:
  """Reads the numbers of `--layers`; a UsageError for anything else.

  Example:
    >>> parse_layers("-1,-2")
    [-1, -2]
  """
  try:
    return [int(number) for number in text.split(",")]
  except ValueError:
    raise command_line.UsageError(
      f"--layers={text}: whole numbers with commas between them are needed, such as -1,-2."
    ) from None


def _logged(lines: Iterable[str]) -> Iterator[str]:
  """Yields the lines; logs every 10,000th."""
  for number, line in enumerate(lines):
    if number % 10000 == 0:
      logging.info("Reading text %d", number)
    yield line


if __name__ == "__main__":
  command_line.run(main, define_flags)
