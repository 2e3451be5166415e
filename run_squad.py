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

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import collections
import functools
import time

from absl import logging

from bert.fine_tuning import engine
from bert.fine_tuning.model_fn import model_fn_of
from bert.fine_tuning.task import DataSet, Task
from bert.model.answer_heads import AnswerHead
from bert.model.span_head import SpanHead
from bert.model.task_head import SEQUENCES, Batch, model_options
from bert.scripts import command_line, flag_groups, result_files
from bert.scripts.settings import UsageError
from bert.scripts.squad_settings import SquadSettings, head_of, threshold_of
from bert.scripts.steps import log_sizes
from bert.tasks import answer_texts, constant_answers, squad_features, squad_scores
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

RawResult = collections.namedtuple("RawResult", ["unique_id", "start_logits", "end_logits"])


define_flags = functools.partial(flag_groups.define, SquadSettings)


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
  features = dict(zip(SEQUENCES, (input_ids, input_mask, segment_ids), strict=True))
  options = model_options(use_one_hot_embeddings, dtype)
  head = SpanHead(mask_padding=mask_padding)
  return head.logits_of(Batch(bert_config, features, is_training, options))


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

  return model_fn_of(
    SpanHead(head or AnswerHead(), mask_padding),
    bert_config,
    init_checkpoint,
    learning_rate,
    num_train_steps,
    num_warmup_steps,
    use_tpu,
    use_one_hot_embeddings,
    metric_fn=metric_fn,
    optimizer_options=optimizer_options,
    dtype=dtype,
    distillation=distillation,
  )


# ---------------------------------------------------------------------------------------------
# The task.


