"""Inputs of the encoder that are the same in every interpreter."""

import numpy as np


def make_inputs(batch: int, length: int, vocab_size: int, padded: bool = False) -> list:
  """Word ids, mask and segments, int64 `[batch, length]` each.

  Args:
    batch: sequences.
    length: of each.
    vocab_size: ids are below it.
    padded: whether the last quarter of every other sequence is padding.

  Example:
    >>> make_inputs(2, 4, 100, padded=True)[1].tolist()
    [[1, 1, 1, 1], [1, 1, 1, 0]]
  """
  ids = np.random.default_rng(0).integers(1, vocab_size, (batch, length))
  mask = np.ones_like(ids)
  if padded:
    mask[1::2, length - length // 4 :] = 0
  segments = np.zeros_like(ids)
  segments[:, length // 2 :] = 1
  return [ids * mask, mask, segments * mask]
