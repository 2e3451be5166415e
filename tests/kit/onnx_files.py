"""A model of ONNX of three operations, right or wrong, and what engines say of wrong ones."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

BATCH = {"input_ids": np.array([[3, 1], [2, 0]], np.int32), "input_mask": np.ones((2, 2), np.int32)}


def write(path, inputs=("input_ids", "attention_mask"), kind=TensorProto.INT64, **changes):
  """Writes a model that looks words up in a table of 4, and multiplies by the mask."""
  table = numpy_helper.from_array(np.arange(4, dtype=np.float32), "table")
  first, last = inputs[0], inputs[-1]
  kinds = {first: kind, last: changes.pop("mask_kind", kind)}
  nodes = [
    helper.make_node(changes.pop("operator", "Gather"), ["table", first], ["rows"]),
    helper.make_node("Cast", [last], ["mask"], to=TensorProto.FLOAT),
    helper.make_node("Mul", ["rows", "mask"], ["scores"]),
  ]
  sizes = ["batch", "sequence"]
  graph = helper.make_graph(
    nodes,
    "g",
    [helper.make_tensor_value_info(name, kinds[name], sizes) for name in inputs],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, sizes)],
    [table],
  )
  opset = helper.make_opsetid("", changes.pop("opset", 18))
  model = helper.make_model(graph, opset_imports=[opset], ir_version=changes.pop("ir_version", 8))
  helper.set_model_props(model, changes)
  onnx.save(model, str(path))
  return str(path)


def check_refusal(load, folder, changes, message):
  """A model with these changes is refused in one line that names its file."""
  with pytest.raises(ValueError, match=rf"model\.onnx .*{message}") as error:
    load(write(folder / "model.onnx", **changes))
  assert "\n" not in str(error.value)
