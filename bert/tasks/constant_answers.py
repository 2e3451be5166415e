"""Whether a model has learned anything: is it better than the best answer that is always the same?

Fine-tuning on little data fails now and then: the model then gives one answer to everything, and
its score is that of this answer. Each function returns why a model counts as failed, or None.
Pure Python and NumPy.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from bert.tasks.metrics import predictions_of

FAILURE = "failure"
"""The result of an evaluation that says why the model counts as failed."""


def failure_of_classes(
  labels: Sequence | np.ndarray,
  outputs: np.ndarray,
  names: Sequence[str],
  problem_type: str = "classification",
) -> str | None:
  """Explains why a model of classes or numbers counts as failed on a dev set.

  - classification: its accuracy is not above the share of the most frequent label.
  - multi_label: its decisions on single labels are not right more often than those of the best
    answer that is the same for all examples: each label that most examples have.
  - regression: its mean squared error is not below the variance of the labels, which is the error
    of their mean.

  Where all labels are equal nothing can be said, and nothing is.

  Args:
    labels: int `[N]`, zeros and ones `[N, C]` (multi_label), or float `[N]` (regression).
    outputs: probabilities `[N, C]`; for regression float `[N]` or `[N, 1]`.
    names: of the C classes.
    problem_type: see `metrics.predictions_of`.

  Example:
    >>> failure_of_classes([0, 1, 1], np.array([[0.4, 0.6]] * 3), ["no", "yes"])
    'accuracy 0.6667 is not above 0.6667, the share of the most frequent label (yes)'
  """
  truth = np.asarray(labels)
  if not len(truth) or (truth == truth[0]).all():
    return None
  predictions = predictions_of(np.asarray(outputs), problem_type)
  if problem_type == "regression":
    error, variance = float(np.mean((truth - predictions) ** 2)), float(np.var(truth))
    if error < variance * (1 - 1e-6):  # A constant at the mean, but for rounding, is no better.
      return None
    return f"mean squared error {error:.4g} is not below {variance:.4g}, the labels' variance"
  if problem_type == "multi_label":
    right = float(np.mean(truth == predictions))
    shares = truth.mean(axis=0)
    constant = float(np.mean(np.maximum(shares, 1 - shares)))
    if right > constant:
      return None
    return f"{right:.4f} of its decisions are right, not above {constant:.4f}, of constant answers"
  counts = np.bincount(truth, minlength=len(names))
  accuracy, share = float(np.mean(truth == predictions)), float(counts.max() / len(truth))
  if accuracy > share:
    return None
  most = names[int(counts.argmax())]
  return (
    f"accuracy {accuracy:.4f} is not above {share:.4f}, the share of the most frequent label "
    f"({most})"
  )


def with_failure(
  results: Mapping[str, Any],
  labels: np.ndarray,
  outputs: np.ndarray,
  names: Sequence[str],
  problem_type: str = "classification",
) -> dict[str, Any]:
  """Adds to results why the model counts as failed, if it does; see `failure_of_classes`."""
  failure = failure_of_classes(labels, outputs, names, problem_type)
  return {**results, **({FAILURE: failure} if failure else {})}


def warn_of(failure: str | None) -> None:
  """Logs why a model counts as failed, if it does."""
  if failure:
    logging.warning("The model is no better than one answer to everything: %s.", failure)


def failure_of_tags(scores: Mapping[str, float]) -> str | None:
  """Explains why a model of tags counts as failed: it finds no entity (`eval_f1`, from 0 to 1)."""
  return None if scores["eval_f1"] > 0 else "F1 is 0: it finds no entity"


def failure_of_answers(scores: Mapping[str, float]) -> str | None:
  """Explains by `squad_scores.evaluate_answers` why a model of questions counts as failed.

  - 2.0: its F1 is not above that of never answering.

  - 1.1: no answer is exactly right.

  Example:
    >>> failure_of_answers({"exact": 50.0, "f1": 50.0, "total": 4, "NoAns_total": 2})
    'F1 50.00 is not above 50.00, that of "no answer" to all questions'
  """
  if "exact_match" in scores:
    return None if scores["exact_match"] > 0 else "no answer is exactly right"
  never = 100.0 * scores.get("NoAns_total", 0) / scores["total"]
  if scores["f1"] > never or not scores.get("HasAns_total", scores["total"]):
    return None
  return f'F1 {scores["f1"]:.2f} is not above {never:.2f}, that of "no answer" to all questions'
