"""Fine-tunes BERT to choose what comes next: SWAG, or your own multiple choice of 2 to N texts.

  python run_swag.py --do_train --do_eval --do_predict --data_dir=$SWAG_DIR \\
    --init_checkpoint=uncased_L-12_H-768_A-12 --max_seq_length=80 --train_batch_size=16 \\
    --learning_rate=2e-5 --num_train_epochs=3 --output_dir=/tmp/swag_output/

SWAG_DIR holds train.csv, val.csv and test.csv with SWAG's columns: sent1, sent2, ending0, ending1,
..., label; test.csv has no label. JSON Lines with these keys will do as well. The accuracy is in
eval_results.txt, the choices and all probabilities in predictions.tsv.
"""

import functools
import random

from absl import logging

from bert.io import record_files
from bert.scripts import (
  command_line,
  flag_groups,
  output_folder,
  result_files,
  run_settings,
  shared_flags,
)
from bert.scripts.steps import Run, filled_up, log_sizes, start_many
from bert.tasks import multiple_choice

# In --data_dir, the first of these names that exists.
_NAMES = {"train": ("train",), "dev": ("val", "dev"), "test": ("test",)}
_ENDINGS = ("csv", "tsv", "jsonl")

_SEQUENCES = ("input_ids", "input_mask", "segment_ids")


