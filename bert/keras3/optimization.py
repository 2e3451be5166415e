"""The original's optimizer and learning rates with warm-up, for Keras 3.

  schedule = WarmUpLinearDecay(2e-5, num_train_steps=1000, num_warmup_steps=100)
  model.compile(optimizer=AdamWeightDecay(schedule), ...)

or under the names of the transformers library:

  optimizer = AdamW(lr=2e-5, weight_decay=0.01)
  get_linear_schedule_with_warmup(optimizer, num_warmup_steps=500, num_training_steps=1000)

`optimization.py` at the root is the counterpart of `AdamWeightDecay` and `WarmUpLinearDecay` for
the scripts, on TensorFlow.

With w warm-up steps, N steps in total and p = (step - w) / (N - w), limited to [0, 1], the rate is
`init_lr` times step / w before step w, and afterwards `init_lr` times

| schedule | factor |
|---|---|
| `ConstantWithWarmup` | 1 |
| `LinearWithWarmup` | 1 - p |
| `CosineWithWarmup` | (1 + cos(2 pi c p)) / 2, c = `num_cycles`: 0.5 for half a wave, down to 0 |
| `CosineRestartsWithWarmup` | (1 + cos(pi (c p mod 1))) / 2, and 0 at p = 1 |
| `PolynomialWithWarmup` | (1 - e) (1 - p)^k + e, e = `end_lr` / `init_lr`, k = `power` |
| `InverseSqrtWithWarmup` | sqrt(t / (step - w + t)), t = `timescale` (arXiv:1706.03762) |

These are continuous at the end of the warm-up. The original's schedule, `WarmUpLinearDecay`, drops
there: its line starts at step 0.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import keras
from keras import ops

from bert.keras3.parts import register, require_one_of

NO_WEIGHT_DECAY = ("LayerNorm", "layer_norm", "bias")

SCHEDULES = ("original", "continuous")


@register
class AdamWeightDecay(keras.optimizers.Optimizer):
  """Adam with decoupled weight decay (arXiv:1711.05101) and without bias correction.

  Without the correction the first steps are larger than Adam's; warm-up compensates for that.
  Gradients are clipped by their global norm over all variables. On TensorFlow every occurrence of a
  word counts separately in the norm, as in the original; JAX and PyTorch sum the occurrences first,
  so there it is the norm of the true gradient.
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

      # Keras's own fails on the sparse gradient of a table.
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
    config.pop("weight_decay", None)  # Keras's own, not used
    return config


def _dense(gradient):
  """On TensorFlow the gradient of a table has only the looked-up rows; this adds the others."""
  if keras.backend.backend() != "tensorflow":
    return gradient
  import tensorflow as tf

  return tf.convert_to_tensor(gradient)


@register
class WarmUpLinearDecay(keras.optimizers.schedules.LearningRateSchedule):
  """A rate that grows linearly from 0 and then falls linearly to 0 at the last step.

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
    """Creates the schedule.

    Args:
      init_lr: peak rate.
      num_train_steps: step at which the rate reaches 0.
      num_warmup_steps: number of steps in which the rate grows; 0 or None for no warm-up.
      schedule: `original`: the falling line starts at step 0, so the rate drops at the end of the
        warm-up; or `continuous`: it starts at the peak, as in `LinearWithWarmup`.

    Raises:
      ValueError: `schedule` is unknown.
    """
    super().__init__()
    require_one_of("schedule", schedule, SCHEDULES)
    self.init_lr = init_lr
    self.num_train_steps = num_train_steps
    self.num_warmup_steps = num_warmup_steps or 0
    self.schedule = schedule

  def __call__(self, step):
    """The learning rate after `step` steps: float32 `[]`."""
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


@register
class ConstantWithWarmup(keras.optimizers.schedules.LearningRateSchedule):
  """A rate that grows linearly from 0 and then stays; the base of the following schedules.

  Example:
    >>> schedule = ConstantWithWarmup(1.0, num_warmup_steps=4)
    >>> [float(schedule(step)) for step in (0, 1, 2, 4, 100)]
    [0.0, 0.25, 0.5, 1.0, 1.0]
  """

  def __init__(self, init_lr: float, num_warmup_steps: int = 0):
    """Creates the schedule.

    Args:
      init_lr: peak rate.
      num_warmup_steps: w, 0 for no warm-up.

    Raises:
      ValueError: a number is out of range.
    """
    super().__init__()
    if num_warmup_steps < 0:
      raise ValueError(f"num_warmup_steps is {num_warmup_steps}; it must not be negative.")
    self.init_lr = init_lr
    self.num_warmup_steps = num_warmup_steps

  def __call__(self, step):
    """The learning rate after `step` steps: float32 `[]`."""
    step = ops.cast(step, "float32")
    after = ops.maximum(step - self.num_warmup_steps, 0.0)
    warmth = (
      ops.minimum(step / max(self.num_warmup_steps, 1), 1.0) if self.num_warmup_steps else 1.0
    )
    return self.init_lr * warmth * self.factor(after)

  def factor(self, after):
    """The factor of the peak rate.

    Args:
      after: float32 `[]`, steps since the end of the warm-up; 0 during it.
    """
    return ops.ones_like(after)

  def get_config(self):
    """The constructor's arguments."""
    return {"init_lr": self.init_lr, "num_warmup_steps": self.num_warmup_steps}


