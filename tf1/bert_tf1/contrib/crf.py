"""`tf.contrib.crf`: linear-chain conditional random fields, in graph mode.

Shapes: `B` batch, `T` steps, `N` tags. Lengths may be 0 (a score of 0), 1 or T; whatever stands
behind a sequence's length changes nothing. `inputs` of 64 and 16 bits are taken too, where 1.15
knew 32 bits alone.

Source of the forward algorithm: M. Collins, "The Forward-Backward Algorithm",
http://www.cs.columbia.edu/~mcollins/fb.pdf.
"""

from collections.abc import Callable

import numpy as np

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf


def crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params):
  """Returns the unnormalized score of each tag sequence, float [B].

  Args:
    inputs: float [B, T, N], the unary scores.
    tag_indices: int32 or int64 [B, T].
    sequence_lengths: int32 or int64 [B].
    transition_params: float [N, N], from the row's tag to the column's.
  """

  def one_step():
    tags = tag_indices
    rows = tf.range(tf.shape(inputs, out_type=tags.dtype)[0], dtype=tags.dtype)
    places = tf.concat([tf.expand_dims(rows, 1), tags], axis=1)  # [B, 2]
    scores = tf.gather_nd(tf.squeeze(inputs, [1]), places)
    return _zero_where_empty(scores, sequence_lengths)

  def many_steps():
    unary = crf_unary_score(tag_indices, sequence_lengths, inputs)
    return unary + crf_binary_score(tag_indices, sequence_lengths, transition_params)

  return _by_steps(inputs, one_step, many_steps)


def crf_multitag_sequence_score(inputs, tag_bitmap, sequence_lengths, transition_params):
  """Returns the unnormalized score of all tag sequences that `tag_bitmap` allows, float [B].

  The other arguments are those of `crf_sequence_score`.

  Args:
    tag_bitmap: bool [B, T, N], the tags that are right at each step.
    sequence_lengths: int32 or int64 [B]. With T = 1 they are not looked at, as in 1.15.
  """
  forbidden = tf.fill(tf.shape(inputs), tf.constant(-np.inf, inputs.dtype))
  allowed = tf.where(tag_bitmap, inputs, forbidden)  # [B, T, N]
  return _by_steps(
    inputs,
    lambda: tf.reduce_logsumexp(allowed, axis=[1, 2]),
    lambda: crf_log_norm(allowed, sequence_lengths, transition_params),
  )


def crf_log_norm(inputs, sequence_lengths, transition_params):
  """Returns the log of the sum over all tag sequences of exp(score), float [B].

  The arguments are those of `crf_sequence_score`.
  """
  first = tf.squeeze(tf.slice(inputs, [0, 0, 0], [-1, 1, -1]), [1])  # [B, N]

  def many_steps():
    _, alphas = tf.nn.dynamic_rnn(
      cell=CrfForwardRnnCell(transition_params),
      inputs=tf.slice(inputs, [0, 1, 0], [-1, -1, -1]),
      sequence_length=_transitions(sequence_lengths),
      initial_state=first,
      dtype=inputs.dtype,
    )
    return summed(alphas)

  def summed(alphas):
    return _zero_where_empty(tf.reduce_logsumexp(alphas, [1]), sequence_lengths)

  return _by_steps(inputs, lambda: summed(first), many_steps)


def crf_log_likelihood(inputs, tag_indices, sequence_lengths, transition_params=None):
  """Returns the log-likelihood of each tag sequence, float [B], and the transitions, [N, N].

  The other arguments are those of `crf_sequence_score`; N is known.

  Args:
    transition_params: float [N, N]; None gets the variable `transitions` of the current scope.
  """
  if transition_params is None:
    num_tags = tf.dimension_value(inputs.shape[2])
    transition_params = tf.get_variable("transitions", [num_tags, num_tags])
  scores = crf_sequence_score(inputs, tag_indices, sequence_lengths, transition_params)
  log_norm = crf_log_norm(inputs, sequence_lengths, transition_params)
  return scores - log_norm, transition_params


def crf_unary_score(tag_indices, sequence_lengths, inputs):
  """Returns the sum of the tags' unary scores, float [B]; shapes as in `crf_sequence_score`."""
  batch_size, steps, num_tags = tf.unstack(tf.shape(inputs))
  # Places in the flat scores: a tag behind the length may be out of the range of tags.
  starts = tf.expand_dims(tf.range(batch_size) * steps * num_tags, 1)
  starts += tf.expand_dims(tf.range(steps) * num_tags, 0)
  places = tf.cast(starts, tag_indices.dtype) + tag_indices  # [B, T]
  scores = tf.reshape(
    tf.gather(tf.reshape(inputs, [-1]), tf.reshape(places, [-1])), [batch_size, steps]
  )
  return tf.reduce_sum(scores * _mask(tag_indices, sequence_lengths, scores.dtype), 1)


def crf_binary_score(tag_indices, sequence_lengths, transition_params):
  """Returns the sum of the scores of the tags' transitions, float [B].

  The arguments are those of `crf_sequence_score`.
  """
  num_tags = tf.dimension_value(transition_params.shape[0])
  transitions = tf.shape(tag_indices)[1] - 1
  tags_from = tf.slice(tag_indices, [0, 0], [-1, transitions])
  tags_to = tf.slice(tag_indices, [0, 1], [-1, transitions])
  places = tags_from * num_tags + tags_to  # [B, T - 1], in the flat transitions
  scores = tf.gather(tf.reshape(transition_params, [-1]), places)
  mask = _mask(tag_indices, sequence_lengths, scores.dtype)[:, 1:]
  return tf.reduce_sum(scores * mask, 1)


