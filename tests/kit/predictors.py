"""Predictors of functions, without a model."""

from collections.abc import Callable, Sequence
from typing import Any

from bert.predicting.predictor import Predictor
from bert.predicting.processors import ItemRows, Processor


class _Functions(Processor):
  def __init__(self, featurize, finish):
    self._featurize, self._finish = featurize, finish

  def featurize(self, item):
    return ItemRows(item, [self._featurize(item)])

  def finish(self, rows, outputs):
    return self._finish(rows.item, outputs[0])


def predictor(
  featurize: Callable[[Any], dict],
  compute: Callable[[dict], dict],
  inputs: Sequence[str],
  finish: Callable[[Any, Any], Any] = lambda item, outputs: outputs,
  **sizes: Any,
) -> Predictor:
  """Makes a predictor; `finish` takes an item and its outputs."""
  return Predictor(_Functions(featurize, finish), _Engine(compute, inputs), **sizes)


class _Engine:
  name = "function"

  def __init__(self, compute, inputs):
    self.inputs, self._compute = tuple(inputs), compute

  def __call__(self, batch):
    return self._compute(batch)
