"""Learning from the teacher's outputs, for any task (Hinton et al. 2015, arXiv:1503.02531).

| task | what the student learns from the teacher |
|---|---|
| classes, choices | the softmax at a temperature, for each example |
| tags | the same for each word |
| spans | the same over all positions, for the beginning and for the end |
| several labels | each label's probability at that temperature |
| numbers | the number: mean squared error, no temperature |
| vectors of texts | the vector: mean squared error (Reimers and Gurevych 2020, arXiv:2004.09813) |

Letters in shapes: B = batch size, S = sequence length, C = number of labels.
"""

import dataclasses
from collections.abc import Callable, Sequence

import tensorflow as tf

from bert.distillation.methods import DistillationLoss, Step, Tensors
from bert.model import heads
from bert.tasks import label_counts

# Of `Step.features`: 1 for an example with a label; absent where all have one.
HAS_LABEL = "has_label"


@dataclasses.dataclass(frozen=True)
class Comparison:
  """A student's outputs beside its teacher's.

  Attributes:
    step: with the student's outputs, `[B, ..., C]` each, and the features of the batch.
    taught: the teacher's outputs, of the same names.
    temperature: T.
  """

  step: Step
  taught: Tensors
  temperature: float

  def mean(
    self, problem_type: str = "classification", weights: tf.Tensor | None = None
  ) -> tf.Tensor:
    """Computes the mean of `soft_losses` over the batch, and over all outputs.

    Args:
      problem_type: see `soft_losses`.
      weights: `[B, ...]`, 0 for what does not count, such as a token that predicts nothing.

    Returns:
      float32 `[]`, 0 where both agree.
    """
    losses = [
      soft_losses(logits, self.taught[name], self.temperature, problem_type)
      for name, logits in self.step.outputs.items()
    ]
    return tf.add_n([_mean(each, weights, self.step.parts) for each in losses]) / len(losses)


@dataclasses.dataclass(frozen=True)
class LogitsMethod:
  """Minimises `(1 - label_weight) * soft_loss + label_weight * label_loss`."""

  # A step -> the teacher's outputs, of the names of the student's.
  teacher_outputs: Callable[[Step], Tensors]
  # T, by which the logits of both are divided; the soft loss is multiplied by T^2.
  temperature: float = 2.0
  label_weight: float = 0.5  # from 0 to 1; weight of the labels
  # How far both models are apart: float32 `[]`, 0 where they agree.
  soft_loss: Callable[[Comparison], tf.Tensor] = Comparison.mean

  def __call__(self, step: Step) -> DistillationLoss:
    """A `methods.Method`."""
    soft_loss = self.soft_loss(Comparison(step, self.teacher_outputs(step), self.temperature))
    label_loss = mean_label_loss(step)
    loss = (1.0 - self.label_weight) * soft_loss + self.label_weight * label_loss
    return DistillationLoss(loss, {"soft_loss": soft_loss, "label_loss": label_loss})


def _mean(losses, weights, parts: int):
  if weights is None:
    return tf.reduce_mean(losses)
  weights = tf.cast(weights, tf.float32)
  further_axes = tf.ones([losses.shape.rank - weights.shape.rank], tf.int32)
  weights = tf.reshape(weights, tf.concat([tf.shape(weights), further_axes], axis=0))
  weights = tf.broadcast_to(weights, tf.shape(losses))
  divisor = heads.loss_divisor(weights, tf.shape(weights)[0], parts)
  return tf.math.divide_no_nan(tf.reduce_sum(losses * weights), divisor)


def mean_label_loss(step: Step) -> tf.Tensor:
  """The mean over the batch; an example without a label counts 0."""
  has_label = step.features.get(HAS_LABEL)
  losses = step.label_losses
  return tf.reduce_mean(losses if has_label is None else losses * has_label)


def soft_losses(
  logits: tf.Tensor, taught: tf.Tensor, temperature: float, problem_type: str = "classification"
) -> tf.Tensor:
  """How far the student is from the teacher, for each row of logits.

  Args:
    logits: float32 `[..., C]`, of the student.
    taught: float32 `[..., C]`, of the teacher.
    temperature: T.
    problem_type: `classification`: T^2 KL(teacher || student) of the softmax. `multi_label`: the
      mean over labels of T^2 times that of each label's probability. `regression`: the squared
      difference of each number. `vectors`: the mean squared difference.

  Returns:
    float32 `[...]`, of numbers `[..., C]`; 0 where both agree.
  """
  if problem_type == "vectors":
    return tf.reduce_mean(tf.math.squared_difference(logits, taught), axis=-1)
  if problem_type == "regression":
    return tf.math.squared_difference(logits, taught)
  student, teacher = logits / temperature, taught / temperature
  if problem_type == "multi_label":
    chance = tf.sigmoid(teacher)
    gained = chance * (tf.math.log_sigmoid(teacher) - tf.math.log_sigmoid(student))
    lost = (1.0 - chance) * (tf.math.log_sigmoid(-teacher) - tf.math.log_sigmoid(-student))
    divergence = tf.reduce_mean(gained + lost, axis=-1)
  else:
    difference = tf.nn.log_softmax(teacher) - tf.nn.log_softmax(student)
    divergence = tf.reduce_sum(tf.nn.softmax(teacher) * difference, axis=-1)
  return temperature**2 * divergence


def with_places_for_labels(features: Tensors) -> dict[str, tf.Tensor]:
  """Features of a classifier in which every example has a label, and `has_label`, float32 `[B]`.

  Without a label, `label_ids` is -1 (NaN for a number, see `classification.label_id`); 0 takes its
  place.
  """
  labels = features["label_ids"]
  is_there = tf.logical_not(tf.math.is_nan(labels)) if labels.dtype.is_floating else labels >= 0
  places = tf.where(is_there, labels, tf.zeros_like(labels))
  if is_there.shape.rank == 2:
    is_there = tf.reduce_all(is_there, axis=-1)
  return {**features, "label_ids": places, HAS_LABEL: tf.cast(is_there, tf.float32)}


def columns_of(taught: Sequence[str], learned: Sequence[str]) -> list[int]:
  """Where the student's labels are among the teacher's.

  transformers calls labels `LABEL_0`, `LABEL_1` and so on where nobody named them: these are meant
  in the student's order, unless the student's are numbers.

  Raises:
    ValueError: they are not the same labels.

  Example:
    >>> columns_of(["0", "1"], ["1", "0"])
    [1, 0]
    >>> columns_of(["LABEL_0", "LABEL_1"], ["no", "yes"])
    [0, 1]
  """
  ordered = label_counts.in_order_of(learned, taught)
  if ordered and len(learned) == len(taught):
    return [ordered.index(label) for label in learned]
  if list(taught) == [f"LABEL_{index}" for index in range(len(learned))]:
    return list(range(len(learned)))
  raise ValueError(
    f"the teacher has the labels {', '.join(taught)}, the student {', '.join(learned)}"
  )
