"""The batches of a training run, in an order that depends only on seed and position."""

import contextlib
import io
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert.io import atomic_files
from bert.model import out_of_memory
from bert.training import distribution


class TrainingData:
  """The batches of an input_fn from some position on.

  Attributes:
    element_spec: of the batches.
    iterator: over the batches, divided among the replicas of the strategy.
  """

  def __init__(self, input_fn: Callable, params: Mapping[str, Any], examples: int, strategy):
    """Begins after `examples` examples.

    Args:
      input_fn: `input_fn(params)` returns a dataset of batches; see `Estimator.train`.
      params: of the input_fn.
      examples: number of examples that the run has consumed.
      strategy: `tf.distribute` strategy.
    """
    self._input_fn = input_fn
    self._params = params
    dataset = self._dataset(examples)
    self.element_spec = dataset.element_spec
    self.iterator = iter(distribution.distribute_dataset(strategy, dataset))

  def _dataset(self, examples: int) -> tf.data.Dataset:
    return self._input_fn({**self._params, "skip_examples": examples})

  def save_batch(self, path: str, examples: int, batches: int) -> None:
    """Saves a batch for inspection, one array for each feature.

    `np.load(path, allow_pickle=False)` reads the file. It holds the whole batch, including
    all replicas' parts. It is read again: keeping every batch would slow down each step.

    Args:
      path: of the file.
      examples: number of examples that the run had consumed at some step.
      batches: number of batches between that step and this batch.
    """
    batch = next(itertools.islice(iter(self._dataset(examples)), batches, None))
    buffer = io.BytesIO()
    arrays: dict[str, Any] = _named_arrays(tf.nest.map_structure(lambda x: x.numpy(), batch))
    np.savez(buffer, **arrays)
    atomic_files.write_bytes(path, buffer.getvalue())


@contextlib.contextmanager
def explained_errors(input_fn: Callable, if_out_of_memory: str) -> Iterator[None]:
  """Replaces errors about the data by `input_fn.explain_error`'s, or an OutOfMemoryError."""
  try:
    with distribution.clear_errors(), out_of_memory.explained(if_out_of_memory):
      yield
  except tf.errors.OpError as error:
    explain = getattr(input_fn, "explain_error", lambda error: None)
    explained = explain(error)
    if explained is None:
      raise
    raise explained from None


def _named_arrays(batch) -> dict[str, np.ndarray]:
  """Returns the arrays of a batch by their path in its structure.

  Example:
    >>> sorted(_named_arrays(({"ids": 1, "mask": 2}, 3)))
    ['0/ids', '0/mask', '1']
  """
  parts: Iterable[tuple[Any, Any]]
  if isinstance(batch, dict):
    parts = batch.items()
  elif isinstance(batch, tuple):
    parts = enumerate(batch)
  else:
    return {"": distribution.without_objects(batch)}
  return {
    f"{name}/{rest}".strip("/"): array
    for name, part in parts
    for rest, array in _named_arrays(part).items()
  }
