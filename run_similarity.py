"""Trains BERT to give texts of similar meaning similar vectors (Sentence-BERT).

  python run_similarity.py --task_name=STS-B --do_train --do_eval --data_dir=$GLUE_DIR/STS-B \\
    --init_checkpoint=uncased_L-12_H-768_A-12 --max_seq_length=64 --train_batch_size=16 \\
    --learning_rate=2e-5 --num_train_epochs=4 --output_dir=/tmp/sts_output/

Your own data: train, dev and test .csv, .tsv or .jsonl with the columns text_a, text_b and score
(0 to 1, or --min_score and --max_score), for --loss=cosine; or text_a and text_b that belong
together, for --loss=in_batch_negatives, with texts that do not in a column `negative`, if you like.
The vectors: extract_features.py --similarity, predict.py --task=vectors, Predictor.from_checkpoint.
"""

import functools
import math
import random

from absl import flags, logging

from bert.checkpoints import sentence_pooling
from bert.io import record_files
from bert.io.tables import DataError
from bert.scripts import (
  command_line,
  flag_groups,
  output_folder,
  result_files,
  run_settings,
  shared_flags,
)
from bert.scripts.steps import INFORMATIVE, Run, filled_up, log_sizes
from bert.tasks import similarity
from bert.training import distribution

_ENDINGS = ("tsv", "csv", "jsonl")
_SEQUENCES = ("input_ids", "input_mask")

COSINE, IN_BATCH_NEGATIVES = "cosine", "in_batch_negatives"


def define_flags() -> None:
  """Defines this script's flags; those it shares with the original's scripts are theirs."""
  with flag_groups.flag_group("Task and data"):
    flags.DEFINE_string(
      "task_name", "csv", "STS-B in GLUE's files, or csv for your own tables (.tsv .csv .jsonl)."
    )
    shared_flags.define_split_flags("Folder with train, dev and test: .tsv, .csv or .jsonl.")
    shared_flags.define_run_flags(
      "Whether to evaluate on the dev file.", "Whether to predict the test file."
    )
    flags.DEFINE_string(
      "text_a_column", None, "Column of the text: name or number from 0. [text_a]"
    )
    flags.DEFINE_string("text_b_column", None, "Column of the second text. [text_b]")
    flags.DEFINE_string(
      "label_column", None, "Column of the similarity, a number. [score, if it exists]"
    )
    flags.DEFINE_string(
      "negative_column",
      None,
      "in_batch_negatives: column of a text that does not fit text_a. [negative, if it exists]",
    )
    flags.DEFINE_string("id_column", None, "Column that identifies a row. [id, if it exists]")
    flags.DEFINE_float("min_score", 0.0, "The score of texts that have nothing in common.")
    flags.DEFINE_float(
      "max_score", None, "The score of texts of the same meaning. [1, for STS-B 5]"
    )
    flags.DEFINE_bool("header", True, "Whether the first row names the columns.")
    shared_flags.define_skip_bad_rows_flag(default=False)
  with flag_groups.flag_group("Similarity"):
    flags.DEFINE_enum(
      "pooling",
      None,
      list(sentence_pooling.POOLINGS),
      "How the vectors of a text's pieces become one: that of [CLS], or mean or max over them. "
      "[that of --init_checkpoint, if it was trained here; else mean]",
    )
    flags.DEFINE_enum(
      "loss",
      COSINE,
      [COSINE, IN_BATCH_NEGATIVES],
      "cosine: squared error of the cosine, for pairs with scores. in_batch_negatives: each text_a "
      "has to find its text_b among those of the batch; larger batches are harder and better.",
    )
    flags.DEFINE_float(
      "min_positive_score",
      None,
      "in_batch_negatives: train only on pairs with at least this score, if they have scores.",
    )
  shared_flags.define_fine_tuning_flags()


# ---------------------------------------------------------------------------------------------
# Pairs -> records -> batches.


