"""`tf.contrib.opt`: optimizers with decoupled weight decay, and Adam that leaves unused rows alone.

Decay takes `weight_decay * variable` off a variable before its gradient is applied, and of a sparse
gradient off its rows: https://arxiv.org/abs/1711.05101. The learning rate does not scale it.
"""

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf


class DecoupledWeightDecayExtension:
  """What an optimizer class with weight decay has beside its base.

  Args:
    weight_decay: a number, a scalar tensor or a function that returns one.
    **kwargs: of the optimizer.
  """

  def __init__(self, weight_decay, **kwargs):
    self._decay_var_list = None  # The variables to decay; None for all.
    self._weight_decay = weight_decay
    super().__init__(**kwargs)

  def minimize(
    self,
    loss,
    global_step=None,
    var_list=None,
    gate_gradients=tf.train.Optimizer.GATE_OP,
    aggregation_method=None,
    colocate_gradients_with_ops=False,
    name=None,
    grad_loss=None,
    decay_var_list=None,
  ):
    """Returns the op of a step. All variables decay, as in 1.15, which forgets `decay_var_list`:
    give it to `apply_gradients`.
    """
    if decay_var_list:
      tf.logging.warning("minimize(decay_var_list=...) decays all variables, as in 1.15.")
    return super().minimize(
      loss,
      global_step=global_step,
      var_list=var_list,
      gate_gradients=gate_gradients,
      aggregation_method=aggregation_method,
      colocate_gradients_with_ops=colocate_gradients_with_ops,
      name=name,
      grad_loss=grad_loss,
    )

  def apply_gradients(self, grads_and_vars, global_step=None, name=None, decay_var_list=None):
    """Returns the op of a step; `decay_var_list` are the variables to decay, None for all."""
    self._decay_var_list = {var.name for var in decay_var_list} if decay_var_list else None
    return super().apply_gradients(grads_and_vars, global_step=global_step, name=name)

  def _prepare(self):
    decay = self._weight_decay() if callable(self._weight_decay) else self._weight_decay
    self._weight_decay_tensor = tf.convert_to_tensor(decay, name="weight_decay")
    super()._prepare()

  def _decays(self, var) -> bool:
    return not self._decay_var_list or var.name in self._decay_var_list

  def _decay(self, var):
    return tf.cast(self._weight_decay_tensor, var.dtype.base_dtype) * var

  def _decayed(self, var):
    """Returns the op that decays a variable."""
    return var.assign_sub(self._decay(var), self._use_locking) if self._decays(var) else tf.no_op()

  def _apply_dense(self, grad, var):
    with tf.control_dependencies([self._decayed(var)]):
      return super()._apply_dense(grad, var)

  def _resource_apply_dense(self, grad, var):
    with tf.control_dependencies([self._decayed(var)]):
      return super()._resource_apply_dense(grad, var)

  def _decayed_rows(self, var, indices):
    """Returns the op that decays rows of a variable."""
    if not self._decays(var):
      return tf.no_op()
    rows = tf.gather(var, indices)
    return tf.scatter_sub(var, indices, self._decay(rows), self._use_locking)

  def _apply_sparse(self, grad, var):
    with tf.control_dependencies([self._decayed_rows(var, grad.indices)]):
      return super()._apply_sparse(grad, var)

  def _resource_apply_sparse(self, grad, var, indices):
    with tf.control_dependencies([self._decayed_rows(var, indices)]):
      return super()._resource_apply_sparse(grad, var, indices)


class AdamWOptimizer(DecoupledWeightDecayExtension, tf.train.AdamOptimizer):
  """Adam with decoupled weight decay."""

  def __init__(
    self,
    weight_decay,
    learning_rate=0.001,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    use_locking=False,
    name="AdamW",
  ):
    super().__init__(
      weight_decay,
      learning_rate=learning_rate,
      beta1=beta1,
      beta2=beta2,
      epsilon=epsilon,
      use_locking=use_locking,
      name=name,
    )


class MomentumWOptimizer(DecoupledWeightDecayExtension, tf.train.MomentumOptimizer):
  """Momentum with decoupled weight decay."""

  def __init__(
    self,
    weight_decay,
    learning_rate,
    momentum,
    use_locking=False,
    name="MomentumW",
    use_nesterov=False,
  ):
    super().__init__(
      weight_decay,
      learning_rate=learning_rate,
      momentum=momentum,
      use_locking=use_locking,
      name=name,
      use_nesterov=use_nesterov,
    )


