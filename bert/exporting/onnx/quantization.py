"""Models of ONNX with 8-bit weights: four times smaller, and faster where the processor has VNNI.

  quantize_dynamic("model.onnx", "model_quantized.onnx")

Weights of matrix products become int8 with a scale for each column, and the table of words int8
with a scale for each word. What products read becomes uint8 while the model runs. Some columns of
it are far larger than others, and would take the steps of all (arXiv:2211.10438):

- After a LayerNorm, each column is divided by a factor that follows from gamma, beta and the
  weights, which are multiplied by it: the same product, of columns about as large.
- After a GELU, each row is divided by its largest value, so a row does not depend on others.
- Of all, the range of values that the batch has becomes that of uint8, so what is computed of a
  text depends, by a part of a rounding step, on the texts and the padding beside it.

All else is float32: attention, LayerNorm, GELU, biases, sums, and products of one vector for each
sequence, such as a pooler's or a classifier's, which take no time.

Processors without VNNI add two products of 8 bits in 16, which overflows for large weights, so
their answers differ.
"""

import numpy as np
import onnx

from bert.exporting.onnx.names import INT8_BITS
from bert.exporting.onnx.nodes import MICROSOFT
from bert.exporting.onnx.rewriting import Rewriting
from bert.io import atomic_files

_MIN_SIDE = 32  # of a matrix that is worth it
_MIN_WORDS = 1000  # of a table; others are small
_GELUS = ("FastGelu", "Gelu")

# What a row of GELU's values is divided by is at least this, so that the least value that GELU has,
# -0.17, becomes -0.1. The scale and the zero point of the row follow.
_LEAST_TOP = 1.71
_ROW_SCALE = np.float32(1.1 / 255)
_ROW_ZERO = np.uint8(23)


def quantize_dynamic(source: str, target: str) -> None:
  """Writes a model with 8-bit weights, whose activations get their range from each batch.

  Args:
    source: a model that `writer.write` wrote.
    target: the file to write.

  Raises:
    ValueError: the source is damaged, quantized already, or has no product to quantize.
    OSError: a file cannot be read or written.
  """
  atomic_files.write_bytes(target, _quantized(_prepared(source)).SerializeToString())


def _prepared(path: str) -> onnx.ModelProto:
  """Reads a model and evens out its columns."""
  try:
    model = onnx.load(path)
  except OSError:
    raise
  except Exception as error:  # of protobuf, whose class depends on its version
    raise ValueError(f"{path}: not a model of ONNX, or damaged. Export it again.") from error
  if any(entry.key == INT8_BITS for entry in model.metadata_props):
    raise ValueError(f"{path}: the model is quantized already. Name the float model.")
  rewriting = Rewriting(model)
  if not any(_is_product(rewriting, node) for node in rewriting.old_nodes):
    raise ValueError(f"{path}: the model has no matrix product that is worth quantizing.")
  return _even(rewriting)


# ---------------------------------------------------------------------------------------------
# Which nodes.


def _is_product(rewriting: Rewriting, node: onnx.NodeProto) -> bool:
  """Returns whether a node is a product of many rows with a constant matrix."""
  if node.op_type == "Attention":  # its quantized form knows no scores that are added
    return len(node.input) < 5
  is_product = node.op_type == "MatMul" or (node.op_type == "Gemm" and not node.attribute)
  shape: tuple[int, ...] = rewriting.shape(node.input[1]) if is_product else ()
  if len(shape) != 2 or min(shape) < _MIN_SIDE:
    return False
  source = rewriting.source(node.input[0])
  return source is None or source.op_type != "Gather"  # one vector for each sequence


def _is_after_gelu(rewriting, node) -> bool:
  source = rewriting.source(node.input[0])
  return node.op_type == "Gemm" and source is not None and source.op_type in _GELUS


def _is_look_up(rewriting, node) -> bool:
  shape: tuple[int, ...] = rewriting.shape(node.input[0]) if node.op_type == "Gather" else ()
  return len(shape) == 2 and shape[0] >= _MIN_WORDS


# ---------------------------------------------------------------------------------------------
# Columns of equal size.


def _even(rewriting: Rewriting) -> onnx.ModelProto:
  """Divides columns after a LayerNorm by factors, and multiplies weights by them."""
  for old in rewriting.old_nodes:
    node = onnx.NodeProto()
    node.CopyFrom(old)
    source = rewriting.source(node.input[0]) if _is_product(rewriting, node) else None
    if source is not None and source.op_type == "LayerNormalization":
      _even_product(rewriting, node, source)
    rewriting.nodes.append(node)
  return rewriting.model()


def _even_product(rewriting, node, norm) -> None:
  values, weights = node.input[0], node.input[1]
  matrix = rewriting.array(weights)
  gamma, beta = (rewriting.array(name) for name in norm.input[1:3])
  factors = _factors(gamma, beta, matrix)
  mark = f"{weights}/after/{norm.input[1]}"
  node.input[1] = rewriting.keep(f"{mark}/even", matrix * factors[:, np.newaxis])
  inverse = rewriting.keep(f"{mark}/factors", 1 / factors)
  node.input[0] = f"{values}/{mark}"
  if node.input[0] not in rewriting.made:
    rewriting.add("Mul", [values, inverse], [node.input[0]])


