"""Writes a model as ONNX: the traced function of a `TokenGraph`, operation by operation.

  graph = token_graph.of_task(config, head)
  graph.load(checkpoint)
  write(graph, "model.onnx")

What the model computes is said once, by its head; here each operation of TensorFlow becomes nodes
of ONNX (`operations.py`), and each block that the model has noted becomes an operator of
onnxruntime (`blocks.py`). Inputs are int64 `[batch, sequence]` with the names that transformers'
exports have; outputs have the names of `TokenGraph.outputs`.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
import tensorflow as tf
from onnx import helper

from bert.exporting.onnx import (
  array_operations,  # noqa: F401 (registers its operations)
  blocks,
  operations,
)
from bert.exporting.onnx.names import INPUTS
from bert.exporting.onnx.nodes import Constant, Nodes, onnx_type
from bert.exporting.token_graph import TokenGraph
from bert.io import atomic_files

_LARGEST_FILE_BYTES = 2**31 - 2**20  # a protocol buffer has at most 2 GB


def write(graph: TokenGraph, path: str) -> None:
  """Writes a model, whole or not at all.

  Args:
    graph: the model, with its weights.
    path: of the file.

  Raises:
    ValueError: the head uses an operation that has no counterpart here, or the model is too large.
    OSError: the file cannot be written.
  """
  model = model_of(graph)
  if (size := model.ByteSize()) > _LARGEST_FILE_BYTES:
    raise ValueError(
      f"{path}: the model takes {size / 2**30:.1f} GB, and a file of ONNX at most 2. "
      "Export it with --format=saved_model."
    )
  atomic_files.write_bytes(path, model.SerializeToString())


def model_of(graph: TokenGraph) -> onnx.ModelProto:
  """Makes the model that `write` writes."""
  nodes = Nodes()
  function = graph.function
  walk = _Walk(nodes, graph.title, {block.output.ref(): block for block in graph.blocks})
  for variable in graph.variables:
    walk.variables[id(variable.handle)] = Constant(variable.numpy(), variable.name.split(":")[0])
  for outside, inside in function.graph.captures:
    walk.values[inside.ref()] = walk.variables.get(id(outside)) or Constant(outside.numpy())
  for placeholder in function.graph.inputs:
    if (name := placeholder.op.name) in INPUTS:
      walk.values[placeholder.ref()] = INPUTS[name]
  tensors = function.structured_outputs
  names = {name: nodes.add("Identity", walk.name_of(tensors[name])) for name in graph.outputs}
  inputs = [_info(INPUTS[name], np.int64, (None, None)) for name in graph.inputs]
  outputs = [(names[name], _info(name, *_type_and_shape(tensors[name]))) for name in graph.outputs]
  return nodes.model(inputs, outputs, f"{graph.title} of a BERT model")


def _type_and_shape(tensor) -> tuple[Any, list]:
  return tensor.dtype.as_numpy_dtype, tensor.shape.as_list()


def _info(name: str, dtype, shape) -> onnx.ValueInfoProto:
  known = ("batch", "sequence")
  sizes = [
    size if size is not None else (known[axis] if axis < 2 else f"{name}_{axis}")
    for axis, size in enumerate(shape)
  ]
  return helper.make_tensor_value_info(name, onnx_type(dtype), sizes)


class _Walk:
  """A walk over a graph of TensorFlow, from the tensors that are asked for to what they need.

  Attributes:
    nodes: where it writes.
    values: of each tensor seen, by reference: a name in ONNX or a `Constant`; for the handle of a
      variable, the variable's value.
    variables: values of the model's variables, by `id` of their handles.
  """

  def __init__(self, nodes: Nodes, title: str, known_blocks: Mapping[Any, Any]):
    self.nodes = nodes
    self.values: dict[Any, Any] = {}
    self.variables: dict[int, Constant] = {}
    self._title = title
    self._blocks = known_blocks

  def name_of(self, tensor) -> str:
    """Writes all that a tensor depends on; returns its name in ONNX."""
    return operations.name(self.nodes, self.value_of(tensor))

  def value_of(self, tensor) -> Any:
    """Writes all that a tensor depends on; returns its value, see `values`."""
    for each in self._in_order(tensor):
      block = self._block_of(each)
      if block is not None:
        self.values[each.ref()] = blocks.write(self.nodes, block, self.known_value)
      else:
        self._write_operation(each.op)
    return self.values[tensor.ref()]

  def known_value(self, given: Any) -> Any:
    """Returns the value of a tensor that is written, or of a variable; other objects themselves."""
    if isinstance(given, tf.Variable):
      return self.variables[id(given.handle)]
    return self.values[given.ref()] if tf.is_symbolic_tensor(given) else given

  def _block_of(self, tensor):
    block = self._blocks.get(tensor.ref())
    return block if block is not None and block.name in blocks.WRITERS else None

  def _needs(self, tensor) -> list:
    block = self._block_of(tensor)
    if block is None:
      return list(tensor.op.inputs)
    return [each for each in block.inputs.values() if tf.is_symbolic_tensor(each)]

  def _in_order(self, tensor) -> Iterator[Any]:
    """Yields tensors without a value, each after those that it needs."""
    waiting, entered = [tensor], set()
    while waiting:
      top = waiting[-1]
      if top.ref() in self.values:
        waiting.pop()
      elif top.ref() in entered:
        waiting.pop()
        yield top
      else:
        entered.add(top.ref())
        waiting += [each for each in self._needs(top) if each.ref() not in self.values]

  def _write_operation(self, op) -> None:
    inputs = [self.values[each.ref()] for each in op.inputs]
    results = operations.write(self.nodes, op, inputs, self._title)
    for output, result in zip(op.outputs, results, strict=True):
      self.values[output.ref()] = result
