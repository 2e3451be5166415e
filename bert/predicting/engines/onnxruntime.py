"""onnxruntime as an engine: a `model.onnx` that `exporting/onnx` wrote, or another program.

  engine = load("export/onnx/model.onnx", threads=2)
  engine({"input_ids": np.array([[101, 7592, 102]], np.int32), ...})["logits"]

It needs onnxruntime alone, neither TensorFlow nor `onnx`. With the package onnxruntime-gpu a GPU
computes, as far as CUDA is there; else the processor does.

Memory that a large batch needed is given back after the call: 235 MB instead of 666 are held after
one batch of 16 x 512 tokens of a MiniLM, at a cost of less than 2 % of the time. Plans of memory
are kept for each shape by default, and a long run has many; without them nothing is slower.
"""

import os
import re
from typing import Any

import numpy as np
import onnxruntime
from absl import logging

from bert.exporting.onnx.names import INT8_BITS
from bert.io import installation, processor, start_lines
from bert.predicting.engines.engine import Arrays
from bert.predicting.engines.model_inputs import ModelInputs, need_file, shapes

_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_REMEDY = "Export it anew: export_hub.py --format=onnx."
_SPIN_US = "100"  # more than threads wait between two operations; 20 are too few at times
_CPU, _CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
# Memory is taken as it is needed, and float32 is not rounded to TF32.
_CUDA_OPTIONS = {"arena_extend_strategy": "kSameAsRequested", "use_tf32": "0"}
_TIMED_SPINS = (1, 27)  # the version from which on it can be set


class OnnxRuntimeEngine:
  """A model as an `engine.Engine`.

  Attributes:
    device: `gpu` where CUDA computes, else `cpu`.
  """

  name = "onnxruntime"

  def __init__(
    self, session: onnxruntime.InferenceSession, path: str, max_length: int | None = None
  ):
    """Takes a session, the name for messages, and the longest rows.

    Raises:
      ValueError: the model reads other inputs than tokens.
    """
    self._session, self._path = session, path
    types = {each.name: each.type for each in session.get_inputs()}
    self._inputs = ModelInputs(types, _TYPES, path, max_length)
    self._outputs = [each.name for each in session.get_outputs()]
    self._options = onnxruntime.RunOptions()
    self._options.log_severity_level = 4  # its errors are raised, and said better here
    self.device = "gpu" if _CUDA in session.get_providers() else "cpu"
    arenas = "cpu:0;gpu:0" if self.device == "gpu" else "cpu:0"
    self._options.add_run_config_entry("memory.enable_memory_arena_shrinkage", arenas)
    self.inputs = self._inputs.names

  def __call__(self, batch: Arrays) -> dict[str, np.ndarray]:
    """See `engine.Engine`.

    Raises:
      ValueError: an input is missing, or the model cannot compute the batch.
    """
    given = self._inputs.arrays(batch)
    try:
      results = self._session.run(self._outputs, given, self._options)
    except Exception as error:  # of the library, which has many classes
      raise ValueError(
        f"{self._path} cannot compute {shapes(given)}: {_reason(error)}. Rows are no longer than "
        "the positions of the model (max_position_embeddings in its config.json), and ids lie in "
        "its vocabulary."
      ) from None
    return dict(zip(self._outputs, results, strict=True))


def load(
  path: str | os.PathLike,
  threads: int | None = None,
  shares_cores: bool = False,
  precision: str = "float32",
  max_length: int | None = None,
) -> OnnxRuntimeEngine:
  """Loads a model.

  Args:
    path: of a `model.onnx`.
    threads: that compute; by default one for each processor that this process may use.
    shares_cores: whether other processes need the cores right after a call. By default threads spin
      for a while, to be quick at the next call; a server's front then waits for a core, 4 ms
      instead of 1 on two cores. See `_leave_cores`.
    precision: without effect, it is that of the file.
    max_length: the longest rows that the model reads; None if that is not known.

  Raises:
    ValueError: it is no such file, or onnxruntime does not read it, or it reads other inputs.
    OSError: there is no file.
  """
  del precision
  path = need_file(path)
  options = onnxruntime.SessionOptions()
  options.log_severity_level = 4  # as in a call
  options.intra_op_num_threads = threads or installation.num_cores()
  options.enable_mem_pattern = False
  if shares_cores:
    _leave_cores(options, onnxruntime.__version__)
  try:
    session = onnxruntime.InferenceSession(path, options, providers=_providers())
  except Exception as error:  # of the library, which has many classes
    raise ValueError(_why_not(path, error)) from None
  bits = session.get_modelmeta().custom_metadata_map.get(INT8_BITS)
  if bits == "8" and processor.cuts_off_int8(processor.cpu_flags()):
    logging.warning(
      "%s has weights of 8 bits, and this processor has no VNNI: sums of products overflow, so "
      "answers differ from those elsewhere. Take the float model.",
      path,
    )
  return OnnxRuntimeEngine(session, path, max_length)


def _providers() -> list[Any]:
  """Returns what may compute, the best first; onnxruntime falls back where CUDA does not start."""
  if _CUDA not in onnxruntime.get_available_providers():
    return [_CPU]
  if hasattr(onnxruntime, "preload_dlls"):  # since 1.21: CUDA's libraries from packages of pip
    with start_lines.hidden(all_lines=True):
      onnxruntime.preload_dlls()
  return [(_CUDA, _CUDA_OPTIONS), _CPU]


def _leave_cores(options: onnxruntime.SessionOptions, version: str) -> None:
  """Has threads spin between the operations of a call, but no longer than that after it.

  Without any spinning a short text takes 1.3 times as long, because threads fall asleep within the
  call. Earlier versions, which else spin for many milliseconds, have to do so.
  """
  if tuple(map(int, version.split(".")[:2])) >= _TIMED_SPINS:
    options.add_session_config_entry("session.intra_op.spin_duration_us", _SPIN_US)
  else:
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")


def _why_not(path: str, error: Exception) -> str:
  """Says why onnxruntime does not read a model."""
  text, library = str(error), f"onnxruntime {onnxruntime.__version__}"
  if match := re.search(r"model IR version: (\d+), max supported IR version: (\d+)", text):
    return (
      f"{path} is of version {match[1]} of ONNX' format, and {library} reads up to {match[2]}. "
      "Install a newer onnxruntime, or write the model with an older version."
    )
  if match := re.search(r"[Oo]pset (\d+) is under development", text):
    limit = re.search(r"till opset (\d+)", text)
    return (
      f"{path} has operators of opset {match[1]}, and {library} reads them "
      f"up to opset {limit[1] if limit else 'less'}. Install a newer onnxruntime. {_REMEDY}"
    )
  if "Protobuf parsing failed" in text or "No graph was found" in text:
    return f"{path} is no model of ONNX, or is damaged. {_REMEDY}"
  return f"{path} cannot be read by {library}: {_reason(error)}. {_REMEDY}"


def _reason(error: Exception) -> str:
  """An error of onnxruntime as one line, without codes and places in its source."""
  line = " ".join(str(error).split())
  line = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ", "", line)
  line = re.sub(r"^Load model from .*? failed:|^Non-zero status .*? Status Message: ", "", line)
  line = re.sub(r"^/\S+:\d+ .*\) (?=\w)", "", line)
  return line[:250].rstrip(" .")
