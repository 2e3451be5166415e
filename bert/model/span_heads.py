"""Heads for answers whose end depends on their start: ELECTRA's and ALBERT's for SQuAD.

Both score starts first. In training the end is scored given the right start; in prediction
given each of the K best starts, which makes a beam of K x E spans. A further score says that
there is no answer. Variables have the names of the family's own checkpoints.

Letters in shapes: B = batch size, S = sequence length, W = hidden size, K = starts and E = ends
for each start in a beam, U = units of a hidden layer.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from bert.model.answer_heads import AnswerHead
from bert.model.layers import create_initializer, dropout, gelu_erf, layer_norm
from bert.model.variables import (
  get_variable,
  glorot_uniform_initializer,
  variable_scope,
  zeros_initializer,
)

# ELECTRA's hidden layers have this width whatever the model's is.
_QA_HIDDEN = 512


class Beam(NamedTuple):
  """The best spans of each sequence."""

  start_log_probs: tf.Tensor  # float32 `[B, K]`, the largest first
  start_index: tf.Tensor  # int32 `[B, K]`
  end_log_probs: tf.Tensor  # float32 `[B, K, E]`, given the start
  end_index: tf.Tensor  # int32 `[B, K, E]`


class SpanScores(NamedTuple):
  """What a head says of each sequence."""

  start_logits: tf.Tensor  # float32 `[B, S]`
  # float32 `[B, S]`, given `start_positions`; None without them, unless ends do not depend on
  # starts.
  end_logits: tf.Tensor | None
  # float32 `[B]`, positive where no answer is more likely; None without that part.
  null_logit: tf.Tensor | None
  beam: Beam | None  # a `Beam`; None if it was not asked for


def get_span_scores(
  head: AnswerHead,
  sequence_output: tf.Tensor,
  input_mask: tf.Tensor,
  segment_ids: tf.Tensor,
  initializer_range: float = 0.02,
  *,
  start_positions: tf.Tensor | None = None,
  with_beam: bool = False,
  is_training: bool = False,
) -> SpanScores:
  """Computes the scores of the head of either family; arguments as below."""
  asked: dict[str, Any] = {"start_positions": start_positions}
  if head.kind == "electra":
    asked["with_beam"] = with_beam
    return get_electra_spans(sequence_output, input_mask, segment_ids, head, **asked)
  return get_albert_spans(
    sequence_output,
    albert_p_mask(input_mask, segment_ids),
    initializer_range,
    beam=(head.num_starts, head.num_ends) if with_beam else None,
    dropout_prob=head.dropout_prob if is_training else 0.0,
    **asked,
  )


def get_electra_spans(
  sequence_output: tf.Tensor,
  input_mask: tf.Tensor,
  segment_ids: tf.Tensor,
  head: AnswerHead,
  *,
  start_positions: tf.Tensor | None = None,
  with_beam: bool = False,
) -> SpanScores:
  """Computes scores of ELECTRA's head for questions (`finetune/qa/qa_tasks.py`).

  Answers may lie at [CLS] and anywhere in segment 1, its [SEP] included; 1000 is subtracted from
  the logits of all other positions.

  Args:
    sequence_output: float32 `[B, S, W]`, the last layer.
    input_mask: int `[B, S]`.
    segment_ids: int `[B, S]`.
    head: its settings, and the scope of the variables.
    start_positions: int `[B]`, the right start positions, to score ends.
    with_beam: whether to search the best spans.
  """
  first = tf.one_hot(tf.zeros_like(input_mask[:, 0]), tf.shape(input_mask)[1])  # [B, S]
  is_allowed = tf.cast(input_mask * segment_ids, tf.float32) + first
  penalty = 1000.0 * (is_allowed - 1.0)

  def hide(logits):
    return logits + (tf.expand_dims(penalty, 1) if logits.shape.rank == 3 else penalty)

  def ends(start_vectors):
    return hide(_score(gelu_erf(score_ends(start_vectors)), "dense_1"))

  with variable_scope(head.scope):
    start_logits = hide(_score(sequence_output, "dense"))
    if head.joint_prediction:
      score_ends = _EndScorer(sequence_output, "qa_hidden", _QA_HIDDEN, starts_come_first=True)
      sizes = (head.num_starts, head.num_ends) if with_beam else None
      end_logits, beam = _ends(sequence_output, start_logits, ends, start_positions, sizes)
    else:
      end_logits, beam = hide(_score(sequence_output, "dense_1")), None
    null_logit = None
    if head.answerable_classifier:
      vector = sequence_output[:, 0]  # [B, W]
      name = "dense_2"
      if head.answerable_uses_start_logits:
        vector = tf.concat([vector, _likely_start(sequence_output, start_logits)], -1)
        vector = gelu_erf(_dense(vector, _QA_HIDDEN, "dense_2"))
        name = "dense_3"
      null_logit = _score(vector, name)
  return SpanScores(start_logits, end_logits, null_logit, beam)


def get_albert_spans(
  sequence_output: tf.Tensor,
  p_mask: tf.Tensor,
  initializer_range: float = 0.02,
  *,
  start_positions: tf.Tensor | None = None,
  beam: tuple[int, int] | None = None,
  dropout_prob: float = 0.0,
) -> SpanScores:
  """Computes scores of ALBERT's head for SQuAD 2.0 (`squad_utils.create_v2_model`).

  Args:
    sequence_output: float32 `[B, S, W]`, the last layer.
    p_mask: int `[B, S]`, 1 where no answer can begin or end; see `albert_p_mask`.
    initializer_range: standard deviation of initial kernels.
    start_positions: int `[B]`, the right start positions, to score ends.
    beam: `(start_n_top, end_n_top)`, K and E, to search the best spans.
    dropout_prob: of the hidden layer of the last score; 0 except in training.
  """
  hidden = tf.cast(p_mask, tf.float32)  # 1e30, and not -inf: a row may be hidden as a whole

  def hide(logits):
    mask = tf.expand_dims(hidden, 1) if logits.shape.rank == 3 else hidden
    return logits * (1.0 - mask) - 1e30 * mask

  width = sequence_output.shape[-1]
  stddev = initializer_range
  with variable_scope("start_logits"):
    start_logits = hide(_score(sequence_output, "dense", stddev))

  def ends(start_vectors):
    with variable_scope("end_logits"):
      vectors = layer_norm(tf.tanh(score_ends(start_vectors)))
      return hide(_score(vectors, "dense_1", stddev))

  with variable_scope("end_logits"):
    score_ends = _EndScorer(
      sequence_output, "dense_0", width, starts_come_first=False, stddev=stddev
    )
  end_logits, spans = _ends(sequence_output, start_logits, ends, start_positions, beam)
  with variable_scope("answer_class"):
    vector = tf.concat([_likely_start(sequence_output, start_logits), sequence_output[:, 0]], -1)
    vector = tf.tanh(_dense(vector, width, "dense_0", stddev))
    null_logit = _score(dropout(vector, dropout_prob), "dense_1", stddev, has_bias=False)
  return SpanScores(start_logits, end_logits, null_logit, spans)


def albert_p_mask(input_mask: tf.Tensor, segment_ids: tf.Tensor) -> tf.Tensor:
  """Marks where ALBERT lets no answer start or end: int32 `[B, S]`, 0 at [CLS] and in the text.

  Example:
    >>> albert_p_mask([[1, 1, 1, 1, 1, 0]], [[0, 0, 1, 1, 1, 0]]).numpy().tolist()
    [[0, 1, 0, 0, 1, 1]]
  """
  mask = tf.cast(input_mask, tf.int32)
  following = tf.pad(mask[:, 1:], [[0, 0], [0, 1]])  # the last token is [SEP]
  is_paragraph = mask * following * tf.cast(segment_ids, tf.int32)
  is_first = tf.one_hot(tf.zeros_like(mask[:, 0]), tf.shape(mask)[1], dtype=tf.int32)
  return 1 - tf.maximum(is_paragraph, is_first)


def get_span_losses(
  scores: SpanScores,
  start_positions: tf.Tensor,
  end_positions: tf.Tensor,
  is_impossible: tf.Tensor,
  null_weight: float = 0.5,
) -> tf.Tensor:
  """Averages cross-entropies of start and end, adds `null_weight` of the null score's: `[B]`.

  Args:
    scores: of a head that was given `start_positions`.
    start_positions: int `[B]`; 0 without an answer.
    end_positions: int `[B]`.
    is_impossible: int `[B]`, 1 where there is no answer.
    null_weight: 0.5 in both families.
  """
  losses = 0.5 * (
    tf.nn.sparse_softmax_cross_entropy_with_logits(start_positions, scores.start_logits)
    + tf.nn.sparse_softmax_cross_entropy_with_logits(end_positions, scores.end_logits)
  )
  if scores.null_logit is not None:
    losses += null_weight * tf.nn.sigmoid_cross_entropy_with_logits(
      tf.cast(is_impossible, tf.float32), scores.null_logit
    )
  return losses


# ---------------------------------------------------------------------------------------------
# Shared.


def _ends(
  sequence_output: tf.Tensor,
  start_logits: tf.Tensor,
  ends: Callable[[tf.Tensor], tf.Tensor],
  start_positions: tf.Tensor | None,
  beam: tuple[int, int] | None,
) -> tuple[tf.Tensor | None, Beam | None]:
  """Computes the logits of ends given the right starts, and the best spans.

  `ends` maps vectors of starts, `[B, 1, W]` or `[B, K, W]`, to logits `[B, 1 or K, S]`.
  """
  end_logits, spans = None, None
  if start_positions is not None:
    vectors = tf.gather(sequence_output, tf.reshape(start_positions, [-1, 1]), batch_dims=1)
    end_logits = ends(vectors)[:, 0]  # [B, S]
  if beam is not None:
    starts, start_index = _best(tf.nn.log_softmax(start_logits), beam[0])
    vectors = tf.gather(sequence_output, start_index, batch_dims=1)  # [B, K, W]
    spans = Beam(starts, start_index, *_best(tf.nn.log_softmax(ends(vectors)), beam[1]))
  return end_logits, spans


def _best(log_probs, count):
  """Finds the largest `count` of `[..., S]` and their positions; short sequences repeat [CLS]."""
  missing = tf.maximum(count - tf.shape(log_probs)[-1], 0)
  values, index = tf.nn.top_k(log_probs, count - missing)
  edges = [[0, 0]] * (log_probs.shape.rank - 1) + [[0, missing]]
  values, index = tf.pad(values, edges, constant_values=-1e30), tf.pad(index, edges)
  shape = [*log_probs.shape[:-1], count]
  for tensor in (values, index):
    tensor.set_shape(shape)  # and not tf.ensure_shape, an operation that LiteRT lacks
  return values, index


class _EndScorer:
  """A linear layer over the vectors of a start and of each position, joined.

  The product with the joined vectors is the sum of two products, each computed once: a beam of K
  starts costs little more than one.
  """

  def __init__(self, sequence_output, name, units, *, starts_come_first, stddev=None):
    """Computes the part of the positions: `sequence_output` is float32 `[B, S, W]`."""
    width = sequence_output.shape[-1]
    kernel, self._bias = _variables(2 * width, units, name, stddev)
    first, second = kernel[:width], kernel[width:]
    self._of_starts = first if starts_come_first else second
    of_positions = second if starts_come_first else first
    self._positions = tf.matmul(sequence_output, of_positions)  # [B, S, U]

  def __call__(self, start_vectors):
    """Maps `[B, K, W]` to `[B, K, S, U]`."""
    starts = tf.matmul(start_vectors, self._of_starts) + self._bias
    return tf.expand_dims(starts, 2) + tf.expand_dims(self._positions, 1)


def _likely_start(sequence_output, start_logits):
  """Averages all vectors to `[B, W]`, weighted by the probability of starting there."""
  return tf.einsum("bs,bsw->bw", tf.nn.softmax(start_logits), sequence_output)


def _score(tensor, name, stddev=None, has_bias=True):
  """Maps `[..., W]` to `[...]`: a linear layer with one unit."""
  return tf.squeeze(_dense(tensor, 1, name, stddev, has_bias), -1)


def _dense(tensor, units, name, stddev=None, has_bias=True):
  """Maps `[..., W]` to `[..., units]`, in float32."""
  kernel, bias = _variables(tensor.shape[-1], units, name, stddev, has_bias)
  output = tf.tensordot(tensor, kernel, 1) if tensor.shape.rank > 2 else tf.matmul(tensor, kernel)
  return output if bias is None else output + bias


def _variables(width, units, name, stddev, has_bias=True):
  """Makes kernel and bias; without a standard deviation the kernel starts as Glorot's."""
  initializer = glorot_uniform_initializer if stddev is None else create_initializer(stddev)
  with variable_scope(name):
    kernel = tf.convert_to_tensor(get_variable("kernel", [width, units], initializer))
    return kernel, get_variable("bias", [units], zeros_initializer) if has_bias else None
