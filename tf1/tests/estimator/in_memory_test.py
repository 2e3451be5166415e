"""Evaluations within a training: when they come and what they record, as in 1.15.5."""

import numpy as np
import pytest

from bert_tf1 import estimator as tfe
from bert_tf1.estimator.experimental import InMemoryEvaluatorHook
from bert_tf1.real import tf

pytestmark = pytest.mark.ci

X = np.linspace(-1, 1, 20).reshape(10, 2).astype(np.float32)
Y = (X @ [[2.0], [-1.0]]).astype(np.float32)


def model_fn(features, labels, mode):
  weights = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer([[0.5], [0.25]]))
  loss = tf.losses.mean_squared_error(labels, tf.matmul(features, weights))
  train_op = None
  if mode == tfe.ModeKeys.TRAIN:
    train_op = tf.train.AdamOptimizer(0.1).minimize(loss, tf.train.get_global_step())
  return tfe.EstimatorSpec(mode, loss=loss, train_op=train_op)


def input_fn(epochs=None):
  return lambda: tf.data.Dataset.from_tensor_slices((X, Y)).repeat(epochs).batch(4)


def losses(folder) -> list[tuple[int, float]]:
  """(step, loss) of each evaluation that the event file of `folder` holds."""
  return [
    (event.step, round(value.simple_value, 5))
    for path in tf.gfile.Glob(f"{folder}/events*")
    for event in tf.train.summary_iterator(path)
    for value in event.summary.value
  ]


@pytest.mark.ci
def test_evaluations_come_every_n_steps(tmp_path):
  estimator = tfe.Estimator(model_fn, str(tmp_path))
  hooks = [
    InMemoryEvaluatorHook(estimator, input_fn(1), every_n_iter=2),
    InMemoryEvaluatorHook(estimator, input_fn(), steps=1, name="part", every_n_iter=3),
  ]
  estimator.train(input_fn(), hooks=hooks, steps=5)
  # Losses of 1.15.5.
  assert losses(tmp_path / "eval") == [(0, 0.03734), (2, 0.02517), (4, 0.04115), (5, 0.03539)]
  assert losses(tmp_path / "eval_part") == [(0, 0.09505), (3, 0.00529), (5, 0.00359)]
  assert round(float(estimator.evaluate(input_fn(1))["loss"]), 5) == 0.03539


def test_what_cannot_be_evaluated_in_memory_is_refused(tmp_path):
  def with_saver(features, labels, mode):
    spec = model_fn(features, labels, mode)
    return spec._replace(scaffold=tf.train.Scaffold(saver=tf.train.Saver()))

  estimator = tfe.Estimator(with_saver, str(tmp_path))
  with pytest.raises(ValueError, match="does not support custom saver or init_fn"):
    estimator.train(input_fn(), hooks=[InMemoryEvaluatorHook(estimator, input_fn(1))], steps=1)
  with pytest.raises(ValueError, match=r"invalid every_n_iter=0\."):
    InMemoryEvaluatorHook(estimator, input_fn(), every_n_iter=0)