def write_features(path: str, features) -> int:
  """Writes rows of texts as a TFRecord file, which appears when it is complete.

  Args:
    path: the file.
    features: an iterable of `similarity.PairFeatures`, taken one by one.

  Returns:
    How many were written.

  Raises:
    OSError: the file cannot be written.
  """
  return record_files.write_records(path, map(vars, features))


def input_fn_builder(input_file, num_texts, seq_length, is_training, drop_remainder, **reading):
  """An input_fn over a file of `write_features`.

  Args:
    input_file: the TFRecord file.
    num_texts: N it was written with.
    seq_length: `max_seq_length` it was written with.
    is_training: repeat and shuffle.
    drop_remainder: leave out a last batch that is short.
    **reading: further keywords of `input_pipeline.record_input_fn`.

  Returns:
    `input_fn(params)` -> `tf.data.Dataset` of name -> int32 `[B, N, S]`, or `[B]`; `score` is
    float32 `[B]`.
  """
  import tensorflow as tf

  from bert.training import input_pipeline

  sequences = tf.io.FixedLenFeature([num_texts, seq_length], tf.int64)
  features = {
    **dict.fromkeys(_SEQUENCES, sequences),
    "score": tf.io.FixedLenFeature([], tf.float32),
    "is_real_example": tf.io.FixedLenFeature([], tf.int64),
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
  pooling,
  use_one_hot_embeddings,
  *,
  dtype="float32",
):
  """One BERT for all texts of a row, and the vector of each text.

  Args:
    bert_config: a `modeling.BertConfig`.
    is_training: whether to drop out.
    input_ids: int `[B, N, S]`.
    input_mask: int `[B, N, S]`, all 0 for a text that only fills its row.
    pooling: see `bert.model.similarity.pool`.
    use_one_hot_embeddings: look words up by a matrix product (for TPUs).
    dtype: of the matrix products.

  Returns:
    float32 `[B, N, W]`.
  """
  import tensorflow as tf

  from bert import modeling
  from bert.model import similarity as similarity_model

  shape = modeling.get_shape_list(input_ids, expected_rank=3)
  flat_ids, flat_mask = (tf.reshape(each, [-1, shape[2]]) for each in (input_ids, input_mask))
  # No text is without a piece: the mean over none would be NaN.
  flat_mask = tf.maximum(flat_mask, tf.one_hot(0, shape[2], dtype=flat_mask.dtype))
  model = modeling.BertModel(
    config=bert_config,
    is_training=is_training,
    input_ids=flat_ids,  # [B*N, S]
    input_mask=flat_mask,
    use_one_hot_embeddings=use_one_hot_embeddings,
    dtype=tf.as_dtype(dtype),
    # TPUs compile for fixed shapes, which skipping padding does not have.
    skip_padding=not use_one_hot_embeddings,
  )
  vectors = similarity_model.pool(model.get_sequence_output(), flat_mask, pooling)  # [B*N, W]
  return tf.reshape(vectors, [shape[0], shape[1], bert_config.hidden_size])


