"""LiteRT as an engine: a `model.tflite` that `exporting/litert.py` wrote.

engine = load("export/litert/model.tflite", threads=2)
engine({"input_ids": np.array([[101, 7592, 102]], np.int32), ...})["logits"]

It needs LiteRT's own runtime alone, no TensorFlow: pip install "bert-alive[litert]".
"""

import os

import numpy as np
from ai_edge_litert.interpreter import Interpreter, SignatureRunner

from bert.io import installation, start_lines
from bert.predicting.engines.engine import Arrays
from bert.predicting.engines.model_inputs import ModelInputs, need_file, shapes

_TYPES = {"int32": np.int32, "int64": np.int64}


class LiteRtEngine:
  """A model as an `engine.Engine`."""

  name = "litert"

  def __init__(
    self,
    interpreter: Interpreter,
    runner: SignatureRunner,
    path: str,
    max_length: int | None = None,
  ):
    """Takes an interpreter, its signature's runner, the name for messages, and the longest rows.

    Raises:
      ValueError: the model reads other inputs than tokens.
    """
    self._path = path
    details = runner.get_input_details()
    types = {name: np.dtype(each["dtype"]).name for name, each in details.items()}
    self._inputs = ModelInputs(types, _TYPES, path, max_length)
    self._places = {name: each["index"] for name, each in details.items()}
    self._outputs = {name: each["index"] for name, each in runner.get_output_details().items()}
    self._interpreter = interpreter
    self._shape: tuple[int, ...] = ()
    self.inputs = self._inputs.names

  def __call__(self, batch: Arrays) -> dict[str, np.ndarray]:
    """See `engine.Engine`.

    Raises:
      ValueError: an input is missing, or the model cannot compute the batch.
    """
    given = self._inputs.arrays(batch)
    try:
      self._resize(given["input_ids"].shape)
      for name, values in given.items():
        self._interpreter.set_tensor(self._places[name], values)
      self._interpreter.invoke()
    except (RuntimeError, ValueError) as error:
      self._shape = ()
      reason = str(error).partition("\n")[0]
      raise ValueError(
        f"{self._path} cannot compute {shapes(given)}: {reason:.200}. Rows are no longer than "
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
  max_length: int | None = None,
) -> LiteRtEngine:
  """Loads a model.

  Args:
    path: of a `model.tflite`.
    threads: that compute; by default one for each processor.
    shares_cores: without effect; see `onnxruntime.py`.
    precision: without effect, it is that of the file.
    max_length: the longest rows that the model reads; None if that is not known.

  Raises:
    ValueError: it is no such file, or LiteRT does not read its version, or it reads other inputs.
    OSError: there is no file.
  """
  del shares_cores, precision
  path = need_file(path)
  try:
    with start_lines.hidden():
      interpreter = Interpreter(path, num_threads=threads or installation.num_cores())
      runner = interpreter.get_signature_runner()
  except (ValueError, RuntimeError) as error:
    reason = str(error).partition("\n")[0]
    raise ValueError(
      f"{path} cannot be read by LiteRT: {reason:.200}. Export it anew: export_hub.py "
      "--format=litert."
    ) from None
  return LiteRtEngine(interpreter, runner, path, max_length)
