"""Graphs that 1.15 reads: python -m pytest tf1/tests/written_graphs_test.py"""

import numpy as np
import pytest
from google.protobuf import text_format
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from bert_tf1 import written_graphs
from bert_tf1.real import tf

# The attributes that these operations have in TensorFlow 1.15.5.
KNOWN = {
  "BatchMatMulV2": {"T", "adj_x", "adj_y"},
  "GatherNd": {"Tindices", "Tparams"},
  "MatMul": {"T", "transpose_a", "transpose_b"},
  "VarHandleOp": {"container", "dtype", "shape", "shared_name"},
}
# The fields of messages that TensorFlow 1.15.5 does not have, of those that 2.21 has.
LATER_FIELDS = {
  "tensorflow.FunctionDef": {"resource_arg_unique_id"},
  "tensorflow.FunctionDefLibrary": {"registered_gradients"},
  "tensorflow.GraphDef": {"debug_info"},
  "tensorflow.MetaGraphDef.MetaInfoDef": {"function_aliases"},
  "tensorflow.NodeDef": {"experimental_type"},
  "tensorflow.OpDef": {"is_distributed_communication"},
  "tensorflow.OpDef.ArgDef": {"experimental_full_type", "handle_data"},
  "tensorflow.SignatureDef": {"defaults"},
}
LAST_TYPE = 23  # DT_UINT64: types of tensors with a higher number are later than 1.15.5


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
    freeze = tf.graph_util.convert_variables_to_constants
    frozen = freeze(session, session.graph_def, ["loss", "dx"])
  assert attributes(frozen.node) == {n: a for n, a in KNOWN.items() if n != "VarHandleOp"}
  with tf.Graph().as_default(), tf.Session() as session:
    tf.import_graph_def(frozen, name="")
    for one, other in zip(session.run(["loss:0", "dx:0"], values), expected, strict=True):
      np.testing.assert_array_equal(one, other)


def test_an_attribute_that_says_something_stays(graph):
  tf.gather_nd([1, 2], [[5]], bad_indices_policy="IGNORE")
  [node] = [node for node in graph.as_graph_def().node if node.op == "GatherNd"]
  assert node.attr["bad_indices_policy"].s == b"IGNORE"


@pytest.mark.parametrize(
  ("op", "known"),
  [
    ("ConcatOffset", {"N"}),
    ("ApplyFtrl", {"T", "use_locking"}),
  ],
)
def test_attributes_of_operations_that_training_makes(graph, op, known):
  table = tf.get_variable("v", [3, 2], use_resource=False)
  both = tf.concat([table, tf.placeholder(tf.float32, [None, 2])], 0)
  tf.train.FtrlOptimizer(0.1).minimize(tf.reduce_sum(both) + tf.reduce_sum(table**2))
  found = [node.attr for node in graph.as_graph_def().node if node.op == op]
  assert found
  assert all({name for name in attr if not name.startswith("_")} == known for attr in found)


def test_operations_in_functions(graph):
  graph_def = tf.GraphDef()
  node = graph_def.library.function.add().node_def.add(op="MatMul")
  node.attr["transpose_a"].b = node.attr["grad_a"].b = True
  written_graphs.make_older(graph_def)
  assert list(node.attr) == ["transpose_a"]


def later_parts(message) -> set[str]:
  """The fields and types of tensors in a message that 1.15.5 cannot read as text."""
  found = set()
  for field, value in message.ListFields():
    if field.name in LATER_FIELDS.get(message.DESCRIPTOR.full_name, ()):
      found.add(field.name)
    values = value.values() if hasattr(value, "values") else value if field.is_repeated else [value]
    for each in values:
      if hasattr(each, "ListFields"):
        found |= later_parts(each)
      elif field.enum_type and field.enum_type.name == "DataType" and each % 100 > LAST_TYPE:
        found.add(field.enum_type.values_by_number[each].name)
  return found


def test_every_later_field_of_a_graph_goes():
  graph_def = tf.GraphDef()
  graph_def.debug_info.files.append("script.py")
  graph_def.library.registered_gradients.add()
  function = graph_def.library.function.add()
  function.resource_arg_unique_id[0] = 1
  function.signature.is_distributed_communication = True
  for argument in (function.signature.input_arg.add(), function.signature.output_arg.add()):
    argument.handle_data.add()
    argument.experimental_full_type.type_id = 1
  for nodes in (graph_def.node, function.node_def):
    nodes.add().experimental_type.type_id = 1
  others = {"tensorflow.MetaGraphDef.MetaInfoDef", "tensorflow.SignatureDef"}
  fields = [names for message, names in LATER_FIELDS.items() if message not in others]
  assert later_parts(graph_def) == set().union(*fields)
  written_graphs.make_older(graph_def)
  assert later_parts(graph_def) == set()


@pytest.fixture
def iterated(graph):
  """A graph with functions and with operations whose outputs have a full type in 2.21."""
  data = tf.data.Dataset.range(4).map(lambda x: tf.bitcast(x * 2, tf.float64)).batch(2)
  tf.data.make_initializable_iterator(data)
  tf.data.make_one_shot_iterator(data).get_next("next")
  tf.raw_ops.TensorListReserve(element_shape=-1, num_elements=2, element_dtype=tf.float32)
  return graph


def test_a_graph_in_text_has_no_field_that_1_15_does_not_know(iterated, tmp_path):
  path = tf.train.write_graph(iterated, str(tmp_path), "graph.pbtxt")
  with open(path) as file:
    written = text_format.Parse(file.read(), tf.GraphDef())
  assert len(written.library.function) >= 2
  assert later_parts(written) == set()


def test_a_meta_graph_in_text_has_no_field_that_1_15_does_not_know(iterated, tmp_path):
  tf.get_variable("v", [])
  path = str(tmp_path / "model.meta")
  tf.train.export_meta_graph(path, as_text=True)
  with open(path) as file:
    written = text_format.Parse(file.read(), meta_graph_pb2.MetaGraphDef())
  assert {"MapDataset", "OneShotIterator"} <= {
    op.name for op in written.meta_info_def.stripped_op_list.op
  }
  assert later_parts(written) == set()


def test_a_saved_model_in_text_has_no_field_that_1_15_does_not_know(iterated, tmp_path):
  tf.get_variable("v", [])
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    builder = tf.saved_model.Builder(str(tmp_path / "export"))
    builder.add_meta_graph_and_variables(session, ["serve"])
    builder.save(as_text=True)
  with open(tmp_path / "export" / "saved_model.pbtxt") as file:
    written = text_format.Parse(file.read(), saved_model_pb2.SavedModel())
  assert later_parts(written) == set()


def test_a_graph_without_functions_gets_no_library(graph):
  tf.constant(1)
  assert not graph.as_graph_def().HasField("library")
