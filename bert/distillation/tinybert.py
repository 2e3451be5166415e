"""TinyBERT's distillation: a smaller model learns the inside of a larger one (arXiv:1909.10351).

| stage | data | what the student learns |
|---|---|---|
| `general` | records of a corpus | attention scores and hidden states of a pre-trained teacher |
| `task`, layers | examples of the task | the same of a fine-tuned teacher |
| `task`, prediction | the same examples | the teacher's predictions |

A student layer learns from the last of the teacher layers that it stands for. Hidden states of a
narrower student pass through `fit_dense`, one layer for all of them.

Letters in shapes: B = batch size, S = sequence length, N = number of heads, L = layers, W = hidden
size, C = number of labels.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from bert.distillation.logits import mean_label_loss
from bert.distillation.methods import DistillationLoss, Step, Tensors
from bert.distillation.teachers import Teacher
from bert.model.configuration import BertConfig
from bert.model.layers import create_initializer
from bert.model.variables import get_variable, variable_scope
from bert.optimization import Clipping
from bert.training.pretraining_objectives import Objective, Outputs, Setting, encoder

# Scores up to here are those of padding, to which -10000 was added. They count as 0.
_HIDDEN_SCORE = -100.0

# The original's optimizer as keywords of `create_optimizer`. Layers of the task stage learn at a
# constant rate.
OPTIMIZER = {"clipping": Clipping(each=True), "schedule": "continuous"}

# Of the tasks whose predictions the original knows.
PROBLEM_TYPES = ("classification", "regression")

_INPUTS = ("input_ids", "input_mask", "segment_ids")


class Inside(NamedTuple):
  """What a model computes of a batch on its way.

  Attributes:
    hidden_states: float32 `[B, S, W]`: the first layer's input, and each layer's output.
    attention_scores: float32 `[B, N, S, S]` of each layer, see `BertModel.get_attention_scores`.
  """

  hidden_states: Sequence[tf.Tensor]
  attention_scores: Sequence[tf.Tensor]


# ---------------------------------------------------------------------------------------------
# The losses.


def attention_losses(student: Sequence[tf.Tensor], teacher: Sequence[tf.Tensor]) -> list[tf.Tensor]:
  """Mean squared difference of attention scores, for each layer of the student.

  Scores of padding count as 0, in both models by themselves, and so do all entries of the mean.

  Args:
    student: float32 `[B, N, S, S]` of each layer.
    teacher: the same; a multiple of the student's layers.

  Returns:
    float32 `[B]` for each layer: a mean for each example.

  Raises:
    ValueError: the teacher has other heads, or no multiple of the student's layers.
  """
  share = _teacher_layers_per_layer(len(student), len(teacher))
  losses = []
  for layer, scores in enumerate(student):
    taught = teacher[layer * share + share - 1]
    if scores.shape[1] != taught.shape[1]:
      raise ValueError(
        f"The student has {scores.shape[1]} attention heads, the teacher {taught.shape[1]}. To "
        "learn its attention, the student needs the same number (num_attention_heads)."
      )
    losses.append(_mean_squares(_without_padding(scores) - _without_padding(taught)))
  return losses


def hidden_losses(student: Sequence[tf.Tensor], teacher: Sequence[tf.Tensor]) -> list[tf.Tensor]:
  """Mean squared difference of hidden states, of the embeddings and of each layer of the student.

  Padding counts, too.

  Args:
    student: float32 `[B, S, W]`: embeddings, then each layer; as wide as the teacher's.
    teacher: the same; a multiple of the student's layers.

  Returns:
    float32 `[B]` for each of the student's: a mean for each example.
  """
  share = _teacher_layers_per_layer(len(student) - 1, len(teacher) - 1)
  return [_mean_squares(own - teacher[layer * share]) for layer, own in enumerate(student)]


def _mean_squares(difference):
  """`[B, ...]` to `[B]`."""
  return tf.reduce_mean(tf.square(difference), axis=list(range(1, difference.shape.rank)))


def _without_padding(scores):
  return tf.where(scores <= _HIDDEN_SCORE, 0.0, scores)


def _teacher_layers_per_layer(student: int, teacher: int) -> int:
  if teacher % student:
    raise ValueError(
      f"The teacher has {teacher} layers, which is no multiple of the student's {student}. Choose "
      "a student (num_hidden_layers) whose layers each stand for the same number of the teacher's."
    )
  return teacher // student


def soft_cross_entropy(logits: tf.Tensor, taught: tf.Tensor, temperature: float = 1.0) -> tf.Tensor:
  """The cross-entropy of the teacher's predictions, averaged over the classes, too.

  Args:
    logits: float32 `[..., C]`, of the student.
    taught: float32 `[..., C]`, of the teacher.
    temperature: T, by which both are divided.

  Returns:
    float32 `[...]`.
  """
  wanted = tf.nn.softmax(taught / temperature)
  return -tf.reduce_mean(wanted * tf.nn.log_softmax(logits / temperature), axis=-1)


# ---------------------------------------------------------------------------------------------
# The models.


def inside_of(config: BertConfig, features: Tensors, setting: Setting, drops_out: bool) -> Inside:
  """Builds a model and returns what it computes on its way; padding is computed, too.

  The arguments are those of `distilbert.words_of`.
  """
  model = encoder(
    config,
    features["input_ids"],
    features,
    setting,
    is_training=drops_out,
    skip_padding=False,
    keeps_attention_scores=True,
    padding_id=getattr(config, "pad_token_id", 0),
  )
  states = [model.encoder_input, *model.get_all_encoder_layers()]
  return Inside(states, model.get_attention_scores())


def fitted(states: Sequence[tf.Tensor], width: int, initializer_range: float) -> list[tf.Tensor]:
  """The student's hidden states, as wide as the teacher's: the dense layer `fit_dense`.

  Args:
    states: float32 `[B, S, W]` each.
    width: of the teacher.
    initializer_range: standard deviation of its initial kernel. Where no widening is needed, it
      starts as the identity, so that a student made of the teacher's layers starts where they end.

  Returns:
    float32 `[B, S, width]` each.
  """
  own_width = states[0].shape[-1]
  initial = _identity if own_width == width else create_initializer(initializer_range)
  with variable_scope("fit_dense"):
    kernel = get_variable("kernel", [own_width, width], initial)
    bias = get_variable("bias", [width])
  return [tf.matmul(state, kernel) + bias for state in states]


def _identity(shape, dtype=tf.float32, seed=None):
  del seed
  return tf.eye(*shape, dtype=dtype)


@dataclasses.dataclass(frozen=True)
class Layers:
  """How a student learns a teacher's layers."""

  teacher: Teacher  # the larger model, without dropout, which the original left on by mistake

  def losses(
    self, config: BertConfig, features: Tensors, setting: Setting
  ) -> dict[str, list[tf.Tensor]]:
    """`att_loss` of each layer, and `rep_loss` of embeddings and layers: float32 `[B]` each."""
    student = inside_of(config, features, setting, setting.is_training)

    def taught(teacher_config):
      inside = inside_of(teacher_config, features, setting, drops_out=False)
      named = {f"hidden_{number}": state for number, state in enumerate(inside.hidden_states)}
      scores = {f"scores_{number}": each for number, each in enumerate(inside.attention_scores)}
      return named | scores

    outputs = self.teacher.outputs(taught)
    states = [value for name, value in outputs.items() if name.startswith("hidden_")]
    scores = [value for name, value in outputs.items() if name.startswith("scores_")]
    own_states = fitted(student.hidden_states, states[0].shape[-1], config.initializer_range)
    return {
      "att_loss": attention_losses(student.attention_scores, scores),
      "rep_loss": hidden_losses(own_states, states),
    }

  def learned(self, losses: dict[str, list[tf.Tensor]]) -> DistillationLoss:
    """The sum of all layers' means over the batch, and the sums of each kind."""
    parts = {
      name: tf.add_n([tf.reduce_mean(each) for each in layers]) for name, layers in losses.items()
    }
    return DistillationLoss(tf.add_n(list(parts.values())), parts)


