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

import functools
import os

from absl import flags, logging

from bert.io import filesystem, record_files
from bert.scripts import (
  command_line,
  demonstration,
  flag_groups,
  output_folder,
  path_flags,
  result_files,
  run_settings,
  shared_flags,
  task_options,
)
from bert.scripts.steps import INFORMATIVE, Run, log_sizes, start_many
from bert.tasks import label_counts, sequence_lengths
from bert.tasks import windows as long_text
from bert.tasks.classification import (
  InputExample,
  InputFeatures,
  PaddingInputExample,
  convert_examples_to_features,
  convert_single_example,
  label_id,
  swapped,
  texts_of,
)
from bert.tasks.glue import PROCESSORS, ColaProcessor, MnliProcessor, MrpcProcessor, XnliProcessor
from bert.tasks.processors import DataProcessor, metric_names, task_facts
from bert.training.features_in_memory import input_fn_builder

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


_SEQUENCES = ("input_ids", "input_mask", "segment_ids")


def define_flags() -> None:
  """Defines this script's flags; names, types and defaults of 2018 are unchanged."""
  with flag_groups.flag_group("Task and data"):
    flags.DEFINE_string("task_name", None, f"One of: {', '.join(PROCESSORS)}.")
    path_flags.define(
      "data_dir", None, "Folder with the task's files, or `download` to fetch the public ones."
    )
    shared_flags.define_run_flags()
    flags.DEFINE_bool(
      "double_unordered",
      False,
      "MRPC and STS-B, whose texts have no order: train on each pair in both orders, as ELECTRA.",
    )
    flags.DEFINE_float(
      "label_scale", 1.0, "Regression: learn labels divided by this; predictions are not."
    )
  shared_flags.define_table_flags()
  with flag_groups.flag_group("XNLI"):
    flags.DEFINE_string("xnli_language", None, "Language to train and evaluate in. [zh]")
    flags.DEFINE_string("xnli_train_language", None, "Language to train in, if another one.")
  shared_flags.define_model_flags()
  shared_flags.define_long_text_flags()
  shared_flags.define_training_flags()
  shared_flags.define_packing_flag()
  shared_flags.define_eval_in_training_flags()
  shared_flags.define_export_flags()
  shared_flags.define_many_seeds_flags()
  flag_groups.define_tpu_flags()
  flag_groups.mark_required(
    ["data_dir", "task_name", "vocab_file", "bert_config_file", "output_dir"]
  )


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
  reader = long_text.WindowReader(tokenizer, windows) if windows else None
  splitter = reader or tokenizer
  lengths = sequence_lengths.SequenceLengths()

  def records():
    for index, example in enumerate(examples):
      if index % 10000 == 0:
        logging.info("Writing example %d of %d", index, len(examples))
      feature = convert_single_example(
        index, example, label_list, max_seq_length, splitter, problem_type, shown_examples, lengths
      )
      record = {
        **{name: getattr(feature, name) for name in _SEQUENCES},
        "label_ids": feature.label_id,
        "is_real_example": int(feature.is_real_example),
      }
      yield {**record, **reader.windows_of(example, feature)} if reader else record
    if reader:
      reader.log_counts()
    else:
      lengths.log(max_seq_length, "--long_text=windows reads long texts whole.")

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
  task_name=None,
  label_scale=1.0,
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
    packing: of several sequences in a row, see `sequence_packing.packing_of`; B counts sequences in
      what comes back, and rows in the inputs.
    task_name: part of the names of an ELECTRA head's variables.
    label_scale: see `heads.get_classifier_loss`.

  Returns:
    `(loss, per_example_loss, logits, probabilities)`: float32 `[]`, `[B]`, `[B, C]`, `[B, C]`.
  """
  import tensorflow as tf

  from bert import modeling
  from bert.model import heads, long_documents

  inputs = input_ids, input_mask, segment_ids
  if num_windows is not None:
    inputs, documents = long_documents.split_batch(
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
  scope = heads.task_scope(bert_config, task_name)
  pooled_output = model.get_pooled_output()
  logits = heads.get_classifier_logits(
    *(pooled_output, num_labels, is_training),
    scope=scope,
    hidden=heads.hidden_of(bert_config, "sentences"),
  )
  if num_windows is not None:
    logits = long_documents.pool_logits(logits, documents, tf.shape(num_windows)[0], window_pooling)
  losses = heads.get_classifier_loss(logits, labels, problem_type, label_scale)
  loss, per_example_loss, probabilities = losses
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
  task_name=None,
  label_scale=1.0,
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

  def model_fn(features, labels, mode, params):
    from bert.optimization import create_optimizer
    from bert.training import sequence_packing
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels, params  # labels travel in features
    of_model = functools.partial(
      create_model,
      **{name: features[name] for name in _SEQUENCES},
      labels=features["label_ids"],
      num_labels=num_labels,
      use_one_hot_embeddings=use_one_hot_embeddings,
      problem_type=problem_type,
      dtype=dtype,
      num_windows=features.get("num_windows"),
      window_pooling=window_pooling,
      packing=sequence_packing.packing_of(features),
      task_name=task_name,
      label_scale=label_scale,
    )
    loss, per_example_loss, logits, probabilities = of_model(bert_config, mode == ModeKeys.TRAIN)
    spec = EstimatorSpec(mode=mode, loss=loss, init_checkpoint=init_checkpoint)
    if mode == ModeKeys.TRAIN:
      if distillation:
        loss = distillation.teach(
          *(spec, features, {"logits": logits}, per_example_loss),
          lambda config: {"logits": of_model(config, False)[2]},
        )
      spec.train_op = create_optimizer(
        loss, learning_rate, num_train_steps, num_warmup_steps, use_tpu, **(optimizer_options or {})
      )
    elif mode == ModeKeys.EVAL:
      tensors = {
        "per_example_loss": per_example_loss,
        "label_ids": features["label_ids"],
        "outputs": logits if problem_type == "classification" else probabilities,
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
      names = label_list or list(map(str, range(num_labels)))
      results["confusion matrix"] = metrics.confusion_table(
        label_ids, outputs, is_real_example, names
      )
    return results

  return model_fn


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> int | None:
  """Trains, evaluates, predicts and exports as the flags say."""
  is_demo = demonstration.is_wanted()
  settings = run_settings.from_flags(demonstration.SETTINGS if is_demo else None)
  if is_demo:
    demonstration.say_what_this_is(settings.data_dir)
  code = start(settings, defaults=demonstration.SETTINGS if is_demo else None)
  if is_demo and code is None:
    demonstration.say_what_comes_next(settings.output_dir)
  return code


def start(settings: run_settings.RunSettings, run_class=None, defaults=None) -> int | None:
  """Makes a run, or many, with such `defaults` of flags; returns the exit code of many."""
  run_class = run_class or Classification
  check_settings(settings)
  if settings.is_many_runs:
    return start_many(run_class.script, settings, defaults or {})
  settings = run_class.resolve(settings)
  if settings.data_dir == "download":
    from bert.tasks import public_data

    settings = settings.replace(data_dir=public_data.download_task_data(settings.task_name))
  bert_config, tokenizer = run_settings.load_config_and_tokenizer(settings)
  processor = task_options.processor_of_folder(settings, bert_config, tokenizer)
  with output_folder.held(settings) as settings:
    run_class(processor, settings, bert_config, tokenizer).run()
  return None


def check_settings(settings: run_settings.RunSettings) -> None:
  """Checks what flags alone show; see `run_settings.check_run`."""
  run_settings.check_run(settings, needed=("data_dir", "task_name", "output_dir"))
  task_options.check_task(settings)
  task_options.check_windows(settings)
  settings.check("label_scale", lambda value: 0 < value < float("inf"), "a positive number")


class Classification(Run):
  """One run: a task, a model, and the folder of its results."""

  script = "run_classifier"
  informative = (*INFORMATIVE, "pack_sequences", "double_unordered")
  # A model of MNLI may predict AX, and other windows; to train on, all has to be the same.
  may_differ = ("task_name", "window_stride", "max_windows")

  def __init__(self, processor, settings, bert_config, tokenizer):
    super().__init__(settings, bert_config, tokenizer)
    self.processor = processor
    self.labels = processor.get_labels()
    # Processors written for the original know nothing of problem types and metrics.
    self.problem_type = getattr(processor, "problem_type", "classification")
    self.headline = f"eval_{getattr(processor, 'headline_metric', 'accuracy')}"
    self.windows = None  # unless long documents are read in several
    if settings.long_text == "windows":
      stride = settings.window_stride or (settings.max_seq_length - 2) // 2
      self.windows = long_text.WindowOptions(stride, settings.max_windows, settings.window_pooling)

  def _read(self):
    settings = self.settings
    self.train = self.processor.get_train_examples(settings.data_dir) if settings.do_train else []
    if settings.double_unordered and getattr(self.processor, "is_unordered", False):
      self.train = [*self.train, *map(swapped, self.train)]
    # Of each set: suffix of result files -> examples.
    self.dev_sets = dict(self._sets("dev")) if settings.reads_dev_set else {}
    self.test_sets = dict(self._sets("test")) if settings.do_predict else {}
    for name, examples in (("train", self.train), ("dev", self.dev_sets.get("", ()))):
      label_counts.log_labels(examples, self.labels, name, self.problem_type)

  def _sets(self, split):
    """One set, or matched and mismatched ones for MNLI."""
    data_dir = self.settings.data_dir
    yield "", getattr(self.processor, f"get_{split}_examples")(data_dir)
    mismatched = getattr(self.processor, f"get_{split}_mismatched_examples", None)
    exists = filesystem.is_file(os.path.join(data_dir, f"{split}_mismatched.tsv"))
    if mismatched and exists and self.settings.task_name.lower() == "mnli":
      yield "_mismatched", mismatched(data_dir)

  def _facts(self):
    task = task_facts(self.settings.task_name, self.processor, self.labels)
    if self.problem_type == "regression":
      task["label_scale"] = self.settings.label_scale
    return {**task, **long_text.facts(self.windows)}

  def _plan(self):
    return self.settings.planned(len(self.train))

  def _metric_names(self):
    return [*(f"eval_{name}" for name in (*metric_names(self.processor), "loss")), "loss"]

  def _create_model_fn(self):
    return model_fn_builder(
      bert_config=self.bert_config,
      num_labels=len(self.labels),
      problem_type=self.problem_type,
      metric_names=metric_names(self.processor),
      label_list=self.labels,
      window_pooling=self.settings.window_pooling,
      task_name=self.settings.task_name,
      label_scale=self.settings.label_scale,
      **self._model_options(),
    )

  def _input_fn(self, examples, name, is_training=False):
    """Writes the examples as `OUTPUT_DIR/<name>.tf_record` and reads them from there."""
    settings = self.settings
    self._write_once(
      name,
      examples,
      lambda path: file_based_convert_examples_to_features(
        *(examples, self.labels, settings.max_seq_length, self.tokenizer, path),
        *(self.problem_type, self.windows, self._shown_examples()),
      ),
    )
    return file_based_input_fn_builder(
      settings.features_path(name),
      settings.max_seq_length,
      is_training,
      drop_remainder=is_training or settings.use_tpu,
      num_labels=len(self.labels),
      problem_type=self.problem_type,
      windows=self.windows,
      pack_sequences=settings.pack_sequences,
      **settings.reading_options,
    )

  def _training_data(self):
    return self._input_fn(self.train, "train", is_training=True), {"Num examples": len(self.train)}

  def _dev_data(self):
    padded, _ = self._padded(self.dev_sets[""], self.settings.eval_batch_size)
    return self._input_fn(padded, "eval"), self.headline

  def _padded(self, examples, batch_size):
    """The examples, on a TPU with padding to full batches; and their numbers to log."""
    missing = -len(examples) % batch_size if self.settings.use_tpu else 0
    padded = [*examples, *(PaddingInputExample() for _ in range(missing))]
    size = f"{len(padded)} ({len(examples)} actual, {missing} padding)"
    return padded, {"Num examples": size}

  def _evaluate(self, checkpoint_path):
    for suffix, examples in self.dev_sets.items():
      padded, sizes = self._padded(examples, self.settings.eval_batch_size)
      input_fn = self._input_fn(padded, f"eval{suffix}")
      self._evaluate_on(input_fn, sizes, checkpoint_path, suffix.strip("_"))

  def _probabilities(self, name, examples, checkpoint_path):
    """What the model says of each example: float32 `[N, C]`; for regression `[N, 1]`."""

    def compute():
      padded, sizes = self._padded(examples, self.settings.predict_batch_size)
      input_fn = self._input_fn(padded, name)
      logging.info("***** Running prediction*****")
      log_sizes(sizes, self.settings.predict_batch_size)
      predictions = self.estimator.predict(input_fn=input_fn, checkpoint_path=checkpoint_path)
      return [prediction["probabilities"] for prediction in predictions][: len(examples)]

    return self._outputs(name, examples, compute)

  def _compare(self, checkpoint_path):
    for suffix, examples in self.dev_sets.items():
      outputs = self._probabilities(f"eval{suffix}", examples, checkpoint_path)
      labels = [label_id(example, self.labels, self.problem_type) for example in examples]
      names = [self.headline, *(f"eval_{name}" for name in metric_names(self.processor))]
      self._compare_classes(suffix, labels, outputs, self.labels, names, self.problem_type)

  def _predict(self, checkpoint_path):
    for suffix, examples in self.test_sets.items():
      result_files.write_predictions(
        self.settings.output_dir,
        suffix,
        [example.guid for example in examples],
        self._probabilities(f"predict{suffix}", examples, checkpoint_path),
        *(self.labels, self.problem_type, self.settings.label_separator or ","),
        texts_of(examples),
      )

  def _task_model(self):
    # One pair shows a task of pairs; a run that only exports has read no examples yet.
    sets = (self.train, *self.dev_sets.values(), *self.test_sets.values())
    examples = next(filter(None, sets), None)
    examples = examples or self.processor.get_train_examples(self.settings.data_dir)
    return {
      "model": "SentenceModel",
      "max_seq_length": self.settings.max_seq_length,
      "label_names": self.labels,
      "problem_type": self.problem_type,
      "windows": self.windows,
      "task_name": self.settings.task_name,
      "label_scale": self.settings.label_scale,
      "is_pair": any(example.text_b for example in examples),
    }


if __name__ == "__main__":
  command_line.run(main, define_flags)
