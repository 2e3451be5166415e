"""Fine-tunes BERT to answer questions about a paragraph: SQuAD 1.1, SQuAD 2.0, or your own.

The command of 2018 works as it was:

  python run_squad.py --do_train=True --train_file=$SQUAD_DIR/train-v1.1.json \\
    --do_predict=True --predict_file=$SQUAD_DIR/dev-v1.1.json \\
    --vocab_file=$BERT_BASE_DIR/vocab.txt \\
    --bert_config_file=$BERT_BASE_DIR/bert_config.json \\
    --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt --max_seq_length=384 --doc_stride=128 \\
    --train_batch_size=12 --learning_rate=3e-5 --num_train_epochs=2.0 \\
    --output_dir=/tmp/squad_base/

Answers are in predictions.json; where the file knows the right ones, so are the official scores,
in eval_results.txt. SQuAD 2.0, whose questions may have no answer, needs one flag more:

  --version_2_with_negative=True
"""

import collections
import functools
import itertools
import os
import random
import time

from absl import flags, logging

from bert.io import record_files
from bert.scripts import command_line, flag_groups, result_files, runner
from bert.tasks import squad_scores
from bert.tasks.squad import (  # the original's users look for these here
  InputFeatures,
  SquadExample,
  convert_examples_to_features,
  generate_features,
  get_final_text,
  read_squad_examples,
  write_predictions,
)
from bert.tasks.squad_answers import answer_questions
from bert.training import distribution

__all__ = [
  "FeatureWriter",
  "InputFeatures",
  "RawResult",
  "SquadExample",
  "convert_examples_to_features",
  "create_model",
  "get_final_text",
  "input_fn_builder",
  "main",
  "model_fn_builder",
  "read_squad_examples",
  "write_features",
  "write_predictions",
]

FLAGS = flags.FLAGS

# So many windows are sorted by length together, with --pad_to_longest.
_SORTED_WINDOWS = 4096

RawResult = collections.namedtuple("RawResult", ["unique_id", "start_logits", "end_logits"])


def define_flags() -> None:
  """Defines this script's flags; names, types and defaults of 2018 are unchanged."""
  with flag_groups.flag_group("Task and data"):
    flags.DEFINE_string("train_file", None, "SQuAD's JSON to train on, such as train-v1.1.json.")
    flags.DEFINE_string(
      "predict_file", None, "SQuAD's JSON to answer, such as dev-v1.1.json; answers may be missing."
    )
    flags.DEFINE_string("output_dir", None, "Folder for checkpoints and results.")
    flags.DEFINE_bool("do_train", False, "Whether to train.")
    flags.DEFINE_bool("do_predict", False, "Whether to answer the questions of --predict_file.")
    flags.DEFINE_bool(
      "do_eval", False, "The same, but an error where --predict_file lacks the right answers."
    )
    flags.DEFINE_bool("version_2_with_negative", False, "SQuAD 2.0: some questions have no answer.")
    flags.DEFINE_integer("predict_batch_size", 8, "Sequences in a prediction batch.")
  with flag_groups.flag_group("Windows"):
    flags.DEFINE_integer(
      "doc_stride", 128, "Each window of a long paragraph begins so many pieces behind the last."
    )
    flags.DEFINE_integer("max_query_length", 64, "Longer questions are cut to so many pieces.")
    flags.DEFINE_bool(
      "pad_to_longest",
      False,
      "Predict windows of like length together, pad each batch to its own longest, and let no "
      "answer begin or end in padding. Faster; the results differ a little, since in the original "
      "padding competes with the text.",
    )
  with flag_groups.flag_group("Answers"):
    flags.DEFINE_integer("n_best_size", 20, "How many answers nbest_predictions.json has at most.")
    flags.DEFINE_integer("max_answer_length", 30, "Longest answer in pieces.")
    flags.DEFINE_float(
      "null_score_diff_threshold",
      0.0,
      "SQuAD 2.0: no answer where its logit exceeds the best answer's by more than this. "
      "eval_results.txt tells the best value, best_f1_thresh.",
    )
    flags.DEFINE_bool(
      "verbose_logging", False, "Log each answer whose place in the text is not found exactly."
    )
  runner.define_model_flags(max_seq_length=384)
  runner.define_training_flags()
  runner.define_eval_in_training_flags()
  runner.define_export_flags()
  # It promises the same results for less padding, which is not so here: see --pad_to_longest.
  delattr(FLAGS, "pad_to_max_length")
  flag_groups.define_tpu_flags()
  flag_groups.mark_required(["vocab_file", "bert_config_file", "output_dir"])


