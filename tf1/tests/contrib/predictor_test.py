"""SavedModels and Estimators as functions, with the arguments and messages of 1.15.5."""

import pytest

from bert_tf1 import estimator as tfe
from bert_tf1.contrib import predictor
from bert_tf1.real import tf


def model_fn(features, mode):
  scale = tf.get_variable("scale", [], initializer=tf.constant_initializer(3.0))
  scaled = features["x"] * scale
  outputs = {
    "serving_default": tfe.export.PredictOutput({"scaled": scaled}),
    "sum": tfe.export.PredictOutput(tf.reduce_sum(scaled)),
  }
  if mode == tfe.ModeKeys.PREDICT:
    return tfe.EstimatorSpec(mode, {"scaled": scaled}, export_outputs=outputs)
  step = tf.train.get_global_step()
  count = tf.assign_add(step, 1)
  return tfe.EstimatorSpec(mode, loss=tf.reduce_sum(scaled), train_op=count)


def receiver():
  x = tf.placeholder(tf.float32, [None], "x")
  return tfe.export.ServingInputReceiver({"x": x}, {"x": x})


@pytest.fixture(scope="module")
def estimator(tmp_path_factory):
  estimator = tfe.Estimator(model_fn, str(tmp_path_factory.mktemp("model")))
  return estimator.train(lambda: {"x": tf.constant([1.0])}, steps=1)


@pytest.fixture(scope="module")
def folder(estimator, tmp_path_factory):
  return estimator.export_saved_model(str(tmp_path_factory.mktemp("export")), receiver)


def test_a_saved_model_is_a_function(folder):
  predict = predictor.from_saved_model(folder)
  assert predict({"x": [1, 2]})["scaled"].tolist() == [3.0, 6.0]
  assert list(predict.feed_tensors) == ["x"]
  assert list(predict.fetch_tensors) == ["scaled"]
  total = predictor.from_saved_model(folder.decode(), signature_def_key="sum")
  assert total({"x": [1, 2]}) == {"output": 9.0}
  named = predictor.from_saved_model(
    folder, input_names={"in": "x:0"}, output_names={"out": "scale/read:0"}
  )
  assert named({"in": None}) == {"out": 3.0}
  assert "feed tensors {'in'" in repr(named)


def test_an_estimator_is_a_function(estimator):
  predict = predictor.from_estimator(estimator, receiver, "sum")
  assert predict({"x": [1, 2]}) == {"output": 9.0}
  with pytest.raises(KeyError, match=r"output_key must be one of .*; got other"):
    predictor.from_estimator(estimator, receiver, "other")


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"signature_def_key": "a"}, 'Got signature_def_key "a". Available signatures are'),
    ({"input_names": {}}, "input_names and output_names must both be specified or both be"),
    (
      {"signature_def_key": "a", "input_names": {}, "output_names": {}},
      "You must specify at most one of signature_def_key OR signature_def OR",
    ),
  ],
)
def test_arguments_that_do_not_fit_are_refused(folder, arguments, message):
  with pytest.raises(ValueError, match=message):
    predictor.from_saved_model(folder, **arguments)


def test_names_that_are_no_input_are_refused(folder):
  with pytest.raises(ValueError, match=r"Got unexpected keys in input_dict: {'y'}"):
    predictor.from_saved_model(folder)({"x": [1], "y": [2]})
