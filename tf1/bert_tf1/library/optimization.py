"""The original's `optimization` as a TensorFlow 1 graph: the same schedule, updates and names.

  train_op = optimization.create_optimizer(loss, 5e-5, num_train_steps, num_warmup_steps, False)

Two properties of the original that matter for its numbers are kept: Adam's averages start at 0
without a correction for it, and the gradients' norm that is clipped to 1.0 counts each use of a
word in a batch by itself.
"""

import re
from collections.abc import Iterable, Sequence

from bert_tf1.contrib import tpu
from bert_tf1.real import tf


def create_optimizer(
  loss: tf.Tensor, init_lr: float, num_train_steps: int, num_warmup_steps: int, use_tpu: bool
) -> tf.Operation:
  """One training step of all trainable variables: rate, gradients, clipping, update, count.

  The step is counted after the update. The original left the order open, so that a step was
  sometimes made at the next step's rate.

  Args:
    loss: float32 scalar.
    init_lr: the largest learning rate.
    num_train_steps: the step at which a linear decay has brought it to 0.
    num_warmup_steps: steps of linear growth from 0; 0 or None for no such steps.
    use_tpu: average gradients over TPU cores.
  """
  step = tf.train.get_or_create_global_step()
  optimizer = AdamWeightDecayOptimizer(
    learning_rate=_learning_rate(step, init_lr, num_train_steps, num_warmup_steps),
    weight_decay_rate=0.01,
    beta_1=0.9,
    beta_2=0.999,
    epsilon=1e-6,
    exclude_from_weight_decay=["LayerNorm", "layer_norm", "bias"],
  )
  if use_tpu:
    optimizer = tpu.CrossShardOptimizer(optimizer)
  variables = tf.trainable_variables()
  gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), clip_norm=1.0)
  update = optimizer.apply_gradients(zip(gradients, variables, strict=True), global_step=step)
  with tf.control_dependencies([update]):
    return tf.group(step.assign(step + 1))


def _learning_rate(step, init_lr, num_train_steps, num_warmup_steps):
  """Computes float32 scalar: the rate of the step that has `step` steps before it."""
  rate = tf.train.polynomial_decay(
    tf.constant(init_lr, tf.float32), step, num_train_steps, end_learning_rate=0.0, power=1.0
  )
  if not num_warmup_steps:
    return rate
  done = tf.cast(tf.cast(step, tf.int32), tf.float32)
  warmup_rate = init_lr * (done / tf.constant(num_warmup_steps, tf.float32))
  is_warmup = tf.cast(done < num_warmup_steps, tf.float32)
  return (1.0 - is_warmup) * rate + is_warmup * warmup_rate


class AdamWeightDecayOptimizer(tf.train.Optimizer):
  """Adam whose weight decay is added to the update, not to the loss; no bias correction.

  Slots are the variables `NAME/adam_m` and `NAME/adam_v`.
  """

  def __init__(
    self,
    learning_rate: float | tf.Tensor,
    weight_decay_rate: float = 0.0,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-6,
    exclude_from_weight_decay: Sequence[str] | None = None,
    name: str = "AdamWeightDecayOptimizer",
  ):
    """With `exclude_from_weight_decay`: patterns, in names of variables that are not to decay."""
    super().__init__(False, name)
    self.learning_rate = learning_rate
    self.weight_decay_rate = weight_decay_rate
    self.beta_1 = beta_1
    self.beta_2 = beta_2
    self.epsilon = epsilon
    self.exclude_from_weight_decay = exclude_from_weight_decay

  def apply_gradients(
    self,
    grads_and_vars: Iterable[tuple[tf.Tensor | None, tf.Variable]],
    global_step: tf.Variable | None = None,
    name: str | None = None,
  ) -> tf.Operation:
    """Updates variables and slots; `global_step` is not counted here, see `create_optimizer`."""
    assignments = []
    for gradient, variable in grads_and_vars:
      if gradient is None or variable is None:
        continue
      variable_name = self._get_variable_name(variable.name)
      m, v = (
        tf.get_variable(
          f"{variable_name}/{slot}",
          variable.shape.as_list(),
          tf.float32,
          initializer=tf.zeros_initializer(),
          trainable=False,
        )
        for slot in ("adam_m", "adam_v")
      )
      next_m = tf.multiply(self.beta_1, m) + tf.multiply(1.0 - self.beta_1, gradient)
      next_v = tf.multiply(self.beta_2, v) + tf.multiply(1.0 - self.beta_2, tf.square(gradient))
      update = next_m / (tf.sqrt(next_v) + self.epsilon)
      if self._do_use_weight_decay(variable_name):
        update += self.weight_decay_rate * variable
      next_variable = variable - self.learning_rate * update
      assignments += [variable.assign(next_variable), m.assign(next_m), v.assign(next_v)]
    return tf.group(*assignments, name=name)

  def _do_use_weight_decay(self, param_name: str) -> bool:
    """Tells whether a variable decays."""
    excluded = self.exclude_from_weight_decay or ()
    return bool(self.weight_decay_rate) and not any(re.search(p, param_name) for p in excluded)

  def _get_variable_name(self, param_name: str) -> str:
    """Returns the name without `:0`."""
    return re.sub(r":\d+$", "", param_name)
