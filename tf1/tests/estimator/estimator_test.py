"""Estimator and TPUEstimator: train, resume, evaluate, predict."""

import os

import numpy as np
import pytest

from bert_tf1 import estimator as tfe
from bert_tf1.contrib import cluster_resolver, summary
from bert_tf1.estimator import tpu
from bert_tf1.estimator.global_step import count_after_readers
from bert_tf1.real import tf

ROWS = np.arange(12, dtype=np.float32).reshape(12, 1) / 12


def input_fn(params):
  """Twelve rows of y = 2x, in order."""
  data = tf.data.Dataset.from_tensor_slices(({"x": ROWS}, 2 * ROWS))
  return data.repeat(params["epochs"]).batch(params["batch_size"])


def model_fn(features, labels, mode, params):
  """One weight; the rate of step k is (k + 1) / 100, read from the step."""
  weight = tf.get_variable("weight", [1, 1], initializer=tf.zeros_initializer())
  output = tf.matmul(features["x"], weight)
  if mode == tfe.ModeKeys.PREDICT:
    return tfe.EstimatorSpec(mode, predictions={"output": output, "x": features["x"]})
  loss = tf.reduce_mean(tf.square(output - labels))
  if mode == tfe.ModeKeys.EVAL:
    metrics = {"error": tf.metrics.mean(tf.abs(output - labels))}
    return tfe.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
  step = tf.train.get_or_create_global_step()
  rate = (tf.cast(step, tf.float32) + 1.0) / 100.0
  train = tf.train.GradientDescentOptimizer(rate).minimize(loss)
  count = step.assign(step + 1)
  params["seen"].append(mode)
  return tfe.EstimatorSpec(mode, loss=loss, train_op=tf.group(train, [count]))


def make(folder, **settings):
  params = {"batch_size": 4, "epochs": 100, "seen": []}
  config = tfe.RunConfig(model_dir=str(folder), save_checkpoints_steps=3, **settings)
  return tfe.Estimator(model_fn, config=config, params=params)


def weight_after(steps):
  """The weight in NumPy, with the rate of each step read before the step is counted."""
  weight = 0.0
  for step in range(steps):
    x = ROWS[(4 * step) % 12 :][:4, 0]
    gradient = np.mean(2 * (weight * x - 2 * x) * x)
    weight -= (step + 1) / 100 * gradient
  return weight


def test_steps_are_those_of_numpy(tmp_path):
  estimator = make(tmp_path).train(input_fn, steps=7)
  np.testing.assert_allclose(estimator.get_variable_value("weight"), [[weight_after(7)]], rtol=1e-6)
  assert estimator.get_variable_names() == ["global_step", "weight"]
  assert estimator.latest_checkpoint() == str(tmp_path / "model.ckpt-7")
  saved = {name.split(".data")[0] for name in os.listdir(tmp_path) if ".index" in name}
  assert saved == {f"model.ckpt-{step}.index" for step in (0, 3, 6, 7)}


def test_resume_is_one_run(tmp_path):
  def batches(first):
    return lambda params: input_fn(params).skip(first)

  make(tmp_path / "two").train(batches(0), max_steps=4)
  resumed = make(tmp_path / "two").train(batches(4), max_steps=9)
  straight = make(tmp_path / "one").train(batches(0), max_steps=9)
  assert resumed.get_variable_value("weight") == straight.get_variable_value("weight")
  assert resumed.train(batches(0), max_steps=9) is resumed  # Nothing is left to do.
  assert resumed.get_variable_value("global_step") == 9


def test_remains_of_a_killed_save_are_removed(tmp_path):
  """TensorFlow removes the folder only if the run that goes on saves the very same files in it."""
  remains = tmp_path / "model.ckpt-2_temp"
  remains.mkdir()
  (remains / "part-00000-of-00001.data-00000-of-00001.tempstate123").write_bytes(b"half")
  make(tmp_path).train(input_fn, max_steps=2)
  assert sorted(path.name for path in tmp_path.glob("model.ckpt-2*")) == [
    *("model.ckpt-2.data-00000-of-00001", "model.ckpt-2.index", "model.ckpt-2.meta")
  ]


def test_evaluate(tmp_path):
  estimator = make(tmp_path).train(input_fn, steps=5)
  error = np.abs(weight_after(5) * ROWS - 2 * ROWS)

  def once(params):
    return input_fn({**params, "epochs": 1})

  results = estimator.evaluate(once)
  assert sorted(results) == ["error", "global_step", "loss"]
  assert results["global_step"] == 5
  np.testing.assert_allclose(results["error"], error.mean(), rtol=1e-5)
  np.testing.assert_allclose(results["loss"], np.mean(error**2), rtol=1e-5)
  two_batches = estimator.evaluate(once, steps=2, name="part")
  np.testing.assert_allclose(two_batches["error"], error[:8].mean(), rtol=1e-5)
  assert sorted(os.listdir(tmp_path)).count("eval_part") == 1
  earlier = estimator.evaluate(once, checkpoint_path=str(tmp_path / "model.ckpt-3"))
  assert earlier["global_step"] == 3


