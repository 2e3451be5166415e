"""Losses of the models' labels, of the shapes of transformers: one for each text, or `[1]`.

Weights are of texts, `[B]`, or of tokens, `[B, S]`; they multiply the losses, and what is divided
by stays the number of labels, as in Keras. And metrics of outputs, as Keras 2 has them.

Letters in shapes: B = batch size, S = sequence length, C = number of classes.
"""

from collections.abc import Mapping, Sequence

import keras
import numpy as np
from keras import ops

IGNORED = -100


def of_texts(labels, logits, weights=None):
  """Computes float32 `[B]` of int labels `[B]`; of float ones where there is one class alone.

  A negative label is none, and its loss 0.

  Raises:
    ValueError: the labels are one-hot.
  """
  if len(logits.shape) == 1 or logits.shape[1] == 1:
    right = ops.cast(ops.reshape(labels, (-1,)), "float32")
    return _weighted(ops.square(ops.reshape(logits, (-1,)) - right), weights)
  check_of_texts(labels, logits.shape[1])
  return _weighted(_of_classes(ops.reshape(labels, (-1,)), logits), weights)


def check_of_texts(labels, num_labels: int) -> None:
  """Raises a ValueError for labels `[B, C]`, where numbers of classes are needed."""
  shape = tuple(np.shape(labels) if isinstance(labels, list) else labels.shape)
  if len(shape) == 2 and shape[1] == num_labels > 1:
    raise ValueError(
      f"labels are {list(shape)}, one-hot; the loss needs the number of the class of each text: "
      "np.argmax(labels, axis=-1). Or compile the model with loss=keras.losses."
      "CategoricalCrossentropy(from_logits=True)."
    )


def of_tokens(labels, logits, weights=None):
  """Computes float32 `[1]`: the mean of the tokens whose label is not negative; 0 without any."""
  return _mean_of_counted(labels, logits, ops.greater_equal(labels, 0), weights)


def of_masked_words(labels, logits, weights=None):
  """Computes float32 `[1]`: the mean of the tokens whose label is not -100; 0 without any."""
  return _mean_of_counted(labels, logits, ops.not_equal(labels, IGNORED), weights)


def of_sentences(labels, logits, weights=None):
  """Computes float32 `[B]`: 0 for a label of -100."""
  counted = ops.cast(ops.not_equal(labels, IGNORED), "float32")
  return _weighted(_of_classes(ops.relu(labels), logits) * counted, weights)


def of_spans(labels, logits, weights=(None, None)):
  """Computes float32 `[B]`: the mean of both ends.

  Args:
    labels: positions of start and end, int `[B]` each; the loss of one outside the text is 0.
    logits: of start and end, `[B, S]` each.
    weights: of both.
  """
  length = ops.shape(logits[0])[1]
  labels = (ops.cast(ops.reshape(position, (-1,)), "int32") for position in labels)
  labels = (ops.where(position < length, position, IGNORED) for position in labels)
  start, end = map(_weighted, map(_of_classes, labels, logits), weights)
  return (start + end) / 2.0


def of_words_and_sentences(labels, logits, weights=(None, None)):
  """Computes float32 `[1]`: the mean of the masked words and that of the pairs."""
  words = of_masked_words(labels[0], logits[0], weights[0])
  pairs = ops.reshape(labels[1], (-1,))
  return words + _mean_of_counted(pairs, logits[1], ops.not_equal(pairs, IGNORED), weights[1])


def for_outputs(loss, names: Sequence[str]):
  """Makes a loss for each of several outputs of one, or of a list in their order."""
  if loss is None or len(names) == 1 or isinstance(loss, Mapping):
    return loss
  each = loss if isinstance(loss, list | tuple) else [loss] * len(names)
  return dict(zip(names, each, strict=True))


def metrics_for_outputs(metrics, names: Sequence[str]):
  """Makes the metrics of each of several outputs of one, or of a list, as Keras 2 did."""
  if not metrics or len(names) == 1 or isinstance(metrics, Mapping):
    return metrics
  each = metrics if isinstance(metrics, list | tuple) else [metrics]
  if any(isinstance(metric, list | tuple) for metric in each):
    return metrics
  return {name: list(map(_copied, each)) for name in names}


def _of_classes(labels, logits):
  labels = ops.cast(labels, "int32")
  losses = keras.losses.sparse_categorical_crossentropy(
    ops.relu(labels), ops.cast(logits, "float32"), from_logits=True
  )
  return ops.where(labels < 0, 0.0, losses)


def _mean_of_counted(labels, logits, counted, weights):
  counted = ops.cast(counted, "float32")
  losses = _weighted(_of_classes(ops.relu(labels), logits) * counted, weights)
  return ops.reshape(ops.divide_no_nan(ops.sum(losses), ops.sum(counted)), (1,))


def _weighted(losses, weights):
  """Multiplies losses `[B]` or `[B, S]` by weights of texts or tokens; None: all count alike."""
  if weights is None:
    return losses
  weights = ops.cast(weights, losses.dtype)
  missing = len(losses.shape) - len(weights.shape)
  return losses * ops.reshape(weights, (*ops.shape(weights), *(1,) * missing))


def _copied(metric):
  return metric.from_config(metric.get_config()) if isinstance(metric, keras.Metric) else metric
