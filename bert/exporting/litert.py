"""A model as `model.tflite`, for LiteRT (TensorFlow Lite): TensorFlow's own converter writes it.

  graph = token_graph.of_encoder(config)
  graph.load("uncased_L-12_H-768_A-12")
  write(graph, "model.tflite")
  write(graph, "model_int8.tflite", "int8")                  # weights of 8 bits

The file has one signature, whose inputs are `input_ids`, `attention_mask` and `token_type_ids`,
int32 `[R, S]` of any size, as far as the model reads them, and whose outputs are the graph's. All
operations are built in, so that LiteRT's own runtime computes it, on any device.

Letters in shapes: R = rows, S = sequence length.
"""

import contextlib
import re
from collections.abc import Iterator

import tensorflow as tf

from bert.checkpoints import reading
from bert.exporting import saved_models
from bert.exporting.token_graph import TokenGraph
from bert.io import atomic_files, start_lines

PRECISIONS = ("float32", "float16", "int8")

# Three forms in which the converter names an operation that no runtime without TensorFlow has.
_MISSING = re.compile(r"'tf\.(\w+)' op is neither|^\s+tf\.(\w+)\(tensor|fused\[\"(\w+):\"", re.M)
_INSTEAD = {
  "StridedSlice": "tf.expand_dims(x, 1) in place of x[:, tf.newaxis]",
  "EnsureShape": "x.set_shape(...) in place of tf.ensure_shape",
}


def write(graph: TokenGraph, path: str, precision: str = "float32") -> None:
  """Writes a model.

  Args:
    graph: the model, with its weights.
    path: of the file, which appears whole or not at all.
    precision: of the weights, one of `PRECISIONS`. The runtime computes float32 with those of
      float16, and products of 8 bits with those of int8.

  Raises:
    ValueError: the model has an operation that LiteRT lacks.
    OSError: the file cannot be written.
  """
  # Without an owner of the variables the file would have no signature.
  owner = tf.train.Checkpoint(variables=graph.variables)
  converter = tf.lite.TFLiteConverter.from_concrete_functions([graph.signature()], owner)
  if precision != "float32":
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
  if precision == "float16":
    converter.target_spec.supported_types = [tf.float16]
  with _explained():
    content = converter.convert()
  atomic_files.write_bytes(path, content)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
  """Names the operations that LiteRT lacks, of which the converter writes pages."""
  from tensorflow.lite.python.convert_phase import ConverterError

  try:
    with saved_models.quiet(), start_lines.hidden(all_lines=True):
      yield
  except ConverterError as error:
    found = {name for names in _MISSING.findall(str(error)) for name in names if name}
    found |= {each.operator.name.removeprefix("tf.") for each in error.errors}
    names = sorted(found - {"", "StatefulPartitionedCall"})
    what = ", ".join(f"tf.{name}" for name in names) or reading.first_line(error)
    advice = [_INSTEAD[name] for name in names if name in _INSTEAD]
    advice.append("or --format=onnx, or saved_model")
    raise ValueError(
      f"LiteRT has no built-in operation for {what}, which this model computes. Use other "
      f"operations in its head: {'; '.join(advice)}."
    ) from None
