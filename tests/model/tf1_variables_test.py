"""`tf.compat.v1.get_variable` and TensorFlow's initializers, as notebooks of 2018 use them."""

import numpy as np
import pytest
import tensorflow as tf

from bert.model import variables as vs
from bert.model.variables import VariableStore, use_store
from bert.training.estimator import Estimator, EstimatorSpec, ModeKeys, RunConfig
from tests.kit import toy_training

tf1 = tf.compat.v1


def model_fn(features, labels, mode, params):
  """A linear layer, written as in the original's notebook."""
  del labels, params
  ids, target = features["input_ids"], tf.cast(features["label_ids"], tf.float32)
  weights = tf1.get_variable(
    "output_weights", [1, 20], initializer=tf1.truncated_normal_initializer(stddev=0.02)
  )
  bias = tf1.get_variable("output_bias", [1], initializer=tf1.zeros_initializer())
  with tf1.variable_scope("loss"):
    words = tf.reduce_sum(tf.one_hot(ids, 20), axis=1)
    score = (tf.matmul(words, weights, transpose_b=True) + bias)[:, 0]
    if mode == ModeKeys.PREDICT:
      return EstimatorSpec(mode, predictions={"score": score})
    loss = tf.reduce_mean((score - target) ** 2)
  if mode == ModeKeys.EVAL:
    return EstimatorSpec(mode, loss=loss)
  return EstimatorSpec(mode, loss=loss, train_op=toy_training.toy_train_op(loss))


def test_a_model_fn_of_2018_trains_evaluates_and_predicts(tmp_path):
  config = RunConfig(model_dir=str(tmp_path), show_progress=False)
  model = Estimator(model_fn, config, toy_training.PARAMS)
  model.train(toy_training.train_input_fn, max_steps=3)
  assert model.evaluate(toy_training.eval_input_fn)["global_step"] == 3
  assert next(iter(model.predict(toy_training.eval_input_fn)))["score"].shape == ()
  names = [name for name, _ in tf.train.list_variables(str(tmp_path))]
  assert {"output_weights", "output_bias", "global_step"} <= set(names)


INITIALIZERS = [
  tf1.truncated_normal_initializer(stddev=0.02),
  tf1.random_normal_initializer(stddev=0.02),
  tf1.glorot_uniform_initializer(),
  tf.random_normal_initializer(stddev=0.02),
  tf.keras.initializers.TruncatedNormal(stddev=0.02),
  lambda shape, dtype=None: tf.random.stateless_normal(shape, [1, 2], dtype=dtype),
  None,
]


@pytest.mark.parametrize("initializer", INITIALIZERS)
def test_values_depend_on_seed_and_name_alone(initializer):
  def values(seed, *names):
    with use_store(VariableStore(seed)):
      return [tf1.get_variable(name, [4, 3], initializer=initializer).numpy() for name in names]

  first, again, other = values(1, "a", "b"), values(1, "b", "a"), values(2, "a", "b")
  np.testing.assert_array_equal(first, again[::-1])
  assert np.ptp(first[0]) > 0
  if initializer not in INITIALIZERS[5:6]:
    assert not np.array_equal(first[0], first[1])
    assert not np.array_equal(first[0], other[0])


@pytest.mark.parametrize(
  ("initializer", "shape", "value"),
  [
    (tf1.zeros_initializer, [2], [0.0, 0.0]),
    (tf.zeros_initializer(), [2], [0.0, 0.0]),
    (tf1.constant_initializer(3.0), [2], [3.0, 3.0]),
    (np.float32([1.0, 2.0]), None, [1.0, 2.0]),
    (tf.keras.initializers.Ones(), [2], [1.0, 1.0]),
  ],
)
def test_what_initializer_may_be(initializer, shape, value):
  with use_store(VariableStore()) as store:
    found = tf1.get_variable("x", shape, initializer=initializer, trainable=False)
    assert found.numpy().tolist() == value
    assert vs.get_variable("x") is found
    assert not store.trainable_variables


def test_scopes_of_both_kinds_make_one_name():
  with use_store(VariableStore()) as store:
    with tf1.variable_scope("fork"), vs.variable_scope("bert"):
      vs.get_variable("x", [1])
    with vs.variable_scope("cls"), tf1.variable_scope("head"):
      tf1.get_variable("y", [1])
    with tf1.variable_scope("head", reuse=tf1.AUTO_REUSE):
      tf1.get_variable("z", [1], tf.int32)
  assert {name: v.dtype for name, v in store.variables.items()} == {
    "fork/bert/x": tf.float32,
    "cls/head/y": tf.float32,
    "head/z": tf.int32,
  }


def test_outside_a_store_nothing_changes():
  with use_store(VariableStore()) as store:
    pass
  with tf.Graph().as_default():
    tf1.get_variable("x", [1])
    with pytest.raises(ValueError, match="already exists"):
      tf1.get_variable("x", [1])
  assert not store.variables
