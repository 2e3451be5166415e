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

import os
import time

from absl import flags, logging

from bert.io import installation, record_files
from bert.scripts import (
  command_line,
  flag_groups,
  result_files,
  runner,
  shared_flags,
  window_settings,
)
from bert.tasks import windows as long_text
from bert.tasks.glue import (  # the original's users look for these here
  PROCESSORS,
  ColaProcessor,
  DataProcessor,
  InputExample,
  InputFeatures,
  MnliProcessor,
  MrpcProcessor,
  PaddingInputExample,
  XnliProcessor,
  convert_examples_to_features,
  convert_single_example,
  create_processor,
)
from bert.training import distribution

__all__ = [
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

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags; names, types and defaults of 2018 are unchanged."""
  with flag_groups.flag_group("Task and data"):
    flags.DEFINE_string("task_name", None, f"One of: {', '.join(PROCESSORS)}.")
    flags.DEFINE_string(
      "data_dir", None, "Folder with the task's files, or `download` to fetch the public ones."
    )
    flags.DEFINE_string("output_dir", None, "Folder for checkpoints and results.")
    flags.DEFINE_bool("do_train", False, "Whether to train.")
    flags.DEFINE_bool("do_eval", False, "Whether to evaluate on the dev set.")
    flags.DEFINE_bool("do_predict", False, "Whether to predict the test set.")
    flags.DEFINE_integer("eval_batch_size", 8, "Sequences in an evaluation batch.")
    flags.DEFINE_integer("predict_batch_size", 8, "Sequences in a prediction batch.")
    flags.DEFINE_bool("skip_bad_rows", None, "Leave malformed rows out and count them.")
  with flag_groups.flag_group("Your own data (--task_name=csv: train, dev, test .tsv .csv .jsonl)"):
    flags.DEFINE_string(
      "text_a_column", None, "Column of the text: name or number from 0. [text_a]"
    )
    flags.DEFINE_string("text_b_column", None, "Column of a second text. [text_b, if there is one]")
    flags.DEFINE_string("label_column", None, "Column of the label. [label]")
    flags.DEFINE_string("id_column", None, "Column that identifies a row. [id, if there is one]")
    flags.DEFINE_list("labels", None, "All labels in order. [those of the training file, sorted]")
    flags.DEFINE_enum(
      "problem_type",
      None,
      ["classification", "regression", "multi_label"],
      "What the label is: a class, a number, or several classes. [classification]",
    )
    flags.DEFINE_string("label_separator", None, "What joins the labels of a row. [,]")
    flags.DEFINE_bool("header", None, "Whether the first row names the columns. [true]")
  with flag_groups.flag_group("XNLI"):
    flags.DEFINE_string("xnli_language", None, "Language to train and evaluate in. [zh]")
    flags.DEFINE_string("xnli_train_language", None, "Language to train in, if another one.")
  runner.define_model_flags()
  shared_flags.define_long_text_flags()
  runner.define_training_flags()
  runner.define_packing_flag()
  runner.define_eval_in_training_flags()
  runner.define_export_flags()
  flag_groups.define_tpu_flags()
  flag_groups.mark_required(
    ["data_dir", "task_name", "vocab_file", "bert_config_file", "output_dir"]
  )


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
      and `num_windows`; by default long texts are cut.

  Raises:
    DataError: an example's label is unknown.
    OSError: the file cannot be written.
  """
  reader = long_text.WindowReader(tokenizer, windows) if windows else None

  def records():
    for index, example in enumerate(examples):
      if index % 10000 == 0:
        logging.info("Writing example %d of %d", index, len(examples))
      feature = convert_single_example(
        index, example, label_list, max_seq_length, reader or tokenizer, problem_type
      )
      record = {
        "input_ids": feature.input_ids,
        "input_mask": feature.input_mask,
        "segment_ids": feature.segment_ids,
        "label_ids": feature.label_id,
        "is_real_example": int(feature.is_real_example),
      }
      yield {**record, **reader.windows_of(example, feature)} if reader else record
    if reader:
      reader.log_counts()

  record_files.write_records(output_file, records())


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


def input_fn_builder(features, seq_length, is_training, drop_remainder):
  """An input_fn over `InputFeatures` in memory, as the original's notebooks use it.

  Args:
    features: list of `InputFeatures` of a classification task.
    seq_length: their `max_seq_length`.
    is_training: repeat and shuffle.
    drop_remainder: leave out a last batch that is short.

  Returns:
    `input_fn(params)` -> `tf.data.Dataset` of name -> int32 `[B, seq_length]` or `[B]`.
  """
  import tensorflow as tf

  from bert.training import input_pipeline

  columns = {
    name: tf.constant(
      [getattr(feature, name) for feature in features], tf.int32, [len(features), seq_length]
    )
    for name in ("input_ids", "input_mask", "segment_ids")
  }
  columns["label_ids"] = tf.constant([feature.label_id for feature in features], tf.int32)
  columns["is_real_example"] = tf.constant([int(f.is_real_example) for f in features], tf.int32)

  def input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(columns)
    if is_training:
      seed = params.get("seed", 12345)
      dataset = input_pipeline.shuffled(dataset.repeat(), 100, seed)
      dataset = dataset.skip(params.get("skip_examples", 0))
    return dataset.batch(params["batch_size"], drop_remainder=drop_remainder)

  return input_fn


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
  packing=None,
):
  """BERT with a sequence head.

  Args:
    bert_config: a `modeling.BertConfig`.
    is_training: whether to drop out.
    input_ids: int `[B, S]`.
    input_mask: int `[B, S]`.
    segment_ids: int `[B, S]`.
    labels: see `heads.get_classifier_loss`.
    num_labels: C.
    use_one_hot_embeddings: look words up by a matrix product (for TPUs).
    problem_type: classification, regression or multi_label.
    dtype: of the matrix products.
    num_windows: int `[B]`, of documents read through windows; `input_ids` is `[B, S, K]` then.
    window_pooling: how their logits become one, see `graph_windows.pool_logits`.
    packing: of several sequences in a row, see `sequence_packing.packing_of`; B counts sequences in
      what comes back, and rows in the inputs.

  Returns:
    `(loss, per_example_loss, logits, probabilities)`: float32 `[]`, `[B]`, `[B, C]`, `[B, C]`.
  """
  import tensorflow as tf

  from bert import modeling
  from bert.exporting import graph_windows
  from bert.model import heads

  inputs = input_ids, input_mask, segment_ids
  if num_windows is not None:
    inputs, documents = graph_windows.split_batch(
      *inputs, num_windows, keep_all=use_one_hot_embeddings
    )
  model = modeling.BertModel(
    bert_config,
    is_training,
    *inputs,
    use_one_hot_embeddings=use_one_hot_embeddings,
    dtype=tf.as_dtype(dtype),
    # The head reads one vector for each sequence: nothing else needs to be computed. TPUs compile
    # for fixed shapes, which skipping padding does not have.
    skip_padding=not use_one_hot_embeddings,
    only_pooled_output=not packing,
    **(packing or {}),
  )
  logits = heads.get_classifier_logits(model.get_pooled_output(), num_labels, is_training)
  if num_windows is not None:
    logits = graph_windows.pool_logits(logits, documents, tf.shape(num_windows)[0], window_pooling)
  loss, per_example_loss, probabilities = heads.get_classifier_loss(logits, labels, problem_type)
  return loss, per_example_loss, logits, probabilities


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
):
  """Returns the `model_fn` of an `estimator.Estimator`; arguments as of `create_model`.

  Args:
    bert_config: a `modeling.BertConfig`.
    num_labels: C.
    init_checkpoint: where variables start, or None.
    learning_rate: peak rate.
    num_train_steps: steps of the whole run.
    num_warmup_steps: steps of warm-up.
    use_tpu: whether this runs on a TPU.
    use_one_hot_embeddings: look words up by a matrix product.
    problem_type: classification, regression or multi_label.
    metric_names: see `metrics.METRICS`.
    label_list: labels, to show a confusion matrix.
    optimizer_options: further keywords of `optimization.create_optimizer`.
    dtype: of the matrix products.
    window_pooling: see `create_model`; the features tell whether documents come in windows.
  """

  def model_fn(features, labels, mode, params):
    from bert.optimization import create_optimizer
    from bert.training import sequence_packing
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels, params  # labels travel in features
    loss, per_example_loss, logits, probabilities = create_model(
      bert_config,
      mode == ModeKeys.TRAIN,
      features["input_ids"],
      features["input_mask"],
      features["segment_ids"],
      features["label_ids"],
      num_labels,
      use_one_hot_embeddings,
      problem_type=problem_type,
      dtype=dtype,
      num_windows=features.get("num_windows"),
      window_pooling=window_pooling,
      packing=sequence_packing.packing_of(features),
    )
    spec = EstimatorSpec(mode=mode, loss=loss, init_checkpoint=init_checkpoint)
    if mode == ModeKeys.TRAIN:
      spec.train_op = create_optimizer(
        loss,
        learning_rate,
        num_train_steps,
        num_warmup_steps,
        use_tpu,
        **(optimizer_options or {}),
      )
    elif mode == ModeKeys.EVAL:
      tensors = {
        "per_example_loss": per_example_loss,
        "label_ids": features["label_ids"],
        "outputs": probabilities if problem_type == "multi_label" else logits,
        "is_real_example": features["is_real_example"],
      }
      spec.eval_metrics = (metric_fn, tensors)
    else:
      spec.predictions = {"probabilities": probabilities}
    return spec

  def metric_fn(per_example_loss, label_ids, outputs, is_real_example):
    from bert.tasks import metrics

    results = metrics.compute_metrics(
      metric_names, label_ids, outputs, is_real_example, problem_type, per_example_loss
    )
    if problem_type == "classification":
      label_ids, outputs = metrics.keep_real(is_real_example, label_ids, outputs)
      predictions = metrics.predictions_of(outputs)
      matrix = metrics.confusion_matrix(label_ids, predictions, num_labels)
      names = label_list or [str(i) for i in range(num_labels)]
      results["confusion matrix"] = metrics.ConfusionTable(matrix, names)
    return results

  return model_fn


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> None:
  """Trains, evaluates, predicts and exports as the flags say."""
  is_sample = use_samples_if_nothing_is_given()
  check_flags()
  runner.resolve_model_files()
  command_line.check_required()
  command_line.explain_ignored_flags()
  if FLAGS.data_dir == "download":
    from bert.io import download_cache

    FLAGS.data_dir = download_cache.download_task_data(FLAGS.task_name)
  processor = processor_from_flags()
  bert_config, tokenizer = runner.load_config_and_tokenizer()
  with runner.held_output_dir():
    Classification(processor, bert_config, tokenizer).run()
  if is_sample:
    say_what_comes_next()


