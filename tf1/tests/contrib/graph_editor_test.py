"""`tf.contrib.graph_editor`: what TensorFlow 1.15.5 gave for the same lines, gradients by tf."""

import re

import numpy as np
import pytest

from bert_tf1.contrib import graph_editor as ge
from bert_tf1.real import tf

pytestmark = pytest.mark.usefixtures("graph")


@pytest.fixture
def ops(graph) -> dict:
  """Operations by name: d = b c, b = 2 a, c = s/c = b + 1, e = d that waits for the constant w."""
  a = tf.constant(3.0, name="a")
  b = tf.multiply(a, tf.constant(2.0, name="two"), name="b")
  with tf.name_scope("s"):
    c = tf.add(b, tf.constant(1.0, name="one"), name="c")
  d = tf.multiply(b, c, name="d")
  with tf.control_dependencies([tf.constant(0.0, name="w")]):
    tf.identity(d, name="e")
  tf.add_to_collection("kept", d)
  tf.add_to_collection(tf.GraphKeys.LOSSES, d)
  return {op.name: op for op in graph.get_operations()}


def names(elements) -> list[str]:
  return sorted(element.name for element in elements)


def value(tensor) -> float:
  with tf.Session() as session:
    return session.run(tensor)


def test_walks(ops):
  b, c, d = ops["b"], ops["s/c"], ops["d"]
  assert names(ge.get_forward_walk_ops(b)) == ["b", "d", "e", "s/c"]
  assert names(ge.get_forward_walk_ops([b], inclusive=False)) == ["d", "e", "s/c"]
  assert names(ge.get_forward_walk_ops(b.outputs[0])) == ["d", "e", "s/c"]
  assert names(ge.get_forward_walk_ops(b, within_ops=[b, d, ops["a"]])) == ["b", "d"]
  assert names(ge.get_forward_walk_ops(b, stop_at_ts=d.outputs)) == ["b", "d", "s/c"]
  assert names(ge.get_forward_walk_ops(b, within_ops_fn=lambda op: op is not d)) == ["b", "s/c"]
  assert names(ge.get_forward_walk_ops(ops["w"])) == ["w"]
  waiting = ge.ControlOutputs(b.graph)
  assert names(ge.get_forward_walk_ops(ops["w"], control_outputs=waiting)) == ["e", "w"]
  assert names(ge.get_backward_walk_ops([c])) == ["a", "b", "s/c", "s/one", "two"]
  assert names(ge.get_backward_walk_ops(c.outputs, inclusive=False)) == ["a", "b", "s/one", "two"]
  assert names(ge.get_backward_walk_ops(d, stop_at_ts=b.outputs)) == ["d", "s/c", "s/one"]
  assert names(ge.get_backward_walk_ops(d, within_ops=[c, d])) == ["d", "s/c"]
  assert "w" not in names(ge.get_backward_walk_ops(ops["e"]))
  assert "w" in names(ge.get_backward_walk_ops(ops["e"], control_inputs=True))
  assert names(ge.get_walks_intersection_ops(c, ops["e"])) == ["d", "e", "s/c"]
  assert ge.get_forward_walk_ops([]) == ge.get_backward_walk_ops([]) == []


