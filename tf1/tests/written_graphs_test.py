"""Graphs that 1.15 reads: python -m pytest tf1/tests/written_graphs_test.py"""

import numpy as np
import pytest
from tensorflow.python.framework import graph_util

from bert_tf1 import written_graphs
from bert_tf1.real import tf

# The attributes that these operations have in TensorFlow 1.15.5.
KNOWN = {
  "BatchMatMulV2": {"T", "adj_x", "adj_y"},
  "GatherNd": {"Tindices", "Tparams"},
  "MatMul": {"T", "transpose_a", "transpose_b"},
  "VarHandleOp": {"container", "dtype", "shape", "shared_name"},
}


def attributes(nodes) -> dict:
  """The attributes of each operation that is in KNOWN."""
  found: dict[str, set] = {}
  for node in nodes:
    if node.op in KNOWN:
      found.setdefault(node.op, set()).update(n for n in node.attr if not n.startswith("_"))
  return found


@pytest.fixture
def loss(graph):
  """The sum of what these operations compute, of the placeholder "x", and its gradient "dx"."""
  x = tf.placeholder("float32", [2, 2], "x")
  weights = tf.get_variable("w", [2, 2], use_resource=True, initializer=tf.ones_initializer())
  product = tf.matmul(tf.matmul(x, weights), x)
  batch = tf.matmul(tf.stack([product] * 2), tf.stack([x] * 2))
  loss = tf.reduce_sum(tf.gather_nd(batch, [[0, 1]]), name="loss")
  tf.identity(tf.gradients(loss, x)[0], "dx")
  return loss


def test_a_graph_has_no_attribute_that_1_15_does_not_know(loss, tmp_path):
  assert attributes(loss.graph.as_graph_def().node) == KNOWN
  with tf.Session() as session:
    assert attributes(session.graph_def.node) == KNOWN
  text = tf.train.write_graph(loss.graph, str(tmp_path), "graph.pbtxt")
  with open(text) as file:
    assert "grad_a" not in file.read()


def test_a_frozen_graph_computes_the_same(loss):
  values = {"x:0": np.array([[1, 2], [3, 4]])}
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    expected = session.run(["loss:0", "dx:0"], values)
    frozen = graph_util.convert_variables_to_constants(session, session.graph_def, ["loss", "dx"])
  assert attributes(frozen.node) == {n: a for n, a in KNOWN.items() if n != "VarHandleOp"}
  with tf.Graph().as_default(), tf.Session() as session:
    tf.import_graph_def(frozen, name="")
    for one, other in zip(session.run(["loss:0", "dx:0"], values), expected, strict=True):
      np.testing.assert_array_equal(one, other)


def test_an_attribute_that_says_something_stays(graph):
  tf.gather_nd([1, 2], [[5]], bad_indices_policy="IGNORE")
  [node] = [node for node in graph.as_graph_def().node if node.op == "GatherNd"]
  assert node.attr["bad_indices_policy"].s == b"IGNORE"


def test_operations_in_functions(graph):
  graph_def = tf.GraphDef()
  node = graph_def.library.function.add().node_def.add(op="MatMul")
  node.attr["transpose_a"].b = node.attr["grad_a"].b = True
  written_graphs.remove_later_attributes(graph_def)
  assert list(node.attr) == ["transpose_a"]
