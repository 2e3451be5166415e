"""Settings of sessions: python -m pytest tf1/tests/session_settings_test.py"""

import os

import numpy as np
import pytest

from bert_tf1 import estimator, session_settings
from bert_tf1.real import tf

MOST = 4 * os.cpu_count()


@pytest.fixture
def warnings(monkeypatch):
  """The lines that are logged."""
  session_settings._warn.cache_clear()
  found = []
  monkeypatch.setattr(tf.logging, "warning", lambda text, *values: found.append(text % values))
  return found


def config_of(**threads):
  return tf.ConfigProto(allow_soft_placement=True, **threads)


def test_a_session_of_a_thousand_threads(graph, warnings, monkeypatch):
  made = []
  asked = config_of(intra_op_parallelism_threads=1024, inter_op_parallelism_threads=1024)
  asked.session_inter_op_thread_pool.add().num_threads = 512
  for _ in range(2):
    with tf.Session(config=asked) as session:
      made.append(session._config)
  for config in made:
    assert config.intra_op_parallelism_threads == config.inter_op_parallelism_threads == MOST
    assert config.session_inter_op_thread_pool[0].num_threads == MOST
    assert config.allow_soft_placement
  assert asked.intra_op_parallelism_threads == 1024
  assert warnings == [f"A session asks for 1024 threads: {MOST} are used, 4 for each core."]


def test_settings_that_the_machine_can_meet(graph, warnings):
  asked = config_of(intra_op_parallelism_threads=MOST)
  made = session_settings.like_1_15(asked)
  assert made.intra_op_parallelism_threads == MOST
  assert session_settings.like_1_15(None).intra_op_parallelism_threads == 0
  assert warnings == []


def test_the_epsilon_of_a_frozen_graph_s_layer_norm(graph):
  """Fused by TensorFlow of today, it is 0.001."""
  x = 0.02 * np.random.default_rng(0).normal(size=[8, 64])
  inputs = tf.placeholder(tf.float32, [8, 64])
  mean, variance = tf.nn.moments(inputs, [1], keep_dims=True)
  scale, offset = tf.constant(np.ones(64), tf.float32), tf.constant(np.zeros(64), tf.float32)
  normal = tf.nn.batch_normalization(inputs, mean, variance, offset, scale, 1e-12)
  outputs = tf.identity(normal)
  expected = (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)
  for config in (None, tf.ConfigProto()):
    with tf.Session(config=config) as session:
      found = session.run(outputs, {inputs: x})
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_script_may_ask_for_the_remapper():
  asked = tf.ConfigProto()
  asked.graph_options.rewrite_options.remapping = asked.graph_options.rewrite_options.ON
  assert session_settings.like_1_15(asked) == asked


def test_an_estimator_of_a_thousand_threads(tmp_path, warnings):
  def model_fn(features, mode):
    step = tf.assign_add(tf.train.get_global_step(), 1)
    return estimator.EstimatorSpec(mode, loss=tf.reduce_sum(features), train_op=step)

  class Look(tf.train.SessionRunHook):
    def after_create_session(self, session, coord):
      found.append(session._config.inter_op_parallelism_threads)

  found = []
  config = estimator.RunConfig(session_config=config_of(inter_op_parallelism_threads=1024))
  model = estimator.Estimator(model_fn, str(tmp_path), config)
  model.train(lambda: tf.data.Dataset.from_tensors(tf.ones([1])), [Look()], steps=1)
  assert found == [MOST]
  assert len(warnings) == 1
