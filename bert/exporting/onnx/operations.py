"""TensorFlow's operations as nodes of ONNX; `array_operations.py` has those on axes and indices.

There are rules for the operations of our heads, of the documented custom tasks, and for elementary
arithmetic. A model with another operation is served as a SavedModel.

A function gets an `Operation` and returns the value of its output, or a list of those of all
outputs. A value is the name of a tensor in ONNX, or a `Constant`. Operations of constants are
computed here and now.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from bert.exporting.onnx.nodes import Constant, Nodes, onnx_type

_WRITERS: dict[str, Callable] = {}


class Operation:
  """An operation of TensorFlow whose inputs are written.

  Attributes:
    nodes: where to write.
    op: the `tf.Operation`.
    inputs: their values.
  """

  def __init__(self, nodes: Nodes, op: tf.Operation, inputs: list):
    self.nodes, self.op, self.inputs = nodes, op, inputs

  def add(self, kind: str, *inputs: Any, **options: Any) -> Any:
    """Adds a node; without inputs, of those of the operation."""
    return self.nodes.add(kind, *(inputs or self.inputs), **options)

  def attr(self, name: str) -> Any:
    """Returns an attribute."""
    return self.op.get_attr(name)

  def rank(self, index: int = 0) -> int:
    """Returns the number of axes of an input."""
    return self.op.inputs[index].shape.rank

  def known(self, index: int) -> np.ndarray:
    """Returns the value of an input that must be constant.

    Raises:
      ValueError: it is not.
    """
    if not isinstance(self.inputs[index], Constant):
      raise ValueError(f"its input {index} is computed, and must be a constant")
    return self.inputs[index].array

  def one(self, value: float = 1) -> np.ndarray:
    """Returns a number of the first input's type."""
    return np.asarray(value, self.op.inputs[0].dtype.as_numpy_dtype)


def name(nodes: Nodes, value: Any) -> str:
  """Returns a value's name in ONNX, that of an initializer for a constant."""
  return value if isinstance(value, str) else nodes.constant(value)


def write(nodes: Nodes, op: tf.Operation, inputs: list, title: str) -> list:
  """Writes an operation.

  Args:
    nodes: where to.
    op: the operation.
    inputs: values of its inputs.
    title: what messages call the model.

  Returns:
    Values of its outputs.

  Raises:
    ValueError: there is no counterpart.
  """
  if op.type not in _NOT_COMPUTED and all(isinstance(each, Constant) for each in inputs):
    return _computed(op, inputs)
  writer = _WRITERS.get(op.type)
  try:
    if writer is None:
      raise ValueError("ONNX has no counterpart of it here")
    results = writer(Operation(nodes, op, inputs))
  except ValueError as error:
    raise ValueError(
      f"{title} uses {op.type} ({op.name}), which cannot be written as ONNX: {error}. Compute it "
      "with other functions of TensorFlow, or serve the SavedModel: export with "
      "--format=saved_model."
    ) from None
  return results if isinstance(results, list) else [results]


def _computed(op, inputs) -> list:
  """Computes an operation of constants with TensorFlow."""
  if op.type == "Const":
    return [Constant(tf.make_ndarray(op.get_attr("value")))]
  if op.type in _UNCHANGED:  # keeps the name of a variable
    return list(inputs[:1])
  definition, arguments, waiting = op.op_def, {}, [each.array for each in inputs]
  inferred = set()
  for argument in definition.input_arg:
    inferred |= {argument.type_attr, argument.number_attr, argument.type_list_attr}
    if argument.number_attr:
      count = op.get_attr(argument.number_attr)
      arguments[argument.name], waiting = waiting[:count], waiting[count:]
    else:
      arguments[argument.name] = waiting.pop(0)
  names = [attribute.name for attribute in definition.attr if attribute.name not in inferred]
  attributes = {name: op.get_attr(name) for name in names}
  with tf.init_scope():
    results = getattr(tf.raw_ops, op.type)(**arguments, **attributes)
  results = results if isinstance(results, (list, tuple)) else [results]
  return [Constant(each.numpy()) for each in results]


def writes(*kinds: str) -> Callable:
  """Decorates the function for operations of these kinds."""

  def register(function):
    for kind in kinds:
      _WRITERS[kind] = function
    return function

  return register


def as_vector(nodes: Nodes, number: Any) -> Any:
  """Makes a vector with one entry of a number: a value, or an int of Python."""
  if isinstance(number, int):
    return np.asarray([number], np.int64)
  if isinstance(number, Constant):
    return Constant(number.array.reshape(1))
  return size_as_vector(nodes, number) or nodes.add("Unsqueeze", number, [0])


