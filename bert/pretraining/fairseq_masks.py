"""RoBERTa's masks as fairseq draws them: every token counts, 15% are rounded up or down by chance.

  masking = Masking.from_vocabulary(vocab, rules=draw_masks, max_predictions_per_seq=77)
  features = draw_masks(features, numbers=[0, 1, 2], seed=12345, masking=masking)

The rules are those of `fairseq/data/mask_tokens_dataset.py`: `int(0.15 * n + u)` of a sequence's n
tokens, u in [0, 1); <s> and </s> are masked like words; a random word may be <mask>, but neither
<s>, <pad>, </s> nor <unk>. Whole words are drawn as words, 15% of them, and a word's pieces become
<mask>, random or stay together. A special token begins a word and, as in fairseq, a line's first
word belongs to the </s> or <s> before it, because no space stands before it. A short sequence may
have no mask at all.

fairseq draws from NumPy's generators; here the masks of an example are a hash of the seed and of
its number, as in `dynamic_masking.py`.

Letters in shapes: B = batch size, S = sequence length, P = predictions per sequence.
"""

import math
from collections.abc import Mapping

import numpy as np
import tensorflow as tf

from bert.io import vocabulary_kind
from bert.pretraining import dynamic_masking, piece_tables
from bert.pretraining.dynamic_masking import KEEP_OR_NOT, MASK_OR_NOT, ORDER, Masking


def room_needed(masked_lm_prob: float, max_seq_length: int, whole_words: bool) -> int:
  """Returns the largest number of tokens that may be masked in a sequence: the least P.

  Example:
    >>> room_needed(0.15, 128, False), room_needed(0.15, 512, False), room_needed(0.15, 128, True)
    (20, 77, 128)
  """
  return max_seq_length if whole_words else math.ceil(masked_lm_prob * max_seq_length)


def word_beginnings(vocab: Mapping[str, int]) -> np.ndarray:
  """Tells which tokens begin a word.

  Those with a space before them do, in a WordPiece vocabulary those without `##`, and special ones.

  Returns:
    bool `[V]`, for `Masking.word_beginnings`.

  Example:
    >>> word_beginnings({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "Ġa": 5}).tolist()
    [True, True, True, True, False, True]
  """
  begins_word = piece_tables.begins_word_of_word_pieces
  if vocabulary_kind.is_of_byte_pairs(vocab):
    begins_word = piece_tables.begins_word_of_byte_pairs
  beginnings = np.zeros([max(vocab.values()) + 1], bool)
  beginnings[[index for token, index in vocab.items() if begins_word(token)]] = True
  beginnings[vocabulary_kind.special_ids(vocab)] = True
  return beginnings


def draw_masks(
  features: Mapping[str, tf.Tensor], numbers: tf.Tensor, seed, masking: Masking
) -> dict[str, tf.Tensor]:
  """Masks a batch of unmasked sequences.

  Arguments and results are those of `dynamic_masking.draw_masks`; no feature says where words
  begin, `masking.word_beginnings` does.
  """
  ids, is_token = features["input_ids"], features["input_mask"] > 0
  length = tf.shape(ids)[1]
  bits = dynamic_masking.random_bits(seed, numbers, length + 1)  # [4, B, 1 + S]
  rounding, bits = dynamic_masking.to_unit_interval(bits[ORDER, :, 0]), bits[:, :, 1:]
  begins = tf.ones_like(is_token)
  if masking.word_beginnings is not None:
    # No word begins before the sequence does.
    begins = tf.gather(tf.constant(masking.word_beginnings), ids) | (tf.range(length) == 0)
  begins &= is_token
  units = tf.reduce_sum(tf.cast(begins, tf.float64), axis=1)  # [B]
  count = tf.cast(tf.floor(units * masking.masked_lm_prob + rounding), tf.int32)
  chosen = dynamic_masking.choose_tokens(begins, bits[ORDER], count)
  # What is decided for a word's first piece holds for all of its pieces.
  first = _last_true(begins)  # [B, S]
  chosen = is_token & tf.gather(chosen, first, batch_dims=1)
  decided = [
    tf.gather(bits[purpose], first, batch_dims=1) for purpose in (MASK_OR_NOT, KEEP_OR_NOT)
  ]
  bits = tf.stack([bits[ORDER], *decided, bits[dynamic_masking.RANDOM_WORD]])
  replaced = dynamic_masking.replacements(ids, bits, masking)
  labels = dynamic_masking.labels_of(ids, chosen, masking.max_predictions_per_seq)
  return {**features, "input_ids": tf.where(chosen, replaced, ids), **labels}


def _last_true(values: tf.Tensor) -> tf.Tensor:
  """Computes int32 `[B, S]`: where the last True of bool `[B, S]` is, up to each place; or 0."""
  positions = tf.range(tf.shape(values)[1])
  number = tf.cumsum(tf.cast(values, tf.int32), axis=1) - 1  # of the word, from 0
  starts = tf.sort(tf.where(values, positions, tf.int32.max), axis=1)
  return tf.gather(starts, tf.maximum(number, 0), batch_dims=1)
