"""Masks drawn in the input pipeline, different in each epoch.

`create_pretraining_data.py` draws the masks of a sequence once for each of its `--dupe_factor`
copies, so a long training repeats the same masks (arXiv:1907.11692, section 4.1). Here the records
contain unmasked sequences, and a batch is masked when it is read:

  masking = Masking.from_vocabulary(load_vocab("vocab.txt"), max_predictions_per_seq=20)
  features = draw_masks(features, numbers=[0, 1, 2], seed=12345, masking=masking)

The masks of an example are a hash of the seed and of its number in the training stream; no
generator has a state. So a resumed run draws the same masks as an uninterrupted one, and neither
the rest of the batch nor padding matters.

Three families differ from BERT's rules; `Masking` says by which a batch is masked:

- RoBERTa: random words are never special tokens (`never_drawn`): a <pad> would shift the positions
  behind it.
- ELECTRA (google-research/electra, `pretrain/pretrain_helpers.py`): a position may be drawn several
  times, and then counts as often in the loss of the generator; 85% become [MASK], all others keep
  their word.
- DistilBERT: rare tokens are masked more often. A share of all tokens of a batch is drawn without
  replacement, each with a probability proportional to its count to the power -0.7
  (`token_weights`), so a sequence of rare words has more masks, and the rest of the batch matters.

The originals draw from generators of TensorFlow and PyTorch, so no run of them can be repeated.

Letters in shapes: B = batch size, S = sequence length, P = predictions per sequence, V = vocabulary
size.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import tensorflow as tf

from bert.io import record_files, vocabulary_kind
from bert.pretraining import random_streams

# The random numbers of a position: one for the random order, the others for its replacement.
_ORDER, _MASK_OR_NOT, _KEEP_OR_NOT, _RANDOM_WORD = range(4)

_ELECTRA_MASK_SHARE = 0.85
_SMOOTHING = 0.7  # DistilBERT's
_NO_LABEL = -1
_RECORDS_AT_A_TIME = 4096


@dataclasses.dataclass(frozen=True)
class Masking:
  """How to mask; the numbers are those of `create_pretraining_data.py`."""

  # Random words are drawn from the whole vocabulary, special tokens included, each with the same
  # probability.
  vocab_size: int
  mask_id: int  # of [MASK]
  # Of [CLS] and [SEP], which are never chosen but count in the fraction.
  special_ids: tuple[int, ...]
  max_predictions_per_seq: int  # P, the maximum number of chosen tokens
  masked_lm_prob: float = 0.15  # the fraction of tokens to choose; at least one token is chosen
  # Choose words with all their pieces; needs `word_starts`. A word with more pieces than are still
  # to be chosen is skipped. Each chosen piece is replaced independently.
  whole_words: bool = False
  never_drawn: tuple[int, ...] = ()  # ascending ids that are no random words
  electra: bool = False  # ELECTRA's rules
  # float64 `[V]`, how likely each token is to be chosen: DistilBERT's rules. See `token_weights`.
  token_weights: np.ndarray | None = dataclasses.field(default=None, compare=False, repr=False)

  @classmethod
  def from_vocabulary(
    cls,
    vocab: Mapping[str, int],
    *,
    draws_special: bool = True,
    **options,
  ) -> "Masking":
    """Looks up the special tokens, which are those of the vocabulary's kind.

    Args:
      vocab: token -> id.
      draws_special: whether random words may be special tokens, as in BERT.
      **options: the other attributes.

    Raises:
      ValueError: a special token is missing.

    Example:
      >>> vocab = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3, "a": 4}
      >>> masking = Masking.from_vocabulary(vocab, max_predictions_per_seq=20)
      >>> masking.vocab_size, masking.mask_id, masking.special_ids
      (5, 3, (1, 2))
      >>> vocab = {"<s>": 0, "<pad>": 1, "</s>": 2, "a": 3, "<mask>": 4}
      >>> Masking.from_vocabulary(vocab, draws_special=False, max_predictions_per_seq=9).never_drawn
      (0, 1, 2, 4)
    """
    cls_token, sep_token, mask_token = vocabulary_kind.ends_and_mask(vocab)
    needed = (mask_token, cls_token, sep_token)
    if missing := [token for token in needed if token not in vocab]:
      raise ValueError(f"The vocabulary lacks {', '.join(missing)}, which masking requires.")
    if not draws_special:
      options["never_drawn"] = tuple(sorted(set(vocabulary_kind.special_ids(vocab))))
    special_ids = (vocab[cls_token], vocab[sep_token])
    return cls(vocabulary_kind.size(vocab), vocab[mask_token], special_ids, **options)

  @property
  def reads_word_starts(self) -> bool:
    """Whether the records must say where words begin."""
    return self.whole_words and not self.electra and self.token_weights is None


def draw_masks(
  features: Mapping[str, tf.Tensor], numbers: tf.Tensor, seed, masking: Masking
) -> dict[str, tf.Tensor]:
  """Masks a batch of unmasked sequences.

  Args:
    features: `input_ids` and `input_mask`, int `[B, S]`; for whole words also `word_starts`, int
      `[B, S]`, 1 where a word begins. Others are passed on.
    numbers: int64 `[B]`, the number of each example in the training stream.
    seed: int or int64 `[]`.
    masking: how to mask.

  Returns:
    The features without `word_starts`, `input_ids` with masks, and in addition
    `masked_lm_positions` (ascending, then 0) and `masked_lm_ids` (the original ids, then 0), int32
    `[B, P]`, and `masked_lm_weights` (1, then 0), float32 `[B, P]`. By ELECTRA's rules also
    `sampling_seed`, int64 `[B, 2]`, for the words of the generator. By DistilBERT's, instead of
    these, `labels`, int32 `[B, S]`: the original tokens where one was chosen, -1 elsewhere.
  """
  if masking.electra:
    return _draw_positions(features, numbers, seed, masking)
  ids, is_token = features["input_ids"], features["input_mask"] > 0
  is_special = tf.reduce_any([tf.equal(ids, special) for special in masking.special_ids], axis=0)
  bits = random_bits(seed, numbers, tf.shape(ids)[1])  # [4, B, S]
  if masking.token_weights is not None:
    chosen = _choose_rare_tokens(ids, is_token, bits[_ORDER], masking)
  elif masking.whole_words:
    count = _number_to_predict(is_token, masking)
    chosen = _choose_words(is_token & ~is_special, features["word_starts"], bits[_ORDER], count)
  else:
    count = _number_to_predict(is_token, masking)
    chosen = _choose_tokens(is_token & ~is_special, bits[_ORDER], count)
  masked = {name: value for name, value in features.items() if name != "word_starts"}
  masked["input_ids"] = tf.where(chosen, _replacements(ids, bits, masking), ids)
  if masking.token_weights is not None:
    return {**masked, "labels": tf.where(chosen, ids, _NO_LABEL)}
  return {**masked, **_labels_of(ids, chosen, masking.max_predictions_per_seq)}


def _number_to_predict(is_token, masking: Masking) -> tf.Tensor:
  """Computes int32 `[B]`; in float64 and with ties to even, as Python's `round` in the original."""
  length = tf.reduce_sum(tf.cast(is_token, tf.float64), axis=1)
  share = tf.cast(tf.round(length * masking.masked_lm_prob), tf.int32)
  return tf.minimum(masking.max_predictions_per_seq, tf.maximum(1, share))


