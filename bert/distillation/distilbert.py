"""DistilBERT's distillation: a smaller model learns a pre-trained one's words (arXiv:1910.01108).

  loss = 5 * ce_loss + 2 * mlm_loss + 1 * cos_loss

`ce_loss` compares what both models say of every token, `mlm_loss` is that of masked words, and
`cos_loss` is the angle between the last hidden states. The teacher never drops out.

Letters in shapes: B = batch size, S = sequence length, M = tokens of the batch, V = vocabulary
size, W = hidden size.
"""

import dataclasses
from typing import NamedTuple

import tensorflow as tf

from bert.distillation.methods import DistillationLoss, Tensors
from bert.distillation.teachers import Teacher
from bert.model import heads
from bert.model.configuration import BertConfig
from bert.modeling import BertModel
from bert.optimization import Clipping
from bert.training.pretraining_objectives import Objective, Outputs, Setting, encoder

# A label of a token that is not masked.
NO_LABEL = -1

# The original's optimizer, PyTorch's AdamW, as keywords of `create_optimizer`. With a decay it
# decays the LayerNorms of layers, too, whose names there are others than it means to leave out.
OPTIMIZER = {
  "weight_decay": 0.0,
  "clipping": Clipping(5.0, merges_rows=True),
  "bias_correction": True,
  "beta_2": 0.98,
  "schedule": "continuous",
  "exclude_from_weight_decay": (r"embeddings/LayerNorm/gamma", "bias", "beta"),
}


@dataclasses.dataclass(frozen=True)
class Weights:
  """How the parts of the loss are computed and weighed; the defaults are the original's."""

  alpha_ce: float = 5.0  # weight of `ce_loss`, T^2 KL(teacher || student)
  alpha_mlm: float = 2.0  # weight of `mlm_loss`
  # Weight of `mse_loss`, the squared difference of the logits, summed over the words.
  alpha_mse: float = 0.0
  alpha_cos: float = 1.0  # weight of `cos_loss`, 1 - the cosine of the last hidden states
  temperature: float = 2.0  # T, by which the logits are divided for `ce_loss`
  restrict_ce_to_mask: bool = False  # compute `ce_loss` and `mse_loss` of masked words alone

  def parts(self) -> dict[str, float]:
    """Name of each part that has a weight -> its weight."""
    weights = {"ce": self.alpha_ce, "mlm": self.alpha_mlm}
    weights |= {"mse": self.alpha_mse, "cos": self.alpha_cos}
    return {f"{name}_loss": weight for name, weight in weights.items() if weight}


class Words(NamedTuple):
  """What a model says of tokens."""

  logits: tf.Tensor  # float32 `[M, V]`
  hidden: tf.Tensor  # float32 `[M, W]`, the last layer


def token_losses(
  student: Words, teacher: Words, labels: tf.Tensor, temperature: float = 2.0
) -> dict[str, tf.Tensor]:
  """Each part of the loss for each token.

  Args:
    student: of M tokens, padding left out.
    teacher: of the same tokens.
    labels: int `[M]`, the words that were masked; negative for all other tokens.
    temperature: see `Weights`.

  Returns:
    `ce_loss`, `mlm_loss` (0 without a label), `mse_loss` and `cos_loss`, float32 `[M]`.

  Raises:
    ValueError: the models have other vocabularies or widths.
  """
  _check_shapes(student, teacher)
  log_student = tf.nn.log_softmax(student.logits / temperature)
  log_teacher = tf.nn.log_softmax(teacher.logits / temperature)
  divergence = tf.reduce_sum(tf.exp(log_teacher) * (log_teacher - log_student), axis=-1)
  word_losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
    tf.maximum(labels, 0), student.logits
  )
  difference = tf.math.squared_difference(student.logits, teacher.logits)
  return {
    "ce_loss": temperature**2 * divergence,
    "mlm_loss": tf.where(labels >= 0, word_losses, 0.0),
    "mse_loss": tf.reduce_sum(difference, axis=-1),
    "cos_loss": 1.0 - _cosines(student.hidden, teacher.hidden),
  }


def _cosines(a, b):
  """float32 `[M]`."""

  def square(x):
    return tf.reduce_sum(tf.square(x), axis=-1) + 1e-12

  return tf.reduce_sum(a * b, axis=-1) * tf.math.rsqrt(square(a) * square(b))


def _check_shapes(student: Words, teacher: Words) -> None:
  for what, own, other in (
    ("words", student.logits, teacher.logits),
    ("hidden units", student.hidden, teacher.hidden),
  ):
    if own.shape[-1] != other.shape[-1]:
      raise ValueError(
        f"The student has {own.shape[-1]} {what}, the teacher {other.shape[-1]}. DistilBERT's "
        "losses need equal numbers; TinyBERT's (general) allow a narrower student."
      )


