"""The original's `run_classifier` as a library: examples, features, input and model functions.

  examples = run_classifier.MrpcProcessor().get_train_examples(data_dir)
  features = run_classifier.convert_examples_to_features(examples, ["0", "1"], 128, tokenizer)
  input_fn = run_classifier.input_fn_builder(features, 128, is_training=True, drop_remainder=False)

Its flags are defined when a script imports it. It has no `main`: `run_classifier.py` is the script.
"""

import csv
import os
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags

from bert_tf1.contrib import tpu
from bert_tf1.estimator.specs import ModeKeys
from bert_tf1.library import modeling, optimization, tokenization
from bert_tf1.real import tf

FLAGS = flags.FLAGS
_DEFAULTS = {
  "data_dir": None,
  "bert_config_file": None,
  "task_name": None,
  "vocab_file": None,
  "output_dir": None,
  "init_checkpoint": None,
  "do_lower_case": True,
  "max_seq_length": 128,
  "do_train": False,
  "do_eval": False,
  "do_predict": False,
  "train_batch_size": 32,
  "eval_batch_size": 8,
  "predict_batch_size": 8,
  "learning_rate": 5e-5,
  "num_train_epochs": 3.0,
  "warmup_proportion": 0.1,
  "save_checkpoints_steps": 1000,
  "iterations_per_loop": 1000,
  "use_tpu": False,
  "tpu_name": None,
  "tpu_zone": None,
  "gcp_project": None,
  "master": None,
  "num_tpu_cores": 8,
}


def define_flags() -> None:
  """Defines the original's flags, which its importers read; a flag of the script's own stays."""
  kinds: dict[type, Callable[..., Any]] = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    type(None): flags.DEFINE_string,
  }
  for name, default in _DEFAULTS.items():
    if name not in FLAGS:
      define = kinds[type(default)]
      define(name, default, "See run_classifier.py.", flag_values=FLAGS, allow_override=True)


# ---------------------------------------------------------------------------------------------
# Examples.


class InputExample:
  """A text, or a pair of texts, with its label."""

  def __init__(self, guid: str, text_a: str, text_b: str | None = None, label: Any = None):
    self.guid = guid
    self.text_a = text_a
    self.text_b = text_b
    self.label = label


class PaddingInputExample:
  """Fills up the last batch where all batches must be of one size; metrics leave it out."""


class InputFeatures:
  """An example as the model reads it: three lists of `max_seq_length` numbers, and its label's."""

  def __init__(
    self,
    input_ids: list[int],
    input_mask: list[int],
    segment_ids: list[int],
    label_id: int,
    is_real_example: bool = True,
  ):
    self.input_ids = input_ids
    self.input_mask = input_mask
    self.segment_ids = segment_ids
    self.label_id = label_id
    self.is_real_example = is_real_example


class DataProcessor:
  """Reads one data set; subclass it for your own."""

  def get_train_examples(self, data_dir: str) -> list[InputExample]:
    """Returns the examples to train with."""
    raise NotImplementedError()

  def get_dev_examples(self, data_dir: str) -> list[InputExample]:
    """Returns the examples to evaluate with."""
    raise NotImplementedError()

  def get_test_examples(self, data_dir: str) -> list[InputExample]:
    """Returns the examples to predict."""
    raise NotImplementedError()

  def get_labels(self) -> list[str]:
    """Returns all labels, in the order of their ids."""
    raise NotImplementedError()

  @classmethod
  def _read_tsv(cls, input_file: str, quotechar: str | None = None) -> list[list[str]]:
    """Returns the cells of each line, the header's too."""
    with tf.gfile.Open(input_file, "r") as lines:
      return list(csv.reader(lines, delimiter="\t", quotechar=quotechar))


