"""Evaluation and prediction: runs batches through a graph and collects the arrays."""

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tensorflow as tf

from bert.training import distribution
from bert.training.graphs import ROW, InferenceGraph
from bert.training.progress import EventLog

OnRows = Callable[[dict[str, np.ndarray]], None]


def evaluate(
  graph: InferenceGraph,
  dataset,
  strategy: tf.distribute.Strategy,
  steps: int | None,
  on_rows: OnRows | None = None,
) -> dict[str, Any]:
  """Evaluates on a dataset of distributed batches with the current variables.

  Args:
    graph: of evaluation.
    dataset: of batches.
    strategy: of the graph.
    steps: number of batches; None for all.
    on_rows: receives `EstimatorSpec.rows` of each batch, as arrays.

  Returns:
    The result of `metric_fn`, and `loss`: the mean over batches of the batch's mean.

  Raises:
    ValueError: the dataset is empty.
  """
  losses, collected = [], []
  for batch in itertools.islice(iter(dataset), steps):
    rows = _rows(graph, batch, strategy)
    rows = [r for r in rows if int(r["examples"])]  # A short batch may leave a replica idle.
    losses.append(
      np.average([float(r["loss"]) for r in rows], weights=[int(r["examples"]) for r in rows])
    )
    for row in rows:
      arrays = _arrays_of(row)
      of_rows = {n.removeprefix(ROW): arrays.pop(n) for n in [*arrays] if n.startswith(ROW)}
      collected.append(arrays)
      if on_rows and of_rows:
        on_rows(of_rows)
  if not losses:
    raise ValueError("There is nothing to evaluate: the input_fn gave no batch.")
  results = {}
  if graph.metric_fn:
    arrays = {k: _concatenate([c[k] for c in collected]) for k in collected[0]}
    results = {k: _plain(value) for k, value in graph.metric_fn(**arrays).items()}
  return {**results, "loss": float(np.mean(losses))}


def predictions(
  graph: InferenceGraph, dataset, strategy: tf.distribute.Strategy
) -> Iterator[dict[str, Any]]:
  """Yields name -> value for each example; arguments as in `evaluate`."""
  for batch in dataset:
    for row in _rows(graph, batch, strategy):
      arrays = _arrays_of(row)
      for i in range(int(row["examples"])):
        yield {name: array[i] for name, array in arrays.items()}


class EvaluationLogs:
  """The numeric results of evaluations for TensorBoard: one file for each folder, each step once.

  With a second point at a step, such as the best one once more at the end, the curve turns back.
  """

  def __init__(self) -> None:
    self._logs: dict[str, EventLog] = {}
    self._written: set[tuple[str, int]] = set()

  def write(self, folder: str, results: dict[str, Any]) -> None:
    """Writes the results of the step `results["global_step"]`, unless this has written them."""
    step = results["global_step"]
    if not distribution.is_chief() or (folder, step) in self._written:
      return
    self._written.add((folder, step))
    if folder not in self._logs:
      self._logs[folder] = EventLog(folder)
    scalars = {name: value for name, value in results.items() if isinstance(value, float)}
    self._logs[folder].write(step, scalars)


_ARRAY = "array:"


def _rows(graph, batch, strategy) -> list[dict[str, np.ndarray]]:
  """Gathers the outputs of all replicas of all workers on a batch."""
  replicas = strategy.experimental_local_results(graph.run(batch))
  return distribution.gather([_row_of(replica) for replica in replicas])


def _row_of(outputs: dict[str, Any]) -> dict[str, np.ndarray]:
  """Flattens a replica's outputs for a batch to a dictionary: size, loss, arrays."""
  row = {name: value.numpy() for name, value in outputs.items() if name != "arrays"}
  return {**row, **{_ARRAY + name: value.numpy() for name, value in outputs["arrays"].items()}}


def _arrays_of(row: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Returns the arrays in a result of `_row_of`.

  Example:
    >>> _arrays_of({"examples": 2, "array:logits": [0.1, 0.2]})
    {'logits': [0.1, 0.2]}
  """
  return {n.removeprefix(_ARRAY): array for n, array in row.items() if n.startswith(_ARRAY)}


def _concatenate(arrays: list[np.ndarray]) -> np.ndarray:
  """Joins arrays along the first axis, other axes padded with zeros to the longest.

  Example:
    >>> _concatenate([np.array([[1, 2]]), np.array([[3, 4, 5]])]).tolist()
    [[1, 2, 0], [3, 4, 5]]
  """
  arrays = [np.atleast_1d(array) for array in arrays]
  longest = np.max([array.shape[1:] for array in arrays], axis=0)
  if longest.size:
    arrays = [
      np.pad(a, [(0, 0), *((0, int(n) - m) for n, m in zip(longest, a.shape[1:], strict=True))])
      for a in arrays
    ]
  return np.concatenate(arrays)


def _plain(value):
  """Converts any kind of number to a Python float; other values stay."""
  if isinstance(value, (int, float, np.number)) or (
    isinstance(value, np.ndarray) and not value.ndim
  ):
    return float(value)
  return value