def test_predict(tmp_path):
  estimator = make(tmp_path).train(input_fn, steps=5)

  def once(params):
    return input_fn({**params, "epochs": 1, "batch_size": 5})

  rows = list(estimator.predict(once))
  assert len(rows) == 12
  np.testing.assert_allclose([row["output"] for row in rows], weight_after(5) * ROWS, rtol=1e-5)
  batches = list(estimator.predict(once, predict_keys=["x"], yield_single_examples=False))
  assert [len(batch["x"]) for batch in batches] == [5, 5, 2]
  assert sorted(batches[0]) == ["x"]


def test_a_prediction_without_rows_is_named(tmp_path):
  def total_fn(features, mode):
    return tfe.EstimatorSpec(mode, {"x": features, "total": tf.reduce_sum(features)})

  estimator = tfe.Estimator(total_fn, str(tmp_path))
  with pytest.raises(ValueError, match=r"Predictions \['total'\] are no batches: leave them out"):
    next(estimator.predict(lambda: tf.constant(ROWS)))
  assert len(next(estimator.predict(lambda: tf.constant(ROWS), predict_keys=["x"]))["x"]) == 1


def test_tpu_estimator_gives_batch_sizes(tmp_path, caplog):
  seen = []

  def tpu_model_fn(features, labels, mode, params):
    seen.append((mode, params["batch_size"], params["use_tpu"]))
    spec = model_fn(features, labels, mode, {"seen": []})
    metrics = (lambda error: {"error": tf.metrics.mean(error)}, [tf.abs(labels)])
    return tpu.TPUEstimatorSpec(
      mode, loss=spec.loss, train_op=spec.train_op, eval_metrics=metrics if mode == "eval" else None
    )

  config = tpu.RunConfig(
    model_dir=str(tmp_path), log_step_count_steps=2, tpu_config=tpu.TPUConfig(iterations_per_loop=9)
  )
  estimator = tpu.TPUEstimator(
    tpu_model_fn,
    config=config,
    params={"epochs": 1},
    use_tpu=False,
    train_batch_size=2,
    eval_batch_size=6,
  )
  estimator.train(input_fn)
  assert estimator.get_variable_value("global_step") == 6
  results = estimator.evaluate(input_fn, steps=1)
  assert results["error"] == pytest.approx(np.mean(2 * ROWS[:6]))
  assert seen == [("train", 2, False), ("eval", 6, False)]
  assert "batch_size" not in estimator.params


def test_tpu_estimator_counts_in_a_resource_variable(tmp_path):
  """As graph.pbtxt of 1.15.5 shows; the other variables are reference variables."""
  params = {"seen": [], "epochs": 1}
  config = tpu.RunConfig(model_dir=str(tmp_path))
  tpu.TPUEstimator(model_fn, None, config, params, False, train_batch_size=4).train(
    input_fn, steps=2
  )
  graph = (tmp_path / "graph.pbtxt").read_text()
  assert "global_step/Read/ReadVariableOp" in graph
  assert '"weight/read"' in graph
  assert not {"global_step/read", "weight/Read/ReadVariableOp"} & set(graph.split('"'))
  assert '"global_step/"' not in graph  # TensorFlow Serving 1.x refuses a VarHandleOp's debug_name.


def test_a_host_call_writes_its_summaries(tmp_path):
  def with_host_call(features, labels, mode, params):
    spec = model_fn(features, labels, mode, params)

    def write(step, loss):
      with summary.create_file_writer(str(tmp_path / "host")).as_default():
        with summary.always_record_summaries():
          summary.scalar("host_loss", loss[0], step=step[0])
          return summary.all_summary_ops()

    step = tf.reshape(tf.cast(tf.train.get_global_step(), tf.int64), [1])
    return tpu.TPUEstimatorSpec(
      mode, loss=spec.loss, train_op=spec.train_op, host_call=(write, [step, spec.loss[None]])
    )

  config = tpu.RunConfig(model_dir=str(tmp_path / "model"))
  params = {"seen": [], "epochs": 1}
  tpu.TPUEstimator(with_host_call, None, config, params, False, train_batch_size=4).train(
    input_fn, steps=3
  )
  (file,) = (tmp_path / "host").iterdir()
  events = list(tf.train.summary_iterator(str(file)))
  assert [v.tag for event in events for v in event.summary.value] == ["host_loss"] * 3


def test_tpu_estimator_logs_the_rate_of_a_short_run(tmp_path, caplog):
  """Every 100 steps by default; a run of 3 steps says at its end how fast it was."""
  caplog.set_level("INFO", logger="tensorflow")
  params = {"seen": [], "epochs": 1}
  config = tpu.RunConfig(model_dir=str(tmp_path))
  tpu.TPUEstimator(model_fn, None, config, params, False, train_batch_size=4).train(input_fn)
  assert sum(message.startswith("examples/sec: ") for message in caplog.messages) == 1


