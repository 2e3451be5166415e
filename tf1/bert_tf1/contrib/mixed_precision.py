"""`tf.contrib.mixed_precision`: loss scaling, for models that compute gradients in float16.

The loss is multiplied, so that small gradients do not become 0, and the gradients are divided. A
step with a gradient that is not finite is left out. Of all in float32 the results stay as they are.
"""

import abc

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf


class LossScaleManager(abc.ABC):
  """What the loss is multiplied by."""

  @abc.abstractmethod
  def get_loss_scale(self):
    """Returns the scale, a float32 scalar."""

  @abc.abstractmethod
  def update_loss_scale(self, finite_grads):
    """Returns the op to run after a step; `finite_grads` is a bool scalar."""


class FixedLossScaleManager(LossScaleManager):
  """Always the same scale, 1 or more."""

  def __init__(self, loss_scale):
    if loss_scale < 1:
      raise ValueError("loss scale must be at least 1.")
    self._loss_scale = tf.convert_to_tensor(loss_scale, tf.float32)

  def get_loss_scale(self):
    """Returns the scale."""
    return self._loss_scale

  def update_loss_scale(self, finite_grads):
    """Returns an op that does nothing."""
    del finite_grads
    return tf.no_op()


class ExponentialUpdateLossScaleManager(LossScaleManager):
  """A scale that grows while gradients are finite and shrinks when they are not.

  The variables `loss_scale`, `good_steps` and `bad_steps` hold it and are saved in checkpoints.

  Args:
    init_loss_scale: the first scale.
    incr_every_n_steps: finite steps before it grows.
    decr_every_n_nan_or_inf: steps that are not finite before it shrinks.
    incr_ratio: what it is multiplied by to grow.
    decr_ratio: what it is multiplied by to shrink, to 1 at the least.
  """

  def __init__(
    self,
    init_loss_scale,
    incr_every_n_steps,
    decr_every_n_nan_or_inf=2,
    incr_ratio=2,
    decr_ratio=0.8,
  ):
    self._incr_every, self._decr_every = incr_every_n_steps, decr_every_n_nan_or_inf
    self._incr_ratio, self._decr_ratio = incr_ratio, decr_ratio
    self._loss_scale = _variable(init_loss_scale, "loss_scale", tf.float32)
    self._good_steps = _variable(0, "good_steps", tf.int32)
    self._bad_steps = _variable(0, "bad_steps", tf.int32)

  def get_loss_scale(self):
    """Returns the scale."""
    return self._loss_scale.value()

  def update_loss_scale(self, finite_grads):
    """Returns the op that counts the step and changes the scale when it is time."""
    return tf.cond(finite_grads, self._after_finite, self._after_not_finite)

  def _after_finite(self):
    def grow():
      grown = self._loss_scale * self._incr_ratio
      return self._set(tf.where(tf.is_finite(grown), grown, self._loss_scale))

    is_time = self._good_steps + 1 >= self._incr_every
    return tf.cond(is_time, grow, lambda: tf.group(tf.assign_add(self._good_steps, 1)))

  def _after_not_finite(self):
    def shrink():
      return self._set(tf.maximum(1.0, self._loss_scale * self._decr_ratio))

    def count():
      return tf.group(tf.assign_add(self._bad_steps, 1), tf.assign(self._good_steps, 0))

    return tf.cond(self._bad_steps + 1 >= self._decr_every, shrink, count)

  def _set(self, scale):
    return tf.group(
      tf.assign(self._loss_scale, scale),
      tf.assign(self._good_steps, 0),
      tf.assign(self._bad_steps, 0),
    )


class LossScaleOptimizer(tf.train.Optimizer):
  """An optimizer whose loss is scaled, and gradients scaled back.

  Args:
    opt: the optimizer.
    loss_scale_manager: says the scale.
  """

  def __init__(self, opt, loss_scale_manager):
    super().__init__(False, "LossScaleOptimizer")
    self._opt, self._loss_scale_manager = opt, loss_scale_manager

  def compute_gradients(
    self,
    loss,
    var_list=None,
    gate_gradients=tf.train.Optimizer.GATE_OP,
    aggregation_method=None,
    colocate_gradients_with_ops=False,
    grad_loss=None,
  ):
    """Returns the pairs of gradient, scaled back, and variable."""
    scale = self._loss_scale_manager.get_loss_scale()
    grads_and_vars = self._opt.compute_gradients(
      loss * tf.cast(scale, loss.dtype.base_dtype),
      var_list=var_list,
      gate_gradients=gate_gradients,
      aggregation_method=aggregation_method,
      colocate_gradients_with_ops=colocate_gradients_with_ops,
      grad_loss=grad_loss,
    )
    return [(_scaled_back(grad, scale), var) for grad, var in grads_and_vars]

  def apply_gradients(self, grads_and_vars, global_step=None, name=None):
    """Returns the op that applies the gradients, if all are finite, and changes the scale."""
    grads_and_vars = list(grads_and_vars)
    finite = tf.reduce_all(
      [tf.reduce_all(tf.is_finite(_values(g))) for g, _ in grads_and_vars if g is not None]
    )
    step = tf.cond(
      finite,
      lambda: self._opt.apply_gradients(grads_and_vars, global_step, name),
      lambda: tf.no_op("bad_step"),
    )
    with tf.control_dependencies([step]):
      return tf.group(step, self._loss_scale_manager.update_loss_scale(finite))


def _variable(value, name: str, dtype):
  return tf.Variable(tf.convert_to_tensor(value, dtype), name=name, trainable=False)


def _values(grad):
  return grad.values if isinstance(grad, tf.IndexedSlices) else grad


def _scaled_back(grad, scale):
  """Returns a gradient, dense or sparse or None, divided by the scale."""
  if grad is None:
    return None
  inverse = tf.cast(tf.reciprocal(scale), grad.dtype.base_dtype)
  if isinstance(grad, tf.IndexedSlices):
    return tf.IndexedSlices(grad.values * inverse, grad.indices, grad.dense_shape)
  return grad * inverse


__getattr__ = unknown_name(__name__)
