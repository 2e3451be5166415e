"""The file of an exported model, and its inputs, as each engine that reads one gives them."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert.exporting.onnx.names import INPUTS
from bert.predicting.engines.engine import Arrays


class ModelInputs:
  """Takes from a batch what a model reads, by the model's own names.

  Attributes:
    names: which of `input_ids`, `input_mask` and `segment_ids` the model reads.
  """

  def __init__(
    self,
    found: Mapping[str, str],
    types: Mapping[str, Any],
    path: str,
    max_length: int | None = None,
  ):
    """Checks the inputs of a model.

    Args:
      found: each input's own name -> its type, as the library writes it.
      types: the types that an engine takes, as the library writes them -> the NumPy type.
      path: the model's name for messages.
      max_length: the longest rows that the model reads; None if that is not known.

    Raises:
      ValueError: the model reads other inputs than tokens.
    """
    known = ", ".join(INPUTS.values())
    for name, type_ in found.items():
      if name not in INPUTS.values() or type_ not in types:
        takes = " or ".join(np.dtype(each).name for each in types.values())
        raise ValueError(
          f"{path} reads {name} ({type_}); models of texts read {known} as {takes}. "
          "Export it anew: export_hub.py."
        )
    if "input_ids" not in found:
      raise ValueError(f"{path} reads no input_ids; models of texts read {known}.")
    self._types = {name: types[type_] for name, type_ in found.items()}
    self._path, self._max_length = path, max_length
    self.names = tuple(name for name, own in INPUTS.items() if own in found)

  def arrays(self, batch: Arrays) -> dict[str, np.ndarray]:
    """Returns arrays `[R, S]` of the model's types.

    OpenVINO computes something of arrays that do not fit, on some processors.

    Raises:
      ValueError: one is missing or has another shape, or the rows are too long.
    """
    if missing := [name for name in self.names if name not in batch]:
      raise ValueError(f"{self._path} reads {', '.join(missing)}, which the batch lacks.")
    own_names = {name: INPUTS[name] for name in self.names}
    arrays = {own: np.asarray(batch[name], self._types[own]) for name, own in own_names.items()}
    shape = arrays["input_ids"].shape
    if len(shape) != 2 or any(each.shape != shape for each in arrays.values()):
      raise ValueError(
        f"{self._path} cannot compute {shapes(arrays)}: all inputs have one shape, [rows, length]."
      )
    if self._max_length and shape[1] > self._max_length:
      raise ValueError(
        f"{self._path} cannot compute {shapes(arrays)}: the model reads at most "
        f"{self._max_length} tokens."
      )
    return arrays


def shapes(arrays: Arrays) -> str:
  """Writes the shapes of arrays for a message."""
  return ", ".join(f"{name} {list(values.shape)}" for name, values in arrays.items())


def need_file(path: str | os.PathLike) -> str:
  """Returns the path of a model's file; a FileNotFoundError if there is none."""
  path = os.fsdecode(path)
  if not os.path.isfile(path):
    raise FileNotFoundError(f"{path} does not exist.")
  return path
