"""Training, evaluation, prediction and resumption of a toy model.

Alone: python -m pytest tests/training/estimator_test.py
"""

import gc
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.func_graph import FuncGraph

from bert.checkpoints import checkpoint
from bert.io import atomic_files, record_files
from bert.model import variables as vs
from bert.optimization import TrainOp
from bert.training import estimator as estimator_lib
from bert.training import input_pipeline
from bert.training.estimator import (
  Estimator,
  EstimatorSpec,
  EvalSpec,
  ModeKeys,
  ResumeMismatchError,
  RunConfig,
  TrainingDivergedError,
)
from bert.training.gradient_accumulation import accumulate
from tests.kit.paths import ROOT

TRACES = []


def toy_train_op(loss):
  """Momentum under Adam's slot names, written out, with a rate that depends on the step."""
  store, step = vs.current_store(), vs.get_global_step()
  names = list(store.trainable_variables)
  trained = list(store.trainable_variables.values())
  rate = 0.1 / (1.0 + 0.1 * tf.cast(step, tf.float32))

  def apply(gradients):
    for name, variable, gradient in zip(names, trained, gradients, strict=True):
      slots = [
        store.get_variable(
          f"{name}/{slot}", variable.shape.as_list(), vs.zeros_initializer, tf.float32, False
        )
        for slot in ("adam_m", "adam_v")
      ]
      gradient = tf.convert_to_tensor(gradient)
      slots[0].assign(0.9 * slots[0] + gradient)
      slots[1].assign(0.9 * slots[1] + gradient**2)
      variable.assign_sub(rate * slots[0])
    step.assign_add(1)

  return TrainOp(tf.gradients(loss, trained), trained, rate, apply)


def model_fn(features, labels, mode, params):
  """Mean embedding of some ids, and a linear layer; dropout where `params["dropout"]` asks."""
  assert labels is None
  TRACES.append(mode)
  ids, target = features["input_ids"], tf.cast(features["label_ids"], tf.float32)
  normal = vs.truncated_normal_initializer(0.5)
  with vs.variable_scope("toy"):
    table = vs.get_variable("embeddings", [20, 4], normal)
    kernel = vs.get_variable("kernel", [4, 1], normal)
    bias = vs.get_variable("bias", [1])
  mask = tf.cast(ids > 0, tf.float32)[..., None]
  pooled = tf.reduce_sum(tf.gather(table, ids) * mask, 1) / tf.reduce_sum(mask, 1)
  if mode == ModeKeys.TRAIN and params.get("dropout"):
    kept = tf.random.stateless_uniform(tf.shape(pooled), vs.next_random_seed()) > 0.5
    pooled = pooled * tf.cast(kept, tf.float32)
  score = (pooled @ kernel + bias)[:, 0]
  if mode == ModeKeys.PREDICT:
    return EstimatorSpec(
      mode, predictions={"score": score, "ids": ids}, init_checkpoint=params.get("init")
    )
  errors = tf.square(score - target) * params.get("scale", 1.0)
  loss = tf.reduce_mean(errors)
  if mode == ModeKeys.EVAL:

    def metric_fn(error, ids):
      return {"eval_loss": np.mean(error), "eval_ids": float(ids.sum()), "table": [1, 2]}

    return EstimatorSpec(
      mode,
      loss=loss,
      eval_metrics=(metric_fn, {"error": errors, "ids": ids}),
      init_checkpoint=params.get("init"),
    )
  return EstimatorSpec(
    mode,
    loss=loss,
    train_op=toy_train_op(loss),
    init_checkpoint=params.get("init"),
    summaries={"mean_score": tf.reduce_mean(score)},
  )


def examples(count=40):
  rng = np.random.default_rng(0)
  rows = [rng.integers(1, 20, rng.integers(1, 9)) for _ in range(count)]
  return [{"input_ids": ids, "label_ids": int(ids.mean() > 10)} for ids in rows]


def dataset(rows, batch_size, drop_remainder):
  signature = {
    "input_ids": tf.TensorSpec([None], tf.int32),
    "label_ids": tf.TensorSpec([], tf.int32),
  }
  return tf.data.Dataset.from_generator(rows.__iter__, output_signature=signature).padded_batch(
    batch_size, drop_remainder=drop_remainder
  )


