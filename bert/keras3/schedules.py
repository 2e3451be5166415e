"""Learning rates with warm-up, for every Keras optimizer.

  model.compile(AdamWeightDecay(LinearWithWarmup(2e-5, num_train_steps=1000, num_warmup_steps=100)))

With w warm-up steps, N steps in total and p = (step - w) / (N - w), limited to [0, 1], the
learning rate is `init_lr` times step / w before step w, and afterwards `init_lr` times

| schedule | factor |
|---|---|
| `ConstantWithWarmup` | 1 |
| `LinearWithWarmup` | 1 - p |

These are continuous at the end of the warm-up. The original's schedule, `WarmUpLinearDecay`, drops
there: its line starts at step 0.
"""

import inspect

import keras
from keras import ops

from bert.keras3.building_blocks import register, require_one_of

SCHEDULES = ("original", "continuous")


class LoopSchedule(keras.optimizers.schedules.LearningRateSchedule):
  """Base of the schedules, with the methods that training loops of PyTorch call.

  Attributes:
    optimizer: the optimizer with this schedule, where a function of `loop_optimizers.py` set it.
  """

  optimizer: keras.optimizers.Optimizer | None = None

  def step(self) -> None:
    """Does nothing: the optimizer itself counts the steps that it makes."""

  def get_last_lr(self) -> list[float]:
    """Returns the learning rate of the next step, in a list.

    Raises:
      ValueError: no optimizer has this schedule.
    """
    if self.optimizer is None:
      raise ValueError("No optimizer has this schedule; ask it directly: schedule(step).")
    return [float(self.optimizer.learning_rate)]

  def get_config(self):
    """Returns the constructor's arguments, which are attributes of the same names."""
    return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}


@register
class WarmUpLinearDecay(LoopSchedule):
  """A learning rate that grows linearly from 0 and then falls linearly to 0 at the last step.

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
      num_train_steps: step at which the learning rate reaches 0.
      num_warmup_steps: number of steps in which it grows; 0 or None for no warm-up.
      schedule: `original`: the falling line starts at step 0, so the learning rate drops at the end
        of the warm-up; or `continuous`: it starts at the peak, as in `LinearWithWarmup`.

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
    """Computes the learning rate after `step` steps: float32 `[]`."""
    warmup, total = float(self.num_warmup_steps), float(self.num_train_steps)
    step = ops.minimum(ops.cast(step, "float32"), total)
    begin = 0.0 if self.schedule == "original" else warmup
    falling = self.init_lr * (total - step) / max(total - begin, 1.0)
    if not warmup:
      return falling
    return ops.where(step < warmup, self.init_lr * step / warmup, falling)


@register
class ConstantWithWarmup(LoopSchedule):
  """A learning rate that grows linearly from 0 and then stays.

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
    """Computes the learning rate after `step` steps: float32 `[]`."""
    step = ops.cast(step, "float32")
    after = ops.maximum(step - self.num_warmup_steps, 0.0)
    warmth = (
      ops.minimum(step / max(self.num_warmup_steps, 1), 1.0) if self.num_warmup_steps else 1.0
    )
    return self.init_lr * warmth * self.factor(after)

  def factor(self, after):
    """Computes the factor of the peak rate.

    Args:
      after: float32 `[]`, steps since the end of the warm-up; 0 during it.
    """
    return ops.ones_like(after)


@register
class LinearWithWarmup(ConstantWithWarmup):
  """A learning rate that falls linearly to 0 at the last step.

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
    """Computes the factor; see `ConstantWithWarmup.factor`."""
    return 1.0 - ops.minimum(after / (self.num_train_steps - self.num_warmup_steps), 1.0)