def check_flags() -> None:
  """Checks what flags alone tell, before gigabytes are fetched for a run that cannot start.

  Raises:
    UsageError: a flag is missing or has a value that it cannot have.
    ValueError: nothing is to be done.
  """
  # A released model brings its config and vocabulary, hence the second check in `main`.
  if not FLAGS.init_checkpoint or None in (FLAGS.data_dir, FLAGS.task_name, FLAGS.output_dir):
    command_line.check_required()
  if not (FLAGS.do_train or FLAGS.do_eval or FLAGS.do_predict or FLAGS.do_export):
    raise ValueError("At least one of `do_train`, `do_eval` or `do_predict' must be True.")
  runner.check_training_flags()
  window_settings.check_window_settings(FLAGS)


def processor_from_flags():
  """The processor of `--task_name`, with the options that flags give it."""
  options = {
    "text_a_column": FLAGS.text_a_column,
    "text_b_column": FLAGS.text_b_column,
    "label_column": FLAGS.label_column,
    "id_column": FLAGS.id_column,
    "labels": FLAGS.labels,
    "problem_type": FLAGS.problem_type,
    "label_separator": FLAGS.label_separator,
    "header": FLAGS.header,
    "language": FLAGS.xnli_language,
    "train_language": FLAGS.xnli_train_language,
    "skip_bad_rows": FLAGS.skip_bad_rows,
  }
  if FLAGS.task_name.lower() == "csv":
    options["data_dir"] = FLAGS.data_dir
    if not FLAGS.do_train:  # the labels of the run that trained, which may lie elsewhere by now
      options["labels"] = (
        FLAGS.labels
        or result_files.read_label_map(FLAGS.output_dir)
        or result_files.read_label_map(runner.folder_of_init_checkpoint())
      )
  return create_processor(FLAGS.task_name, **options)