def model_fn_builder(
  bert_config,
  pooling,
  loss_name,
  init_checkpoint,
  learning_rate,
  num_train_steps,
  num_warmup_steps,
  use_tpu,
  use_one_hot_embeddings,
  *,
  evaluates_scores=True,
  optimizer_options=None,
  dtype="float32",
):
  """Returns the `model_fn` of an `estimator.Estimator`; arguments as of `create_model`.

  Args:
    bert_config: a `modeling.BertConfig`.
    pooling: see `bert.model.similarity.pool`.
    loss_name: `cosine` or `in_batch_negatives`, of training.
    init_checkpoint: where variables start, or None.
    learning_rate: peak rate.
    num_train_steps: steps of the whole run.
    num_warmup_steps: steps of warm-up.
    use_tpu: whether this runs on a TPU.
    use_one_hot_embeddings: look words up by a matrix product.
    evaluates_scores: whether the dev set has scores, so that evaluation compares cosines with them;
      else it ranks the dev set's texts.
    optimizer_options: further keywords of `optimization.create_optimizer`.
    dtype: of the matrix products.
  """

  def model_fn(features, labels, mode, params):
    import tensorflow as tf

    from bert.model import similarity as similarity_model
    from bert.optimization import create_optimizer
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels, params  # labels travel in features
    input_ids, input_mask = (features[name] for name in _SEQUENCES)
    vectors = create_model(
      bert_config,
      mode == ModeKeys.TRAIN,
      input_ids,
      input_mask,
      pooling,
      use_one_hot_embeddings,
      dtype=dtype,
    )
    cosines = similarity_model.cosines(vectors[:, 0], vectors[:, 1])
    compares = loss_name == COSINE if mode == ModeKeys.TRAIN else evaluates_scores
    if compares:
      loss, per_example_loss = similarity_model.get_cosine_loss(cosines, features["score"])
    else:
      loss, per_example_loss = similarity_model.get_ranking_loss(vectors, input_ids)
    spec = EstimatorSpec(mode=mode, loss=loss, init_checkpoint=init_checkpoint)
    if mode == ModeKeys.TRAIN:
      spec.train_op = create_optimizer(
        loss, learning_rate, num_train_steps, num_warmup_steps, use_tpu, **(optimizer_options or {})
      )
    elif mode == ModeKeys.PREDICT:
      spec.predictions = {"similarity": cosines}
    else:
      tensors = {"losses": per_example_loss, "is_real_example": features["is_real_example"]}
      if compares:
        tensors |= {"cosines": cosines, "scores": features["score"]}
      else:
        tensors |= {"vectors": vectors, "is_text": tf.reduce_max(input_mask, axis=-1)}
      spec.eval_metrics = (score_metrics if compares else ranking_metrics, tensors)
    return spec

  return model_fn


def score_metrics(losses, is_real_example, cosines, scores):
  """Correlations of the cosines with the scores, and the mean loss; all are arrays `[M]`."""
  from bert.tasks import metrics

  return metrics.compute_metrics(
    ["spearman", "pearson"], scores, cosines, is_real_example, "regression", losses
  )


def ranking_metrics(losses, is_real_example, vectors, is_text):
  """`similarity.ranking_scores` of all rows, and the mean of the losses of their batches."""
  from bert.tasks import metrics

  scores = similarity.ranking_scores(vectors, is_text)
  scores["loss"] = metrics.mean_loss(losses, is_real_example)
  return {f"eval_{name}": value for name, value in scores.items()}


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> None:
  """Trains, evaluates, predicts and exports as the flags say."""
  settings = run_settings.from_flags()
  check_settings(settings)
  settings = run_settings.resolve(settings)
  config, tokenizer = run_settings.load_config_and_tokenizer(settings)
  with output_folder.held(settings) as settings:
    Similarity(settings.replace(pooling=_pooling(settings)), config, tokenizer).run()


def _pooling(settings: run_settings.RunSettings) -> str:
  """`--pooling`, else that of the run to resume, else that of the first weights."""
  from bert.checkpoints import finding

  earlier = finding.latest(settings.output_dir) or settings.init_checkpoint
  return sentence_pooling.choose(settings.pooling, earlier, "mean")


def check_settings(settings: run_settings.RunSettings) -> None:
  """Checks what flags alone show; see `run_settings.check_run`."""
  run_settings.check_run(settings)
  settings.check_at_least(3, "max_seq_length")
  run_settings.check_split_files(settings)
  task = _task(settings)
  low, high = settings.min_score, task["max_score"]
  if not -math.inf < low < high < math.inf:
    raise command_line.UsageError(
      f"--min_score={low:g} --max_score={high:g}: the scale needs two ends, the lower first."
    )
  if settings.loss == IN_BATCH_NEGATIVES:
    _check_negatives(settings)
  elif settings.negative_column is not None or settings.min_positive_score is not None:
    name = "negative_column" if settings.negative_column is not None else "min_positive_score"
    raise command_line.UsageError(
      f"--{name} is for --loss={IN_BATCH_NEGATIVES}; --loss={settings.loss} learns from scores."
    )