def _labels_of(ids, chosen, max_predictions_per_seq: int) -> dict[str, tf.Tensor]:
  """Returns the three features of the tokens chosen by a bool `[B, S]`."""
  length = tf.shape(ids)[1]
  # Chosen positions in ascending order, at most P of them, then those not chosen.
  positions = tf.sort(tf.where(chosen, tf.range(length), length), axis=1)
  missing = tf.maximum(max_predictions_per_seq - length, 0)
  positions = tf.pad(positions, [[0, 0], [0, missing]], constant_values=length)
  positions = positions[:, :max_predictions_per_seq]  # [B, P]
  is_chosen = positions < length
  positions = tf.where(is_chosen, positions, 0)
  return {
    "masked_lm_positions": positions,
    "masked_lm_ids": tf.where(is_chosen, tf.gather(ids, positions, batch_dims=1), 0),
    "masked_lm_weights": tf.cast(is_chosen, tf.float32),
  }


def _replacements(ids: tf.Tensor, bits: tf.Tensor, masking: Masking) -> tf.Tensor:
  """Replaces tokens, int `[B, S]`, as if chosen: 80% [MASK], 10% a random word, 10% themselves.

  `bits` is uint64 `[4, B, S]`, of `random_bits`.
  """
  words = masking.vocab_size - len(masking.never_drawn)
  random_word = tf.cast(to_unit_interval(bits[_RANDOM_WORD]) * words, ids.dtype)
  for passed_over in masking.never_drawn:
    random_word += tf.cast(random_word >= passed_over, ids.dtype)
  other = tf.where(to_unit_interval(bits[_KEEP_OR_NOT]) < 0.5, ids, random_word)
  return tf.where(to_unit_interval(bits[_MASK_OR_NOT]) < 0.8, masking.mask_id, other)


