"""Training, evaluation and prediction with a toy model."""

import gc
import os
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from bert.checkpoints import finding, reading
from bert.io import atomic_files, record_files
from bert.training import input_pipeline
from bert.training.estimator import Estimator, EstimatorSpec, EvalSpec
from tests.kit.event_files import scalars_in
from tests.kit.paths import ROOT
from tests.kit.script_runs import assert_same_tensors, tensors
from tests.kit.toy_training import (
  eval_input_fn,
  examples,
  make,
  model_fn,
  toy_train_op,
  train_input_fn,
)


def test_train_evaluate_predict(tmp_path):
  model = make(tmp_path)
  before = make(tmp_path / "other")
  before.train(train_input_fn, max_steps=1)
  assert model.train(train_input_fn, max_steps=60) is model
  results = model.evaluate(eval_input_fn)
  assert results["global_step"] == 60
  assert results["eval_loss"] < before.evaluate(eval_input_fn)["eval_loss"]
  predictions = list(model.predict(eval_input_fn))
  assert len(predictions) == 10
  assert predictions[0]["score"].shape == ()
  targets = np.array([row["label_ids"] for row in examples(10)])
  errors = (np.array([p["score"] for p in predictions]) - targets) ** 2
  assert results["eval_loss"] == pytest.approx(errors.mean(), rel=1e-5)


def test_a_training_that_is_over_leaves_no_graph_behind(tmp_path):
  """TensorFlow would keep one for its custom gradients."""

  def smooth_model_fn(features, labels, mode, params):
    spec = model_fn(features, labels, mode, params)
    same = tf.custom_gradient(lambda loss: (tf.identity(loss), lambda upstream: upstream))
    spec.train_op = toy_train_op(same(spec.loss))
    return spec

  def number_of_graphs():
    gc.collect()
    return sum(isinstance(each, FuncGraph) for each in gc.get_objects())

  model = make(tmp_path)
  before = number_of_graphs()
  Estimator(smooth_model_fn, model.config, model.params).train(train_input_fn, 2)
  assert number_of_graphs() <= before


# Steps per loop and strategies.


@pytest.mark.parametrize("steps_per_loop", [3, 100])
def test_steps_per_loop_changes_no_bit(tmp_path, steps_per_loop):
  config = {"save_checkpoints_steps": 4, "save_summary_steps": 2}
  make(tmp_path / "a", {"dropout": 1}, **config).train(train_input_fn, 11)
  config["steps_per_loop"] = steps_per_loop
  make(tmp_path / "b", {"dropout": 1}, **config).train(train_input_fn, 11)
  steps = [[step for step, _ in finding.list_checkpoints(str(tmp_path / x))] for x in "ab"]
  assert steps[0] == steps[1] == [4, 8, 11]
  for step in steps[0]:
    assert_same_tensors(*(str(tmp_path / x / f"model.ckpt-{step}") for x in "ab"))
  states = [reading.read_state(str(tmp_path / x / "model.ckpt-11")) for x in "ab"]
  assert states[0] == states[1]
  written = [scalars_in(tmp_path / x) for x in "ab"]
  assert written[0].keys() == written[1].keys() == {2, 4, 6, 8, 10, 11}
  for step in written[0]:
    for tag in ("loss", "learning_rate", "mean_score"):
      assert written[0][step][tag] == written[1][step][tag]


TWO_REPLICAS = """
import sys, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from bert.model import heads
from bert.training import distribution
from tests.kit import toy_training as t
strategy = distribution.create_strategy("mirrored")

logits = tf.random.stateless_normal([2, 3, 4], [1, 2])
labels = tf.constant([[0, 1, 2], [3, -1, -1]])  # The replicas have different numbers of labels.

def token_loss():
  def replica():
    index = tf.distribute.get_replica_context().replica_id_in_sync_group
    rows = slice(index, index + 1)
    return heads.get_token_loss(logits[rows], labels[rows])[0]
  return strategy.reduce("MEAN", strategy.run(replica), axis=None)

def in_a_loop():
  body = lambda step, loss: (step + 1, token_loss())
  return tf.while_loop(lambda step, loss: step < 3, body, [0, 0.0])[1]

def nested():
  return tf.function(token_loss, autograph=False)()

losses = [tf.function(each, autograph=False)() for each in (token_loss, in_a_loop, nested)]
model = t.make(sys.argv[1], strategy=strategy, steps_per_loop=2)
model.train(t.train_input_fn, 3)
model.train(t.train_input_fn, 5)
results = model.evaluate(t.eval_input_fn)
scores = [float(p["score"]) for p in model.predict(t.eval_input_fn)]
results.pop("table")
results["whole"] = heads.get_token_loss(logits, labels)[0]
np.savez(sys.argv[1] + "/out.npz", scores=scores, token_losses=losses, **results)
"""


