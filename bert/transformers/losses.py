"""Losses of the models' labels, of the shapes of transformers: one for each text, or `[1]`.

And metrics of outputs, as Keras 2 has them.

Letters in shapes: B = batch size, S = sequence length, C = number of classes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
from keras import ops

IGNORED = -100


def of_texts(labels, logits):
  """Computes float32 `[B]` of int labels `[B]`; of float ones where there is one class alone.

  A negative label is none, and its loss 0.
  """
  if len(logits.shape) == 1 or logits.shape[1] == 1:
    return ops.square(ops.reshape(logits, (-1,)) - ops.cast(ops.reshape(labels, (-1,)), "float32"))
  return _of_classes(ops.reshape(labels, (-1,)), logits)


def of_tokens(labels, logits):
  """Computes float32 `[1]`: the mean of the tokens whose label is not negative; 0 without any."""
  return _mean_of_counted(labels, logits, ops.greater_equal(labels, 0))


def of_masked_words(labels, logits):
  """Computes float32 `[1]`: the mean of the tokens whose label is not -100; 0 without any."""
  return _mean_of_counted(labels, logits, ops.not_equal(labels, IGNORED))


def of_sentences(labels, logits):
  """Computes float32 `[B]`: 0 for a label of -100."""
  counted = ops.cast(ops.not_equal(labels, IGNORED), "float32")
  return _of_classes(ops.relu(labels), logits) * counted


def of_spans(labels, logits):
  """Computes float32 `[B]`: the mean of both ends.

  Args:
    labels: positions of start and end, int `[B]` each; the loss of one outside the text is 0.
    logits: of start and end, `[B, S]` each.
  """
  length = ops.shape(logits[0])[1]
  labels = (ops.cast(ops.reshape(position, (-1,)), "int32") for position in labels)
  labels = (ops.where(position < length, position, IGNORED) for position in labels)
  start, end = map(_of_classes, labels, logits)
  return (start + end) / 2.0


def of_words_and_sentences(labels, logits):
  """Computes float32 `[1]`: the mean of the masked words and that of the pairs."""
  words = of_masked_words(labels[0], logits[0])
  pairs = ops.reshape(labels[1], (-1,))
  return words + _mean_of_counted(pairs, logits[1], ops.not_equal(pairs, IGNORED))


def for_outputs(loss: Any, names: Sequence[str]) -> Any:
  """Makes a loss for each of several outputs of one, or of a list in their order."""
  if loss is None or len(names) == 1 or isinstance(loss, Mapping):
    return loss
  each = loss if isinstance(loss, list | tuple) else [loss] * len(names)
  return dict(zip(names, each, strict=True))


def metrics_for_outputs(metrics: Any, names: Sequence[str]) -> Any:
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


def _mean_of_counted(labels, logits, counted):
  counted = ops.cast(counted, "float32")
  losses = _of_classes(ops.relu(labels), logits) * counted
  return ops.reshape(ops.divide_no_nan(ops.sum(losses), ops.sum(counted)), (1,))


def _copied(metric: Any) -> Any:
  return metric.from_config(metric.get_config()) if isinstance(metric, keras.Metric) else metric
