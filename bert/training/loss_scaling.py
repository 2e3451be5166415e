"""The loss scale of float16, adapted to the size of the gradients.

Numbers below 6e-8 are zero in float16, and those above 65504 are infinite. So the gradient is taken
of the loss times a scale, and divided by it again in float32. A scale that is too small loses small
gradients silently; one that is too large makes some of them infinite, which is detectable. Hence:

- a step whose gradients are finite is a good one; 2,000 of them in a row double the scale;
- a step whose gradients are not is skipped (weights and slots do not change), and the scale
  halves. A scale of 1 is not halved any more: training stops, as in float32.

A skipped step counts as a step: `global_step` is the number of batches consumed, and
the learning rate, the order of the data and the bits of dropout depend on it alone, as in float32.

The state is three variables beside the model's. They exist in runs in float16 only, whose
checkpoints hold them, so that a resumed run continues with the same scale:

  loss_scale/scale           float32 []
  loss_scale/good_steps      int64 [], in a row, since the scale changed
  loss_scale/skipped_steps   int64 [], of the whole run
"""

from typing import NamedTuple

import tensorflow as tf

from bert.model.variables import current_store

# Powers of two: they scale without rounding.
INITIAL_SCALE = 2.0**15
LARGEST_SCALE = 2.0**24
SMALLEST_SCALE = 1.0

# Number of good steps in a row that double the scale.
PERIOD = 2000

SCALE, GOOD_STEPS, SKIPPED_STEPS = (
  f"loss_scale/{name}" for name in ("scale", "good_steps", "skipped_steps")
)
INITIAL_VALUES = {SCALE: INITIAL_SCALE, GOOD_STEPS: 0, SKIPPED_STEPS: 0}


class LossScale(NamedTuple):
  """The state, as tensors or as variables; described in the module's docstring."""

  scale: tf.Tensor | tf.Variable
  good_steps: tf.Tensor | tf.Variable
  skipped_steps: tf.Tensor | tf.Variable


def get_variables() -> LossScale:
  """Gets the state's variables in the current store, created if they do not exist."""
  store = current_store()
  types = tf.float32, tf.int64, tf.int64
  return LossScale(
    *(
      store.get_variable(name, [], _initializer(value), dtype, trainable=False)
      for (name, value), dtype in zip(INITIAL_VALUES.items(), types, strict=True)
    )
  )


def _initializer(value):
  return lambda shape, dtype, seed: tf.constant(value, dtype, shape)


def after_step(state: LossScale, is_finite: tf.Tensor) -> LossScale:
  """Computes the state after one more step; `is_finite` bool `[]`, whether the gradients were.

  Example:
    >>> def show(state): return [float(value) for value in state]
    >>> show(after_step(LossScale(8.0, 1999, 0), True))
    [16.0, 0.0, 0.0]
    >>> show(after_step(LossScale(8.0, 1998, 0), True))
    [8.0, 1999.0, 0.0]
    >>> show(after_step(LossScale(8.0, 1998, 0), False))
    [4.0, 0.0, 1.0]
  """
  scale, good, skipped = (tf.convert_to_tensor(value) for value in state)
  grows = tf.equal(good + 1, PERIOD)
  if_finite = tf.where(grows, tf.minimum(scale * 2.0, LARGEST_SCALE), scale)
  if_not = tf.maximum(scale / 2.0, SMALLEST_SCALE)
  zero = tf.zeros_like(good)
  return LossScale(
    tf.where(is_finite, if_finite, if_not),
    tf.where(is_finite, tf.where(grows, zero, good + 1), zero),
    tf.where(is_finite, skipped, skipped + 1),
  )
