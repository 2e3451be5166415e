"""Fine-tunes BERT to classify sentences or pairs of sentences: GLUE, XNLI, IMDB, or your own data.

The command of 2018 works as it was:

  python run_classifier.py --task_name=MRPC --do_train=true --do_eval=true \\
    --data_dir=$GLUE_DIR/MRPC --vocab_file=$BERT_BASE_DIR/vocab.txt \\
    --bert_config_file=$BERT_BASE_DIR/bert_config.json \\
    --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt --max_seq_length=128 \\
    --train_batch_size=32 --learning_rate=2e-5 --num_train_epochs=3.0 \\
    --output_dir=/tmp/mrpc_output/

Without data and model it shows what it does on a small sample:

  python run_classifier.py --task_name=MRPC

With nothing at hand, it fetches both:

  python run_classifier.py --task_name=MRPC --do_train --do_eval --data_dir=download \\
    --init_checkpoint=uncased_L-12_H-768_A-12 --output_dir=/tmp/mrpc_output
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import functools
import os

from absl import logging

from bert.fine_tuning import engine
from bert.fine_tuning.model_fn import model_fn_of
from bert.fine_tuning.task import DataSet, Task
from bert.io import filesystem, record_files
from bert.model.task_head import SEQUENCES, Batch, model_options
from bert.model.task_heads import SequenceHead
from bert.scripts import (
  command_line,
  demonstration,
  flag_groups,
  result_files,
)
from bert.scripts.classifier_settings import ClassifierSettings, processor_of_folder
from bert.tasks import constant_answers, label_counts, sequence_lengths
from bert.tasks import windows as long_text
from bert.tasks.classification import (
  InputExample,
  InputFeatures,
  PaddingInputExample,
  convert_examples_to_features,
  convert_single_example,
  label_id,
  texts_of,
)
from bert.tasks.glue import PROCESSORS, ColaProcessor, MnliProcessor, MrpcProcessor, XnliProcessor
from bert.tasks.processors import DataProcessor, metric_names, task_facts
from bert.training.features_in_memory import input_fn_builder

__all__ = [
  "PROCESSORS",
  "ColaProcessor",
  "DataProcessor",
  "InputExample",
  "InputFeatures",
  "MnliProcessor",
  "MrpcProcessor",
  "PaddingInputExample",
  "XnliProcessor",
  "convert_examples_to_features",
  "convert_single_example",
  "create_model",
  "file_based_convert_examples_to_features",
  "file_based_input_fn_builder",
  "input_fn_builder",
  "main",
  "model_fn_builder",
]


define_flags = functools.partial(flag_groups.define, ClassifierSettings)


def __getattr__(name: str):
  """`FLAGS` for scripts of 2018 that import this one: with its flags, as importing it left them."""
  if name != "FLAGS":
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  return flag_groups.with_flags(define_flags)


# ---------------------------------------------------------------------------------------------
# Examples -> records -> batches.


def file_based_convert_examples_to_features(
  examples,
  label_list,
  max_seq_length,
  tokenizer,
  output_file,
  problem_type="classification",
  windows=None,
  shown_examples=5,
) -> None:
  """Writes examples as a TFRecord file under the original's feature names.

  Args:
    examples: list of `InputExample` or `PaddingInputExample`.
    label_list: labels in the order of the model's outputs.
    max_seq_length: length of `input_ids`, `input_mask` and `segment_ids`, all int64.
    tokenizer: a `tokenization.FullTokenizer`.
    output_file: the file; it appears when it is complete.
    problem_type: decides `label_ids`: int64 `[]`, float32 `[]` for regression, int64 `[C]` for
      multi_label.
    windows: `windows.WindowOptions`, to write `input_ids` int64 `[max_windows * max_seq_length]`
      and `num_windows`; by default long texts are truncated.
    shown_examples: how many to log; the rest of the first five are debug messages.

  Raises:
    DataError: an example's label is unknown.
    OSError: the file cannot be written.
  """
  shown = shown_examples
  records = _records(examples, label_list, max_seq_length, tokenizer, problem_type, windows, shown)
  record_files.write_records(output_file, records)


def _records(examples, label_list, max_seq_length, tokenizer, problem_type, windows, shown):
  """The records of examples, one by one."""
  reader = long_text.WindowReader(tokenizer, windows) if windows else None
  splitter = reader or tokenizer
  lengths = sequence_lengths.SequenceLengths()
  for index, example in enumerate(examples):
    if index % 10000 == 0:
      logging.info("Writing example %d of %d", index, len(examples))
    feature = convert_single_example(
      index, example, label_list, max_seq_length, splitter, problem_type, shown, lengths
    )
    record = {
      **{name: getattr(feature, name) for name in SEQUENCES},
      "label_ids": feature.label_id,
      "is_real_example": int(feature.is_real_example),
    }
    yield {**record, **reader.windows_of(example, feature)} if reader else record
  if reader:
    reader.log_counts()
  else:
    lengths.log(max_seq_length, "--long_text=windows reads long texts whole.")


def file_based_input_fn_builder(
  input_file,
  seq_length,
  is_training,
  drop_remainder,
  *,
  num_labels=2,
  problem_type="classification",
  pad_to_max_length=False,
  windows=None,
  **reading,
):
  """An input_fn over a file of `file_based_convert_examples_to_features`.

  Args:
    input_file: the TFRecord file.
    seq_length: `max_seq_length` it was written with.
    is_training: repeat and shuffle.
    drop_remainder: leave out a last batch that is short.
    num_labels: C, needed for multi_label.
    problem_type: as it was written.
    pad_to_max_length: keep batches at `seq_length` instead of their longest example's length.
    windows: as it was written.
    **reading: further keywords of `input_pipeline.record_input_fn`.

  Returns:
    `input_fn(params)` -> `tf.data.Dataset` of name -> int32 or float32 `[B, ...]`.
  """
  import tensorflow as tf

  from bert.training import input_pipeline

  label = {
    "regression": tf.io.FixedLenFeature([], tf.float32),
    "multi_label": tf.io.FixedLenFeature([num_labels], tf.int64),
  }.get(problem_type)
  features = input_pipeline.classifier_features(seq_length, label)
  if windows:
    features = long_text.record_features(features, windows)
  return input_pipeline.record_input_fn(
    input_file,
    features,
    is_training,
    drop_remainder,
    pad_to_max_length=pad_to_max_length,
    transform=long_text.window_transform(trim=not pad_to_max_length) if windows else None,
    **reading,
  )


# ---------------------------------------------------------------------------------------------
# The model.


def create_model(
  bert_config,
  is_training,
  input_ids,
  input_mask,
  segment_ids,
  labels,
  num_labels,
  use_one_hot_embeddings,
  *,
  problem_type="classification",
  dtype="float32",
  num_windows=None,
  window_pooling="mean",
  task_name=None,
):
  """BERT with a sequence head.

  Args:
    bert_config: a `modeling.BertConfig`.
    is_training: whether to drop out.
    input_ids, input_mask, segment_ids: int `[B, S]`.
    labels: see `heads.get_classifier_loss`.
    num_labels: C.
    use_one_hot_embeddings: look words up by a matrix product (for TPUs).
    problem_type: classification, regression or multi_label.
    dtype: of the matrix products.
    num_windows: int `[B]`, of documents read in windows; `input_ids` is then `[B, S, K]`.
    window_pooling: how their logits become one, see `long_documents.pool_logits`.
    task_name: part of the names of an ELECTRA head's variables.

  Returns:
    `(loss, per_example_loss, logits, probabilities)`: float32 `[]`, `[B]`, `[B, C]`, `[B, C]`.
  """
  head = SequenceHead(num_labels, problem_type, task_name, window_pooling)
  features = dict(zip(SEQUENCES, (input_ids, input_mask, segment_ids), strict=True))
  features["label_ids"] = labels
  features |= {} if num_windows is None else {"num_windows": num_windows}
  options = model_options(use_one_hot_embeddings, dtype)
  batch = Batch(bert_config, features, is_training, options)
  outputs = head.outputs(batch)
  loss, per_example_loss = head.loss(batch, outputs)
  probabilities = head.predictions(batch, outputs)["probabilities"]
  return loss, per_example_loss, outputs["logits"], probabilities


def model_fn_builder(
  bert_config,
  num_labels,
  init_checkpoint,
  learning_rate,
  num_train_steps,
  num_warmup_steps,
  use_tpu,
  use_one_hot_embeddings,
  *,
  problem_type="classification",
  metric_names=("accuracy",),
  label_list=None,
  optimizer_options=None,
  dtype="float32",
  window_pooling="mean",
  task_name=None,
  distillation=None,
):
  """Returns the `model_fn` of an `estimator.Estimator`.

  Args, beside those of `create_model`:
    init_checkpoint: where variables start, or None.
    learning_rate: peak rate.
    num_train_steps: steps of the whole run.
    num_warmup_steps: steps of warm-up.
    use_tpu: whether this runs on a TPU.
    metric_names: see `metrics.METRICS`.
    label_list: labels, to show a confusion matrix.
    optimizer_options: further keywords of `optimization.create_optimizer`.
    distillation: a `methods.Distillation`, which makes the loss of training; else the task does.
  """

  label_list = label_list or list(map(str, range(num_labels)))
  return model_fn_of(
    SequenceHead(num_labels, problem_type, task_name, window_pooling),
    bert_config,
    init_checkpoint,
    learning_rate,
    num_train_steps,
    num_warmup_steps,
    use_tpu,
    use_one_hot_embeddings,
    metric_fn=functools.partial(_metrics, metric_names, label_list, problem_type),
    optimizer_options=optimizer_options,
    dtype=dtype,
    distillation=distillation,
  )


def _metrics(
  metric_names, label_list, problem_type, *, losses, label_ids, outputs, is_real_example
):
  """Computes the figures of `metric_names`, and a confusion matrix of classes."""
  from bert.tasks import metrics

  results = metrics.compute_metrics(
    metric_names, label_ids, outputs, is_real_example, problem_type, losses
  )
  if problem_type == "classification":
    table = metrics.confusion_table(label_ids, outputs, is_real_example, label_list)
    results["confusion matrix"] = table
  return results


# ---------------------------------------------------------------------------------------------
# The task.


class Classification(Task):
  """One text or two, and a class, several classes or a number."""

  settings_class = ClassifierSettings
  name = "sentences"
  # A model of MNLI may predict AX, and other windows; to train on, all has to be the same.
  ignored_in_eval = ("task_name", "window_stride", "max_windows")
  task_flags = (
    *("task_name", "long_text", "window_pooling", "max_windows"),
    *("text_a_column", "text_b_column", "label_column", "id_column", "labels", "problem_type"),
    *("label_separator", "header", "skip_bad_rows", "xnli_language"),
  )
  result_keys = result_files.ORIGINAL_KEYS
  shuffles = False  # the order of the original
  reads_unlabelled = True

  @classmethod
  def resolve(cls, settings):
    """Downloads the public data where they are asked for."""
    if settings.data_dir != "download":
      return settings
    from bert.tasks import public_data  # which talks to the network

    folder = public_data.download_task_data(settings.task_name)
    return settings.replace(data_dir=folder)

  @classmethod
  def teacher_flags(cls, flags, facts):
    """Returns no labels of tasks that have their own."""
    found = super().teacher_flags({**flags, "task_name": facts.get("task_name")}, facts)
    is_own = facts.get("task_name") == "csv"
    if not is_own:
      found.pop("problem_type", None)
    if not is_own or facts.get("problem_type") == "regression":
      found.pop("labels", None)
    return found

  def __init__(self, settings, config=None, tokenizer=None):
    super().__init__(settings, config, tokenizer)
    found = processor_of_folder(settings, config, tokenizer)
    self.processor, self.labels = found
    # Processors written for the original know nothing of problem types and metrics.
    self.problem_type = getattr(self.processor, "problem_type", "classification")
    self.answer = "score" if self.problem_type == "regression" else "probabilities"
    self.headline = f"eval_{getattr(self.processor, 'headline_metric', 'accuracy')}"
    self.reported = tuple(f"eval_{name}" for name in metric_names(self.processor))
    self.windows = None  # unless long documents are read in several
    if settings.long_text == "windows":
      stride = (settings.max_seq_length - 2) // 2
      self.windows = long_text.WindowOptions(stride, settings.max_windows, settings.window_pooling)

  # -------------------------------------------------------------------------------------------
  # Texts.

  def read(self, split):
    """Reads texts; of MNLI's dev and test a matched and a mismatched set."""
    settings, processor = self.settings, self.processor
    examples = getattr(processor, f"get_{split}_examples")(settings.data_dir)
    self.texts_in = getattr(processor, "texts_in", {})
    if split == "train":
      return examples
    sets = [DataSet(split, examples)]
    mismatched = getattr(processor, f"get_{split}_mismatched_examples", None)
    exists = filesystem.is_file(os.path.join(settings.data_dir, f"{split}_mismatched.tsv"))
    if mismatched and exists and settings.task_name.lower() == "mnli":
      sets.append(DataSet(split, mismatched(settings.data_dir), "_mismatched"))
    return sets

  def check_data(self, sets):
    """Logs how often each label occurs."""
    self._sets = sets
    for split in ("train", "dev"):
      examples = sets[split][0].examples if split in sets else ()
      separator = self.settings.label_separator or ","
      label_counts.log_labels(examples, self.labels, split, self.problem_type, separator)

  def facts(self):
    """Returns the task, its labels, and how long texts are read."""
    facts = task_facts(self.settings.task_name, self.processor, self.labels)
    return {**facts, **long_text.facts(self.windows)}

  def sizes(self, data, num_records):
    """Returns the number of examples, in the words of 2018."""
    count = len(data)
    if data.is_training:
      return {"Num examples": count}
    return {"Num examples": f"{num_records} ({count} actual, {num_records - count} padding)"}

  def records(self, data, num_shown):
    """Converts texts, or their windows."""
    return _records(
      data.examples,
      self.labels,
      self.length,
      self.tokenizer,
      self.problem_type,
      self.windows,
      num_shown,
    )

  def padding_record(self, data):
    """Returns a record that is not real."""
    return next(iter(self.records(DataSet(data.split, [PaddingInputExample()]), 0)))

  def input_fn(self, path, data):
    """Reads batches."""
    return file_based_input_fn_builder(
      path,
      self.length,
      data.is_training,
      drop_remainder=data.is_training or self.settings.use_tpu,
      num_labels=len(self.labels),
      problem_type=self.problem_type,
      windows=self.windows,
      **self.settings.reading_options,
    )

  # -------------------------------------------------------------------------------------------
  # The head, and its results.

  def head(self):
    """Scores the labels of a text."""
    return SequenceHead(
      len(self.labels),
      self.problem_type,
      self.settings.task_name,
      self.settings.window_pooling,
    )

  def evaluate(self, **tensors):
    """Computes the task's metrics, a confusion matrix of classes, and the mean loss."""
    from bert.tasks import metrics

    results = _metrics(metric_names(self.processor), self.labels, self.problem_type, **tensors)
    names = ("is_real_example", "label_ids", "outputs")
    real = metrics.keep_real(*map(tensors.get, names))
    return constant_answers.with_failure(results, *real, self.labels, self.problem_type)

  def metrics(self, outputs, labels):
    """Computes the task's metrics of probabilities, or of scores."""
    from bert.tasks import metrics

    names = dict.fromkeys((self.headline.removeprefix("eval_"), *metric_names(self.processor)))
    return metrics.compute_metrics(
      list(names), labels, outputs, problem_type=self.problem_type, prefix=""
    )

  def label_ids(self, data):
    """Returns the numbers of the labels, or the scores."""
    return [label_id(each, self.labels, self.problem_type) for each in data.examples]

  def metric_names(self):
    """Returns the task's metrics, and the loss."""
    return [*(f"eval_{name}" for name in (*metric_names(self.processor), "loss")), "loss"]

  def write_predictions(self, data, predictions):
    """Writes predictions.tsv and the original's test_results.tsv."""
    outputs = [each["probabilities"] for each in predictions][: len(data)]
    result_files.write_predictions(
      self.settings.output_dir,
      data.suffix,
      [example.guid for example in data.examples],
      outputs,
      self.labels,
      self.problem_type,
      self.settings.label_separator or ",",
      texts_of(data.examples),
    )


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> int | None:
  """Trains, evaluates, predicts and exports as the flags say."""
  settings = flag_groups.read(ClassifierSettings)
  defaults = None
  if is_demo := demonstration.is_wanted(settings):
    defaults = demonstration.SETTINGS
    settings = flag_groups.read(ClassifierSettings, defaults)
    demonstration.say_what_this_is(settings.data_dir)
  code = engine.start(Classification, settings, defaults=defaults)
  if is_demo and code is None:
    demonstration.say_what_comes_next(settings.output_dir)
  return code


if __name__ == "__main__":
  command_line.run(main, define_flags)