def define_flags() -> None:
  """Defines this script's flags; those it shares with the original's scripts are theirs."""
  with flag_groups.flag_group("Task and data"):
    shared_flags.define_split_flags(
      "Folder with train, val or dev, and test: .csv, .tsv or .jsonl."
    )
    shared_flags.define_run_flags(
      "Whether to evaluate on the dev file.", "Whether to predict the test file."
    )
    shared_flags.define_skip_bad_rows_flag(default=False)
  shared_flags.define_fine_tuning_flags()
  shared_flags.define_many_seeds_flags()


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
  **reading,
):
  """An input_fn over a file of `write_features`.

  Args:
    input_file: the TFRecord file.
    num_choices: N it was written with.
    seq_length: `max_seq_length` it was written with.
    is_training: repeat and shuffle.
    drop_remainder: leave out a last batch that is short.
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
    length_features=_SEQUENCES,
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
  hidden = heads.hidden_of(bert_config, "choices")
  return heads.get_choice_logits(model.get_pooled_output(), choice_mask, is_training, hidden=hidden)


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
  distillation=None,
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
    distillation: a `methods.Distillation`, which makes the loss of training; else the task does.
  """

  def model_fn(features, labels, mode, params):
    from bert.model import heads
    from bert.optimization import create_optimizer
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels, params  # labels travel in features

    def logits_of(config, is_training):
      return create_model(
        config,
        is_training,
        *(features[name] for name in _SEQUENCES),
        features["choice_mask"],
        use_one_hot_embeddings,
        dtype=dtype,
      )

    logits = logits_of(bert_config, mode == ModeKeys.TRAIN)
    # To choose one of N sequences is to give a label of N to their row of scores.
    loss, per_example_loss, probabilities = heads.get_classifier_loss(
      logits, features["label_ids"], "classification"
    )
    spec = EstimatorSpec(mode=mode, loss=loss, init_checkpoint=init_checkpoint)
    if mode == ModeKeys.TRAIN:
      if distillation:
        loss = distillation.teach(
          *(spec, features, {"logits": logits}, per_example_loss),
          lambda config: {"logits": logits_of(config, False)},
        )
      spec.train_op = create_optimizer(
        loss, learning_rate, num_train_steps, num_warmup_steps, use_tpu, **(optimizer_options or {})
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


def main(_) -> int | None:
  """Trains, evaluates, predicts and exports as the flags say."""
  return start(run_settings.from_flags())


def start(settings: run_settings.RunSettings, run_class=None) -> int | None:
  """Makes a run of a class, by default this script's, or many; returns the exit code of many."""
  run_class = run_class or MultipleChoice
  check_settings(settings)
  if settings.is_many_runs:
    return start_many(run_class.script, settings)
  settings = run_class.resolve(settings)
  config, tokenizer = run_settings.load_config_and_tokenizer(settings)
  with output_folder.held(settings) as settings:
    run_class(settings, config, tokenizer).run()
  return None


def check_settings(settings: run_settings.RunSettings) -> None:
  """Checks what flags alone show; see `run_settings.check_run`."""
  run_settings.check_run(settings)
  settings.check_at_least(3, "max_seq_length")
  run_settings.check_split_files(settings)


class MultipleChoice(Run):
  """One run: a model, its questions, and the folder of its results."""

  script = "run_swag"

  def _read(self) -> None:
    settings = self.settings
    self.train = self._read_file("train") if settings.do_train else []
    self.dev = self._read_file("dev") if settings.reads_dev_set else []
    self.test = self._read_file("test", needs_labels=False) if settings.do_predict else []

  def _read_file(self, split, needs_labels=True):
    path = self.settings.split_file(split, _NAMES[split], _ENDINGS)
    skip = self.settings.skip_bad_rows
    return multiple_choice.read_swag_examples(path, split, needs_labels, skip)

  def _facts(self):
    return {"task_name": "swag"}

  def _plan(self):
    # The shuffle buffer alone would leave the questions about one video together.
    random.Random(12345).shuffle(self.train)
    return self.settings.planned(len(self.train), "questions")

  def _create_model_fn(self):
    return model_fn_builder(bert_config=self.bert_config, **self._model_options())

  def _input_fn(self, questions, name, is_training=False):
    """Writes the questions as `OUTPUT_DIR/<name>.tf_record` and reads them from there."""
    path = self.settings.features_path(name)
    num_choices = multiple_choice.num_choices_of(questions)
    self._write_once(
      name,
      questions,
      lambda path: write_features(path, self._features(questions, num_choices, name)),
    )
    return input_fn_builder(
      path,
      num_choices,
      self.settings.max_seq_length,
      is_training,
      drop_remainder=is_training or self.settings.use_tpu,
      **self.settings.reading_options,
    )

  def _features(self, questions, num_choices, name):
    length = self.settings.max_seq_length
    features = multiple_choice.convert_examples_to_features(
      questions, num_choices, length, self.tokenizer
    )
    if not self.settings.use_tpu or name == "train":
      return features
    batch_size = self.settings.values[f"{name}_batch_size"]
    padding = functools.partial(multiple_choice.padding_features, num_choices, length)
    return filled_up(features, batch_size, padding)

  def _training_data(self):
    return self._input_fn(self.train, "train", is_training=True), {"Num examples": len(self.train)}

  def _dev_data(self):
    return self._input_fn(self.dev, "eval"), "eval_accuracy"

  def _evaluate(self, checkpoint_path):
    input_fn = self._input_fn(self.dev, "eval")
    self._evaluate_on(input_fn, {"Num examples": len(self.dev)}, checkpoint_path)

  def _probabilities(self, name, questions, checkpoint_path):
    """What the model says of each question: float32 `[N, C]`."""

    def compute():
      input_fn = self._input_fn(questions, name)
      logging.info("***** Running prediction *****")
      log_sizes({"Num examples": len(questions)}, self.settings.predict_batch_size)
      predictions = self.estimator.predict(input_fn=input_fn, checkpoint_path=checkpoint_path)
      return [prediction["probabilities"] for prediction in predictions][: len(questions)]

    return self._outputs(name, questions, compute)

  def _compare(self, checkpoint_path):
    outputs = self._probabilities("eval", self.dev, checkpoint_path)
    labels = [question.label for question in self.dev]
    names = [f"choice {number}" for number in range(multiple_choice.num_choices_of(self.dev))]
    self._compare_classes("", labels, outputs, names, ["eval_accuracy"])

  def _predict(self, checkpoint_path):
    settings, test = self.settings, self.test
    probabilities = self._probabilities("predict", test, checkpoint_path)
    chosen = [q.choices[p.argmax()] for q, p in zip(test, probabilities, strict=True)]
    result_files.write_predictions(
      settings.output_dir,
      "",
      [question.guid for question in test],
      probabilities,
      [str(number) for number in range(multiple_choice.num_choices_of(test))],
      "classification",
      texts={"context": [question.context for question in test], "choice": chosen},
    )

  def _task_model(self):
    return {"model": "ChoiceModel", "max_seq_length": self.settings.max_seq_length}


if __name__ == "__main__":
  command_line.run(main, define_flags)