def train_input_fn(params):
  rows = examples()
  order = np.random.default_rng(params["seed"]).integers(0, len(rows), 1000)
  rows = [rows[i] for i in order[params["skip_examples"] :]]
  return dataset(rows, params["batch_size"], True)


def eval_input_fn(params):
  return dataset(examples(10), params["batch_size"], False)


PARAMS = {"train_batch_size": 4, "eval_batch_size": 4, "predict_batch_size": 4}


def make(model_dir, params=None, **config):
  TRACES.clear()
  config = {"save_checkpoints_steps": 1000, "show_progress": False, **config}
  return Estimator(
    model_fn, RunConfig(model_dir=str(model_dir), **config), {**PARAMS, **(params or {})}
  )


def all_values(prefix):
  return {name: tf.train.load_variable(prefix, name) for name, _ in tf.train.list_variables(prefix)}


def assert_same_values(first, second):
  assert first.keys() == second.keys()
  for name in first:
    np.testing.assert_array_equal(first[name], second[name], err_msg=name)


def scalars(directory):
  """step -> {tag: value} of the event files of a directory."""
  found = {}
  for path in sorted(tf.io.gfile.glob(os.path.join(str(directory), "events.*"))):
    for event in tf.compat.v1.train.summary_iterator(path):
      for value in event.summary.value:
        found.setdefault(event.step, {})[value.tag] = float(tf.make_ndarray(value.tensor))
  return found


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


def test_five_plus_five_steps_are_ten_bit_for_bit(tmp_path):
  params = {"dropout": True}
  make(tmp_path / "a", params, save_summary_steps=1).train(train_input_fn, 10)
  make(tmp_path / "b", params, save_summary_steps=1).train(train_input_fn, 5)
  make(tmp_path / "b", params, save_summary_steps=1).train(train_input_fn, 10)
  straight, resumed = (checkpoint.latest(str(tmp_path / x)) for x in "ab")
  assert_same_values(all_values(straight), all_values(resumed))
  assert all_values(straight)["toy/kernel/adam_m"].any()
  assert checkpoint.read_state(straight) == checkpoint.read_state(resumed)
  assert checkpoint.read_state(straight)["run"]["examples"] == 40
  losses = [[s["loss"] for _, s in sorted(scalars(tmp_path / x).items())] for x in "ab"]
  assert len(losses[0]) == 10
  assert losses[0] == losses[1]


# Resumption.


def test_resuming_reads_the_next_examples(tmp_path):
  seen = []

  def input_fn(params):
    seen.append((params["skip_examples"], params["seed"], params["batch_size"]))
    return train_input_fn(params)

  make(tmp_path, seed=3).train(input_fn, 5)
  make(tmp_path, seed=4).train(input_fn, 7)  # The seed of the run so far stays in force.
  make(tmp_path, {"train_batch_size": 8}).train(input_fn, 9)
  make(tmp_path).train(input_fn, 10)
  assert seen == [(0, 3, 4), (20, 3, 4), (28, 3, 8), (44, 3, 4)]


def test_finished_run_is_skipped(tmp_path, caplog):
  make(tmp_path).train(train_input_fn, 3)
  with caplog.at_level("INFO", logger="absl"):
    make(tmp_path).train(None, 3)
  assert "Skipping training since max_steps has already saved." in caplog.text


def test_one_estimator_goes_on_like_two(tmp_path):
  model = make(tmp_path / "a")
  model.train(train_input_fn, 3).train(train_input_fn, 6)
  make(tmp_path / "b").train(train_input_fn, 6)
  assert_same_values(*(all_values(checkpoint.latest(str(tmp_path / x))) for x in "ab"))


