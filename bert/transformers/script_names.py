"""What TensorFlow scripts import from transformers 4, and transformers 5 no longer has."""

import importlib.util
from typing import Any

from bert.checkpoints import transformers_folder
from bert.transformers.backend import use_tensorflow

# What `save_pretrained` writes: by this name scripts find out whether to resume.
TF2_WEIGHTS_NAME = transformers_folder.WEIGHTS
TF_WEIGHTS_NAME = "model.ckpt"
TF2_WEIGHTS_INDEX_NAME = "tf_model.h5.index.json"

__all__ = [
  "TF2_WEIGHTS_INDEX_NAME",
  "TF2_WEIGHTS_NAME",
  "TF_WEIGHTS_NAME",
  "is_tf_available",
  "send_example_telemetry",
  "set_seed",
]


def set_seed(seed: int, deterministic: bool = False) -> None:
  """Seeds Python, NumPy and TensorFlow.

  Args:
    seed: a whole number from 0 to 2^32 - 1.
    deterministic: whether TensorFlow takes operations without chance alone, which may be slower.
  """
  use_tensorflow()
  import keras
  import tensorflow as tf

  keras.utils.set_random_seed(seed)
  if deterministic:
    tf.config.experimental.enable_op_determinism()


def send_example_telemetry(*args: Any, **kwargs: Any) -> None:
  """Does nothing: transformers' own told its authors that an example is run; nothing is sent here.

  Args:
    *args: not used.
    **kwargs: not used.
  """
  del args, kwargs


def is_tf_available() -> bool:
  """Tells whether TensorFlow is installed."""
  return importlib.util.find_spec("tensorflow") is not None