# ---------------------------------------------------------------------------------------------
# Windows -> records -> batches.


def write_features(path: str, features, is_training: bool) -> int:
  """Writes windows as a TFRecord file, which appears when it is complete.

  Args:
    path: the file.
    features: an iterable of `InputFeatures`, taken one by one.
    is_training: whether to write the answer's place.

  Returns:
    How many windows were written.

  Raises:
    OSError: the file cannot be written.
  """
  return record_files.write_records(path, (_record(f, is_training) for f in features))


def _record(feature: InputFeatures, is_training: bool) -> dict:
  record = {
    "unique_ids": feature.unique_id,
    "input_ids": feature.input_ids,
    "input_mask": feature.input_mask,
    "segment_ids": feature.segment_ids,
  }
  if is_training:
    record["start_positions"] = feature.start_position
    record["end_positions"] = feature.end_position
    record["is_impossible"] = int(bool(feature.is_impossible))  # nobody reads it
  return record


class FeatureWriter:
  """Writes windows one by one, as the original's users do; `write_features` takes all at once.

  Attributes:
    filename: the TFRecord file.
    is_training: whether to write the answer's place.
    num_features: windows written so far.
  """

  def __init__(self, filename, is_training):
    import tensorflow as tf

    self.filename = filename
    self.is_training = is_training
    self.num_features = 0
    self._writer = tf.io.TFRecordWriter(os.fspath(filename))

  def process_feature(self, feature: InputFeatures) -> None:
    """Writes one window."""
    self.num_features += 1
    self._writer.write(record_files.serialize_example(_record(feature, self.is_training)))

  def close(self) -> None:
    """Completes the file."""
    self._writer.close()


def input_fn_builder(
  input_file,
  seq_length,
  is_training,
  drop_remainder,
  *,
  has_positions=None,
  pad_to_longest=False,
  **reading,
):
  """An input_fn over a file of `write_features` or `FeatureWriter`.

  Args:
    input_file: the TFRecord file.
    seq_length: `max_seq_length` it was written with.
    is_training: repeat and shuffle.
    drop_remainder: leave out a last batch that is short.
    has_positions: whether to read the answer's place; as `is_training` by default.
    pad_to_longest: cut batches to their longest window.
    **reading: further keywords of `input_pipeline.record_input_fn`.

  Returns:
    `input_fn(params)` -> `tf.data.Dataset` of name -> int32 `[B]` or `[B, S]`.
  """
  import tensorflow as tf

  from bert.training import input_pipeline

  number = tf.io.FixedLenFeature([], tf.int64)
  sequence = tf.io.FixedLenFeature([seq_length], tf.int64)
  features = {
    "unique_ids": number,
    "input_ids": sequence,
    "input_mask": sequence,
    "segment_ids": sequence,
  }
  if is_training if has_positions is None else has_positions:
    features |= {"start_positions": number, "end_positions": number}
  return input_pipeline.record_input_fn(
    input_file,
    features,
    is_training,
    drop_remainder,
    pad_to_max_length=not pad_to_longest,
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
  use_one_hot_embeddings,
  *,
  mask_padding=False,
  dtype="float32",
):
  """BERT with a span head.

  Args:
    bert_config: a `modeling.BertConfig`.
    is_training: whether to drop out.
    input_ids: int `[B, S]`.
    input_mask: int `[B, S]`.
    segment_ids: int `[B, S]`.
    use_one_hot_embeddings: look words up by a matrix product (for TPUs).
    mask_padding: let no answer begin or end in padding.
    dtype: of the matrix products.

  Returns:
    `(start_logits, end_logits)`: float32 `[B, S]` each.
  """
  import tensorflow as tf

  from bert import modeling
  from bert.model import heads

  model = modeling.BertModel(
    config=bert_config,
    is_training=is_training,
    input_ids=input_ids,
    input_mask=input_mask,
    token_type_ids=segment_ids,
    use_one_hot_embeddings=use_one_hot_embeddings,
    dtype=tf.as_dtype(dtype),
    # The original's softmax covers padding, so what BERT makes of padding is part of the result.
    skip_padding=mask_padding and not use_one_hot_embeddings,
  )
  return heads.get_span_logits(model.get_sequence_output(), input_mask if mask_padding else None)


