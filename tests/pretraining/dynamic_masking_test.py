"""Masks drawn in the input pipeline: the original's rules, from seed and number alone."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from bert.pretraining import dynamic_masking
from bert.pretraining.dynamic_masking import Masking, draw_masks, random_bits

PAD, CLS, SEP, MASK, FIRST_WORD, VOCAB_SIZE = 0, 1, 2, 3, 4, 1000
MASKING = Masking(VOCAB_SIZE, MASK, (CLS, SEP), max_predictions_per_seq=20)
WHOLE_WORDS = dataclasses.replace(MASKING, whole_words=True)


def make_batch(count, length=128, shortest=8, seed=0):
  """`[CLS] A [SEP] B [SEP]` of different lengths; about half of the words go on."""
  rng = np.random.default_rng(seed)
  lengths = rng.integers(shortest, length + 1, count)
  mask = np.arange(length) < lengths[:, None]
  ids = rng.integers(FIRST_WORD, VOCAB_SIZE, (count, length))
  rows = np.arange(count)
  ids[rows, 0] = CLS
  ids[rows, lengths // 2] = ids[rows, lengths - 1] = SEP
  return {
    "input_ids": (ids * mask).astype(np.int32),
    "input_mask": mask.astype(np.int32),
    "word_starts": (rng.integers(0, 2, ids.shape) * mask).astype(np.int32),
  }


@tf.function(autograph=False)
def _draw(batch, numbers, seed, whole_words):
  # As in a pipeline, where the size of a batch is not known while tracing.
  size = tf.TensorShape([None, None])
  batch = {name: tf.ensure_shape(value, size) for name, value in batch.items()}
  return draw_masks(batch, numbers, seed, WHOLE_WORDS if whole_words else MASKING)


def draw(batch, numbers=None, seed=7, whole_words=False):
  numbers = range(len(batch["input_ids"])) if numbers is None else numbers
  batch = {name: tf.constant(value) for name, value in batch.items()}
  masked = _draw(batch, tf.constant(list(numbers), tf.int64), tf.constant(seed), whole_words)
  return {name: value.numpy() for name, value in masked.items()}


def chosen_of(masked, length=128):
  """bool `[B, S]` of positions with weight."""
  chosen = np.zeros((len(masked["input_ids"]), length), bool)
  rows, columns = np.nonzero(masked["masked_lm_weights"])
  chosen[rows, masked["masked_lm_positions"][rows, columns]] = True
  return chosen


def words_of(ids, mask, starts) -> list[list[int]]:
  """The words of a sequence, in plain Python: `create_pretraining_data.py` with starts for ##."""
  words = []
  for position in np.flatnonzero(mask):
    if ids[position] in (CLS, SEP):
      continue
    if words and not starts[position]:
      words[-1].append(position)
    else:
      words.append([position])
  return words


# What is chosen.


@pytest.mark.parametrize("whole_words", [False, True])
def test_the_originals_numbers(whole_words):
  batch = make_batch(400, shortest=4)
  masked = draw(batch, whole_words=whole_words)
  assert masked.keys() == {
    *("input_ids", "input_mask"),
    *("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"),
  }
  chosen = chosen_of(masked)
  lengths = batch["input_mask"].sum(1)
  wanted = np.array([min(20, max(1, round(int(n) * 0.15))) for n in lengths])
  if whole_words:
    assert (chosen.sum(1) <= wanted).all()
    assert (chosen.sum(1) == wanted).mean() > 0.9
  else:
    np.testing.assert_array_equal(chosen.sum(1), np.minimum(wanted, lengths - 3))
  assert not (chosen & np.isin(batch["input_ids"], (PAD, CLS, SEP))).any()
  # Ties of the rounding go to the even number.
  assert round(10 * 0.15) == 2
  assert round(30 * 0.15) == 4
  assert {10, 30} <= set(lengths.tolist())


@pytest.mark.parametrize("whole_words", [False, True])
def test_labels_are_what_stood_there(whole_words):
  batch = make_batch(50)
  masked = draw(batch, whole_words=whole_words)
  for i in range(50):
    count = int(masked["masked_lm_weights"][i].sum())
    positions = masked["masked_lm_positions"][i]
    assert masked["masked_lm_weights"][i].tolist() == [1.0] * count + [0.0] * (20 - count)
    assert (np.diff(positions[:count]) > 0).all()
    assert not positions[count:].any()
    labels = batch["input_ids"][i, positions[:count]]
    assert masked["masked_lm_ids"][i].tolist() == labels.tolist() + [0] * (20 - count)
  unchosen = ~chosen_of(masked)
  np.testing.assert_array_equal(masked["input_ids"][unchosen], batch["input_ids"][unchosen])


@pytest.mark.parametrize("whole_words", [False, True])
def test_shares_over_100_000_tokens(whole_words):
  """Sequences short enough that the limit of 20 does not bind: 15%, then 80/10/10."""
  batch = make_batch(1300, shortest=40)
  for name, value in batch.items():
    assert value.shape == (1300, 128), name
  tokens = batch["input_mask"].sum()
  assert tokens > 100_000
  masked = draw(batch, whole_words=whole_words)
  chosen = chosen_of(masked)
  assert abs(chosen.sum() / tokens - 0.15) < 0.003
  after, before = masked["input_ids"][chosen], batch["input_ids"][chosen]
  is_mask, is_same = after == MASK, after == before
  assert abs(is_mask.mean() - 0.8) < 0.01
  assert abs(is_same.mean() - 0.1) < 0.01
  others = after[~is_mask & ~is_same]
  assert abs(len(others) / len(after) - 0.1) < 0.01
  # Random words are from the whole vocabulary, special tokens included.
  assert others.min() < VOCAB_SIZE * 0.01
  assert others.max() >= VOCAB_SIZE * 0.99
  assert abs(others.mean() / VOCAB_SIZE - 0.5) < 0.03
  assert len(np.unique(others)) > 0.7 * VOCAB_SIZE


