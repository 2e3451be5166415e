"""Training in float16: steps that overflow, and what a checkpoint holds of them."""

import logging
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import finding
from bert.model import variables as vs
from bert.optimization import create_optimizer
from bert.training import loss_scaling
from bert.training.estimator import Estimator, RunConfig, TrainingDivergedError
from bert.training.loss_scaling import GOOD_STEPS, SCALE, SKIPPED_STEPS, LossScale, after_step
from tests.kit import tiny_pretraining, toy_training
from tests.kit.event_files import scalars_in
from tests.kit.script_runs import assert_same_values, tensors
from tests.kit.toy_training import PARAMS, train_input_fn
from tools import several_devices

STATE = {SCALE, GOOD_STEPS, SKIPPED_STEPS}


def test_the_scale_doubles_and_halves_between_its_bounds():
  assert [float(value) for value in after_step(LossScale(8.0, 1999, 3), True)] == [16.0, 0, 3]
  assert [float(value) for value in after_step(LossScale(8.0, 5, 3), False)] == [4.0, 0, 4]
  largest = after_step(LossScale(loss_scaling.LARGEST_SCALE, 1999, 3), True)
  assert [float(value) for value in largest] == [2.0**24, 0, 3]
  smallest = after_step(LossScale(1.0, 5, 3), False)
  assert [float(value) for value in smallest] == [1.0, 0, 4]


# ---------------------------------------------------------------------------------------------
# A toy model whose gradients overflow where a test wants it.


def make(folder, overflows=(), scale_loss=True, params=None, replica=0, **config):
  """An estimator with infinite gradients on one replica, in the steps that begin at `overflows`."""

  def model_fn(features, labels, mode, params):
    spec = toy_training.model_fn(features, labels, mode, params)
    if spec.train_op:
      loss = overflow_at(spec.loss, overflows, replica)
      spec.train_op = create_optimizer(loss, 0.1, 100, 4, scale_loss=scale_loss)
    return spec

  config = {"save_checkpoints_steps": 3, "save_summary_steps": 1, "show_progress": False, **config}
  return Estimator(model_fn, RunConfig(str(folder), **config), {**PARAMS, **(params or {})})


def overflow_at(loss, steps, replica):
  is_hit = tf.reduce_any(tf.equal(tf.constant([-1, *steps], tf.int64), vs.get_global_step()))
  is_here = tf.equal(tf.distribute.get_replica_context().replica_id_in_sync_group, replica)
  factor = tf.where(is_hit & is_here, np.inf, 1.0)

  @tf.custom_gradient
  def same(x):
    return tf.identity(x), lambda upstream: upstream * factor

  return same(loss)


def newest(folder):
  return tensors(finding.latest(str(folder)))


def without(values, names):
  return {name: value for name, value in values.items() if name not in names}


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
  """Nine steps, of which the third and the eighth overflow."""
  folder = tmp_path_factory.mktemp("straight")
  make(folder, overflows=(2, 7), params={"dropout": 1}).train(train_input_fn, 9)
  return folder


def test_a_step_that_overflows_changes_no_weight_and_halves_the_scale(straight):
  written = scalars_in(straight)
  scale = loss_scaling.INITIAL_SCALE
  assert [written[step]["loss_scale"] for step in range(1, 10)] == [
    *[scale] * 2,
    *[scale / 2] * 5,
    *[scale / 4] * 2,
  ]
  assert [written[step]["skipped_steps"] for step in range(1, 10)] == [0, 0, 1, 1, 1, 1, 1, 2, 2]
  values = newest(straight)
  assert (values[SCALE], values[GOOD_STEPS], values[SKIPPED_STEPS]) == (scale / 4, 1, 2)
  assert values["global_step"] == 9


@pytest.mark.ci
def test_stopped_and_resumed_it_ends_with_the_same_bits(straight, tmp_path):
  for steps in (3, 6, 9):  # the third step is a skipped one
    config = {"params": {"dropout": 1}, "steps_per_loop": 3, "save_summary_steps": 9}
    make(tmp_path, overflows=(2, 7), **config).train(train_input_fn, steps)
  assert_same_values(newest(straight), newest(tmp_path))


