"""`tf.minimum` and `tf.maximum` with 1.15's answer where a value is not a number.

1.15 gave the first argument if either was NaN; TensorFlow 2 gives NaN. ELECTRA's warm-up is
`tf.minimum(1.0, step / warmup_steps)`: with no warm-up that is 0/0 at step 0, a rate of 1 in 1.15,
and a rate that destroys all weights today.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from bert_tf1.real import tf


def _may_be_nan(y: Any) -> bool:
  """Tells whether a tensor can hold NaN, by what is known when the graph is built."""
  if not tf.is_tensor(y) or not y.dtype.is_floating:
    return False
  known = tf.get_static_value(y)
  return known is None or bool(np.isnan(known).any())


def _first_if_nan(function: Callable) -> Callable:
  """`function` of two tensors, which gives the first where the second is NaN."""

  @functools.wraps(function)
  def extreme(x: Any, y: Any, name: str | None = None) -> tf.Tensor:
    if _may_be_nan(y):
      x = tf.convert_to_tensor(x, y.dtype.base_dtype)
      y = tf.where_v2(tf.is_nan(y), x, y)
    return function(x, y, name=name)

  return extreme


minimum = _first_if_nan(tf.minimum)
maximum = _first_if_nan(tf.maximum)
# For the face; dots lead into namespaces.
NAMES: dict[str, Any] = {
  "minimum": minimum,
  "maximum": maximum,
  "math.minimum": minimum,
  "math.maximum": maximum,
}
