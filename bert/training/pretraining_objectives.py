"""What `run_pretraining.py` trains: from a batch of records to a loss, and the results of many.

| objective | learns | family whose default it is |
|---|---|---|
| `mlm_nsp` | masked words, and whether the second part follows the first | BERT |
| `mlm_sop` | masked words, and whether both parts are in their order | ALBERT |
| `mlm` | masked words | RoBERTa, DistilBERT |
| `electra` | a generator masked words, a discriminator which words the generator wrote | ELECTRA |

Letters in shapes: B = batch size, S = sequence length, P = masked positions of a sequence, V =
vocabulary size, N = sequences and M = masked words or tokens of a whole evaluation.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from bert import families, modeling
from bert.model import heads, replaced_tokens
from bert.model.configuration import BertConfig

Features = Mapping[str, tf.Tensor]


class Outputs(NamedTuple):
  """What an objective makes of a batch."""

  loss: tf.Tensor  # float32 `[]`
  # Name -> float32 `[]`, or a function of nothing that gives it, for steps that log it.
  summaries: dict[str, tf.Tensor | Callable[[], tf.Tensor]]
  metric_tensors: dict[str, tf.Tensor]  # name -> `[n]`: what `metric_fn` needs of the batch


class Setting(NamedTuple):
  """How to compute a batch."""

  is_training: bool  # whether to drop out
  use_one_hot_embeddings: bool = False  # look words up by a matrix product
  dtype: tf.DType = tf.float32  # of the matrix products
  parts: int = 1  # of the batch, over which gradients are accumulated


@dataclasses.dataclass(frozen=True)
class Objective:
  """What a run trains."""

  name: str  # value of `--objective`
  # `(config, features, setting)` -> `Outputs`.
  outputs: Callable[[BertConfig, Features, Setting], Outputs]
  # Arrays of a whole evaluation by the names of `Outputs.metric_tensors` -> results.
  metric_fn: Callable[..., dict[str, float]]
  progress: tuple[str, ...]  # summaries beside the loss on a line of progress
  result_keys: tuple[str, ...]  # of `eval_results.txt`, beside the step and the loss
  best_metric: str = "masked_lm_loss"  # result by which checkpoints are compared; less is better


def objective_of(name: str, gen_weight: float = 1.0, disc_weight: float = 50.0) -> Objective:
  """Finds an objective by its name.

  Args:
    name: one of `families.OBJECTIVES`.
    gen_weight: of the generator's loss in the objective `electra`.
    disc_weight: of the discriminator's loss.

  Raises:
    ValueError: the name is unknown.
  """
  if name == "electra":
    return _electra_objective(gen_weight, disc_weight)
  if name not in families.OBJECTIVES:
    raise ValueError(f"Unknown objective {name!r}; known: {', '.join(families.OBJECTIVES)}.")
  pairs = "sentence_order" if name == "mlm_sop" else "next_sentence"

  def outputs(config, features, setting):
    return _masked_words(config, features, setting, pairs, learns_pairs=name != "mlm")

  def metric_fn(**tensors):
    return _renamed(pair_metrics(**tensors), "next_sentence", pairs)

  measured = ("masked_lm_loss", f"{pairs}_loss", "masked_lm_accuracy", f"{pairs}_accuracy")
  return Objective(name, outputs, metric_fn, measured, tuple(sorted(measured)))


def _renamed(values, old: str, new: str):
  return {name.replace(old, new): value for name, value in values.items()}


# ---------------------------------------------------------------------------------------------
# What several kinds of objectives do.


def encoder(config, input_ids, features, setting: Setting, **options) -> modeling.BertModel:
  """Builds the model of an objective on a batch.

  Args:
    config: of the model; its variables are those of the current store.
    input_ids: int `[B, S]`.
    features: `input_mask` and, unless all are 0, `segment_ids`, int `[B, S]`.
    setting: type and look-ups of the computation, and whether it trains.
    options: arguments of `BertModel`, which come before those of the setting.
  """
  of_setting = {
    "is_training": setting.is_training,
    # The heads read tokens, never padding. TPUs compile for fixed shapes, which skipping padding
    # does not have.
    "skip_padding": not setting.use_one_hot_embeddings,
  }
  return modeling.BertModel(
    config=config,
    input_ids=input_ids,
    input_mask=features["input_mask"],
    token_type_ids=features.get("segment_ids"),
    use_one_hot_embeddings=setting.use_one_hot_embeddings,
    dtype=setting.dtype,
    **{**of_setting, **options},
  )


def _words_and_sizes(features, words: "_Words") -> dict[str, Any]:
  """Returns scalars of a training step; accuracy only where it is logged, see `EstimatorSpec`."""
  num_tokens = tf.reduce_sum(tf.cast(features["input_mask"], tf.float32))
  num_examples = tf.cast(tf.shape(features["masked_lm_weights"])[0], tf.float32)
  return {
    "masked_lm_loss": words.loss,
    "masked_lm_accuracy": _word_accuracy(features, words),
    "tokens_per_example": num_tokens / num_examples,
  }


# ---------------------------------------------------------------------------------------------
# Masked words and pairs of sentences.


def _masked_words(config, features, setting: Setting, pairs: str, learns_pairs: bool) -> Outputs:
  """Computes the losses of masked tokens, and of pairs where records have their labels."""
  model = encoder(config, features["input_ids"], features, setting)
  words = _word_outputs(config, features, setting, model)
  summaries = _words_and_sizes(features, words)
  # Without a pooler there is no head for pairs, and ELECTRA's records have none.
  if "next_sentence_labels" not in features or not config.family.has_pooler:
    return Outputs(words.loss, summaries, _word_tensors(features, words))
  next_sentence = heads.get_next_sentence_output(
    config, model.get_pooled_output(), features["next_sentence_labels"]
  )
  loss = words.loss + next_sentence[0] if learns_pairs else words.loss
  labels = tf.reshape(features["next_sentence_labels"], [-1])

  def pair_accuracy():
    return _accuracy(next_sentence[2], labels, tf.ones_like(labels, tf.float32))

  summaries |= {f"{pairs}_loss": next_sentence[0], f"{pairs}_accuracy": pair_accuracy}
  tensors = {
    **_word_tensors(features, words),
    "next_sentence_losses": next_sentence[1],
    "next_sentence_predictions": tf.argmax(next_sentence[2], -1, output_type=tf.int32),
    "next_sentence_labels": labels,
  }
  return Outputs(loss, summaries, tensors)


class _Words(NamedTuple):
  """Masked words."""

  loss: tf.Tensor  # float32 `[]`, of the masked words
  losses: tf.Tensor  # float32 `[B * P]`, of each
  log_probs: tf.Tensor  # float32 `[B * P, V]`
  logits: Callable[[], tf.Tensor]  # gives float32 `[B * P, V]`, computed anew


def _word_outputs(config, features, setting, model) -> _Words:
  sequence_output = model.get_sequence_output()
  weights = features["masked_lm_weights"]
  positions = _positions(features)
  loss, losses, log_probs = heads.get_masked_lm_output(
    config,
    sequence_output,
    model.get_embedding_table(),
    positions,
    features["masked_lm_ids"],
    weights,
    setting.dtype,
    compiled=model.is_compiled,
    parts=setting.parts,
  )

  def logits():
    vectors = heads.gather_indexes(sequence_output, positions)
    return heads.masked_lm_logits(config, vectors, model.get_embedding_table(), setting.dtype)

  return _Words(loss, losses, log_probs, logits)


def _positions(features) -> tf.Tensor:
  """Returns masked positions, int32 `[B, P]`."""
  # Without weight a position counts for nothing, but it has to exist in a batch that was cut.
  return tf.where(features["masked_lm_weights"] != 0, features["masked_lm_positions"], 0)


def _word_accuracy(features, words: _Words) -> Callable[[], tf.Tensor]:
  def accuracy():
    # From scores computed anew in the few steps that tell it. What a branch of the graph reads is
    # computed in every step, and training itself never needs all `[B * P, V]` log-probabilities.
    labels = tf.reshape(features["masked_lm_ids"], [-1])
    return _accuracy(words.logits(), labels, tf.reshape(features["masked_lm_weights"], [-1]))

  return accuracy


def _accuracy(scores, labels, weights):
  """Computes the weighted accuracy: `[M, V]`, `[M]`, `[M]` to float32 `[]`; 0 without weight."""
  is_right = tf.cast(tf.equal(tf.argmax(scores, -1, tf.int32), labels), tf.float32)
  return tf.math.divide_no_nan(tf.reduce_sum(is_right * weights), tf.reduce_sum(weights))


def _word_tensors(features, words: _Words) -> dict[str, tf.Tensor]:
  """Returns what metrics need of a batch: `[B * P]`, not the `[B * P, V]` of all tokens."""
  return {
    "masked_lm_losses": words.losses,
    "masked_lm_predictions": tf.argmax(words.log_probs, -1, output_type=tf.int32),
    "masked_lm_ids": tf.reshape(features["masked_lm_ids"], [-1]),
    "masked_lm_weights": tf.reshape(features["masked_lm_weights"], [-1]),
  }


def pair_metrics(
  masked_lm_losses: np.ndarray,
  masked_lm_predictions: np.ndarray,
  masked_lm_ids: np.ndarray,
  masked_lm_weights: np.ndarray,
  next_sentence_losses: np.ndarray | None = None,
  next_sentence_predictions: np.ndarray | None = None,
  next_sentence_labels: np.ndarray | None = None,
) -> dict[str, float]:
  """Computes accuracies and losses over everything that was evaluated.

  Args:
    masked_lm_losses: float32 `[M]`, for each masked position of all sequences.
    masked_lm_predictions: int `[M]`, the likeliest words.
    masked_lm_ids: int `[M]`, the words that stood there.
    masked_lm_weights: float32 `[M]`, 0 for positions that are padding.
    next_sentence_losses: float32 `[N]`, for each sequence; None for a model without such a head.
    next_sentence_predictions: int `[N]`.
    next_sentence_labels: int `[N]`.

  Returns:
    The original's names and values. Batches do not count: a mean of batches' means would give
    more weight to a word whose batch has few.

  Example:
    >>> words = np.array([1.0, 3.0, 9.0]), np.array([5, 6, 7]), np.array([5, 0, 7])
    >>> weights = np.array([1.0, 1.0, 0.0])
    >>> results = pair_metrics(*words, weights, np.array([0.5]), np.array([1]), np.array([1]))
    >>> results["masked_lm_loss"], results["masked_lm_accuracy"], results["next_sentence_loss"]
    (2.0, 0.5, 0.5)
  """
  results = {
    "masked_lm_accuracy": _mean(masked_lm_predictions == masked_lm_ids, masked_lm_weights),
    "masked_lm_loss": _mean(masked_lm_losses, masked_lm_weights),
  }
  if next_sentence_losses is not None:
    is_right = next_sentence_predictions == next_sentence_labels
    results["next_sentence_accuracy"] = _mean(is_right)
    results["next_sentence_loss"] = _mean(next_sentence_losses)
  return results


def _mean(values, weights=None) -> float:
  """Computes the weighted mean in float64; 0 where nothing has weight, as in TensorFlow 1."""
  weights = np.ones(len(values)) if weights is None else weights.astype(np.float64)
  total = weights.sum()
  return float((values * weights).sum() / total) if total else 0.0


# ---------------------------------------------------------------------------------------------
# ELECTRA.


def _electra_objective(gen_weight: float, disc_weight: float) -> Objective:
  def outputs(config, features, setting):
    return _replaced_tokens(config, features, setting, gen_weight, disc_weight)

  progress = ("masked_lm_loss", "disc_loss", "masked_lm_accuracy", "disc_accuracy")
  result_keys = (
    "masked_lm_accuracy",
    "masked_lm_loss",
    "sampled_masked_lm_accuracy",
    "disc_accuracy",
    "disc_auc",
    "disc_loss",
    "disc_precision",
    "disc_recall",
  )
  return Objective("electra", outputs, _electra_metrics, progress, result_keys, "disc_loss")


def _replaced_tokens(
  config, features, setting: Setting, gen_weight: float, disc_weight: float
) -> Outputs:
  """Trains a generator on masked tokens, and the discriminator on which tokens it replaced."""
  if not config.family.has_generator:
    raise ValueError(f"The objective electra is for ELECTRA's models, not {config.family.title}'s.")
  words = _generator(config, features, setting)
  drawn = _drawn_words(features, words, config.vocab_size)  # [B, P]
  replaced = replaced_tokens.replace(
    features["input_ids"], _positions(features), features["masked_lm_ids"], drawn
  )
  discriminator = encoder(config, replaced.input_ids, features, setting)
  logits = replaced_tokens.discriminator_logits(
    config, discriminator.get_sequence_output(), setting.dtype
  )
  labels, mask = replaced.is_replaced, features["input_mask"]
  disc_loss, disc_losses = replaced_tokens.detection_loss(logits, labels, mask, setting.parts)
  loss = gen_weight * words.loss + disc_weight * disc_loss
  predictions = tf.cast(logits > 0, tf.int32)

  def disc_accuracy():
    is_token = tf.cast(mask, tf.float32)
    is_right = tf.cast(tf.equal(predictions, labels), tf.float32)
    return tf.math.divide_no_nan(tf.reduce_sum(is_right * is_token), tf.reduce_sum(is_token))

  summaries = {
    **_words_and_sizes(features, words),
    "disc_loss": disc_loss,
    "disc_accuracy": disc_accuracy,
  }
  tensors = {
    **_word_tensors(features, words),
    "sampled_ids": tf.reshape(drawn, [-1]),
    "disc_losses": disc_losses,
    "disc_labels": tf.reshape(labels, [-1]),
    "disc_logits": tf.reshape(logits, [-1]),
    "disc_weights": tf.reshape(mask, [-1]),
  }
  return Outputs(loss, summaries, tensors)


def _generator(config, features, setting: Setting) -> _Words:
  generator_config = config.generator_config()
  model = encoder(
    generator_config,
    features["input_ids"],
    features,
    setting,
    scope="generator",
    embedding_scope=config.family.scope,
  )
  return _word_outputs(generator_config, features, setting, model)


def _drawn_words(features, words: _Words, vocab_size: int) -> tf.Tensor:
  """Draws the generator's tokens, or takes those in `sampled_ids`: int32 `[B, P]`."""
  if "sampled_ids" in features:
    return features["sampled_ids"]
  batch_size, predictions = tf.unstack(tf.shape(features["masked_lm_ids"]))
  shape = [batch_size, predictions, vocab_size]
  return replaced_tokens.draw_words(
    # Log-probabilities are logits, too.
    tf.reshape(words.log_probs, shape),
    replaced_tokens.uniform_noise(features["sampling_seed"], shape),
  )