# ---------------------------------------------------------------------------------------------
# Choosing the first candidates in random order.


def _choose_tokens(is_candidate, order_bits, count) -> tf.Tensor:
  """Computes bool `[B, S]`: the first `count` `[B]` of the candidates `[B, S]` in random order."""
  ranks = _inverse(_random_order(is_candidate, order_bits))
  return is_candidate & (ranks < count[:, None])


def _random_order(is_candidate, order_bits) -> tf.Tensor:
  """Computes int32 `[B, S]`: positions, candidates first and by their bits."""
  # A right shift clears the sign bit, so no candidate reaches the largest int64.
  keys = tf.cast(tf.bitwise.right_shift(order_bits, _unsigned(2)), tf.int64)
  return tf.argsort(tf.where(is_candidate, keys, tf.int64.max), axis=1, stable=True)


def _inverse(permutations) -> tf.Tensor:
  """Computes int32 `[B, S]`: the rank of each position in its permutation."""
  return tf.argsort(permutations, axis=1)


def _choose_words(is_candidate, word_starts, order_bits, count) -> tf.Tensor:
  """bool `[B, S]`: all pieces of words in random order, each word if it does not exceed `count`.

  Pieces before the first start are a word too: the rest of one whose beginning was cut off. As in
  the original, [SEP] does not end a word.
  """
  # Word 0 has the pieces before the first start; -1 means no word.
  words = tf.cumsum(tf.cast(is_candidate & (word_starts > 0), tf.int32), axis=1)
  words = tf.where(is_candidate, words, -1)  # [B, S]
  pieces, firsts = _pieces_and_firsts(words)  # [B, S + 1] each, by word
  is_first = _at(firsts, words) == tf.range(tf.shape(words)[1])
  order = _random_order(is_candidate & is_first, order_bits)
  order_words = tf.gather(words, order, batch_dims=1)  # undefined after the last word
  lengths = _at(pieces, order_words)
  is_word = tf.gather(is_candidate & is_first, order, batch_dims=1)
  taken = _take_in_order(tf.where(is_word, lengths, 0), count)
  taken_at_first = tf.gather(taken, _inverse(order), batch_dims=1)  # [B, S]
  return is_candidate & tf.gather(taken_at_first, _at(firsts, words), batch_dims=1)


def _pieces_and_firsts(words):
  """For each word, the number of pieces and the position of the first; int32 `[B, S + 1]`."""
  batch, length = tf.unstack(tf.shape(words))
  rows = tf.range(batch)[:, None] * (length + 1)
  segments = tf.reshape(tf.where(words < 0, -1, rows + words), [-1])  # -1 is ignored
  positions = tf.reshape(tf.broadcast_to(tf.range(length), [batch, length]), [-1])
  total = batch * (length + 1)
  pieces = tf.math.unsorted_segment_sum(tf.ones_like(positions), segments, total)
  firsts = tf.math.unsorted_segment_min(positions, segments, total)
  return tf.reshape(pieces, [batch, -1]), tf.reshape(firsts, [batch, -1])


