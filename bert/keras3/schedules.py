"""Learning rates that warm up and then fall, as Keras schedules; transformers' names for them.

  model.compile(optimizer=AdamWeightDecay(CosineWithWarmup(2e-5, 1000, 100)), ...)

  optimizer = AdamW(lr=2e-5, weight_decay=0.01)
  get_linear_schedule_with_warmup(optimizer, num_warmup_steps=500, num_training_steps=1000)

With w warm-up steps, N steps in all and p = (step - w) / (N - w), limited to [0, 1], the rate is
`init_lr` times step / w before step w, and afterwards times

| schedule | factor |
|---|---|
| `ConstantWithWarmup` | 1 |
| `LinearWithWarmup` | 1 - p |
| `CosineWithWarmup` | (1 + cos(2 pi c p)) / 2, c = `num_cycles`: 0.5 for half a wave, down to 0 |
| `CosineRestartsWithWarmup` | (1 + cos(pi (c p mod 1))) / 2, and 0 at p = 1 |
| `PolynomialWithWarmup` | (1 - e) (1 - p)^k + e, e = `end_lr` / `init_lr`, k = `power` |
| `InverseSqrtWithWarmup` | sqrt(t / (step - w + t)), t = `timescale` (arXiv:1706.03762) |

Nothing drops where the warm-up ends. In the original's schedule the rate does: that one is
`WarmUpLinearDecay` (`optimizer.py`).
"""

import math

import keras
from keras import ops

from bert.keras3.optimizer import AdamWeightDecay
from bert.keras3.parts import register, require_one_of


@register
class ConstantWithWarmup(keras.optimizers.schedules.LearningRateSchedule):
  """A rate that grows linearly from 0, and stays; what the others are made from.

  Example:
    >>> schedule = ConstantWithWarmup(1.0, num_warmup_steps=4)
    >>> [float(schedule(step)) for step in (0, 1, 2, 4, 100)]
    [0.0, 0.25, 0.5, 1.0, 1.0]
  """

  def __init__(self, init_lr: float, num_warmup_steps: int = 0):
    """Makes the schedule.

    Args:
      init_lr: peak rate.
      num_warmup_steps: w, 0 for no warm-up.

    Raises:
      ValueError: a number is out of range.
    """
    super().__init__()
    if num_warmup_steps < 0:
      raise ValueError(f"num_warmup_steps is {num_warmup_steps}; it cannot be negative.")
    self.init_lr = init_lr
    self.num_warmup_steps = num_warmup_steps

  def __call__(self, step):
    """The rate of the step after `step` others: float32 `[]`."""
    step = ops.cast(step, "float32")
    after = ops.maximum(step - self.num_warmup_steps, 0.0)
    warmth = (
      ops.minimum(step / max(self.num_warmup_steps, 1), 1.0) if self.num_warmup_steps else 1.0
    )
    return self.init_lr * warmth * self.factor(after)

  def factor(self, after):
    """What the peak rate is multiplied by.

    Args:
      after: float32 `[]`, steps since the end of the warm-up, 0 before.
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
    """Makes the schedule.

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
        f"num_train_steps is {num_train_steps}, of which {num_warmup_steps} are for warm-up: "
        "none are left."
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
  """A rate that falls as a cosine does (arXiv:1608.03983, without restarts)."""

  def __init__(
    self,
    init_lr: float,
    num_train_steps: int,
    num_warmup_steps: int = 0,
    num_cycles: float = 0.5,
  ):
    """Makes the schedule; `num_cycles` is the number of waves, 0.5 to end at 0."""
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
  """A rate that falls as a cosine does, `num_cycles` times, each time from the peak."""

  def __init__(
    self,
    init_lr: float,
    num_train_steps: int,
    num_warmup_steps: int = 0,
    num_cycles: int = 1,
  ):
    """Makes the schedule."""
    super().__init__(init_lr, num_train_steps, num_warmup_steps, num_cycles)

  def decay(self, progress):
    """See `LinearWithWarmup.decay`."""
    wave = 0.5 * (1.0 + ops.cos(math.pi * ((self.num_cycles * progress) % 1.0)))
    return ops.where(progress >= 1.0, 0.0, wave)


@register
class PolynomialWithWarmup(LinearWithWarmup):
  """A rate that falls as a power of what is left, down to `end_lr`."""

  def __init__(
    self,
    init_lr: float,
    num_train_steps: int,
    num_warmup_steps: int = 0,
    end_lr: float = 1e-7,
    power: float = 1.0,
  ):
    """Makes the schedule.

    Args:
      init_lr: peak rate.
      num_train_steps: N.
      num_warmup_steps: w.
      end_lr: where the rate ends, below the peak.
      power: 1 for a line.

    Raises:
      ValueError: a number is out of range.
    """
    super().__init__(init_lr, num_train_steps, num_warmup_steps)
    if not 0 <= end_lr < init_lr:
      raise ValueError(f"end_lr is {end_lr}; it must be from 0 to below init_lr, {init_lr}.")
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
  """A rate that falls with the root of the steps, and needs no last one."""

  def __init__(self, init_lr: float, num_warmup_steps: int = 0, timescale: int | None = None):
    """Makes the schedule; `timescale` is w by default, or 10,000 without a warm-up."""
    super().__init__(init_lr, num_warmup_steps)
    self.timescale = timescale or num_warmup_steps or 10_000

  def factor(self, after):
    """See `ConstantWithWarmup.factor`."""
    return ops.sqrt(self.timescale / (after + self.timescale))

  def get_config(self):
    """The constructor's arguments."""
    return {**super().get_config(), "timescale": self.timescale}


