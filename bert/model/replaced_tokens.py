"""ELECTRA's pre-training as graph functions: a generator's words, and who wrote each token.

A small model, the generator, learns masked tokens. Words drawn from its answers replace the masked
ones, and the discriminator learns to tell for every token whether it was replaced (Clark et al.
2020, arXiv:2003.10555, section 2).

Letters in shapes: B = batch size, S = sequence length, W = hidden size, P = masked positions of
each sequence, V = vocabulary size.
"""

from typing import NamedTuple

import tensorflow as tf

from bert.model.configuration import BertConfig
from bert.model.heads import loss_divisor
from bert.model.layers import dense, get_activation
from bert.model.variables import variable_scope

# Keeps a batch without any token from dividing by zero.
_EPSILON = 1e-6


class Replaced(NamedTuple):
  """Sequences in which a generator's words replace masked ones."""

  input_ids: tf.Tensor  # int32 `[B, S]`
  is_replaced: tf.Tensor  # int32 `[B, S]`, 1 where the word is not the original one


def draw_words(
  logits: tf.Tensor,
  uniform: tf.Tensor,
  temperature: float = 1.0,
  disallowed: tf.Tensor | None = None,
) -> tf.Tensor:
  """Draws a word for each masked position, int32 `[B, P]`, from the generator's distribution.

  By the Gumbel-max trick, with the original's formula, so that equal noise gives equal words.

  Args:
    logits: float32 `[B, P, V]`.
    uniform: float32 `[B, P, V]` in [0, 1).
    temperature: divides the logits.
    disallowed: int `[B, P]`, words that are not to be drawn; None: every word may be.
  """
  logits = logits / temperature
  if disallowed is not None:
    logits -= 1000.0 * tf.one_hot(disallowed, logits.shape[-1])
  noise = -tf.math.log(-tf.math.log(uniform + 1e-9) + 1e-9)
  return tf.stop_gradient(tf.argmax(logits + noise, -1, output_type=tf.int32))


def uniform_noise(seeds: tf.Tensor, shape) -> tf.Tensor:
  """Draws float32 `[B, P, V]` in [0, 1) for `draw_words` by the examples' seeds, int64 `[B, 2]`.

  It is the same for the same examples in a batch.
  """
  return tf.random.stateless_uniform(shape, tf.reduce_sum(seeds, axis=0))


def put(input_ids: tf.Tensor, positions: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
  """Puts words `[B, P]` at positions `[B, P]` of sequences, int32 `[B, S]`; none at 0."""
  return _scatter_ids(input_ids, positions, words)[0]


def replace(
  input_ids: tf.Tensor, positions: tf.Tensor, original_ids: tf.Tensor, words: tf.Tensor
) -> Replaced:
  """Puts words in the place of masked ones.

  A position that was drawn n times gets the sum of its n words' ids, divided by n and rounded down:
  a word that nobody has drawn. So does the original, and its released models learned so. All are
  int32: sequences with masks `[B, S]`; and `[B, P]` positions, 0 where there is none, the words
  that stood there, and those that the generator drew.
  """
  original, _ = _scatter_ids(input_ids, positions, original_ids)
  replaced, is_put = _scatter_ids(original, positions, words)
  is_replaced = is_put & (replaced != original)
  return Replaced(tf.stop_gradient(replaced), tf.cast(is_replaced, tf.int32))


def _scatter_ids(ids, positions, values) -> tuple[tf.Tensor, tf.Tensor]:
  """Puts values `[B, P]` at positions of ids, int32 `[B, S]`; none at 0. Returns where, too."""
  batch_size, length = tf.unstack(tf.shape(ids))
  rows = tf.broadcast_to(tf.range(batch_size)[:, tf.newaxis], tf.shape(positions))
  places = tf.stack([rows, positions], axis=-1)  # [B, P, 2]
  sums = tf.scatter_nd(places, values, [batch_size, length])
  counts = tf.scatter_nd(places, tf.ones_like(values), [batch_size, length])
  is_put = (counts > 0) & (tf.range(length) > 0)
  return tf.where(is_put, sums // tf.maximum(counts, 1), ids), is_put


def discriminator_logits(
  config: BertConfig, sequence_output: tf.Tensor, dtype: tf.DType = tf.float32
) -> tf.Tensor:
  """Scores "this token was replaced", `[B, S]`: scope `discriminator_predictions/{dense,dense_1}`.

  Args:
    config: of the discriminator.
    sequence_output: float32 `[B, S, W]`, its last layer.
    dtype: of the wide matrix product.
  """
  with variable_scope("discriminator_predictions"):
    activation = get_activation(config.hidden_act)
    hidden = dense(
      sequence_output, config.hidden_size, "dense", config.initializer_range, activation, dtype
    )
    return dense(hidden, 1, "dense_1", initializer_range=None)[..., 0]


def detection_loss(
  logits: tf.Tensor, is_replaced: tf.Tensor, input_mask: tf.Tensor, parts: int = 1
) -> tuple[tf.Tensor, tf.Tensor]:
  """Computes the cross-entropy of replaced and original tokens.

  Args:
    logits: float32 `[B, S]`.
    is_replaced: int `[B, S]`, 1 or 0.
    input_mask: int `[B, S]`, 1 for a token, 0 for padding.
    parts: of the batch, over which gradients are accumulated; see `heads.loss_divisor`.

  Returns:
    `(loss, per_example_loss)`: float32 `[]`, the mean over all tokens, and `[B]`.
  """
  weights = tf.cast(input_mask, tf.float32)
  labels = tf.cast(is_replaced, tf.float32)
  losses = weights * tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)
  per_example = tf.reduce_sum(losses, axis=1) / (_EPSILON + tf.reduce_sum(weights, axis=1))
  divisor = loss_divisor(weights, tf.shape(logits)[0], parts)
  return tf.reduce_sum(losses) / (_EPSILON + divisor), per_example
