"""Blocks of a transformer as onnxruntime's operators; `model/block_notes.py` says what is noted.

The forms are those that were fastest on a CPU with onnxruntime 1.31: matrix products as `Gemm` with
their bias on `[M, W]`, GELU and the whole attention as one operator each, and LayerNorm as ONNX'
own, as onnxruntime's operator that adds the residual, too, takes five times as long.

Letters in shapes: B = batch size, S = sequence length, W = width, M = B * S.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto

from bert.exporting.onnx import operations
from bert.exporting.onnx.nodes import MICROSOFT, Constant, Nodes
from bert.model.block_notes import Block

_HIDDEN = -10000.0  # what `modeling.attention_layer` adds to the scores of padding


def write(nodes: Nodes, block: Block, value_of: Callable[[Any], Any]) -> str:
  """Writes a block; returns the name of its output.

  Args:
    nodes: where to.
    block: the block.
    value_of: from one of its inputs to a value, which is written already.
  """
  inputs = {name: value_of(each) for name, each in block.inputs.items()}
  return WRITERS[block.name](nodes, inputs, block)


def _layer_norm(nodes, inputs, block):
  parts = (inputs[name] for name in ("x", "gamma", "beta"))
  return nodes.add("LayerNormalization", *parts, axis=-1, epsilon=block.settings["epsilon"])


def _add_layer_norm(nodes, inputs, block):
  biased = operations.biased(nodes, inputs["x"], inputs["bias"])
  return _layer_norm(nodes, {**inputs, "x": nodes.add("Add", biased, inputs["residual"])}, block)


def _bias_gelu(nodes, inputs, block):
  biased = operations.biased(nodes, inputs["x"], inputs["bias"])
  return nodes.add("FastGelu", biased, domain=MICROSOFT)


def _gelu_erf(nodes, inputs, block):
  return nodes.add("Gelu", inputs["x"], domain=MICROSOFT)


def _attention(nodes, inputs, block):
  """Attention of queries `[M, W]` to keys `[M', W]`; the same tensor in self-attention."""
  masks = ("", "")
  if inputs["mask"] is not None:
    masks = _masks(nodes, inputs, serves_all_queries=block.inputs["mask"].shape[1] == 1)
  options = {"num_heads": block.settings["heads"], "mask_filter_value": _HIDDEN}
  if block.inputs["queries"] is block.inputs["keys"]:
    context = _self_attention(nodes, inputs, masks, options)
  else:
    context = _cross_attention(nodes, inputs, masks, options)
  width = inputs["value/kernel"].array.shape[1]
  return nodes.add("Reshape", context, np.asarray([-1, width]))


def _masks(nodes, inputs, serves_all_queries):
  """The key mask, int32 `[B, T]`, and what is added to scores, `[B, 1, F, T]`: one of both."""
  if not serves_all_queries:
    return "", inputs["adder"]
  mask = nodes.add("Squeeze", inputs["mask"], [1])
  return nodes.add("Cast", mask, to=TensorProto.INT32), ""


def _self_attention(nodes, inputs, masks, options):
  key_mask, adder = masks
  parts = ("query", "key", "value")
  joined = [
    Constant(
      np.concatenate([inputs[f"{each}/{part}"].array for each in parts], -1),
      inputs[f"query/{part}"].name.replace("/query/", "/query_key_value/"),
    )
    for part in ("kernel", "bias")
  ]
  sequences = _sequences(nodes, inputs, inputs["queries"])
  given = [sequences, *joined, key_mask, "", adder]
  return _add_with_options(nodes, "Attention", given, options)


def _cross_attention(nodes, inputs, masks, options):
  def projected(part, rows):
    product = nodes.add("Gemm", rows, inputs[f"{part}/kernel"], inputs[f"{part}/bias"])
    return _sequences(nodes, inputs, product, inputs[f"{part}/kernel"].array.shape[1])

  parts = {"query": "queries", "key": "keys", "value": "keys"}
  given = [*(projected(part, inputs[rows]) for part, rows in parts.items()), "", *masks]
  return _add_with_options(nodes, "MultiHeadAttention", given, options)


def _sequences(nodes, inputs, rows, width=None):
  """Reshapes rows `[M, W]` to `[B, S, W]`."""
  width = width or inputs["query/kernel"].array.shape[0]
  batch_size = operations.as_vector(nodes, inputs["batch_size"])
  shape = nodes.add("Concat", batch_size, np.asarray([-1, width]), axis=0)
  return nodes.add("Reshape", rows, shape)


def _add_with_options(nodes, operator, inputs, options):
  while inputs[-1] == "":  # those at the end that are left out have no name
    inputs.pop()
  return nodes.add(operator, *inputs, domain=MICROSOFT, **options)


WRITERS: dict[str, Callable] = {
  "layer_norm": _layer_norm,
  "add_layer_norm": _add_layer_norm,
  "bias_gelu": _bias_gelu,
  "gelu_erf": _gelu_erf,
  "attention": _attention,
}
"""Name of a block -> what writes it; other blocks are written operation by operation."""
