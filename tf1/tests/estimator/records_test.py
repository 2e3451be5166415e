"""What a run logs, records and saves: line by line as TensorFlow 1.15.5 did for the same model."""

import os
import re

import numpy as np
import pytest

from bert_tf1 import estimator as tfe
from bert_tf1.estimator import tpu
from bert_tf1.real import tf

pytestmark = pytest.mark.ci

X = np.linspace(-1, 1, 20).reshape(10, 2).astype(np.float32)
Y = (X @ [[2.0], [-1.0]]).astype(np.float32)


def model_fn(features, labels, mode):
  """A linear model, trained with Adam at a rate that falls with the step."""
  weights = tf.get_variable("w", [2, 1], initializer=tf.constant_initializer([[0.5], [0.25]]))
  bias = tf.get_variable("b", [1], initializer=tf.zeros_initializer())
  outputs = tf.matmul(features, weights) + bias
  loss = tf.losses.mean_squared_error(labels, outputs)
  if mode == tfe.ModeKeys.EVAL:
    metrics = {"mae": tf.metrics.mean_absolute_error(labels, outputs)}
    return tfe.EstimatorSpec(mode, loss=loss, eval_metric_ops=metrics)
  step = tf.train.get_or_create_global_step()
  rate = tf.train.polynomial_decay(0.1, step, 20, 0.0)
  tf.summary.scalar("rate", rate)
  train_op = tf.train.AdamOptimizer(rate).minimize(loss, step)
  hook = tf.train.LoggingTensorHook({"first": outputs[0, 0]}, every_n_iter=4)
  return tfe.EstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[hook])


def input_fn(epochs=None):
  return lambda: tf.data.Dataset.from_tensor_slices((X, Y)).repeat(epochs).batch(4)


class Lines:
  """The lines logged since the last look, without what differs from run to run."""

  def __init__(self, caplog, folder):
    self._caplog, self._folder = caplog, str(folder)

  def new(self) -> list[str]:
    lines = [record.getMessage().replace(self._folder, "DIR") for record in self._caplog.records]
    self._caplog.clear()
    times = (r"\d{4}-\d\d-\d\d[T-]\d\d:\d\d:\d\dZ?", r"(?<=/sec: )[\d.e+-]+", r"[\d.]+(?= sec\))")
    lines = [re.sub("|".join(times), "N", line) for line in lines]
    # Processors differ in a float's last digits.
    lines = [re.sub(r"\d\.\d{5,}", lambda x: f"{float(x[0]):.5f}", line) for line in lines]
    return [line for line in lines if "checkpoint listeners" not in line]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
  return tmp_path_factory.mktemp("records")


@pytest.fixture(scope="module")
def estimator(folder):
  config = tfe.RunConfig(
    str(folder), save_checkpoints_steps=5, save_summary_steps=3, log_step_count_steps=4
  )
  return tfe.Estimator(model_fn, config=config)


STARTED = [
  *("Calling model_fn.", "Done calling model_fn.", "Create CheckpointSaverHook."),
  "Graph was finalized.",
]
LOCAL = ["Running local_init_op.", "Done running local_init_op."]


