"""OpenVINO as an engine: a `model.onnx` that `exporting/onnx` wrote, in float32 or bfloat16.

  engine = load("export/onnx/model.onnx", threads=2, precision="bfloat16")
  engine({"input_ids": np.array([[101, 7592, 102]], np.int32), ...})["logits"]

It needs OpenVINO alone, no TensorFlow: pip install "bert-alive[openvino]". A model in 8 bits is
onnxruntime's: OpenVINO does not know its attention.
"""

import os

import numpy as np
import openvino
from absl import logging

from bert.io import installation
from bert.predicting.engines.engine import Arrays
from bert.predicting.engines.model_inputs import ModelInputs, need_file, shapes

_TYPES = {"i64": np.int64, "i32": np.int32}
_HINTS = {"float32": "f32", "bfloat16": "bf16"}
_REMEDY = "Export it anew: export_hub.py --format=onnx."


class OpenVinoEngine:
  """A model as an `engine.Engine`."""

  name = "openvino"

  def __init__(
    self,
    request: openvino.InferRequest,
    model: openvino.Model,
    path: str,
    max_length: int | None = None,
  ):
    """Takes what computes, the model that it was compiled from, its name, and the longest rows.

    Raises:
      ValueError: the model reads other inputs than tokens.
    """
    self._request, self._path = request, path
    types = {each.any_name: each.element_type.get_type_name() for each in model.inputs}
    self._inputs = ModelInputs(types, _TYPES, path, max_length)
    # Compiling adds names to outputs, and the first one may be another then.
    self._outputs = [each.any_name for each in model.outputs]
    self._num_words = _num_words(model)
    self.inputs = self._inputs.names

  def __call__(self, batch: Arrays) -> dict[str, np.ndarray]:
    """See `engine.Engine`.

    Raises:
      ValueError: an input is missing, or the model cannot compute the batch.
    """
    given = self._inputs.arrays(batch)
    self._check_ids(given["input_ids"])
    try:
      results = self._request.infer(given)
    except RuntimeError as error:
      raise ValueError(
        f"{self._path} cannot compute {shapes(given)}: {_reason(error)}. Rows are no longer than "
        "the positions of the model (max_position_embeddings in its config.json)."
      ) from None
    return {name: results[place] for place, name in enumerate(self._outputs)}

  def _check_ids(self, ids: np.ndarray) -> None:
    """Raises a ValueError for an id without a row in the table, where OpenVINO would read zeros."""
    if self._num_words and ids.size and not 0 <= ids.min() <= ids.max() < self._num_words:
      wrong = ids.min() if ids.min() < 0 else ids.max()
      raise ValueError(
        f"{self._path} cannot compute the id {wrong}: its vocabulary has {self._num_words} tokens."
      )


def load(
  path: str | os.PathLike,
  threads: int | None = None,
  shares_cores: bool = False,
  precision: str = "float32",
  max_length: int | None = None,
) -> OpenVinoEngine:
  """Loads a model.

  Args:
    path: of a `model.onnx` in float32.
    threads: that compute; by default one for each processor that this process may use.
    shares_cores: without effect; see `onnxruntime.py`.
    precision: float32, or bfloat16: matrix products and what lies between them; results are
      float32. OpenVINO by itself takes bfloat16 wherever the processor has it.
    max_length: the longest rows that the model reads; None if that is not known.

  Raises:
    ValueError: it is no such file, or OpenVINO does not read it, or it reads other inputs.
    OSError: there is no file.
  """
  del shares_cores
  path = need_file(path)
  core = openvino.Core()
  if precision == "bfloat16" and "BF16" not in core.get_property(
    "CPU", "OPTIMIZATION_CAPABILITIES"
  ):
    logging.warning("This processor has no bfloat16: %s is computed in float32.", path)
  settings = {
    "INFERENCE_PRECISION_HINT": _HINTS[precision],
    "INFERENCE_NUM_THREADS": threads or installation.num_cores(),
    "PERFORMANCE_HINT": "LATENCY",
    "ENABLE_CPU_PINNING": False,  # several processes would share the first cores
  }
  try:
    model = core.read_model(path)
    request = core.compile_model(model, "CPU", settings).create_infer_request()
  except RuntimeError as error:
    library = f"OpenVINO {openvino.__version__.partition('-')[0]}"
    raise ValueError(f"{path} cannot be read by {library}: {_reason(error)}. {_REMEDY}") from None
  return OpenVinoEngine(request, model, path, max_length)


def _num_words(model: openvino.Model) -> int:
  """Returns the rows of the table in which `input_ids` are looked up, 0 if it is not found."""
  for node in model.get_ordered_ops():
    if node.get_type_name() == "Gather" and _origin(node.input_value(1)) == "input_ids":
      rows = node.input_value(0).get_partial_shape()[0]
      return rows.get_length() if rows.is_static else 0
  return 0


_KEEP_VALUES = {"Convert", "Reshape", "Squeeze", "Unsqueeze"}


def _origin(output: openvino.Output) -> str:
  """Returns the name of the input whose values an output has, in whatever shape and type."""
  while output.get_node().get_type_name() in _KEEP_VALUES:
    output = output.get_node().input_value(0)
  return output.any_name if output.get_node().get_type_name() == "Parameter" else ""


def _reason(error: Exception) -> str:
  """An error of OpenVINO as one line, without the places in its source."""
  lines = [line.strip() for line in str(error).splitlines() if line.strip()]
  said = [line for line in lines if not line.startswith(("Exception from ", "Summary:", "src/"))]
  return " ".join(said or lines)[:250].rstrip(" .")