def _check_negatives(settings: run_settings.RunSettings) -> None:
  parts = settings.gradient_accumulation_steps
  if settings.do_train and settings.train_batch_size // parts < 2:
    raise command_line.UsageError(
      f"--train_batch_size={settings.train_batch_size} --gradient_accumulation_steps={parts}: with "
      f"--loss={IN_BATCH_NEGATIVES} a text is compared with the others of its part of the batch, "
      "so a part needs at least 2. The paper's batches have 16 or more."
    )


def _task(settings: run_settings.RunSettings) -> dict:
  """The arguments of `PairReader` for `--task_name`, changed by flags."""
  name = settings.task_name.lower().replace("_", "-")
  name = "sts-b" if name == "stsb" else name
  if name not in similarity.TASKS:
    raise command_line.UsageError(
      f"--task_name={settings.task_name}: this script knows {', '.join(similarity.TASKS)}. Read "
      "other files as csv, with --text_a_column, --text_b_column and --label_column."
    )
  options = {"max_score": 1.0, **similarity.TASKS[name]}
  names = ("text_a_column", "text_b_column", "label_column", "negative_column", "id_column")
  for flag in (*names, "min_score", "max_score", "header", "skip_bad_rows"):
    if settings.values[flag] is not None:
      options[flag] = settings.values[flag]
  return options


