"""Fine-tunes BERT to choose what comes next: SWAG, or your own multiple choice of 2 to N texts.

  python run_swag.py --do_train --do_eval --do_predict --data_dir=$SWAG_DIR \\
    --init_checkpoint=uncased_L-12_H-768_A-12 --max_seq_length=80 --train_batch_size=16 \\
    --learning_rate=2e-5 --num_train_epochs=3 --output_dir=/tmp/swag_output/

SWAG_DIR holds train.csv, val.csv and test.csv with SWAG's columns: sent1, sent2, ending0, ending1,
..., label; test.csv has no label. JSON Lines with these keys will do as well. The accuracy is in
eval_results.txt, the choices and all probabilities in predictions.tsv.
"""

import os
import random
import time

from absl import flags, logging

from bert.io import record_files
from bert.scripts import command_line, flag_groups, result_files, runner
from bert.tasks import multiple_choice
from bert.training import distribution

FLAGS = flags.FLAGS

# In --data_dir, the first of these names that is there.
_NAMES = {"train": ("train",), "dev": ("val", "dev"), "test": ("test",)}
_ENDINGS = ("csv", "tsv", "jsonl")

_SEQUENCES = ("input_ids", "input_mask", "segment_ids")


def define_flags() -> None:
  """Defines this script's flags; those it shares with the original's scripts are theirs."""
  with flag_groups.flag_group("Task and data"):
    flags.DEFINE_string(
      "data_dir", None, "Folder with train, val and test, each .csv, .tsv or .jsonl."
    )
    flags.DEFINE_string("train_file", None, "File to train on. [in --data_dir]")
    flags.DEFINE_string("dev_file", None, "File to evaluate on. [val or dev in --data_dir]")
    flags.DEFINE_string("test_file", None, "File to predict; needs no label. [in --data_dir]")
    flags.DEFINE_string("output_dir", None, "Folder for checkpoints and results.")
    flags.DEFINE_bool("do_train", False, "Whether to train.")
    flags.DEFINE_bool("do_eval", False, "Whether to evaluate on the dev file.")
    flags.DEFINE_bool("do_predict", False, "Whether to predict the test file.")
    flags.DEFINE_integer("eval_batch_size", 8, "Questions in an evaluation batch.")
    flags.DEFINE_integer("predict_batch_size", 8, "Questions in a prediction batch.")
    flags.DEFINE_bool("skip_bad_rows", False, "Leave malformed rows out and count them.")
  runner.define_model_flags()
  runner.define_training_flags()
  runner.define_eval_in_training_flags()
  runner.define_export_flags()
  flag_groups.define_tpu_flags()
  flag_groups.mark_required(["vocab_file", "bert_config_file", "output_dir"])


# ---------------------------------------------------------------------------------------------
# Questions -> records -> batches.


def write_features(path: str, features) -> int:
  """Writes questions as a TFRecord file, which appears when it is complete.

  Args:
    path: the file.
    features: an iterable of `multiple_choice.InputFeatures`, taken one by one.

  Returns:
    How many were written.

  Raises:
    OSError: the file cannot be written.
  """
  return record_files.write_records(path, map(_record, features))


def _record(feature: multiple_choice.InputFeatures) -> dict:
  return {
    **{name: getattr(feature, name) for name in (*_SEQUENCES, "choice_mask")},
    "label_ids": feature.label_id,
    "is_real_example": int(feature.is_real_example),
  }