@register
class LinearWithWarmup(ConstantWithWarmup):
  """A rate that falls linearly to 0 at the last step.

  Example:
    >>> schedule = LinearWithWarmup(2.0, num_train_steps=1000, num_warmup_steps=500)
    >>> [float(schedule(step)) for step in (0, 250, 500, 750, 1000, 1001)]
    [0.0, 1.0, 2.0, 1.0, 0.0, 0.0]
  """

  def __init__(self, init_lr: float, num_train_steps: int, num_warmup_steps: int = 0):
    """Creates the schedule.

    Args:
      init_lr: peak rate.
      num_train_steps: N, more than w.
      num_warmup_steps: w.

    Raises:
      ValueError: a number is out of range.
    """
    super().__init__(init_lr, num_warmup_steps)
    if num_train_steps <= num_warmup_steps:
      raise ValueError(
        f"num_train_steps is {num_train_steps}; it must be more than the {num_warmup_steps} steps "
        "of the warm-up."
      )
    self.num_train_steps = num_train_steps

  def factor(self, after):
    """See `ConstantWithWarmup.factor`."""
    return self.decay(ops.minimum(after / (self.num_train_steps - self.num_warmup_steps), 1.0))

  def decay(self, progress):
    """The factor after a share `progress` of the steps that follow the warm-up."""
    return 1.0 - progress

  def get_config(self):
    """The constructor's arguments."""
    return {**super().get_config(), "num_train_steps": self.num_train_steps}


@register
class CosineWithWarmup(LinearWithWarmup):
  """A rate that falls along a cosine (arXiv:1608.03983, without restarts)."""

  def __init__(
    self,
    init_lr: float,
    num_train_steps: int,
    num_warmup_steps: int = 0,
    num_cycles: float = 0.5,
  ):
    """Creates the schedule; `num_cycles` is the number of waves, 0.5 to end at 0."""
    super().__init__(init_lr, num_train_steps, num_warmup_steps)
    self.num_cycles = num_cycles

  def decay(self, progress):
    """See `LinearWithWarmup.decay`."""
    return 0.5 * (1.0 + ops.cos(2.0 * math.pi * self.num_cycles * progress))

  def get_config(self):
    """The constructor's arguments."""
    return {**super().get_config(), "num_cycles": self.num_cycles}


@register
class CosineRestartsWithWarmup(CosineWithWarmup):
  """A rate that falls along a cosine `num_cycles` times, each time from the peak."""

  def __init__(
    self,
    init_lr: float,
    num_train_steps: int,
    num_warmup_steps: int = 0,
    num_cycles: int = 1,
  ):
    """Creates the schedule."""
    super().__init__(init_lr, num_train_steps, num_warmup_steps, num_cycles)

  def decay(self, progress):
    """See `LinearWithWarmup.decay`."""
    wave = 0.5 * (1.0 + ops.cos(math.pi * ((self.num_cycles * progress) % 1.0)))
    return ops.where(progress >= 1.0, 0.0, wave)


@register
class PolynomialWithWarmup(LinearWithWarmup):
  """A rate that falls to `end_lr` as a power of the remaining share of the steps."""

  def __init__(
    self,
    init_lr: float,
    num_train_steps: int,
    num_warmup_steps: int = 0,
    end_lr: float = 1e-7,
    power: float = 1.0,
  ):
    """Creates the schedule.

    Args:
      init_lr: peak rate.
      num_train_steps: N.
      num_warmup_steps: w.
      end_lr: final rate, below the peak.
      power: k; 1 for a line.

    Raises:
      ValueError: a number is out of range.
    """
    super().__init__(init_lr, num_train_steps, num_warmup_steps)
    if not 0 <= end_lr < init_lr:
      raise ValueError(f"end_lr is {end_lr}; it must be at least 0 and below init_lr, {init_lr}.")
    self.end_lr = end_lr
    self.power = power

  def decay(self, progress):
    """See `LinearWithWarmup.decay`."""
    end = self.end_lr / self.init_lr
    return (1.0 - end) * (1.0 - progress) ** self.power + end

  def get_config(self):
    """The constructor's arguments."""
    return {**super().get_config(), "end_lr": self.end_lr, "power": self.power}


@register
class InverseSqrtWithWarmup(ConstantWithWarmup):
  """A rate that falls with the square root of the steps, without a last step."""

  def __init__(self, init_lr: float, num_warmup_steps: int = 0, timescale: int | None = None):
    """Creates the schedule; `timescale` is w by default, or 10,000 without a warm-up."""
    super().__init__(init_lr, num_warmup_steps)
    self.timescale = timescale or num_warmup_steps or 10_000

  def factor(self, after):
    """See `ConstantWithWarmup.factor`."""
    return ops.sqrt(self.timescale / (after + self.timescale))

  def get_config(self):
    """The constructor's arguments."""
    return {**super().get_config(), "timescale": self.timescale}