def test_use_tpu_is_refused(tmp_path):
  config = tpu.RunConfig(model_dir=str(tmp_path))
  with pytest.raises(
    AttributeError, match=r"no TPU support here\. Set use_tpu=False in the script:"
  ):
    tpu.TPUEstimator(model_fn, config=config, use_tpu=True)


def test_flags_for_a_tpu_are_named_where_the_script_has_them(monkeypatch):
  monkeypatch.setattr("absl.flags.FLAGS", {"use_tpu": True})
  with pytest.raises(AttributeError, match=r"Leave --use_tpu out: the CPU or a GPU is used"):
    tpu.TPUEstimator(model_fn, use_tpu=True)
  monkeypatch.setattr("absl.flags.FLAGS", {"use_tpu": True, "tpu_name": ""})
  with pytest.raises(AttributeError, match="Leave --use_tpu and --tpu_name out"):
    cluster_resolver.TPUClusterResolver()


@pytest.mark.parametrize("resource", [False, True])
def test_the_count_runs_neither_savers_nor_prints(resource, tmp_path, monkeypatch, capfd):
  monkeypatch.chdir(tmp_path)  # A Saver's op writes to "model" if nobody gives it a path.
  with tf.Graph().as_default() as graph, tf.variable_scope("", use_resource=resource):
    step = tf.train.create_global_step()
    tf.train.Saver()
    tf.train.Saver(sharded=True)
    tf.print("a line", step)
    count = tf.group(step.assign(step + 1))
    count_after_readers(graph)
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      session.run(count)
      assert session.run(step) == 1
  assert os.listdir(tmp_path) == []
  assert "a line" not in capfd.readouterr().err


@pytest.mark.parametrize("resource", [False, True])
def test_the_count_waits_for_readers(resource):
  with tf.Graph().as_default() as graph, tf.variable_scope("", use_resource=resource):
    step = tf.train.create_global_step()
    rate = tf.cond(
      tf.less(step, 5), lambda: tf.cast(step, tf.float32), lambda: tf.cast(step, tf.float32) * 10
    )
    alias = tf.cast(tf.identity(tf.identity(step)), tf.int32)
    count = tf.group(step.assign(step + 1))
    with tf.control_dependencies([count]):
      after = tf.constant(1) + 1
    count_after_readers(graph)
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      for expected in range(7):
        _, value, same, _ = session.run([count, rate, alias, after])
        assert (value, same) == (expected * (10 if expected >= 5 else 1), expected)


@pytest.mark.parametrize(
  ("call", "message"),
  [
    (lambda e: e.train(input_fn, steps=1, max_steps=1), "Can not provide both steps and max_steps"),
    (lambda e: e.train(input_fn, steps=0), "Must specify steps > 0, given: 0"),
    (lambda e: e.train(input_fn, hooks=["x"]), "Hooks must be a SessionRunHook, given: 'x'"),
    (lambda e: e.get_variable_names(), "Could not find trained model in model_dir"),
    (lambda e: tfe.Estimator(lambda labels: 0), "must include features argument"),
    (lambda e: tfe.Estimator(model_fn, "a", tfe.RunConfig("b")), "but with different values"),
    (lambda e: tfe.RunConfig(save_checkpoints_steps=1, save_checkpoints_secs=1), "both be set"),
    (lambda e: tfe.RunConfig(train_distribute=object()), "runs in one process"),
    (lambda e: tfe.EstimatorSpec("train", loss=tf.constant(1.0)), "Missing train_op"),
    (lambda e: tfe.DNNClassifier, "write a model_fn for tf.estimator.Estimator"),
  ],
)
def test_wrong_arguments_say_so(tmp_path, call, message):
  with pytest.raises(Exception, match=message):
    call(make(tmp_path))


@pytest.mark.ci
def test_warm_start_takes_values_and_not_the_step(tmp_path):
  trained = make(tmp_path / "first").train(input_fn, steps=5)
  settings = tfe.WarmStartSettings(str(tmp_path / "first"), vars_to_warm_start="weight")
  for start in (settings, str(tmp_path / "first"), trained.latest_checkpoint()):
    config = tfe.RunConfig(model_dir=str(tmp_path / "second"))
    params = {"batch_size": 4, "epochs": 1, "seen": []}
    warm = tfe.Estimator(model_fn, config=config, params=params, warm_start_from=start)
    results = warm.evaluate(input_fn)
    np.testing.assert_allclose(results["error"], trained.evaluate(input_fn, steps=3)["error"])
    assert results["global_step"] == 0
  with pytest.raises(ValueError, match="must be a string or a WarmStartSettings"):
    tfe.Estimator(model_fn, params=params, warm_start_from=3)
