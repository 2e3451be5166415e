"""The form of a method of distillation: from a batch to a loss and its named parts.

  def method(step: Step) -> DistillationLoss:
    taught = teacher.outputs(step.forward)
    ...
    return DistillationLoss(loss, {"soft_loss": soft_loss, "label_loss": label_loss})

A script calls `Distillation(method).teach` in each training step, once it has computed its own
loss: the method's takes its place, and the parts are written and shown beside it.

`forward(config)` computes the script's outputs once more on the same batch, without dropout, for a
model of another configuration; a method calls it among the teacher's variables
(`teachers.Teacher.outputs`). A method that reads more than outputs (hidden states, attention)
builds the model itself (`pretraining_objectives.encoder`): under the same names it finds the same
variables.

Letters in shapes: B = batch size, S = sequence length, C = number of labels.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import tensorflow as tf

from bert.model.configuration import BertConfig

Tensors = Mapping[str, tf.Tensor]


class Step(NamedTuple):
  """What a method may read in a training step."""

  features: Tensors  # of the batch
  # Of the student: `logits`, `[B, C]` or `[B, S, C]`, or `start_logits` and `end_logits`, `[B, S]`.
  outputs: Tensors
  # Of the task, float32 `[B]`, or `[]` where only the mean of the batch exists.
  label_losses: tf.Tensor
  forward: Callable[[BertConfig], Tensors]  # a configuration -> the same outputs of another model
  parts: int = 1  # of the batch, over which gradients are accumulated; see `heads.loss_divisor`


class DistillationLoss(NamedTuple):
  """What a method makes of a step."""

  loss: tf.Tensor  # float32 `[]`, minimised
  parts: dict[str, tf.Tensor]  # name -> float32 `[]`, the loss's parts without their weights


Method = Callable[[Step], DistillationLoss]


class Distillation:
  """What the `model_fn` of a script calls in training, around its own model and loss.

  Attributes:
    adapt: the features of a batch -> those that the script's model and loss read.
  """

  def __init__(
    self, method: Method, adapt: Callable[[Tensors], Tensors] = lambda features: features
  ):
    self._method = method
    self.adapt = adapt

  def teach(self, spec, features, outputs, label_losses, forward, parts: int = 1) -> tf.Tensor:
    """Puts what the method makes of a step into the step's `EstimatorSpec`.

    The others are the fields of a `Step`.

    Args:
      spec: of the step; its loss and summaries are replaced.

    Returns:
      The loss to minimise.
    """
    learned = self._method(Step(features, outputs, label_losses, forward, parts))
    spec.loss = learned.loss
    spec.summaries = {**(spec.summaries or {}), **learned.parts}
    spec.progress = (*spec.progress, *learned.parts)
    return learned.loss