# ---------------------------------------------------------------------------------------------
# The names of the transformers library. The optimizer's rate becomes the peak of its schedule.


def AdamW(  # noqa: N802, a class in transformers
  parameters=None,
  lr: float = 1e-3,
  betas: tuple[float, float] = (0.9, 0.999),
  eps: float = 1e-6,
  weight_decay: float = 0.0,
  correct_bias: bool = True,
) -> AdamWeightDecay:
  """Adam with decoupled weight decay of all variables, without clipping.

  Args:
    parameters: ignored: Keras passes the model's trainable variables to the optimizer.
    lr: the learning rate.
    betas: decay of the first and the second moment.
    eps: added to the root of the second moment.
    weight_decay: each step subtracts this times the learning rate times the variable.
    correct_bias: bias correction as in the Adam paper; BERT was trained without it.
  """
  del parameters
  return AdamWeightDecay(
    lr,
    weight_decay_rate=weight_decay,
    beta_1=betas[0],
    beta_2=betas[1],
    epsilon=eps,
    exclude_from_weight_decay=(),
    bias_correction=correct_bias,
    global_clipnorm=None,
  )


def get_constant_schedule_with_warmup(optimizer, num_warmup_steps: int):
  """Sets and returns an optimizer's `ConstantWithWarmup`."""
  return _set_schedule(optimizer, ConstantWithWarmup, num_warmup_steps)


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps: int, num_training_steps: int):
  """Sets and returns an optimizer's `LinearWithWarmup`."""
  return _set_schedule(optimizer, LinearWithWarmup, num_training_steps, num_warmup_steps)


def get_cosine_schedule_with_warmup(
  optimizer, num_warmup_steps: int, num_training_steps: int, num_cycles: float = 0.5
):
  """Sets and returns an optimizer's `CosineWithWarmup`."""
  steps = (num_training_steps, num_warmup_steps)
  return _set_schedule(optimizer, CosineWithWarmup, *steps, num_cycles)


def get_cosine_with_hard_restarts_schedule_with_warmup(
  optimizer, num_warmup_steps: int, num_training_steps: int, num_cycles: int = 1
):
  """Sets and returns an optimizer's `CosineRestartsWithWarmup`."""
  steps = (num_training_steps, num_warmup_steps)
  return _set_schedule(optimizer, CosineRestartsWithWarmup, *steps, num_cycles)


def get_polynomial_decay_schedule_with_warmup(
  optimizer,
  num_warmup_steps: int,
  num_training_steps: int,
  lr_end: float = 1e-7,
  power: float = 1.0,
):
  """Sets and returns an optimizer's `PolynomialWithWarmup`."""
  steps = (num_training_steps, num_warmup_steps)
  return _set_schedule(optimizer, PolynomialWithWarmup, *steps, lr_end, power)


def get_inverse_sqrt_schedule(optimizer, num_warmup_steps: int, timescale: int | None = None):
  """Sets and returns an optimizer's `InverseSqrtWithWarmup`."""
  return _set_schedule(optimizer, InverseSqrtWithWarmup, num_warmup_steps, timescale)


_BY_NAME: dict[str, Callable[..., Any]] = {
  "constant_with_warmup": get_constant_schedule_with_warmup,
  "linear": get_linear_schedule_with_warmup,
  "cosine": get_cosine_schedule_with_warmup,
  "cosine_with_restarts": get_cosine_with_hard_restarts_schedule_with_warmup,
  "polynomial": get_polynomial_decay_schedule_with_warmup,
  "inverse_sqrt": get_inverse_sqrt_schedule,
}


def get_scheduler(
  name: str, optimizer, num_warmup_steps: int = 0, num_training_steps: int | None = None, **kwargs
):
  """Sets and returns an optimizer's schedule, by name.

  Args:
    name: a key of `_BY_NAME`: `linear`, `cosine`, `polynomial`, ...
    optimizer: a Keras optimizer whose learning rate is a number.
    num_warmup_steps: w.
    num_training_steps: N, for schedules with a last step.
    **kwargs: further arguments of the schedule.

  Raises:
    ValueError: the name is unknown, or a number is missing.
  """
  require_one_of("name", name, tuple(_BY_NAME))
  if name in ("constant_with_warmup", "inverse_sqrt"):
    return _BY_NAME[name](optimizer, num_warmup_steps, **kwargs)
  if num_training_steps is None:
    raise ValueError(f"The schedule {name!r} needs num_training_steps.")
  return _BY_NAME[name](optimizer, num_warmup_steps, num_training_steps, **kwargs)


def _set_schedule(optimizer, schedule_class, *arguments):
  rate = getattr(optimizer, "_learning_rate", None)  # `learning_rate` is the schedule's value
  if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
    raise ValueError("The optimizer already has a schedule; create it with a learning rate.")
  if optimizer.built and int(optimizer.iterations):
    # A compiled step keeps the rate it was compiled with.
    raise ValueError("The optimizer has already made steps; set its schedule before the first.")
  schedule = schedule_class(float(optimizer.learning_rate), *arguments)
  optimizer.learning_rate = schedule
  return schedule
