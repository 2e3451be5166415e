"""Tests of what must not change a result of run_classifier.py: padding and batches."""

import numpy as np
import pytest
import tensorflow as tf

from bert import modeling, run_classifier
from bert.model.variables import VariableStore, use_store
from bert.training.estimator import ModeKeys
from tests.kit.script_runs import Script, table
from tests.kit.tiny_sentences import CONFIG, VOCAB

script = Script(run_classifier)
run, run_well, error_of = script.run, script.run_well, script.error_of


def numbers(path) -> np.ndarray:
  return np.array(table(path), np.float32)


def test_padding_and_batch_size_change_no_probability(mrpc, tmp_path):
  """With weights that are not trained: trained ones are so sure that little can move them."""
  start = mrpc.out / "model.ckpt-0"
  values = {**mrpc.flags, "output_dir": tmp_path / "out", "init_checkpoint": start}
  run_well(**values, do_predict=True)
  expected = numbers(tmp_path / "out" / "test_results.tsv")
  assert np.ptp(expected[:, 0]) > 1e-3, "probabilities that are all alike would prove nothing"
  for options in (
    {"pad_to_max_length": True},
    {"predict_batch_size": 1},
    {"max_seq_length": 32, "pad_to_max_length": True, "predict_batch_size": 4},
  ):
    run_well(**{**values, **options}, do_predict=True)
    found = numbers(tmp_path / "out" / "test_results.tsv")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5, err_msg=str(options))


def logits_of(config, store, ids, mask):
  """Logits of `create_model` for ids with a mask."""
  with use_store(store):
    labels = tf.zeros([len(ids)], tf.int32)
    segments = tf.zeros_like(ids)
    return run_classifier.create_model(
      config, False, tf.constant(ids), tf.constant(mask), segments, labels, 3, False
    )[2].numpy()


def test_logits_do_not_depend_on_padding_or_on_what_is_padded():
  config = modeling.BertConfig.from_dict({**CONFIG, "initializer_range": 0.5})
  store, rng = VariableStore(1), np.random.default_rng(1)
  ids = rng.integers(5, len(VOCAB), [4, 7]).astype(np.int32)
  mask = np.ones_like(ids)
  alone = logits_of(config, store, ids, mask)
  assert np.ptp(alone) > 0.05, "a model whose logits are all alike would prove nothing"
  for length in (8, 16, 32):
    wide_mask = np.pad(mask, [(0, 0), (0, length - 7)])
    zeros = np.pad(ids, [(0, 0), (0, length - 7)])
    garbage = np.where(wide_mask, zeros, rng.integers(0, len(VOCAB), zeros.shape)).astype(np.int32)
    padded = logits_of(config, store, zeros, wide_mask)
    np.testing.assert_allclose(padded, alone, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(logits_of(config, store, garbage, wide_mask), padded)
  assert np.abs(logits_of(config, store, ids[:, :6], mask[:, :6]) - alone).max() > 1e-3


@pytest.mark.parametrize("problem_type", ["classification", "multi_label", "regression"])
def test_what_the_metrics_see_is_what_is_predicted(problem_type):
  config, store = modeling.BertConfig.from_dict(CONFIG), VariableStore(1)
  model_fn = run_classifier.model_fn_builder(
    config, 3, None, 1e-3, 1, 0, False, False, problem_type=problem_type
  )
  ids = tf.constant([[5, 6, 7], [8, 9, 0]])
  shape = [2, 3] if problem_type == "multi_label" else [2]
  features = {"input_ids": ids, "input_mask": tf.ones_like(ids), "segment_ids": tf.zeros_like(ids)}
  features["label_ids"] = tf.zeros(shape, tf.float32 if problem_type == "regression" else tf.int32)
  features["is_real_example"] = tf.ones([2], tf.int32)
  with use_store(store):
    outputs = model_fn(features, None, ModeKeys.EVAL, {}).eval_metrics[1]["outputs"]
    probabilities = model_fn(features, None, ModeKeys.PREDICT, {}).predictions["probabilities"]
  if problem_type == "classification":
    outputs = tf.nn.softmax(outputs)
  np.testing.assert_allclose(outputs, probabilities, rtol=0, atol=1e-7)
  in_range = (probabilities.numpy() > 0).all() and (probabilities.numpy() < 1).all()
  assert in_range or problem_type == "regression"
