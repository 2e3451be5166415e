"""What happens between training steps: evaluation, divergence, signals, logs."""

import multiprocessing
import os
import signal
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import finding, reading
from bert.model import variables as vs
from bert.training.estimator import Estimator, EvalSpec, ModeKeys
from bert.training.training_loop import EXIT_CODE_SIGTERM, TrainingDivergedError
from tests.kit.event_files import scalars_in
from tests.kit.script_runs import assert_same_tensors, tensors
from tests.kit.toy_training import (
  eval_input_fn,
  make,
  model_fn,
  toy_train_op,
  train_input_fn,
)

# Evaluation during training.


METRICS = [0.5, 0.7, 0.7, 0.6, 0.9, 0.1]


def scripted_eval_spec(**more):
  """An evaluation whose metric at step n is `METRICS[n - 1]`."""
  return EvalSpec(eval_input_fn, every_steps=1, **{"metric": "scripted", **more})


def scripted(model_dir, **config):
  model = make(model_dir, **config)
  evaluate_now = model._evaluate_now

  def scripted_evaluation(spec):
    results = evaluate_now(spec)
    return {**results, "scripted": METRICS[results["global_step"] - 1]}

  model._evaluate_now = scripted_evaluation
  return model


def test_best_weights_are_kept(tmp_path):
  scripted(tmp_path, save_checkpoints_steps=1).train(train_input_fn, 6, scripted_eval_spec())
  assert [step for step, _ in finding.list_checkpoints(str(tmp_path / "best"))] == [5]
  best, whole = (tensors(str(tmp_path / x / "model.ckpt-5")) for x in ("best", "."))
  assert best.keys() == {"global_step", "toy/bias", "toy/embeddings", "toy/kernel"}
  for name in best:
    np.testing.assert_array_equal(best[name], whole[name])


def test_patience_ends_training_and_survives_a_resumption(tmp_path, caplog):
  spec = scripted_eval_spec(patience=2)
  scripted(tmp_path / "a").train(train_input_fn, 6, spec)
  assert finding.latest(str(tmp_path / "a")).endswith("-4")
  scripted(tmp_path / "b").train(train_input_fn, 3, spec)  # One evaluation without improvement.
  scripted(tmp_path / "b").train(train_input_fn, 6, spec)
  assert finding.latest(str(tmp_path / "b")).endswith("-4")
  with caplog.at_level("INFO", logger="absl"):
    scripted(tmp_path / "b").train(train_input_fn, 6, spec)
  assert "stopped early, at step 4" in caplog.text
  states = [reading.read_state(str(tmp_path / x / "model.ckpt-4"))["run"] for x in "ab"]
  assert states[0] == states[1]
  assert (states[0]["best_value"], states[0]["best_step"]) == (0.7, 2)


def test_evaluating_in_between_changes_no_bit_of_training(tmp_path):
  make(tmp_path / "a", {"dropout": 1}).train(train_input_fn, 6)
  spec = EvalSpec(eval_input_fn, every_steps=2, metric="eval_loss", higher_is_better=False)
  make(tmp_path / "b", {"dropout": 1}).train(train_input_fn, 6, spec)
  assert_same_tensors(*(str(tmp_path / x / "model.ckpt-6") for x in "ab"))


def test_unknown_metric_lists_the_known(tmp_path):
  with pytest.raises(ValueError, match=r"eval_f1.*eval_loss"):
    make(tmp_path).train(train_input_fn, 2, EvalSpec(eval_input_fn, 1, metric="eval_f1"))


# Losses that are not finite, and signals.


@pytest.mark.parametrize("steps_per_loop", [1, 10])
def test_a_loss_that_is_not_finite_stops_at_its_step_and_saves_nothing(tmp_path, steps_per_loop):
  def input_fn(params):
    def spoil(index, batch):
      return {**batch, "label_ids": tf.cast(batch["label_ids"], tf.float32) + bad[index]}

    bad = tf.constant([0.0] * 6 + [np.nan] + [0.0] * 10)
    return train_input_fn(params).enumerate().map(spoil)

  model = make(tmp_path, steps_per_loop=steps_per_loop, save_checkpoints_steps=5)
  with pytest.raises(TrainingDivergedError, match=r"loss of step 7 is nan.*after step 5"):
    model.train(input_fn, 15)
  assert [step for step, _ in finding.list_checkpoints(str(tmp_path))] == [5]
  make(tmp_path).train(train_input_fn, 6)


@pytest.mark.parametrize("steps_per_loop", [1, 4])
def test_the_batch_of_a_loss_that_is_not_finite_is_saved(tmp_path, steps_per_loop):
  def input_fn(params):
    return train_input_fn(params).map(
      lambda batch: {**batch, "name": tf.strings.as_string(batch["label_ids"])}
    )

  def named_model_fn(features, labels, mode, params):
    spec = model_fn(features, labels, mode, params)
    bad = tf.where(vs.get_global_step() == 6, np.nan, 1.0)
    spec.train_op = toy_train_op(spec.loss * bad)
    spec.loss *= bad
    return spec

  model = make(tmp_path, {"dropout": 1}, steps_per_loop=steps_per_loop, save_checkpoints_steps=5)
  model = Estimator(named_model_fn, model.config, model.params)
  with pytest.raises(TrainingDivergedError, match=r"7 is nan.*diverged_batch-7\.npz; numpy"):
    model.train(input_fn, 15)
  [expected] = input_fn({"seed": 12345, "skip_examples": 24, "batch_size": 4}).take(1)
  with np.load(tmp_path / "diverged_batch-7.npz", allow_pickle=False) as saved:
    assert sorted(saved.files) == ["input_ids", "label_ids", "name"]
    for name in saved.files:
      np.testing.assert_array_equal(saved[name], expected[name].numpy().astype(saved[name].dtype))


