"""Initial values of weights by the number of a layer's inputs and outputs."""

import math
from collections.abc import Callable

from bert_tf1.real import tf


def xavier_initializer(uniform=True, seed=None, dtype=tf.float32) -> Callable:
  """Returns an initializer of variance 2 / (inputs + outputs).

  Source: X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural
  networks", AISTATS 2010.

  Args:
    uniform: draw uniformly; else from a truncated normal distribution.
    seed: the op's seed.
    dtype: a floating type.
  """
  return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def variance_scaling_initializer(
  factor=2.0, mode="FAN_IN", uniform=False, seed=None, dtype=tf.float32
) -> Callable:
  """Returns an initializer of variance `factor / n`.

  Not `tf.variance_scaling_initializer`: the truncated normal is widened by sqrt(1.3), not by
  1 / 0.8796.

  Args:
    factor: a float.
    mode: what n is: "FAN_IN" the inputs, "FAN_OUT" the outputs, "FAN_AVG" their mean.
    uniform: draw uniformly; else from a truncated normal distribution.
    seed: the op's seed.
    dtype: a floating type.

  Raises:
    TypeError: if `dtype` is not floating or `mode` is not known.
  """
  _check_floating(dtype)
  if mode not in ("FAN_IN", "FAN_OUT", "FAN_AVG"):
    raise TypeError(f"Unknown mode {mode} [FAN_IN, FAN_OUT, FAN_AVG]")

  def _initializer(shape, dtype=dtype, partition_info=None):
    del partition_info
    _check_floating(dtype)
    fan_in, fan_out = _fans(tf.TensorShape(shape).as_list())
    n = {"FAN_IN": fan_in, "FAN_OUT": fan_out, "FAN_AVG": (fan_in + fan_out) / 2.0}[mode]
    if uniform:
      limit = math.sqrt(3.0 * factor / n)
      return tf.random_uniform(shape, -limit, limit, dtype, seed=seed)
    return tf.truncated_normal(shape, 0.0, math.sqrt(1.3 * factor / n), dtype, seed=seed)

  return _initializer


def _fans(shape: list[int]) -> tuple[float, float]:
  """Returns the numbers of inputs and outputs of one unit; a convolution's window counts."""
  if not shape:
    return 1.0, 1.0
  window = math.prod(shape[:-2])
  return float(shape[max(len(shape) - 2, 0)] * window), float(shape[-1] * window)


def _check_floating(dtype) -> None:
  if not dtype.is_floating:
    raise TypeError("Cannot create initializer for non-floating point type.")


# The defaults of layers for weights and for biases.
XAVIER = xavier_initializer()
ZEROS = tf.zeros_initializer()