def test_skipped_steps_are_logged(tmp_path, caplog):
  caplog.set_level(logging.INFO, logger="absl")
  config = {"steps_per_loop": 3, "save_summary_steps": 100}
  make(tmp_path, overflows=(1, 2), **config).train(train_input_fn, 4)
  make(tmp_path, overflows=(5,), **config).train(train_input_fn, 7)
  lines = [record.getMessage() for record in caplog.records if "skipped:" in record.getMessage()]
  assert [line.split(" skipped")[0] for line in lines] == ["2 step(s) up to 3", "1 step(s) up to 6"]
  assert lines[1].endswith("3 of this run so far. The loss scale is 4096 now.")


def test_without_overflow_it_trains_as_without_a_scale(tmp_path):
  make(tmp_path / "scaled").train(train_input_fn, 4)
  make(tmp_path / "plain", scale_loss=False).train(train_input_fn, 4)
  scaled, plain = newest(tmp_path / "scaled"), newest(tmp_path / "plain")
  assert scaled.keys() - plain.keys() == STATE
  # A power of two is no rounding.
  assert_same_values(without(scaled, STATE), plain)


def test_gradients_that_no_scale_makes_finite_stop_the_run(tmp_path):
  steps = range(3, 100)
  with pytest.raises(TrainingDivergedError, match=r"gradients of step 19 are not finite.*step 18"):
    make(tmp_path, overflows=steps, steps_per_loop=5, save_summary_steps=9).train(
      train_input_fn, 40
    )
  assert (tmp_path / "diverged_batch-19.npz").exists()
  values = newest(tmp_path)
  assert values["global_step"] == 18
  assert all(np.isfinite(value).all() for value in values.values())


def test_gradients_that_are_not_finite_stop_float32_before_they_are_saved(tmp_path):
  """The loss of that step is finite yet: only the next one would show it, after a checkpoint."""
  model = make(tmp_path, overflows=(5,), scale_loss=False)
  with pytest.raises(TrainingDivergedError, match=r"gradients of step 6 .*though.*after step 3"):
    model.train(train_input_fn, 9)
  assert [step for step, _ in finding.list_checkpoints(str(tmp_path))] == [3]
  assert not any("loss_scale" in name for name in newest(tmp_path))


def test_a_run_may_change_to_float16_and_back(tmp_path):
  make(tmp_path, scale_loss=False).train(train_input_fn, 3)
  make(tmp_path, overflows=(3,)).train(train_input_fn, 6)
  values = newest(tmp_path)
  assert (values[SCALE], values[SKIPPED_STEPS]) == (loss_scaling.INITIAL_SCALE / 2, 1)
  assert np.abs(values["toy/kernel/adam_m"]).max() > 0
  make(tmp_path, scale_loss=False).train(train_input_fn, 9)
  assert newest(tmp_path).keys() == values.keys() - STATE


# ---------------------------------------------------------------------------------------------
# A script.


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
  return tiny_pretraining.flags_of_model(tmp_path_factory.mktemp("model"))


# ---------------------------------------------------------------------------------------------
# Several replicas.


TWO_REPLICAS = """
import sys, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from bert.training import distribution; from tests.training import loss_scaling_test as t
strategy = distribution.create_strategy("mirrored")
t.make(sys.argv[1], (1, 3), replica=1, strategy=strategy).train(t.train_input_fn, 5)
"""


@pytest.mark.slow
def test_an_overflow_on_one_replica_is_skipped_by_all(tmp_path):
  done = subprocess.run(
    [sys.executable, "-c", TWO_REPLICAS, str(tmp_path / "two")],
    env=several_devices.environment(),
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  make(tmp_path / "one", overflows=(1, 3)).train(train_input_fn, 5)
  one, two = newest(tmp_path / "one"), newest(tmp_path / "two")
  assert one.keys() == two.keys()
  for name in one:
    np.testing.assert_allclose(two[name], one[name], rtol=1e-5, atol=1e-6, err_msg=name)
  assert two[SKIPPED_STEPS] == 2
