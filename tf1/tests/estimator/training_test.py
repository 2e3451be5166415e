"""Training with evaluations on the way: when they come, and what is exported, as in 1.15.5."""

import pytest

from bert_tf1 import estimator as tfe
from bert_tf1.real import tf


def model_fn(features, labels, mode):
  """One weight that goes to 2."""
  weight = tf.get_variable("w", [1], initializer=tf.zeros_initializer())
  outputs = features * weight
  if mode == tfe.ModeKeys.PREDICT:
    return tfe.EstimatorSpec(mode, outputs)
  loss = tf.reduce_mean(tf.square(outputs - labels))
  step = tf.train.get_global_step()
  train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, step)
  return tfe.EstimatorSpec(mode, outputs, loss, train_op)


def input_fn():
  return tf.data.Dataset.from_tensors(([[1.0], [2.0]], [[2.0], [4.0]])).repeat()


def serving_fn():
  x = tf.placeholder(tf.float32, [None, 1], "x")
  return tfe.export.TensorServingInputReceiver(x, x)


class Watched(tfe.Exporter):
  """Remembers what it was asked to export."""

  def __init__(self):
    self.calls = []

  @property
  def name(self):
    return "watched"

  def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
    parts = (export_path, checkpoint_path)
    relative = [part.removeprefix(f"{estimator.model_dir}/") for part in parts]
    self.calls.append((*relative, round(float(eval_result["loss"]), 4), is_the_final_export))
    return len(self.calls)


def estimator_of(folder, **settings):
  return tfe.Estimator(model_fn, config=tfe.RunConfig(str(folder), **settings))


def test_each_checkpoint_is_evaluated_and_exported(tmp_path):
  exporters = [tfe.FinalExporter("final", serving_fn), Watched()]
  evaluation = tfe.EvalSpec(input_fn, steps=1, exporters=exporters, throttle_secs=0)
  results, exports = tfe.train_and_evaluate(
    estimator_of(tmp_path, save_checkpoints_steps=2), tfe.TrainSpec(input_fn, 5), evaluation
  )
  # Losses of 1.15.5.
  assert exporters[1].calls == [
    ("export/watched", "model.ckpt-2", 0.625, False),
    ("export/watched", "model.ckpt-4", 0.0391, False),
    ("export/watched", "model.ckpt-5", 0.0098, True),
  ]
  assert results["global_step"] == 5
  assert exports[1] == 3
  final = f"{tmp_path}/export/final"
  assert tf.gfile.ListDirectory(final) == [exports[0].decode().removeprefix(f"{final}/")]


@pytest.mark.ci
def test_the_first_and_the_last_checkpoint_are_evaluated_in_any_case(tmp_path):
  exporter = Watched()
  evaluation = tfe.EvalSpec(input_fn, steps=1, exporters=exporter, throttle_secs=1000)
  tfe.train_and_evaluate(
    estimator_of(tmp_path, save_checkpoints_steps=2), tfe.TrainSpec(input_fn, 5), evaluation
  )
  assert [call[1] for call in exporter.calls] == ["model.ckpt-2", "model.ckpt-5"]


def test_a_trained_model_is_neither_trained_nor_evaluated(tmp_path):
  estimator = estimator_of(tmp_path).train(input_fn, steps=1)
  assert tfe.train_and_evaluate(
    estimator, tfe.TrainSpec(input_fn, 1), tfe.EvalSpec(input_fn, steps=1)
  ) == (None, None)


def test_evaluations_need_checkpoints(tmp_path):
  estimator = estimator_of(tmp_path, save_checkpoints_steps=None, save_checkpoints_secs=None)
  with pytest.raises(ValueError, match="There should be a CheckpointSaverHook"):
    tfe.train_and_evaluate(estimator, tfe.TrainSpec(input_fn, 1), tfe.EvalSpec(input_fn, steps=1))


@pytest.mark.parametrize("specs", [(3, 3), (tfe.TrainSpec(input_fn), 3)])
def test_other_classes_are_refused(tmp_path, specs):
  with pytest.raises(TypeError, match=r"must be a `tf.estimator.(Train|Eval)Spec`, given: 3"):
    tfe.train_and_evaluate(estimator_of(tmp_path), *specs)