def test_roberta_draws_no_special_token():
  """80/10/10 as BERT, but random words are from the others alone, each as likely."""
  vocab = {f"word{index}": index for index in range(4, 40)}
  vocab |= {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 40}
  masking = Masking.from_vocabulary(vocab, draws_special=False, max_predictions_per_seq=20)
  assert (masking.mask_id, masking.special_ids, masking.vocab_size) == (40, (0, 2), 41)
  assert masking.never_drawn == (0, 1, 2, 3, 40)
  ids = np.random.default_rng(0).integers(4, 40, (1300, 128)).astype(np.int32)
  ids[:, 0], ids[:, 60:62], ids[:, -1] = 0, 2, 2
  features = {"input_ids": tf.constant(ids), "input_mask": tf.ones_like(ids)}
  masked = draw_masks(features, tf.range(1300, dtype=tf.int64), 7, masking)
  masked = {name: value.numpy() for name, value in masked.items()}
  chosen = chosen_of(masked)
  assert not chosen[np.isin(ids, (0, 2))].any()
  assert chosen.sum() / ids.size == pytest.approx(0.15, abs=0.003)
  after, before = masked["input_ids"][chosen], ids[chosen]
  assert (after == 40).mean() == pytest.approx(0.8, abs=0.01)
  others = after[(after != 40) & (after != before)]
  # A random word may be the word itself.
  assert len(others) / len(after) == pytest.approx(0.1 * 35 / 36, abs=0.01)
  counts = np.bincount(others, minlength=41)
  assert np.flatnonzero(counts).tolist() == list(range(4, 40))
  assert counts[4:40].std() / counts[4:40].mean() < 0.25


def test_words_are_taken_as_in_a_loop_over_them():
  """The rule of the original, in plain Python, on the same random order."""
  batch = make_batch(100)
  chosen = chosen_of(draw(batch, seed=3, whole_words=True))
  keys = random_bits(3, tf.range(100, dtype=tf.int64), 128).numpy()[0]
  passed_over = 0
  for i in range(100):
    words = words_of(*(batch[n][i] for n in ("input_ids", "input_mask", "word_starts")))
    count = min(20, max(1, round(int(batch["input_mask"][i].sum()) * 0.15)))
    expected: list[int] = []
    for word in sorted(words, key=lambda word, i=i: keys[i, word[0]]):
      if len(expected) >= count:
        break
      if len(expected) + len(word) > count:
        passed_over += 1
        continue
      expected += word
    assert sorted(expected) == np.flatnonzero(chosen[i]).tolist()
  assert passed_over > 20


@pytest.mark.parametrize("whole_words", [False, True])
def test_nothing_to_choose_is_no_error(whole_words):
  ids = np.array([[CLS, SEP, SEP, PAD], [CLS, 9, SEP, SEP]], np.int32)
  batch = {"input_ids": ids, "input_mask": (ids != PAD).astype(np.int32)}
  batch["word_starts"] = np.zeros_like(ids)
  weights = draw(batch, whole_words=whole_words)["masked_lm_weights"]
  assert weights.shape == (2, 20)
  assert weights.sum(1).tolist() == [0.0, 1.0]
  ids[1] = PAD
  batch["input_mask"] = (ids != PAD).astype(np.int32)
  assert draw(batch, whole_words=whole_words)["masked_lm_weights"].sum() == 0


# What it depends on, and what not.


@pytest.mark.parametrize("whole_words", [False, True])
def test_neither_the_batch_nor_padding_matters(whole_words):
  batch = make_batch(24, length=64)
  wide = {name: np.pad(value, [(0, 0), (0, 32)]) for name, value in batch.items()}
  whole = draw(batch, range(100, 124), whole_words=whole_words)
  for order in ([5], [23, 0, 7]):
    part = {name: value[order] for name, value in wide.items()}
    some = draw(part, [100 + i for i in order], whole_words=whole_words)
    for name, value in whole.items():
      width = value.shape[1]
      np.testing.assert_array_equal(some[name][:, :width], value[order], err_msg=name)
      assert not some[name][:, width:].any()


def test_bits_are_those_of_splitmix64():
  """In Python's integers; and the generator's published first outputs for the seed 1234567."""
  mask = 2**64 - 1

  def mix(value):
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & mask
    value = (value ^ value >> 27) * 0x94D049BB133111EB & mask
    return value ^ value >> 31

  assert mix(1234567) == 6457827717110365317
  bits = random_bits(-5, tf.constant([3, 2**62]), 9).numpy()
  for i, number in enumerate([3, 2**62]):
    example = mix((mix(-5 & mask) + number) & mask)
    for position in (0, 8):
      for purpose in range(4):
        place = (4 * position + purpose) * 0x9E3779B97F4A7C15
        assert bits[purpose, i, position] == mix((example + place) & mask)


def test_a_vocabulary_without_special_tokens_is_refused():
  with pytest.raises(ValueError, match=r"lacks \[MASK\], \[SEP\]"):
    Masking.from_vocabulary({"[CLS]": 0}, max_predictions_per_seq=3)
  with pytest.raises(ValueError, match="lacks <mask>, which masking requires"):
    Masking.from_vocabulary({"<s>": 0, "</s>": 2}, max_predictions_per_seq=3)
  # An empty last line is no token: it replaces no word.
  assert dynamic_masking.Masking.from_vocabulary(
    {"[MASK]": 5, "[CLS]": 1, "[SEP]": 2, "": 6}, max_predictions_per_seq=3, masked_lm_prob=0.2
  ) == Masking(6, 5, (1, 2), 3, 0.2)