def train_with_a_signal(folder, number):
  """Trains until it sends itself a signal; a process of its own, which may die of it."""
  before, sent = signal.getsignal(number), []

  def input_fn(params):
    def maybe_stop(index):
      if index == 4 and not sent and not params["skip_examples"]:
        while signal.getsignal(number) is before:  # The data are read ahead of the first step.
          time.sleep(0.01)
        sent.append(number)  # A second signal would end the process at once.
        os.kill(os.getpid(), number)
      return index

    return (
      train_input_fn(params)
      .enumerate()
      .map(lambda i, batch: (tf.py_function(maybe_stop, [i], tf.int64), batch))
      .map(lambda i, batch: batch)
    )

  try:
    make(folder, {"dropout": 1}).train(input_fn, 500)
  except KeyboardInterrupt:
    sys.exit(130)
  finally:
    assert signal.getsignal(number) is before


@pytest.mark.parametrize(
  "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.ci)]
)
def test_a_signal_saves_and_leaves_and_the_run_goes_on_exactly(tmp_path, number):
  process = multiprocessing.get_context("spawn").Process(
    target=train_with_a_signal, args=(tmp_path / "a", number)
  )
  process.start()
  process.join()
  assert process.exitcode == (EXIT_CODE_SIGTERM if number == signal.SIGTERM else 130)
  step = finding.list_checkpoints(str(tmp_path / "a"))[-1][0]
  assert 0 < step < 50  # Before the data end, too.
  make(tmp_path / "a", {"dropout": 1}).train(train_input_fn, step + 3)
  make(tmp_path / "b", {"dropout": 1}).train(train_input_fn, step + 3)
  assert_same_tensors(*(finding.latest(str(tmp_path / x)) for x in "ab"))


# What is written and shown.


def test_checkpoints_at_each_period_and_the_end(tmp_path):
  make(tmp_path, save_checkpoints_steps=4, keep_checkpoint_max=3).train(train_input_fn, 10)
  assert [step for step, _ in finding.list_checkpoints(str(tmp_path))] == [4, 8, 10]
  make(tmp_path / "short").train(train_input_fn, 2)
  assert [step for step, _ in finding.list_checkpoints(str(tmp_path / "short"))] == [2]
  make(tmp_path / "all", keep_checkpoint_max=0).train(train_input_fn, 2)
  assert [step for step, _ in finding.list_checkpoints(str(tmp_path / "all"))] == [0, 2]


def test_summaries_for_tensorboard(tmp_path):
  make(tmp_path, save_summary_steps=2).train(train_input_fn, 5)
  written = scalars_in(tmp_path)
  assert written.keys() == {2, 4, 5}
  assert written[4].keys() == {
    "loss",
    "learning_rate",
    "mean_score",
    "global_step/sec",
    "examples/sec",
  }
  assert written[4]["learning_rate"] == pytest.approx(0.1 / 1.3)
  assert written[4]["examples/sec"] == pytest.approx(4 * written[4]["global_step/sec"], rel=1e-4)


def make_reporting(model_dir, summaries, **config):
  """A model whose summaries are `summaries(features)`; shows `costly`, and ids per second."""

  def reporting_model_fn(features, labels, mode, params):
    spec = model_fn(features, labels, mode, params)
    if mode == ModeKeys.TRAIN:
      spec.summaries = summaries(features)
      spec.progress = ["costly", "learning_rate"]
      spec.rates = {"ids/sec": "ids_per_example"}
    return spec

  model = make(model_dir, **config)
  return Estimator(reporting_model_fn, model.config, model.params)


def ids_per_example(features):
  counts = tf.reduce_sum(tf.cast(features["input_ids"] > 0, tf.float32), 1)
  return {"ids_per_example": tf.reduce_mean(counts)}


@pytest.mark.parametrize("steps_per_loop", [1, 3])
def test_rates_count_every_step(tmp_path, steps_per_loop):
  """Not only the one whose scalars are written: sequences differ in length."""
  model = make_reporting(
    tmp_path,
    lambda features: {"costly": 0.0, **ids_per_example(features)},
    save_summary_steps=6,
    steps_per_loop=steps_per_loop,
  )
  model.train(train_input_fn, 6)
  batches = list(train_input_fn({"seed": 12345, "skip_examples": 0, "batch_size": 4}).take(6))
  counts = [np.count_nonzero(batch["input_ids"]) for batch in batches]
  assert len(set(counts)) > 1
  written = scalars_in(tmp_path)[6]
  assert written["ids/sec"] / written["examples/sec"] == pytest.approx(sum(counts) / 24, rel=1e-5)


def test_plain_lines_where_there_is_no_terminal(tmp_path, caplog):
  with caplog.at_level("INFO", logger="absl"):
    make(tmp_path, log_every_steps=2).train(train_input_fn, 5)
  lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("step ")]
  assert [line.split(",")[0] for line in lines] == ["step 2/5", "step 4/5", "step 5/5"]
  assert all("examples/s" in line and "loss" in line and "left" in line for line in lines)