def input_fn_builder(
  input_file,
  num_choices,
  seq_length,
  is_training,
  drop_remainder,
  *,
  pad_to_max_length=False,
  **reading,
):
  """An input_fn over a file of `write_features`.

  Args:
    input_file: the TFRecord file.
    num_choices: N it was written with.
    seq_length: `max_seq_length` it was written with.
    is_training: repeat and shuffle.
    drop_remainder: leave out a last batch that is short.
    pad_to_max_length: keep batches at `seq_length` instead of their longest sequence's length.
    **reading: further keywords of `input_pipeline.record_input_fn`.

  Returns:
    `input_fn(params)` -> `tf.data.Dataset` of name -> int32 `[B, N, S]`, `[B, N]` or `[B]`.
  """
  import tensorflow as tf

  from bert.training import input_pipeline

  number = tf.io.FixedLenFeature([], tf.int64)
  sequences = tf.io.FixedLenFeature([num_choices, seq_length], tf.int64)
  features = {
    **dict.fromkeys(_SEQUENCES, sequences),
    "choice_mask": tf.io.FixedLenFeature([num_choices], tf.int64),
    "label_ids": number,
    "is_real_example": number,
  }
  return input_pipeline.record_input_fn(
    input_file,
    features,
    is_training,
    drop_remainder,
    pad_to_max_length=True,  # the length is the last axis here, and `_trim` sees to it
    transform=None if pad_to_max_length else _trim,
    **reading,
  )


def _trim(features, numbers, seed):
  """Cuts the sequences behind the longest one of the batch, at a multiple of eight."""
  import tensorflow as tf

  del numbers, seed  # nothing is drawn here
  lengths = tf.reduce_sum(features["input_mask"], axis=-1)  # [B, N]
  length = tf.maximum(tf.reduce_max(lengths) + 7, 8) // 8 * 8
  return {n: v[..., :length] if n in _SEQUENCES else v for n, v in features.items()}


# ---------------------------------------------------------------------------------------------
# The model.


def create_model(
  bert_config,
  is_training,
  input_ids,
  input_mask,
  segment_ids,
  choice_mask,
  use_one_hot_embeddings,
  *,
  dtype="float32",
):
  """BERT with a head that scores each choice.

  Args:
    bert_config: a `modeling.BertConfig`.
    is_training: whether to drop out.
    input_ids: int `[B, N, S]`.
    input_mask: int `[B, N, S]`.
    segment_ids: int `[B, N, S]`.
    choice_mask: int `[B, N]`, 0 for a choice that only fills the row.
    use_one_hot_embeddings: look words up by a matrix product (for TPUs).
    dtype: of the matrix products.

  Returns:
    Logits, float32 `[B, N]`.
  """
  import tensorflow as tf

  from bert import modeling
  from bert.model import heads

  flat = [-1, modeling.get_shape_list(input_ids, expected_rank=3)[2]]
  model = modeling.BertModel(
    config=bert_config,
    is_training=is_training,
    input_ids=tf.reshape(input_ids, flat),  # [B*N, S]
    input_mask=tf.reshape(input_mask, flat),
    token_type_ids=tf.reshape(segment_ids, flat),
    use_one_hot_embeddings=use_one_hot_embeddings,
    dtype=tf.as_dtype(dtype),
    # TPUs compile for fixed shapes, which skipping padding does not have.
    skip_padding=not use_one_hot_embeddings,
    only_pooled_output=True,
  )
  return heads.get_choice_logits(model.get_pooled_output(), choice_mask, is_training)


def model_fn_builder(
  bert_config,
  init_checkpoint,
  learning_rate,
  num_train_steps,
  num_warmup_steps,
  use_tpu,
  use_one_hot_embeddings,
  *,
  optimizer_options=None,
  dtype="float32",
):
  """Returns the `model_fn` of an `estimator.Estimator`; arguments as of `create_model`.

  Args:
    bert_config: a `modeling.BertConfig`.
    init_checkpoint: where variables start, or None.
    learning_rate: peak rate.
    num_train_steps: steps of the whole run.
    num_warmup_steps: steps of warm-up.
    use_tpu: whether this runs on a TPU.
    use_one_hot_embeddings: look words up by a matrix product.
    optimizer_options: further keywords of `optimization.create_optimizer`.
    dtype: of the matrix products.
  """

  def model_fn(features, labels, mode, params):
    from bert.model import heads
    from bert.optimization import create_optimizer
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels, params  # labels travel in features
    logits = create_model(
      bert_config,
      mode == ModeKeys.TRAIN,
      *(features[name] for name in _SEQUENCES),
      features["choice_mask"],
      use_one_hot_embeddings,
      dtype=dtype,
    )
    # To choose one of N sequences is to give a label of N to their row of scores.
    loss, per_example_loss, probabilities = heads.get_classifier_loss(
      logits, features["label_ids"], "classification"
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
        "logits": logits,
        "is_real_example": features["is_real_example"],
      }
      spec.eval_metrics = (metric_fn, tensors)
    else:
      spec.predictions = {"probabilities": probabilities}
    return spec

  def metric_fn(per_example_loss, label_ids, logits, is_real_example):
    from bert.tasks import metrics

    return metrics.compute_metrics(
      ["accuracy"], label_ids, logits, is_real_example, losses=per_example_loss
    )

  return model_fn


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> None:
  """Trains, evaluates and predicts as the flags say."""
  check_flags()
  runner.resolve_model_files()
  command_line.check_required()
  command_line.explain_ignored_flags()
  bert_config, tokenizer = runner.load_config_and_tokenizer()
  with runner.held_output_dir():
    MultipleChoice(bert_config, tokenizer).run()


