"""Penalties on the size of weights."""

import numbers
from collections.abc import Callable

from bert_tf1.real import tf


def l1_regularizer(scale, scope=None) -> Callable:
  """Returns a function of weights: `scale` times the sum of absolute values; 0.0 returns None.

  Args:
    scale: a float of at least 0 (an integer is an error), or a scalar tensor.
    scope: the name of the op; "l1_regularizer" if None.

  Raises:
    ValueError: if `scale` is an integer or negative.
  """
  return _penalty(scale, scope, "l1_regularizer", lambda weights: tf.reduce_sum(tf.abs(weights)))


def l2_regularizer(scale, scope=None) -> Callable:
  """Returns a function of weights: `scale` times half the sum of squares; 0.0 returns None.

  Arguments and errors are those of `l1_regularizer`.
  """
  return _penalty(scale, scope, "l2_regularizer", tf.nn.l2_loss)


def l1_l2_regularizer(scale_l1=1.0, scale_l2=1.0, scope=None) -> Callable:
  """Returns a function of weights: the sum of both penalties; a scale of 0.0 leaves one out."""
  _check_no_integer("scale_l1", scale_l1)
  _check_no_integer("scale_l2", scale_l2)
  scope = scope or "l1_l2_regularizer"
  if scale_l1 == 0.0:
    return l2_regularizer(scale_l2, scope)
  if scale_l2 == 0.0:
    return l1_regularizer(scale_l1, scope)
  both = sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope=scope)
  assert both is not None
  return both


def sum_regularizer(regularizer_list, scope=None) -> Callable | None:
  """Returns a function of weights: the sum of the penalties of those that are not None.

  None if all of them are; the function returns None if every penalty is.
  """
  regularizers = [regularizer for regularizer in regularizer_list if regularizer is not None]
  if not regularizers:
    return None

  def sum_reg(weights):
    with tf.name_scope(scope, "sum_regularizer", [weights]) as name:
      penalties = [regularizer(weights) for regularizer in regularizers]
      penalties = [penalty for penalty in penalties if penalty is not None]
      return tf.add_n(penalties, name=name) if penalties else None

  return sum_reg


def apply_regularization(regularizer, weights_list=None):
  """Returns the sum of the penalties of `weights_list`, and adds it to REGULARIZATION_LOSSES.

  Args:
    regularizer: a function of weights that returns a scalar tensor or None.
    weights_list: tensors or variables; the collection WEIGHTS if None or empty.

  Raises:
    ValueError: if there are no weights or a penalty is not a scalar.
  """
  weights_list = weights_list or tf.get_collection(tf.GraphKeys.WEIGHTS)
  if not weights_list:
    raise ValueError("No weights to regularize.")
  with tf.name_scope("get_regularization_penalty", values=weights_list) as scope:
    penalties = [regularizer(weights) for weights in weights_list]
    penalties = [tf.constant(0.0) if penalty is None else penalty for penalty in penalties]
    for penalty in penalties:
      if penalty.shape.ndims != 0:
        raise ValueError(
          f"regularizer must return a scalar Tensor instead of a Tensor with rank "
          f"{penalty.shape.ndims}."
        )
    total = tf.add_n(penalties, name=scope)
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, total)
    return total


def _penalty(scale, scope, default_name: str, measure: Callable) -> Callable:
  """Returns a function of weights: `scale` times their measure, as an op named `scope`."""
  _check_no_integer("scale", scale)
  if isinstance(scale, numbers.Real):
    if scale < 0.0:
      raise ValueError(f"Setting a scale less than 0 on a regularizer: {scale:g}")
    if scale == 0.0:
      tf.logging.info("Scale of 0 disables regularizer.")
      return lambda _: None

  def penalty(weights):
    with tf.name_scope(scope, default_name, [weights]) as name:
      factor = tf.convert_to_tensor(scale, dtype=weights.dtype.base_dtype, name="scale")
      return tf.multiply(factor, measure(weights), name=name)

  return penalty


def _check_no_integer(name: str, scale) -> None:
  if isinstance(scale, numbers.Integral):
    raise ValueError(f"{name} cannot be an integer: {scale}")
