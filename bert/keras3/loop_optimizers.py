"""Optimizers and schedules under the names that training loops use.

  optimizer = create_optimizer(2e-5, num_train_steps=1000, num_warmup_steps=100)   # the original's
  optimizer = AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)             # transformers'
  scheduler = get_linear_schedule_with_warmup(optimizer, num_warmup_steps=500,
                                              num_training_steps=1000)

They are optimizers of Keras, for `model.compile`. On PyTorch those that get parameters also have
`step()` and `zero_grad()`, and `scheduler.step()` may be called. The optimizer's rate becomes the
peak of its schedule.
"""

import numbers

import keras

from bert.keras3.optimization import AdamWeightDecay
from bert.keras3.schedules import ConstantWithWarmup, LinearWithWarmup, WarmUpLinearDecay
from bert.keras3.torch_loops import watchable


def create_optimizer(
  init_lr, num_train_steps, num_warmup_steps=None, parameters=None
) -> AdamWeightDecay:
  """Creates the original's optimizer, with its schedule, weight decay and clipping.

  `create_optimizer(parameters, init_lr, num_train_steps, num_warmup_steps)` does the same.

  Args:
    init_lr: peak rate.
    num_train_steps: step at which the learning rate reaches 0.
    num_warmup_steps: number of steps in which it grows; 0 or None for no warm-up.
    parameters: `model.parameters()`, for `step()` in a loop of PyTorch; Keras's `fit` passes the
      model's variables itself.

  Raises:
    ValueError: a number is out of range.
  """
  if isinstance(init_lr, str):
    raise ValueError(f"init_lr is {init_lr!r}; it must be a number.")
  if not isinstance(init_lr, numbers.Real):
    parameters, init_lr, num_train_steps, num_warmup_steps = (
      init_lr,
      num_train_steps,
      num_warmup_steps,
      parameters,
    )
  if not (init_lr >= 0 and num_train_steps >= 1):
    raise ValueError(
      f"init_lr is {init_lr} and num_train_steps {num_train_steps}; they must be at least 0 and 1. "
      "The order is init_lr, num_train_steps, num_warmup_steps."
    )
  schedule = WarmUpLinearDecay(init_lr, num_train_steps, num_warmup_steps)
  optimizer = AdamWeightDecay(schedule)
  schedule.optimizer = optimizer
  if watchable(parameters):
    optimizer.watch(parameters)
  return optimizer


def AdamW(  # noqa: N802, a class in transformers
  parameters=None,
  lr: float = 1e-3,
  betas: tuple[float, float] = (0.9, 0.999),
  eps: float = 1e-6,
  weight_decay: float = 0.0,
  correct_bias: bool = True,
) -> AdamWeightDecay:
  """Creates Adam with decoupled weight decay of all variables, without clipping.

  Args:
    parameters: those that `step()` updates on PyTorch: `model.parameters()`, or groups of them with
      a `weight_decay` of their own. Elsewhere ignored, as `fit` passes the model's variables.
    lr: the learning rate.
    betas: decay of the first and the second moment.
    eps: added to the root of the second moment.
    weight_decay: each step subtracts this times the learning rate times the variable.
    correct_bias: bias correction as in the Adam paper; BERT was trained without it.
  """
  optimizer = AdamWeightDecay(
    lr,
    weight_decay_rate=weight_decay,
    beta_1=betas[0],
    beta_2=betas[1],
    epsilon=eps,
    exclude_from_weight_decay=(),
    bias_correction=correct_bias,
    global_clipnorm=None,
  )
  if watchable(parameters):
    optimizer.watch(parameters)
  return optimizer


def get_constant_schedule_with_warmup(optimizer, num_warmup_steps: int):
  """Sets and returns an optimizer's `ConstantWithWarmup`."""
  return _set_schedule(optimizer, ConstantWithWarmup, num_warmup_steps)


def get_linear_schedule_with_warmup(optimizer, num_warmup_steps: int, num_training_steps: int):
  """Sets and returns an optimizer's `LinearWithWarmup`."""
  return _set_schedule(optimizer, LinearWithWarmup, num_training_steps, num_warmup_steps)


def _set_schedule(optimizer, schedule_class, *arguments):
  if not isinstance(optimizer, keras.optimizers.Optimizer):
    raise ValueError(f"The optimizer is {optimizer!r}; create one of Keras first, such as AdamW.")
  rate = getattr(optimizer, "_learning_rate", None)  # `learning_rate` is the schedule's value
  if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
    raise ValueError("The optimizer already has a schedule; create it with a learning rate.")
  if optimizer.built and int(optimizer.iterations):
    # A compiled step keeps the learning rate it was compiled with.
    raise ValueError("The optimizer has already made steps; set its schedule before the first.")
  schedule = schedule_class(float(optimizer.learning_rate), *arguments)
  optimizer.learning_rate = schedule
  schedule.optimizer = optimizer
  return schedule