class XnliProcessor(DataProcessor):
  """XNLI in Chinese: premise and hypothesis."""

  def __init__(self):
    self.language = "zh"

  def get_train_examples(self, data_dir: str) -> list[InputExample]:
    """Reads `multinli/multinli.train.zh.tsv`."""
    file = os.path.join(data_dir, "multinli", f"multinli.train.{self.language}.tsv")
    names = {"contradictory": "contradiction"}
    return [
      InputExample(f"train-{i}", row[0], row[1], names.get(row[2], row[2]))
      for i, row in enumerate(self._read_tsv(file))
      if i > 0
    ]

  def get_dev_examples(self, data_dir: str) -> list[InputExample]:
    """Reads the lines of this language in `xnli.dev.tsv`."""
    return [
      InputExample(f"dev-{i}", row[6], row[7], row[1])
      for i, row in enumerate(self._read_tsv(os.path.join(data_dir, "xnli.dev.tsv")))
      if i > 0 and row[0] == self.language
    ]

  def get_labels(self) -> list[str]:
    """See the base class."""
    return ["contradiction", "entailment", "neutral"]


class _GlueProcessor(DataProcessor):
  """A data set of GLUE: `train.tsv`, `dev.tsv` and `test.tsv`."""

  dev_set = "dev"
  test_set = "test"

  def get_train_examples(self, data_dir: str) -> list[InputExample]:
    """Reads the file for training."""
    return self._examples(data_dir, "train", "train")

  def get_dev_examples(self, data_dir: str) -> list[InputExample]:
    """Reads the file for evaluation."""
    return self._examples(data_dir, self.dev_set, self.dev_set)

  def get_test_examples(self, data_dir: str) -> list[InputExample]:
    """Reads the file to predict; its examples get the first label."""
    return self._examples(data_dir, self.test_set, "test")

  def get_labels(self) -> list[str]:
    """See the base class."""
    return ["0", "1"]

  def _examples(self, data_dir, name, set_type) -> list[InputExample]:
    return self._create_examples(self._read_tsv(os.path.join(data_dir, f"{name}.tsv")), set_type)

  def _create_examples(self, lines: list[list[str]], set_type: str) -> list[InputExample]:
    raise NotImplementedError()


class MnliProcessor(_GlueProcessor):
  """MultiNLI: premise and hypothesis; evaluation on the matched genres."""

  dev_set = "dev_matched"
  test_set = "test_matched"

  def get_labels(self) -> list[str]:
    """See the base class."""
    return ["contradiction", "entailment", "neutral"]

  def _create_examples(self, lines, set_type) -> list[InputExample]:
    return [
      InputExample(
        f"{set_type}-{row[0]}", row[8], row[9], "contradiction" if set_type == "test" else row[-1]
      )
      for row in lines[1:]
    ]


class MrpcProcessor(_GlueProcessor):
  """MRPC: whether two sentences say the same."""

  def _create_examples(self, lines, set_type) -> list[InputExample]:
    return [
      InputExample(f"{set_type}-{i}", row[3], row[4], "0" if set_type == "test" else row[0])
      for i, row in enumerate(lines)
      if i > 0
    ]


class ColaProcessor(_GlueProcessor):
  """CoLA: whether a sentence is grammatical. Only the file to predict has a header."""

  def _create_examples(self, lines, set_type) -> list[InputExample]:
    if set_type == "test":
      return [InputExample(f"test-{i}", row[1], None, "0") for i, row in enumerate(lines) if i > 0]
    return [InputExample(f"{set_type}-{i}", row[3], None, row[1]) for i, row in enumerate(lines)]


# ---------------------------------------------------------------------------------------------
# Features.