def test_choosing_operations_and_tensors(ops, graph):
  b, c = ops["b"], ops["s/c"]
  assert names(ge.filter_ts([b, c], True)) == ["a:0", "b:0", "s/c:0", "s/one:0", "two:0"]
  assert names(ge.filter_ts(c, lambda t: t.op is b)) == ["b:0"]
  assert names(ge.filter_ts_from_regex(graph, "^s/")) == ["s/c:0", "s/one:0"]
  assert names(ge.filter_ops(graph, lambda op: op.type == "Mul")) == ["b", "d"]
  assert names(ge.filter_ops_from_regex(graph, re.compile("o"))) == ["s/one", "two"]
  assert names(ge.get_name_scope_ops(graph, "s/")) == ["s/c", "s/one"]
  assert names(ge.select_ops("s/.*", b, c.outputs[0], graph=graph)) == ["b", "s/c", "s/one"]
  assert names(ge.select_ops("^s/", [b], positive_filter=lambda op: op.inputs, graph=graph)) == [
    *("b", "s/c")
  ]
  assert names(ge.select_ops("^b", "(?#ops)^d", restrict_ops_regex=True, graph=graph)) == ["d"]
  assert names(ge.select_ts("(?#ops)b", "c:", b, b.outputs[0], graph=graph)) == ["b:0", "s/c:0"]
  with pytest.raises(ValueError, match="graph"):
    ge.select_ops("b")
  assert names(ge.get_tensors(graph)) == names(t for op in ops.values() for t in op.outputs)
  assert ge.get_consuming_ops(ge.make_list_of_t(c.outputs[0])) == [ops["d"]]
  assert ge.get_generating_ops(c.outputs) == ge.make_list_of_op(c) == [c]


def test_views(ops, graph):
  inputs, outputs, inside = ge.compute_boundary_ts([ops["b"], ops["s/c"]])
  assert names(inputs) == ["a:0", "s/one:0", "two:0"]
  assert (names(outputs), names(inside)) == (["b:0", "s/c:0"], ["b:0"])
  view = ge.sgv([ops["s/c"], ops["d"]])
  assert (names(view.inputs), names(view.outputs)) == (["b:0", "s/one:0"], ["d:0"])
  assert ge.make_view(view) is view
  assert names(ge.sgv_scope("s", graph).ops) == ["s/c", "s/one"]
  assert ge.make_view_from_scope is ge.sgv_scope
  assert ge.subgraph.SubGraphView is ge.SubGraphView
  assert ge.SubGraphView().graph is None


def test_a_copy_reads_copies_and_what_replaces(ops, graph):
  b, c, d = ops["b"], ops["s/c"], ops["d"]
  seven = tf.constant(7.0, name="seven")
  view, info = ge.copy_with_input_replacements(ge.sgv([c, d]), {b.outputs[0]: seven})
  assert isinstance(info, ge.TransformerInfo)
  assert names(view.ops) == ["d_1", "s/c_1"]
  assert names(info._transformed_ops.values()) == ["d_1", "s/c_1"]
  assert [t.name for t in view.outputs] == ["d_1:0"]
  assert [t.name for t in info.transformed(d).inputs] == ["seven:0", "s/c_1:0"]
  assert info._transformed_ops[d]._outputs[0] is info.transformed(d.outputs)[0]
  assert [t.name for t in info._transformed_ops[d]._inputs] == ["seven:0", "s/c_1:0"]
  assert info.transformed({"b": b, "c": c}, lambda op: op.name) == {
    "b": "b",
    "c": info.transformed(c),
  }
  assert (value(view.outputs[0]), value(d.outputs[0])) == (7 * 8, 6 * 7)
  assert names(tf.get_collection("kept")) == names(tf.losses.get_losses()) == ["d:0", "d_1:0"]
  assert info.transformed(b) is None


def test_a_copy_in_another_scope(ops, graph):
  for expected in ("copy", "copy_1"):
    view, info = ge.copy_with_input_replacements([ops["e"], ops["d"]], {}, dst_scope="copy")
    assert names(view.ops) == [f"{expected}/d", f"{expected}/e"]
    assert [op.name for op in info.transformed(ops["e"]).control_inputs] == ["w"]
  assert names(tf.get_collection("copy/kept")) == ["copy/d:0"]
  assert len(tf.losses.get_losses()) == 3
  view, _ = ge.copy_with_input_replacements(ops["s/c"], {}, None, "copy", "s", True)
  assert names(view.ops) == ["copy/c"]
  with pytest.raises(ValueError, match=r"d does not belong to source scope: s/\."):
    ge.copy_with_input_replacements(ops["d"], {}, src_scope="s")
  with pytest.raises(ValueError, match="another graph"):
    ge.copy_with_input_replacements(ops["d"], {}, tf.Graph())
  loop = tf.while_loop(lambda i: i < 3, lambda i: i + 1, [tf.constant(0)])
  with pytest.raises(ValueError, match="loops cannot be copied"):
    ge.copy_with_input_replacements(ge.get_backward_walk_ops(loop.op), {})


