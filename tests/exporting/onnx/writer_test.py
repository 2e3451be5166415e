"""Models written as ONNX compute what TensorFlow does.

Alone: python -m pytest tests/exporting/onnx/writer_test.py (seconds; TensorFlow and onnxruntime)
"""

import collections

import numpy as np
import onnx
import pytest
import tensorflow as tf

from bert.exporting import token_graph
from bert.exporting.onnx import writer
from bert.model.variables import get_variable
from bert.tasks import kinds
from tests.kit import own_tasks
from tests.kit.onnx_models import FACTS, FEATURES, check, config_of, fill, outputs_of, session_of


def head_of(name, **facts):
  return kinds.find(name).head_class().of_run({**FACTS, **facts}, {})


@pytest.fixture(scope="module")
def encoder():
  return fill(token_graph.of_encoder(config_of()))


def test_encoder(encoder):
  check(encoder)


def test_form_of_the_file(encoder, tmp_path):
  writer.write(encoder, str(tmp_path / "model.onnx"))
  model = onnx.load(str(tmp_path / "model.onnx"))
  onnx.checker.check_model(model, full_check=False)
  assert [each.name for each in model.graph.input] == [
    "input_ids",
    "attention_mask",
    "token_type_ids",
  ]
  sizes = [dim.dim_param for dim in model.graph.input[0].type.tensor_type.shape.dim]
  assert sizes == ["batch", "sequence"]
  assert [each.name for each in model.graph.output] == ["last_hidden_state", "pooler_output"]
  names = {each.name for each in model.graph.initializer}
  assert "bert/encoder/layer_1/intermediate/dense/kernel" in names
  counts = collections.Counter(node.op_type for node in model.graph.node)
  assert (counts["Attention"], counts["FastGelu"], counts["LayerNormalization"]) == (2, 2, 5)
  assert counts["MatMul"] == 1  # of the segments


def test_shared_layers_share_their_weights():
  model = writer.model_of(fill(token_graph.of_encoder(config_of("albert"))))
  attention = [node for node in model.graph.node if node.op_type == "Attention"]
  assert len(attention) == 2
  assert attention[0].input[1] == attention[1].input[1]


@pytest.mark.parametrize(
  ("family", "name", "facts"),
  [("roberta", "sentences", {}), ("electra", "squad", {"answer_head": "electra"})],
)
def test_tasks(family, name, facts):
  check(fill(token_graph.of_task(config_of(family), head_of(name, **facts))))


def test_task_of_a_user():
  with own_tasks.loaded("stars"):
    head = kinds.find("stars").head_class().of_run({"head": {}}, {})
    graph = token_graph.of_task(config_of(), head)
  check(fill(graph))
  assert graph.outputs == ("stars",)


def test_operation_without_a_counterpart():
  def build(features):
    return {"x": tf.math.lgamma(tf.cast(features["input_ids"], tf.float32))}

  with pytest.raises(
    ValueError,
    match=r"^the head Mine uses Lgamma \(Lgamma\), which cannot .* serve the SavedModel: ",
  ):
    writer.model_of(token_graph.TokenGraph(build, title="the head Mine"))


def test_model_that_is_too_large_for_a_file(encoder, tmp_path, monkeypatch):
  monkeypatch.setattr(writer, "_LARGEST_FILE_BYTES", 1000)
  with pytest.raises(ValueError, match="a file of ONNX at most 2"):
    writer.write(encoder, str(tmp_path / "model.onnx"))
  assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------
# Operations, all in one graph.


