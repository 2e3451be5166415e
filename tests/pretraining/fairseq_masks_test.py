"""fairseq's masks: its rules, written down again with NumPy, draw the same distribution."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from bert.pretraining import fairseq_masks
from bert.pretraining.dynamic_masking import Masking

CLS, PAD, SEP, UNK, FIRST, MASK = range(6)
VOCAB = {"<s>": CLS, "<pad>": PAD, "</s>": SEP, "<unk>": UNK, "Ġa": FIRST, "<mask>": MASK}
VOCAB |= {f"{'Ġ' * (n % 2)}w{n}": 6 + n for n in range(34)}
SIZE, ROWS, LENGTH = len(VOCAB), 3000, 24


def masking_of(whole_words=False, **options) -> Masking:
  return Masking.from_vocabulary(
    VOCAB,
    rules=fairseq_masks.draw_masks,
    draws_special=False,
    draws_mask=True,
    whole_words=whole_words,
    word_beginnings=fairseq_masks.word_beginnings(VOCAB) if whole_words else None,
    max_predictions_per_seq=fairseq_masks.room_needed(0.15, LENGTH, whole_words),
    **options,
  )


def batch_of(length=LENGTH, kept=LENGTH - 3) -> dict:
  """`<s> ... </s> ... </s>` and padding, the same in every row."""
  ids = np.random.default_rng(0).integers(6, SIZE, length)
  ids[0], ids[min(9, kept - 1)], ids[kept - 1], ids[kept:] = CLS, SEP, SEP, PAD
  mask = (np.arange(length) < kept).astype(np.int32)
  return {
    "input_ids": tf.constant([ids] * ROWS, tf.int32),
    "input_mask": tf.constant([mask] * ROWS),
  }


def draw(masking, batch, seed=5) -> dict[str, np.ndarray]:
  masked = fairseq_masks.draw_masks(batch, tf.range(ROWS, dtype=tf.int64), seed, masking)
  return {name: value.numpy() for name, value in masked.items()}


def labels_in(masked) -> np.ndarray:
  """bool `[B, S]` of the places to predict."""
  chosen = np.zeros(masked["input_ids"].shape, bool)
  rows, columns = np.nonzero(masked["masked_lm_weights"])
  chosen[rows, masked["masked_lm_positions"][rows, columns]] = True
  return chosen


def drawn_by_the_rules(ids, beginnings, rng) -> tuple[np.ndarray, np.ndarray]:
  """One sequence as fairseq masks it: where, and what stands there; `ids` without padding."""
  starts = np.flatnonzero(beginnings)
  lengths = np.diff([*starts, len(ids)])
  units = len(starts)
  chosen = np.zeros(units, bool)
  chosen[rng.choice(units, int(0.15 * units + rng.random()), replace=False)] = True
  other = chosen & (rng.random(units) < 0.2)
  kept = other & (rng.random(units) < 0.5)
  masks, random_words = np.repeat(chosen & ~other, lengths), np.repeat(other & ~kept, lengths)
  words = rng.choice([i for i in range(SIZE) if i > UNK], len(ids))
  return np.repeat(chosen, lengths), np.where(masks, MASK, np.where(random_words, words, ids))


@pytest.mark.parametrize("whole_words", [False, True])
def test_the_distribution_is_that_of_the_rules(whole_words):
  batch, masking = batch_of(), masking_of(whole_words)
  masked = draw(masking, batch)
  ids, kept = batch["input_ids"][0].numpy(), LENGTH - 3
  beginnings = np.ones(kept, bool)
  if whole_words:
    beginnings = masking.word_beginnings[ids[:kept]]
  rng = np.random.default_rng(1)
  pairs = [drawn_by_the_rules(ids[:kept], beginnings, rng) for _ in range(ROWS)]
  expected, replaced = (np.array(each) for each in zip(*pairs, strict=True))
  chosen, found = labels_in(masked)[:, :kept], masked["input_ids"][:, :kept]
  assert not labels_in(masked)[:, kept:].any()
  # The numbers of labels, each place's share, and what stands there: within 5 deviations.
  counts = [np.bincount(each.sum(axis=1), minlength=kept + 1) for each in (chosen, expected)]
  assert set(np.flatnonzero(counts[0])) == set(np.flatnonzero(counts[1]))
  tolerance = 5 * np.sqrt(0.25 * 2 / ROWS)
  np.testing.assert_allclose(counts[0] / ROWS, counts[1] / ROWS, atol=tolerance)
  np.testing.assert_allclose(chosen.mean(axis=0), expected.mean(axis=0), atol=tolerance)
  shares = [
    [(each[which] == value).mean() for value in (MASK, FIRST, SIZE - 1)]
    + [(each == ids[:kept])[which].mean()]
    for each, which in ((found, chosen), (replaced, expected))
  ]
  np.testing.assert_allclose(*shares, atol=0.03)
  assert not (np.isin(found, (CLS, PAD, SEP, UNK)) & (found != ids[:kept])).any()
  assert (found[~chosen] == np.broadcast_to(ids[:kept], found.shape)[~chosen]).all()


def test_special_tokens_are_masked_too():
  masking = dataclasses.replace(masking_of(), masked_lm_prob=0.9, max_predictions_per_seq=LENGTH)
  chosen = labels_in(draw(masking, batch_of()))
  np.testing.assert_allclose(chosen[:, : LENGTH - 3].mean(axis=0), 0.9, atol=0.04)
  assert masking_of().never_drawn == (CLS, PAD, SEP, UNK)  # <mask> may be a random word


@pytest.mark.parametrize(("kept", "least", "share"), [(4, 0, 0.4), (10, 1, 0.5)])
def test_the_share_is_rounded_up_or_down_by_chance(kept, least, share):
  """0.6 tokens are 0 or 1, 1.5 are 1 or 2."""
  counts = draw(masking_of(), batch_of(kept=kept))["masked_lm_weights"].sum(axis=1)
  assert set(counts) == {least, least + 1}
  assert (counts == least).mean() == pytest.approx(share, abs=0.05)


@pytest.mark.parametrize("whole_words", [False, True])
def test_padding_changes_nothing(whole_words):
  batch = batch_of()
  shorter = {name: value[:, : LENGTH - 3] for name, value in batch.items()}
  one, other = (draw(masking_of(whole_words), each) for each in (batch, shorter))
  np.testing.assert_array_equal(one["input_ids"][:, : LENGTH - 3], other["input_ids"])
  for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
    np.testing.assert_array_equal(one[name], other[name])


def test_a_word_is_of_one_kind():
  """The pieces of a word become the mask, random ones, or stay, together."""
  batch, masking = batch_of(), masking_of(whole_words=True)
  masked = draw(masking, batch)
  ids = batch["input_ids"][0].numpy()[: LENGTH - 3]
  words = np.cumsum(masking.word_beginnings[ids]) - 1
  is_mask = masked["input_ids"][:, : LENGTH - 3] == MASK
  chosen = labels_in(masked)[:, : LENGTH - 3]
  for word in range(words.max() + 1):
    places = words == word
    assert (chosen[:, places].all(axis=1) == chosen[:, places].any(axis=1)).all()
    mixed = is_mask[:, places].any(axis=1) & ~is_mask[:, places].all(axis=1)
    assert mixed.mean() < 0.01  # a random word may be <mask>