def size_as_vector(nodes: Nodes, value: Any) -> str | None:
  """Writes one size of a shape as a vector, without a number between; None for other values."""
  maker = nodes.maker(value)
  if maker is None or maker.op_type != "Gather":
    return None
  shape, index = nodes.maker(maker.input[0]), nodes.array(maker.input[1])
  if shape is None or shape.op_type != "Shape" or index is None or index.ndim or index < 0:
    return None
  return nodes.add("Shape", shape.input[0], start=int(index), end=int(index) + 1)


# ---------------------------------------------------------------------------------------------
# Elementwise.


_SAME = {  # operations with a counterpart of the same inputs and no attributes
  **{"AddV2": "Add", "Sub": "Sub", "Mul": "Mul", "RealDiv": "Div", "Pow": "Pow", "Neg": "Neg"},
  **{"Maximum": "Max", "Minimum": "Min", "Equal": "Equal", "SelectV2": "Where"},
  **{"Less": "Less", "LessEqual": "LessOrEqual", "Greater": "Greater"},
  **{"GreaterEqual": "GreaterOrEqual", "LogicalAnd": "And", "LogicalOr": "Or", "LogicalNot": "Not"},
  **{"Exp": "Exp", "Log": "Log", "Sqrt": "Sqrt", "Tanh": "Tanh", "Relu": "Relu"},
  **{"Sigmoid": "Sigmoid", "Abs": "Abs"},
}
_UNCHANGED = ("Identity", "StopGradient", "ReadVariableOp")
_NOT_COMPUTED = ("Placeholder", "ResourceGather")


@writes(*_SAME)
def _same(op):
  if op.op.type == "AddV2" and (biased := _product_with_bias(op)):
    return biased
  return op.add(_SAME[op.op.type])


@writes(*_UNCHANGED)
def _unchanged(op):
  return op.inputs[0]


@writes("Cast")
def _cast(op):
  source, target = op.attr("SrcT"), op.attr("DstT")
  if onnx_type(source.as_numpy_dtype) == onnx_type(target.as_numpy_dtype):
    return op.inputs[0]
  return op.add("Cast", to=onnx_type(target.as_numpy_dtype))


@writes("NotEqual")
def _not_equal(op):
  return op.add("Not", op.add("Equal"))


@writes("Erfc")
def _erfc(op):
  return op.add("Sub", op.one(), op.add("Erf"))


@writes("Softmax", "LogSoftmax")
def _softmax(op):
  return op.add(op.op.type, axis=-1)


@writes("BiasAdd")
def _bias_add(op):
  return _product_with_bias(op) or op.add("Add")


# ---------------------------------------------------------------------------------------------
# Products.


@writes("MatMul")
def _mat_mul(op):
  if op.attr("transpose_a") or op.attr("transpose_b"):
    parts = (_swapped(op, i, op.attr(f"transpose_{'ab'[i]}")) for i in range(2))
    product = op.add("MatMul", *parts)
  else:
    product = op.add("MatMul")
  op.nodes.matrix_products.add(product)
  return product


@writes("BatchMatMulV2")
def _batch_mat_mul(op):
  return op.add("MatMul", *(_swapped(op, i, op.attr(f"adj_{'xy'[i]}")) for i in range(2)))


def _swapped(op, index, is_swapped):
  """An input, its last two axes swapped."""
  value = op.inputs[index]
  if not is_swapped:
    return value
  if isinstance(value, Constant):
    return Constant(np.swapaxes(value.array, -1, -2), value.name and f"{value.name}/transposed")
  axes = list(range(op.rank(index)))
  return op.add("Transpose", value, perm=[*axes[:-2], axes[-1], axes[-2]])


def _product_with_bias(op):
  """Writes the sum of a matrix product and a vector as one node; None where it is not one."""
  product, bias = op.op.inputs
  is_product = product.op.type == "MatMul" and len(product.consumers()) == 1
  if not is_product or not isinstance(op.inputs[1], Constant) or bias.shape.rank != 1:
    return None
  return biased(op.nodes, op.inputs[0], op.inputs[1])


def biased(nodes: Nodes, product: Any, bias: Any) -> str:
  """Adds a bias to a value; a matrix product that has been written becomes one with a bias."""
  if product not in nodes.matrix_products:
    return nodes.add("Add", product, bias)
  return nodes.add("Gemm", *nodes.maker(product).input, bias)


@writes("Einsum")
def _einsum(op):
  return op.add("Einsum", equation=op.attr("equation").decode())