def _operations(ids, mask):
  """Name -> what a head might compute of int32 `[R, S]`."""
  x = tf.cast(ids, tf.float32) / 3.0 - 2.0  # [R, S], of both signs
  cube = tf.stack([x, x * 2.0, x * x], 2)  # [R, S, 3]
  table = tf.constant(np.arange(60, dtype=np.float32).reshape(20, 3))
  matrix = get_variable("matrix", [3, 4])
  size = tf.shape(ids)[1]
  values, places = tf.nn.top_k(x, 2)
  return {
    **{f"arithmetic_{i}": y for i, y in enumerate([x + 1.0, 2.0 - x, x / 3.0, -x, x**2.0])},
    "extremes": tf.maximum(x, 0.5) - tf.minimum(x, 0.1),
    "comparisons": (ids > 5) & (x <= 2.0) | (ids != 3) & ~(x >= 0.0) & (x < 1.0),
    "where": tf.where(ids == 3, x, 0.0),
    "exponentials": tf.exp(x) + tf.math.log(tf.abs(x) + 1.0) + tf.sqrt(tf.abs(x)),
    "activations": tf.nn.relu(x) + tf.sigmoid(x) + tf.tanh(x) + tf.math.erfc(x),
    "softmaxes": tf.nn.softmax(x) + tf.nn.log_softmax(x) + tf.nn.softmax(cube)[:, :, 0],
    "reductions": tf.reduce_sum(x, 1) + tf.reduce_mean(x, -1) + tf.reduce_max(x, 1),
    "more_reductions": tf.reduce_min(cube, [1, 2]) + tf.reduce_prod(x, 1),
    "kept_axes": tf.reduce_sum(x, 1, keepdims=True),
    "best": tf.argmax(x, 1),
    "top_values": values,
    "top_places": places,
    "sums": tf.cumsum(x, 1, exclusive=True) + tf.cumsum(x, 1, reverse=True),
    "product": tf.matmul(cube, cube, transpose_b=True),
    "dense": tf.nn.bias_add(tf.matmul(tf.reshape(cube, [-1, 3]), matrix), np.arange(4.0)),
    "transposed": tf.matmul(tf.reshape(cube, [-1, 3]), matrix[:3, :3], transpose_b=True),
    "einsum": tf.einsum("rsw,rtw->rst", cube, cube),
    "gather": tf.gather(table, ids),
    "gather_axis": tf.gather(cube, [2, 0], axis=2),
    "gather_rows": tf.gather(cube, places, batch_dims=1),
    "one_hot": tf.one_hot(ids - 4, 3) + tf.one_hot(mask, 3, on_value=5.0, off_value=2.0),
    "slices": x[:, 1:3] + x[:, -2:] + x[:, ::2][:, :2],
    "backwards": x[:, ::-1],
    "taken": x[:, 0] + cube[:, -1, 2] + cube[..., 1][:, 1],
    "new_axes": x[:, tf.newaxis, 1:, tf.newaxis],
    "computed_ends": x[:, : size - 1] + x[:, 1:size],
    "joined": tf.concat([x, tf.pad(x[:, 1:], [[0, 0], [0, 1]], constant_values=7.0)], 1),
    "stacked": tf.stack(tf.unstack(cube, axis=2), axis=0)[:, 0, 0],
    "shapes": tf.reshape(tf.transpose(cube, [0, 2, 1]), [tf.shape(cube)[0], -1]),
    "squeezed": tf.squeeze(tf.expand_dims(x, -1), -1) + tf.squeeze(x[:, tf.newaxis], [1]),
    "filled": tf.fill([size], 3.0) + tf.zeros_like(x) + tf.ones_like(x),
    "unchanged": tf.stop_gradient(tf.identity(x)),
  }


@pytest.fixture(scope="module")
def operations():
  graph = fill(
    token_graph.TokenGraph(lambda batch: _operations(batch["input_ids"], batch["input_mask"]))
  )
  return graph(FEATURES), outputs_of(session_of(writer.model_of(graph)), FEATURES)


def test_operations(operations):
  expected, outputs = operations
  for name, values in outputs.items():
    wanted = expected[name].numpy()
    assert values.shape == wanted.shape, name
    np.testing.assert_allclose(values, wanted, atol=2e-5, rtol=1e-5, err_msg=name)