def _at(values_by_word, words) -> tf.Tensor:
  """Values of words, by position: int32 `[B, S + 1]` and `[B, S]` to `[B, S]`; 0 for no word."""
  found = tf.gather(values_by_word, tf.maximum(words, 0), batch_dims=1)
  return tf.where(words < 0, 0, found)


def _take_in_order(lengths, count) -> tf.Tensor:
  """bool `[B, S]`: which of the words to take, in this order, so that no sum exceeds `count` `[B]`.

  Whether a word is taken depends on all words before it, hence a loop. It ends when every example
  is complete, usually long before the last word; the length 0 means no word.
  """
  last = tf.reduce_max(tf.reduce_sum(tf.cast(lengths > 0, tf.int32), axis=1))
  ranks = tf.range(tf.shape(lengths)[1])

  def body(rank, total, taken):
    length = lengths[:, rank]
    fits = (length > 0) & (total + length <= count)
    return rank + 1, total + tf.where(fits, length, 0), taken | (fits[:, None] & (ranks == rank))

  nothing = tf.zeros_like(count), tf.zeros_like(lengths, tf.bool)
  _, _, taken = tf.while_loop(
    lambda rank, total, taken: (rank < last) & tf.reduce_any(total < count),
    body,
    [tf.constant(0), *nothing],
  )
  return taken


# ---------------------------------------------------------------------------------------------
# ELECTRA's rules.


def _draw_positions(features, numbers, seed, masking: Masking) -> dict[str, tf.Tensor]:
  bits = random_bits(seed, numbers, masking.max_predictions_per_seq + 1)
  uniform = to_unit_interval(bits)  # [4, B, P + 1]
  candidates = _electra_candidates(features["input_ids"], features["input_mask"], masking)
  # Position k of c candidates for a number in [k / c, (k + 1) / c).
  ranks = tf.cumsum(tf.cast(candidates, tf.int32), axis=1)  # [B, S]
  counts = ranks[:, -1:]
  drawn = tf.cast(uniform[0, :, 1:] * tf.cast(counts, tf.float64), tf.int32) + 1  # [B, P]
  positions = tf.searchsorted(ranks, drawn)
  # A sequence without any candidate: [CLS] is drawn, and `mask_positions` gives it no weight.
  positions = tf.where(counts > 0, positions, 0)
  seeds = tf.bitcast(tf.transpose(bits[2:, :, 0]), tf.int64)  # [B, 2]
  masked = mask_positions(features, positions, tf.cast(uniform[1, :, 1:], tf.float32), masking)
  return {**masked, "sampling_seed": seeds}


def _electra_candidates(input_ids: tf.Tensor, input_mask: tf.Tensor, masking: Masking) -> tf.Tensor:
  """Computes bool `[B, S]`: tokens that may be masked, which [CLS], [SEP] and [MASK] may not."""
  special = (*masking.special_ids, masking.mask_id)
  return (input_mask > 0) & ~tf.reduce_any([tf.equal(input_ids, each) for each in special], axis=0)