# ---------------------------------------------------------------------------------------------
# Under transformers' names: an optimizer, then its schedule. Its rate becomes the peak.


def AdamW(  # noqa: N802, it is called as the class elsewhere
  parameters=None,
  lr: float = 1e-3,
  betas: tuple[float, float] = (0.9, 0.999),
  eps: float = 1e-6,
  weight_decay: float = 0.0,
  correct_bias: bool = True,
) -> AdamWeightDecay:
  """Adam with decoupled weight decay, of all variables and without clipping.

  Args:
    parameters: ignored: Keras gives an optimizer the model's trainable variables.
    lr: the rate.
    betas: decay of the first and of the second moment.
    eps: added to the root of the second moment.
    weight_decay: each step takes this share times the rate off a variable.
    correct_bias: as Adam was published; BERT was trained without.
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
  """Gives an optimizer a `ConstantWithWarmup`, and returns it."""
  return _schedule(optimizer, ConstantWithWarmup, num_warmup_steps=num_warmup_steps)


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps: int, num_training_steps: int):
  """Gives an optimizer a `LinearWithWarmup`, and returns it."""
  return _schedule(
    optimizer,
    LinearWithWarmup,
    num_train_steps=num_training_steps,
    num_warmup_steps=num_warmup_steps,
  )


def get_cosine_schedule_with_warmup(
  optimizer, num_warmup_steps: int, num_training_steps: int, num_cycles: float = 0.5
):
  """Gives an optimizer a `CosineWithWarmup`, and returns it."""
  return _schedule(
    optimizer,
    CosineWithWarmup,
    num_train_steps=num_training_steps,
    num_warmup_steps=num_warmup_steps,
    num_cycles=num_cycles,
  )


def get_cosine_with_hard_restarts_schedule_with_warmup(
  optimizer, num_warmup_steps: int, num_training_steps: int, num_cycles: int = 1
):
  """Gives an optimizer a `CosineRestartsWithWarmup`, and returns it."""
  return _schedule(
    optimizer,
    CosineRestartsWithWarmup,
    num_train_steps=num_training_steps,
    num_warmup_steps=num_warmup_steps,
    num_cycles=num_cycles,
  )


def get_polynomial_decay_schedule_with_warmup(
  optimizer,
  num_warmup_steps: int,
  num_training_steps: int,
  lr_end: float = 1e-7,
  power: float = 1.0,
):
  """Gives an optimizer a `PolynomialWithWarmup`, and returns it."""
  return _schedule(
    optimizer,
    PolynomialWithWarmup,
    num_train_steps=num_training_steps,
    num_warmup_steps=num_warmup_steps,
    end_lr=lr_end,
    power=power,
  )


def get_inverse_sqrt_schedule(optimizer, num_warmup_steps: int, timescale: int | None = None):
  """Gives an optimizer an `InverseSqrtWithWarmup`, and returns it."""
  return _schedule(
    optimizer, InverseSqrtWithWarmup, num_warmup_steps=num_warmup_steps, timescale=timescale
  )


_BY_NAME = {
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
  """Gives an optimizer the schedule of that name, and returns it.

  Args:
    name: a key of `_BY_NAME`: `linear`, `cosine`, `polynomial`, ...
    optimizer: a Keras optimizer with a number as its rate.
    num_warmup_steps: w.
    num_training_steps: N, for those that have a last step.
    **kwargs: of the schedule.

  Raises:
    ValueError: the name is unknown, or a number is missing.
  """
  require_one_of("name", name, tuple(_BY_NAME))
  if name in ("constant_with_warmup", "inverse_sqrt"):
    return _BY_NAME[name](optimizer, num_warmup_steps, **kwargs)
  if num_training_steps is None:
    raise ValueError(f"The schedule {name!r} needs num_training_steps.")
  return _BY_NAME[name](optimizer, num_warmup_steps, num_training_steps, **kwargs)


def _schedule(optimizer, schedule_class, **arguments):
  rate = getattr(optimizer, "_learning_rate", None)  # `learning_rate` is the schedule's value
  if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
    raise ValueError("The optimizer has a schedule already; make it with a number as its rate.")
  if optimizer.built and int(optimizer.iterations):
    # A compiled step keeps the rate that it was compiled with.
    raise ValueError("The optimizer has made steps already; give it a schedule before the first.")
  schedule = schedule_class(float(optimizer.learning_rate), **arguments)
  optimizer.learning_rate = schedule
  return schedule
