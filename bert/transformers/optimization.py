"""transformers' optimizer for TensorFlow: Adam with decoupled weight decay, and its warm-up.

  optimizer, schedule = create_optimizer(2e-5, num_train_steps=1000, num_warmup_steps=100,
                                         weight_decay_rate=0.01)

The optimizer is `bert.keras3.AdamWeightDecay`, here with corrected moments and no clipping.
"""

from collections.abc import Callable, Sequence

import keras
from absl import logging
from keras import ops

from bert.keras3 import optimization
from bert.keras3.optimization import NO_WEIGHT_DECAY


@keras.saving.register_keras_serializable("bert.transformers")
class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
  """Raises the learning rate from 0 in the first steps, and then follows another schedule."""

  def __init__(
    self,
    initial_learning_rate: float,
    decay_schedule_fn: Callable,
    warmup_steps: int,
    power: float = 1.0,
    name: str | None = None,
  ):
    """Creates the schedule.

    Args:
      initial_learning_rate: at the end of the warm-up.
      decay_schedule_fn: step after the warm-up -> learning rate.
      warmup_steps: number of steps.
      power: of the share of the steps, by which the rate grows.
      name: of the schedule.
    """
    self.initial_learning_rate = initial_learning_rate
    self.decay_schedule_fn = decay_schedule_fn
    self.warmup_steps = warmup_steps
    self.power = power
    self.name = name

  def __call__(self, step):
    """Returns the learning rate of a step, float32 `[]`."""
    step = ops.cast(step, "float32")
    warmup = float(self.warmup_steps)
    rising = self.initial_learning_rate * ops.power(step / max(warmup, 1.0), self.power)
    return ops.where(step < warmup, rising, self.decay_schedule_fn(step - warmup))

  def get_config(self):
    """Returns the constructor's arguments."""
    return {
      "initial_learning_rate": self.initial_learning_rate,
      "decay_schedule_fn": keras.saving.serialize_keras_object(self.decay_schedule_fn),
      "warmup_steps": self.warmup_steps,
      "power": self.power,
      "name": self.name,
    }

  @classmethod
  def from_config(cls, config):
    """Creates the schedule of a config."""
    inner = keras.saving.deserialize_keras_object(config["decay_schedule_fn"])
    return cls(**{**config, "decay_schedule_fn": inner})


def AdamWeightDecay(  # noqa: N802, a class in transformers
  learning_rate=0.001,
  beta_1: float = 0.9,
  beta_2: float = 0.999,
  epsilon: float = 1e-7,
  amsgrad: bool = False,
  weight_decay_rate: float = 0.0,
  include_in_weight_decay: Sequence[str] | None = None,
  exclude_from_weight_decay: Sequence[str] | None = None,
  name: str = "AdamWeightDecay",
  global_clipnorm: float | None = None,
  **kwargs,
) -> optimization.AdamWeightDecay:
  """Creates the optimizer with transformers' arguments and defaults.

  Args:
    learning_rate: a number or a schedule.
    beta_1: decay of the first moment.
    beta_2: decay of the second moment.
    epsilon: added to the root of the second moment.
    amsgrad: False; not supported.
    weight_decay_rate: each step subtracts this times the learning rate times the variable.
    include_in_weight_decay: regular expressions; variables whose path matches decay in any case.
    exclude_from_weight_decay: likewise; the other variables that match never decay.
    name: of the optimizer.
    global_clipnorm: gradients are scaled down to this global norm; None for no limit.
    **kwargs: arguments of `keras.optimizers.Optimizer`, such as `clipnorm`.

  Raises:
    ValueError: `amsgrad` is set.
  """
  if amsgrad:
    raise ValueError("amsgrad is not supported. Use keras.optimizers.AdamW(amsgrad=True).")
  return optimization.AdamWeightDecay(
    learning_rate,
    weight_decay_rate,
    beta_1,
    beta_2,
    epsilon,
    include_in_weight_decay=include_in_weight_decay or (),
    exclude_from_weight_decay=exclude_from_weight_decay or (),
    bias_correction=True,
    global_clipnorm=global_clipnorm,
    name=name,
    **kwargs,
  )


class _Earlier(optimization.AdamWeightDecay):
  """What `.keras` files name that were written when this module had a class of its own."""

  @classmethod
  def from_config(cls, config):
    return optimization.AdamWeightDecay.from_config({**config, "bias_correction": True})


keras.saving.get_custom_objects()["bert.transformers>AdamWeightDecay"] = _Earlier


def create_optimizer(
  init_lr: float,
  num_train_steps: int,
  num_warmup_steps: int,
  min_lr_ratio: float = 0.0,
  adam_beta1: float = 0.9,
  adam_beta2: float = 0.999,
  adam_epsilon: float = 1e-8,
  adam_clipnorm: float | None = None,
  adam_global_clipnorm: float | None = None,
  weight_decay_rate: float = 0.0,
  power: float = 1.0,
  include_in_weight_decay: Sequence[str] | None = None,
):
  """Creates an optimizer whose rate rises in the warm-up and then falls to the end.

  Args:
    init_lr: the highest learning rate.
    num_train_steps: of the whole training.
    num_warmup_steps: of them, those of the warm-up; if there are more, the rate only rises.
    min_lr_ratio: the last rate, as a share of the highest.
    adam_beta1: decay of the first moment.
    adam_beta2: decay of the second moment.
    adam_epsilon: added to the root of the second moment.
    adam_clipnorm: each gradient is scaled down to this norm.
    adam_global_clipnorm: all of them are, to this global norm.
    weight_decay_rate: of `AdamWeightDecay`; normalizations and biases never decay.
    power: of the polynomial by which the rate falls; 1 is a line.
    include_in_weight_decay: see there.

  Returns:
    The optimizer, and its schedule.

  Raises:
    ValueError: `num_warmup_steps` is negative.
  """
  if num_warmup_steps < 0:
    raise ValueError(f"num_warmup_steps is {num_warmup_steps}; it must be at least 0.")
  if num_warmup_steps > num_train_steps:
    logging.warning(
      "num_warmup_steps (%d) exceeds num_train_steps (%d): the learning rate never reaches %g.",
      num_warmup_steps,
      num_train_steps,
      init_lr,
    )
  schedule = keras.optimizers.schedules.PolynomialDecay(
    initial_learning_rate=init_lr,
    decay_steps=max(1, num_train_steps - num_warmup_steps),
    end_learning_rate=init_lr * min_lr_ratio,
    power=power,
  )
  if num_warmup_steps:
    schedule = WarmUp(init_lr, schedule, num_warmup_steps)
  optimizer = AdamWeightDecay(
    schedule,
    adam_beta1,
    adam_beta2,
    adam_epsilon,
    weight_decay_rate=weight_decay_rate,
    include_in_weight_decay=include_in_weight_decay,
    exclude_from_weight_decay=NO_WEIGHT_DECAY,
    global_clipnorm=adam_global_clipnorm,
    clipnorm=adam_clipnorm,
  )
  return optimizer, schedule
