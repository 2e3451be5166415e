"""TensorFlow's operations as nodes of ONNX; `array_operations.py` has those on axes and indices.

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

  def is_float(self) -> bool:
    """Returns whether the first input is of floating-point numbers."""
    return self.op.inputs[0].dtype.is_floating

  def one(self, value: float = 1) -> np.ndarray:
    """Returns a number of the first input's type."""
    return np.asarray(value, self.op.inputs[0].dtype.as_numpy_dtype)


def name(nodes: Nodes, value: Any) -> str:
  """Returns a value's name in ONNX, that of an initializer for a constant."""
  return value if isinstance(value, str) else nodes.constant(value)


def is_call(op: tf.Operation) -> bool:
  """Returns whether the operation calls a `tf.function`."""
  return op.type in ("PartitionedCall", "StatefulPartitionedCall")


def body_of(op: tf.Operation):
  """Returns the graph of the `tf.function` that is called."""
  return op.graph._get_function(op.get_attr("f").name).graph


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
      "with other functions of TensorFlow, or export with --format=saved_model."
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
  **{"AddV2": "Add", "Add": "Add", "Sub": "Sub", "Mul": "Mul", "RealDiv": "Div", "Pow": "Pow"},
  **{"Maximum": "Max", "Minimum": "Min", "Equal": "Equal", "Less": "Less"},
  **{"LessEqual": "LessOrEqual", "Greater": "Greater", "GreaterEqual": "GreaterOrEqual"},
  **{"LogicalAnd": "And", "LogicalOr": "Or", "LogicalNot": "Not", "SelectV2": "Where"},
  **{"Neg": "Neg", "Exp": "Exp", "Log": "Log", "Sqrt": "Sqrt", "Tanh": "Tanh", "Relu": "Relu"},
  **{"Sigmoid": "Sigmoid", "Erf": "Erf", "Abs": "Abs", "Sign": "Sign", "Floor": "Floor"},
  **{"Ceil": "Ceil", "Round": "Round", "Rint": "Round", "Sin": "Sin", "Cos": "Cos"},
  **{"Softplus": "Softplus", "Softsign": "Softsign", "IsNan": "IsNaN", "IsInf": "IsInf"},
  **{"Reciprocal": "Reciprocal", "Inv": "Reciprocal", "AddN": "Sum", "Select": "Where"},
}
_UNCHANGED = (
  *("Identity", "StopGradient", "PreventGradient", "CheckNumerics", "EnsureShape", "Snapshot"),
  *("PlaceholderWithDefault", "ReadVariableOp"),
)
_NOT_COMPUTED = ("Placeholder", "ResourceGather")


@writes(*_SAME)
def _same(op):
  if op.op.type == "AddV2" and (biased := _product_with_bias(op)):
    return biased
  return op.add(_SAME[op.op.type])


@writes(*_UNCHANGED)
def _unchanged(op):
  return op.inputs[0]


@writes("IdentityN")
def _identities(op):
  return list(op.inputs)


@writes("Cast")
def _cast(op):
  source, target = op.attr("SrcT"), op.attr("DstT")
  if onnx_type(source.as_numpy_dtype) == onnx_type(target.as_numpy_dtype):
    return op.inputs[0]
  return op.add("Cast", to=onnx_type(target.as_numpy_dtype))


@writes("NotEqual")
def _not_equal(op):
  return op.add("Not", op.add("Equal"))


@writes("LogicalXor")
def _xor(op):
  return op.add("Xor")


@writes("IsFinite")
def _is_finite(op):
  return op.add("Not", op.add("Or", op.add("IsNaN"), op.add("IsInf")))


@writes("Rsqrt")
def _rsqrt(op):
  return op.add("Reciprocal", op.add("Sqrt"))


@writes("Erfc")
def _erfc(op):
  return op.add("Sub", op.one(), op.add("Erf"))


@writes("Log1p")
def _log1p(op):
  return op.add("Log", op.add("Add", op.one(), *op.inputs))


@writes("Expm1")
def _expm1(op):
  return op.add("Sub", op.add("Exp"), op.one())


@writes("Square")
def _square(op):
  return op.add("Mul", op.inputs[0], op.inputs[0])


@writes("SquaredDifference")
def _squared_difference(op):
  difference = op.add("Sub")
  return op.add("Mul", difference, difference)


@writes("FloorDiv")
def _floor_div(op):
  if op.is_float():
    return op.add("Floor", op.add("Div"))
  rest = op.add("Mod")  # has the sign of the divisor, as in Python
  return op.add("Div", op.add("Sub", op.inputs[0], rest), op.inputs[1])


@writes("FloorMod")
def _floor_mod(op):
  if not op.is_float():
    return op.add("Mod")
  whole = op.add("Mul", op.add("Floor", op.add("Div")), op.inputs[1])
  return op.add("Sub", op.inputs[0], whole)


@writes("DivNoNan")
def _div_no_nan(op):
  is_zero = op.add("Equal", op.inputs[1], op.one(0))
  safe = op.add("Where", is_zero, op.one(1), op.inputs[1])
  return op.add("Where", is_zero, op.one(0), op.add("Div", op.inputs[0], safe))


@writes("Relu6")
def _relu6(op):
  return op.add("Clip", op.inputs[0], op.one(0), op.one(6))


@writes("LeakyRelu")
def _leaky_relu(op):
  return op.add("LeakyRelu", alpha=op.attr("alpha"))


@writes("Elu")
def _elu(op):
  return op.add("Elu")


@writes("Selu")
def _selu(op):
  return op.add("Selu")


@writes("ClipByValue")
def _clip(op):
  return op.add("Min", op.add("Max", op.inputs[0], op.inputs[1]), op.inputs[2])


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


@writes("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
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
