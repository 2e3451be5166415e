"""`tf.compat.v1.get_variable` in model functions written for TensorFlow 1.

  with served_by(lambda name, shape, initializer, dtype, trainable: ...):
    tf.compat.v1.get_variable("output_weights", [2, 768], initializer=...)

TensorFlow's own table of such variables refuses a name that an earlier trace has created ("already
exists"). Within the block every request goes to the function instead: `variables.use_store` makes
it the store of the model, where a later trace finds the variable.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import tensorflow as tf


@contextlib.contextmanager
def served_by(get_variable: Callable[..., tf.Variable]) -> Iterator[None]:
  """Makes `tf.compat.v1.get_variable` return what the function does, within the block.

  It gets name (with the scopes of `tf.compat.v1.variable_scope`), shape, initializer, dtype, and
  whether it is trainable.
  """

  def getter(getter, name, shape=None, dtype=None, initializer=None, trainable=None, **unused):
    del getter, unused  # regularizer, partitioner, collections, ...: nothing here has them
    dtype = tf.as_dtype(dtype or tf.float32)
    if inspect.isclass(initializer):
      initializer = initializer()
    if initializer is None:
      glorot = tf.compat.v1.glorot_uniform_initializer(dtype=dtype)
      initializer = glorot if dtype.is_floating else tf.zeros_initializer()
    elif not callable(initializer):
      value = tf.convert_to_tensor(initializer, dtype)
      shape, initializer = value.shape.as_list(), lambda shape, dtype: value
    return get_variable(name, shape, initializer, dtype, trainable is not False)

  scope = tf.compat.v1.get_variable_scope()
  with tf.compat.v1.variable_scope(scope, custom_getter=getter, auxiliary_name_scope=False):
    yield


def scope_name() -> str:
  """Joins the scopes of `tf.compat.v1.variable_scope` around the caller; empty without any."""
  return tf.compat.v1.get_variable_scope().name


def initial_value(
  initializer: Any, shape: list[int], dtype: tf.DType, seed: list[int]
) -> tf.Tensor:
  """Makes the value of a new variable, by an initializer of ours, of TensorFlow or of Keras.

  One of ours takes the two numbers `seed=`; others get them in their configuration, if they have
  one and were given none.
  """
  if "seed" in inspect.signature(initializer).parameters:
    return initializer(shape, dtype=dtype, seed=seed)
  config = initializer.get_config() if hasattr(initializer, "get_config") else {}
  if "seed" in config and config["seed"] is None:
    own_seed = (seed[0] * 0x9E3779B1 + seed[1]) % (1 << 31)
    initializer = type(initializer).from_config({**config, "seed": own_seed})
  # A function of its own starts TensorFlow's generators anew: the same seed gives the same value.
  return tf.function(lambda: initializer(shape, dtype=dtype), autograph=False)()