def crf_decode(potentials, transition_params, sequence_length):
  """Returns the tag sequence of the highest score, int32 [B, T], and that score, float [B].

  Behind a sequence's length the tags are 0; with T = 1 the length is not looked at, as in 1.15. The
  arguments are those of `crf_sequence_score`; N is known.
  """

  def one_step():
    scores = tf.squeeze(potentials, [1])
    tags = tf.cast(tf.expand_dims(tf.argmax(scores, axis=1), 1), tf.int32)
    return tags, tf.reduce_max(scores, axis=1)

  def many_steps():
    transitions = _transitions(sequence_length)
    pointers, scores = tf.nn.dynamic_rnn(  # [B, T - 1, N], [B, N]
      CrfDecodeForwardRnnCell(transition_params),
      tf.slice(potentials, [0, 1, 0], [-1, -1, -1]),
      sequence_length=transitions,
      initial_state=tf.squeeze(tf.slice(potentials, [0, 0, 0], [-1, 1, -1]), [1]),
      dtype=tf.int32,  # of the pointers
    )
    last_tags = tf.expand_dims(_argmax(scores), -1)  # [B, 1]
    tags, _ = tf.nn.dynamic_rnn(  # [B, T - 1, 1], from each sequence's end to its start
      CrfDecodeBackwardRnnCell(tf.dimension_value(potentials.shape[2])),
      tf.reverse_sequence(pointers, transitions, seq_axis=1),
      sequence_length=transitions,
      initial_state=last_tags,
      dtype=tf.int32,
    )
    tags = tf.concat([last_tags, tf.squeeze(tags, [2])], axis=1)
    tags = tf.reverse_sequence(tags, sequence_length, seq_axis=1)
    return tags, tf.reduce_max(scores, axis=1)

  return _by_steps(potentials, one_step, many_steps)


def viterbi_decode(score, transition_params):
  """Returns the tags of the highest score of one sequence, and that score, in NumPy.

  Args:
    score: float [T, N], the unary scores of the steps there are (no padding).
    transition_params: float [N, N].

  Returns:
    A list of T NumPy integers, and a scalar of the type of `score`.
  """
  best = np.zeros_like(score)
  pointers = np.zeros_like(score, dtype=np.int32)
  best[0] = score[0]
  for step in range(1, len(score)):
    arrivals = best[step - 1][:, None] + transition_params  # [N, N]
    best[step] = score[step] + arrivals.max(0)
    pointers[step] = arrivals.argmax(0)
  tags = [best[-1].argmax()]
  for pointer in pointers[:0:-1]:
    tags.append(pointer[tags[-1]])
  return tags[::-1], best[-1].max()


class CrfForwardRnnCell(tf.nn.rnn_cell.RNNCell):
  """One step of the forward algorithm: unary scores [B, N] and alphas [B, N] to new alphas."""

  def __init__(self, transition_params):
    """`transition_params` is float [N, N]."""
    super().__init__()
    self._num_tags = tf.dimension_value(transition_params.shape[0])
    self._transition_params = tf.expand_dims(transition_params, 0)  # [1, N, N]

  @property
  def state_size(self):
    """N."""
    return self._num_tags

  @property
  def output_size(self):
    """N."""
    return self._num_tags

  def __call__(self, inputs, state, scope=None):
    """Returns the new alphas, as output and as state."""
    arrivals = tf.expand_dims(state, 2) + self._transition_params  # [B, N, N]
    alphas = inputs + tf.reduce_logsumexp(arrivals, [1])
    return alphas, alphas


class CrfDecodeForwardRnnCell(CrfForwardRnnCell):
  """One Viterbi step: unary scores and best scores [B, N] to int32 back pointers and scores."""

  def __call__(self, inputs, state, scope=None):
    """Returns the back pointers and the new scores."""
    arrivals = tf.expand_dims(state, 2) + self._transition_params  # [B, N, N]
    return _argmax(arrivals), inputs + tf.reduce_max(arrivals, [1])


class CrfDecodeBackwardRnnCell(tf.nn.rnn_cell.RNNCell):
  """One step back along the pointers: int32 [B, N] and the next step's tag [B, 1] to [B, 1]."""

  def __init__(self, num_tags):
    super().__init__()
    self._num_tags = num_tags

  @property
  def state_size(self):
    """1, the tag."""
    return 1

  @property
  def output_size(self):
    """1, the tag."""
    return 1

  def __call__(self, inputs, state, scope=None):
    """Returns the tag, as output and as state."""
    rows = tf.range(tf.shape(inputs)[0])
    tags = tf.gather_nd(inputs, tf.stack([rows, tf.squeeze(state, [1])], axis=1))
    tags = tf.expand_dims(tags, -1)
    return tags, tags


def _by_steps(inputs, one_step: Callable, many_steps: Callable):
  """Calls `one_step` if T of `inputs` is 1, else `many_steps`; in the graph if T is not known."""
  steps = tf.dimension_value(inputs.shape[1])
  if steps is None:
    return tf.cond(tf.equal(tf.shape(inputs)[1], 1), one_step, many_steps)
  return one_step() if steps == 1 else many_steps()


def _transitions(sequence_lengths):
  return tf.maximum(sequence_lengths - 1, 0)


def _zero_where_empty(scores, sequence_lengths):
  return tf.where(tf.less_equal(sequence_lengths, 0), tf.zeros_like(scores), scores)


def _mask(tag_indices, sequence_lengths, dtype):
  return tf.sequence_mask(sequence_lengths, maxlen=tf.shape(tag_indices)[1], dtype=dtype)


def _argmax(scores):
  return tf.cast(tf.argmax(scores, axis=1), tf.int32)


__getattr__ = unknown_name(__name__)
