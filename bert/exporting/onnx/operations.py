"""TensorFlow's operations as nodes of ONNX, one function for each kind.

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


def _writes(*kinds: str):
  """Decorates the function for operations of these kinds."""

  def register(function):
    for kind in kinds:
      _WRITERS[kind] = function
    return function

  return register


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


@_writes(*_SAME)
def _same(op):
  if op.op.type == "AddV2" and (biased := _product_with_bias(op)):
    return biased
  return op.add(_SAME[op.op.type])


@_writes(*_UNCHANGED)
def _unchanged(op):
  return op.inputs[0]


@_writes("IdentityN")
def _identities(op):
  return list(op.inputs)


@_writes("Cast")
def _cast(op):
  source, target = op.attr("SrcT"), op.attr("DstT")
  if onnx_type(source.as_numpy_dtype) == onnx_type(target.as_numpy_dtype):
    return op.inputs[0]
  return op.add("Cast", to=onnx_type(target.as_numpy_dtype))


@_writes("NotEqual")
def _not_equal(op):
  return op.add("Not", op.add("Equal"))


@_writes("LogicalXor")
def _xor(op):
  return op.add("Xor")


@_writes("IsFinite")
def _is_finite(op):
  return op.add("Not", op.add("Or", op.add("IsNaN"), op.add("IsInf")))


@_writes("Rsqrt")
def _rsqrt(op):
  return op.add("Reciprocal", op.add("Sqrt"))


@_writes("Erfc")
def _erfc(op):
  return op.add("Sub", op.one(), op.add("Erf"))


@_writes("Log1p")
def _log1p(op):
  return op.add("Log", op.add("Add", op.one(), *op.inputs))


@_writes("Expm1")
def _expm1(op):
  return op.add("Sub", op.add("Exp"), op.one())


@_writes("Square")
def _square(op):
  return op.add("Mul", op.inputs[0], op.inputs[0])


@_writes("SquaredDifference")
def _squared_difference(op):
  difference = op.add("Sub")
  return op.add("Mul", difference, difference)


@_writes("FloorDiv")
def _floor_div(op):
  if op.is_float():
    return op.add("Floor", op.add("Div"))
  rest = op.add("Mod")  # has the sign of the divisor, as in Python
  return op.add("Div", op.add("Sub", op.inputs[0], rest), op.inputs[1])


@_writes("FloorMod")
def _floor_mod(op):
  if not op.is_float():
    return op.add("Mod")
  whole = op.add("Mul", op.add("Floor", op.add("Div")), op.inputs[1])
  return op.add("Sub", op.inputs[0], whole)


@_writes("DivNoNan")
def _div_no_nan(op):
  is_zero = op.add("Equal", op.inputs[1], op.one(0))
  safe = op.add("Where", is_zero, op.one(1), op.inputs[1])
  return op.add("Where", is_zero, op.one(0), op.add("Div", op.inputs[0], safe))


@_writes("Relu6")
def _relu6(op):
  return op.add("Clip", op.inputs[0], op.one(0), op.one(6))


@_writes("LeakyRelu")
def _leaky_relu(op):
  return op.add("LeakyRelu", alpha=op.attr("alpha"))


@_writes("Elu")
def _elu(op):
  return op.add("Elu")


@_writes("Selu")
def _selu(op):
  return op.add("Selu")


@_writes("ClipByValue")
def _clip(op):
  return op.add("Min", op.add("Max", op.inputs[0], op.inputs[1]), op.inputs[2])


@_writes("Softmax", "LogSoftmax")
def _softmax(op):
  return op.add(op.op.type, axis=-1)


@_writes("BiasAdd")
def _bias_add(op):
  return _product_with_bias(op) or op.add("Add")


# ---------------------------------------------------------------------------------------------
# Products.


@_writes("MatMul")
def _mat_mul(op):
  if op.attr("transpose_a") or op.attr("transpose_b"):
    parts = (_swapped(op, i, op.attr(f"transpose_{'ab'[i]}")) for i in range(2))
    product = op.add("MatMul", *parts)
  else:
    product = op.add("MatMul")
  op.nodes.matrix_products.add(product)
  return product


@_writes("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
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


@_writes("Einsum")
def _einsum(op):
  return op.add("Einsum", equation=op.attr("equation").decode())


# ---------------------------------------------------------------------------------------------
# Shapes.


@_writes("Shape")
def _shape(op):
  return op.add("Shape")


@_writes("Size")
def _size(op):
  return op.add("Size")


@_writes("Rank")
def _rank(op):
  return Constant(np.int32(op.rank()))


@_writes("Reshape")
def _reshape(op):
  return op.add("Reshape")


@_writes("ExpandDims")
def _expand_dims(op):
  axis = int(op.known(1))
  return op.add("Unsqueeze", op.inputs[0], [axis if axis >= 0 else axis + op.rank() + 1])


@_writes("Squeeze")
def _squeeze(op):
  axes = list(op.attr("squeeze_dims"))
  if not axes:
    sizes = op.op.inputs[0].shape.as_list()
    if None in sizes:
      raise ValueError("which axes have the size 1 is not known; name them (axis=)")
    axes = [axis for axis, size in enumerate(sizes) if size == 1]
  return op.add("Squeeze", op.inputs[0], np.asarray(axes, np.int64))


@_writes("Transpose")
def _transpose(op):
  return op.add("Transpose", op.inputs[0], perm=op.known(1).tolist())


@_writes("ConcatV2")
def _concat(op):
  return op.add("Concat", *op.inputs[:-1], axis=int(op.known(len(op.inputs) - 1)))


@_writes("Pack")
def _pack(op):
  axis = op.attr("axis")
  axis += 0 if axis >= 0 else op.rank() + 1
  parts = [_unsqueezed(op, value, axis) for value in op.inputs]
  return op.add("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def _unsqueezed(op, value, axis):
  if isinstance(value, Constant):
    return Constant(np.expand_dims(value.array, axis))
  return _size_as_vector(op.nodes, value) or op.add("Unsqueeze", value, [axis])


def as_vector(nodes: Nodes, number: Any) -> Any:
  """Makes a vector with one entry of a number: a value, or an int of Python."""
  if isinstance(number, int):
    return np.asarray([number], np.int64)
  if isinstance(number, Constant):
    return Constant(number.array.reshape(1))
  return _size_as_vector(nodes, number) or nodes.add("Unsqueeze", number, [0])


def _size_as_vector(nodes, value):
  """One size of a shape as a vector, without a number between; None for other values."""
  maker = nodes.maker(value)
  if maker is None or maker.op_type != "Gather":
    return None
  shape, index = nodes.maker(maker.input[0]), nodes.array(maker.input[1])
  if shape is None or shape.op_type != "Shape" or index is None or index.ndim or index < 0:
    return None
  return nodes.add("Shape", shape.input[0], start=int(index), end=int(index) + 1)


@_writes("Unpack")
def _unpack(op):
  axis = op.attr("axis")
  count = op.attr("num")
  return [op.add("Gather", op.inputs[0], np.int64(i), axis=axis) for i in range(count)]


@_writes("Split")
def _split(op):
  count, axis = op.attr("num_split"), int(op.known(0))
  results = op.add("Split", op.inputs[1], axis=axis, num_outputs=count, outputs=count)
  return list(results) if count > 1 else [op.inputs[1]]


@_writes("SplitV")
def _split_v(op):
  sizes, axis, count = op.inputs[1], int(op.known(2)), op.attr("num_split")
  results = op.add("Split", op.inputs[0], sizes, axis=axis, outputs=count)
  return list(results) if count > 1 else [op.inputs[0]]


@_writes("StridedSlice")
def _strided_slice(op):
  source, at = op.inputs[0], _Slices(op)
  if at.starts:
    parts = [at.starts, at.ends, at.sliced_axes, at.steps]
    source = op.add("Slice", source, *(_vector(op, part) for part in parts))
  # From the last axis on, so that the numbers of those before stay.
  for axis, index in reversed(at.taken):
    source = op.add("Gather", source, index, axis=axis)
  if at.new_axes:
    source = op.add("Unsqueeze", source, np.asarray(at.new_axes, np.int64))
  return source


class _Slices:
  """What a slice such as `x[:, 0, tf.newaxis, 2:n]` does to each axis.

  Attributes:
    starts, ends, steps: of each axis in `sliced_axes`, numbers or names of vectors of one number.
    taken: `(axis, index)` of the axes of which one entry is taken.
    new_axes: of the result.
  """

  def __init__(self, op):
    self._op = op
    self.starts, self.ends, self.steps, self.sliced_axes = [], [], [], []
    self.taken: list[tuple[int, Any]] = []
    self.new_axes: list[int] = []
    count = op.op.inputs[1].shape[0]
    extent = op.rank() - sum(
      not self._is("new_axis", i) and not self._is("ellipsis", i) for i in range(count)
    )
    axis = result = 0
    for i in range(count):
      if self._is("ellipsis", i):
        axis, result = axis + extent, result + extent
      elif self._is("new_axis", i):
        self.new_axes.append(result)
        result += 1
      elif self._is("shrink_axis", i):
        self.taken.append((axis, self._number(1, i, as_vector=False)))
        axis += 1
      else:
        self._slice(axis, i)
        axis, result = axis + 1, result + 1

  def _is(self, mask, i):
    return bool(self._op.attr(f"{mask}_mask") >> i & 1)

  def _number(self, index, i, as_vector=True):
    """Entry i of begin, end or strides: a number, or the name of a tensor."""
    value = self._op.inputs[index]
    if isinstance(value, Constant):
      return np.int64(value.array[i])
    if as_vector and self._op.op.inputs[index].shape[0] == 1:
      return value
    return self._op.add("Gather", value, [i] if as_vector else np.int64(i))

  def _slice(self, axis, i):
    step = int(self._op.known(3)[i])
    from_first, to_last = self._is("begin", i), self._is("end", i)
    if from_first and to_last and step == 1:
      return
    limits = np.iinfo(np.int64)
    first, last = (0, limits.max) if step > 0 else (limits.max, limits.min)
    self.starts.append(np.int64(first) if from_first else self._number(1, i))
    self.ends.append(np.int64(last) if to_last else self._number(2, i))
    self.steps.append(np.int64(step))
    self.sliced_axes.append(np.int64(axis))


def _vector(op, parts):
  """Numbers and names of vectors of one number, as one vector."""
  if not any(isinstance(part, str) for part in parts):
    return np.asarray(parts, np.int64)
  parts = [part if isinstance(part, str) else np.asarray([part], np.int64) for part in parts]
  return op.add("Concat", *parts, axis=0) if len(parts) > 1 else parts[0]


@_writes("Slice")
def _slice(op):
  begin, size = op.inputs[1:]
  axes = np.arange(op.rank(), dtype=np.int64)
  end = op.add("Add", begin, size)
  rest = op.add("Less", size, np.int64(0))  # -1: all that follow
  end = op.add("Where", rest, np.int64(np.iinfo(np.int64).max), end)
  return op.add("Slice", op.inputs[0], begin, end, axes)


@_writes("Pad", "PadV2")
def _pad(op):
  pads = op.inputs[1]
  if isinstance(pads, Constant):
    pads = Constant(pads.array.T.reshape(-1))
  else:
    pads = op.add("Reshape", op.add("Transpose", pads, perm=[1, 0]), [-1])
  return op.add("Pad", op.inputs[0], pads, op.inputs[2] if len(op.inputs) > 2 else op.one(0))


@_writes("Tile")
def _tile(op):
  return op.add("Tile")


@_writes("BroadcastTo")
def _broadcast(op):
  return op.add("Expand")


@_writes("Fill")
def _fill(op):
  return op.add("Expand", op.inputs[1], op.inputs[0])


@_writes("OnesLike", "ZerosLike")
def _like(op):
  value = op.one(1 if op.op.type == "OnesLike" else 0)
  return op.add("Expand", value, op.add("Shape"))


@_writes("Range")
def _range(op):
  return op.add("Range")


# ---------------------------------------------------------------------------------------------
# Indices.


@_writes("ResourceGather")
def _resource_gather(op):
  if op.attr("batch_dims"):
    raise ValueError("batch_dims is not 0")
  return op.add("Gather", axis=0)


@_writes("GatherV2")
def _gather(op):
  table, indices = op.inputs[:2]
  axis, batch_axes = int(op.known(2)), op.attr("batch_dims")
  axis += 0 if axis >= 0 else op.rank()
  if batch_axes == 0:
    return op.add("Gather", table, indices, axis=axis)
  if batch_axes != axis:
    raise ValueError(f"batch_dims is {batch_axes} and axis {axis}; they must be equal")
  indices = op.add("Unsqueeze", indices, [op.rank(1)])
  return op.add("GatherND", table, indices, batch_dims=batch_axes)


@_writes("GatherNd")
def _gather_nd(op):
  return op.add("GatherND")


@_writes("OneHot")
def _one_hot(op):
  indices, depth, on, off = op.inputs
  axis = op.attr("axis")
  rank = op.rank()
  indices = op.add("Unsqueeze", indices, [rank if axis < 0 else axis])
  numbers = op.add("Range", np.int64(0), depth, np.int64(1))
  if 0 <= axis < rank:
    numbers = op.add("Unsqueeze", numbers, np.arange(1, rank - axis + 1))
  is_on = op.add("Equal", indices, numbers)
  if isinstance(on, Constant) and isinstance(off, Constant) and on.array == 1 and off.array == 0:
    return op.add("Cast", is_on, to=onnx_type(op.op.outputs[0].dtype.as_numpy_dtype))
  return op.add("Where", is_on, on, off)


@_writes("TopKV2")
def _top_k(op):
  count = op.add("Reshape", op.inputs[1], [1])
  return list(op.add("TopK", op.inputs[0], count, axis=-1, outputs=2))


@_writes("ArgMax", "ArgMin")
def _arg_max(op):
  return op.add(op.op.type, op.inputs[0], axis=int(op.known(1)), keepdims=0)


@_writes("Where")
def _where(op):
  return op.add("Transpose", op.add("NonZero"), perm=[1, 0])


@_writes("Cumsum")
def _cumsum(op):
  options = {"exclusive": int(op.attr("exclusive")), "reverse": int(op.attr("reverse"))}
  return op.add("CumSum", op.inputs[0], op.inputs[1], **options)


# ---------------------------------------------------------------------------------------------
# Reductions.


_REDUCTIONS = {"Sum": "ReduceSum", "Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin"}


@_writes("Prod")
def _product(op):
  return _reduced(op, "ReduceProd", op.inputs[0])


@_writes(*_REDUCTIONS)
def _reduction(op):
  return _reduced(op, _REDUCTIONS[op.op.type], op.inputs[0])


@_writes("All", "Any")
def _logical_reduction(op):
  kind = "ReduceMin" if op.op.type == "All" else "ReduceMax"
  numbers = op.add("Cast", op.inputs[0], to=onnx_type(np.int64))
  return op.add("Cast", _reduced(op, kind, numbers), to=onnx_type(np.bool_))


def _reduced(op, kind, value):
  axes = np.atleast_1d(op.known(1)).astype(np.int64)
  if not axes.size:
    return value
  return op.add(kind, value, axes, keepdims=int(op.attr("keep_dims")))
