"""This project's exported encoders on other engines, for `encoder_inference.py`; no TensorFlow.

A way is an engine and a precision of the folder that `export_hub.py --format=onnx,litert` wrote.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent.parent), str(HERE)]

import numpy as np  # noqa: E402
from encoder_inputs import make_inputs  # noqa: E402
from serving import milliseconds, serve  # noqa: E402

from bert.model.task_head import SEQUENCES  # noqa: E402
from bert.predicting.engines import registry  # noqa: E402

WAYS = {
  "engine onnxruntime": ("onnxruntime", "float32"),
  "engine onnxruntime int8": ("onnxruntime", "int8"),
  "engine openvino": ("openvino", "float32"),
  "engine openvino bfloat16": ("openvino", "bfloat16"),
  "engine litert": ("litert", "float32"),
  "engine litert int8": ("litert", "int8"),
}


class Encoders:
  """Answers requests; a way is loaded when it is first asked for."""

  def __init__(self, folder, vocab_size):
    self._folder, self._vocab_size = folder, int(vocab_size)
    self._engines = {}

  def _prepare(self, way, batch, length, padded=False):
    if way not in self._engines:
      engine, precision = WAYS[way]
      file = registry.model_file(engine, self._folder, precision)
      self._engines[way] = registry.load(engine, file, precision=precision)
    arrays = make_inputs(batch, length, self._vocab_size, padded)
    return self._engines[way], {
      name: array.astype(np.int32) for name, array in zip(SEQUENCES, arrays, strict=True)
    }

  def time(self, way, batch, length, seconds):
    """Median milliseconds of a call."""
    engine, features = self._prepare(way, batch, length)
    engine(features)
    return milliseconds(lambda: engine(features), seconds)

  def outputs(self, way, batch, length, path):
    """Writes the vectors of the first tokens for inputs with padding."""
    engine, features = self._prepare(way, batch, length, padded=True)
    np.save(path, engine(features)["last_hidden_state"][:, 0])


if __name__ == "__main__":
  encoders = Encoders(*sys.argv[1:])
  serve({"time": encoders.time, "outputs": encoders.outputs, "ways": lambda: list(WAYS)})
