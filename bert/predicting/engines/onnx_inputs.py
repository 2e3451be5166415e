"""The inputs of a `model.onnx`, as each engine that reads one gives them."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from bert.exporting.onnx.names import INPUTS
from bert.predicting.engines.engine import Arrays


class OnnxInputs:
  """Takes from a batch what a model reads, by the model's own names.

  Attributes:
    names: which of `input_ids`, `input_mask` and `segment_ids` the model reads.
  """

  def __init__(self, types: Mapping[str, Any], path: str):
    """Takes the NumPy type of each of the model's inputs, and the model's name for messages.

    Raises:
      ValueError: the model reads no tokens.
    """
    if "input_ids" not in types:
      known = ", ".join(INPUTS.values())
      raise ValueError(f"{path} reads no input_ids; models of texts read {known}.")
    self._types, self._path = types, path
    self.names = tuple(name for name, own in INPUTS.items() if own in types)

  def arrays(self, batch: Arrays) -> dict[str, np.ndarray]:
    """Returns arrays of the model's types.

    Raises:
      ValueError: one is missing.
    """
    if missing := [name for name in self.names if name not in batch]:
      raise ValueError(f"{self._path} reads {', '.join(missing)}, which the batch lacks.")
    own_names = {name: INPUTS[name] for name in self.names}
    return {own: np.asarray(batch[name], self._types[own]) for name, own in own_names.items()}


def shapes(arrays: Arrays) -> str:
  """Writes the shapes of arrays for a message."""
  return ", ".join(f"{name} {list(values.shape)}" for name, values in arrays.items())