def _electra_metrics(
  sampled_ids: np.ndarray,
  disc_losses: np.ndarray,
  disc_labels: np.ndarray,
  disc_logits: np.ndarray,
  disc_weights: np.ndarray,
  **words: np.ndarray,
) -> dict[str, float]:
  """Computes the original's metrics over everything that was evaluated.

  Args:
    sampled_ids: int `[M]`, the words that the generator has drawn.
    disc_losses: float32 `[N]`, for each sequence.
    disc_labels: int `[T]`, for each token, 1 if it was replaced.
    disc_logits: float32 `[T]`.
    disc_weights: int `[T]`, 0 for padding.
    **words: as in `pair_metrics`.

  Returns:
    name -> value. `disc_auc` is the exact area without padding; the original approximates it by
    200 thresholds and counts padding as found originals.
  """
  from sklearn.metrics import roc_auc_score

  labels, logits = disc_labels[disc_weights > 0], disc_logits[disc_weights > 0]
  predictions = logits > 0
  is_right = predictions == labels
  has_both = 0 < labels.sum() < len(labels)
  return {
    **pair_metrics(**words),
    "sampled_masked_lm_accuracy": _mean(
      sampled_ids == words["masked_lm_ids"], words["masked_lm_weights"]
    ),
    "disc_accuracy": _mean(is_right),
    "disc_auc": float(roc_auc_score(labels, logits)) if has_both else 0.0,
    "disc_loss": _mean(disc_losses),
    "disc_precision": _mean(is_right, predictions),
    "disc_recall": _mean(is_right, labels),
  }