def mask_positions(
  features: Mapping[str, tf.Tensor],
  drawn_positions: tf.Tensor,
  uniform: tf.Tensor,
  masking: Masking,
) -> dict[str, tf.Tensor]:
  """Masks sequences at given positions, by ELECTRA's rules.

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
  candidates = _electra_candidates(ids, features["input_mask"], masking)
  is_used &= tf.reduce_any(candidates, axis=1)[:, tf.newaxis]
  positions = tf.where(is_used, drawn_positions, 0)
  is_masked = tf.where(uniform < _ELECTRA_MASK_SHARE, positions, 0)  # [CLS], at 0, is never masked
  at = tf.reduce_any(tf.range(tf.shape(ids)[1]) == is_masked[:, :, tf.newaxis], axis=1)  # [B, S]
  at &= tf.range(tf.shape(ids)[1]) > 0
  return {
    **features,
    "input_ids": tf.where(at, tf.cast(masking.mask_id, ids.dtype), ids),
    "masked_lm_positions": positions,
    "masked_lm_ids": tf.where(is_used, tf.gather(ids, positions, batch_dims=1), 0),
    "masked_lm_weights": tf.cast(is_used, tf.float32),
  }


# ---------------------------------------------------------------------------------------------
# DistilBERT's rules.


def token_weights(
  counts: Sequence[int] | np.ndarray, special_ids: Iterable[int], smoothing: float = _SMOOTHING
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


def _number_in_batch(is_token, masking: Masking) -> tf.Tensor:
  """Computes int32 `[]`: tokens of the batch to choose; rounded up, as in the original."""
  total = tf.math.count_nonzero(is_token, dtype=tf.int64)
  return tf.cast(tf.math.ceil(tf.cast(total, tf.float64) * masking.masked_lm_prob), tf.int32)


def _choose_rare_tokens(ids, is_token, order_bits, masking: Masking) -> tf.Tensor:
  """Computes bool `[B, S]`: tokens in proportion to their weights, none twice.

  The largest u^(1 / weight) of uniform u make such a choice (Efraimidis and Spirakis, 2006).
  """
  weights = tf.where(is_token, tf.gather(tf.constant(masking.token_weights), ids), 0.0)
  count = _number_in_batch(is_token, masking)
  uniform = to_unit_interval(order_bits) + 2.0**-54
  keys = tf.math.log(uniform) / tf.maximum(weights, 1e-300)
  keys = tf.reshape(tf.where(weights > 0, keys, -np.inf), [-1])
  count = tf.minimum(count, tf.math.count_nonzero(weights, dtype=tf.int32))
  order = tf.argsort(keys, direction="DESCENDING", stable=True)
  is_chosen = tf.scatter_nd(order[:count, None], tf.ones([count], tf.int32), tf.shape(keys))
  return tf.reshape(is_chosen > 0, tf.shape(weights))


# ---------------------------------------------------------------------------------------------
# Random numbers without state: SplitMix64's hash of seed, example, position and purpose.


def random_bits(seed, numbers: tf.Tensor, length) -> tf.Tensor:
  """Draws uint64 `[4, B, length]`: four independent numbers for each position of each example.

  `numbers` is int64 `[B]`, of the examples. A greater length adds bits and changes none.
  """
  example = _mix(_mix(_as_bits(seed)) + _as_bits(numbers))  # [B]
  # The numbers of an example are hashed in steps of the golden ratio, as in SplitMix64.
  places = tf.cast(4 * tf.range(length)[None, :] + tf.range(4)[:, None], tf.uint64)  # [4, length]
  return _mix(example[None, :, None] + places[:, None, :] * _unsigned(random_streams.STEP))


def to_unit_interval(bits: tf.Tensor) -> tf.Tensor:
  """Converts uint64 to float64 in [0, 1): the upper 53 bits, which float64 represents exactly."""
  upper = tf.bitwise.right_shift(bits, _unsigned(11))
  return tf.cast(tf.cast(upper, tf.int64), tf.float64) * 2.0**-53


def _mix(value) -> tf.Tensor:
  """Applies the output function of SplitMix64, elementwise; products wrap around."""
  value += _unsigned(random_streams.STEP)
  for shift, multiplier in zip((30, 27), random_streams.FACTORS, strict=True):
    value = tf.bitwise.bitwise_xor(value, tf.bitwise.right_shift(value, _unsigned(shift)))
    value *= _unsigned(multiplier)
  return tf.bitwise.bitwise_xor(value, tf.bitwise.right_shift(value, _unsigned(31)))


def _as_bits(value) -> tf.Tensor:
  return tf.bitcast(tf.cast(value, tf.int64), tf.uint64)


def _unsigned(value: int) -> tf.Tensor:
  return tf.constant(value, tf.uint64)
