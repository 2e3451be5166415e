"""Hooks that end training early: when they do, what they say and save, as in TensorFlow 1.15.5."""

import re

import pytest

from bert_tf1.contrib import estimator as contrib_estimator
from bert_tf1.estimator import Estimator, EstimatorSpec, add_metrics, experimental
from bert_tf1.real import tf

pytestmark = pytest.mark.ci

RECORDED = [(1, 0.5), (2, 0.6), (3, 0.6), (4, 0.55), (5, 0.58)]
EACH_STEP = dict(run_every_secs=None, run_every_steps=1)


def record(folder, rows, tag="acc", suffix="") -> None:
  """Writes event files as evaluations do, with a text beside the number."""
  with tf.Graph().as_default():
    writer = tf.summary.FileWriter(str(folder), filename_suffix=suffix)
    for step, number in rows:
      text = tf.Summary.Value(tag="text", tensor=tf.make_tensor_proto("x"))
      writer.add_summary(
        tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=number), text]), step
      )
    writer.close()


def model_fn(features, labels, mode):
  w = tf.get_variable("w", initializer=1.0)
  loss = tf.square(w - 3) + 0 * tf.reduce_sum(features)
  optimizer = tf.train.GradientDescentOptimizer(0.01)
  return EstimatorSpec(
    mode,
    loss=loss,
    train_op=optimizer.minimize(loss, global_step=tf.train.get_global_step()),
    predictions={"w": w + features},
    eval_metric_ops={"m": tf.metrics.mean(features)} if mode == "eval" else None,
  )


def input_fn():
  return tf.data.Dataset.from_tensors(tf.ones([2])).repeat()


@pytest.fixture
def estimator(tmp_path):
  return Estimator(model_fn, model_dir=str(tmp_path / "model"))


@pytest.fixture
def log(monkeypatch):
  said = []
  monkeypatch.setattr(tf.logging, "info", lambda text, *of: said.append(text % of))
  return said


def steps_with(hook, most=6) -> int:
  """How many steps a session with the hook runs."""
  with tf.Graph().as_default():
    step = tf.train.get_or_create_global_step()
    counted = tf.assign_add(step, 1)
    with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
      for done in range(most):
        if session.should_stop():
          return done
        session.run(counted)
  return most


@pytest.mark.parametrize(
  ("name", "limit", "more", "stops"),
  [
    ("higher", 0.59, {}, True),
    ("higher", 0.7, {}, False),
    ("higher", 0.59, {"min_steps": 4}, False),
    ("lower", 0.52, {}, True),
    ("no_increase", 3, {}, True),
    ("no_increase", 4, {}, False),
    ("no_decrease", 4, {}, True),
    ("no_decrease", 2, {"min_steps": 3}, False),
  ],
)
def test_when_training_ends(estimator, name, limit, more, stops):
  record(estimator.eval_dir(), RECORDED)
  hook = getattr(experimental, f"stop_if_{name}_hook")(estimator, "acc", limit, **more, **EACH_STEP)
  assert steps_with(hook) == (1 if stops else 6)


def test_a_metric_that_recovers_too_late(estimator):
  record(estimator.eval_dir(), [(1, 0.5), (2, 0.4), (3, 0.4), (4, 0.9)])
  hook = experimental.stop_if_no_increase_hook(estimator, "acc", 2, **EACH_STEP)
  assert steps_with(hook) == 1


def test_what_is_said(estimator, log):
  record(estimator.eval_dir(), RECORDED)
  steps_with(experimental.stop_if_higher_hook(estimator, "acc", 0.59, **EACH_STEP))
  steps_with(experimental.stop_if_no_increase_hook(estimator, "acc", 3, **EACH_STEP))
  assert log == [
    'At step 2, metric "acc" has value 0.6000000238418579 which is greater than the configured '
    "threshold (0.59) for early stopping.",
    "Requesting early stopping at global step 1",
    'No increase in metric "acc" for 3 steps, which is greater than or equal to max steps (3) '
    "configured for early stopping.",
    "Requesting early stopping at global step 1",
  ]


@pytest.mark.ci
def test_training_ends_and_the_checkpoint_says_so(estimator, tmp_path):
  other = tmp_path / "other"
  record(other, RECORDED)
  hook = contrib_estimator.stop_if_no_decrease_hook(estimator, "acc", 4, str(other), 0, None, 1)
  estimator.train(input_fn, hooks=[hook], steps=8)
  assert estimator.get_variable_value("global_step") == 1
  assert estimator.get_variable_value("signal_early_stopping/STOP")
  assert estimator.get_variable_names() == ["global_step", "signal_early_stopping/STOP", "w"]


def test_nothing_recorded_ends_nothing(estimator):
  assert steps_with(experimental.stop_if_lower_hook(estimator, "acc", 9, **EACH_STEP)) == 6


def test_a_metric_that_is_not_recorded(estimator):
  record(estimator.eval_dir(), RECORDED)
  hook = experimental.stop_if_lower_hook(estimator, "f1", 9, **EACH_STEP)
  has = f"{estimator.eval_dir()} has no metric 'f1' at step 1. It has: acc. Give the hook"
  with pytest.raises(KeyError, match=re.escape(has)):
    steps_with(hook)


def test_wrong_arguments(estimator):
  stop = experimental.make_early_stopping_hook
  with pytest.raises(ValueError, match="Only one of `run_every_secs` and `run_every_steps` must"):
    stop(estimator, lambda: True, run_every_steps=1)
  with pytest.raises(ValueError, match="Either every_secs or every_steps should be provided"):
    stop(estimator, lambda: True, run_every_secs=None)
  with pytest.raises(TypeError, match=r"must have type `tf\.estimator\.Estimator`"):
    stop(3, lambda: True)
  with pytest.raises(AttributeError, match=r"did you mean .*make_early_stopping_hook"):
    experimental.make_early_stop_hook  # noqa: B018


def test_read_eval_metrics(tmp_path):
  read = contrib_estimator.read_eval_metrics
  assert read(str(tmp_path / "nothing")) == {}
  record(tmp_path, [(3, 0.5), (1, 0.25)])
  record(tmp_path, [(1, 2.0)], tag="loss", suffix=".second")
  assert list(read(str(tmp_path)).items()) == [(1, {"acc": 0.25, "loss": 2.0}), (3, {"acc": 0.5})]


@pytest.mark.ci
def test_add_metrics(estimator):
  more = add_metrics(estimator, lambda predictions: {"q": tf.metrics.mean(predictions["w"])})
  more.train(input_fn, steps=2)
  found = more.evaluate(input_fn, steps=2)
  expected = {"global_step": 2, "loss": 3.68947, "m": 1.0, "q": 2.0792}
  assert {name: round(float(value), 5) for name, value in found.items()} == expected
  with pytest.raises(ValueError, match=re.escape("has following not expected args: ['zz']")):
    contrib_estimator.add_metrics(estimator, lambda zz: {})