def convert_single_example(
  ex_index: int,
  example: InputExample | PaddingInputExample,
  label_list: Sequence[Any],
  max_seq_length: int,
  tokenizer: tokenization.FullTokenizer,
) -> InputFeatures:
  """Makes `[CLS] text_a [SEP]`, then `text_b [SEP]` if any, of an example; logs the first five.

  Raises:
    KeyError: the example's label is not in `label_list`, or a token not in the vocabulary.
  """
  if isinstance(example, PaddingInputExample):
    zeros = [0] * max_seq_length
    return InputFeatures(zeros, list(zeros), list(zeros), 0, is_real_example=False)

  first = tokenizer.tokenize(example.text_a)
  second = tokenizer.tokenize(example.text_b) if example.text_b else []
  if second:
    _truncate_seq_pair(first, second, max_seq_length - 3)  # [CLS], [SEP], [SEP]
  else:
    first = first[: max_seq_length - 2]  # [CLS], [SEP]
  first = ["[CLS]", *first, "[SEP]"]
  second = [*second, "[SEP]"] if second else []  # It may have lost all tokens.

  tokens = first + second
  padding = [0] * (max_seq_length - len(tokens))
  input_ids = list(tokenizer.convert_tokens_to_ids(tokens)) + padding
  input_mask = [1] * len(tokens) + padding
  segment_ids = [0] * len(first) + [1] * len(second) + padding
  try:
    label_id = {label: i for i, label in enumerate(label_list)}[example.label]
  except KeyError:
    raise KeyError(
      f"label {example.label!r} of example {example.guid} is not one of {list(label_list)}"
    ) from None

  if ex_index < 5:
    tf.logging.info("*** Example ***")
    tf.logging.info("guid: %s", example.guid)
    tf.logging.info("tokens: %s", " ".join(map(tokenization.printable_text, tokens)))
    tf.logging.info("input_ids: %s", " ".join(map(str, input_ids)))
    tf.logging.info("input_mask: %s", " ".join(map(str, input_mask)))
    tf.logging.info("segment_ids: %s", " ".join(map(str, segment_ids)))
    tf.logging.info("label: %s (id = %d)", example.label, label_id)
  return InputFeatures(input_ids, input_mask, segment_ids, label_id)


def _truncate_seq_pair(tokens_a: list[str], tokens_b: list[str], max_length: int) -> None:
  """Takes the last token off the longer list, the second of two equal ones, until both fit."""
  while len(tokens_a) + len(tokens_b) > max_length:
    (tokens_a if len(tokens_a) > len(tokens_b) else tokens_b).pop()


def convert_examples_to_features(
  examples: Sequence[InputExample | PaddingInputExample],
  label_list: Sequence[Any],
  max_seq_length: int,
  tokenizer: tokenization.FullTokenizer,
) -> list[InputFeatures]:
  """`convert_single_example` of each of `examples`, for `input_fn_builder`."""
  features = []
  for index, example in enumerate(examples):
    if index % 10000 == 0:
      tf.logging.info("Writing example %d of %d", index, len(examples))
    features.append(convert_single_example(index, example, label_list, max_seq_length, tokenizer))
  return features


def file_based_convert_examples_to_features(
  examples: Sequence[InputExample | PaddingInputExample],
  label_list: Sequence[Any],
  max_seq_length: int,
  tokenizer: tokenization.FullTokenizer,
  output_file: str,
) -> None:
  """Writes `convert_single_example` of each of `examples` to a TFRecord file."""
  with tf.python_io.TFRecordWriter(output_file) as writer:
    for index, example in enumerate(examples):
      if index % 10000 == 0:
        tf.logging.info("Writing example %d of %d", index, len(examples))
      feature = convert_single_example(index, example, label_list, max_seq_length, tokenizer)
      lists = {
        "input_ids": feature.input_ids,
        "input_mask": feature.input_mask,
        "segment_ids": feature.segment_ids,
        "label_ids": [feature.label_id],
        "is_real_example": [int(feature.is_real_example)],
      }
      record = tf.train.Example()
      for name, values in lists.items():
        record.features.feature[name].int64_list.value.extend(values)
      writer.write(record.SerializeToString())


# ---------------------------------------------------------------------------------------------
# Input functions. Each takes the Estimator's `params`, of which it reads `batch_size`.


def _batches(dataset, is_training: bool, batch_size: int, drop_remainder: bool):
  """Batches of a dataset; for training, shuffled without end."""
  if is_training:
    dataset = dataset.repeat().shuffle(buffer_size=100)
  return dataset.batch(batch_size, drop_remainder=drop_remainder)


