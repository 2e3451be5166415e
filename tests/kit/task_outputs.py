"""What the head of a task computes, without a run."""

import tensorflow as tf

from bert.model.task_head import SEQUENCES, Batch, Head, model_options


def outputs(head: Head, config, is_training, *inputs, dtype="float32", **features) -> dict:
  """Those of a head, of `input_ids`, `input_mask`, `segment_ids` and other features."""
  features = {**dict(zip(SEQUENCES, inputs, strict=False)), **features}
  return head.outputs(Batch(config, features, is_training, model_options(dtype=dtype)))


def logits(head: Head, config, is_training, *inputs, **features) -> tf.Tensor:
  """The logits among them."""
  return outputs(head, config, is_training, *inputs, **features)["logits"]
