"""Small checkpoints whose every value depends on their step."""

import numpy as np
import tensorflow as tf

from bert.checkpoints import finding, saving

DATA = ".data-00000-of-00001"
KERNEL = "bert/pooler/dense/kernel"


def values_of(step: int) -> dict[str, np.ndarray]:
  """A small checkpoint's content, every value of which depends on the step."""
  kernel = np.arange(12, dtype=np.float32).reshape(3, 4) + step
  return {
    "bert/embeddings/word_embeddings": np.full([50, 4], step / 7, np.float32),
    KERNEL: kernel,
    KERNEL + "/adam_m": -kernel,
    KERNEL + "/adam_v": kernel**2,
    "output_bias": np.array([step, 0.5], np.float32),
    "global_step": np.array(step, np.int64),
  }


def save(directory, step, **options) -> str:
  """Writes `values_of(step)`; returns the prefix."""
  return saving.save(str(directory), step, values_of(step), {"position": step * 32}, **options)


def variables_of(values) -> dict[str, tf.Variable]:
  """A variable of zeros for each value."""
  return {name: tf.Variable(tf.zeros_like(value)) for name, value in values.items()}


def steps_in(directory) -> list[int]:
  """Steps of the checkpoints in a folder."""
  return [step for step, _ in finding.list_checkpoints(str(directory))]


def steps_listed(directory) -> list[int]:
  """Steps that the `checkpoint` file lists."""
  paths = tf.train.get_checkpoint_state(str(directory)).all_model_checkpoint_paths
  return [int(path.rsplit("-", 1)[1]) for path in paths]


def raising(error):
  """A function that raises an error, whatever it is called with."""

  def function(*args, **kwargs):
    raise error

  return function