def file_based_input_fn_builder(
  input_file: str, seq_length: int, is_training: bool, drop_remainder: bool
) -> Callable:
  """Returns an `input_fn` that reads what `file_based_convert_examples_to_features` wrote.

  Its features are int32: `input_ids`, `input_mask`, `segment_ids` `[B, S]`, `label_ids`,
  `is_real_example` `[B]`.
  """
  columns = {
    "input_ids": tf.FixedLenFeature([seq_length], tf.int64),
    "input_mask": tf.FixedLenFeature([seq_length], tf.int64),
    "segment_ids": tf.FixedLenFeature([seq_length], tf.int64),
    "label_ids": tf.FixedLenFeature([], tf.int64),
    "is_real_example": tf.FixedLenFeature([], tf.int64),
  }

  def decode(records):
    batch = tf.io.parse_example(records, columns)  # int64 [B, S] or [B]
    return {name: tf.cast(tensor, tf.int32) for name, tensor in batch.items()}

  def input_fn(params):
    records = tf.data.TFRecordDataset(input_file)
    batches = _batches(records, is_training, params["batch_size"], drop_remainder)
    return batches.map(decode, num_parallel_calls=tf.data.AUTOTUNE)

  return input_fn


def input_fn_builder(
  features: Sequence[InputFeatures], seq_length: int, is_training: bool, drop_remainder: bool
) -> Callable:
  """Returns an `input_fn` that holds its features in the graph: for small data sets.

  They are int32: `input_ids`, `input_mask`, `segment_ids` `[B, S]`, `label_ids` `[B]`.
  """

  def input_fn(params):
    size = len(features)

    def constant(name, shape):
      return tf.constant([getattr(f, name) for f in features], tf.int32, shape)

    examples = tf.data.Dataset.from_tensor_slices(
      {
        "input_ids": constant("input_ids", [size, seq_length]),
        "input_mask": constant("input_mask", [size, seq_length]),
        "segment_ids": constant("segment_ids", [size, seq_length]),
        "label_ids": constant("label_id", [size]),
      }
    )
    return _batches(examples, is_training, params["batch_size"], drop_remainder)

  return input_fn


# ---------------------------------------------------------------------------------------------
# The model.


def create_model(
  bert_config: modeling.BertConfig,
  is_training: bool,
  input_ids: tf.Tensor,
  input_mask: tf.Tensor,
  segment_ids: tf.Tensor,
  labels: tf.Tensor,
  num_labels: int,
  use_one_hot_embeddings: bool,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor, tf.Tensor]:
  """BERT with a classifier on its pooled output.

  Args:
    bert_config: sizes of the model.
    is_training: apply dropout, 0.1 before the classifier.
    input_ids: int32 `[B, S]`.
    input_mask: int32 `[B, S]`.
    segment_ids: int32 `[B, S]`.
    labels: int32 `[B]`.
    num_labels: number of classes, C.
    use_one_hot_embeddings: see `modeling.BertModel`.

  Returns:
    float32: loss `[]`, loss of each example `[B]`, logits `[B, C]`, probabilities `[B, C]`.
  """
  model = modeling.BertModel(
    bert_config, is_training, input_ids, input_mask, segment_ids, use_one_hot_embeddings
  )
  pooled = model.get_pooled_output()  # [B, D]
  weights = tf.get_variable(  # [C, D]
    "output_weights",
    [num_labels, pooled.shape.as_list()[-1]],
    initializer=modeling.create_initializer(0.02),
  )
  bias = tf.get_variable("output_bias", [num_labels], initializer=tf.zeros_initializer())  # [C]
  with tf.variable_scope("loss"):
    if is_training:
      pooled = tf.nn.dropout(pooled, keep_prob=0.9)  # [B, D]
    logits = tf.nn.bias_add(tf.matmul(pooled, weights, transpose_b=True), bias)  # [B, C]
    probabilities = tf.nn.softmax(logits)  # [B, C]
    one_hot_labels = tf.one_hot(labels, num_labels, dtype=tf.float32)  # [B, C]
    example_loss = -tf.reduce_sum(one_hot_labels * tf.nn.log_softmax(logits), axis=-1)  # [B]
    return tf.reduce_mean(example_loss), example_loss, logits, probabilities


