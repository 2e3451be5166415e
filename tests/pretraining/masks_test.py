"""Masks of many sequences at once: shares, words, n-grams."""

import collections
import itertools

import numpy as np
import pytest

from bert.pretraining.masks import MaskSettings, draw_masks
from bert.pretraining.random_streams import stream_key

CLS, SEP, MASK = 1, 2, 3
RANDOM_IDS = np.arange(1000, 2000, dtype=np.int32)


def sequences(n, length, word_sizes, tokens=None):
  """[CLS] A [SEP] B [SEP], of words whose sizes are drawn, and padding; ids from 10 on."""
  rng = np.random.default_rng(4)
  lengths = rng.integers(length // 2, length + 1, n) if tokens is None else np.full(n, tokens)
  ids = np.zeros((n, length), np.int32)
  candidates, starts = np.zeros((n, length), bool), np.zeros((n, length), bool)
  for row, used in enumerate(lengths):
    ids[row, :used] = rng.integers(10, 900, used)
    separators = [used // 3, used - 1]
    ids[row, 0], ids[row, separators] = CLS, SEP
    candidates[row, 1 : used - 1] = True
    candidates[row, separators] = False
    begin = 1
    while begin < used:
      starts[row, begin] = candidates[row, begin]
      begin += rng.choice(word_sizes)
    starts[row, separators[0] + 1] = candidates[row, separators[0] + 1]
  return ids, lengths, candidates, starts


def keys_of(n, seed=0):
  return np.array([stream_key(seed, number) for number in range(n)], np.uint64)


def settings(prob=0.15, most=40, ngram_max=1):
  return MaskSettings(prob, most, ngram_max, MASK, RANDOM_IDS)


def words_of(candidates, starts):
  """Of one sequence, (start, end) of each word."""
  bounds = [*np.nonzero(starts | ~candidates)[0], len(starts)]
  return [(a, b) for a, b in itertools.pairwise(bounds) if candidates[a]]


def check_form(ids, lengths, candidates, masks):
  """What holds for masks of any kind."""
  n, most = masks.positions.shape
  counts = masks.weights.sum(axis=1).astype(int)
  assert (masks.weights == (np.arange(most) < counts[:, None])).all()
  changed = masks.input_ids != ids
  for row in range(n):
    chosen = masks.positions[row, : counts[row]]
    assert (np.diff(chosen) > 0).all()
    assert candidates[row, chosen].all()
    assert (masks.labels[row, : counts[row]] == ids[row, chosen]).all()
    changed[row, chosen] = False
    assert counts[row] <= max(1, round(lengths[row] * 0.15))
  assert not changed.any()
  for padding in (masks.positions, masks.labels):
    assert (padding[masks.weights == 0] == 0).all()


def shares(masks):
  """Of chosen tokens: masked, random, kept."""
  rows, ranks = np.nonzero(masks.weights)
  now = masks.input_ids[rows, masks.positions[rows, ranks]]
  is_random = now >= RANDOM_IDS[0]  # no label is: "random" is never taken for "kept"
  return (now == MASK).mean(), is_random.mean(), (now == masks.labels[rows, ranks]).mean()


def test_single_tokens():
  ids, lengths, candidates, _ = sequences(1000, 128, [1], tokens=128)
  masks = draw_masks(ids, lengths, candidates, candidates, keys_of(1000), settings())
  check_form(ids, lengths, candidates, masks)
  assert masks.weights.sum() / lengths.sum() == pytest.approx(0.15, abs=0.003)
  assert shares(masks) == pytest.approx((0.8, 0.1, 0.1), abs=0.01)
  # Every position and every random id has its turn.
  often = np.bincount(masks.positions[masks.weights > 0], minlength=128)[candidates[0]]
  assert abs(often - often.mean()).max() < 6 * often.mean() ** 0.5
  drawn = masks.input_ids[masks.input_ids >= 1000]
  assert abs(np.histogram(drawn, bins=10)[0] - len(drawn) / 10).max() < 6 * (len(drawn) / 10) ** 0.5


def test_a_sequence_does_not_depend_on_its_neighbours():
  ids, lengths, candidates, starts = sequences(50, 64, [1, 2, 3])
  keys = keys_of(50)
  together = draw_masks(ids, lengths, candidates, starts, keys, settings(ngram_max=3))
  for row in range(0, 50, 7):
    one = slice(row, row + 1)
    alone = draw_masks(
      ids[one], lengths[one], candidates[one], starts[one], keys[one], settings(ngram_max=3)
    )
    for found, expected in zip(alone, together, strict=True):
      assert (found[0] == expected[row]).all()


def test_whole_words_with_one_draw():
  ids, lengths, candidates, starts = sequences(1500, 128, [1, 1, 1, 2, 3, 5])
  masks = draw_masks(ids, lengths, candidates, starts, keys_of(1500), settings())
  check_form(ids, lengths, candidates, masks)
  kinds = collections.Counter()
  for row in range(1500):
    chosen = set(masks.positions[row][masks.weights[row] > 0].tolist())
    for start, end in words_of(candidates[row], starts[row]):
      assert len(chosen & set(range(start, end))) in (0, end - start)
      if start in chosen:
        now = masks.input_ids[row, start:end]
        is_kept, is_random = now == ids[row, start:end], now >= 1000
        kind = [(now == MASK).all(), is_random.all(), is_kept.all()]
        assert sum(kind) == 1  # all pieces alike
        kinds[kind.index(True)] += 1
  total = sum(kinds.values())
  assert [kinds[k] / total for k in range(3)] == pytest.approx([0.8, 0.1, 0.1], abs=0.012)
  assert masks.weights.sum() / lengths.sum() == pytest.approx(0.15, abs=0.003)


def test_ngrams_are_runs_of_words_within_a_segment():
  ids, lengths, candidates, starts = sequences(1500, 128, [1, 2])
  masks = draw_masks(ids, lengths, candidates, starts, keys_of(1500), settings(ngram_max=4))
  check_form(ids, lengths, candidates, masks)
  assert masks.weights.sum() / lengths.sum() == pytest.approx(0.15, abs=0.003)
  for row in range(1500):
    chosen = set(masks.positions[row][masks.weights[row] > 0].tolist())
    for start, end in words_of(candidates[row], starts[row]):
      assert len(chosen & set(range(start, end))) in (0, end - start)
  assert shares(masks) == pytest.approx((0.8, 0.1, 0.1), abs=0.015)


def test_a_word_that_is_too_long_is_passed_over():
  ids = np.array([[CLS, *range(10, 30), 40, SEP]], np.int32)
  candidates = (ids != CLS) & (ids != SEP)
  starts = (ids == 10) | (ids == 40)
  for seed in range(10):
    masks = draw_masks(ids, np.array([23]), candidates, starts, keys_of(1, seed), settings())
    assert masks.labels[0, :2].tolist() == [40, 0]
