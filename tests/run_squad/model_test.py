"""Tests of run_squad.py's model: its logits, its loss, and padding that is masked."""

import numpy as np

from bert import modeling, run_squad
from bert.model import heads
from bert.model.variables import VariableStore, use_store
from tests.kit.tiny_questions import CONFIG, VOCAB


def span_inputs():
  rng = np.random.default_rng(1)
  ids = rng.integers(5, len(VOCAB), [3, 9]).astype(np.int32)
  mask = (np.arange(9) < np.array([[9], [6], [1]])).astype(np.int32)
  return ids * mask, mask


def test_logits_are_the_last_layer_times_the_weights():
  config, store = modeling.BertConfig.from_dict(CONFIG), VariableStore(1)
  ids, mask = span_inputs()
  segments = np.zeros_like(ids)
  with use_store(store):
    start, end = run_squad.create_model(config, False, ids, mask, segments, False)
    bert = modeling.BertModel(config, False, ids, mask, segments).get_sequence_output()
  weights = store.variables["cls/squad/output_weights"].numpy()
  store.variables["cls/squad/output_bias"].assign([0.5, -2.0])
  with use_store(store):
    biased = run_squad.create_model(config, False, ids, mask, segments, False)
  for i, (found, with_bias) in enumerate(zip((start, end), biased, strict=True)):
    np.testing.assert_allclose(found, bert.numpy() @ weights[i], rtol=0, atol=1e-5)
    np.testing.assert_allclose(with_bias - found, np.full([3, 9], [0.5, -2.0][i]), atol=1e-5)
  assert np.ptp(start.numpy()) > 0.05, "logits that are all alike would prove nothing"


def test_masked_padding_is_never_chosen_and_changes_nothing_else():
  config, store = modeling.BertConfig.from_dict(CONFIG), VariableStore(1)
  ids, mask = span_inputs()
  with use_store(store):
    plain = run_squad.create_model(config, False, ids, mask, mask * 0, False)
    masked = run_squad.create_model(config, False, ids, mask, mask * 0, False, mask_padding=True)
  for one, other in zip(plain, masked, strict=True):
    np.testing.assert_allclose(one.numpy()[mask == 1], other.numpy()[mask == 1], atol=1e-5)
    assert (other.numpy()[mask == 0] == -10000.0).all()
    assert (one.numpy()[mask == 0] > -100.0).all()


def test_loss_is_the_originals():
  """One-hot positions times log-softmax, summed, averaged over the batch and over both ends."""
  rng = np.random.default_rng(2)
  logits = rng.normal(size=[2, 3, 5]).astype(np.float32)  # start and end, B, S
  positions = np.array([[0, 4, 2], [1, 4, 0]])
  log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
  expected = -(np.eye(5)[positions] * log_probs).sum(-1).mean(-1).sum() / 2
  loss = heads.get_span_loss(*logits, *positions)
  np.testing.assert_allclose(loss, expected, rtol=1e-6)
