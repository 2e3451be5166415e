"""Chooses the tokens to predict in many sequences at once, and replaces them.

Arrays in, arrays out; S is the length of the sequences, P the maximum number of predictions in one.
The masks of a sequence depend only on its key, not on the other sequences.
"""

from typing import NamedTuple

import numpy as np

from bert.pretraining.random_streams import draw, draw_uniform


class MaskSettings(NamedTuple):
  """How to mask."""

  masked_lm_prob: float  # fraction of tokens to predict, special tokens counted; at least one token
  max_predictions_per_seq: int  # P
  # Units of 1 to N words are masked as a whole; the probability of n words is proportional to 1/n.
  ngram_max: int
  mask_id: int  # of [MASK]
  random_ids: np.ndarray  # int32 [V], the ids from which random tokens are taken
  favor_shorter_ngram: bool = True  # False gives the probabilities of short units to long ones


class Masks(NamedTuple):
  """Sequences with masks."""

  input_ids: np.ndarray  # int32 [n, S]
  positions: np.ndarray  # int32 [n, P], ascending, then zeros
  labels: np.ndarray  # int32 [n, P], the original tokens
  weights: np.ndarray  # float32 [n, P], 1 for a prediction, 0 for padding


def draw_masks(
  input_ids: np.ndarray,
  lengths: np.ndarray,
  candidates: np.ndarray,
  unit_starts: np.ndarray,
  keys: np.ndarray,
  settings: MaskSettings,
) -> Masks:
  """Chooses tokens in units, in random order, until the fraction is reached.

  A unit that would exceed it, or overlaps a chosen one, is skipped. 80% of the units become [MASK],
  10% random tokens, 10% stay.

  Args:
    input_ids: int32 [n, S].
    lengths: int [n], numbers of tokens without padding.
    candidates: bool [n, S], tokens that may be chosen.
    unit_starts: bool [n, S], candidates at which a word begins; all candidates if single tokens are
      chosen. A word ends before the next one and before every token that is no candidate.
    keys: uint64 [n], of the random streams.
    settings: how to mask.
  """
  num_to_predict = np.minimum(
    settings.max_predictions_per_seq,
    np.maximum(1, np.rint(lengths * settings.masked_lm_prob).astype(np.int64)),
  )
  unit_of = _choose(candidates, unit_starts, num_to_predict, keys, settings)
  is_masked = unit_of >= 0
  masked = input_ids.copy()
  rows, columns = np.nonzero(is_masked)
  masked[rows, columns] = _replaced(
    input_ids[is_masked], keys[rows], unit_of[is_masked], columns, input_ids.shape[1], settings
  )
  counts = np.bincount(rows, minlength=len(input_ids))
  ranks = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
  positions = np.zeros((len(input_ids), settings.max_predictions_per_seq), np.int32)
  labels, weights = np.zeros_like(positions), np.zeros(positions.shape, np.float32)
  positions[rows, ranks] = columns
  labels[rows, ranks] = input_ids[rows, columns]
  weights[rows, ranks] = 1.0
  return Masks(masked, positions, labels, weights)


def _choose(candidates, unit_starts, num_to_predict, keys, settings: MaskSettings) -> np.ndarray:
  """Computes int [n, S]: the start of the unit with which a token was chosen; -1 if it was not.

  The first units of all sequences are processed together, then the second ones, and so on.
  """
  n, length = candidates.shape
  columns = np.arange(length)
  scores = draw(keys[:, None], columns)
  scores[~unit_starts] = np.iinfo(np.uint64).max
  order = np.argsort(scores, axis=1)
  num_units = unit_starts.sum(axis=1)
  word_ends = _word_ends(candidates, unit_starts)

  unit_of = np.full((n, length), -1)
  left = num_to_predict.copy()
  for rank in range(num_units.max(initial=0)):
    rows = np.nonzero((left > 0) & (rank < num_units))[0]
    if not rows.size:
      break
    starts = order[rows, rank]
    ends = word_ends[rows, starts]
    if settings.ngram_max > 1:
      uniform = draw_uniform(keys[rows], length + starts)
      sizes = _ngram_sizes(uniform, settings.ngram_max, settings.favor_shorter_ngram)
      ends = _ngram_ends(ends, sizes, rows, candidates, word_ends)
    fits = ends - starts <= left[rows]
    if settings.ngram_max > 1:
      fits &= ~_any_chosen(unit_of, rows, starts, ends)
    rows, starts, ends = rows[fits], starts[fits], ends[fits]
    left[rows] -= ends - starts
    for offset in range((ends - starts).max(initial=0)):
      inside = starts + offset < ends
      unit_of[rows[inside], starts[inside] + offset] = starts[inside]
  return unit_of


def _word_ends(candidates: np.ndarray, unit_starts: np.ndarray) -> np.ndarray:
  """For each token, the end of its word.

  Example:
    >>> candidates = np.array([[0, 1, 1, 1, 0]], bool)
    >>> _word_ends(candidates, np.array([[0, 1, 0, 1, 0]], bool)).tolist()
    [[1, 3, 3, 4, 5]]
  """
  length = candidates.shape[1]
  bounds = np.where(unit_starts | ~candidates, np.arange(length), length)
  following = np.concatenate([bounds[:, 1:], np.full((len(bounds), 1), length)], axis=1)
  return np.minimum.accumulate(following[:, ::-1], axis=1)[:, ::-1]


def _ngram_sizes(
  uniform: np.ndarray, ngram_max: int, favor_shorter_ngram: bool = True
) -> np.ndarray:
  """1 to `ngram_max`, n with a probability proportional to 1/n, from numbers in [0, 1).

  Example:
    >>> _ngram_sizes(np.array([0.0, 0.54, 0.55, 0.81, 0.82, 0.99]), ngram_max=3).tolist()
    [1, 1, 2, 2, 3, 3]
  """
  shares = 1 / np.arange(1, ngram_max + 1)
  shares = np.cumsum(shares if favor_shorter_ngram else shares[::-1])
  return 1 + np.searchsorted(shares[:-1] / shares[-1], uniform, side="right")


def _ngram_ends(ends, sizes, rows, candidates, word_ends) -> np.ndarray:
  """Moves ends by `sizes` - 1 words, at most to the segment's end."""
  length = candidates.shape[1]
  for size in range(2, sizes.max(initial=1) + 1):
    inside = np.minimum(ends, length - 1)
    goes_on = (sizes >= size) & (ends < length) & candidates[rows, inside]
    ends = np.where(goes_on, word_ends[rows, inside], ends)
  return ends


def _any_chosen(unit_of, rows, starts, ends) -> np.ndarray:
  found = np.zeros(len(rows), bool)
  for offset in range((ends - starts).max(initial=0)):
    columns = np.minimum(starts + offset, ends - 1)
    found |= unit_of[rows, columns] >= 0
  return found


def _replaced(labels, keys, unit_of, columns, length: int, settings: MaskSettings) -> np.ndarray:
  """Replacements of chosen tokens: one decision for each unit, a random token for each position."""
  decision = draw_uniform(keys, 2 * length + unit_of)
  random_ids = settings.random_ids
  choice = (draw_uniform(keys, 3 * length + columns) * len(random_ids)).astype(np.int64)
  return np.select(
    [decision < 0.8, decision < 0.9], [settings.mask_id, labels], default=random_ids[choice]
  )
