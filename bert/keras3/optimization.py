"""The original's optimizer and learning rates with warm-up, for Keras and loops of PyTorch.

  schedule = WarmUpLinearDecay(2e-5, num_train_steps=1000, num_warmup_steps=100)
  model.compile(optimizer=AdamWeightDecay(schedule), ...)
  model.compile(optimizer=create_optimizer(2e-5, 1000, 100), ...)            # the same

  optimizer = AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)
  scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=500,
                                              num_training_steps=1000)

On PyTorch the last two are PyTorch's own, for its loops; elsewhere they are Keras's, for `compile`.

`optimization.py` at the root is the counterpart for the scripts, on TensorFlow.
"""

import numbers
import re
from collections.abc import Mapping, Sequence

import keras
from keras import ops

from bert.keras3.building_blocks import register
from bert.keras3.torch_modules import on_torch

NO_WEIGHT_DECAY = ("LayerNorm", "layer_norm", "bias")


# ---------------------------------------------------------------------------------------------
# Learning rates.


@register
class WarmUpLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
  """The original's learning rate: grows linearly from 0, then falls linearly to 0 at the last step.

  The falling line starts at step 0, so the rate drops at the end of the warm-up; that of
  `LinearWithWarmup` does not.

  Example:
    >>> schedule = WarmUpLinearDecay(1.0, num_train_steps=10, num_warmup_steps=2)
    >>> [round(float(schedule(step)), 3) for step in (0, 1, 2, 9, 10, 11)]
    [0.0, 0.5, 0.8, 0.1, 0.0, 0.0]
  """

  def __init__(self, init_lr: float, num_train_steps: int, num_warmup_steps: int | None = 0):
    """Creates the schedule.

    Args:
      init_lr: peak rate.
      num_train_steps: step at which the learning rate reaches 0.
      num_warmup_steps: number of steps in which it grows; 0 or None for no warm-up.
    """
    super().__init__()
    self.init_lr = init_lr
    self.num_train_steps = num_train_steps
    self.num_warmup_steps = num_warmup_steps or 0

  def __call__(self, step):
    """Computes the learning rate after `step` steps: float32 `[]`."""
    warmup, total = float(self.num_warmup_steps), float(self.num_train_steps)
    step = ops.minimum(ops.cast(step, "float32"), total)
    falling = self.init_lr * (total - step) / max(total, 1.0)
    if not warmup:
      return falling
    return ops.where(step < warmup, self.init_lr * step / warmup, falling)

  def get_config(self):
    """Returns the constructor's arguments."""
    return {
      "init_lr": self.init_lr,
      "num_train_steps": self.num_train_steps,
      "num_warmup_steps": self.num_warmup_steps,
    }

  @classmethod
  def from_config(cls, config):
    """Creates the schedule of a config; earlier ones state which of the two schedules it is."""
    config = dict(config)
    is_continuous = config.pop("schedule", "original") == "continuous"
    return (LinearWithWarmup if is_continuous else cls)(**config)


@register
class LinearWithWarmup(WarmUpLinearDecay):
  """A learning rate that grows linearly from 0, then falls linearly from its peak to 0.

  Example:
    >>> schedule = LinearWithWarmup(2.0, num_train_steps=1000, num_warmup_steps=500)
    >>> [float(schedule(step)) for step in (0, 250, 500, 750, 1000, 1001)]
    [0.0, 1.0, 2.0, 1.0, 0.0, 0.0]
  """

  def __call__(self, step):
    """Computes the learning rate after `step` steps: float32 `[]`."""
    step, warmup = ops.cast(step, "float32"), self.num_warmup_steps
    warmth = ops.minimum(step / warmup, 1.0) if warmup else 1.0
    after = ops.maximum(step - warmup, 0.0) / max(self.num_train_steps - warmup, 1)
    return self.init_lr * warmth * (1.0 - ops.minimum(after, 1.0))


# ---------------------------------------------------------------------------------------------
# The original's optimizer.


@register
class AdamWeightDecay(keras.optimizers.Optimizer):
  """Adam with decoupled weight decay (arXiv:1711.05101), by default without bias correction.

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
    include_in_weight_decay: Sequence[str] = (),
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
      epsilon: added to the root of the second moment, before its correction.
      exclude_from_weight_decay: regular expressions; variables whose path matches never decay.
      include_in_weight_decay: regular expressions; variables whose path matches decay anyway.
      learning_rate_multipliers: regular expression -> factor of the learning rate for variables
        whose path matches; the first match counts. A head can learn faster than the encoder
        (`{"^bert/": 0.1}`), and parts of the encoder can be frozen (`{"^bert/embeddings/": 0.0}`).
      bias_correction: correct the moments as Keras's Adam does.
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
    self.always_decayed = tuple(include_in_weight_decay)
    self.multipliers = tuple((learning_rate_multipliers or {}).items())
    self.bias_correction = bias_correction

  def build(self, variables):
    """Creates the moments; sets each variable's weight decay and factor of the learning rate."""
    if self.built:
      return
    super().build(variables)
    self._first, self._second = self.add_optimizer_variables(variables, ["adam_m", "adam_v"])
    self._decay_rates = tuple(self._decay_rate(variable.path) for variable in variables)
    self._factors = tuple(self._factor(variable.path) for variable in variables)

  def _decay_rate(self, path: str) -> float:
    excluded = _any_matches(self.no_weight_decay, path)
    included = _any_matches(self.always_decayed, path)
    return 0.0 if excluded and not included else self.weight_decay_rate

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
    update = next_m / self._correction(variable.dtype) / (ops.sqrt(next_v) + self.epsilon)
    if self._decay_rates[index]:
      update = update + self._decay_rates[index] * variable
    self.assign(m, next_m)
    self.assign(v, next_v)
    self.assign_sub(variable, rate * update)

  def _correction(self, dtype):
    """Returns what makes up for moments that started at 0."""
    if not self.bias_correction:
      return 1.0
    step = ops.cast(self.iterations + 1, dtype)
    first, second = (
      1.0 - ops.power(ops.cast(beta, dtype), step) for beta in (self.beta_1, self.beta_2)
    )
    return first / ops.sqrt(second)

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
      include_in_weight_decay=list(self.always_decayed),
      learning_rate_multipliers=dict(self.multipliers),
      bias_correction=self.bias_correction,
    )
    config.pop("weight_decay", None)  # Keras's own, not used
    return config