# ---------------------------------------------------------------------------------------------
# The stages.


def general_objective(layers: Layers) -> Objective:
  """What a run of pre-training learns in the general stage, from any records.

  Returns:
    The objective `tinybert`. Features are `input_ids`, `input_mask`, `segment_ids`; masks may be in
    them, and their labels are not read.
  """

  def outputs(config: BertConfig, features: Tensors, setting: Setting) -> Outputs:
    losses = layers.losses(config, features, setting)
    learned = layers.learned(losses)
    num_tokens = tf.reduce_sum(tf.cast(features["input_mask"], tf.float32))
    num_examples = tf.cast(tf.shape(features["input_ids"])[0], tf.float32)
    summaries = {**learned.parts, "tokens_per_example": num_tokens / num_examples}
    tensors = {name: tf.add_n(each) for name, each in losses.items()}
    return Outputs(learned.loss, summaries, tensors)

  def metric_fn(**losses):
    means = {name: float(values.mean(dtype="float64")) for name, values in losses.items()}
    return {**means, "distillation_loss": sum(means.values())}

  names = ("att_loss", "rep_loss")
  return Objective(
    "tinybert", outputs, metric_fn, names, ("distillation_loss", *names), "distillation_loss"
  )


@dataclasses.dataclass(frozen=True)
class LayersMethod:
  """A `methods.Method`: the first half of the task stage."""

  layers: Layers  # how the student learns
  config: BertConfig  # of the student
  setting: Setting  # how to compute

  def __call__(self, step: Step) -> DistillationLoss:
    """Reads `input_ids`, `input_mask` and `segment_ids`, `[B, S]` or of choices `[B, N, S]`."""
    features = {name: _rows_of_words(step.features[name]) for name in _INPUTS}
    losses = self.layers.losses(self.config, features, self.setting)
    return self.layers.learned(losses)


def _rows_of_words(feature):
  """`[B, S]`, or `[B * N, S]` of N choices."""
  return tf.reshape(feature, [-1, tf.shape(feature)[-1]]) if feature.shape.rank == 3 else feature


@dataclasses.dataclass(frozen=True)
class PredictionMethod:
  """A `methods.Method`: the second half of the task stage."""

  # A step -> the `logits` of a teacher of the task.
  teacher_outputs: Callable[[Step], Tensors] | None
  temperature: float = 1.0  # see `soft_cross_entropy`
  # `classification`, or `regression`, which learns the labels: its teacher is not asked.
  problem_type: str = "classification"

  def __post_init__(self):
    if self.problem_type not in PROBLEM_TYPES:
      raise ValueError(
        f"TinyBERT's predictions are of one class or a number, not {self.problem_type}. "
        "--method=logits teaches every kind of task."
      )

  def __call__(self, step: Step) -> DistillationLoss:
    """Reads `logits`, or of a regression the losses of the labels."""
    if self.problem_type == "regression":
      loss = mean_label_loss(step)
    else:
      taught = self.teacher_outputs(step)["logits"]
      losses = soft_cross_entropy(step.outputs["logits"], taught, self.temperature)
      loss = tf.reduce_mean(losses)
    return DistillationLoss(loss, {"cls_loss": loss})
