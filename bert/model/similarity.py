"""Similarity of texts: pooled vectors of one encoder, their cosines, and two losses over them.

Reimers and Gurevych, "Sentence-BERT" (2019, arXiv:1908.10084): all texts go through the same
encoder, the vectors of a text's tokens become one by pooling, and the angle between two such
vectors is the similarity of the texts. There are no variables besides the encoder's.

Letters in shapes: B = batch size, N = texts in a row, S = sequence length, W = hidden size,
C = candidates among which a text's partner is to be found.
"""

import tensorflow as tf

# Cosines are at most 1, so that their softmax alone could never come near to one candidate.
# Henderson et al. (2017, arXiv:1705.00652) rank by dot products; 20 is what Sentence-BERT's code
# multiplies cosines by.
SCALE = 20.0

# Not -inf: a row whose own partner is missing, as in a batch filled up for a TPU, would be NaN.
_NO_CANDIDATE = -10000.0


def pool(vectors: tf.Tensor, input_mask: tf.Tensor, pooling: str) -> tf.Tensor:
  """Pools one vector of each sequence.

  Args:
    vectors: float32 `[B, S, ...]`, of the tokens.
    input_mask: int `[B, S]`, 1 for a token, 0 for padding; at least one token in each sequence.
    pooling: `cls`: the first vector; `mean` and `max`: over all tokens, [CLS] and [SEP] included.

  Returns:
    float32 `[B, ...]`.

  Raises:
    ValueError: `pooling` is unknown.
  """
  if pooling == "cls":
    return vectors[:, 0]
  is_piece = tf.cast(input_mask, tf.bool)  # [B, S]
  for _ in range(vectors.shape.rank - 2):
    is_piece = tf.expand_dims(is_piece, -1)  # [B, S, 1, ...]; LiteRT has no tf.newaxis
  if pooling == "max":
    return tf.reduce_max(tf.where(is_piece, vectors, vectors.dtype.min), axis=1)
  if pooling == "mean":
    total = tf.reduce_sum(tf.where(is_piece, vectors, 0.0), axis=1)
    return total / tf.reduce_sum(tf.cast(is_piece, tf.float32), axis=1)
  raise ValueError(f"pooling is {pooling!r}, but must be one of cls, mean, max.")


def cosines(vectors: tf.Tensor, others: tf.Tensor) -> tf.Tensor:
  """Computes the cosine of the angle between vectors: float32 `[B, W]` twice to `[B]`."""
  return tf.reduce_sum(_normalized(vectors) * _normalized(others), axis=-1)


def _normalized(vectors):
  return tf.math.l2_normalize(vectors, axis=-1)


def get_cosine_loss(similarity: tf.Tensor, target: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Computes the squared error of cosines (Sentence-BERT, section 3, "regression objective").

  Args:
    similarity: float32 `[B]`, the cosines.
    target: float32 `[B]`, what they should be: scores on the scale 0 to 1.

  Returns:
    `(loss, per_example_loss)`: float32 `[]` and `[B]`.
  """
  per_example_loss = tf.square(similarity - target)
  return tf.reduce_mean(per_example_loss), per_example_loss


def get_ranking_loss(vectors: tf.Tensor, input_ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
  """Computes the cross-entropy of finding a text's partner among the batch's second texts.

  The candidates are the partners of all rows and, if there are three texts in a row, their third
  texts, which are known to be wrong ("hard negatives"). A candidate of the same tokens as the right
  one is left out: it is not wrong. So are texts that only fill a row.

  Args:
    vectors: float32 `[B, N, W]`: of a text, its partner, and a wrong one where N is 3.
    input_ids: int `[B, N, S]`, of these texts; all 0 for a text that only fills its row.

  Returns:
    `(loss, per_example_loss)`: float32 `[]` and `[B]`.
  """
  # The partners of all rows first, so that row i's is candidate i.
  candidates, candidate_ids = _candidates(vectors), _candidates(input_ids)  # [C, W], [C, S]
  num_rows, num_candidates = tf.shape(vectors)[0], tf.shape(candidates)[0]
  logits = SCALE * tf.matmul(_normalized(vectors[:, 0]), _normalized(candidates), transpose_b=True)
  is_right = tf.eye(num_rows, num_candidates, dtype=tf.bool)  # [B, C]
  partner_ids = input_ids[:, 1, tf.newaxis]  # [B, 1, S]
  is_equal = tf.reduce_all(partner_ids == candidate_ids[tf.newaxis], axis=-1)  # [B, C]
  is_text = tf.reduce_any(candidate_ids != 0, axis=-1)  # [C]
  is_candidate = is_right | (~is_equal & is_text)
  per_example_loss = tf.nn.sparse_softmax_cross_entropy_with_logits(
    tf.range(num_rows), tf.where(is_candidate, logits, _NO_CANDIDATE)
  )
  return tf.reduce_mean(per_example_loss), per_example_loss


def _candidates(rows: tf.Tensor) -> tf.Tensor:
  """Reshapes `[B, N, X]` to `[(N - 1) * B, X]`: the second texts of all rows, then the third."""
  return tf.reshape(tf.transpose(rows[:, 1:], [1, 0, 2]), [-1, tf.shape(rows)[2]])
