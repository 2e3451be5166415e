"""Scores of rows that were computed before, such as by the evaluation of a run.

  known = KnownRows()
  known.add(input_ids, input_mask, {"logits": logits})
  known.scores_of({"input_ids": [2, 7, 3], "input_mask": [1, 1, 1]})    # {"logits": ...}, or None

Letters in shapes: R = rows, S = sequence length.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

_MOST_BYTES = 1 << 28


class KnownRows:
  """What an engine would give for rows, found by their tokens."""

  def __init__(self, most_bytes: int = _MOST_BYTES):
    """Remembers scores of up to `most_bytes`; the first ones of more."""
    self._scores: dict[bytes, dict[str, np.ndarray]] = {}
    self._left = most_bytes

  def add(self, input_ids: Any, input_mask: Any, scores: Mapping[str, Any]) -> None:
    """Remembers rows.

    Args:
      input_ids: int `[..., S]`; all axes but the last are of rows.
      input_mask: int `[..., S]`, 0 for padding.
      scores: name -> `[R, ...]`. Where they are not of the rows, nothing is remembered.
    """
    ids, mask = (np.reshape(each, [-1, np.shape(each)[-1]]) for each in (input_ids, input_mask))
    if not scores or any(len(array) != len(ids) for array in scores.values()):
      return
    for place, row in enumerate(ids):
      found = {name: np.array(array[place]) for name, array in scores.items()}
      self._left -= sum(array.nbytes for array in found.values())
      if self._left < 0:
        return
      self._scores[_key(row, mask[place])] = found

  def scores_of(self, row: Mapping[str, Any]) -> dict[str, np.ndarray] | None:
    """Returns name -> array of a row; None where it is not known."""
    return self._scores.get(_key(row["input_ids"], row["input_mask"]))


def _key(input_ids: Any, input_mask: Any) -> bytes:
  return np.asarray(input_ids, np.int32)[: int(np.sum(input_mask))].tobytes()
