"""Graphs are written as 1.15 wrote them: without the attributes and fields that came later.

A script writes its graph for others to read: by `tf.train.write_graph`, by `export_meta_graph`, by
`convert_variables_to_constants`, as `sess.graph_def`. TensorFlow 1.15, its C++ and Java too,
refuses a node with an attribute that it does not know (`grad_a` of each `MatMul`), even one that
says nothing; and a text with a field that it does not know (`experimental_type`).
"""

import functools

from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import meta_graph, op_def_registry, ops

# What 1.15 did not have, and what has its default where nobody asked for it.
_LATER = {
  "allow_missing_files",
  "allowed_devices",
  "auto_shard_policy",
  "axis",
  "bad_indices_policy",
  "blank_index",
  "buffer_size_min",
  "cardinality_options",
  "drop_remainder",
  "dtype",
  "ensure_minimum_range",
  "explicit_paddings",
  "exponential_avg_factor",
  "force_synchronous",
  "index_type",
  "is_files",
  "log_warning",
  "metadata",
  "multiply_linear_by_lr",
  "narrow_range",
  "num_replicas",
  "offset",
  "padding_list",
  "perturb_singular",
  "ragged_keys",
  "ragged_split_types",
  "ragged_value_types",
  "ram_budget",
  "replicate_on_split",
  "reshuffle_each_iteration",
  "resize_if_index_out_of_bounds",
  "shape_type",
  "sparse_gradient",
  "stop_on_empty_dataset",
  "Tcomplex",
  "timeout_seconds",
  "Tk",
  "Treal",
  "Tsegmentids",
  "Tshape",
  "use_default_device",
  "validate_shape",
}
# What changes no number: which factor is a gradient, and a variable's name for messages.
_HINTS = {"debug_name", "grad_a", "grad_b", "grad_x", "grad_y"}


def make_older(graph_def) -> None:
  """Removes from a GraphDef, in place, what 1.15 does not know and would do without being told."""
  graph_def.ClearField("debug_info")
  _make_nodes_older(graph_def.node)
  if not graph_def.HasField("library"):
    return
  graph_def.library.ClearField("registered_gradients")
  for function in graph_def.library.function:
    function.ClearField("resource_arg_unique_id")
    _make_operation_older(function.signature)
    _make_nodes_older(function.node_def)


def _make_nodes_older(nodes) -> None:
  for node in nodes:
    node.ClearField("experimental_type")
    later = [name for name in node.attr if name in _HINTS or name in _LATER]
    for name in later:
      if name in _HINTS or node.attr[name] == _defaults(node.op).get(name):
        del node.attr[name]


def _make_operation_older(op_def: op_def_pb2.OpDef) -> None:
  """Removes the fields that definitions of operations have got since."""
  op_def.ClearField("is_distributed_communication")
  for argument in (*op_def.input_arg, *op_def.output_arg):
    argument.ClearField("experimental_full_type")
    argument.ClearField("handle_data")


@functools.cache
def _defaults(op: str) -> dict:
  """Returns the values that attributes of an operation have by default; none for a function."""
  found = op_def_registry.get(op)
  if found is None:
    return {}
  return {a.name: a.default_value for a in found.attr if a.HasField("default_value")}


def _write_older_graphs() -> None:
  """Has each graph of the process written so, and the list of operations in a MetaGraphDef."""
  write = ops.Graph._as_graph_def
  list_operations = meta_graph.stripped_op_list_for_graph

  @functools.wraps(write)
  def write_older(self, *args, **kwargs):
    graph_def, version = write(self, *args, **kwargs)
    make_older(graph_def)
    return graph_def, version

  @functools.wraps(list_operations)
  def list_older(graph_def):
    operations = list_operations(graph_def)
    for op_def in operations.op:
      _make_operation_older(op_def)
    return operations

  ops.Graph._as_graph_def = write_older
  meta_graph.stripped_op_list_for_graph = list_older


_write_older_graphs()
