"""What an engine is: a model of tokens, from integers to floats.

  engine({"input_ids": np.array([[101, 7592, 102]], np.int32), ...})["logits"]

Texts become tokens and scores become answers in Python (`tasks/decoding.py`), the same for all.

Letters in shapes: R = rows, S = sequence length.
"""

from collections.abc import Mapping
from typing import Protocol

import numpy as np

Arrays = Mapping[str, np.ndarray]  # by name


class Engine(Protocol):
  """A model that is loaded; called by one thread at a time.

  Attributes:
    name: of the engine, as in `registry.py`.
    inputs: which of `input_ids`, `input_mask` and `segment_ids` the model reads.
    device: `gpu` or `cpu`, where an engine says it.
  """

  name: str
  inputs: tuple[str, ...]

  def __call__(self, batch: Arrays) -> dict[str, np.ndarray]:
    """Computes the scores of rows: int32 `[R, S]`, padded, by name to arrays `[R, ...]` by name."""
