"""Estimators made of others."""

import inspect
from collections.abc import Callable

from bert_tf1.estimator.estimator import Estimator
from bert_tf1.estimator.specs import EstimatorSpec, ModeKeys

_ARGUMENTS = ("features", "labels", "predictions", "config")


def add_metrics(estimator: Estimator, metric_fn: Callable) -> Estimator:
  """Returns the Estimator with more metrics, in the same model_dir.

  Args:
    estimator: the Estimator.
    metric_fn: returns the metrics by name; it names what it takes of `features`, `labels`,
      `predictions` and `config`. A metric of a name that is there replaces it.

  Raises:
    ValueError: `metric_fn` takes another argument.
  """
  names = inspect.signature(metric_fn).parameters
  unknown = [name for name in names if name not in _ARGUMENTS]
  if unknown:
    raise ValueError(f"metric_fn ({metric_fn}) has following not expected args: {unknown}")

  def model_fn(features, labels, mode, config) -> EstimatorSpec:
    spec = estimator.model_fn(features, labels, mode, config)
    if mode != ModeKeys.EVAL:
      return spec
    given = dict(features=features, labels=labels, predictions=spec.predictions, config=config)
    added = metric_fn(**{name: given[name] for name in names})
    return spec._replace(eval_metric_ops={**(spec.eval_metric_ops or {}), **added})

  return Estimator(model_fn, model_dir=estimator.model_dir, config=estimator.config)
