"""Examples parsed with the ops of 1.x: names and values as TensorFlow 1.15.5 gave them."""

import pytest

from bert_tf1 import parsing
from bert_tf1.real import tf

pytestmark = pytest.mark.usefixtures("graph")

FEATURES = {
  "a": tf.FixedLenFeature([2], tf.int64),
  "b": tf.FixedLenFeature([], tf.float32, default_value=9.0),
  "c": tf.VarLenFeature(tf.string),
  "d": tf.FixedLenSequenceFeature([], tf.int64, allow_missing=True),
  "sp": tf.SparseFeature("k", "v", tf.float32, 5),
}


def example(**features) -> bytes:
  """A serialized example of ints, floats or byte strings."""
  proto = tf.train.Example()
  for name, values in features.items():
    feature = proto.features.feature[name]
    if isinstance(values[0], bytes):
      feature.bytes_list.value.extend(values)
    elif isinstance(values[0], float):
      feature.float_list.value.extend(values)
    else:
      feature.int64_list.value.extend(values)
  return proto.SerializeToString()


ROWS = [
  example(a=[1, 2], b=[0.5], c=[b"x", b"y"], d=[1, 2, 3], v=[1.0, 2.0], k=[0, 3]),
  example(a=[3, 4], c=[b"z"], v=[7.0], k=[2]),
]


def values(tensors: dict) -> dict:
  with tf.Session() as session:
    found = session.run(tensors)
  return {
    name: (value.values if isinstance(value, tf.SparseTensorValue) else value).tolist()
    for name, value in found.items()
  }


def test_a_batch_is_parsed_by_the_op_of_1x(graph):
  parsed = parsing.parse_example(tf.constant(ROWS), FEATURES)
  assert {name: getattr(tensor, "values", tensor).name for name, tensor in parsed.items()} == {
    "a": "ParseExample/ParseExample:9",
    "b": "ParseExample/ParseExample:10",
    "c": "ParseExample/ParseExample:3",
    "d": "ParseExample/ParseExample:11",
    "sp": "SparseMerge/SparseReorder:1",
  }
  assert values(parsed) == {
    "a": [[1, 2], [3, 4]],
    "b": [0.5, 9.0],
    "c": [b"x", b"y", b"z"],
    "d": [[1, 2, 3], [0, 0, 0]],
    "sp": [1.0, 2.0, 7.0],
  }
  assert {node.op for node in graph.as_graph_def().node} & {"ParseExampleV2"} == set()


def test_one_example_is_parsed_by_the_op_of_1x():
  parsed = parsing.parse_single_example(ROWS[0], FEATURES)
  assert parsed["a"].name == "ParseSingleExample/ParseSingleExample:9"
  assert parsed["a"].shape.as_list() == [2]
  assert values(parsed) == {
    "a": [1, 2],
    "b": 0.5,
    "c": [b"x", b"y"],
    "d": [1, 2, 3],
    "sp": [1.0, 2.0],
  }


@pytest.mark.parametrize("parse", [parsing.parse_single_example, parsing.parse_example])
def test_functions_of_a_dataset_keep_todays_op(graph, parse):
  rows = tf.data.Dataset.from_tensor_slices(ROWS)
  rows = rows.batch(2) if parse is parsing.parse_example else rows
  parsed = tf.data.make_one_shot_iterator(rows.map(lambda row: parse(row, FEATURES))).get_next()
  assert values(parsed)["a"] == ([[1, 2], [3, 4]] if parse is parsing.parse_example else [1, 2])
  ops = {
    node.op for function in graph.as_graph_def().library.function for node in function.node_def
  }
  assert ops & {"ParseExample", "ParseSingleExample"} == set()


def test_names_of_examples_stand_in_messages():
  features = {"a": tf.FixedLenFeature([3], tf.int64)}
  parsed = parsing.parse_example(tf.constant(ROWS[:1]), features, example_names=["row 0"])
  with pytest.raises(tf.errors.InvalidArgumentError, match="row 0"):
    values(parsed)


def test_no_features_and_unknown_kinds_are_refused():
  with pytest.raises(ValueError, match="Missing features"):
    parsing.parse_example(tf.constant(ROWS), {})
  with pytest.raises(ValueError, match="for key 'x'"):
    parsing.parse_single_example(ROWS[0], {"x": tf.int64})
