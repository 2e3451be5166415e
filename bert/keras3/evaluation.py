"""Scores of a classifier over a loader, for every Keras backend: `bert/tasks/metrics.py` in the
kit's words.

  scores = evaluate_classification_metrics(model, loader, num_classes=2)
  scores["accuracy"], scores["f1"], scores["per_class"]["recall"], scores["confusion_matrix"]

Letters in shapes: N = number of examples, C = number of classes.
"""

import itertools
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np

from bert.keras3.training import cross_entropies, on_device, predict_logits, split_batch
from bert.tasks import metrics

AVERAGES = ("binary", "macro", "micro", "weighted", "none")


def compute_precision_recall_f1(
  predictions, labels, num_classes: int | None = None, average: str | None = None
) -> dict[str, Any]:
  """Precision, recall and F1; a quotient of nothing is 0.

  Args:
    predictions: int `[N]`, classes; or float `[N, C]`, of which the largest counts.
    labels: int `[N]`, true classes; what has a negative one is left out.
    num_classes: C; the largest number plus 1 by default.
    average: `binary`: of class 1; `macro`: the mean over the classes that occur; `weighted`: the
      same, weighted by how often they occur; `micro`: all decisions pooled; `none`: a list with one
      number for each class. By default `binary` for two classes, and `macro` for more.

  Returns:
    `precision`, `recall` and `f1`.

  Raises:
    ValueError: shapes differ, nothing has a label, a class is out of range, or `average` unknown.

  Example:
    >>> compute_precision_recall_f1([1, 1, 0, 1], [1, 0, 0, 1])
    {'precision': 0.6666666666666666, 'recall': 1.0, 'f1': 0.8}
    >>> compute_precision_recall_f1([1, 1, 0, 1], [1, 0, 0, 1], average="none")["recall"]
    [0.5, 1.0]
  """
  predictions, labels, num_classes = _checked(predictions, labels, num_classes)
  average = average or ("binary" if num_classes <= 2 else "macro")
  if average not in AVERAGES:
    raise ValueError(f"average is {average!r}; known: {', '.join(AVERAGES)}.")
  if average == "none":
    return _per_class(predictions, labels, num_classes)
  if average == "binary" and num_classes > 2:
    raise ValueError(f"average='binary' scores class 1 of two, but there are {num_classes}.")
  functions = {"precision": metrics.precision, "recall": metrics.recall, "f1": metrics.f1}
  return {name: function(labels, predictions, average) for name, function in functions.items()}


def _per_class(predictions, labels, num_classes: int) -> dict[str, list[float]]:
  from sklearn.metrics import precision_recall_fscore_support

  scores = precision_recall_fscore_support(
    labels, predictions, labels=range(num_classes), zero_division=0.0
  )
  return {name: scores[i].tolist() for i, name in enumerate(("precision", "recall", "f1"))}


def compute_confusion_matrix(predictions, labels, num_classes: int | None = None) -> np.ndarray:
  """int64 `[C, C]`: how often the row's class was predicted as the column's.

  Arguments and errors are those of `compute_precision_recall_f1`.

  Example:
    >>> compute_confusion_matrix([0, 1, 1, 1], [0, 0, 1, 2]).tolist()
    [[1, 1, 0], [0, 1, 0], [0, 1, 0]]
  """
  predictions, labels, num_classes = _checked(predictions, labels, num_classes)
  return metrics.confusion_matrix(labels, predictions, num_classes)


def _checked(predictions, labels, num_classes: int | None) -> tuple[np.ndarray, np.ndarray, int]:
  predictions = np.asarray(keras.ops.convert_to_numpy(predictions))
  labels = np.asarray(keras.ops.convert_to_numpy(labels)).ravel()
  if predictions.dtype.kind == "f":
    predictions = predictions.argmax(axis=-1)
  predictions = predictions.ravel()
  if predictions.shape != labels.shape:
    raise ValueError(f"There are {predictions.size} predictions, but {labels.size} labels.")
  predictions, labels = metrics.keep_real(labels >= 0, predictions, labels)
  if not labels.size:
    raise ValueError("There is nothing to score: no example has a label.")
  largest = int(max(predictions.max(), labels.max()))
  num_classes = num_classes or largest + 1
  if largest >= num_classes:
    raise ValueError(f"There is a class {largest}, but num_classes is {num_classes}.")
  return predictions, labels, num_classes


def evaluate_classification_metrics(
  model: keras.Model,
  loader: Iterable,
  device: str | None = None,
  num_classes: int | None = None,
  num_batches: int | None = None,
  average: str | None = None,
) -> dict[str, Any]:
  """Scores a classifier.

  Args:
    model: gives logits or probabilities, `[B, C]`, or `[B, S, C]` of tokens.
    loader: of `create_classification_dataloader`, or any batches with `labels`.
    device: see `training.on_device`.
    num_classes: C; by default what the model gives.
    num_batches: how many batches to look at; all by default.
    average: see `compute_precision_recall_f1`.

  Returns:
    `accuracy`, `precision`, `recall`, `f1`, `loss` (mean cross-entropy), `per_class` (lists of
    `precision`, `recall` and `f1`) and `confusion_matrix`, int64 `[C, C]`, true classes down.

  Raises:
    ValueError: there is no example, or a label that the model cannot give.
  """
  outputs, labels = _collect(model, loader, device, num_batches)
  if num_classes is not None and num_classes != outputs.shape[1]:
    raise ValueError(f"num_classes is {num_classes}, but the model gives {outputs.shape[1]}.")
  num_classes = outputs.shape[1]
  predictions, labels, _ = _checked(outputs.argmax(axis=-1), labels, num_classes)
  return {
    "accuracy": metrics.accuracy(labels, predictions),
    **compute_precision_recall_f1(predictions, labels, num_classes, average),
    "loss": float(cross_entropies(_as_logits(outputs), labels).mean()),
    "per_class": _per_class(predictions, labels, num_classes),
    "confusion_matrix": metrics.confusion_matrix(labels, predictions, num_classes),
  }


def _collect(model, loader, device, num_batches) -> tuple[np.ndarray, np.ndarray]:
  """Outputs float32 `[N, C]` and labels int `[N]` of what has a label."""
  outputs, labels = [], []
  with on_device(device):
    for batch in itertools.islice(loader, num_batches):
      inputs, batch_labels = split_batch(batch)
      labelled = batch_labels >= 0
      outputs.append(predict_logits(model, inputs)[labelled])
      labels.append(batch_labels[labelled])
  if not sum(part.size for part in labels):
    raise ValueError("The loader has nothing to score: no batch, or no example with a label.")
  return np.concatenate(outputs), np.concatenate(labels)


def _as_logits(outputs: np.ndarray) -> np.ndarray:
  """Logits as they are; of probabilities, the logarithms, which are logits of the same."""
  sums = outputs.sum(axis=-1)
  if outputs.min() >= 0 and np.abs(sums - 1).max() < 1e-3:
    return np.log(np.maximum(outputs, np.finfo(np.float32).tiny))
  return outputs