class Classification:
  """One run: a task, a model, and the folder of its results."""

  def __init__(self, processor, bert_config, tokenizer):
    self.processor = processor
    self.bert_config = bert_config
    self.tokenizer = tokenizer
    self.labels = processor.get_labels()
    # Processors written for the original know nothing of problem types and metrics.
    self.problem_type = getattr(processor, "problem_type", "classification")
    self.metric_names = self._metric_names()
    self.windows = window_settings.window_options(FLAGS)

  def run(self) -> None:
    """Trains, evaluates, predicts, exports."""
    train_examples, num_train_steps = self._plan_training()
    # Read before training: a bad row of the dev set is told now and not in three hours.
    dev_sets = list(self._sets("dev")) if FLAGS.do_eval or FLAGS.eval_every_steps else []
    test_sets = list(self._sets("test")) if FLAGS.do_predict else []
    estimator = self._create_estimator(num_train_steps)
    # A model of MNLI may predict AX, and other windows; to train on, all has to be the same.
    may_differ = () if FLAGS.do_train else ("task_name", "window_stride", "max_windows")
    runner.check_same_model(estimator.config.fingerprint, may_differ)
    result_files.write_label_map(FLAGS.output_dir, self.labels)
    if FLAGS.do_train:
      self._train(estimator, train_examples, num_train_steps, dev_sets)
    checkpoint_path = runner.best_checkpoint()
    if FLAGS.do_eval:
      for suffix, examples in dev_sets:
        self._evaluate(estimator, examples, suffix, checkpoint_path)
    for suffix, examples in test_sets:
      self._predict(estimator, examples, suffix, checkpoint_path)
    if FLAGS.do_export:
      sets = [train_examples or [], *(examples for _, examples in dev_sets + test_sets)]
      distribution.on_chief(self._export, checkpoint_path, sets)
    result_files.draw_plots()

  def _metric_names(self):
    names = list(getattr(self.processor, "metrics", ("accuracy",)))
    if self.problem_type == "classification":
      names += ["accuracy", "precision", "recall"]
    return list(dict.fromkeys(names))

  def _plan_training(self):
    if not FLAGS.do_train:
      return None, 1
    examples = self.processor.get_train_examples(FLAGS.data_dir)
    return examples, runner.num_train_steps(len(examples))

  def _create_estimator(self, num_train_steps):
    self.num_warmup_steps = int(num_train_steps * FLAGS.warmup_proportion)
    model_fn = model_fn_builder(
      bert_config=self.bert_config,
      num_labels=len(self.labels),
      init_checkpoint=FLAGS.init_checkpoint,
      learning_rate=FLAGS.learning_rate,
      num_train_steps=num_train_steps,
      num_warmup_steps=self.num_warmup_steps,
      use_tpu=FLAGS.use_tpu,
      use_one_hot_embeddings=FLAGS.use_tpu,
      problem_type=self.problem_type,
      metric_names=self.metric_names,
      label_list=self.labels,
      optimizer_options=runner.optimizer_options(),
      dtype=FLAGS.dtype,
      window_pooling=FLAGS.window_pooling,
    )
    fingerprint = runner.model_fingerprint(
      self.bert_config,
      self.tokenizer,
      task_name=FLAGS.task_name.lower(),
      problem_type=self.problem_type,
      labels=self.labels,
      **long_text.facts(self.windows),
    )
    informative = [
      "train_batch_size",
      "learning_rate",
      "num_train_epochs",
      "warmup_proportion",
      "max_seq_length",
      "dtype",
      "group_by_length",
      "pack_sequences",
    ]
    return runner.create_estimator(model_fn, fingerprint, informative)

  def _input_fn(self, examples, name, is_training=False):
    """Writes the examples as `OUTPUT_DIR/<name>.tf_record` and reads them from there."""
    path = os.path.join(FLAGS.output_dir, f"{name}.tf_record")
    distribution.on_chief(
      file_based_convert_examples_to_features,
      examples,
      self.labels,
      FLAGS.max_seq_length,
      self.tokenizer,
      path,
      self.problem_type,
      self.windows,
    )
    return file_based_input_fn_builder(
      path,
      FLAGS.max_seq_length,
      is_training,
      drop_remainder=is_training or FLAGS.use_tpu,
      num_labels=len(self.labels),
      problem_type=self.problem_type,
      windows=self.windows,
      pack_sequences=FLAGS.pack_sequences,
      **runner.reading_options(),
    )

  def _train(self, estimator, examples, num_train_steps, dev_sets):
    input_fn = self._input_fn(examples, "train", is_training=True)
    eval_spec = self._eval_spec(dev_sets)
    logging.info("***** Running training *****")
    logging.info("  Num examples = %d", len(examples))
    logging.info("  Batch size = %d", FLAGS.train_batch_size)
    logging.info("  Num steps = %d", num_train_steps)
    logging.info("  Num warm-up steps = %d", self.num_warmup_steps)
    start = time.monotonic()
    estimator.train(input_fn=input_fn, max_steps=num_train_steps, eval_spec=eval_spec)
    logging.info("Training took %.1f s.", time.monotonic() - start)

  def _eval_spec(self, dev_sets):
    if not FLAGS.eval_every_steps:
      return None
    _, examples = dev_sets[0]
    input_fn = self._input_fn(self._padded(examples, FLAGS.eval_batch_size), "eval")
    headline = getattr(self.processor, "headline_metric", "accuracy")
    return runner.eval_spec(input_fn, f"eval_{headline}")

  def _sets(self, split):
    """`(suffix of result files, examples)`: one set, or matched and mismatched ones for MNLI."""
    yield "", getattr(self.processor, f"get_{split}_examples")(FLAGS.data_dir)
    mismatched = getattr(self.processor, f"get_{split}_mismatched_examples", None)
    is_there = os.path.isfile(os.path.join(FLAGS.data_dir, f"{split}_mismatched.tsv"))
    if mismatched and is_there and FLAGS.task_name.lower() == "mnli":
      yield "_mismatched", mismatched(FLAGS.data_dir)

  def _padded(self, examples, batch_size):
    """On a TPU every batch has to be full: examples without weight fill the last one."""
    missing = -len(examples) % batch_size if FLAGS.use_tpu else 0
    return [*examples, *(PaddingInputExample() for _ in range(missing))]

  def _evaluate(self, estimator, examples, suffix, checkpoint_path):
    padded = self._padded(examples, FLAGS.eval_batch_size)
    input_fn = self._input_fn(padded, f"eval{suffix}")
    logging.info("***** Running evaluation *****")
    _log_sizes(examples, padded, FLAGS.eval_batch_size)
    results = estimator.evaluate(
      input_fn=input_fn, checkpoint_path=checkpoint_path, name=suffix.strip("_") or None
    )
    path = os.path.join(FLAGS.output_dir, f"eval_results{suffix}.txt")
    result_files.write_eval_results(path, results)

  def _predict(self, estimator, examples, suffix, checkpoint_path):
    padded = self._padded(examples, FLAGS.predict_batch_size)
    input_fn = self._input_fn(padded, f"predict{suffix}")
    logging.info("***** Running prediction*****")
    _log_sizes(examples, padded, FLAGS.predict_batch_size)
    predictions = estimator.predict(input_fn=input_fn, checkpoint_path=checkpoint_path)
    probabilities = [prediction["probabilities"] for prediction in predictions]
    result_files.write_predictions(
      FLAGS.output_dir,
      suffix,
      [example.guid for example in examples],
      probabilities[: len(examples)],
      self.labels,
      self.problem_type,
    )

  def _export(self, checkpoint_path, sets):
    from bert.exporting import task_model

    export_dir, checkpoint_path = runner.where_to_export(checkpoint_path)
    # One pair tells a task of pairs; a run that only exports has read no examples yet.
    examples = next(filter(None, sets), None) or self.processor.get_train_examples(FLAGS.data_dir)
    task_model.export_sentence_model(
      os.path.join(export_dir, "task"),
      self.bert_config,
      checkpoint_path,
      FLAGS.vocab_file,
      FLAGS.do_lower_case,
      FLAGS.max_seq_length,
      self.labels,
      self.problem_type,
      is_pair=any(example.text_b for example in examples),
      windows=self.windows,
    )
    runner.export_hub_models(export_dir, self.bert_config, checkpoint_path)


