"""`tf.contrib.seq2seq`: the loss over sequences, and tensors repeated for a beam.

The decoders are not here: their graph code has no successor in TensorFlow 2.
"""

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf


def sequence_loss(
  logits,
  targets,
  weights,
  average_across_timesteps=True,
  average_across_batch=True,
  sum_over_timesteps=False,
  sum_over_batch=False,
  softmax_loss_function=None,
  name=None,
):
  """Returns the weighted cross entropy: a mean or sum over steps, examples, both or neither.

  Args:
    logits: float [B, T, N].
    targets: int32 or int64 [B, T].
    weights: float [B, T]; 0 leaves a step out.
    average_across_timesteps: divide the sum over the steps by that of their weights.
    average_across_batch: divide the sum over the examples by that of their weights.
    sum_over_timesteps: divide the sum over the steps by the number of weights that are not 0.
    sum_over_batch: divide the sum over the examples by the number of weights that are not 0.
    softmax_loss_function: called with `labels` [B * T] and `logits` [B * T, N]; the sparse
      softmax cross entropy if None.
    name: of the ops; "sequence_loss" if None.

  Returns:
    A scalar if both axes are reduced, [B] or [T] if one is, [B, T] if none is. Where the weights
    add up to 0 the loss is 0.

  Raises:
    ValueError: if a rank does not fit or an axis is to be both averaged and summed.
  """
  for tensor, rank, message in (
    (logits, 3, "Logits must be a [batch_size x sequence_length x logits] tensor"),
    (targets, 2, "Targets must be a [batch_size x sequence_length] tensor"),
    (weights, 2, "Weights must be a [batch_size x sequence_length] tensor"),
  ):
    if len(tensor.shape) != rank:
      raise ValueError(message)
  if average_across_timesteps and sum_over_timesteps:
    raise ValueError(
      "average_across_timesteps and sum_over_timesteps cannot be set to True at same time."
    )
  if average_across_batch and sum_over_batch:
    raise ValueError("average_across_batch and sum_over_batch cannot be set to True at same time.")
  with tf.name_scope(name, "sequence_loss", [logits, targets, weights]):
    flat_logits = tf.reshape(logits, [-1, tf.shape(logits)[2]])
    flat_targets = tf.reshape(targets, [-1])
    loss = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
    losses = loss(labels=flat_targets, logits=flat_logits) * tf.reshape(weights, [-1])
    if average_across_timesteps and average_across_batch:
      return _mean(losses, weights)
    if sum_over_timesteps and sum_over_batch:
      return _mean(losses, tf.not_equal(weights, 0))
    losses = tf.reshape(losses, tf.shape(logits)[:2])  # [B, T]
    if average_across_timesteps or average_across_batch:
      return _mean(losses, weights, 0 if average_across_batch else 1)
    if sum_over_timesteps or sum_over_batch:
      return _mean(losses, tf.not_equal(weights, 0), 0 if sum_over_batch else 1)
    return losses


def tile_batch(t, multiplier, name=None):
  """Repeats each example `multiplier` times, side by side: [B, ...] to [B * multiplier, ...].

  Args:
    t: a tensor, or a nest of tensors, of known rank; TensorArrays stay as they are.
    multiplier: an integer.
    name: of the ops; "tile_batch" if None.

  Raises:
    ValueError: if a tensor is a scalar or its rank is not known.
  """
  with tf.name_scope(name, "tile_batch", [*tf.nest.flatten(t), multiplier]):
    return tf.nest.map_structure(lambda tensor: _tiled(tensor, multiplier), t)


def hardmax(logits, name=None):
  """Returns 1 at the largest of float [B, N] and 0 elsewhere, of the type of `logits`."""
  with tf.name_scope(name, "Hardmax", [logits]):
    logits = tf.convert_to_tensor(logits)
    depth = tf.dimension_value(logits.shape[-1]) or tf.shape(logits)[-1]
    return tf.one_hot(tf.argmax(logits, -1), depth, dtype=logits.dtype)


def _mean(losses, weights, axis=None):
  """Returns the sum of the losses by the sum of the weights along the axis; 0 for no weight."""
  total = tf.reduce_sum(losses, axis=axis)
  return tf.div_no_nan(total, tf.reduce_sum(tf.cast(weights, losses.dtype), axis=axis))


def _tiled(tensor, multiplier: int):
  if isinstance(tensor, tf.TensorArray):
    return tensor
  tensor = tf.convert_to_tensor(tensor)
  if not tensor.shape.ndims:
    raise ValueError("t must have statically known rank")
  rank = tensor.shape.ndims
  tiled = tf.tile(tf.expand_dims(tensor, 1), [1, multiplier, *[1] * (rank - 1)])
  size = tf.dimension_value(tensor.shape[0])
  tiled = tf.reshape(
    tiled, tf.concat([[tf.shape(tensor)[0] * multiplier], tf.shape(tensor)[1:]], 0)
  )
  tiled.set_shape([None if size is None else size * multiplier, *tensor.shape[1:]])
  return tiled


_DECODERS = (
  "TensorFlow 2 has no graph-mode decoder; write the loop with tf.while_loop, or run this script "
  "on TensorFlow 1.15."
)
__getattr__ = unknown_name(
  __name__,
  dict.fromkeys(
    (
      "AttentionMechanism",
      "AttentionWrapper",
      "AttentionWrapperState",
      "BahdanauAttention",
      "BahdanauMonotonicAttention",
      "BasicDecoder",
      "BasicDecoderOutput",
      "BeamSearchDecoder",
      "BeamSearchDecoderOutput",
      "BeamSearchDecoderState",
      "CustomHelper",
      "Decoder",
      "FinalBeamSearchDecoderOutput",
      "GreedyEmbeddingHelper",
      "Helper",
      "InferenceHelper",
      "LuongAttention",
      "LuongMonotonicAttention",
      "SampleEmbeddingHelper",
      "ScheduledEmbeddingTrainingHelper",
      "ScheduledOutputTrainingHelper",
      "TrainingHelper",
      "dynamic_decode",
      "gather_tree",
    ),
    _DECODERS,
  ),
)
