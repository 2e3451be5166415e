"""DistilBERT's masks: recorded probabilities, and draws that have them."""

import collections
import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from bert.io.record_files import write_records
from bert.pretraining import dynamic_masking
from bert.pretraining.dynamic_masking import Masking, draw_masks

VOCAB = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5, "b": 6, "c": 7}


def masking_of(weights, **options) -> Masking:
  masking = Masking.from_vocabulary(VOCAB, max_predictions_per_seq=20, **options)
  return dataclasses.replace(masking, token_weights=np.array(weights, np.float64))


def features_of(rows) -> dict[str, tf.Tensor]:
  ids = tf.ragged.constant(rows, tf.int32).to_tensor()
  return {"input_ids": ids, "input_mask": tf.cast(ids > 0, tf.int32)}


def test_counts_and_probabilities_equal_the_original(golden_dir, tmp_path):
  golden = json.loads((golden_dir / "distilbert" / "data_prep.json").read_text())
  sequences = golden["token_ids"]
  length = max(map(len, sequences)) + 1
  rows = (np.pad(ids, [0, length - len(ids)]) for ids in sequences)
  masks = (np.arange(length) < len(ids) for ids in sequences)
  pairs = zip(rows, masks, strict=True)
  path = tmp_path / "train.tfrecord"
  write_records(path, ({"input_ids": r, "input_mask": m.astype(np.int64)} for r, m in pairs))
  counts = dynamic_masking.count_tokens([str(path)], len(golden["token_counts"]))
  assert counts.tolist() == golden["token_counts"]
  special_ids = golden["special_tok_ids"].values()
  weights = dynamic_masking.token_weights(counts, special_ids, golden["mlm_smoothing"])
  np.testing.assert_allclose(weights[:40], golden["token_probs_first40"], rtol=1e-12)
  np.testing.assert_allclose(weights.sum(), golden["token_probs_sum"], rtol=1e-12)
  with pytest.raises(ValueError, match=r"the vocabulary ends at 9\."):
    dynamic_masking.count_tokens([str(path)], 10)


def test_a_share_of_the_batch_is_masked_and_labelled():
  rows = [[2, *[5] * 9, 3], [2, *[6] * 20, 3], [2, 7, 3]]
  features = features_of(rows)
  masked = draw_masks(features, np.arange(3), 1, masking_of([0] * 5 + [1] * 3))
  labels = masked["labels"].numpy()
  chosen = labels >= 0
  assert chosen.sum() == 6  # 15% of 36 tokens, rounded up
  np.testing.assert_array_equal(labels[chosen], features["input_ids"].numpy()[chosen])
  unchanged = masked["input_ids"].numpy()[~chosen]
  np.testing.assert_array_equal(unchanged, features["input_ids"].numpy()[~chosen])
  assert not chosen[:, 0].any()


def test_draws_are_repeatable_and_padding_changes_none():
  rows = [[2, *[5, 6, 7] * 4, 3], [2, *[7] * 6, 3]]
  masking = masking_of([0] * 5 + [1, 2, 3])
  first = draw_masks(features_of(rows), np.array([3, 9]), 1, masking)
  padded = {name: tf.pad(value, [[0, 0], [0, 5]]) for name, value in features_of(rows).items()}
  again = draw_masks(padded, np.array([3, 9]), 1, masking)
  for name, empty in (("input_ids", 0), ("labels", -1)):
    np.testing.assert_array_equal(again[name][:, :-5], first[name], err_msg=name)
    assert (again[name][:, -5:].numpy() == empty).all()
  other = draw_masks(features_of(rows), np.array([3, 9]), 2, masking)
  assert (other["labels"].numpy() != first["labels"].numpy()).any()


@pytest.mark.ci
def test_tokens_are_masked_in_proportion_to_their_weights():
  """Against NumPy's draws without replacement: 4 of 12 tokens, 2,000 times."""
  row = [2, 5, 5, 5, 5, 5, 5, 6, 6, 6, 7, 3]
  weights = np.array([0] * 5 + [1.0, 3.0, 9.0])
  masking = masking_of(weights, masked_lm_prob=4 / 12)

  def draw(number):
    return draw_masks(features_of([row]), number[None], 7, masking)["labels"]

  times = 2000
  labels = np.concatenate(list(tf.data.Dataset.range(times).map(draw).as_numpy_iterator()))
  ours = collections.Counter(labels[labels >= 0].tolist())
  rng = np.random.default_rng(1)
  probabilities = weights[row] / weights[row].sum()
  theirs: collections.Counter = collections.Counter()
  for _ in range(times):
    theirs.update(np.array(row)[rng.choice(12, 4, replace=False, p=probabilities)].tolist())
  assert sum(ours.values()) == 4 * times
  for token in (5, 6, 7):
    assert ours[token] / times == pytest.approx(theirs[token] / times, abs=0.06)


def test_no_more_tokens_than_there_are_are_masked():
  masked = draw_masks(
    features_of([[2, 5, 3], [2, 3]]),
    np.arange(2),
    1,
    masking_of([0] * 5 + [1] * 3, masked_lm_prob=1.0),
  )
  assert masked["labels"].numpy().tolist() == [[-1, 5, -1], [-1, -1, -1]]