def _log_sizes(examples, padded, batch_size):
  total, actual = len(padded), len(examples)
  logging.info("  Num examples = %d (%d actual, %d padding)", total, actual, total - actual)
  logging.info("  Batch size = %d", batch_size)


# ---------------------------------------------------------------------------------------------
# Nothing given: the embedded sample.

_SAMPLE_SETTINGS = {
  "data_dir": str(installation.SAMPLES / "MRPC"),
  "vocab_file": str(installation.SAMPLES / "vocab.txt"),
  "bert_config_file": str(installation.SAMPLES / "bert_config.json"),
  "output_dir": os.path.join("output", "mrpc_sample"),
  "do_train": True,
  "do_eval": True,
  "do_predict": True,
  "max_seq_length": 64,
  "train_batch_size": 16,
  "eval_batch_size": 64,
  "predict_batch_size": 64,
  "learning_rate": 2e-4,
  "num_train_epochs": 6.0,
}


def use_samples_if_nothing_is_given() -> bool:
  """Fills the flags for the embedded sample, if the user said no more than `--task_name=MRPC`."""
  decisive = (
    "data_dir",
    "bert_config_file",
    "vocab_file",
    "init_checkpoint",
    "do_train",
    "do_eval",
    "do_predict",
  )
  if (FLAGS.task_name or "").lower() != "mrpc" or any(
    command_line.flag_was_given(name) for name in decisive
  ):
    return False
  for name, value in _SAMPLE_SETTINGS.items():
    if not command_line.flag_was_given(name):
      FLAGS[name].value = value
  logging.warning(
    "NO DATA AND NO MODEL WERE GIVEN: this is a demonstration on a small made-up sample (%s) with "
    "a small model that starts from RANDOM weights. Its score says nothing about BERT.",
    FLAGS.data_dir,
  )
  return True


def say_what_comes_next() -> None:
  """After the demonstration: where its files are, and the command for the real thing."""
  print(
    f"""
The demonstration's files are in {FLAGS.output_dir}:
  eval_results.txt    the figures above
  predictions.tsv     a prediction for each pair of samples/MRPC/test.tsv
  model.ckpt-*        checkpoints; `tensorboard --logdir {FLAGS.output_dir}` shows the curves
To train it anew, remove that folder. The real thing, data and weights downloaded:

  python run_classifier.py --task_name=MRPC --do_train --do_eval --do_predict \\
    --data_dir=download --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --max_seq_length=128 --train_batch_size=32 --learning_rate=2e-5 --num_train_epochs=3.0 \\
    --output_dir=output/mrpc
"""
  )


if __name__ == "__main__":
  command_line.run(main, define_flags)
