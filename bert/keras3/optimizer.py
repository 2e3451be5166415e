"""The original's optimizer for Keras 3: AdamW with its omissions, and its learning rate.

  schedule = WarmUpLinearDecay(2e-5, num_train_steps=1000, num_warmup_steps=100)
  model.compile(optimizer=AdamWeightDecay(schedule), ...)

`optimization.py` has the same for the scripts, on TensorFlow.
"""

import re
from collections.abc import Mapping, Sequence

import keras
from keras import ops

from bert.keras3.parts import register

NO_WEIGHT_DECAY = ("LayerNorm", "layer_norm", "bias")

SCHEDULES = ("original", "continuous")


@register
class AdamWeightDecay(keras.optimizers.Optimizer):
  """Adam with decoupled weight decay (arXiv:1711.05101) and without bias correction.

  The first steps are so larger than Adam's; warm-up is what makes up for it. What a gradient's
  norm is clipped to is the norm over all variables. On TensorFlow that counts every occurrence of a
  word by itself, as the original does; JAX and PyTorch sum the occurrences first, so there the norm
  is of the true gradient.
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
    """Makes the optimizer.

    Args:
      learning_rate: a number or a schedule.
      weight_decay_rate: each step takes this share times the rate off a variable.
      beta_1: decay of the first moment.
      beta_2: decay of the second moment.
      epsilon: added to the root of the second moment.
      exclude_from_weight_decay: regular expressions; variables whose path one finds never decay.
      learning_rate_multipliers: regular expression -> factor of the rate for variables whose path
        it finds, the first that does; so a head may learn faster than the encoder
        (`{"^bert/": 0.1}`), or parts of it stay as they are (`{"^bert/embeddings/": 0.0}`).
      bias_correction: divide the moments by `1 - beta^t`, as Adam was published.
      global_clipnorm: gradients are scaled down to this norm; None for no limit.
      name: of the optimizer.
      **kwargs: of `keras.optimizers.Optimizer`, for instance `gradient_accumulation_steps`.
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
    """Creates the moments, and decides for each variable how it decays and how fast it learns."""
    if self.built:
      return
    super().build(variables)
    self._first, self._second = self.add_optimizer_variables(variables, ["adam_m", "adam_v"])
    self._decay_rates = tuple(self._decay_rate(variable.path) for variable in variables)
    self._factors = tuple(self._factor(variable.path) for variable in variables)

  def _decay_rate(self, path: str) -> float:
    excluded = any(re.search(pattern, path) for pattern in self.no_weight_decay)
    return 0.0 if excluded else self.weight_decay_rate

  def _factor(self, path: str) -> float:
    return next((f for pattern, f in self.multipliers if re.search(pattern, path)), 1.0)

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

      # Keras's own cannot take the norm of a table's sparse gradient.
      return tf.clip_by_global_norm(grads, self.global_clipnorm)[0]
    return super()._clip_gradients(grads)

  def get_config(self):
    """The constructor's arguments."""
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
    config.pop("weight_decay", None)  # Keras's own, which is not used
    return config


def _dense(gradient):
  """A table's gradient on TensorFlow has only the rows that were looked up; here it has all."""
  if keras.backend.backend() != "tensorflow":
    return gradient
  import tensorflow as tf

  return tf.convert_to_tensor(gradient)


@register
class WarmUpLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
  """A rate that grows linearly from 0, then falls linearly to 0 at the last step.

  Example:
    >>> schedule = WarmUpLinearDecay(1.0, num_train_steps=10, num_warmup_steps=2)
    >>> [round(float(schedule(step)), 3) for step in (0, 1, 2, 9, 10, 11)]
    [0.0, 0.5, 0.8, 0.1, 0.0, 0.0]
  """

  def __init__(
    self,
    init_lr: float,
    num_train_steps: int,
    num_warmup_steps: int | None = 0,
    schedule: str = "original",
  ):
    """Makes the schedule.

    Args:
      init_lr: peak rate.
      num_train_steps: where the rate reaches 0, and stays.
      num_warmup_steps: until where it grows; 0 or None for no warm-up.
      schedule: `original`: the falling line begins at step 0, so the rate drops where the warm-up
        ends; or `continuous`: it begins at the peak, as `get_linear_schedule_with_warmup` does.

    Raises:
      ValueError: `schedule` is unknown.
    """
    super().__init__()
    if schedule not in SCHEDULES:
      raise ValueError(f"schedule is {schedule!r}; known: {', '.join(SCHEDULES)}.")
    self.init_lr = init_lr
    self.num_train_steps = num_train_steps
    self.num_warmup_steps = num_warmup_steps or 0
    self.schedule = schedule

  def __call__(self, step):
    """The rate of the step after `step` others: float32 `[]`."""
    warmup, total = float(self.num_warmup_steps), float(self.num_train_steps)
    step = ops.minimum(ops.cast(step, "float32"), total)
    begin = 0.0 if self.schedule == "original" else warmup
    falling = self.init_lr * (total - step) / max(total - begin, 1.0)
    if not warmup:
      return falling
    return ops.where(step < warmup, self.init_lr * step / warmup, falling)

  def get_config(self):
    """The constructor's arguments."""
    return {
      "init_lr": self.init_lr,
      "num_train_steps": self.num_train_steps,
      "num_warmup_steps": self.num_warmup_steps,
      "schedule": self.schedule,
    }
