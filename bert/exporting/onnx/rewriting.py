"""A model of ONNX while it is being rewritten: its nodes in order, and its weights by name."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from bert.exporting.onnx.nodes import MICROSOFT


class Rewriting:
  """A copy of a model, whose nodes are added anew.

  Attributes:
    nodes: those added.
    old_nodes: those of the model.
    made: names of the tensors that new nodes make.
  """

  def __init__(self, model: onnx.ModelProto):
    self.nodes: list[onnx.NodeProto] = []
    self.old_nodes = list(model.graph.node)
    self.made: set[str] = set()
    self._model = model
    self._weights = {each.name: each for each in model.graph.initializer}
    self._makers = {name: node for node in self.old_nodes for name in node.output}

  def add(
    self, kind: str, inputs: Iterable[str], outputs: Iterable[str], domain: str = "", **options: Any
  ) -> None:
    """Adds a node."""
    inputs, outputs = list(inputs), list(outputs)
    while not inputs[-1]:  # those at the end that are left out have no name
      inputs.pop()
    self.nodes.append(helper.make_node(kind, inputs, outputs, outputs[0], domain=domain, **options))
    self.made.update(outputs)

  def keep(self, name: str, array: Any) -> str:
    """Adds a weight, unless there is one of that name; returns the name."""
    if name not in self._weights:
      self._weights[name] = numpy_helper.from_array(np.asarray(array), name)
    return name

  def array(self, name: str) -> np.ndarray:
    """Returns a weight."""
    return numpy_helper.to_array(self._weights[name])

  def shape(self, name: str) -> tuple[int, ...]:
    """Returns the shape of a weight; () for tensors that are computed."""
    return tuple(self._weights[name].dims) if name in self._weights else ()

  def source(self, name: str) -> onnx.NodeProto | None:
    """Returns the node of the old model that computes a tensor, before any reshaping."""
    node = self._makers.get(name)
    while node is not None and node.op_type == "Reshape":
      node = self._makers.get(node.input[0])
    return node

  def model(self, **metadata: str) -> onnx.ModelProto:
    """Returns the model of the new nodes and the weights that they read."""
    model = onnx.ModelProto()
    model.CopyFrom(self._model)
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.extend(self.nodes)
    read = {name for node in self.nodes for name in node.input}
    model.graph.initializer.extend(w for name, w in self._weights.items() if name in read)
    if MICROSOFT not in {each.domain for each in model.opset_import}:
      model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    helper.set_model_props(model, {**_props(model), **metadata})
    return model


def _props(model):
  return {entry.key: entry.value for entry in model.metadata_props}