def check_flags() -> None:
  """Checks what flags alone tell, before gigabytes are fetched for a run that cannot start.

  Raises:
    UsageError: a flag is missing or has a value that it cannot have.
    ValueError: nothing is to be done.
  """
  # A released model brings its config and vocabulary, hence the second check in `main`.
  if not FLAGS.init_checkpoint or FLAGS.output_dir is None:
    command_line.check_required()
  if not (FLAGS.do_train or FLAGS.do_eval or FLAGS.do_predict or FLAGS.do_export):
    raise ValueError("At least one of `do_train`, `do_eval` or `do_predict' must be True.")
  runner.check_training_flags()
  runner.check_flag("max_seq_length", lambda value: value >= 3, "at least 3")
  runner.check_split_flags()


class MultipleChoice:
  """One run: a model, its questions, and the folder of its results."""

  def __init__(self, bert_config, tokenizer):
    self.bert_config = bert_config
    self.tokenizer = tokenizer

  def run(self) -> None:
    """Trains, evaluates, predicts, exports."""
    # All are read before training: a bad row of the test file is told now and not in an hour.
    train = self._read("train") if FLAGS.do_train else None
    is_evaluated = FLAGS.do_eval or (FLAGS.do_train and FLAGS.eval_every_steps)
    dev = self._read("dev") if is_evaluated else None
    test = self._read("test", needs_labels=False) if FLAGS.do_predict else None
    num_train_steps = self._num_train_steps(train) if train else 1
    estimator = self._create_estimator(num_train_steps)
    runner.check_same_model(estimator.config.fingerprint)
    if train:
      self._train(estimator, train, num_train_steps, dev)
    if FLAGS.do_eval:
      self._evaluate(estimator, dev, runner.best_checkpoint())
    if test:
      self._predict(estimator, test, runner.best_checkpoint())
    if FLAGS.do_export:
      distribution.on_chief(self._export)
    result_files.draw_plots()

  def _export(self) -> None:
    from bert.exporting import choice_model

    export_dir, checkpoint_path = runner.where_to_export(runner.best_checkpoint())
    choice_model.export_choice_model(
      os.path.join(export_dir, "task"),
      self.bert_config,
      checkpoint_path,
      FLAGS.vocab_file,
      FLAGS.do_lower_case,
      FLAGS.max_seq_length,
    )
    runner.export_hub_models(export_dir, self.bert_config, checkpoint_path)

  def _read(self, split, needs_labels=True):
    path = runner.split_file(split, _NAMES[split], _ENDINGS)
    return multiple_choice.read_swag_examples(path, split, needs_labels, FLAGS.skip_bad_rows)

  def _num_train_steps(self, train) -> int:
    steps = runner.num_train_steps(len(train), "questions")
    # Beside the shuffle buffer, which alone would keep a video's questions together.
    random.Random(12345).shuffle(train)
    return steps

  def _create_estimator(self, num_train_steps):
    self.num_warmup_steps = int(num_train_steps * FLAGS.warmup_proportion)
    model_fn = model_fn_builder(
      bert_config=self.bert_config,
      init_checkpoint=FLAGS.init_checkpoint,
      learning_rate=FLAGS.learning_rate,
      num_train_steps=num_train_steps,
      num_warmup_steps=self.num_warmup_steps,
      use_tpu=FLAGS.use_tpu,
      use_one_hot_embeddings=FLAGS.use_tpu,
      optimizer_options=runner.optimizer_options(),
      dtype=FLAGS.dtype,
    )
    fingerprint = runner.model_fingerprint(self.bert_config, self.tokenizer, task_name="swag")
    informative = [
      "train_batch_size",
      "learning_rate",
      "num_train_epochs",
      "warmup_proportion",
      "max_seq_length",
      "dtype",
      "group_by_length",
    ]
    return runner.create_estimator(model_fn, fingerprint, informative)

  def _input_fn(self, questions, name, is_training=False):
    """Writes the questions as `OUTPUT_DIR/<name>.tf_record` and reads them from there."""
    path = os.path.join(FLAGS.output_dir, f"{name}.tf_record")
    num_choices = multiple_choice.num_choices_of(questions)
    features = self._features(questions, num_choices, name)
    distribution.on_chief(write_features, path, features)
    return input_fn_builder(
      path,
      num_choices,
      FLAGS.max_seq_length,
      is_training,
      drop_remainder=is_training or FLAGS.use_tpu,
      **runner.reading_options(),
    )

  def _features(self, questions, num_choices, name):
    yield from multiple_choice.convert_examples_to_features(
      questions, num_choices, FLAGS.max_seq_length, self.tokenizer
    )
    if FLAGS.use_tpu and name != "train":  # there every batch has to be full
      for _ in range(-len(questions) % FLAGS[f"{name}_batch_size"].value):
        yield multiple_choice.padding_features(num_choices, FLAGS.max_seq_length)

  def _train(self, estimator, train, num_train_steps, dev):
    input_fn = self._input_fn(train, "train", is_training=True)
    eval_spec = self._eval_spec(dev)
    logging.info("***** Running training *****")
    logging.info("  Num examples = %d", len(train))
    logging.info("  Batch size = %d", FLAGS.train_batch_size)
    logging.info("  Num steps = %d", num_train_steps)
    logging.info("  Num warm-up steps = %d", self.num_warmup_steps)
    start = time.monotonic()
    estimator.train(input_fn=input_fn, max_steps=num_train_steps, eval_spec=eval_spec)
    logging.info("Training took %.1f s.", time.monotonic() - start)

  def _eval_spec(self, dev):
    if not FLAGS.eval_every_steps:
      return None
    return runner.eval_spec(self._input_fn(dev, "eval"), "eval_accuracy")

  def _evaluate(self, estimator, dev, checkpoint_path):
    input_fn = self._input_fn(dev, "eval")
    logging.info("***** Running evaluation *****")
    logging.info("  Num examples = %d", len(dev))
    logging.info("  Batch size = %d", FLAGS.eval_batch_size)
    results = estimator.evaluate(input_fn=input_fn, checkpoint_path=checkpoint_path)
    result_files.write_eval_results(os.path.join(FLAGS.output_dir, "eval_results.txt"), results)

  def _predict(self, estimator, test, checkpoint_path):
    input_fn = self._input_fn(test, "predict")
    logging.info("***** Running prediction *****")
    logging.info("  Num examples = %d", len(test))
    logging.info("  Batch size = %d", FLAGS.predict_batch_size)
    predictions = estimator.predict(input_fn=input_fn, checkpoint_path=checkpoint_path)
    probabilities = [prediction["probabilities"] for prediction in predictions]
    result_files.write_predictions(
      FLAGS.output_dir,
      "",
      [question.guid for question in test],
      probabilities[: len(test)],
      [str(number) for number in range(multiple_choice.num_choices_of(test))],
      "classification",
    )


if __name__ == "__main__":
  command_line.run(main, define_flags)