class Similarity(Run):
  """One run: a model, its pairs of texts, and the folder of its results."""

  informative = (*INFORMATIVE, "loss")
  result_keys = (
    *(f"eval_{key}" for key in ("spearman", "pearson", "accuracy", "mrr", "loss")),
    *("global_step", "loss"),
  )

  def _read(self) -> None:
    settings = self.settings
    self.reader = similarity.PairReader(**_task(settings))
    self.ranks = settings.loss == IN_BATCH_NEGATIVES
    self.train = self._read_train() if settings.do_train else []
    self.dev = self._read_dev() if settings.reads_dev_set else []
    self.test = self._read_file("test", takes_negatives=False) if settings.do_predict else []

  def _read_file(self, split, **options):
    path = self.settings.split_file(split, (split,), _ENDINGS)
    return self.reader.read(path, split, **options)

  def _read_train(self):
    pairs = self._read_file("train", needs_scores=not self.ranks, takes_negatives=self.ranks)
    file = self.settings.split_file("train", ("train",), _ENDINGS)
    if self.ranks:
      pairs = self._similar_enough(pairs, file)
      _check_ranking(pairs, file)
    elif len({pair.score for pair in pairs}) == 1:
      raise DataError(
        "all pairs have the same score: one vector for every text would be right.",
        file,
        advice=f"For pairs that belong together: --loss={IN_BATCH_NEGATIVES}.",
      )
    return pairs

  def _similar_enough(self, pairs, file):
    """The pairs with `--min_positive_score`; all if they have no scores."""
    given = self.settings.min_positive_score
    if pairs[0].score is None:
      if given is not None:
        raise DataError("--min_positive_score needs a column of scores.", file)
      return pairs
    if given is None:
      raise DataError(
        f"the pairs have scores, but --loss={IN_BATCH_NEGATIVES} takes each pair for similar.",
        file,
        advice="Give --min_positive_score, to train on those with at least that score.",
      )
    least = self.reader.on_unit_scale(given)
    chosen = [pair for pair in pairs if pair.score >= least]
    if not chosen:
      raise DataError(f"no pair has --min_positive_score={given:g}.", file)
    logging.info("%d of %d pairs have --min_positive_score.", len(chosen), len(pairs))
    return chosen

  def _read_dev(self):
    # Without scores, texts are ranked; a run that does not train need not say how it was trained.
    is_scored = self.settings.do_train and not self.ranks
    pairs = self._read_file("dev", needs_scores=is_scored, takes_negatives=not is_scored)
    if pairs[0].score is None:
      _check_ranking(pairs, self.settings.split_file("dev", ("dev",), _ENDINGS))
    return pairs

  def _facts(self):
    return {"task_name": "similarity", "pooling": self.settings.pooling}

  def _plan(self):
    # The shuffle buffer alone would leave pairs of one source together.
    random.Random(12345).shuffle(self.train)
    return self.settings.planned(len(self.train), "pairs")

  def _create_model_fn(self):
    return model_fn_builder(
      bert_config=self.bert_config,
      pooling=self.settings.pooling,
      loss_name=self.settings.loss,
      evaluates_scores=self._dev_has_scores(),
      **self.settings.model_options,
    )

  def _dev_has_scores(self) -> bool:
    return bool(self.dev) and self.dev[0].score is not None

  def _input_fn(self, pairs, name, is_training=False):
    """Writes the pairs as `OUTPUT_DIR/<name>.tf_record` and reads them from there."""
    path = self.settings.features_path(name)
    distribution.on_chief(write_features, path, self._features(pairs, name))
    return input_fn_builder(
      path,
      len(pairs[0].texts),
      self.settings.max_seq_length,
      is_training,
      drop_remainder=is_training or self.settings.use_tpu,
      **self.settings.reading_options,
    )

  def _features(self, pairs, name):
    length = self.settings.max_seq_length
    features = similarity.convert_examples_to_features(
      pairs, length, self.tokenizer, self._shown_examples()
    )
    if not self.settings.use_tpu or name == "train":
      return features
    batch_size = self.settings.values[f"{name}_batch_size"]
    padding = functools.partial(similarity.padding_features, len(pairs[0].texts), length)
    return filled_up(features, batch_size, padding)

  def _training_data(self):
    return self._input_fn(self.train, "train", is_training=True), {"Num pairs": len(self.train)}

  def _dev_data(self):
    return self._input_fn(self.dev, "eval"), self._metric_names()[0]

  def _metric_names(self):
    scores = ("spearman", "pearson") if self._dev_has_scores() else ("mrr", "accuracy")
    return [*(f"eval_{name}" for name in (*scores, "loss")), "loss"]

  def _evaluate(self, checkpoint_path):
    input_fn = self._input_fn(self.dev, "eval")
    self._evaluate_on(input_fn, {"Num pairs": len(self.dev)}, checkpoint_path)

  def _predict(self, checkpoint_path):
    settings, test = self.settings, self.test
    input_fn = self._input_fn(test, "predict")
    logging.info("***** Running prediction *****")
    log_sizes({"Num pairs": len(test)}, settings.predict_batch_size)
    predictions = self.estimator.predict(input_fn=input_fn, checkpoint_path=checkpoint_path)
    found = [prediction["similarity"] for prediction in predictions][: len(test)]
    result_files.write_predictions(
      settings.output_dir,
      "",
      [pair.guid for pair in test],
      [[each] for each in found],
      ["similarity"],
      "regression",
    )

  def _task_model(self):
    settings = self.settings
    return {
      "model": "VectorModel",
      "max_seq_length": settings.max_seq_length,
      "pooling": settings.pooling,
    }


def _check_ranking(pairs, file: str) -> None:
  """Raises a DataError where there is nothing to choose from."""
  if len({text for pair in pairs for text in pair.texts[1:] if text}) < 2:
    raise DataError(
      f"--loss={IN_BATCH_NEGATIVES} compares a text with the second texts of other pairs, but all "
      f"{len(pairs)} are equal.",
      file,
    )


if __name__ == "__main__":
  command_line.run(main, define_flags)
