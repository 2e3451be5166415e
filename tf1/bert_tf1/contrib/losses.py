"""`tf.contrib.losses`: losses on distances between embeddings; the others are in `tf.losses`.

Shapes: `B` batch, `H` embedding size.
"""

import types

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf


def contrastive_loss(labels, embeddings_anchor, embeddings_positive, margin=1.0):
  """Returns the mean over pairs of the squared distance, or of what it lacks to `margin`, squared.

  Args:
    labels: [B], 1 for a pair that belongs together and 0 for one that does not.
    embeddings_anchor: float [B, H].
    embeddings_positive: float [B, H].
    margin: the distance beyond which a pair of label 0 costs nothing.

  Source: http://yann.lecun.com/exdb/publis/pdf/hadsell-chopra-lecun-06.pdf.
  """
  between = tf.squared_difference(embeddings_anchor, embeddings_positive)
  distances = tf.sqrt(tf.reduce_sum(between, 1))  # [B]
  same = tf.cast(labels, tf.float32)
  lacking = tf.maximum(margin - distances, 0.0)
  return tf.reduce_mean(
    same * tf.square(distances) + (1.0 - same) * tf.square(lacking), name="contrastive_loss"
  )


def triplet_semihard_loss(labels, embeddings, margin=1.0):
  """Returns the mean triplet loss over all pairs of one label, with the nearest harder negative.

  For an anchor and a positive the negative is the nearest one that is farther than the positive,
  or the farthest of all where there is none. Without a pair of one label the loss is NaN.

  Args:
    labels: int32 [B].
    embeddings: float [B, H]; normalize them to length 1.
    margin: how much farther than the positive the negative should be, in squared distance.

  Raises:
    ValueError: labels of another rank.

  Source: https://arxiv.org/abs/1503.03832.
  """
  labels = tf.convert_to_tensor(labels)
  if labels.shape.ndims != 1:
    raise ValueError(
      f"labels have the shape {labels.shape}, expected [batch size]: tf.squeeze them."
    )
  labels = tf.reshape(labels, [-1, 1])
  is_same = tf.equal(labels, tf.transpose(labels))  # [B, B]
  is_other = tf.logical_not(is_same)
  distances = _squared_distances(embeddings)  # [B, B]

  # Of each anchor (first axis), positive (second) and negative (third): [B, B, B].
  is_harder = distances[:, None, :] > distances[:, :, None]
  is_semihard = tf.logical_and(is_other[:, None, :], is_harder)
  farthest = tf.reduce_max(distances, 1, keepdims=True)  # [B, 1]
  nearest_semihard = tf.reduce_min(
    tf.where(
      is_semihard,
      _like(distances[:, None, :], is_semihard),
      _like(farthest[..., None], is_semihard),
    ),
    axis=2,
  )  # [B, B]
  farthest_other = tf.reduce_max(distances * tf.cast(is_other, tf.float32), 1, keepdims=True)
  negatives = tf.where(
    tf.reduce_any(is_semihard, 2), nearest_semihard, _like(farthest_other, nearest_semihard)
  )

  is_pair = tf.cast(is_same, tf.float32) - tf.eye(tf.size(labels))
  losses = tf.maximum((margin + distances - negatives) * is_pair, 0.0)
  return tf.truediv(tf.reduce_sum(losses), tf.reduce_sum(is_pair), name="triplet_semihard_loss")


def _squared_distances(embeddings):
  """Returns the squared distances of all pairs, float [B, B], with 0 on the diagonal."""
  squares = tf.reduce_sum(tf.square(embeddings), 1, keepdims=True)  # [B, 1]
  products = tf.matmul(embeddings, embeddings, transpose_b=True)
  distances = tf.maximum(squares + tf.transpose(squares) - 2.0 * products, 0.0)
  return distances * (1.0 - tf.eye(tf.shape(embeddings)[0]))


def _like(values, other):
  return tf.broadcast_to(values, tf.shape(other))


metric_learning = types.SimpleNamespace(
  contrastive_loss=contrastive_loss, triplet_semihard_loss=triplet_semihard_loss
)
metric_learning.metric_loss_ops = metric_learning  # The file that scripts import them from.

__getattr__ = unknown_name(
  __name__,
  dict.fromkeys(
    ("mean_squared_error", "sigmoid_cross_entropy", "softmax_cross_entropy"), "use tf.losses."
  ),
)