def _factors(gamma: np.ndarray, beta: np.ndarray, matrix: np.ndarray) -> np.ndarray:
  """Chooses what columns `[W]` are divided by: most of their size, some less for large weights."""
  columns = 2 * np.abs(gamma) + np.abs(beta)  # two standard deviations
  rows = np.abs(matrix).max(1)
  columns, rows = (np.maximum(size, 1e-4 * size.max() or 1.0) for size in (columns, rows))
  return (columns**0.75 / rows**0.25).astype(np.float32)


# ---------------------------------------------------------------------------------------------
# Eight bits.


def _quantized(model: onnx.ModelProto) -> onnx.ModelProto:
  """Makes the model with 8 bits."""
  quantizer = _Quantizer(Rewriting(model))
  for node in quantizer.rewriting.old_nodes:
    quantizer.add(node)
  return quantizer.rewriting.model(**{INT8_BITS: "8"})


class _Quantizer:
  """Adds nodes to a `Rewriting`, quantized where they can be."""

  def __init__(self, rewriting: Rewriting):
    self.rewriting = rewriting

  def add(self, node: onnx.NodeProto) -> None:
    """Adds a node of the old model in its new form."""
    if not _is_product(self.rewriting, node):
      if _is_look_up(self.rewriting, node):
        self._look_up(node)
      else:
        self.rewriting.nodes.append(node)
    elif node.op_type == "Attention":
      self._attention(node)
    elif _is_after_gelu(self.rewriting, node):
      self._rows_after_gelu(node)
    else:
      self._product(node)

  def _product(self, node) -> None:
    matrix, scale = self._int8(node.input[1], axis=0)
    inputs = [node.input[0], matrix, scale, "", *node.input[2:3]]
    self.rewriting.add("DynamicQuantizeMatMul", inputs, node.output, MICROSOFT)

  def _rows_after_gelu(self, node) -> None:
    add, keep, x = self.rewriting.add, self.rewriting.keep, node.input[0]
    matrix, scale = self._int8(node.input[1], axis=0)
    scale_name, zero = keep("row_scale", _ROW_SCALE), keep("row_zero", _ROW_ZERO)
    add("ReduceMax", [x, keep("last_axis", np.asarray([-1]))], [f"{x}/max"])
    add("Max", [f"{x}/max", keep("least_top", np.float32(_LEAST_TOP))], [f"{x}/top"])
    add("Reciprocal", [f"{x}/top"], [f"{x}/inverse"])
    add("Mul", [x, f"{x}/inverse"], [f"{x}/rows"])
    add("QuantizeLinear", [f"{x}/rows", scale_name, zero], [f"{x}/uint8"])
    inputs = [f"{x}/uint8", matrix, scale_name, scale, zero]
    add("MatMulIntegerToFloat", inputs, [f"{x}/product"], MICROSOFT)
    add("Mul", [f"{x}/product", f"{x}/top"], [f"{x}/scaled"])
    add("Add", [f"{x}/scaled", node.input[2]], node.output)

  def _attention(self, node) -> None:
    matrix, scale = self._int8(node.input[1], axis=0)
    values, its_scale, zero = self._uint8(node.input[0])
    mask = [*node.input, ""][3]
    inputs = [values, matrix, node.input[2], its_scale, scale, mask, zero]
    self.rewriting.add("QAttention", inputs, node.output, MICROSOFT)
    self.rewriting.nodes[-1].attribute.extend(node.attribute)

  def _look_up(self, node) -> None:
    add, y = self.rewriting.add, node.output[0]
    values, scales = self._int8(node.input[0], axis=1)
    add("Gather", [values, node.input[1]], [f"{y}/int8"])
    add("Cast", [f"{y}/int8"], [f"{y}/float"], to=onnx.TensorProto.FLOAT)
    add("Gather", [scales, node.input[1]], [f"{y}/scale"])
    last_axis = self.rewriting.keep("last_axis", np.asarray([-1]))
    add("Unsqueeze", [f"{y}/scale", last_axis], [f"{y}/scales"])
    add("Mul", [f"{y}/float", f"{y}/scales"], [y])

  def _uint8(self, name: str) -> list[str]:
    """Names the uint8 form of a tensor, its scale and its zero point."""
    names = [f"{name}/{part}" for part in ("uint8", "scale", "zero")]
    if names[0] not in self.rewriting.made:
      self.rewriting.add("DynamicQuantizeLinear", [name], names)
    return names

  def _int8(self, name: str, axis: int) -> tuple[str, str]:
    """Names the int8 form of a matrix, and the scales of its columns (axis 0) or rows."""
    values, scales = f"{name}/int8", f"{name}/scale"
    if not self.rewriting.shape(values):
      rounded, scale = _rounded(self.rewriting.array(name), axis)
      self.rewriting.keep(values, rounded)
      self.rewriting.keep(scales, scale)
    return values, scales


def _rounded(matrix: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
  """Rounds a matrix to int8: the largest value of each column (axis 0) or row becomes 127.

  Example:
    >>> _rounded(np.array([[1.0, 0.0], [-2.0, 0.5]]), 0)[0].tolist()
    [[64, 0], [-127, 127]]
  """
  scale = np.abs(matrix).max(axis) / 127
  scale = np.where(scale > 0, scale, 1.0).astype(np.float32)
  rounded = np.rint(matrix / np.expand_dims(scale, axis))
  return np.clip(rounded, -127, 127).astype(np.int8), scale