def test_another_model_is_refused_and_other_settings_only_told(tmp_path, caplog):
  facts = {"fingerprint": {"hidden_size": 4, "labels": ("0", "1")}, "informative": {"epochs": 3}}
  make(tmp_path, **facts).train(train_input_fn, 2)
  with pytest.raises(
    ResumeMismatchError, match=r"labels was \['0', '1'\], now \['0', '2'\].*output_dir"
  ):
    make(tmp_path, fingerprint={"hidden_size": 4, "labels": ["0", "2"]}).train(train_input_fn, 4)
  with caplog.at_level("INFO", logger="absl"):
    make(tmp_path, **{**facts, "informative": {"epochs": 4}}).train(train_input_fn, 4)
  assert "epochs was 3, now 4" in caplog.text
  assert checkpoint.latest(str(tmp_path)).endswith("-4")


def test_a_checkpoint_without_sidecar_is_resumed_by_its_step(tmp_path, caplog):
  make(tmp_path).train(train_input_fn, 5)
  os.remove(tmp_path / "model.ckpt-5.state.json")
  make(tmp_path).train(train_input_fn, 8)
  assert "written by another program" in caplog.text
  assert "20 examples" in caplog.text
  make(tmp_path / "straight").train(train_input_fn, 8)
  assert_same_values(
    all_values(str(tmp_path / "model.ckpt-8")), all_values(str(tmp_path / "straight/model.ckpt-8"))
  )


def resave(directory, step, drop):
  """Writes the newest checkpoint again without the names that `drop` picks."""
  newest = checkpoint.latest(str(directory))
  values = {name: v for name, v in all_values(newest).items() if not drop(name)}
  checkpoint.save(str(directory), step, values, checkpoint.read_state(newest))
  return values


def is_slot(name):
  return name.endswith(("adam_m", "adam_v"))


def test_weights_alone_are_resumed_with_new_slots(tmp_path, caplog):
  model = make(tmp_path)
  model.train(train_input_fn, 5)
  saved = resave(tmp_path, 5, drop=is_slot)
  model.train(train_input_fn, 6)  # Its own slots, of five steps, must not live on.
  assert "no optimizer slots" in caplog.text
  after = all_values(str(tmp_path / "model.ckpt-6"))
  gradient = after["toy/bias/adam_m"]  # One step of momentum from zero is the gradient itself.
  np.testing.assert_allclose(after["toy/bias/adam_v"], gradient**2, rtol=1e-5)
  moved = saved["toy/bias"] - after["toy/bias"]
  np.testing.assert_allclose(moved, np.float32(0.1 / 1.5) * gradient, rtol=1e-5)


def test_some_slots_missing_is_refused(tmp_path):
  make(tmp_path).train(train_input_fn, 5)
  resave(tmp_path, 5, drop=lambda name: name == "toy/bias/adam_m")
  with pytest.raises(ResumeMismatchError, match="toy/bias/adam_m"):
    make(tmp_path).train(train_input_fn, 6)


# Where values come from.


def test_precedence_checkpoint_then_init_checkpoint_then_random(tmp_path, caplog):
  make(tmp_path / "source", seed=1).train(train_input_fn, 4)
  source = str(tmp_path / "source" / "model.ckpt-4")
  assert "all 3 variables are RANDOM" in caplog.text
  caplog.clear()

  params = {"init": source}
  make(tmp_path / "run", params).train(train_input_fn, 2)
  assert "RANDOM" not in caplog.text
  first, initial = all_values(source), all_values(str(tmp_path / "run" / "model.ckpt-0"))
  np.testing.assert_array_equal(first["toy/kernel"], initial["toy/kernel"])
  assert not initial["toy/kernel/adam_m"].any()  # Slots and step are those of a new run.
  assert initial["global_step"] == 0

  make(tmp_path / "run", {"init": str(tmp_path / "missing")}).train(train_input_fn, 3)
  assert checkpoint.latest(str(tmp_path / "run")).endswith("-3")
  with pytest.raises(checkpoint.CheckpointError, match="missing"):
    make(tmp_path / "other", {"init": str(tmp_path / "missing")}).train(train_input_fn, 3)


