"""Trains BERT to give texts of similar meaning similar vectors (Sentence-BERT).

  python run_similarity.py --task_name=STS-B --do_train --do_eval --data_dir=$GLUE_DIR/STS-B \\
    --init_checkpoint=uncased_L-12_H-768_A-12 --max_seq_length=64 --train_batch_size=16 \\
    --learning_rate=2e-5 --num_train_epochs=4 --output_dir=/tmp/sts_output/

Your own data: train, dev and test .csv, .tsv or .jsonl with the columns text_a, text_b and score
(0 to 1, or --min_score and --max_score), for --loss=cosine; or text_a and text_b that belong
together, for --loss=in_batch_negatives, with texts that do not in a column `negative`, if you like.
The vectors: extract_features.py --similarity, predict.py --task=vectors, Predictor.load.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import math
from typing import Any

from absl import logging

from bert.checkpoints import sentence_pooling
from bert.fine_tuning import engine
from bert.fine_tuning.task import LENGTH, Task
from bert.io.tables import DataError
from bert.model.vector_head import VectorHead
from bert.scripts import result_files
from bert.scripts.run_settings import SplitSettings
from bert.scripts.settings import Settings, UsageError, setting
from bert.tasks import similarity

COSINE, IN_BATCH_NEGATIVES = "cosine", "in_batch_negatives"


class VectorSettings(Settings, title="Similarity"):
  """How vectors are made and compared."""

  pooling: str | None = setting(
    None,
    "How the vectors of a text's pieces become one: that of [CLS], or mean or max over them. "
    "[that of --init_checkpoint, if it was trained here; else mean]",
    choices=sentence_pooling.POOLINGS,
  )
  loss: str = setting(
    COSINE,
    "cosine: squared error of the cosine, for pairs with scores. in_batch_negatives: each text_a "
    "has to find its text_b among those of the batch; larger batches are harder and better.",
    choices=[COSINE, IN_BATCH_NEGATIVES],
  )
  min_positive_score: float | None = setting(
    None, "in_batch_negatives: train only on pairs with at least this score, if they have scores."
  )


class SimilaritySettings(VectorSettings, SplitSettings, title="Task and data"):
  """A run of this script."""

  task_name: str = setting(
    "csv", "STS-B in GLUE's files, or csv for your own tables (.tsv .csv .jsonl)."
  )
  text_a_column: str | None = setting(
    None, "Column of the text: name or number from 0. [text_a, or text]"
  )
  text_b_column: str | None = setting(None, "Column of the second text. [text_b]")
  label_column: str | None = setting(
    None, "Column of the similarity, a number. [score, if it exists]"
  )
  negative_column: str | None = setting(
    None,
    "in_batch_negatives: column of a text that does not fit text_a. [negative, if it exists]",
  )
  id_column: str | None = setting(None, "Column that identifies a row. [id, if it exists]")
  min_score: float = setting(0.0, "The score of texts that have nothing in common.")
  max_score: float | None = setting(
    None, "The score of texts of the same meaning. [1, for STS-B 5]"
  )
  header: bool = setting(True, "Whether the first row names the columns.")

  def check(self):
    """See base class; also checks the scale of scores, and what the loss needs."""
    super().check()
    low, high = self.min_score, self.reader_options["max_score"]
    if not -math.inf < low < high < math.inf:
      raise UsageError(
        f"--min_score={low:g} --max_score={high:g}: the scale needs two ends, the lower first."
      )
    if self.loss == IN_BATCH_NEGATIVES:
      self._check_negatives()
    elif self.negative_column is not None or self.min_positive_score is not None:
      name = "negative_column" if self.negative_column is not None else "min_positive_score"
      raise UsageError(
        f"--{name} is for --loss={IN_BATCH_NEGATIVES}; --loss={self.loss} learns from scores."
      )

  def _check_negatives(self) -> None:
    parts = self.gradient_accumulation_steps
    if self.do_train and self.train_batch_size // parts < 2:
      raise UsageError(
        f"--train_batch_size={self.train_batch_size} --gradient_accumulation_steps={parts}: with "
        f"--loss={IN_BATCH_NEGATIVES} a text is compared with the others of its part of the "
        "batch, so a part needs at least 2. The paper's batches have 16 or more."
      )

  @property
  def reader_options(self) -> dict[str, Any]:
    """The arguments of `PairReader` for `task_name`, changed by other settings."""
    name = self.task_name.lower().replace("_", "-")
    name = "sts-b" if name == "stsb" else name
    if name not in similarity.TASKS:
      raise UsageError(
        f"--task_name={self.task_name}: this script knows {', '.join(similarity.TASKS)}. Read "
        "other files as csv, with --text_a_column, --text_b_column and --label_column."
      )
    names = ("text_a_column", "text_b_column", "label_column", "negative_column", "id_column")
    own = {
      name: value
      for name in (*names, "min_score", "max_score", "header", "skip_bad_rows")
      if (value := getattr(self, name)) is not None
    }
    return {"max_score": 1.0, **similarity.TASKS[name], **own}


class Similarity(Task):
  """Pairs of texts, and how similar they are."""

  settings_class = SimilaritySettings
  name = "similarity"
  unit = "pairs"
  answer = "similarity"
  result_keys = (
    *(f"eval_{key}" for key in ("spearman", "pearson", "accuracy", "mrr", "loss")),
    *("global_step", "loss"),
  )
  informative_flags = ("loss",)
  task_flags = (
    *("task_name", "text_a_column", "text_b_column", "label_column", "negative_column"),
    *("id_column", "min_score", "max_score", "header", "skip_bad_rows", "pooling"),
    *("loss", "min_positive_score"),
  )
  problem_type = "vectors"

  @classmethod
  def resolve(cls, settings):
    """Takes the pooling of the run to resume, or else of the first weights, if it is not given."""
    from bert.checkpoints import finding

    earlier = finding.latest(settings.output_dir) or settings.init_checkpoint
    return settings.replace(pooling=sentence_pooling.choose(settings.pooling, earlier, "mean"))

  # -------------------------------------------------------------------------------------------
  # Pairs.

  def __init__(self, settings, config=None, tokenizer=None):
    super().__init__(settings, config, tokenizer)
    self.reader = similarity.PairReader(**settings.reader_options)
    self.ranks = settings.loss == IN_BATCH_NEGATIVES
    self.dev_has_scores = False

  def read(self, split):
    """Reads pairs; whether those of the dev set have scores decides what is evaluated."""
    if split == "test":
      return self._read_file("test", takes_negatives=False)
    pairs = self._read_train() if split == "train" else self._read_dev()
    self.texts_in = self.reader.texts_in
    if split == "dev":
      self.dev_has_scores = pairs[0].score is not None
      self.headline = self.metric_names()[0]
    return pairs

  def _read_file(self, split, **options):
    return self.reader.read(self.file(split), split, **options)

  def _read_train(self):
    pairs = self._read_file("train", needs_scores=not self.ranks, takes_negatives=self.ranks)
    file = self.file("train")
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
      _check_ranking(pairs, self.file("dev"))
    return pairs

  def facts(self):
    """Returns the pooling: another one makes other vectors of the same weights."""
    return {"task_name": "similarity", "pooling": self.settings.pooling}

  def record_spec(self, data):
    """Has a sequence for each text of a row."""
    sequence = ([len(data.examples[0].texts), LENGTH], "int64")
    numbers = {"score": ([], "float32"), "is_real_example": ([], "int64")}
    return {"input_ids": sequence, "input_mask": sequence, **numbers}

  def records(self, data, num_shown):
    """Converts pairs."""
    features = similarity.convert_examples_to_features(
      data.examples, self.length, self.tokenizer, num_shown
    )
    return map(vars, features)

  # -------------------------------------------------------------------------------------------
  # The model.

  def head(self):
    """Makes a vector of each text."""
    return VectorHead(self.settings.pooling, self.ranks, not self.dev_has_scores)

  def check_teacher(self, teacher):
    """Checks that the vectors of both have the same width."""
    widths = self.config.hidden_size, teacher.config.hidden_size
    if widths[0] != widths[1]:
      raise UsageError(
        f"--teacher={self.settings.teacher} makes vectors of {widths[1]} numbers, the student of "
        f"{widths[0]}: it learns the teacher's vectors, so both must have the same hidden_size."
      )

  def distillation_loss(self, comparison):
    """Compares the vectors of texts; one that only fills its row has none."""
    import tensorflow as tf

    is_text = tf.reduce_max(comparison.step.features["input_mask"], axis=-1)  # [B, N]
    return comparison.mean("vectors", is_text)

  def evaluate(self, **tensors):
    """Computes correlations with scores, or, without scores, how well texts are ranked."""
    return (score_metrics if "scores" in tensors else ranking_metrics)(**tensors)

  def metric_names(self):
    """Returns those of pairs with scores, or of ranks."""
    scores = ("spearman", "pearson") if self.dev_has_scores else ("mrr", "accuracy")
    return [*(f"eval_{name}" for name in (*scores, "loss")), "loss"]

  # -------------------------------------------------------------------------------------------
  # Results.

  def metrics(self, outputs, labels):
    """Computes the correlations of cosines with scores."""
    from bert.tasks import metrics

    names = ["spearman", "pearson"]
    return metrics.compute_metrics(names, labels, outputs, problem_type="regression", prefix="")

  def label_ids(self, data):
    """Returns the scores; a KeyError without them: ranks follow from vectors, not from answers."""
    if not self.dev_has_scores:
      raise KeyError("scores")
    return [each.score for each in data.examples]

  def view(self, example):
    """Returns the first two texts of a row, and their similarity, from 0 to 1."""
    return dict(zip(("text_a", "text_b"), example.texts, strict=False)), example.score

  def write_predictions(self, data, predictions):
    """Writes predictions.tsv."""
    outputs = [[each["similarity"]] for each in predictions][: len(data)]
    guids = [pair.guid for pair in data.examples]
    result_files.write_predictions(
      self.settings.output_dir, data.suffix, guids, outputs, ["similarity"], "regression"
    )


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


def _check_ranking(pairs, file: str) -> None:
  """Raises a DataError where there is nothing to choose from."""
  if len({text for pair in pairs for text in pair.texts[1:] if text}) < 2:
    raise DataError(
      f"--loss={IN_BATCH_NEGATIVES} compares a text with the second texts of other pairs, but all "
      f"{len(pairs)} are equal.",
      file,
    )


define_flags, main = engine.flags_of(Similarity), engine.main_of(Similarity)

if __name__ == "__main__":
  engine.main(Similarity)
