"""ELECTRA's masks, drawn while its records are read: positions with replacement, 85% [MASK].

  masking = Masking.from_vocabulary(load_vocab("vocab.txt"), max_predictions_per_seq=19)
  features = draw_masks(features, numbers=[0, 1, 2], seed=12345, masking=masking)

The original draws from TensorFlow's generators, so that no run of it can be repeated. Here the
masks of an example are a hash of the seed and of its number, as in `dynamic_masking.py`.

Two of its rules differ from BERT's and are kept (google-research/electra,
`pretrain/pretrain_helpers.py`): a position may be drawn several times, and then counts as often in
the loss of the generator; and all positions that are not replaced by [MASK] keep their word.

Letters in shapes: B = batch size, S = sequence length, P = predictions per sequence.
"""

from collections.abc import Mapping

import tensorflow as tf

from bert.pretraining import dynamic_masking
from bert.pretraining.dynamic_masking import Masking

MASK_SHARE = 0.85


def draw_masks(
  features: Mapping[str, tf.Tensor], numbers: tf.Tensor, seed, masking: Masking
) -> dict[str, tf.Tensor]:
  """Masks a batch of unmasked sequences.

  The arguments are those of `dynamic_masking.draw_masks`; whole words are not supported.

  Returns:
    What `mask` returns, and `sampling_seed`, int64 `[B, 2]`, for the words of the generator.
  """
  bits = dynamic_masking.random_bits(seed, numbers, masking.max_predictions_per_seq + 1)
  uniform = dynamic_masking.to_unit_interval(bits)  # [4, B, P + 1]
  candidates = candidates_of(features["input_ids"], features["input_mask"], masking)
  # Position k of c candidates for a number in [k / c, (k + 1) / c).
  ranks = tf.cumsum(tf.cast(candidates, tf.int32), axis=1)  # [B, S]
  counts = ranks[:, -1:]
  drawn = tf.cast(uniform[0, :, 1:] * tf.cast(counts, tf.float64), tf.int32) + 1  # [B, P]
  positions = tf.searchsorted(ranks, drawn)
  # A sequence without any candidate: [CLS] is drawn, and `mask` gives it no weight.
  positions = tf.where(counts > 0, positions, 0)
  seeds = tf.bitcast(tf.transpose(bits[2:, :, 0]), tf.int64)  # [B, 2]
  masked = mask(features, positions, tf.cast(uniform[1, :, 1:], tf.float32), masking)
  return {**masked, "sampling_seed": seeds}


def candidates_of(input_ids: tf.Tensor, input_mask: tf.Tensor, masking: Masking) -> tf.Tensor:
  """Computes bool `[B, S]`: tokens that may be masked, which [CLS], [SEP] and [MASK] may not."""
  special = (*masking.special_ids, masking.mask_id)
  return (input_mask > 0) & ~tf.reduce_any([tf.equal(input_ids, each) for each in special], axis=0)


def mask(
  features: Mapping[str, tf.Tensor],
  drawn_positions: tf.Tensor,
  uniform: tf.Tensor,
  masking: Masking,
) -> dict[str, tf.Tensor]:
  """Masks sequences at given positions.

  Args:
    features: `input_ids` and `input_mask`, int32 `[B, S]`. Others are passed on.
    drawn_positions: int32 `[B, P]`, of which each example uses the first ones.
    uniform: float32 `[B, P]` in [0, 1); a word becomes [MASK] below 0.85.
    masking: how to mask.

  Returns:
    The features with masks in `input_ids`, and in addition `masked_lm_positions` (0 where unused)
    and `masked_lm_ids` (the words there, 0 where unused), int32 `[B, P]`, and `masked_lm_weights`
    (1, then 0), float32 `[B, P]`.
  """
  ids = features["input_ids"]
  limit = masking.max_predictions_per_seq
  # In float32 and with ties to even, as the original; [CLS] and [SEP] count.
  length = tf.cast(tf.reduce_sum(features["input_mask"], axis=1), tf.float32)
  count = tf.cast(tf.round(length * masking.masked_lm_prob), tf.int32)
  is_used = tf.sequence_mask(tf.maximum(1, tf.minimum(limit, count)), limit)  # [B, P]
  candidates = candidates_of(ids, features["input_mask"], masking)
  is_used &= tf.reduce_any(candidates, axis=1)[:, tf.newaxis]
  positions = tf.where(is_used, drawn_positions, 0)
  is_masked = tf.where(uniform < MASK_SHARE, positions, 0)  # [CLS], at 0, is never masked
  at = tf.reduce_any(tf.range(tf.shape(ids)[1]) == is_masked[:, :, tf.newaxis], axis=1)  # [B, S]
  at &= tf.range(tf.shape(ids)[1]) > 0
  return {
    **features,
    "input_ids": tf.where(at, tf.cast(masking.mask_id, ids.dtype), ids),
    "masked_lm_positions": positions,
    "masked_lm_ids": tf.where(is_used, tf.gather(ids, positions, batch_dims=1), 0),
    "masked_lm_weights": tf.cast(is_used, tf.float32),
  }