class QuestionAnswering(Task):
  """Questions, each about a paragraph, which is read in windows."""

  settings_class = SquadSettings
  name = "squad"
  unit = "questions"
  informative_flags = (
    *("train_file", "doc_stride", "max_query_length", "pad_to_longest"),
    *("null_score_diff_threshold", "beam_size", "start_n_top", "end_n_top", "answer_scores"),
  )
  # A model of either version may answer the questions of both.
  ignored_in_eval = ("version_2_with_negative",)
  task_flags = (
    *("doc_stride", "max_query_length", "version_2_with_negative", "pad_to_longest"),
    "answer_scores",
  )
  result_keys = result_files.ORIGINAL_KEYS
  problem_type = "spans"
  keeps_records = True  # windows, to find answers in them

  def __init__(self, settings, config=None, tokenizer=None):
    super().__init__(settings, config, tokenizer)
    self.answer_head = head_of(settings, config)
    # Only of BERT's head does padding change results.
    self.pads_to_longest = settings.pad_to_longest or self.answer_head.has_beam
    is_v2 = settings.version_2_with_negative
    self.headline = "best_f1" if is_v2 else "f1"
    self.dev: list[SquadExample] = []
    # Split -> windows without their ids, in the order of the records.
    self.windows: dict[str, list[InputFeatures]] = {}

  def facts(self):
    """Returns the version, and what decides the head's variables."""
    version = {"version_2_with_negative": self.settings.version_2_with_negative}
    return {**super().facts(), **version, **self.answer_head.facts()}

  # -------------------------------------------------------------------------------------------
  # Questions and windows.

  def splits(self):
    """Yields `test` for the questions to answer, `dev` for evaluation during training."""
    settings = self.settings
    if settings.do_train:
      yield "train"
    if settings.do_predict or settings.do_eval:
      yield "test"
    if settings.do_train and settings.eval_every_steps:
      yield "dev"

  def read(self, split):
    """Reads questions; those of `dev` as for training: a loss needs the place of each answer."""
    settings = self.settings
    is_v2 = settings.version_2_with_negative
    if split != "test":
      file = settings.train_file if split == "train" else settings.predict_file
      examples = read_squad_examples(file, True, is_v2)
      if split == "train":
        return examples
      self.dev = examples
      squad_scores.warn_of_words(examples, file, settings.answer_scores)
      return [DataSet("dev", examples, record_name="dev")]
    questions = read_squad_examples(settings.predict_file, False, is_v2)
    if settings.do_eval and all(example.answers is None for example in questions):
      raise ValueError(
        f"--do_eval: {settings.predict_file} has no correct answers. Use --do_predict."
      )
    squad_scores.warn_of_words(questions, settings.predict_file, settings.answer_scores)
    return [DataSet("test", questions, record_name="eval")]

  def view(self, example):
    """Returns the question and its paragraph, and the right answers."""
    return {"question": example.question_text, "context": example.context}, example.answers

  def score(self, data, answers):
    """Computes the scores of the official scripts; without correct answers there are none."""
    predicted = {e.qas_id: a["answer"] for e, a in zip(data.examples, answers, strict=True)}
    correct = {each.qas_id: each.answers for each in data.examples}
    is_v2 = self.settings.version_2_with_negative
    if None in correct.values():
      raise KeyError("answers")
    evaluate = squad_scores.evaluate_v2 if is_v2 else squad_scores.evaluate_v1
    return evaluate(correct, predicted, rules=self.settings.answer_scores)

  def sizes(self, data, num_records):
    """Returns the numbers of questions and of their windows."""
    return {"Num orig examples": len(data), "Num split examples": num_records}

  def records(self, data, num_shown):
    """Converts questions to windows; keeps those that are answered."""
    settings = self.settings
    has_positions = data.split != "test"
    features = generate_features(
      data.examples,
      self.tokenizer,
      settings.max_seq_length,
      settings.doc_stride,
      settings.max_query_length,
      has_positions,
      num_shown,
    )
    if data.split == "test" and self.pads_to_longest:
      features = squad_features.shortest_first(features)
    if not data.is_training:
      self.windows[data.split] = []
      features = squad_features.kept_light(features, self.windows[data.split])
    for feature in features:
      yield squad_features.record_of(feature, has_positions)

  def padding_record(self, data):
    """Returns None: a last batch may be short."""
    return None

  def input_fn(self, path, data):
    """Reads batches of windows."""
    settings = self.settings
    return input_fn_builder(
      path,
      settings.max_seq_length,
      data.is_training,
      drop_remainder=data.is_training,
      has_positions=data.split != "test",
      has_impossible=self.answer_head.reads_impossible,
      shuffle_buffer=settings.shuffle_buffer_size,
      group_by_length=settings.group_by_length,
      # TPUs compile for fixed shapes; there --pad_to_longest merely masks.
      pad_to_longest=self.pads_to_longest and not settings.use_tpu,
    )

  # -------------------------------------------------------------------------------------------
  # The head, and the answers.

  def head(self):
    """Scores the places where an answer may begin and end."""
    return SpanHead(self.answer_head, self.settings.pad_to_longest)

  def check_teacher(self, teacher):
    """Checks that both have the same head for answers."""
    if self.answer_head.facts() != AnswerHead.of_run(teacher.facts, {}).facts():
      raise UsageError(
        f"--teacher={self.settings.teacher} has another head for answers than the student: the "
        "student must be of the same family, with the same --answer flags."
      )

  def distillation_loss(self, comparison):
    """Compares the softmax over all positions, of the beginning and of the end."""
    return comparison.mean()

  def metric_names(self):
    """Returns the official scores, and the loss."""
    v2 = self.settings.version_2_with_negative
    return (*(squad_scores.RESULTS_OF_2_0 if v2 else squad_scores.RESULTS_OF_1_1), "loss")

  def evaluate(self, **tensors):
    """Computes the official scores, in the middle of training."""
    rows = zip(*tensors.values(), strict=True)
    predictions = (dict(zip(tensors, row, strict=True)) for row in rows)
    windows = self.windows["dev"]
    results = [self._result(w, **p) for w, p in zip(windows, predictions, strict=True)]
    answers = self._answers_of(self.dev, windows, results)
    settings = self.settings
    return squad_scores.evaluate_answers(
      answers, settings.version_2_with_negative, settings.answer_scores
    )

  def use(self, run, checkpoint_path):
    """Answers the questions, and scores the answers where the correct ones are known."""
    if "test" not in run.sets:
      return
    [data] = run.sets["test"]
    results = self._results_of(run, data, checkpoint_path)
    scores = distribution.on_chief(self._answer, data, results)
    if scores:
      scores["global_step"] = int(run.estimator.store.variables["global_step"].numpy())
      run.write_results("eval_results.txt", scores, list(scores))
      failure = constant_answers.failure_of_answers(scores)
      constant_answers.warn_of(failure)
      run.summarize("f1", squad_scores.HEADLINES, failure, int(scores["total"]))

  def _results_of(self, run, data, checkpoint_path):
    """Computes what the model says of each window, in the order of the paragraphs."""
    input_fn, sizes = run.batches(data)
    windows = self.windows["test"]
    logging.info("***** Running predictions *****")
    log_sizes(sizes, self.settings.predict_batch_size)
    start = time.monotonic()
    predictions = run.estimator.predict(input_fn, checkpoint_path)
    results = []
    for number, (prediction, window) in enumerate(zip(predictions, windows, strict=True)):
      if number % 1000 == 0:
        logging.info("Processing example: %d of %d", number, len(windows))
      results.append(self._result(window, **prediction))
      scores = {n: value[None] for n, value in prediction.items() if n != "unique_ids"}
      ids = self.tokenizer.convert_tokens_to_ids(window.tokens)
      run.known_rows.add([ids], [[1] * len(ids)], scores)
    # A question's windows follow each other, in the order of its paragraph.
    windows.sort(key=lambda window: window.unique_id)
    seconds = time.monotonic() - start
    logging.info("Prediction took %.1f s, %.1f windows/s.", seconds, len(windows) / seconds)
    return results

  def _result(self, window, unique_ids, start_logits=None, end_logits=None, **others):
    """Returns a `RawResult` of BERT's head, else a `WindowScores`."""
    if self.answer_head.kind != "bert":
      return scores_of(unique_ids, start_logits, end_logits, **others)
    # With --pad_to_longest padding is no place for an answer, and its amount has no meaning.
    settings = self.settings
    length = len(window.tokens) if settings.pad_to_longest else settings.max_seq_length
    return RawResult(int(unique_ids), start_logits[:length], end_logits[:length])

  def _answer_options(self):
    return {
      "version_2_with_negative": self.settings.version_2_with_negative,
      "null_score_diff_threshold": threshold_of(self.settings, self.answer_head),
      "null_rule": self.answer_head.kind,
    }

  def _answers_of(self, examples, windows, results):
    """Finds the answers, with a threshold tuned on them if the head is for that."""
    settings = self.settings
    answers = answer_questions(
      examples,
      windows,
      results,
      settings.n_best_size,
      settings.max_answer_length,
      answer_texts.splitting_of(self.tokenizer),
      **self._answer_options(),
      verbose_logging=settings.verbose_logging,
    )
    return self._with_tuned_threshold(answers)

  def _with_tuned_threshold(self, answers):
    """As ALBERT: without a threshold of the user's, the one that gives these answers the best F1.

    Where no correct answers are known, it is 0.
    """
    options = self._answer_options()
    if not options["version_2_with_negative"] or options["null_score_diff_threshold"] is not None:
      return answers
    known = [each for each in answers if each.example.answers is not None]
    rules = self.settings.answer_scores
    scores = squad_scores.evaluate_answers(known, True, rules) if known else {}
    threshold = scores.get("best_f1_thresh", 0.0)
    logging.info("--null_score_diff_threshold=%g, the best for these questions.", threshold)
    return [with_threshold(each, threshold, self.answer_head.kind) for each in answers]

  def _answer(self, data, results):
    return self._write(self._answers_of(data.examples, self.windows["test"], results))

  def _write(self, answers) -> dict[str, float]:
    """Writes the files of answers, and scores those whose correct answers are known."""
    settings = self.settings
    is_v2 = settings.version_2_with_negative
    write_answers(answers, list(map(settings.path, ANSWER_FILES)), is_v2)
    return squad_scores.known_scores(answers, is_v2, settings.predict_file, settings.answer_scores)


main = engine.main_of(QuestionAnswering)

if __name__ == "__main__":
  command_line.run(main, define_flags)