def test_evaluation_takes_the_path_then_the_newest_then_init(tmp_path):
  model = make(tmp_path, save_checkpoints_steps=5)
  model.train(train_input_fn, 10)
  newest = model.evaluate(eval_input_fn)
  older = model.evaluate(eval_input_fn, checkpoint_path=str(tmp_path / "model.ckpt-5"))
  assert (newest["global_step"], older["global_step"]) == (10, 5)
  assert newest["loss"] != older["loss"]
  assert model.evaluate(eval_input_fn) == newest
  fresh = make(tmp_path / "empty", {"init": str(tmp_path / "model.ckpt-5")})
  assert fresh.evaluate(eval_input_fn) == {**older, "global_step": 0}
  resave(tmp_path, 10, drop=lambda name: name == "toy/bias")
  with pytest.raises(checkpoint.CheckpointError, match="toy/bias: not in the checkpoint"):
    make(tmp_path).evaluate(eval_input_fn)  # and not with a random bias


def test_training_from_scratch_forgets_what_was_evaluated(tmp_path):
  make(tmp_path / "source", seed=1).train(train_input_fn, 4)
  model = make(tmp_path / "a")
  model.evaluate(eval_input_fn, checkpoint_path=str(tmp_path / "source"))
  model.train(train_input_fn, 2)
  make(tmp_path / "b").train(train_input_fn, 2)
  assert_same_values(*(all_values(str(tmp_path / x / "model.ckpt-0")) for x in "ab"))


def test_variables_by_name(tmp_path):
  model = make(tmp_path)
  model.train(train_input_fn, 2)
  assert "toy/kernel/adam_v" in model.get_variable_names()
  np.testing.assert_array_equal(
    model.get_variable_value("toy/kernel"), model.store.variables["toy/kernel"].numpy()
  )


# One trace, whatever the length of batches.


def test_each_mode_is_traced_once(tmp_path):
  model = make(tmp_path, save_checkpoints_steps=3)
  lengths = {b["input_ids"].shape[1] for b in eval_input_fn({"batch_size": 4})}
  assert len(lengths) > 1
  model.train(train_input_fn, 10)
  model.train(train_input_fn, 12)
  model.evaluate(eval_input_fn)
  model.evaluate(eval_input_fn)
  list(model.predict(eval_input_fn))
  list(model.predict(eval_input_fn))
  assert sorted(TRACES) == ["eval", "infer", "train"]


# Steps per loop, gradient accumulation, strategies.


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


@pytest.mark.parametrize("steps_per_loop", [3, 100])
def test_steps_per_loop_changes_no_bit(tmp_path, steps_per_loop):
  config = {"save_checkpoints_steps": 4, "save_summary_steps": 2}
  make(tmp_path / "a", {"dropout": 1}, **config).train(train_input_fn, 11)
  config["steps_per_loop"] = steps_per_loop
  make(tmp_path / "b", {"dropout": 1}, **config).train(train_input_fn, 11)
  steps = [[step for step, _ in checkpoint.list_checkpoints(str(tmp_path / x))] for x in "ab"]
  assert steps[0] == steps[1] == [0, 4, 8, 11]
  for step in steps[0]:
    assert_same_values(*(all_values(str(tmp_path / x / f"model.ckpt-{step}")) for x in "ab"))
  states = [checkpoint.read_state(str(tmp_path / x / "model.ckpt-11")) for x in "ab"]
  assert states[0] == states[1]
  told = [scalars(tmp_path / x) for x in "ab"]
  assert told[0].keys() == told[1].keys() == {2, 4, 6, 8, 10, 11}
  for step in told[0]:
    for tag in ("loss", "learning_rate", "mean_score"):
      assert told[0][step][tag] == told[1][step][tag]


@pytest.mark.parametrize("parts", [2, 4])
def test_accumulated_gradients_equal_those_of_the_whole_batch(tmp_path, parts):
  make(tmp_path / "a").train(train_input_fn, 5)
  make(tmp_path / "b", gradient_accumulation_steps=parts).train(train_input_fn, 5)
  whole, divided = (all_values(str(tmp_path / x / "model.ckpt-5")) for x in "ab")
  for name in whole:
    np.testing.assert_allclose(divided[name], whole[name], rtol=1e-5, atol=1e-6, err_msg=name)
  told = [scalars(tmp_path / x)[5]["loss"] for x in "ab"]
  assert told[0] == pytest.approx(told[1], rel=1e-5)


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


