"""DistilBERT's masks, drawn while records are read: rare tokens are masked more often.

  counts = count_tokens(files, vocab_size=30522)
  weights = token_weights(counts, special_ids)
  masking = dataclasses.replace(masking, rules=draw_masks, token_weights=weights)
  features = draw_masks(features, numbers=[0, 1, 2], seed=12345, masking=masking)

A share of all tokens of a batch is drawn without replacement, each with a probability proportional
to its count to the power -0.7, so a sequence of rare words has more masks than one of frequent
words. The original draws from PyTorch's generator; here the number of a token is a hash of the seed
and of its example's number, as in `dynamic_masking.py`, and the same batch gets the same masks.

Letters in shapes: B = batch size, S = sequence length, V = vocabulary size.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from bert.io import record_files
from bert.pretraining import dynamic_masking
from bert.pretraining.dynamic_masking import Masking

SMOOTHING = 0.7
_NO_LABEL = -1
_RECORDS_AT_A_TIME = 4096


def token_weights(
  counts: Sequence[int] | np.ndarray, special_ids: Iterable[int], smoothing: float = SMOOTHING
) -> np.ndarray:
  """Tells how much more often than others each token is masked.

  Args:
    counts: int `[V]`, of each token in the corpus.
    special_ids: tokens that are never masked.
    smoothing: the power; 0 masks all tokens alike.

  Returns:
    float64 `[V]`; a token that never occurs has the weight of one that occurs once.

  Example:
    >>> token_weights([9, 4, 1, 0], special_ids=[0], smoothing=0.5).tolist()
    [0.0, 0.5, 1.0, 1.0]
  """
  weights = np.maximum(counts, 1).astype(np.float64) ** -smoothing
  weights[list(special_ids)] = 0.0
  return weights


def count_tokens(files: Sequence[str], vocab_size: int) -> np.ndarray:
  """Counts the tokens of all records, padding left out: int64 `[V]`.

  Raises:
    tf.errors.OpError: a file is damaged.
    ValueError: a record has another id.
  """
  lengths = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
  features = {"input_ids": lengths, "input_mask": lengths}
  counts = np.zeros([vocab_size], np.int64)
  for path in files:
    records = tf.data.TFRecordDataset(path, record_files.compression_of(path))
    for batch in records.batch(_RECORDS_AT_A_TIME):
      parsed = tf.io.parse_example(batch, features)
      ids = tf.boolean_mask(parsed["input_ids"], parsed["input_mask"] > 0).numpy()
      found = np.bincount(ids, minlength=vocab_size)
      if len(found) > vocab_size:
        raise ValueError(f"{path} has the id {ids.max()}; the vocabulary ends at {vocab_size - 1}.")
      counts += found
  return counts


def draw_masks(
  features: Mapping[str, tf.Tensor], numbers: tf.Tensor, seed, masking: Masking
) -> dict[str, tf.Tensor]:
  """Masks a batch of unmasked sequences.

  The arguments are those of `dynamic_masking.draw_masks`; `masking` has `token_weights`.

  Returns:
    The features, `input_ids` with masks, and in addition `labels`, int32 `[B, S]`: the original
    tokens where one was chosen, -1 elsewhere.
  """
  ids, is_token = features["input_ids"], features["input_mask"] > 0
  bits = dynamic_masking.random_bits(seed, numbers, tf.shape(ids)[1])  # [4, B, S]
  weights = tf.where(is_token, tf.gather(tf.constant(masking.token_weights), ids), 0.0)
  chosen = _chosen(weights, bits[dynamic_masking.ORDER], _count(is_token, masking))
  replaced = tf.where(chosen, dynamic_masking.replacements(ids, bits, masking), ids)
  return {**features, "input_ids": replaced, "labels": tf.where(chosen, ids, _NO_LABEL)}


def _count(is_token, masking: Masking) -> tf.Tensor:
  """Computes int32 `[]`: tokens of the batch to choose; rounded up, as in the original."""
  total = tf.math.count_nonzero(is_token, dtype=tf.int64)
  return tf.cast(tf.math.ceil(tf.cast(total, tf.float64) * masking.masked_lm_prob), tf.int32)


def _chosen(weights, order_bits, count) -> tf.Tensor:
  """Computes bool `[B, S]`: `count` tokens in proportion to float64 weights `[B, S]`, none twice.

  The largest u^(1 / weight) of uniform u make such a choice (Efraimidis and Spirakis, 2006).
  """
  uniform = dynamic_masking.to_unit_interval(order_bits) + 2.0**-54
  keys = tf.math.log(uniform) / tf.maximum(weights, 1e-300)
  keys = tf.reshape(tf.where(weights > 0, keys, -np.inf), [-1])
  count = tf.minimum(count, tf.math.count_nonzero(weights, dtype=tf.int32))
  order = tf.argsort(keys, direction="DESCENDING", stable=True)
  is_chosen = tf.scatter_nd(order[:count, None], tf.ones([count], tf.int32), tf.shape(keys))
  return tf.reshape(is_chosen > 0, tf.shape(weights))
