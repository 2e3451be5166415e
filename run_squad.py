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
import dataclasses
import random
import time

from absl import flags, logging

from bert.scripts import (
  answer_flags,
  command_line,
  flag_groups,
  output_folder,
  path_flags,
  run_settings,
  shared_flags,
)
from bert.scripts.run_outputs import mean_answers
from bert.scripts.steps import INFORMATIVE, Run, log_sizes, start_many
from bert.tasks import constant_answers, squad_features, squad_scores
from bert.tasks.answer_texts import get_final_text
from bert.tasks.squad import SquadExample, read_squad_examples
from bert.tasks.squad_answers import (
  ANSWER_FILES,
  answer_questions,
  scores_of,
  with_threshold,
  write_answers,
  write_predictions,
)
from bert.tasks.squad_features import InputFeatures, convert_examples_to_features, generate_features
from bert.tasks.squad_records import FeatureWriter, write_features
from bert.training import distribution, question_model

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

RawResult = collections.namedtuple("RawResult", ["unique_id", "start_logits", "end_logits"])


def define_flags() -> None:
  """Defines this script's flags; names, types and defaults of 2018 are unchanged."""
  with flag_groups.flag_group("Task and data"):
    path_flags.define("train_file", None, "SQuAD's JSON to train on, such as train-v1.1.json.")
    path_flags.define(
      "predict_file", None, "SQuAD's JSON to answer, such as dev-v1.1.json; answers may be missing."
    )
    shared_flags.define_run_flags(
      do_predict="Whether to answer the questions of --predict_file.",
      do_eval="As --do_predict, but an error where --predict_file has no correct answers.",
      eval_batches=False,
    )
    flags.DEFINE_bool(
      "version_2_with_negative", False, "Whether some questions have no answer, as in SQuAD 2.0."
    )
  with flag_groups.flag_group("Windows"):
    shared_flags.define_doc_stride_flag(128)
    flags.DEFINE_integer(
      "max_query_length", 64, "Maximum length of a question in word pieces; longer ones are cut."
    )
    flags.DEFINE_bool(
      "pad_to_longest",
      False,
      "Predict windows of similar lengths together, pad each batch to its own longest, and let no "
      "answer begin or end in padding. Faster; the results differ a little, because in the "
      "original padding competes with the text.",
    )
  answer_flags.define_answer_flags()
  shared_flags.define_model_flags(max_seq_length=384)
  # Padding less changes results here: see --pad_to_longest.
  shared_flags.define_training_flags(pad_to_max_length=False)
  shared_flags.define_eval_in_training_flags()
  shared_flags.define_export_flags()
  shared_flags.define_many_seeds_flags()
  flag_groups.define_tpu_flags()
  flag_groups.mark_required(["vocab_file", "bert_config_file", "output_dir"])


def __getattr__(name: str):
  """`FLAGS` for scripts of 2018 that import this one: with its flags, as importing it left them."""
  if name != "FLAGS":
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  return flag_groups.with_flags(define_flags)


# ---------------------------------------------------------------------------------------------
# Records -> batches.


