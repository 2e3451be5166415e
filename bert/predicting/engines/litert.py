"""LiteRT as an engine: a `model.tflite` that `exporting/litert.py` wrote.

engine = load("export/litert/model.tflite", threads=2)
engine({"input_ids": np.array([[101, 7592, 102]], np.int32), ...})["logits"]

It needs LiteRT's own runtime alone, no TensorFlow: pip install "bert-alive[litert]".
"""

import os

import numpy as np
from ai_edge_litert.interpreter import Interpreter

from bert.exporting.onnx.names import INPUTS
from bert.io import installation, start_lines
from bert.predicting.engines.engine import Arrays


class LiteRtEngine:
  """A model as an `engine.Engine`."""

  name = "litert"

  def __init__(self, interpreter: Interpreter, path: str = "the model"):
    """Takes an interpreter, and the name for messages.

    Raises:
      ValueError: the model is of another program.
    """
    self._path = path
    runner = interpreter.get_signature_runner()
    indexes = {name: each["index"] for name, each in runner.get_input_details().items()}
    if unknown := sorted(indexes.keys() - set(INPUTS.values())):
      raise ValueError(f"it has the input {unknown[0]}, which is none of a text's")
    self._places = {name: indexes[own] for name, own in INPUTS.items() if own in indexes}
    self._outputs = {name: each["index"] for name, each in runner.get_output_details().items()}
    self._interpreter = interpreter
    self._shape: tuple[int, ...] = ()
    self.inputs = tuple(self._places)

  def __call__(self, batch: Arrays) -> dict[str, np.ndarray]:
    """See `engine.Engine`.

    Raises:
      ValueError: the model cannot compute the batch.
    """
    given = {index: np.asarray(batch[name], np.int32) for name, index in self._places.items()}
    shape = next(iter(given.values())).shape
    try:
      self._resize(shape)
      for index, values in given.items():
        self._interpreter.set_tensor(index, values)
      self._interpreter.invoke()
    except (RuntimeError, ValueError) as error:
      self._shape = ()
      reason = str(error).partition("\n")[0]
      raise ValueError(
        f"{self._path} cannot compute rows {list(shape)}: {reason:.200}. Rows are no longer than "
        "the positions of the model, and ids lie in its vocabulary."
      ) from None
    return {name: self._interpreter.get_tensor(index) for name, index in self._outputs.items()}

  def _resize(self, shape: tuple[int, ...]) -> None:
    """Plans the memory anew, which takes time, where the shape is another one."""
    if shape != self._shape:
      for index in self._places.values():
        self._interpreter.resize_tensor_input(index, shape)
      self._interpreter.allocate_tensors()
      self._shape = shape


def load(
  path: str | os.PathLike,
  threads: int | None = None,
  shares_cores: bool = False,
  precision: str = "float32",
) -> LiteRtEngine:
  """Loads a model.

  Args:
    path: of a `model.tflite`.
    threads: that compute; by default one for each processor.
    shares_cores: without effect; see `onnxruntime.py`.
    precision: without effect, it is that of the file.

  Raises:
    ValueError: it is no such file, or of a version that this LiteRT does not read.
    OSError: there is no file.
  """
  del shares_cores, precision
  path = os.fspath(path)
  if not os.path.isfile(path):
    raise FileNotFoundError(f"{path} does not exist.")
  try:
    with start_lines.hidden():
      interpreter = Interpreter(path, num_threads=threads or installation.num_cores())
      return LiteRtEngine(interpreter, path)
  except (ValueError, RuntimeError) as error:
    reason = str(error).partition("\n")[0]
    raise ValueError(
      f"{path} cannot be read by LiteRT: {reason:.200}. Export it anew: export_hub.py "
      "--format=litert."
    ) from None
