"""A confusion matrix of tokens whose weights are given for one example: `[F]` beside `[B, F]`.

Scripts that tag tokens pass `tf.sequence_mask(FLAGS.max_seq_length)` as weights. 1.15 weighted the
first example with them and the others with whatever lay behind them in memory; today's operation
refuses them. Scripts import the function from TensorFlow's own file, and so it is replaced there.
"""

import functools

from tensorflow.python.ops import metrics_impl

from bert_tf1.real import tf


def _of_all_examples(weights, labels):
  """Returns the weights, repeated for each example where they are those of one."""
  if weights is None or None in (weights.shape.rank, labels.shape.rank):
    return weights
  lacks_examples = 0 < weights.shape.rank < labels.shape.rank
  last = weights.shape.as_list()[-1:]
  if not lacks_examples or last == [None] or not labels.shape[-1:].is_compatible_with(last):
    return weights
  tf.logging.warning(
    "Weights %s of a metric beside labels %s: each example has them. TensorFlow 1.15 read past "
    "their end, so its results differ.",
    weights.shape,
    labels.shape,
  )
  return tf.broadcast_to(weights, tf.shape(labels))


def _replace() -> None:
  """Lets `tf.metrics.mean_iou` and what scripts compute of the matrix take such weights."""
  matrix = metrics_impl._streaming_confusion_matrix

  @functools.wraps(matrix)
  def matrix_of_tokens(labels, predictions, num_classes, weights=None):
    return matrix(labels, predictions, num_classes, _of_all_examples(weights, labels))

  metrics_impl._streaming_confusion_matrix = matrix_of_tokens


_replace()
