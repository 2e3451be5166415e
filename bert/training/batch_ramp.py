"""Batches that grow while a run goes on: many noisy steps first, few exact ones last.

  config = RunConfig(model_dir="out", batch_ramp=BatchRamp(parts=4, num_train_steps=1000))
  Estimator(model_fn, config, {"train_batch_size": 32}).train(input_fn, 1000)   # 8, 16, 24, 32

A step takes its parts from the data, one after another, as with gradient accumulation: batches
of all sizes share one trace, and the order of the examples is that of any other run. (Smith et al.
2018, arXiv:1711.00489; GPT-3, arXiv:2005.14165, appendix B, grows its batches linearly.)
"""

import dataclasses

import tensorflow as tf


@dataclasses.dataclass(frozen=True)
class BatchRamp:
  """How batches grow."""

  # Into which the last batches are divided; the first ones have one of them. The number in between
  # is proportional to the share of the run that has passed.
  parts: int
  num_train_steps: int  # of the run; with a clock its progress decides

  def parts_at(self, step: tf.Tensor, progress: tf.Tensor | None = None) -> tf.Tensor:
    """Computes the number of micro-batches, int32, after `step` steps of the same shape.

    `progress` is float32 from 0 to 1, by the clock.

    Example:
      >>> BatchRamp(4, 100).parts_at(tf.constant([0, 24, 25, 74, 75, 99, 100])).numpy().tolist()
      [1, 1, 2, 3, 4, 4, 4]
    """
    if progress is None:
      grown = tf.cast(step, tf.int64) * self.parts // self.num_train_steps
    else:
      grown = tf.cast(progress * self.parts, tf.int64)
    return tf.cast(tf.minimum(grown + 1, self.parts), tf.int32)