def test_training_is_logged_and_recorded(estimator, folder, caplog):
  caplog.set_level("INFO", "tensorflow")
  lines = Lines(caplog, folder)
  estimator.train(input_fn(), steps=7)
  assert lines.new() == [
    *STARTED,
    *LOCAL,
    "Saving checkpoints for 0 into DIR/model.ckpt.",
    "loss = 0.09505, step = 1",
    "first = -0.72368",
    "Saving checkpoints for 5 into DIR/model.ckpt.",
    "global_step/sec: N",
    "loss = 0.00164, step = 5 (N sec)",
    "first = 0.11743 (N sec)",
    "Saving checkpoints for 7 into DIR/model.ckpt.",
    "Loss for final step: 0.00562.",
  ]
  estimator.train(input_fn(), max_steps=12)
  assert lines.new() == [
    *STARTED,
    "Restoring parameters from DIR/model.ckpt-7",
    *LOCAL,
    "Saving checkpoints for 7 into DIR/model.ckpt.",
    "loss = 0.02689, step = 8",
    "first = -1.30599",
    "Saving checkpoints for 12 into DIR/model.ckpt.",
    "global_step/sec: N",
    "loss = 0.00012, step = 12 (N sec)",
    "first = 0.15331 (N sec)",
    "Loss for final step: 0.00012.",
  ]
  estimator.train(input_fn(), max_steps=12)
  assert lines.new() == ["Skipping training since max_steps has already saved."]
  assert scalars(folder) == [
    *[(1, "rate", 0.1), (1, "loss", 0.09505), (4, "rate", 0.085), (4, "loss", 0.0113)],
    *[(5, "global_step/sec", None), (7, "rate", 0.07), (7, "loss", 0.00562)],
    *[(8, "rate", 0.065), (8, "loss", 0.02689), (11, "rate", 0.05), (11, "loss", 0.00036)],
    (12, "global_step/sec", None),
  ]
  assert (folder / "checkpoint").read_text().splitlines()[0] == (
    'model_checkpoint_path: "model.ckpt-12"'
  )


def scalars(folder) -> list[tuple]:
  """(step, tag, value) of each number in the event files; None for speeds."""
  paths = sorted(tf.gfile.Glob(f"{folder}/events*"))
  return [
    (event.step, value.tag, None if "/sec" in value.tag else round(value.simple_value, 5))
    for path in paths
    for event in tf.train.summary_iterator(path)
    for value in event.summary.value
    if value.HasField("simple_value")
  ]


def test_an_evaluation_is_logged_and_recorded_under_its_name(estimator, folder, caplog):
  caplog.set_level("INFO", "tensorflow")
  estimator.train(input_fn(), max_steps=7)  # Both done at once after the test above.
  estimator.train(input_fn(), max_steps=12)
  lines = Lines(caplog, folder)
  lines.new()
  results = estimator.evaluate(input_fn(1), name="dev", steps=2)
  assert lines.new()[2:] == [
    "Starting evaluation at N",
    "Graph was finalized.",
    "Restoring parameters from DIR/model.ckpt-12",
    *LOCAL,
    "Evaluation [1/2]",
    "Evaluation [2/2]",
    "Finished evaluation at N",
    "Saving dict for global step 12: global_step = 12, loss = 0.00096, mae = 0.02559",
    "Saving 'checkpoint_path' summary for global step 12: DIR/model.ckpt-12",
  ]
  assert {name: value.dtype for name, value in results.items()} == {
    **{"loss": np.float32, "mae": np.float32},
    "global_step": np.int64,
  }
  assert scalars(folder / "eval_dev") == [(12, "loss", 0.00096), (12, "mae", 0.02559)]
  assert os.listdir(folder / "eval_dev")[0].startswith("events.out.tfevents.")


def test_speed_is_measured_between_steps_that_were_counted(tmp_path, caplog):
  """Hooks read the step before the count: else one step in a while seems not to have been one."""
  caplog.set_level("INFO", "tensorflow")
  config = tfe.RunConfig(str(tmp_path), save_summary_steps=1, log_step_count_steps=1)
  tfe.Estimator(model_fn, config=config).train(input_fn(), steps=30)
  assert "has not been increased" not in caplog.text
  assert logged_steps(caplog) == list(range(1, 31))


def test_tpu_estimator_counts_the_logged_steps_alike(tmp_path, caplog):
  caplog.set_level("INFO", "tensorflow")

  def tpu_model_fn(features, labels, mode, params):
    del params
    spec = model_fn(features, labels, mode)
    return tpu.TPUEstimatorSpec(mode, loss=spec.loss, train_op=spec.train_op)

  config = tpu.RunConfig(model_dir=str(tmp_path), log_step_count_steps=1)
  estimator = tpu.TPUEstimator(tpu_model_fn, config=config, use_tpu=False, train_batch_size=4)
  estimator.train(lambda params: input_fn()(), steps=3)
  assert logged_steps(caplog) == [1, 2, 3]


def logged_steps(caplog) -> list[int]:
  return [int(step) for step in re.findall(r"step = (\d+)", caplog.text)]
