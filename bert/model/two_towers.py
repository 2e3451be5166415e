"""The generator of two towers: one reads what stands before a word, the other what stands after it.

Electric's generator (Clark et al. 2020, arXiv:2012.08561; google-research/electra,
`run_pretraining.py`). It scores all words of a text at every place in one pass, without masks, and
no word is among what its own scores are computed from.

Letters in shapes: B = batch size, S = sequence length, W = hidden size of a tower, V = vocabulary
size.
"""

import math

import tensorflow as tf

# Scope of a tower's variables, and what its words see, see `modeling.BertModel`.
TOWERS = {"generator_ltr": "before", "generator_rtl": "after"}
HEAD_SCOPE = "cloze_predictions"


def vectors_between(before: tf.Tensor, after: tf.Tensor) -> tf.Tensor:
  """Joins what both towers know of each word without having seen it: float32 `[B, S, 2 * W]`.

  The first word has nothing before it and gets the vector of the last place, padding or not, and
  the last one that of the first, as in the original.

  Args:
    before: float32 `[B, S, W]`, vectors that have seen their word and what stands before it.
    after: float32 `[B, S, W]`, that have seen their word and what stands after it.

  Example:
    >>> places = tf.reshape(tf.range(3.0), [1, 3, 1])
    >>> vectors_between(places, 10 + places)[0].numpy().tolist()
    [[2.0, 11.0], [0.0, 12.0], [1.0, 10.0]]
  """
  return tf.concat([tf.roll(before, 1, axis=1), tf.roll(after, -1, axis=1)], axis=-1)


def log_odds(log_probs: tf.Tensor, input_ids: tf.Tensor, mask_prob: float) -> tf.Tensor:
  """Computes what Electric adds to the discriminator's scores to tell a text's probability.

  A word that stands in a text is the generator's with the odds `mask_prob q / (1 - mask_prob) p`,
  q and p its probabilities by the generator and in real texts.

  Args:
    log_probs: float32 `[B, S, V]`, the generator's.
    input_ids: int32 `[B, S]`, with replaced words.
    mask_prob: share of words that are replaced.

  Returns:
    float32 `[B, S]`; no gradient goes through it.
  """
  of_words = tf.gather(log_probs, input_ids, batch_dims=2)
  return tf.stop_gradient(of_words) + math.log(mask_prob / (1 - mask_prob))
