"""Receivers of an export: wrapped and checked as TensorFlow 1.15.5 did."""

import re

import pytest

from bert_tf1.estimator import receivers
from bert_tf1.estimator.receivers import (
  ServingInputReceiver,
  SupervisedInputReceiver,
  TensorServingInputReceiver,
  UnsupervisedInputReceiver,
)
from bert_tf1.real import tf

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def x():
  return tf.placeholder(tf.float32, [None, 2], "x")


def test_tensors_without_a_name_get_one(x):
  received = ServingInputReceiver(x, x, {"other": x})
  assert received.features == {"feature": x}
  assert received.receiver_tensors == {"input": x}
  assert received.receiver_tensors_alternatives == {"other": {"input": x}}


def test_a_single_tensor_reaches_the_model_as_it_is(x):
  received = TensorServingInputReceiver(x, x)
  assert received.features is x
  assert received == (x, {"input": x}, None)


def test_receivers_of_graphs_that_train(x):
  assert SupervisedInputReceiver(x, {"l": x}, x) == (x, {"l": x}, {"input": x})
  assert UnsupervisedInputReceiver(x, x) == ({"feature": x}, {"input": x}, None)


# As 1.15.5 said it.
@pytest.mark.parametrize(
  ("make", "message"),
  [
    (lambda x: ServingInputReceiver(None, x), "features must be defined."),
    (lambda x: ServingInputReceiver(x, None), "receiver_tensors must be defined."),
    (lambda x: ServingInputReceiver(x, {1: x}), "receiver_tensor keys must be strings: 1."),
    (lambda x: ServingInputReceiver({1.5: x}, x), "feature keys must be strings or ints: 1.5."),
    (lambda x: ServingInputReceiver({"a": 3}, x), "feature a must be a Tensor or SparseTensor."),
    (
      lambda x: ServingInputReceiver(x, [x]),
      "receiver_tensor input must be a Tensor or SparseTensor.",
    ),
    (
      lambda x: ServingInputReceiver(x, x, {"a": 1}),
      "receiver_tensors_alternative input must be a Tensor or SparseTensor.",
    ),
    (lambda x: ServingInputReceiver(x, x, 1), "receiver_tensors_alternatives must be a dict: 1."),
    (lambda x: TensorServingInputReceiver(None, x), "features must be defined."),
    (
      lambda x: TensorServingInputReceiver({"x": x}, x),
      "feature must be a Tensor or SparseTensor.",
    ),
    (lambda x: SupervisedInputReceiver(x, None, x), "labels must be defined."),
    (
      lambda x: receivers.build_raw_supervised_input_receiver_fn({"a": x}, {"a": x}),
      "Features and labels must have distinct keys. Found overlapping keys: {'a'}",
    ),
    (
      lambda x: receivers.build_raw_supervised_input_receiver_fn({"label": x}, x),
      "Features and labels must have distinct keys. Found overlapping keys: {'label'}",
    ),
  ],
)
def test_what_is_no_tensor_is_refused(x, make, message):
  with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
    make(x)


def test_raw_features_are_fed_by_placeholders_like_them(x):
  features = {"ids": tf.constant([[1, 2]], name="ids"), "x": x}
  received = receivers.build_raw_serving_input_receiver_fn(features, 4)()
  assert {name: (t.name, t.dtype, t.shape.as_list()) for name, t in received.features.items()} == {
    "ids": ("ids_1:0", tf.int32, [4, 2]),
    "x": ("x_1:0", tf.float32, [4, 2]),
  }
  assert received.receiver_tensors == received.features


def test_raw_features_and_labels_are_fed_by_placeholders_like_them(x):
  received = receivers.build_raw_supervised_input_receiver_fn(x, {"y": x})()
  assert (received.features.name, received.labels["y"].name) == ("x_1:0", "x_2:0")
  assert received.receiver_tensors == {"input": received.features, "y": received.labels["y"]}


def test_examples_are_fed_in_one_placeholder():
  spec = {"x": tf.FixedLenFeature([3], tf.float32)}
  received = receivers.build_parsing_serving_input_receiver_fn(spec, 2)()
  fed = received.receiver_tensors["examples"]
  assert (fed.name, fed.dtype, fed.shape.as_list()) == ("input_example_tensor:0", tf.string, [2])
  assert received.features["x"].name == "ParseExample/ParseExample:0"
  assert received.features["x"].shape.as_list() == [2, 3]
