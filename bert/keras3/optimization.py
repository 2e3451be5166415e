"""The original's optimizer for Keras 3; `schedules.py` has learning rates with warm-up.

  schedule = WarmUpLinearDecay(2e-5, num_train_steps=1000, num_warmup_steps=100)
  model.compile(optimizer=AdamWeightDecay(schedule), ...)

or, in a loop of PyTorch, after `watch(model.parameters())`, `step()` and `zero_grad()`.

`optimization.py` at the root is the counterpart for the scripts, on TensorFlow.
"""

import re
from collections.abc import Mapping, Sequence

import keras
from keras import ops

from bert.keras3.building_blocks import register
from bert.keras3.torch_loops import LoopMethods

NO_WEIGHT_DECAY = ("LayerNorm", "layer_norm", "bias")


@register
class AdamWeightDecay(LoopMethods, keras.optimizers.Optimizer):
  """Adam with decoupled weight decay (arXiv:1711.05101) and without bias correction.

  Without the correction the first steps are larger than Adam's; warm-up compensates for that.
  Gradients are clipped by their global norm over all variables. On TensorFlow every occurrence of a
  token counts separately in the norm, as in the original; JAX and PyTorch sum the occurrences, so
  there it is the norm of the true gradient.
  """

  def __init__(
    self,
    learning_rate=2e-5,
    weight_decay_rate: float = 0.01,
    beta_1: float = 0.9,
    beta_2: float = 0.999,
    epsilon: float = 1e-6,
    exclude_from_weight_decay: Sequence[str] = NO_WEIGHT_DECAY,
    learning_rate_multipliers: Mapping[str, float] | None = None,
    bias_correction: bool = False,
    global_clipnorm: float | None = 1.0,
    name: str = "adam_weight_decay",
    **kwargs,
  ):
    """Creates the optimizer.

    Args:
      learning_rate: a number or a schedule.
      weight_decay_rate: each step subtracts this times the learning rate times the variable.
      beta_1: decay of the first moment.
      beta_2: decay of the second moment.
      epsilon: added to the root of the second moment.
      exclude_from_weight_decay: regular expressions; variables whose path matches never decay.
      learning_rate_multipliers: regular expression -> factor of the learning rate for variables
        whose path matches; the first match counts. A head can learn faster than the encoder
        (`{"^bert/": 0.1}`), and parts of the encoder can be frozen (`{"^bert/embeddings/": 0.0}`).
      bias_correction: divide the moments by `1 - beta^t`, as in the Adam paper.
      global_clipnorm: gradients are scaled down to this global norm; None for no limit.
      name: name of the optimizer.
      **kwargs: arguments of `keras.optimizers.Optimizer`, such as `gradient_accumulation_steps`.
    """
    super().__init__(
      learning_rate=learning_rate, global_clipnorm=global_clipnorm, name=name, **kwargs
    )
    self.weight_decay_rate = weight_decay_rate
    self.beta_1 = beta_1
    self.beta_2 = beta_2
    self.epsilon = epsilon
    # Not lists: Keras would wrap and track those.
    self.no_weight_decay = tuple(exclude_from_weight_decay)
    self.multipliers = tuple((learning_rate_multipliers or {}).items())
    self.bias_correction = bias_correction

  def build(self, variables):
    """Creates the moments; sets each variable's weight decay and factor of the learning rate."""
    if self.built:
      return
    super().build(variables)
    self._first, self._second = self.add_optimizer_variables(variables, ["adam_m", "adam_v"])
    self._decay_rates = tuple(self._decay_rate(variable) for variable in variables)
    self._factors = tuple(self._factor(variable) for variable in variables)

  def _decay_rate(self, variable: keras.Variable) -> float:
    path, group = self.path_and_group(variable)
    excluded = any(matches(pattern, path) for pattern in self.no_weight_decay)
    return 0.0 if excluded else group.get("weight_decay", self.weight_decay_rate)

  def _factor(self, variable: keras.Variable) -> float:
    path, group = self.path_and_group(variable)
    factor = next((f for pattern, f in self.multipliers if re.search(pattern, path)), 1.0)
    return factor * group.get("lr_factor", 1.0)

  def update_step(self, gradient, variable, learning_rate):
    """Updates one variable and its moments."""
    index = self._get_variable_index(variable)
    if self._factors[index] == 0.0:
      return
    m, v = self._first[index], self._second[index]
    gradient = ops.cast(_dense(gradient), variable.dtype)
    rate = ops.cast(learning_rate, variable.dtype) * self._factors[index]
    next_m = self.beta_1 * m + (1.0 - self.beta_1) * gradient
    next_v = self.beta_2 * v + (1.0 - self.beta_2) * ops.square(gradient)
    first, second = self._corrections(variable.dtype)
    update = (next_m / first) / (ops.sqrt(next_v / second) + self.epsilon)
    if self._decay_rates[index]:
      update = update + self._decay_rates[index] * variable
    self.assign(m, next_m)
    self.assign(v, next_v)
    self.assign_sub(variable, rate * update)

  def _corrections(self, dtype):
    if not self.bias_correction:
      return 1.0, 1.0
    step = ops.cast(self.iterations + 1, dtype)
    return tuple(
      1.0 - ops.power(ops.cast(beta, dtype), step) for beta in (self.beta_1, self.beta_2)
    )

  def _clip_gradients(self, grads):
    if self.global_clipnorm and keras.backend.backend() == "tensorflow":
      import tensorflow as tf

      # Keras's own fails on the sparse gradient of a table.
      return tf.clip_by_global_norm(grads, self.global_clipnorm)[0]
    return super()._clip_gradients(grads)

  def get_config(self):
    """Returns the constructor's arguments."""
    config = super().get_config()
    config.update(
      weight_decay_rate=self.weight_decay_rate,
      beta_1=self.beta_1,
      beta_2=self.beta_2,
      epsilon=self.epsilon,
      exclude_from_weight_decay=list(self.no_weight_decay),
      learning_rate_multipliers=dict(self.multipliers),
      bias_correction=self.bias_correction,
    )
    config.pop("weight_decay", None)  # Keras's own, not used
    return config


def matches(pattern: str, path: str) -> bool:
  """Tells whether a regular expression is found in the path of a variable."""
  return re.search(pattern, path) is not None


def _dense(gradient):
  """Adds the rows that TensorFlow's gradient of a table lacks: those not looked up."""
  if keras.backend.backend() != "tensorflow":
    return gradient
  import tensorflow as tf

  return tf.convert_to_tensor(gradient)