def test_tensors_with_others_in_their_place(ops):
  b, e = ops["b"].outputs[0], ops["e"].outputs[0]
  replaced = ge.graph_replace(
    [e, b], {b: tf.constant(7.0), ops["s/one"].outputs[0]: tf.constant(2.0)}
  )
  assert [value(tensor) for tensor in replaced] == [7 * 9, 6]
  assert value(ge.graph_replace(e, {b: tf.constant(1.0)})) == 2
  assert value(e) == 6 * 7
  with pytest.raises(ValueError, match="not connected"):
    ge.graph_replace(b, {e: b})


def test_readers_are_given_other_tensors(ops):
  b, c, d = (ops[name].outputs[0] for name in ("b", "s/c", "d"))
  five = tf.constant(5.0)
  assert ge.reroute_ts(five, b, can_modify=[d.op]) == 1
  assert value(d) == 5 * 7
  assert ge.reroute_ts([five], [c], cannot_modify=[d.op]) == 0
  assert ge.reroute_ts({"x": five}.values(), {c: 0}.keys()) == 1
  assert value(d) == 25
  assert ge.reroute_ts(b, five) == 2
  assert value(d) == 36
  assert ge.reroute_ts(b, b) == 0
  for ts0, message in (([], "0 != 1"), (tf.constant(1), "Dtypes"), (tf.constant([1.0]), "Shapes")):
    with pytest.raises(ValueError, match=message):
      ge.reroute_ts(ts0, b)


def test_control_inputs(ops):
  ge.add_control_inputs(ops["d"], [ops["w"], ops["s/one"]])
  assert names(ops["d"].control_inputs) == ["s/one", "w"]
  with pytest.raises(ValueError, match="w is already a control_input of d"):
    ge.add_control_inputs(ops["d"], ops["w"])


def test_gradients_that_compute_the_forward_part_again():
  x = tf.constant(np.linspace(-1, 1, 6).reshape(2, 3).astype("float32"))
  kernels = [
    tf.get_variable(f"w{i}", [3, 3], initializer=tf.orthogonal_initializer()) for i in "123"
  ]
  hidden = [x]
  for i, kernel in enumerate(kernels):
    hidden.append(tf.tanh(tf.matmul(hidden[-1], kernel), name=f"h{i + 1}"))
  loss = tf.reduce_sum(hidden[-1] ** 2, name="loss")
  expected = tf.gradients(loss, kernels)
  kept = hidden[1]  # The second and third layers are computed again.
  forward = ge.get_forward_walk_ops(
    [kernel.op for kernel in kernels], within_ops=ge.get_backward_walk_ops(loss.op)
  )
  again = set(ge.get_backward_walk_ops(loss.op, stop_at_ts=[kept])).intersection(
    op for op in forward if op._inputs and "/read" not in op.name
  )
  stopped = tf.stop_gradient(kept)
  _, info = ge.copy_with_input_replacements(ge.sgv(list(again)), {})
  copied = info._transformed_ops
  assert names(copied) == [*("MatMul_1", "MatMul_2", "h2", "h3", "loss", "pow")]
  assert ge.reroute_ts([stopped], [kept], can_modify=copied.values()) == 1
  slopes = tf.gradients(copied[loss.op]._outputs[0], [stopped, *kernels[1:]])
  for op in (*copied.values(), *(slope.op for slope in slopes)):
    ge.add_control_inputs(op, [loss.op])
  first = tf.gradients(kept, kernels[0], grad_ys=slopes[0])
  with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for one, other in zip(*session.run([[*first, *slopes[1:]], expected]), strict=True):
      np.testing.assert_allclose(one, other, rtol=1e-6)
