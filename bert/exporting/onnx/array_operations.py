"""Operations of TensorFlow on shapes, slices, indices and axes; `operations.py` has the others.

Importing this module registers them.
"""

from typing import Any

import numpy as np

from bert.exporting.onnx.nodes import Constant, onnx_type
from bert.exporting.onnx.operations import size_as_vector, writes

# ---------------------------------------------------------------------------------------------
# Shapes.


@writes("Shape")
def _shape(op):
  return op.add("Shape")


@writes("Reshape")
def _reshape(op):
  return op.add("Reshape")


@writes("ExpandDims")
def _expand_dims(op):
  axis = int(op.known(1))
  return op.add("Unsqueeze", op.inputs[0], [axis if axis >= 0 else axis + op.rank() + 1])


@writes("Squeeze")
def _squeeze(op):
  axes = op.attr("squeeze_dims")
  if not axes:
    raise ValueError("its axes are not named (axis=)")
  return op.add("Squeeze", op.inputs[0], np.asarray(axes, np.int64))


@writes("Transpose")
def _transpose(op):
  return op.add("Transpose", op.inputs[0], perm=op.known(1).tolist())


@writes("ConcatV2")
def _concat(op):
  return op.add("Concat", *op.inputs[:-1], axis=int(op.known(len(op.inputs) - 1)))


@writes("Pack")
def _pack(op):
  axis = op.attr("axis")
  axis += 0 if axis >= 0 else op.rank() + 1
  parts = [_unsqueezed(op, value, axis) for value in op.inputs]
  return op.add("Concat", *parts, axis=axis) if len(parts) > 1 else parts[0]


def _unsqueezed(op, value, axis):
  if isinstance(value, Constant):
    return Constant(np.expand_dims(value.array, axis))
  return size_as_vector(op.nodes, value) or op.add("Unsqueeze", value, [axis])


@writes("Unpack")
def _unpack(op):
  axis = op.attr("axis")
  count = op.attr("num")
  return [op.add("Gather", op.inputs[0], np.int64(i), axis=axis) for i in range(count)]


@writes("StridedSlice")
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


@writes("Pad", "PadV2")
def _pad(op):
  pads = op.inputs[1]
  if isinstance(pads, Constant):
    pads = Constant(pads.array.T.reshape(-1))
  else:
    pads = op.add("Reshape", op.add("Transpose", pads, perm=[1, 0]), [-1])
  return op.add("Pad", op.inputs[0], pads, op.inputs[2] if len(op.inputs) > 2 else op.one(0))


@writes("Fill")
def _fill(op):
  return op.add("Expand", op.inputs[1], op.inputs[0])


@writes("OnesLike", "ZerosLike")
def _like(op):
  value = op.one(1 if op.op.type == "OnesLike" else 0)
  return op.add("Expand", value, op.add("Shape"))


# ---------------------------------------------------------------------------------------------
# Indices.


@writes("ResourceGather")
def _resource_gather(op):
  if op.attr("batch_dims"):
    raise ValueError("batch_dims is not 0")
  return op.add("Gather", axis=0)


@writes("GatherV2")
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


@writes("OneHot")
def _one_hot(op):
  indices, depth, on, off = op.inputs
  if op.attr("axis") not in (-1, op.rank()):
    raise ValueError("its axis is not the last one")
  indices = op.add("Unsqueeze", indices, [op.rank()])
  is_on = op.add("Equal", indices, op.add("Range", np.int64(0), depth, np.int64(1)))
  if isinstance(on, Constant) and isinstance(off, Constant) and on.array == 1 and off.array == 0:
    return op.add("Cast", is_on, to=onnx_type(op.op.outputs[0].dtype.as_numpy_dtype))
  return op.add("Where", is_on, on, off)


@writes("TopKV2")
def _top_k(op):
  count = op.add("Reshape", op.inputs[1], [1])
  return list(op.add("TopK", op.inputs[0], count, axis=-1, outputs=2))


@writes("ArgMax")
def _arg_max(op):
  return op.add("ArgMax", op.inputs[0], axis=int(op.known(1)), keepdims=0)


@writes("Cumsum")
def _cumsum(op):
  options = {"exclusive": int(op.attr("exclusive")), "reverse": int(op.attr("reverse"))}
  return op.add("CumSum", op.inputs[0], op.inputs[1], **options)


# ---------------------------------------------------------------------------------------------
# Reductions.


_REDUCTIONS = {"Sum": "ReduceSum", "Mean": "ReduceMean", "Max": "ReduceMax", "Min": "ReduceMin"}


@writes("Prod")
def _product(op):
  return _reduced(op, "ReduceProd", op.inputs[0])


@writes(*_REDUCTIONS)
def _reduction(op):
  return _reduced(op, _REDUCTIONS[op.op.type], op.inputs[0])


def _reduced(op, kind, value):
  axes = np.atleast_1d(op.known(1)).astype(np.int64)
  if not axes.size:
    return value
  return op.add(kind, value, axes, keepdims=int(op.attr("keep_dims")))