def loss_of(
  losses: Tensors, labels: tf.Tensor, weights: Weights, num_examples: tf.Tensor, parts: int = 1
) -> DistillationLoss:
  """The loss of a batch: weighted means over its tokens.

  Losses and labels are those of `token_losses`, of `num_examples`, int `[]`; for `parts` see
  `heads.loss_divisor`.
  """
  is_masked = tf.cast(labels >= 0, tf.float32)
  everywhere = tf.ones_like(is_masked)
  compared = is_masked if weights.restrict_ce_to_mask else everywhere
  counted = {"ce_loss": compared, "mse_loss": compared, "mlm_loss": is_masked}
  means = {}
  for name in weights.parts():
    rows = counted.get(name, everywhere)
    divisor = heads.loss_divisor(rows, num_examples, parts)
    means[name] = tf.math.divide_no_nan(tf.reduce_sum(losses[name] * rows), divisor)
  loss = tf.add_n([weight * means[name] for name, weight in weights.parts().items()])
  return DistillationLoss(loss, means)


# ---------------------------------------------------------------------------------------------
# A batch of records.


def words_of(
  config: BertConfig, features: Tensors, setting: Setting, is_training: bool
) -> tuple[Words, BertModel]:
  """Logits and last hidden states of a model, for the tokens of a batch that are not padding.

  Args:
    config: of the model; its variables are those of the current store.
    features: `input_ids`, `input_mask` and `segment_ids`, int `[B, S]`.
    setting: type and look-ups of the computation.
    is_training: whether to drop out.
  """
  model = encoder(config, features["input_ids"], features, setting, is_training=is_training)
  hidden = tf.boolean_mask(model.get_sequence_output(), features["input_mask"] > 0)  # [M, W]
  table = model.get_embedding_table()
  return Words(heads.masked_lm_logits(config, hidden, table, setting.dtype), hidden), model


def objective(teacher: Teacher, weights: Weights | None = None) -> Objective:
  """Makes what a run learns: the losses of the student in every batch of records.

  The teacher has a head for masked words, and the student's vocabulary and width.

  Returns:
    The objective `distilbert`. Features are masked `input_ids`, `input_mask`, `segment_ids`, and
    `labels`, int `[B, S]` (`dynamic_masking.draw_masks`) or those of masked positions, as records
    have them.
  """
  weights = weights or Weights()
  names = tuple(weights.parts())

  def outputs(config: BertConfig, features: Tensors, setting: Setting) -> Outputs:
    student, _ = words_of(config, features, setting, setting.is_training)

    def taught(teacher_config):
      return words_of(teacher_config, features, setting, is_training=False)[0]._asdict()

    labels = tf.boolean_mask(labels_of(features), features["input_mask"] > 0)
    losses = token_losses(student, Words(**teacher.outputs(taught)), labels, weights.temperature)
    num_examples = tf.shape(features["input_ids"])[0]
    learned = loss_of(losses, labels, weights, num_examples, setting.parts)
    is_right = tf.equal(tf.argmax(student.logits, -1, labels.dtype), labels)
    lengths = tf.reduce_sum(tf.cast(features["input_mask"], tf.float32))
    summaries = {**learned.parts, "tokens_per_example": lengths / tf.cast(num_examples, tf.float32)}
    tensors = {**losses, "labels": labels, "is_right": tf.cast(is_right, tf.float32)}
    return Outputs(learned.loss, summaries, tensors)

  def metric_fn(labels, is_right, **losses):
    is_masked = labels >= 0
    compared = is_masked if weights.restrict_ce_to_mask else slice(None)
    rows = {"ce_loss": compared, "mse_loss": compared, "mlm_loss": is_masked}
    means = {name: _mean(losses[name][rows.get(name, slice(None))]) for name in names}
    return {**means, "masked_lm_accuracy": _mean(is_right[is_masked])}

  best = "mlm_loss" if "mlm_loss" in names else names[0]
  return Objective("distilbert", outputs, metric_fn, names, ("masked_lm_accuracy", *names), best)


def labels_of(features: Tensors) -> tf.Tensor:
  """int32 `[B, S]`: the masked words of records where they stood, `NO_LABEL` elsewhere.

  Example:
    >>> records = dict(input_ids=[[7, 4, 4]], masked_lm_positions=[[2, 0]])
    >>> records |= dict(masked_lm_ids=[[9, 0]], masked_lm_weights=[[1.0, 0.0]])
    >>> labels_of({name: tf.constant(value) for name, value in records.items()}).numpy()
    array([[-1, -1,  9]], dtype=int32)
  """
  length = tf.shape(features["input_ids"])[1]
  if "labels" in features:
    return features["labels"][:, :length]  # batches are cut to their longest sequence
  ids = features["masked_lm_ids"] - NO_LABEL
  ids = tf.where(features["masked_lm_weights"] > 0, ids, 0)
  batch_size = tf.shape(ids)[0]
  places = tf.range(batch_size)[:, None] * length + features["masked_lm_positions"]
  flat = tf.math.unsorted_segment_sum(ids, places, batch_size * length)
  return tf.reshape(flat, [batch_size, length]) + NO_LABEL


def _mean(values) -> float:
  """In float64; 0 of nothing."""
  return float(values.mean(dtype="float64")) if len(values) else 0.0
