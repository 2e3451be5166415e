"""`tf.contrib.memory_stats`: bytes of the device's memory, as tensors to fetch with a step.

TensorFlow 2.21 has these operations no longer: a function asks the GPU at the moment the tensor is
computed. Without a GPU they are 0 (1.15 failed there).
"""

from tensorflow.python.framework import config

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf


def BytesInUse():  # noqa: N802 (the name of 1.x)
  """Returns the bytes in use now, int64."""
  return _of_gpu("current")


def MaxBytesInUse():  # noqa: N802 (the name of 1.x)
  """Returns the most bytes that were in use at once, int64."""
  return _of_gpu("peak")


def _of_gpu(key: str):
  def read():
    if not tf.config.experimental.list_physical_devices("GPU"):
      return 0
    return config.get_memory_info("GPU:0")[key]

  return tf.py_func(read, [], tf.int64, stateful=True)


__getattr__ = unknown_name(__name__, {"BytesLimit": "nvidia-smi shows a GPU's memory."})
