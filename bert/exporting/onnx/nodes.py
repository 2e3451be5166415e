"""The nodes and tensors of an ONNX graph while it is being written.

Types: ONNX wants int64 where TensorFlow has int32 (shapes, indices), so int32 becomes int64
everywhere, and no node converts one to the other.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper, numpy_helper

OPSET = 18
"""The version of ONNX' operators; models need onnxruntime 1.14 or newer."""

MICROSOFT = "com.microsoft"
"""The domain of onnxruntime's own operators."""

_IR_VERSION = 8  # of the file's form; newer ones are refused by older programs
_LONGEST_NUMBERS = 16  # constants up to this size are compared by value


class Constant(NamedTuple):
  """A tensor whose value is known; `name` is that of a variable, or "" where it has none."""

  array: np.ndarray
  name: str = ""


class Nodes:
  """Collects nodes; equal ones are kept once.

  Attributes:
    matrix_products: names of the tensors that are products of two matrices.
  """

  def __init__(self):
    self.matrix_products: set[str] = set()
    self._nodes: list[onnx.NodeProto] = []
    self._makers: dict[str, onnx.NodeProto] = {}
    self._known: dict[Any, tuple[str, ...]] = {}
    self._initializers: dict[str, np.ndarray] = {}
    self._names: dict[Any, str] = {}
    self._kept: list[np.ndarray] = []  # so that no other array gets the same `id`

  def add(
    self, op: str, *inputs: Any, domain: str = "", outputs: int = 1, **attributes: Any
  ) -> Any:
    """Adds a node.

    Args:
      op: its operator.
      *inputs: names of tensors, `Constant`s, arrays or Python numbers; "" for one that is left out.
      domain: of the operator.
      outputs: how many there are.
      **attributes: of the node.

    Returns:
      The name of the output, or a tuple of names.
    """
    names = tuple(each if isinstance(each, str) else self.constant(each) for each in inputs)
    key = op, names, domain, outputs, repr(sorted(attributes.items()))
    if key not in self._known:
      made = tuple(f"{op}_{len(self._known)}" + (f":{i}" if i else "") for i in range(outputs))
      node = helper.make_node(op, names, made, made[0], domain=domain, **attributes)
      self._nodes.append(node)
      self._makers.update(dict.fromkeys(made, node))
      self._known[key] = made
    made = self._known[key]
    return made[0] if outputs == 1 else made

  def constant(self, value: Any) -> str:
    """Makes an initializer and returns its name: equal small values, and equal names, share one."""
    given, name = value if isinstance(value, Constant) else (np.asarray(value), "")
    array = given.astype(np.int64) if given.dtype == np.int32 else given
    small = array.size <= _LONGEST_NUMBERS
    key = name or ((array.dtype.str, array.shape, array.tobytes()) if small else id(given))
    if key not in self._names:
      self._kept.append(given)
      self._names[key] = name or f"constant_{len(self._initializers)}"
      self._initializers[self._names[key]] = array
    return self._names[key]

  def maker(self, name: Any) -> onnx.NodeProto | None:
    """Returns the node that makes a tensor; None for inputs and constants."""
    return self._makers.get(name) if isinstance(name, str) else None

  def array(self, name: str) -> np.ndarray | None:
    """Returns the value of an initializer; None for other tensors."""
    return self._initializers.get(name)

  def model(
    self,
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[tuple[str, onnx.ValueInfoProto]],
    description: str,
  ) -> onnx.ModelProto:
    """Makes the model; `outputs` are names of tensors, and what they are called outside."""
    for name, info in outputs:
      self._nodes.append(helper.make_node("Identity", [name], [info.name]))
    nodes, read = self._living({info.name for _, info in outputs})
    initializers = [
      numpy_helper.from_array(array, name)
      for name, array in self._initializers.items()
      if name in read
    ]
    graph = helper.make_graph(nodes, "model", inputs, [info for _, info in outputs], initializers)
    domains = {"": OPSET, **({MICROSOFT: 1} if any(node.domain for node in nodes) else {})}
    opsets = [helper.make_opsetid(domain, version) for domain, version in domains.items()]
    return helper.make_model(
      graph,
      opset_imports=opsets,
      ir_version=_IR_VERSION,
      producer_name="bert",
      doc_string=description,
    )

  def _living(self, wanted: set[str]) -> tuple[list[onnx.NodeProto], set[str]]:
    """Lists the nodes that the wanted tensors depend on, and names all tensors they read."""
    living = []
    for node in reversed(self._nodes):
      if wanted.intersection(node.output):
        living.append(node)
        wanted.update(node.input)
    return living[::-1], wanted


def onnx_type(dtype: Any) -> int:
  """Returns ONNX' number of a NumPy type, int64 for int32."""
  dtype = np.dtype(dtype)
  return helper.np_dtype_to_tensor_dtype(np.dtype(np.int64) if dtype == np.int32 else dtype)
