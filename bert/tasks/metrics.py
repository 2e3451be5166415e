"""Scores of classification and regression, computed over a whole evaluation set at once.

  compute_metrics(["accuracy", "f1"], labels, probabilities)
  # {"eval_accuracy": 0.8162, "eval_f1": 0.8702}

scikit-learn and scipy compute the scores. This module adds GLUE's conventions and the edge cases in
which those libraries would warn or return NaN:

- `f1`, `precision`, `recall` are those of class 1 if there are two classes, as GLUE scores MRPC and
  QQP; with more classes they are the mean over the classes that occur, in labels or predictions;
  for multi-label the mean over all classes, where one that never occurs counts 0.
- A quotient with denominator 0 (no positive example, or none predicted) is 0.
- Matthews, Pearson and Spearman are 0 if one side is constant, which is logged. So a model that
  always predicts one class scores 0, not NaN, and is no error.
- `auc` is 0.5 if only one class occurs, which is logged.
- NaN or infinity in labels or predictions is an error, never a score.

Neither TensorFlow, scikit-learn nor scipy is imported with this module.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from absl import logging

# ---------------------------------------------------------------------------------------------
# One number from labels and predictions. Both are [N] class numbers, [N, C] zeros and ones for
# multi-label, or [N] floats for regression.


def accuracy(labels: np.ndarray, predictions: np.ndarray) -> float:
  """Computes the fraction of examples predicted correctly; multi-label: with all labels correct.

  Example:
    >>> accuracy([0, 1, 1, 1], [0, 1, 0, 1])
    0.75
  """
  from sklearn.metrics import accuracy_score

  return float(accuracy_score(labels, predictions))


def precision(labels: np.ndarray, predictions: np.ndarray, average: str = "binary") -> float:
  """Computes the share of predicted positives that are right: TP / (TP + FP), 0 without any.

  Args:
    labels: true classes.
    predictions: predicted classes.
    average: "binary" scores class 1; "macro" is the mean over the classes that occur, or, for
      multi-label, over all C; "micro" pools all classes.
  """
  from sklearn.metrics import precision_score

  return float(precision_score(labels, predictions, average=average, zero_division=0.0))


def recall(labels: np.ndarray, predictions: np.ndarray, average: str = "binary") -> float:
  """Computes the fraction of positives that were predicted: TP / (TP + FN), 0 without positives."""
  from sklearn.metrics import recall_score

  return float(recall_score(labels, predictions, average=average, zero_division=0.0))


def f1(labels: np.ndarray, predictions: np.ndarray, average: str = "binary") -> float:
  """Computes the harmonic mean of precision and recall; the arguments are `precision`'s.

  Example:
    >>> f1([1, 1, 0, 0], [1, 0, 0, 0])  # precision 1, recall 1/2
    0.6666666666666666
    >>> f1([0, 2], [0, 2], "macro")  # class 1 does not occur
    1.0
    >>> f1([[1, 0], [1, 0]], [[1, 0], [1, 0]], "macro")  # nor here, where all classes count
    0.5
  """
  from sklearn.metrics import f1_score

  return float(f1_score(labels, predictions, average=average, zero_division=0.0))


def matthews_corrcoef(labels: np.ndarray, predictions: np.ndarray) -> float:
  """Computes the correlation of classes, from -1 to 1; 0 if one side is constant."""
  from sklearn.metrics import matthews_corrcoef as sklearn_matthews

  if _is_constant("matthews_corrcoef", labels, predictions):
    return 0.0
  return float(sklearn_matthews(labels, predictions))


def pearson(labels: np.ndarray, predictions: np.ndarray) -> float:
  """Computes the linear correlation, from -1 to 1; 0 if one side is constant.

  Example:
    >>> round(pearson([1.0, 2.0, 3.0], [10.0, 20.0, 40.0]), 4), pearson([1.0, 2.0], [5.0, 5.0])
    (0.982, 0.0)
  """
  if _is_constant("pearson", labels, predictions):
    return 0.0
  from scipy.stats import pearsonr

  return _clipped(pearsonr(_standardized(labels), _standardized(predictions)).statistic)


def _standardized(values) -> np.ndarray:
  # With a large offset, or near the largest float, scipy warns and may return NaN. Neither scale
  # nor offset changes a correlation.
  values = np.asarray(values, np.float64)
  values = values / np.abs(values).max()
  centred = values - values.mean()
  return centred / np.abs(centred).max()


def _clipped(correlation) -> float:
  # Rounding may exceed the bounds by an ulp.
  return float(np.clip(correlation, -1.0, 1.0))


def spearman(labels: np.ndarray, predictions: np.ndarray) -> float:
  """Computes the correlation of ranks, from -1 to 1; 0 if one side is constant."""
  if _is_constant("spearman", labels, predictions):
    return 0.0
  from scipy.stats import spearmanr

  return _clipped(spearmanr(labels, predictions).statistic)


def _is_constant(metric: str, labels, predictions) -> bool:
  for name, side in (("labels", labels), ("predictions", predictions)):
    if np.min(side) == np.max(side):
      value = np.ravel(side)[0]
      logging.info("%s is undefined and set to 0: all %s are %s.", metric, name, value)
      return True
  return False


def mse(labels: np.ndarray, predictions: np.ndarray) -> float:
  """Computes the mean squared error."""
  from sklearn.metrics import mean_squared_error

  return float(mean_squared_error(labels, predictions))


def hamming_loss(labels: np.ndarray, predictions: np.ndarray) -> float:
  """Computes the fraction of wrong decisions; multi-label: each label of each example is one."""
  from sklearn.metrics import hamming_loss as sklearn_hamming

  return float(sklearn_hamming(labels, predictions))


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
  """Computes the area under the ROC curve: how probably a positive scores above a negative.

  Of `[N]` zeros and ones, and probabilities, not predictions, of class 1. It is 0.5 if only one
  class occurs.
  """
  from sklearn.metrics import roc_auc_score

  if np.ptp(labels) == 0:
    logging.info("auc is undefined and set to 0.5: all labels are %s.", labels[0])
    return 0.5
  return float(roc_auc_score(labels, scores))


# ---------------------------------------------------------------------------------------------
# Tables.


def confusion_matrix(labels: np.ndarray, predictions: np.ndarray, num_labels: int) -> np.ndarray:
  """Counts examples of the row's class predicted as the column's: int64 `[labels, labels]`.

  Example:
    >>> confusion_matrix([0, 0, 1, 2], [0, 1, 1, 1], 3).tolist()
    [[1, 1, 0], [0, 1, 0], [0, 1, 0]]
  """
  from sklearn.metrics import confusion_matrix as sklearn_confusion

  return sklearn_confusion(labels, predictions, labels=range(num_labels)).astype(np.int64)


def format_confusion_matrix(matrix: np.ndarray, labels: Sequence[str]) -> str:
  r"""Writes a confusion matrix as text: true classes down, predicted ones across.

  Example:
    >>> print(format_confusion_matrix([[90, 10], [5, 895]], ["no", "yes"]))
    true \ predicted   no  yes
                  no   90   10
                 yes    5  895
  """
  matrix = np.asarray(matrix)
  if matrix.shape != (len(labels), len(labels)):
    raise ValueError(f"The matrix has shape {matrix.shape}, but there are {len(labels)} labels.")
  corner = "true \\ predicted"
  width = max(3, *(len(str(cell)) for cell in [*labels, *matrix.ravel().tolist()]))
  names = max(len(corner), *(len(label) for label in labels))
  rows = [[corner, *labels], *([label, *row] for label, row in zip(labels, matrix, strict=True))]
  return "\n".join(
    f"{name:>{names}}" + "".join(f"  {cell:>{width}}" for cell in cells) for name, *cells in rows
  )


class ConfusionTable(str):
  """A confusion matrix as formatted by `format_confusion_matrix`, which keeps its numbers.

  Attributes:
    matrix: int64 `[C, C]`.
    labels: C names.
  """

  matrix: np.ndarray
  labels: tuple[str, ...]

  def __new__(cls, matrix: np.ndarray, labels: Sequence[str]):
    """Formats the matrix; arguments as in `format_confusion_matrix`."""
    table = super().__new__(cls, format_confusion_matrix(matrix, labels))
    table.matrix, table.labels = np.asarray(matrix), tuple(labels)
    return table


# ---------------------------------------------------------------------------------------------
# From the outputs of a model to a dict of scores.


def _convention(labels, num_labels: int) -> str:
  return "binary" if np.ndim(labels) == 1 and num_labels <= 2 else "macro"


# Name -> function of (labels, predictions, scores, num_labels). `scores` are the model's unchanged
# outputs, `[N, C]`, or None if only predictions are known.
METRICS: dict[str, Callable] = {
  "accuracy": lambda y, p, scores, n: accuracy(y, p),
  "f1": lambda y, p, scores, n: f1(y, p, _convention(y, n)),
  "precision": lambda y, p, scores, n: precision(y, p, _convention(y, n)),
  "recall": lambda y, p, scores, n: recall(y, p, _convention(y, n)),
  "f1_macro": lambda y, p, scores, n: f1(y, p, "macro"),
  "precision_macro": lambda y, p, scores, n: precision(y, p, "macro"),
  "recall_macro": lambda y, p, scores, n: recall(y, p, "macro"),
  "f1_micro": lambda y, p, scores, n: f1(y, p, "micro"),
  "precision_micro": lambda y, p, scores, n: precision(y, p, "micro"),
  "recall_micro": lambda y, p, scores, n: recall(y, p, "micro"),
  "matthews_corrcoef": lambda y, p, scores, n: matthews_corrcoef(y, p),
  "auc": lambda y, p, scores, n: auc(y, _scores_of_class_1(scores)),
  "hamming_loss": lambda y, p, scores, n: hamming_loss(y, p),
  "pearson": lambda y, p, scores, n: pearson(y, p),
  "spearman": lambda y, p, scores, n: spearman(y, p),
  "mse": lambda y, p, scores, n: mse(y, p),
}
PROBLEM_METRICS = {
  "classification": frozenset(METRICS) - {"hamming_loss", "pearson", "spearman", "mse"},
  "multi_label": frozenset(METRICS) - {"matthews_corrcoef", "auc", "pearson", "spearman", "mse"},
  "regression": frozenset({"pearson", "spearman", "mse"}),
}


def _scores_of_class_1(scores) -> np.ndarray:
  if scores is None or scores.shape[1] != 2:
    raise ValueError("auc needs the model's two outputs for each example, [N, 2].")
  # The difference ranks examples equally for logits and for probabilities.
  return scores[:, 1] - scores[:, 0]


def keep_real(is_real_example, *arrays) -> tuple[np.ndarray, ...]:
  """Removes the padding of batches: entries where `[N]` booleans, or weights of 0 and 1, are 0.

  None keeps all.

  Raises:
    ValueError: an array has a different length.

  Example:
    >>> keep_real([1, 0, 1], [5, 6, 7])
    (array([5, 7]),)
  """
  arrays = tuple(np.asarray(array) for array in arrays)
  lengths = [len(array) for array in arrays]
  if is_real_example is not None:
    lengths.append(len(is_real_example))
  if len(set(lengths)) > 1:
    raise ValueError(f"Labels, predictions and mask differ in length: {lengths}.")
  if is_real_example is None:
    return arrays
  real = np.asarray(is_real_example).astype(bool)
  return tuple(array[real] for array in arrays)


def predictions_of(
  outputs: np.ndarray, problem_type: str = "classification", threshold: float = 0.5
) -> np.ndarray:
  """Predictions from a model's outputs.

  Args:
    outputs: `[N, C]` probabilities, or logits for classification; `[N]` or `[N, 1]` floats for
      regression; `[N]` class numbers are returned as they are.
    problem_type: "classification", "multi_label" or "regression".
    threshold: the minimum probability of a predicted label, for multi-label.

  Returns:
    `[N]` class numbers, `[N, C]` zeros and ones, or `[N]` floats.

  Example:
    >>> predictions_of([[0.2, 0.8], [0.6, 0.4]]).tolist()
    [1, 0]
    >>> predictions_of([[0.7, 0.8], [0.6, 0.4]], "multi_label").tolist()
    [[1, 1], [1, 0]]
  """
  outputs = np.asarray(outputs)
  if problem_type == "multi_label":
    return (outputs >= threshold).astype(np.int64)
  if problem_type == "regression":
    return outputs.reshape(len(outputs)).astype(np.float64)
  return outputs.argmax(axis=-1) if outputs.ndim == 2 else outputs


def compute_metrics(
  names: Iterable[str],
  labels: np.ndarray,
  outputs: np.ndarray,
  is_real_example: np.ndarray | None = None,
  problem_type: str = "classification",
  losses: np.ndarray | None = None,
  prefix: str = "eval_",
) -> dict[str, float]:
  """Scores a model's outputs.

  Args:
    names: of the metrics, see `METRICS`.
    labels: `[N]` class numbers, `[N, C]` zeros and ones (multi-label) or `[N]` floats (regression).
    outputs: outputs of the model, see `predictions_of`.
    is_real_example: `[N]`, 0 or False for padding of a batch; None if all are real.
    problem_type: "classification", "multi_label" or "regression".
    losses: `[N]`, the loss of each example; `loss` is their mean.
    prefix: of each name in the result; the original's is "eval_".

  Returns:
    Name -> score, in the order of `names`, `loss` last.

  Raises:
    ValueError: a name is unknown or not for this problem type, shapes do not fit, no example is
      real, or a value is NaN or infinite.
  """
  names = _checked_names(names, problem_type)
  labels, outputs = keep_real(is_real_example, labels, outputs)
  _check_values(labels, outputs)
  predictions = predictions_of(outputs, problem_type)
  if problem_type == "regression":
    labels = labels.reshape(len(labels))
  if labels.shape != predictions.shape:
    raise ValueError(f"Labels are {labels.shape}, but predictions {predictions.shape}.")
  scores = outputs if outputs.ndim == 2 else None
  num_labels = _num_labels(labels, predictions, scores)
  result = {prefix + name: METRICS[name](labels, predictions, scores, num_labels) for name in names}
  if losses is not None:
    result[prefix + "loss"] = mean_loss(losses, is_real_example)
  return result


def confusion_table(labels, outputs, is_real_example, names: Sequence[str]) -> ConfusionTable:
  """Computes the confusion matrix of a classification; arguments as in `compute_metrics`."""
  labels, outputs = keep_real(is_real_example, labels, outputs)
  return ConfusionTable(confusion_matrix(labels, predictions_of(outputs), len(names)), names)


def mean_loss(losses: np.ndarray, is_real_example: np.ndarray | None = None) -> float:
  """Averages the losses of the real examples; NaN stays NaN, which shows a diverged model."""
  (losses,) = keep_real(is_real_example, losses)
  return float(np.mean(losses, dtype=np.float64))


def _num_labels(labels, predictions, scores) -> int:
  if scores is not None:
    return scores.shape[1]
  return int(max(labels.max(), predictions.max())) + 1


def _checked_names(names: Iterable[str], problem_type: str) -> list[str]:
  if problem_type not in PROBLEM_METRICS:
    raise ValueError(f"problem_type is {problem_type!r}, not one of {list(PROBLEM_METRICS)}.")
  names = list(names)
  for name in names:
    if name not in PROBLEM_METRICS[problem_type]:
      possible = ", ".join(sorted(PROBLEM_METRICS[problem_type]))
      raise ValueError(f"No metric {name!r} for {problem_type}. Possible metrics: {possible}.")
  return names


def _check_values(labels: np.ndarray, outputs: np.ndarray) -> None:
  if len(labels) == 0:
    raise ValueError("No example to score.")
  for name, values in (("labels", labels), ("predictions", outputs)):
    good = np.isfinite(values).reshape(len(values), -1).all(axis=1)
    if not good.all():
      row = int(np.argmin(good))
      raise ValueError(f"The {name} contain NaN or infinity, first in row {row}: {values[row]}.")
