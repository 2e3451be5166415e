"""Writes tensors as the original's checkpoints.

  write("small/bert_model.ckpt", {"bert/pooler/dense/bias": np.zeros([768], np.float32)})

For models in memory, also of Keras on JAX or PyTorch; TensorFlow is imported with the first call.
The runs of the scripts write theirs with `saving.py`.
"""

import os
from collections.abc import Mapping
from typing import Any

from bert.checkpoints.reading import first_line


def write(prefix: str | os.PathLike, tensors: Mapping[str, Any]) -> None:
  """Writes a checkpoint, its index last: without one it does not exist for any reader.

  Args:
    prefix: its folder must exist. A checkpoint of the same name is replaced.
    tensors: name -> array or tensor.

  Raises:
    OSError: a file cannot be written.
  """
  import tensorflow as tf

  try:
    with tf.device("CPU:0"):
      tf.raw_ops.SaveV2(
        prefix=os.fsdecode(prefix),
        tensor_names=list(tensors),
        shape_and_slices=[""] * len(tensors),
        tensors=list(map(tf.convert_to_tensor, tensors.values())),
      )
  except tf.errors.OpError as error:
    raise OSError(f"{os.fsdecode(prefix)} cannot be written: {first_line(error)}") from None