def model_fn_builder(
  bert_config: modeling.BertConfig,
  num_labels: int,
  init_checkpoint: str | None,
  learning_rate: float,
  num_train_steps: int | None,
  num_warmup_steps: int | None,
  use_tpu: bool,
  use_one_hot_embeddings: bool,
) -> Callable:
  """Returns a `model_fn` for `TPUEstimator`: `create_model`, trained, evaluated or predicting.

  Variables that `init_checkpoint` has start with its values. Evaluation gives `eval_accuracy` and
  `eval_loss`, both without padding examples; prediction gives `probabilities`.
  """

  def model_fn(features, labels, mode, params):
    tf.logging.info("*** Features ***")
    for name in sorted(features):
      tf.logging.info("  name = %s, shape = %s", name, features[name].shape)
    label_ids = features["label_ids"]  # [B]
    weights = tf.ones(tf.shape(label_ids), tf.float32)  # [B]
    if "is_real_example" in features:
      weights = tf.cast(features["is_real_example"], tf.float32)  # [B]
    loss, example_loss, logits, probabilities = create_model(
      bert_config,
      mode == ModeKeys.TRAIN,
      features["input_ids"],
      features["input_mask"],
      features["segment_ids"],
      label_ids,
      num_labels,
      use_one_hot_embeddings,
    )
    scaffold_fn = _start_from(init_checkpoint, use_tpu)

    if mode == ModeKeys.TRAIN:
      train_op = optimization.create_optimizer(
        loss, learning_rate, num_train_steps, num_warmup_steps, use_tpu
      )
      return tpu.TPUEstimatorSpec(mode, loss=loss, train_op=train_op, scaffold_fn=scaffold_fn)
    if mode == ModeKeys.EVAL:
      metrics = (_metrics, [example_loss, label_ids, logits, weights])
      return tpu.TPUEstimatorSpec(mode, loss=loss, eval_metrics=metrics, scaffold_fn=scaffold_fn)
    predictions = {"probabilities": probabilities}
    return tpu.TPUEstimatorSpec(mode, predictions=predictions, scaffold_fn=scaffold_fn)

  return model_fn


def _start_from(init_checkpoint: str | None, use_tpu: bool) -> Callable | None:
  """Gives variables a checkpoint's values, and logs them all; for TPUs, returns a `scaffold_fn`."""
  variables = tf.trainable_variables()
  initialized: dict[str, int] = {}
  scaffold_fn = None
  if init_checkpoint:
    assignment, initialized = modeling.get_assignment_map_from_checkpoint(
      variables, init_checkpoint
    )

    def tpu_scaffold():
      tf.train.init_from_checkpoint(init_checkpoint, assignment)
      return tf.train.Scaffold()

    if use_tpu:
      scaffold_fn = tpu_scaffold
    else:
      tf.train.init_from_checkpoint(init_checkpoint, assignment)
  tf.logging.info("**** Trainable Variables ****")
  for variable in variables:
    note = ", *INIT_FROM_CKPT*" if variable.name in initialized else ""
    tf.logging.info("  name = %s, shape = %s%s", variable.name, variable.shape, note)
  return scaffold_fn


def _metrics(per_example_loss, label_ids, logits, is_real_example):
  predictions = tf.argmax(logits, axis=-1, output_type=tf.int32)  # [B]
  return {
    "eval_accuracy": tf.metrics.accuracy(label_ids, predictions, weights=is_real_example),
    "eval_loss": tf.metrics.mean(per_example_loss, weights=is_real_example),
  }