def input_fn_builder(
  input_file,
  seq_length,
  is_training,
  drop_remainder,
  *,
  has_positions=None,
  has_impossible=False,
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
    has_impossible: whether to read, with that place, whether there is an answer.
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
    if has_impossible:
      features["is_impossible"] = number
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
  return heads.get_span_logits(
    model.get_sequence_output(),
    input_mask if mask_padding else None,
    dropout_prob=heads.span_dropout_prob(bert_config) if is_training else 0.0,
  )


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
  head=None,
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
    mask_padding: let no answer begin or end in padding.
    metric_fn: `metric_fn(unique_ids, start_logits, end_logits)` of everything that was evaluated,
      int32 `[M]` and float32 `[M, S]`, -> name -> number. Without it there is only the loss.
    optimizer_options: further keywords of `optimization.create_optimizer`.
    dtype: of the matrix products.
    head: an `answer_heads.AnswerHead`; BERT's by default. Others mask padding in any case.
    distillation: a `methods.Distillation`, which makes the loss of training; else the task does.
  """

  def outputs_and_loss(config, features, mode, is_training):
    if head is not None and head.kind != "bert":
      return question_model.outputs_and_loss(
        *(config, features, mode, use_one_hot_embeddings, is_training), head=head, dtype=dtype
      )
    from bert.model import heads
    from bert.training.estimator import ModeKeys

    start_logits, end_logits = create_model(
      config,
      is_training,
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
    if mode == ModeKeys.PREDICT:
      return outputs, None
    positions = features["start_positions"], features["end_positions"]
    return outputs, heads.get_span_loss(start_logits, end_logits, *positions)

  def model_fn(features, labels, mode, params):
    from bert.optimization import create_optimizer
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels, params  # labels travel in features
    outputs, loss = outputs_and_loss(bert_config, features, mode, mode == ModeKeys.TRAIN)
    spec = EstimatorSpec(mode, predictions=outputs, loss=loss, init_checkpoint=init_checkpoint)
    if mode == ModeKeys.TRAIN:
      if distillation:
        logits = {name: outputs[name] for name in ("start_logits", "end_logits")}
        loss = distillation.teach(
          *(spec, features, logits, loss),
          lambda config: outputs_and_loss(config, features, mode, False)[0],
        )
      spec.train_op = create_optimizer(
        loss, learning_rate, num_train_steps, num_warmup_steps, use_tpu, **(optimizer_options or {})
      )
    elif mode == ModeKeys.EVAL and metric_fn:
      spec.eval_metrics = (metric_fn, outputs)
    return spec

  return model_fn


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> int | None:
  """Trains, predicts and exports as the flags say."""
  return start(run_settings.from_flags())


def start(settings: run_settings.RunSettings, run_class=None) -> int | None:
  """Makes a run of a class, by default this script's, or many; returns the exit code of many."""
  run_class = run_class or QuestionAnswering
  check_settings(settings)
  if settings.is_many_runs:
    return start_many(run_class.script, settings)
  settings = run_class.resolve(settings)
  config, tokenizer = run_settings.load_config_and_tokenizer(settings)
  with output_folder.held(settings) as settings:
    run_class(settings, config, tokenizer).run()
  return None


def check_settings(settings: run_settings.RunSettings) -> None:
  """Checks what flags alone show; see `run_settings.check_run`.

  Raises:
    ValueError: also where a file is not named, or the windows have no room.
  """
  run_settings.check_run(
    settings, nothing_to_do="At least one of `do_train` or `do_predict` must be True."
  )
  for job, needed in (
    ("do_train", "train_file"),
    ("do_predict", "predict_file"),
    ("do_eval", "predict_file"),
  ):
    if settings.values[job] and not settings.values[needed]:
      raise ValueError(f"If `{job}` is True, then `{needed}` must be specified.")
  if settings.eval_every_steps and not settings.predict_file:
    raise command_line.UsageError("--eval_every_steps evaluates on --predict_file: name one.")
  if settings.max_seq_length <= settings.max_query_length + 3:
    raise ValueError(
      f"The max_seq_length ({settings.max_seq_length}) must be greater than max_query_length "
      f"({settings.max_query_length}) + 3"
    )
  settings.check_at_least(1, "doc_stride", "max_query_length")
  answer_flags.check(settings)


class QuestionAnswering(Run):
  """One run: a model, its questions, and the folder of its results."""

  script = "run_squad"
  informative = (
    *("train_file", *INFORMATIVE),
    *("doc_stride", "max_query_length", "pad_to_longest", "null_score_diff_threshold"),
    *("beam_size", "start_n_top", "end_n_top"),
  )
  # A model of either version may answer the questions of both.
  may_differ = ("version_2_with_negative",)

  def __init__(self, settings, bert_config, tokenizer=None):
    super().__init__(settings, bert_config, tokenizer)
    self.head = answer_flags.head_of(settings, bert_config)
    # Only of BERT's head does padding change results.
    self.pads_to_longest = settings.pad_to_longest or self.head.has_beam

  def _read(self):
    settings = self.settings
    is_v2 = settings.version_2_with_negative
    self.train: list[SquadExample] = []
    self.questions: list[SquadExample] = []
    # Those of evaluation during training, whose windows are made when training begins.
    self.dev_examples: list[SquadExample] = []
    self.dev_windows: list[InputFeatures] = []
    if settings.do_train:
      self.train = read_squad_examples(settings.train_file, True, is_v2)
    if settings.do_predict or settings.do_eval:
      self.questions = read_squad_examples(settings.predict_file, False, is_v2)
      if settings.do_eval and all(example.answers is None for example in self.questions):
        raise ValueError(
          f"--do_eval: {settings.predict_file} has no correct answers. Use --do_predict."
        )
    if settings.do_train and settings.eval_every_steps:
      # Read as for training: for a loss, each question needs the position of its answer.
      self.dev_examples = read_squad_examples(settings.predict_file, True, is_v2)

  def _facts(self):
    version = {"version_2_with_negative": self.settings.version_2_with_negative}
    return {"task_name": "squad", **version, **self.head.facts()}

  def _plan(self):
    # The shuffle buffer alone would leave the questions about one article together.
    random.Random(12345).shuffle(self.train)
    # Of questions, as in the original, and not of windows, which are somewhat more.
    return self.settings.planned(len(self.train), "questions")

  def _create_model_fn(self):
    return model_fn_builder(
      bert_config=self.bert_config,
      mask_padding=self.settings.pad_to_longest,
      metric_fn=self._metric_fn,
      head=self.head,
      **self._model_options(),
    )

  # -------------------------------------------------------------------------------------------
  # Windows.

  def _features(self, examples, is_training):
    settings = self.settings
    return generate_features(
      examples,
      self.tokenizer,
      settings.max_seq_length,
      settings.doc_stride,
      settings.max_query_length,
      is_training,
      self._shown_examples(),
    )

  def _write_and_keep(self, name, examples, features, is_training, windows: list) -> str:
    """Writes windows as `OUTPUT_DIR/<name>.tf_record`, and keeps them, as all workers need them."""
    features = squad_features.kept_light(features, windows)
    if not distribution.is_chief():
      collections.deque(features, maxlen=0)
    self._write_once(name, examples, lambda path: write_features(path, features, is_training))
    collections.deque(features, maxlen=0)  # where another run has written them
    return self.settings.features_path(name)

  def _input_fn(self, path, is_training, has_positions=None):
    settings = self.settings
    return input_fn_builder(
      path,
      settings.max_seq_length,
      is_training,
      drop_remainder=is_training,
      has_positions=has_positions,
      has_impossible=self.head.reads_impossible,
      shuffle_buffer=settings.shuffle_buffer_size,
      group_by_length=settings.group_by_length,
      # TPUs compile for fixed shapes; there --pad_to_longest merely masks.
      pad_to_longest=self.pads_to_longest and not settings.use_tpu,
    )

  def _training_data(self):
    features = self._features(self.train, True)
    count = self._write_once("train", self.train, lambda path: write_features(path, features, True))
    path = self.settings.features_path("train")
    return self._input_fn(path, True), _sizes(self.train, count)

  # -------------------------------------------------------------------------------------------
  # Answers.

  def _dev_data(self):
    features = self._features(self.dev_examples, True)
    path = self._write_and_keep("dev", self.dev_examples, features, True, self.dev_windows)
    input_fn = self._input_fn(path, False, has_positions=True)
    return input_fn, "best_f1" if self.settings.version_2_with_negative else "f1"

  def _metric_names(self):
    v2 = self.settings.version_2_with_negative
    return (*(squad_scores.RESULTS_OF_2_0 if v2 else squad_scores.RESULTS_OF_1_1), "loss")

  def _metric_fn(self, **outputs):
    """The official scores, in the middle of training."""
    windows = self.dev_windows
    rows = (dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True))
    results = [self._result(**row, window=each) for row, each in zip(rows, windows, strict=True)]
    answers = self._answers_of(self.dev_examples, windows, results)
    return squad_scores.evaluate_answers(answers, self.settings.version_2_with_negative)

  def _answer_limits(self):
    return self.settings.n_best_size, self.settings.max_answer_length, self.settings.do_lower_case

  def _answer_options(self):
    return {
      "version_2_with_negative": self.settings.version_2_with_negative,
      "null_score_diff_threshold": answer_flags.threshold_of(self.settings, self.head),
      "null_rule": self.head.kind,
    }

  def _answers_of(self, examples, windows, results):
    """The answers to questions, with a threshold tuned on them if the head is for that."""
    options = {**self._answer_options(), "verbose_logging": self.settings.verbose_logging}
    answers = answer_questions(examples, windows, results, *self._answer_limits(), **options)
    return self._with_tuned_threshold(answers)

  def _with_tuned_threshold(self, answers):
    """As ALBERT: without a threshold of the user's, the one that gives these answers the best F1.

    Where no correct answers are known, it is 0.
    """
    options = self._answer_options()
    if not options["version_2_with_negative"] or options["null_score_diff_threshold"] is not None:
      return answers
    known = [each for each in answers if each.example.answers is not None]
    threshold = squad_scores.evaluate_answers(known, True)["best_f1_thresh"] if known else 0.0
    logging.info("--null_score_diff_threshold=%g, the best for these questions.", threshold)
    return [with_threshold(each, threshold, self.head.kind) for each in answers]

  def _use(self, checkpoint_path):
    """Answers the questions, and scores the answers where the correct ones are known."""
    if not self.questions:
      return
    if self.settings.average_runs:
      scores = self._answer_with_mean()
    else:
      windows, results = self._windows_and_outputs(checkpoint_path)
      scores = distribution.on_chief(self._answer, windows, results)
    if scores:
      if self.estimator:
        scores["global_step"] = int(self.estimator.store.variables["global_step"].numpy())
      self._write_results("eval_results.txt", scores, list(scores))
    if scores and self._is_one_of_many:
      failure = constant_answers.failure_of_answers(scores)
      self._summarize("f1", squad_scores.HEADLINES, failure, int(scores["total"]))

  def _windows_and_outputs(self, checkpoint_path):
    """The windows of all questions, and the model's outputs for each."""
    windows: list[InputFeatures] = []
    features = self._features(self.questions, False)
    if self.pads_to_longest:
      features = squad_features.shortest_first(features)
    path = self._write_and_keep("eval", self.questions, features, False, windows)
    logging.info("***** Running predictions *****")
    log_sizes(_sizes(self.questions, len(windows)), self.settings.predict_batch_size)
    start = time.monotonic()
    predictions = self.estimator.predict(self._input_fn(path, False), checkpoint_path)
    results = []
    for number, (prediction, window) in enumerate(zip(predictions, windows, strict=True)):
      if number % 1000 == 0:
        logging.info("Processing example: %d of %d", number, len(windows))
      results.append(self._result(**prediction, window=window))
    # A question's windows follow each other, in the order of its paragraph.
    windows.sort(key=lambda window: window.unique_id)
    seconds = time.monotonic() - start
    logging.info("Prediction took %.1f s, %.1f windows/s.", seconds, len(windows) / seconds)
    return windows, results

  def _result(self, unique_ids, window, start_logits=None, end_logits=None, **others):
    """What the model said of a window: a `RawResult` of BERT's head, else a `WindowScores`."""
    if self.head.kind != "bert":
      return scores_of(unique_ids, start_logits, end_logits, **others)
    # With --pad_to_longest padding is no place for an answer, and its amount has no meaning.
    settings = self.settings
    length = len(window.tokens) if settings.pad_to_longest else settings.max_seq_length
    return RawResult(int(unique_ids), start_logits[:length], end_logits[:length])

  def _answer(self, windows, results) -> dict[str, float]:
    """Writes the files of answers, and scores those whose correct answers are known."""
    settings = self.settings
    answers = self._answers_of(self.questions, windows, results)
    paths = list(map(settings.path, ANSWER_FILES))
    write_answers(answers, paths, settings.version_2_with_negative)
    return squad_scores.known_scores(
      answers, settings.version_2_with_negative, settings.predict_file
    )

  def _answer_with_mean(self) -> dict[str, float]:
    """As `_answer`, with the mean of what `--average_runs` have answered."""
    settings, options = self.settings, self._answer_options()
    folders = settings.average_runs.split(",")
    answers = mean_answers(folders, self.questions, n_best_size=settings.n_best_size, **options)
    answers = self._with_tuned_threshold(answers)
    is_v2 = settings.version_2_with_negative
    write_answers(answers, list(map(settings.path, ANSWER_FILES)), is_v2)
    return squad_scores.known_scores(answers, is_v2, settings.predict_file)

  def _task_model(self):
    names = ("max_seq_length", "doc_stride", "max_query_length", "n_best_size", "max_answer_length")
    return {
      "model": "SpanModel",
      **{name: self.settings.values[name] for name in names},
      "version_2_with_negative": self.settings.version_2_with_negative,
      "null_score_diff_threshold": self.settings.null_score_diff_threshold,
      "mask_padding": self.settings.pad_to_longest,
      "head": dataclasses.asdict(self.head),
    }


def _sizes(examples, num_windows) -> dict[str, int]:
  return {"Num orig examples": len(examples), "Num split examples": num_windows}


if __name__ == "__main__":
  command_line.run(main, define_flags)