def _any_matches(patterns: Sequence[str], path: str) -> bool:
  return any(re.search(pattern, path) for pattern in patterns)


def _dense(gradient):
  """Adds the rows that TensorFlow's gradient of a table lacks: those not looked up."""
  if keras.backend.backend() != "tensorflow":
    return gradient
  import tensorflow as tf

  return tf.convert_to_tensor(gradient)


def create_optimizer(init_lr, num_train_steps, num_warmup_steps=None, last=None) -> AdamWeightDecay:
  """Creates the original's optimizer, with its schedule, weight decay and clipping.

  `create_optimizer(model.parameters(), init_lr, num_train_steps, num_warmup_steps)` does the same:
  `fit` passes the model's variables itself.

  Args:
    init_lr: peak rate.
    num_train_steps: step at which the learning rate reaches 0.
    num_warmup_steps: number of steps in which it grows; 0 or None for no warm-up.
    last: `num_warmup_steps`, if the first argument are the parameters.

  Raises:
    ValueError: a number is out of range.
  """
  if not isinstance(init_lr, numbers.Real):
    init_lr, num_train_steps, num_warmup_steps = num_train_steps, num_warmup_steps, last
  if not (init_lr >= 0 and num_train_steps >= 1):
    raise ValueError(
      f"init_lr is {init_lr} and num_train_steps {num_train_steps}; they must be at least 0 and 1. "
      "The order is init_lr, num_train_steps, num_warmup_steps."
    )
  return AdamWeightDecay(WarmUpLinearDecay(init_lr, num_train_steps, num_warmup_steps))


# ---------------------------------------------------------------------------------------------
# The optimizer and schedule of transformers' examples.


def AdamW(  # noqa: N802, a class in transformers
  params=None,
  lr: float = 1e-3,
  betas: tuple[float, float] = (0.9, 0.999),
  eps: float = 1e-6,
  weight_decay: float = 0.0,
):
  """Creates the backend's AdamW: Adam with decoupled weight decay of all variables.

  Args:
    params: on PyTorch parameters, or groups of them, which make it `torch.optim.AdamW`. Without
      them, and on other backends, it is `keras.optimizers.AdamW`: `fit` passes the variables.
    lr: the learning rate.
    betas: decay of the first and the second moment.
    eps: added to the root of the second moment.
    weight_decay: each step subtracts this times the learning rate times the variable.
  """
  if on_torch() and params is not None:
    import torch

    return torch.optim.AdamW(params, lr, betas, eps, weight_decay)
  return keras.optimizers.AdamW(lr, weight_decay, *betas, eps)


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps: int, num_training_steps: int):
  """Sets and returns an optimizer's schedule: the rate rises linearly to its own, then falls to 0.

  Args:
    optimizer: PyTorch's, which gets a `LambdaLR` that keeps the ratios of its groups' rates; or
      Keras's, which gets a `LinearWithWarmup`.
    num_warmup_steps: number of steps in which the rate rises.
    num_training_steps: step at which it reaches 0.

  Raises:
    ValueError: an optimizer of Keras has a schedule or has made steps.
  """
  if on_torch() and not isinstance(optimizer, keras.optimizers.Optimizer):
    import torch

    def factor(step: int) -> float:
      if step < num_warmup_steps:
        return step / num_warmup_steps
      rest = max(num_training_steps - num_warmup_steps, 1)
      return max(num_training_steps - step, 0) / rest

    return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
  # `optimizer.learning_rate` is the present value of a schedule.
  if isinstance(optimizer._learning_rate, keras.optimizers.schedules.LearningRateSchedule):
    raise ValueError("The optimizer already has a schedule; create it with a learning rate.")
  if optimizer.built and int(optimizer.iterations):
    # A compiled step keeps the learning rate it was compiled with.
    raise ValueError("The optimizer has already made steps; set its schedule before the first.")
  schedule = LinearWithWarmup(float(optimizer.learning_rate), num_training_steps, num_warmup_steps)
  optimizer.learning_rate = schedule
  return schedule
