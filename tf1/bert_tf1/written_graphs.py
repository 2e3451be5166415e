"""Graphs that are written are those of 1.15: without the attributes that operations have got since.

A script writes its graph for others to read: by `tf.train.write_graph`, by
`convert_variables_to_constants`, as `sess.graph_def`. TensorFlow 1.15, its C++ and Java too,
refuses a node with an attribute that it does not know (`grad_a` of each `MatMul`), even one that
says nothing.
"""

import functools

from tensorflow.python.framework import op_def_registry, ops

# What 1.15 did not have, and what has its default where nobody asked for it.
_LATER = {
  "allowed_devices",
  "axis",
  "bad_indices_policy",
  "buffer_size_min",
  "ensure_minimum_range",
  "explicit_paddings",
  "exponential_avg_factor",
  "force_synchronous",
  "index_type",
  "is_files",
  "metadata",
  "narrow_range",
  "offset",
  "perturb_singular",
  "replicate_on_split",
  "resize_if_index_out_of_bounds",
  "sparse_gradient",
  "Tcomplex",
  "Tk",
  "Treal",
  "use_default_device",
  "validate_shape",
}
# What changes no number: which factor is a gradient, and a variable's name for messages.
_HINTS = {"debug_name", "grad_a", "grad_b", "grad_x", "grad_y"}


def remove_later_attributes(graph_def) -> None:
  """Removes from a GraphDef, in place, what 1.15 does not know and would do without being told."""
  _remove(graph_def.node)
  for function in graph_def.library.function:
    _remove(function.node_def)


def _remove(nodes) -> None:
  for node in nodes:
    later = [name for name in node.attr if name in _HINTS or name in _LATER]
    for name in later:
      if name in _HINTS or node.attr[name] == _defaults(node.op).get(name):
        del node.attr[name]


@functools.cache
def _defaults(op: str) -> dict:
  """Returns the values that attributes of an operation have by default; none for a function."""
  found = op_def_registry.get(op)
  if found is None:
    return {}
  return {a.name: a.default_value for a in found.attr if a.HasField("default_value")}


def _write_for_written_graphs() -> None:
  """Has each graph of the process written so."""
  write = ops.Graph._as_graph_def

  @functools.wraps(write)
  def write_older(self, *args, **kwargs):
    graph_def, version = write(self, *args, **kwargs)
    remove_later_attributes(graph_def)
    return graph_def, version

  ops.Graph._as_graph_def = write_older


_write_for_written_graphs()