@pytest.mark.ci
def test_two_replicas_equal_one_device(tmp_path):
  done = subprocess.run(
    [sys.executable, "-c", TWO_REPLICAS, str(tmp_path / "two")],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  model = make(tmp_path / "one")
  model.train(train_input_fn, 5)
  one, two = (tensors(str(tmp_path / x / "model.ckpt-5")) for x in ("one", "two"))
  assert one.keys() == two.keys()
  for name in one:
    np.testing.assert_allclose(two[name], one[name], rtol=1e-5, atol=1e-6, err_msg=name)
  out = np.load(tmp_path / "two" / "out.npz")
  results = model.evaluate(eval_input_fn)
  for name in ("loss", "eval_loss", "eval_ids", "global_step"):
    assert out[name] == pytest.approx(results[name], rel=1e-5)
  scores = [p["score"] for p in model.predict(eval_input_fn)]
  np.testing.assert_allclose(out["scores"], scores, rtol=1e-5)
  # The mean over all labels, in a loop of several steps and in a nested function, too.
  np.testing.assert_allclose(out["token_losses"], np.full(3, out["whole"]), rtol=1e-6)
  state = reading.read_state(str(tmp_path / "two" / "model.ckpt-5"))
  assert state["run"]["examples"] == 20


# Evaluation.


def test_metrics_see_the_whole_set_at_once(tmp_path):
  model = make(tmp_path)
  model.train(train_input_fn, 3)
  results = model.evaluate(eval_input_fn)
  rows = examples(10)
  errors = [
    (p["score"] - row["label_ids"]) ** 2
    for p, row in zip(model.predict(eval_input_fn), rows, strict=True)
  ]
  batches = [np.mean(errors[:4]), np.mean(errors[4:8]), np.mean(errors[8:])]
  assert results["loss"] == pytest.approx(np.mean(batches), rel=1e-5)  # Short batch counts in full.
  assert results["eval_loss"] == pytest.approx(np.mean(errors), rel=1e-5)
  assert results["eval_ids"] == sum(row["input_ids"].sum() for row in rows)  # Lengths differ.
  assert results["table"] == [1, 2]
  assert all(isinstance(results[k], float) for k in ("loss", "eval_loss", "eval_ids"))
  model.evaluate(eval_input_fn, name="mismatched")
  assert scalars_in(tmp_path / "eval")[3]["eval_loss"] == pytest.approx(results["eval_loss"])
  assert "loss" in scalars_in(tmp_path / "eval_mismatched")[3]
  assert model.evaluate(eval_input_fn, steps=2)["loss"] == pytest.approx(np.mean(batches[:2]))


def test_empty_data_are_refused(tmp_path):
  def empty(params):
    return eval_input_fn(params).take(0)

  with pytest.raises(ValueError, match="nothing to evaluate"):
    make(tmp_path).evaluate(empty)
  with pytest.raises(ValueError, match="nothing to train on"):
    make(tmp_path).train(empty, 3)


@pytest.mark.parametrize("steps_per_loop", [1, 3])
def test_training_ends_with_its_data(tmp_path, caplog, steps_per_loop):
  model = make(tmp_path, steps_per_loop=steps_per_loop)
  model.train(lambda params: train_input_fn(params).take(5), 20)
  assert "ended at step 5 of 20" in caplog.text
  assert finding.latest(str(tmp_path)).endswith("-5")
  assert reading.read_state(finding.latest(str(tmp_path)))["run"]["examples"] == 20


# What can go wrong.


def test_a_second_run_in_one_folder_is_refused(tmp_path):
  holder = subprocess.Popen(
    [
      sys.executable,
      "-c",
      "import sys; from bert.io import atomic_files\n"
      "with atomic_files.hold_folder(sys.argv[1]): print(flush=True), sys.stdin.read()",
      str(tmp_path),
    ],
    cwd=ROOT,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
  )
  holder.stdout.readline()
  with pytest.raises(atomic_files.FolderInUseError, match=f"in use by process {holder.pid} "):
    make(tmp_path).train(train_input_fn, 1)
  holder.communicate(b"")
  make(tmp_path).train(train_input_fn, 1)
  assert not (tmp_path / ".lock").exists()


def test_damaged_records_are_named_by_every_verb(tmp_path):
  path = tmp_path / "data.tf_record"
  rows = [{"input_ids": [1, 2, 3], "label_ids": 1}] * 40
  record_files.write_records(path, rows)
  features = {
    "input_ids": tf.io.FixedLenFeature([3], tf.int64),
    "label_ids": tf.io.FixedLenFeature([], tf.int64),
  }
  fns = [input_pipeline.record_input_fn(path, features, training, False) for training in (1, 0)]
  data = bytearray(path.read_bytes())
  data[len(data) // 2] ^= 1
  path.write_bytes(data)
  for attempt in (
    lambda model: model.train(fns[0], 30),
    lambda model: model.evaluate(fns[1]),
    lambda model: list(model.predict(fns[1])),
  ):
    with pytest.raises(record_files.RecordError, match=r"data\.tf_record, record 2\d: "):
      attempt(make(tmp_path / "run"))


def test_bad_options_are_named(tmp_path):
  with pytest.raises(ValueError, match="steps_per_loop must be at least 1"):
    make(tmp_path, steps_per_loop=0)
  with pytest.raises(ValueError, match="every_steps must be at least 1"):
    EvalSpec(eval_input_fn, 0)
  with pytest.raises(ValueError, match="steps must be at least 1"):
    EvalSpec(eval_input_fn, 1, steps=0)
  with pytest.raises(ValueError, match="Must specify max_steps > 0"):
    make(tmp_path).train(train_input_fn, 0)

  def no_train_op(features, labels, mode, params):
    spec = model_fn(features, labels, mode, params)
    return EstimatorSpec(mode, loss=spec.loss)

  model = make(tmp_path)
  with pytest.raises(ValueError, match="no train_op"):
    Estimator(no_train_op, model.config, model.params).train(train_input_fn, 1)


def _does_not_fit(params):
  raise tf.errors.ResourceExhaustedError(
    None, None, f"OOM when allocating tensor with shape[{params['batch_size']},9] and type float"
  )


def test_missing_memory_is_one_line_that_says_what_to_lower(tmp_path):
  model = make(tmp_path, {"train_batch_size": 6})
  intact = f"max_seq_length. The checkpoints in {tmp_path} are intact."
  with pytest.raises(MemoryError) as caught:
    model.train(_does_not_fit, 2)
  assert str(caught.value) == (
    "Out of memory for a tensor [6,9] of float (0.0 GiB). Lower train_batch_size=6, raise "
    f"gradient_accumulation_steps=1 (each batch in N parts) or lower {intact}"
  )
  for name, work in (
    ("eval_batch_size", lambda: model.evaluate(_does_not_fit)),
    ("predict_batch_size", lambda: list(model.predict(_does_not_fit))),
    (
      "eval_batch_size",
      lambda: model.train(train_input_fn, 1, EvalSpec(_does_not_fit, 1, "eval_loss")),
    ),
  ):
    with pytest.raises(MemoryError) as caught:
      work()
    assert str(caught.value).endswith(f"GiB). Lower {name}=4 or lower {intact}")


def test_a_checkpoint_that_a_training_removes_meanwhile_gives_way_to_the_newest(tmp_path):
  make(tmp_path).train(train_input_fn, 2)
  model = make(tmp_path)

  def slow_input_fn(params):
    make(tmp_path, keep_checkpoint_max=1).train(train_input_fn, 4)
    assert finding.list_checkpoints(str(tmp_path)) == [(4, f"{tmp_path}/model.ckpt-4")]
    return eval_input_fn(params)

  assert model.evaluate(slow_input_fn)["global_step"] == 4
  with pytest.raises(ValueError, match=r"model\.ckpt-2"):
    model.evaluate(eval_input_fn, checkpoint_path=f"{tmp_path}/model.ckpt-2")
