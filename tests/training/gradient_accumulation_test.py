"""A batch in parts: the gradients of the whole batch."""

import numpy as np
import pytest
import tensorflow as tf

from bert.model import variables as vs
from bert.optimization import TrainOp
from bert.training.estimator import Estimator, ModeKeys
from bert.training.gradient_accumulation import accumulate
from tests.kit.event_files import scalars_in
from tests.kit.script_runs import tensors
from tests.kit.toy_training import make, model_fn, train_input_fn


def test_accumulated_gradients_equal_those_of_the_whole_batch(tmp_path):
  parts = 4
  make(tmp_path / "a").train(train_input_fn, 5)
  make(tmp_path / "b", gradient_accumulation_steps=parts).train(train_input_fn, 5)
  whole, divided = (tensors(str(tmp_path / x / "model.ckpt-5")) for x in "ab")
  for name in whole:
    np.testing.assert_allclose(divided[name], whole[name], rtol=1e-5, atol=1e-6, err_msg=name)
  written = [scalars_in(tmp_path / x)[5]["loss"] for x in "ab"]
  assert written[0] == pytest.approx(written[1], rel=1e-5)


def test_accumulation_keeps_sparse_gradients_sparse_and_unmerged():
  table = tf.Variable(tf.ones([5, 2]))
  unused = tf.Variable(1.0)

  @tf.function(autograph=False)
  def gradients(ids):
    def step_fn(ids, part):
      del part
      loss = tf.reduce_mean(tf.gather(table, ids) ** 2)
      return TrainOp(tf.gradients(loss, [table, unused]), [table, unused], 0.0, None), loss[None]

    return accumulate(step_fn, ids, 3)[1]

  found = gradients(tf.constant([1, 1, 2, 3, 1, 4]))
  assert isinstance(found[0], tf.IndexedSlices)
  assert found[0].indices.numpy().tolist() == [1, 1, 2, 3, 1, 4]
  np.testing.assert_allclose(found[0].values, np.full([6, 2], 2 / 12), rtol=1e-6)
  assert found[1] is None


def test_parts_draw_their_own_dropout(tmp_path):
  drawn = []

  def recording_model_fn(features, labels, mode, params):
    spec = model_fn(features, labels, mode, params)
    if mode == ModeKeys.TRAIN:
      tf.py_function(lambda seed: drawn.append(tuple(seed.numpy())), [vs.next_random_seed()], [])
    return spec

  model = make(tmp_path, gradient_accumulation_steps=4)
  Estimator(recording_model_fn, model.config, model.params).train(train_input_fn, 2)
  assert len(drawn) == len(set(drawn)) == 8


@pytest.mark.parametrize("batch_size", [6, None])
def test_indivisible_batch_is_refused(tmp_path, batch_size):
  model = make(tmp_path, {"train_batch_size": batch_size}, gradient_accumulation_steps=4)
  if batch_size is None:
    del model.params["train_batch_size"]
  with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="does not divide"):
    model.train(lambda params: train_input_fn({**params, "batch_size": 6}), 1)
