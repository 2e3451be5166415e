"""Models of ONNX with 8-bit weights: four times smaller, and faster where the processor has VNNI.

  quantize_dynamic("model.onnx", "model_quantized.onnx")

onnxruntime does it: weights of matrix products become int8 with a scale for each column, the table
of words int8, and what products read becomes uint8 while the model runs, with one scale for all
of it. Some columns and rows are far larger than others, and would take the steps of all
(arXiv:2211.10438), so they are equalized first:

- After a LayerNorm, each column is divided by a factor that follows from gamma, beta and the
  weights, which are multiplied by it: the same product, of columns about as large.
- After a GELU, each row is divided by its largest value, and the product multiplied by it.
- Each row of the table of words is divided by its largest value, and multiplied by it when looked
  up.

What is computed of a text depends, by a part of a rounding step, on the texts and the padding
beside it. All else is float32: attention, LayerNorm, GELU, biases, sums, and products of one vector
for each sequence, such as a pooler's or a classifier's, which take no time.

Processors without VNNI add two products of 8 bits in 16, which overflows for large weights, so
their answers differ.
"""

import os
import tempfile

import numpy as np
import onnx
from onnxruntime import quantization

from bert.exporting.onnx.names import INT8_BITS
from bert.exporting.onnx.nodes import MICROSOFT
from bert.exporting.onnx.rewriting import Rewriting
from bert.io import atomic_files, filesystem

_MIN_SIDE = 32  # of a matrix that is worth it
_MIN_WORDS = 1000  # of a table; others are small
_GELUS = ("FastGelu", "Gelu")

# By which onnxruntime knows that a model was prepared; without, it logs the advice to do so.
_PREPARED = {"onnx.quant.pre_process": "onnxruntime.quant"}

# What a row of GELU's values is divided by is at least this: ten times the least value of GELU.
_LEAST_TOP = 1.71


def quantize_dynamic(source: str, target: str) -> None:
  """Writes a model with 8-bit weights, whose activations get their range from each batch.

  Args:
    source: a model that `writer.write` wrote.
    target: the file to write.

  Raises:
    ValueError: the source is damaged, quantized already, or has no product to quantize.
    OSError: a file cannot be read or written.
  """
  rewriting = _read(source)
  names = [name for node in rewriting.old_nodes for name in _add_equalized(rewriting, node)]
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.onnx")
    quantization.quantize_dynamic(
      rewriting.model(**{INT8_BITS: "8", **_PREPARED}),
      path,
      per_channel=True,
      weight_type=quantization.QuantType.QInt8,
      nodes_to_quantize=names,
      extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT},  # of operators of Microsoft
    )
    atomic_files.write_bytes(target, filesystem.read_bytes(path))


def _read(path: str) -> Rewriting:
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
  return rewriting


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
# Columns and rows of equal size.


def _add_equalized(rewriting: Rewriting, node: onnx.NodeProto) -> list[str]:
  """Adds a node in its equalized form; returns the names of the nodes to quantize."""
  if _is_look_up(rewriting, node):
    return _add_look_up(rewriting, node)
  if not _is_product(rewriting, node):
    rewriting.nodes.append(node)
    return []
  values, weights = node.input[:2]
  source = rewriting.source(values)
  if source is not None and source.op_type == "LayerNormalization":
    values, weights = _equalize_columns(rewriting, values, weights, source)
  if node.op_type == "Attention":
    inputs = [values, weights, *node.input[2:]]
    rewriting.add("Attention", inputs, node.output, MICROSOFT)
    rewriting.nodes[-1].attribute.extend(node.attribute)
    return [rewriting.nodes[-1].name]
  [output], bias = node.output, node.input[2:3]
  top = None
  if _is_after_gelu(rewriting, node):
    values, top = _equalize_rows(rewriting, values)
  steps = [("MatMul", weights), *([("Mul", top)] if top else []), *(("Add", b) for b in bias)]
  for number, (kind, other) in enumerate(steps, 1):
    result = output if number == len(steps) else f"{output}/{kind}"
    rewriting.add(kind, [values, other], [result])
    values = result
  return [rewriting.nodes[-len(steps)].name]


def _equalize_columns(rewriting, values: str, weights: str, norm) -> tuple[str, str]:
  """Divides columns after a LayerNorm by factors, and multiplies weights by them."""
  matrix = rewriting.array(weights)
  gamma, beta = (rewriting.array(name) for name in norm.input[1:3])
  factors = _factors(gamma, beta, matrix)
  mark = f"{weights}/after/{norm.input[1]}"
  inverse = rewriting.keep(f"{mark}/factors", 1 / factors)
  divided = f"{values}/{mark}"
  if divided not in rewriting.made:
    rewriting.add("Mul", [values, inverse], [divided])
  return divided, rewriting.keep(f"{mark}/even", matrix * factors[:, np.newaxis])


def _factors(gamma: np.ndarray, beta: np.ndarray, matrix: np.ndarray) -> np.ndarray:
  """Chooses what columns `[W]` are divided by: most of their size, some less for large weights."""
  columns = 2 * np.abs(gamma) + np.abs(beta)  # two standard deviations
  rows = np.abs(matrix).max(1)
  columns, rows = (np.maximum(size, 1e-4 * size.max() or 1.0) for size in (columns, rows))
  return (columns**0.75 / rows**0.25).astype(np.float32)


def _equalize_rows(rewriting, values: str) -> tuple[str, str]:
  """Divides rows after a GELU by their largest values; returns both."""
  add, keep, x = rewriting.add, rewriting.keep, values
  if f"{x}/rows" not in rewriting.made:
    add("ReduceMax", [x, keep("last_axis", np.asarray([-1]))], [f"{x}/max"])
    add("Max", [f"{x}/max", keep("least_top", np.float32(_LEAST_TOP))], [f"{x}/top"])
    add("Div", [x, f"{x}/top"], [f"{x}/rows"])
  return f"{x}/rows", f"{x}/top"


def _add_look_up(rewriting, node) -> list[str]:
  """Looks up rows of a table that are divided by their largest values, and these values."""
  (table, ids), [y] = node.input, node.output
  values = rewriting.array(table)
  sizes = np.abs(values).max(1, keepdims=True)
  sizes = np.where(sizes > 0, sizes, 1).astype(np.float32)
  rewriting.add("Gather", [rewriting.keep(f"{table}/rows", values / sizes), ids], [f"{y}/rows"])
  rewriting.add("Gather", [rewriting.keep(f"{table}/sizes", sizes), ids], [f"{y}/sizes"])
  rewriting.add("Mul", [f"{y}/rows", f"{y}/sizes"], [y])
  return [f"{y}/rows"]