def test_one_device_strategy_equals_none(tmp_path):
  make(tmp_path / "a").train(train_input_fn, 3)
  strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
  model = make(tmp_path / "b", strategy=strategy)
  model.train(train_input_fn, 3)
  assert_same_values(*(all_values(str(tmp_path / x / "model.ckpt-3")) for x in "ab"))
  assert model.evaluate(eval_input_fn)["global_step"] == 3


TWO_REPLICAS = """
import sys, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
from bert.model import heads
from bert.training import distribution
from tests.training import estimator_test as t
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
  one, two = (all_values(str(tmp_path / x / "model.ckpt-5")) for x in ("one", "two"))
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
  state = checkpoint.read_state(str(tmp_path / "two" / "model.ckpt-5"))
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
  assert scalars(tmp_path / "eval")[3]["eval_loss"] == pytest.approx(results["eval_loss"])
  assert "loss" in scalars(tmp_path / "eval_mismatched")[3]
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
  assert checkpoint.latest(str(tmp_path)).endswith("-5")
  assert checkpoint.read_state(checkpoint.latest(str(tmp_path)))["run"]["examples"] == 20


# Evaluation during training.

METRICS = [0.5, 0.7, 0.7, 0.6, 0.9, 0.1]


def scripted_eval_spec(**more):
  """An evaluation whose metric at step n is `METRICS[n - 1]`."""
  return EvalSpec(eval_input_fn, every_steps=1, **{"metric": "scripted", **more})


def scripted(model_dir, **config):
  model = make(model_dir, **config)
  evaluate_now = model.evaluate_now

  def scripted_evaluation(input_fn, steps):
    results = evaluate_now(input_fn, steps)
    return {**results, "scripted": METRICS[results["global_step"] - 1]}

  model.evaluate_now = scripted_evaluation
  return model


def test_best_weights_are_kept(tmp_path):
  scripted(tmp_path, save_checkpoints_steps=1).train(train_input_fn, 6, scripted_eval_spec())
  assert [step for step, _ in checkpoint.list_checkpoints(str(tmp_path / "best"))] == [5]
  best, whole = (all_values(str(tmp_path / x / "model.ckpt-5")) for x in ("best", "."))
  assert best.keys() == {"global_step", "toy/bias", "toy/embeddings", "toy/kernel"}
  for name in best:
    np.testing.assert_array_equal(best[name], whole[name])


def test_an_endless_set_is_evaluated_for_some_batches(tmp_path):
  def endless(params):
    return eval_input_fn(params).repeat()

  spec = EvalSpec(endless, 3, "eval_loss", higher_is_better=False, steps=2)
  make(tmp_path).train(train_input_fn, 3, spec)
  expected = make(tmp_path).evaluate(endless, steps=2)
  assert scalars(tmp_path / "eval")[3]["eval_loss"] == pytest.approx(expected["eval_loss"])
  assert expected["eval_ids"] == sum(row["input_ids"].sum() for row in examples(8))


def test_lower_can_be_better(tmp_path):
  scripted(tmp_path).train(train_input_fn, 5, scripted_eval_spec(higher_is_better=False))
  assert checkpoint.latest(str(tmp_path / "best")).endswith("-1")


def test_patience_ends_training_and_survives_a_resumption(tmp_path, caplog):
  spec = scripted_eval_spec(patience=2)
  scripted(tmp_path / "a").train(train_input_fn, 6, spec)
  assert checkpoint.latest(str(tmp_path / "a")).endswith("-4")
  scripted(tmp_path / "b").train(train_input_fn, 3, spec)  # One evaluation without improvement.
  scripted(tmp_path / "b").train(train_input_fn, 6, spec)
  assert checkpoint.latest(str(tmp_path / "b")).endswith("-4")
  with caplog.at_level("INFO", logger="absl"):
    scripted(tmp_path / "b").train(train_input_fn, 6, spec)
  assert "stopped early, at step 4" in caplog.text
  states = [checkpoint.read_state(str(tmp_path / x / "model.ckpt-4"))["run"] for x in "ab"]
  assert states[0] == states[1]
  assert (states[0]["best_value"], states[0]["best_step"]) == (0.7, 2)


def test_evaluating_in_between_changes_no_bit_of_training(tmp_path):
  make(tmp_path / "a", {"dropout": 1}).train(train_input_fn, 6)
  spec = EvalSpec(eval_input_fn, every_steps=2, metric="eval_loss", higher_is_better=False)
  make(tmp_path / "b", {"dropout": 1}).train(train_input_fn, 6, spec)
  assert_same_values(*(all_values(str(tmp_path / x / "model.ckpt-6")) for x in "ab"))


def test_unknown_metric_lists_the_known(tmp_path):
  with pytest.raises(ValueError, match=r"eval_f1.*eval_loss"):
    make(tmp_path).train(train_input_fn, 2, EvalSpec(eval_input_fn, 1, metric="eval_f1"))


# What can go wrong.


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
  assert [step for step, _ in checkpoint.list_checkpoints(str(tmp_path))] == [0, 5]
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


def test_a_batch_that_cannot_be_saved_hides_no_divergence(tmp_path, monkeypatch):
  def full(self, step, batch):
    raise OSError("No space left on device")

  monkeypatch.setattr(Estimator, "save_batch", full)
  with pytest.raises(TrainingDivergedError, match=r"of step 1 is inf.*not be saved \(No space"):
    make(tmp_path, {"scale": np.inf}).train(train_input_fn, 2)


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


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_leaves_and_the_run_goes_on_exactly(tmp_path, number):
  def input_fn(params):
    def maybe_stop(index):
      if index == 4 and not params["skip_examples"]:
        os.kill(os.getpid(), number)
      return index

    return (
      train_input_fn(params)
      .enumerate()
      .map(lambda i, batch: (tf.py_function(maybe_stop, [i], tf.int64), batch))
      .map(lambda i, batch: batch)
    )

  before = signal.getsignal(number)
  with pytest.raises(SystemExit if number == signal.SIGTERM else KeyboardInterrupt) as caught:
    make(tmp_path / "a", {"dropout": 1}).train(input_fn, 500)
  assert signal.getsignal(number) is before
  if number == signal.SIGTERM:
    assert caught.value.code == estimator_lib.EXIT_CODE_SIGTERM == 143
  step = checkpoint.list_checkpoints(str(tmp_path / "a"))[-1][0]
  assert 0 < step < 50  # Before the data end, too.
  make(tmp_path / "a", {"dropout": 1}).train(input_fn, step + 3)
  make(tmp_path / "b", {"dropout": 1}).train(train_input_fn, step + 3)
  assert_same_values(*(all_values(checkpoint.latest(str(tmp_path / x))) for x in "ab"))


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


def test_errors_of_the_model_stay_what_they_are(tmp_path):
  def input_fn(params):
    return train_input_fn(params).map(lambda b: {**b, "input_ids": b["input_ids"] + 100})

  with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
    make(tmp_path).train(input_fn, 2)


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


# What is written and shown.


def test_checkpoints_at_zero_each_period_and_the_end(tmp_path):
  make(tmp_path, save_checkpoints_steps=4, keep_checkpoint_max=3).train(train_input_fn, 10)
  assert [step for step, _ in checkpoint.list_checkpoints(str(tmp_path))] == [4, 8, 10]
  make(tmp_path / "short").train(train_input_fn, 2)
  assert [step for step, _ in checkpoint.list_checkpoints(str(tmp_path / "short"))] == [0, 2]


def test_summaries_for_tensorboard(tmp_path):
  make(tmp_path, save_summary_steps=2).train(train_input_fn, 5)
  told = scalars(tmp_path)
  assert told.keys() == {2, 4, 5}
  assert told[4].keys() == {
    "loss",
    "learning_rate",
    "mean_score",
    "global_step/sec",
    "examples/sec",
  }
  assert told[4]["learning_rate"] == pytest.approx(0.1 / 1.3)
  assert told[4]["examples/sec"] == pytest.approx(4 * told[4]["global_step/sec"], rel=1e-4)


def make_telling(model_dir, summaries, **config):
  """A model whose summaries are `summaries(features)`; shows `costly`, and ids per second."""

  def telling_model_fn(features, labels, mode, params):
    spec = model_fn(features, labels, mode, params)
    if mode == ModeKeys.TRAIN:
      spec.summaries = summaries(features)
      spec.progress = ["costly", "learning_rate"]
      spec.rates = {"ids/sec": "ids_per_example"}
    return spec

  model = make(model_dir, **config)
  return Estimator(telling_model_fn, model.config, model.params)


def ids_per_example(features):
  counts = tf.reduce_sum(tf.cast(features["input_ids"] > 0, tf.float32), 1)
  return {"ids_per_example": tf.reduce_mean(counts)}


@pytest.mark.parametrize("config", [{}, {"steps_per_loop": 10}, {"gradient_accumulation_steps": 2}])
def test_costly_summaries_are_computed_only_where_they_are_told(tmp_path, caplog, config):
  """And what is told is the value of that very step."""
  computed = []

  def summaries(features):
    def costly():
      tf.py_function(lambda ids: computed.append(int(ids.numpy().sum())), [ids], [])
      return tf.cast(tf.reduce_sum(ids), tf.float64)

    ids = features["input_ids"]
    return {"costly": costly, **ids_per_example(features)}

  with caplog.at_level("INFO", logger="absl"):
    model = make_telling(tmp_path, summaries, save_summary_steps=4, log_every_steps=3, **config)
    model.train(train_input_fn, 10)
  parts = config.get("gradient_accumulation_steps", 1)
  batches = train_input_fn({"seed": 12345, "skip_examples": 0, "batch_size": 4}).take(10)
  sums = [float(batch["input_ids"].numpy().sum()) / parts for batch in batches]
  assert len(computed) == 6 * parts  # In steps 3, 6 and 9, 4 and 8, and the last.
  told = scalars(tmp_path)
  assert {step: values["costly"] for step, values in told.items()} == {
    step: sums[step - 1] for step in (4, 8, 10)
  }
  lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("step ")]
  assert [line.split(", ")[2] for line in lines] == [
    f"costly {sums[step - 1]:.4g}" for step in (3, 6, 9, 10)
  ]
  assert all("learning_rate 0.0" in line and " ids/s, " in line for line in lines)


@pytest.mark.parametrize("steps_per_loop", [1, 3])
def test_rates_count_every_step(tmp_path, steps_per_loop):
  """Not only the one whose scalars are told: sequences differ in length."""
  model = make_telling(
    tmp_path,
    lambda features: {"costly": 0.0, **ids_per_example(features)},
    save_summary_steps=6,
    steps_per_loop=steps_per_loop,
  )
  model.train(train_input_fn, 6)
  batches = list(train_input_fn({"seed": 12345, "skip_examples": 0, "batch_size": 4}).take(6))
  counts = [np.count_nonzero(batch["input_ids"]) for batch in batches]
  assert len(set(counts)) > 1
  told = scalars(tmp_path)[6]
  assert told["ids/sec"] / told["examples/sec"] == pytest.approx(sum(counts) / 24, rel=1e-5)


def test_unknown_names_to_tell_are_refused(tmp_path):
  with pytest.raises(ValueError, match="'costly', but the scalars of a step are loss, learning_r"):
    make_telling(tmp_path, ids_per_example).train(train_input_fn, 1)


def test_plain_lines_where_there_is_no_terminal(tmp_path, caplog):
  with caplog.at_level("INFO", logger="absl"):
    make(tmp_path, log_every_steps=2).train(train_input_fn, 5)
  lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("step ")]
  assert [line.split(",")[0] for line in lines] == ["step 2/5", "step 4/5", "step 5/5"]
  assert all("examples/s" in line and "loss" in line and "left" in line for line in lines)


def test_a_bar_on_a_terminal(tmp_path, capfd):
  make(tmp_path, show_progress=True).train(train_input_fn, 5)
  shown = capfd.readouterr().err
  assert "5/5" in shown
  assert "loss=" in shown
  assert "examples_per_s=" in shown