def extend_with_decoupled_weight_decay(base_optimizer: type) -> type:
  """Returns the optimizer class with a first argument `weight_decay`; the others by keyword."""

  class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecayExtension, base_optimizer):
    """An optimizer with decoupled weight decay."""

  return OptimizerWithDecoupledWeightDecay


class LazyAdamOptimizer(tf.train.AdamOptimizer):
  """Adam that changes, of a sparse gradient, the rows in it alone: moments of the others stay."""

  def _apply_sparse(self, grad, var):
    return self._apply_to_rows(grad.values, var, grad.indices)

  def _resource_apply_sparse(self, grad, var, indices):
    return self._apply_to_rows(grad, var, indices)

  def _apply_to_rows(self, grad, var, indices):
    def of_dtype(value):
      return tf.cast(value, var.dtype.base_dtype)

    beta1_power, beta2_power = (of_dtype(power) for power in self._get_beta_accumulators())
    beta1, beta2 = of_dtype(self._beta1_t), of_dtype(self._beta2_t)
    rate = of_dtype(self._lr_t) * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
    slot_m, slot_v = self.get_slot(var, "m"), self.get_slot(var, "v")
    m = beta1 * tf.gather(slot_m, indices) + (1 - beta1) * grad
    v = beta2 * tf.gather(slot_v, indices) + (1 - beta2) * tf.square(grad)
    step = rate * m / (tf.sqrt(v) + of_dtype(self._epsilon_t))
    return tf.group(
      tf.scatter_sub(var, indices, step, self._use_locking),
      tf.scatter_update(slot_m, indices, m, self._use_locking),
      tf.scatter_update(slot_v, indices, v, self._use_locking),
    )


class LARSOptimizer(tf.train.MomentumOptimizer):
  """Momentum with a rate for each variable, by the norms of the variable and its gradient.

  Args:
    learning_rate: the rate of all variables.
    momentum: see `tf.train.MomentumOptimizer`.
    weight_decay: added to the gradient, times the variable.
    eeta: the rate's share of the ratio of the norms.
    epsilon: added to the gradient's norm.
    name: of the slots.
    skip_list: parts of names of variables that get the plain rate and no decay.
    use_nesterov: see `tf.train.MomentumOptimizer`.

  Source: https://arxiv.org/abs/1708.03888.
  """

  def __init__(
    self,
    learning_rate,
    momentum=0.9,
    weight_decay=0.0001,
    eeta=0.001,
    epsilon=0.0,
    name="LARSOptimizer",
    skip_list=None,
    use_nesterov=False,
  ):
    if momentum < 0.0:
      raise ValueError(f"momentum should be positive: {momentum}")
    super().__init__(learning_rate, momentum, name=name, use_nesterov=use_nesterov)
    self._weight_decay, self._eeta, self._epsilon = weight_decay, eeta, epsilon
    self._skip_list = skip_list

  def _apply_dense(self, grad, var):
    return self._scaled(grad, var, super()._apply_dense)

  def _resource_apply_dense(self, grad, var):
    return self._scaled(grad, var, super()._resource_apply_dense)

  def _scaled(self, grad, var, apply):
    """Applies the gradient times the variable's own rate: the slot holds it with the rate in it."""
    rate = self._learning_rate_tensor
    self._learning_rate_tensor = tf.ones_like(rate)
    applied = apply(self._own_rate(grad, var, rate), var)
    self._learning_rate_tensor = rate
    return applied

  def _own_rate(self, grad, var, rate):
    if any(part in var.name for part in self._skip_list or ()):
      return rate * grad
    of_var, of_grad = tf.norm(var), tf.norm(grad)
    ratio = self._eeta * of_var / (of_grad + self._weight_decay * of_var + self._epsilon)
    is_known = tf.logical_and(of_var > 0, of_grad > 0)
    rate *= tf.where(is_known, ratio, tf.ones_like(ratio))
    return rate * (grad + self._weight_decay * var)


def clip_gradients_by_global_norm(gradients_variables, clip_norm=20.0):
  """Returns the pairs of clipped gradient and variable, and the norm of all before."""
  gradients, variables = zip(*gradients_variables, strict=True)
  norm = tf.global_norm(gradients)
  clipped, _ = tf.clip_by_global_norm(gradients, clip_norm, use_norm=norm)
  return list(zip(clipped, variables, strict=True)), norm


__getattr__ = unknown_name(
  __name__, {"MovingAverageOptimizer": "use tf.train.ExponentialMovingAverage after the step."}
)
