"""Seeds, as in transformers."""

import keras


def set_seed(seed: int, deterministic: bool = False) -> None:
  """Seeds Python, NumPy and TensorFlow.

  Args:
    seed: a whole number from 0 to 2^32 - 1.
    deterministic: whether TensorFlow takes operations without chance alone, which may be slower.
  """
  keras.utils.set_random_seed(seed)
  if deterministic:
    import tensorflow as tf

    tf.config.experimental.enable_op_determinism()
