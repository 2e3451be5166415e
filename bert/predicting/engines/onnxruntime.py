"""onnxruntime as an engine: a `model.onnx` that `exporting/onnx` wrote.

engine = load("export/onnx/model.onnx", threads=2)
engine({"input_ids": np.array([[101, 7592, 102]], np.int32), ...})["logits"]
"""

import os

import numpy as np
import onnxruntime

from bert.exporting.onnx.names import INPUTS
from bert.predicting.engines.engine import Arrays


class OnnxRuntimeEngine:
  """A model as an `engine.Engine`."""

  name = "onnxruntime"

  def __init__(self, session: onnxruntime.InferenceSession):
    """Takes a session; a ValueError says that its model is of another program."""
    names = {each.name for each in session.get_inputs()}
    if unknown := sorted(names - set(INPUTS.values())):
      raise ValueError(f"it has the input {unknown[0]}, which is none of a text's")
    self._names = {name: own for name, own in INPUTS.items() if own in names}
    self._outputs = [each.name for each in session.get_outputs()]
    self._session = session
    self.inputs = tuple(self._names)

  def __call__(self, batch: Arrays) -> dict[str, np.ndarray]:
    """See `engine.Engine`."""
    given = {own: np.asarray(batch[name], np.int64) for name, own in self._names.items()}
    return dict(zip(self._outputs, self._session.run(None, given), strict=True))


def load(path: str | os.PathLike, threads: int | None = None) -> OnnxRuntimeEngine:
  """Loads a model; a ValueError says that onnxruntime does not read it."""
  options = onnxruntime.SessionOptions()
  options.log_severity_level = 3
  if threads:
    options.intra_op_num_threads = threads
  try:
    return OnnxRuntimeEngine(onnxruntime.InferenceSession(os.fspath(path), options))
  except Exception as error:  # of the library, which has many classes
    reason = str(error).partition("\n")[0]
    raise ValueError(
      f"{os.fspath(path)} cannot be read by onnxruntime: {reason:.200}. Export it anew: "
      "export_hub.py --format=onnx."
    ) from None
