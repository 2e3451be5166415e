"""What code around transformers' models takes from its `modeling_tf_utils`."""

import keras
import tensorflow as tf


def shape_list(tensor) -> list:
  """Returns a shape: a number where it is known, otherwise a tensor."""
  if isinstance(tensor, keras.KerasTensor):
    return list(tensor.shape)
  tensor = tf.convert_to_tensor(tensor)
  if tensor.shape.rank is None:
    return tf.shape(tensor)
  sizes = tf.shape(tensor)
  return [sizes[axis] if size is None else size for axis, size in enumerate(tensor.shape)]


def get_initializer(initializer_range: float = 0.02) -> keras.initializers.Initializer:
  """Returns the initializer of weights: a truncated normal distribution of this deviation."""
  return keras.initializers.TruncatedNormal(stddev=initializer_range)
