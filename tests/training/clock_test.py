"""Training for a time: when it ends, what a resumed run has left, what the model sees of it.

Time is made up: it passes in steps, checkpoints and evaluations alone.
"""

import contextlib

import numpy as np
import pytest

from bert.checkpoints import finding, reading
from bert.optimization import create_optimizer
from bert.training.clock import Clock
from bert.training.estimator import Estimator, EvalSpec, ModeKeys, RunConfig
from tests.kit.event_files import scalars_in
from tests.kit.made_up_clock import MadeUpClock, MadeUpTime
from tests.kit.script_runs import assert_same_tensors, stopped_after
from tests.kit.toy_training import PARAMS, eval_input_fn, make, model_fn, train_input_fn


def clocked(folder, seconds=60, time=None, model=model_fn, **config):
  clock = MadeUpClock(seconds, time or MadeUpTime())
  config = {"save_checkpoints_steps": 1000, "show_progress": False, "clock": clock, **config}
  return Estimator(model, RunConfig(str(folder), **config), PARAMS)


def model_with_rate(features, labels, mode, params):
  """The rate of `create_optimizer` by the clock: a fifth of the time is warm-up."""
  spec = model_fn(features, labels, mode, params)
  if mode == ModeKeys.TRAIN:
    spec.train_op = create_optimizer(spec.loss, 1.0, 1000, 200, progress=params["progress"])
  return spec


def run_state(folder):
  return reading.read_state(finding.latest(str(folder)))["run"]


def test_it_ends_on_time_with_a_checkpoint(tmp_path, caplog):
  estimator = clocked(tmp_path, log_every_steps=10)
  with caplog.at_level("INFO", logger="absl"):
    estimator.train(train_input_fn)
  # 3 s for the checkpoint of step 0, 10 s with compilation, n steps of 2 s, 3 s for the last one.
  assert estimator.trained_steps == 1 + (60 - 3 - 10 - 3) // 2
  assert estimator.config.clock.time.seconds == 1000 + 60
  assert finding.latest(str(tmp_path)).endswith("-23")
  assert "step 10, loss" in caplog.text
  assert "00:29 left" in caplog.text  # 60 - 3 - 10 - 9 * 2
  assert "step 23, loss" in caplog.text


@pytest.mark.ci
def test_what_has_ended_is_skipped_and_more_time_goes_on(tmp_path, caplog):
  clocked(tmp_path, 30).train(train_input_fn)
  assert run_state(tmp_path)["trained_seconds"] == 30
  with caplog.at_level("INFO", logger="absl"):
    estimator = clocked(tmp_path, 30).train(train_input_fn)
  assert estimator.trained_steps == 0
  assert "Skipping training since its time was used up." in caplog.text
  # No checkpoint at the start, but its first step compiles anew.
  assert clocked(tmp_path, 60).train(train_input_fn).trained_steps == 1 + (30 - 10 - 3) // 2


def test_a_resumed_run_has_the_rest_of_the_time(tmp_path):
  with stopped_after(10), pytest.raises(KeyboardInterrupt):
    clocked(tmp_path, save_checkpoints_steps=10).train(train_input_fn)
  # What the checkpoint itself takes is in it.
  assert run_state(tmp_path)["trained_seconds"] == 3 + 10 + 9 * 2 + 3
  assert run_state(tmp_path)["save_seconds"] == 3
  time = MadeUpTime()
  assert clocked(tmp_path, 60, time).train(train_input_fn).trained_steps == 1 + (26 - 10 - 3) // 2
  assert time.seconds <= 1000 + 26


@pytest.mark.ci
def test_slower_steps_end_it_sooner(tmp_path):
  time = MadeUpTime()
  estimator = clocked(tmp_path, 60, time)
  advance = estimator.config.clock.step

  @contextlib.contextmanager
  def slower():
    time.step *= 1.5
    with advance():
      yield

  estimator.config.clock.step = slower
  estimator.train(train_input_fn)
  assert 1060 <= time.seconds < 1060 + time.step + time.save
  assert run_state(tmp_path)["trained_seconds"] == 60


def test_evaluations_do_not_count(tmp_path):
  time = MadeUpTime()
  estimator = clocked(tmp_path, 60, time)
  evaluate_now = estimator._evaluate_now

  def slow_evaluation(spec):
    time.seconds += 500
    return evaluate_now(spec)

  estimator._evaluate_now = slow_evaluation
  spec = EvalSpec(eval_input_fn, 10, "eval_loss", higher_is_better=False, keep_best=False)
  estimator.train(train_input_fn, eval_spec=spec)
  assert estimator.trained_steps == 23
  assert scalars_in(tmp_path / "eval").keys() == {10, 20, 23}


def test_the_rate_goes_by_the_clock(tmp_path):
  clocked(tmp_path, model=model_with_rate, save_summary_steps=1).train(train_input_fn)
  rates = [s["learning_rate"] for _, s in sorted(scalars_in(tmp_path).items())]
  # The last checkpoint's 3 s are no steps: 57 s make the run, a fifth of them warm-up.
  progress = np.array([3.0, *(13 + 2 * np.arange(22))]) / 57
  np.testing.assert_allclose(
    rates, np.where(progress < 0.2, progress / 0.2, 1 - progress), rtol=1e-5
  )


@pytest.mark.ci
def test_data_and_dropout_go_by_the_step(tmp_path):
  clocked(tmp_path / "clock").train(train_input_fn)
  make(tmp_path / "steps").train(train_input_fn, 23)
  assert_same_tensors(*(finding.latest(str(tmp_path / x)) for x in ("clock", "steps")))


def test_either_steps_or_a_clock(tmp_path):
  with pytest.raises(ValueError, match="either max_steps or"):
    clocked(tmp_path).train(train_input_fn, 3)
  with pytest.raises(ValueError, match="either max_steps or"):
    make(tmp_path).train(train_input_fn)
  with pytest.raises(ValueError, match="seconds must be above 0, but is 0"):
    Clock(0)
  with pytest.raises(ValueError, match="one device and steps_per_loop=1"):
    RunConfig(str(tmp_path), clock=Clock(1), steps_per_loop=2)
