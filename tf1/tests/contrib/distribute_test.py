"""Strategies of `tf.contrib.distribute` are one replica; and small parts of contrib."""

import pytest

from bert_tf1 import contrib
from bert_tf1.contrib import compiler, distribute, distribution_strategy_context, memory_stats, util
from bert_tf1.estimator import RunConfig
from bert_tf1.real import tf


@pytest.mark.parametrize(
  ("make", "devices"),
  [
    (lambda: distribute.MirroredStrategy(), 1),
    (lambda: distribute.MirroredStrategy(num_gpus=1, cross_device_ops=None), 1),
    (lambda: distribute.MirroredStrategy(["device:GPU:0", "device:GPU:1"]), 2),
    (lambda: distribute.MirroredStrategy(num_gpus=4), 4),
    (lambda: distribute.CollectiveAllReduceStrategy(num_gpus_per_worker=2), 2),
    (lambda: distribute.ParameterServerStrategy(), 1),
    (lambda: distribute.OneDeviceStrategy("/cpu:0"), 1),
  ],
)
def test_one_replica_trains(make, devices, monkeypatch):
  warnings = []
  monkeypatch.setattr(tf.logging, "warning", lambda text, *of: warnings.append(text % of))
  strategy = make()
  assert strategy.num_replicas_in_sync == 1
  config = RunConfig(train_distribute=strategy, eval_distribute=strategy)
  assert config.train_distribute is strategy
  assert len(warnings) == (devices > 1)
  assert all(f"for {devices} devices: this process trains on one" in text for text in warnings)


def test_how_gradients_would_be_summed():
  assert distribute.AllReduceCrossDeviceOps("nccl", 1, 0, 10)
  assert distribute.AllReduceCrossDeviceOps("nccl", num_packs=2)


def test_the_context_is_one_replica():
  assert not distribute.has_distribution_strategy()
  assert not distribution_strategy_context.in_cross_tower_context()
  with tf.Graph().as_default():
    context = distribution_strategy_context.get_tower_context()
    assert context.merge_call(lambda strategy, value: value + 1, args=(2,)) == 3


def test_what_is_missing_has_a_remedy():
  with pytest.raises(AttributeError, match="leave it out"):
    distribute.DistributeConfig  # noqa: B018
  with pytest.raises(AttributeError, match="use_tpu=False"):
    distribute.TPUStrategy  # noqa: B018
  with pytest.raises(AttributeError, match=r"use tf\.estimator\."):
    contrib.learn  # noqa: B018


def test_parts_that_are_tensorflows_own():
  assert contrib.distributions.Normal is tf.distributions.Normal
  assert contrib.tensorboard.plugins.projector.visualize_embeddings


def test_small_parts():
  with tf.Graph().as_default(), tf.Session() as session:
    with compiler.jit.experimental_jit_scope():
      doubled = tf.constant(1.0) * 2
    assert doubled.op.get_attr("_XlaCompile")
    assert util.constant_value(tf.constant([1, 2])).tolist() == [1, 2]
    assert util.make_ndarray(util.make_tensor_proto([3])).tolist() == [3]
    assert session.run([memory_stats.BytesInUse(), memory_stats.MaxBytesInUse()]) >= [0, 0]
