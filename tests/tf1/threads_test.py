"""Threads of sessions: BERT_TF1_TESTS=1 python -m pytest tests/tf1/threads_test.py"""

import os

import pytest

from bert.tf1 import estimator, threads
from bert.tf1.real import tf

MOST = 4 * os.cpu_count()


@pytest.fixture
def warnings(monkeypatch):
  """The lines that are logged."""
  threads._warn.cache_clear()
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
  assert threads.bounded(asked) is asked
  assert threads.bounded(None) is None
  assert warnings == []


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