def model_fn_builder(
  bert_config,
  init_checkpoint,
  learning_rate,
  num_train_steps,
  num_warmup_steps,
  use_tpu,
  use_one_hot_embeddings,
  *,
  mask_padding=False,
  metric_fn=None,
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
    mask_padding: let no answer begin or end in padding.
    metric_fn: `metric_fn(unique_ids, start_logits, end_logits)` of everything that was evaluated,
      int32 `[M]` and float32 `[M, S]`, -> name -> number. Without it there is only the loss.
    optimizer_options: further keywords of `optimization.create_optimizer`.
    dtype: of the matrix products.
  """

  def model_fn(features, labels, mode, params):
    from bert.model import heads
    from bert.optimization import create_optimizer
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels, params  # labels travel in features
    start_logits, end_logits = create_model(
      bert_config,
      mode == ModeKeys.TRAIN,
      features["input_ids"],
      features["input_mask"],
      features["segment_ids"],
      use_one_hot_embeddings,
      mask_padding=mask_padding,
      dtype=dtype,
    )
    outputs = {
      "unique_ids": features["unique_ids"],
      "start_logits": start_logits,
      "end_logits": end_logits,
    }
    spec = EstimatorSpec(mode=mode, predictions=outputs, init_checkpoint=init_checkpoint)
    if mode != ModeKeys.PREDICT:
      spec.loss = heads.get_span_loss(
        start_logits, end_logits, features["start_positions"], features["end_positions"]
      )
    if mode == ModeKeys.TRAIN:
      spec.train_op = create_optimizer(
        spec.loss,
        learning_rate,
        num_train_steps,
        num_warmup_steps,
        use_tpu,
        **(optimizer_options or {}),
      )
    elif mode == ModeKeys.EVAL and metric_fn:
      spec.eval_metrics = (metric_fn, outputs)
    return spec

  return model_fn


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> None:
  """Trains, predicts and exports as the flags say."""
  check_flags()
  runner.resolve_model_files()
  command_line.check_required()
  command_line.explain_ignored_flags()
  bert_config, tokenizer = runner.load_config_and_tokenizer()
  with runner.held_output_dir():
    QuestionAnswering(bert_config, tokenizer).run()


def check_flags() -> None:
  """Checks what flags alone tell, before gigabytes are fetched for a run that cannot start.

  Raises:
    UsageError: a flag is missing or has a value that it cannot have.
    ValueError: nothing is to be done, a file is not named, or the windows have no room.
  """
  # A released model brings its config and vocabulary, hence the second check in `main`.
  if not FLAGS.init_checkpoint or FLAGS.output_dir is None:
    command_line.check_required()
  if not (FLAGS.do_train or FLAGS.do_predict or FLAGS.do_eval or FLAGS.do_export):
    raise ValueError("At least one of `do_train` or `do_predict` must be True.")
  for job, needed in (
    ("do_train", "train_file"),
    ("do_predict", "predict_file"),
    ("do_eval", "predict_file"),
  ):
    if FLAGS[job].value and not FLAGS[needed].value:
      raise ValueError(f"If `{job}` is True, then `{needed}` must be specified.")
  if FLAGS.eval_every_steps and not FLAGS.predict_file:
    raise command_line.UsageError("--eval_every_steps evaluates on --predict_file: name one.")
  if FLAGS.max_seq_length <= FLAGS.max_query_length + 3:
    raise ValueError(
      f"The max_seq_length ({FLAGS.max_seq_length}) must be greater than max_query_length "
      f"({FLAGS.max_query_length}) + 3"
    )
  for name in ("doc_stride", "max_query_length", "n_best_size", "max_answer_length"):
    if FLAGS[name].value < 1:
      raise command_line.UsageError(f"--{name}={FLAGS[name].value}: at least 1 is needed.")
  runner.check_training_flags()


class QuestionAnswering:
  """One run: a model, its questions, and the folder of its results."""

  def __init__(self, bert_config, tokenizer):
    self.bert_config = bert_config
    self.tokenizer = tokenizer
    # What evaluation during training answers; its windows are made when it begins.
    self.dev_examples: list[SquadExample] = []
    self.dev_windows: list[InputFeatures] = []

  def run(self) -> None:
    """Trains, then predicts, then exports."""
    train_examples, num_train_steps = self._plan_training()
    # Read before training: what is wrong with the file is told now and not in three hours.
    predict_examples = self._read_predict_file()
    if FLAGS.do_train and FLAGS.eval_every_steps:
      # Read as to train on: that its loss can be told, each question needs an answer's place.
      self.dev_examples = read_squad_examples(
        FLAGS.predict_file, True, FLAGS.version_2_with_negative
      )
    estimator = self._create_estimator(num_train_steps)
    # A model of either version may answer the questions of both.
    runner.check_same_model(
      estimator.config.fingerprint, () if FLAGS.do_train else ("version_2_with_negative",)
    )
    if FLAGS.do_train:
      self._train(estimator, train_examples, num_train_steps)
    if predict_examples:
      windows, results = self._predict(estimator, predict_examples, runner.best_checkpoint())
      scores = distribution.on_chief(self._answer, predict_examples, windows, results)
      if scores:
        scores["global_step"] = int(estimator.store.variables["global_step"].numpy())
        path = os.path.join(FLAGS.output_dir, "eval_results.txt")
        result_files.write_eval_results(path, scores, list(scores))
    if FLAGS.do_export:
      distribution.on_chief(self._export, runner.best_checkpoint())
    result_files.draw_plots()

  def _plan_training(self):
    if not FLAGS.do_train:
      return None, 1
    examples = read_squad_examples(FLAGS.train_file, True, FLAGS.version_2_with_negative)
    # Of questions, as in the original, and not of windows, of which there are some more.
    steps = runner.num_train_steps(len(examples), "questions")
    # Beside the shuffle buffer, which alone would keep an article's questions together.
    random.Random(12345).shuffle(examples)
    return examples, steps

  def _read_predict_file(self):
    if not FLAGS.do_predict and not FLAGS.do_eval:
      return None
    examples = read_squad_examples(FLAGS.predict_file, False, FLAGS.version_2_with_negative)
    if FLAGS.do_eval and all(example.answers is None for example in examples):
      raise ValueError(
        f"--do_eval: {FLAGS.predict_file} does not tell the right answers. Use --do_predict."
      )
    return examples

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
      mask_padding=FLAGS.pad_to_longest,
      metric_fn=self._metric_fn,
      optimizer_options=runner.optimizer_options(),
      dtype=FLAGS.dtype,
    )
    fingerprint = runner.model_fingerprint(
      self.bert_config,
      self.tokenizer,
      task_name="squad",
      version_2_with_negative=FLAGS.version_2_with_negative,
    )
    informative = [
      "train_file",
      "train_batch_size",
      "learning_rate",
      "num_train_epochs",
      "warmup_proportion",
      "max_seq_length",
      "doc_stride",
      "max_query_length",
      "pad_to_longest",
      "dtype",
      "group_by_length",
    ]
    estimator = runner.create_estimator(model_fn, fingerprint, informative)
    estimator.params["eval_batch_size"] = FLAGS.predict_batch_size
    return estimator

  def _features(self, examples, is_training):
    return generate_features(
      examples,
      self.tokenizer,
      FLAGS.max_seq_length,
      FLAGS.doc_stride,
      FLAGS.max_query_length,
      is_training,
    )

  def _write_and_keep(self, name, features, is_training, windows: list) -> str:
    """Writes windows as `OUTPUT_DIR/<name>.tf_record`, and keeps them, as all workers need them."""
    path = os.path.join(FLAGS.output_dir, f"{name}.tf_record")
    features = _kept_light(features, windows)
    if not distribution.is_chief():
      collections.deque(features, maxlen=0)
    distribution.on_chief(write_features, path, features, is_training)
    return path

  def _input_fn(self, path, is_training, has_positions=None):
    return input_fn_builder(
      path,
      FLAGS.max_seq_length,
      is_training,
      drop_remainder=is_training,
      has_positions=has_positions,
      shuffle_buffer=FLAGS.shuffle_buffer_size,
      group_by_length=FLAGS.group_by_length,
      # TPUs compile for fixed shapes; there --pad_to_longest merely masks.
      pad_to_longest=FLAGS.pad_to_longest and not FLAGS.use_tpu,
    )

  def _train(self, estimator, examples, num_train_steps) -> None:
    path = os.path.join(FLAGS.output_dir, "train.tf_record")
    features = self._features(examples, True)
    num_windows = distribution.on_chief(write_features, path, features, True)
    logging.info("***** Running training *****")
    logging.info("  Num orig examples = %d", len(examples))
    logging.info("  Num split examples = %d", num_windows)
    logging.info("  Batch size = %d", FLAGS.train_batch_size)
    logging.info("  Num steps = %d", num_train_steps)
    logging.info("  Num warm-up steps = %d", self.num_warmup_steps)
    start = time.monotonic()
    estimator.train(
      self._input_fn(path, True), max_steps=num_train_steps, eval_spec=self._eval_spec()
    )
    logging.info("Training took %.1f s.", time.monotonic() - start)

  def _eval_spec(self):
    if not FLAGS.eval_every_steps:
      return None
    features = self._features(self.dev_examples, True)
    path = self._write_and_keep("dev", features, True, self.dev_windows)
    input_fn = self._input_fn(path, False, has_positions=True)
    return runner.eval_spec(input_fn, "best_f1" if FLAGS.version_2_with_negative else "f1")

  def _metric_fn(self, unique_ids, start_logits, end_logits):
    """The official figures in the middle of training."""
    outputs = zip(unique_ids, start_logits, end_logits, strict=True)
    answers = answer_questions(
      self.dev_examples,
      self.dev_windows,
      [_result(*row, window) for row, window in zip(outputs, self.dev_windows, strict=True)],
      FLAGS.n_best_size,
      FLAGS.max_answer_length,
      FLAGS.do_lower_case,
      version_2_with_negative=FLAGS.version_2_with_negative,
      null_score_diff_threshold=FLAGS.null_score_diff_threshold,
    )
    return squad_scores.evaluate_answers(answers, FLAGS.version_2_with_negative)

  def _predict(self, estimator, examples, checkpoint_path):
    """The windows of all questions, and the model's outputs for each."""
    windows: list[InputFeatures] = []
    features = self._features(examples, False)
    if FLAGS.pad_to_longest:
      features = _shortest_first(features)
    path = self._write_and_keep("eval", features, False, windows)
    logging.info("***** Running predictions *****")
    logging.info("  Num orig examples = %d", len(examples))
    logging.info("  Num split examples = %d", len(windows))
    logging.info("  Batch size = %d", FLAGS.predict_batch_size)
    start = time.monotonic()
    predictions = estimator.predict(self._input_fn(path, False), checkpoint_path)
    results = list(_results(predictions, windows))
    # A question's windows follow each other, in the order of its paragraph.
    windows.sort(key=lambda window: window.unique_id)
    seconds = time.monotonic() - start
    logging.info("Prediction took %.1f s, %.1f windows/s.", seconds, len(windows) / seconds)
    return windows, results

  def _answer(self, examples, windows, results) -> dict[str, float]:
    """Writes the files of answers, and scores those of which the right ones are known."""
    in_output_dir = functools.partial(os.path.join, FLAGS.output_dir)
    answers = write_predictions(
      examples,
      windows,
      results,
      FLAGS.n_best_size,
      FLAGS.max_answer_length,
      FLAGS.do_lower_case,
      in_output_dir("predictions.json"),
      in_output_dir("nbest_predictions.json"),
      in_output_dir("null_odds.json"),
      version_2_with_negative=FLAGS.version_2_with_negative,
      null_score_diff_threshold=FLAGS.null_score_diff_threshold,
      verbose_logging=FLAGS.verbose_logging,
      output_detailed_file=in_output_dir("predictions_detailed.jsonl"),
    )
    known = [a for a in answers if a.example.answers is not None]
    if not known:
      logging.info("%s does not tell the right answers: no scores.", FLAGS.predict_file)
      return {}
    if len(known) < len(answers):
      logging.warning("Scores are those of %d questions of %d.", len(known), len(answers))
    return squad_scores.evaluate_answers(known, FLAGS.version_2_with_negative)

  def _export(self, checkpoint_path) -> None:
    from bert.exporting import span_model

    export_dir, checkpoint_path = runner.where_to_export(checkpoint_path)
    span_model.export_span_model(
      os.path.join(export_dir, "task"),
      self.bert_config,
      checkpoint_path,
      FLAGS.vocab_file,
      FLAGS.do_lower_case,
      max_seq_length=FLAGS.max_seq_length,
      doc_stride=FLAGS.doc_stride,
      max_query_length=FLAGS.max_query_length,
      n_best_size=FLAGS.n_best_size,
      max_answer_length=FLAGS.max_answer_length,
      version_2_with_negative=FLAGS.version_2_with_negative,
      null_score_diff_threshold=FLAGS.null_score_diff_threshold,
      mask_padding=FLAGS.pad_to_longest,
    )
    runner.export_hub_models(export_dir, self.bert_config, checkpoint_path)


def _results(predictions, windows):
  """The model's outputs for each window, saying now and then how far it is."""
  for number, (prediction, window) in enumerate(zip(predictions, windows, strict=True)):
    if number % 1000 == 0:
      logging.info("Processing example: %d of %d", number, len(windows))
    yield _result(**prediction, window=window)


def _result(unique_ids, start_logits, end_logits, window) -> RawResult:
  # With --pad_to_longest padding is no place for an answer, and how much there is says nothing.
  length = len(window.tokens) if FLAGS.pad_to_longest else FLAGS.max_seq_length
  return RawResult(int(unique_ids), start_logits[:length], end_logits[:length])


def _shortest_first(features):
  """The same windows, those of each chunk by length: a batch then needs little padding.

  In chunks, since a window with its ids takes some 10 kB.
  """
  features = iter(features)
  while chunk := list(itertools.islice(features, _SORTED_WINDOWS)):
    yield from sorted(chunk, key=lambda window: len(window.tokens))


def _kept_light(features, kept: list):
  """Passes windows on, and keeps them in `kept` without the ids, which are in the file by then."""
  for feature in features:
    yield feature
    feature.input_ids = feature.input_mask = feature.segment_ids = None
    kept.append(feature)


if __name__ == "__main__":
  command_line.run(main, define_flags)
