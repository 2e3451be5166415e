"""OpenVINO's encoder for `encoder_inference.py`, of torch's ONNX file.

int8 is what NNCF makes of it for transformers, weights and activations. Calibration reads made-up
words: it decides the scales, not the speed.
"""

import os
import sys

import numpy as np
import openvino
from encoder_inputs import make_inputs
from serving import milliseconds, serve

CALIBRATION_BATCHES = 32


class Encoders:
  """Answers requests; a way is compiled when it is first asked for."""

  def __init__(self, path, vocab_size):
    self._path, self._vocab_size = path, int(vocab_size)
    self._models = {}

  def _model(self, way):
    if way not in self._models:
      core = openvino.Core()
      model = core.read_model(self._path)
      if way == "int8":
        model = self._quantized(model)
      settings = {
        # By default it computes in bfloat16 where the processor can.
        "INFERENCE_PRECISION_HINT": "bf16" if way == "bfloat16" else "f32",
        "INFERENCE_NUM_THREADS": len(os.sched_getaffinity(0)),
        "PERFORMANCE_HINT": "LATENCY",
      }
      self._models[way] = core.compile_model(model, "CPU", settings)
    return self._models[way]

  def _quantized(self, model):
    import nncf

    rng = np.random.default_rng(1)
    batches = [
      [*make_inputs(1, length, self._vocab_size)]
      for length in rng.integers(16, 128, CALIBRATION_BATCHES)
    ]
    names = [port.get_any_name() for port in model.inputs]
    data = nncf.Dataset(batches, lambda arrays: dict(zip(names, arrays, strict=True)))
    return nncf.quantize(model, data, model_type=nncf.ModelType.TRANSFORMER)

  def time(self, way, batch, length, seconds):
    """Median milliseconds of a call."""
    model, inputs = self._model(way), make_inputs(batch, length, self._vocab_size)
    model(inputs)
    return milliseconds(lambda: model(inputs), seconds)

  def outputs(self, way, batch, length, path):
    """Writes the vectors of the first tokens for inputs with padding."""
    outputs = self._model(way)(make_inputs(batch, length, self._vocab_size, True))
    np.save(path, outputs[0][:, 0])


if __name__ == "__main__":
  encoders = Encoders(*sys.argv[1:])
  serve({"time": encoders.time, "outputs": encoders.outputs})
