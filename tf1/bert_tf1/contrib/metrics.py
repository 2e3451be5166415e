"""`tf.contrib.metrics`: streaming metrics with the predictions first, and those `tf.metrics` lacks.

A metric is a pair of a value and an update op, as in `tf.metrics`; `metrics_collections` and
`updates_collections` name the collections that the two are added to. Shapes: `B` a batch.
"""

from collections.abc import Callable

import numpy as np
from tensorflow.python.ops import metrics_impl, weights_broadcast_ops

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

confusion_matrix = tf.confusion_matrix
set_difference = tf.sets.difference
set_intersection = tf.sets.intersection
set_size = tf.sets.size
set_union = tf.sets.union

_SMALL = 1e-7


def _predictions_first(metric: Callable) -> Callable:
  """Returns the metric of `tf.metrics` with the arguments in the order of `tf.contrib.metrics`."""

  def streaming(
    predictions, labels, weights=None, metrics_collections=None, updates_collections=None, name=None
  ):
    return metric(labels, predictions, weights, metrics_collections, updates_collections, name)

  streaming.__doc__ = f"`tf.metrics.{metric.__name__}` with the predictions before the labels."
  streaming.__name__ = streaming.__qualname__ = f"streaming_{metric.__name__}"
  return streaming


streaming_accuracy = _predictions_first(tf.metrics.accuracy)
streaming_precision = _predictions_first(tf.metrics.precision)
streaming_recall = _predictions_first(tf.metrics.recall)
streaming_true_positives = _predictions_first(tf.metrics.true_positives)
streaming_true_negatives = _predictions_first(tf.metrics.true_negatives)
streaming_false_positives = _predictions_first(tf.metrics.false_positives)
streaming_false_negatives = _predictions_first(tf.metrics.false_negatives)
streaming_mean_absolute_error = _predictions_first(tf.metrics.mean_absolute_error)
streaming_mean_squared_error = _predictions_first(tf.metrics.mean_squared_error)
streaming_root_mean_squared_error = _predictions_first(tf.metrics.root_mean_squared_error)
streaming_mean = tf.metrics.mean
streaming_mean_tensor = tf.metrics.mean_tensor
streaming_percentage_less = tf.metrics.percentage_below


def streaming_auc(
  predictions,
  labels,
  weights=None,
  num_thresholds=200,
  metrics_collections=None,
  updates_collections=None,
  curve="ROC",
  name=None,
):
  """`tf.metrics.auc` with the predictions before the labels."""
  collections = (metrics_collections, updates_collections)
  return tf.metrics.auc(labels, predictions, weights, num_thresholds, *collections, curve, name)


def streaming_mean_iou(
  predictions,
  labels,
  num_classes,
  weights=None,
  metrics_collections=None,
  updates_collections=None,
  name=None,
):
  """`tf.metrics.mean_iou` with the predictions before the labels."""
  collections = (metrics_collections, updates_collections)
  return tf.metrics.mean_iou(labels, predictions, num_classes, weights, *collections, name)


def streaming_precision_at_thresholds(
  predictions,
  labels,
  thresholds,
  weights=None,
  metrics_collections=None,
  updates_collections=None,
  name=None,
):
  """`tf.metrics.precision_at_thresholds` with the predictions before the labels."""
  arguments = (labels, predictions, thresholds, weights, metrics_collections, updates_collections)
  return tf.metrics.precision_at_thresholds(*arguments, name)


def streaming_recall_at_thresholds(
  predictions,
  labels,
  thresholds,
  weights=None,
  metrics_collections=None,
  updates_collections=None,
  name=None,
):
  """`tf.metrics.recall_at_thresholds` with the predictions before the labels."""
  arguments = (labels, predictions, thresholds, weights, metrics_collections, updates_collections)
  return tf.metrics.recall_at_thresholds(*arguments, name)


def accuracy(predictions, labels, weights=None, name=None):
  """Returns one batch's share of equal predictions and labels, float32: no metric that streams.

  Raises:
    ValueError: a dtype that is not integer, bool or string, or two dtypes.
  """
  if not (predictions.dtype.is_integer or predictions.dtype in (tf.bool, tf.string)):
    raise ValueError(
      f"Labels should have bool, string, or integer, not {predictions.dtype.name}."
      if predictions.dtype == labels.dtype
      else _dtypes_differ(predictions, labels)
    )
  if predictions.dtype != labels.dtype:
    raise ValueError(_dtypes_differ(predictions, labels))
  with tf.name_scope(name, "accuracy", [predictions, labels]):
    predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    correct = tf.cast(tf.equal(predictions, labels), tf.float32)
    if weights is None:
      return tf.reduce_mean(correct)
    correct *= weights
    counted = tf.ones_like(correct) * weights
    return tf.div(tf.reduce_sum(correct), tf.reduce_sum(counted))  # NaN of no weight.


def _dtypes_differ(predictions, labels) -> str:
  return (
    "Dtypes of predictions and labels should match. "
    f"Given: predictions ({predictions.dtype!r}) and labels ({labels.dtype!r})"
  )


def count(values, weights=None, metrics_collections=None, updates_collections=None, name=None):
  """Counts the examples, or sums their `weights`."""
  with tf.variable_scope(name, "count", (values, weights)):
    total = _local("count", [], tf.float32)
    if weights is None:
      number = tf.cast(tf.size(values), tf.float32)
    else:
      weights = tf.cast(weights, tf.float32)
      values = tf.cast(values, tf.float32)
      number = tf.reduce_sum(weights_broadcast_ops.broadcast_weights(weights, values))
    with tf.control_dependencies([tf.convert_to_tensor(values)]):
      update = tf.assign_add(total, number)
    return _collected(tf.identity(total), update, metrics_collections, updates_collections)


def cohen_kappa(
  labels,
  predictions_idx,
  num_classes,
  weights=None,
  metrics_collections=None,
  updates_collections=None,
  name=None,
):
  """Cohen's kappa, the agreement of classes beyond what chance would give, float64.

  Args:
    labels: the true class of each example, int [B].
    predictions_idx: the predicted class of each example, int [B].
    num_classes: how many classes there are.
    weights: of each example.
    metrics_collections: see the module.
    updates_collections: see the module.
    name: the variable scope, by default `cohen_kappa`.
  """
  with tf.variable_scope(name, "cohen_kappa", (labels, predictions_idx, weights)):
    table = tf.confusion_matrix(
      tf.squeeze(labels), tf.squeeze(predictions_idx), num_classes, tf.float32, weights=weights
    )
    counts = {"po": tf.diag_part(table), "pe_row": tf.reduce_sum(table, 0)}
    counts["pe_col"] = tf.reduce_sum(table, 1)
    totals = {name: _local(name, [num_classes], tf.float32) for name in counts}
    updates = {name: tf.assign_add(totals[name], counts[name]) for name in counts}
    return _collected(
      _kappa(**totals, name="value"),
      _kappa(**updates, name="update_op"),
      metrics_collections,
      updates_collections,
    )


def _kappa(po, pe_row, pe_col, name):
  """Returns the kappa of the counts of each class: agreed, predicted and true."""
  agreed, predicted, true = (tf.cast(counts, tf.float64) for counts in (po, pe_row, pe_col))
  total = tf.reduce_sum(predicted)
  by_chance = tf.reduce_sum(tf.div_no_nan(predicted * true, total))
  return tf.div_no_nan(tf.reduce_sum(agreed) - by_chance, total - by_chance, name=name)


def f1_score(
  labels,
  predictions,
  weights=None,
  num_thresholds=200,
  metrics_collections=None,
  updates_collections=None,
  name=None,
):
  """Returns the best F1 score over thresholds of the predictions.

  Args:
    labels: bool, or castable to it, [B].
    predictions: float [B], in 0 to 1.
    weights: broadcastable to `labels`.
    num_thresholds: thresholds in equal steps from just below 0 to just above 1.
    metrics_collections: see the module.
    updates_collections: see the module.
    name: the variable scope, by default `f1`.
  """
  with tf.variable_scope(name, "f1", (labels, predictions, weights)):
    steps = num_thresholds - 1
    thresholds = [-_SMALL, *(step / steps for step in range(1, steps)), 1.0 + _SMALL]
    values, updates = metrics_impl._confusion_matrix_at_thresholds(
      labels, predictions, thresholds, weights, includes=("tp", "fp", "fn")
    )
    return _collected(
      _best_f1(**values), _best_f1(**updates), metrics_collections, updates_collections
    )


def _best_f1(tp, fp, fn):
  precision = tp / (_SMALL + tp + fp)
  recall = tp / (_SMALL + tp + fn)
  return tf.reduce_max(2 * precision * recall / (precision + recall + _SMALL))


def streaming_covariance(
  predictions, labels, weights=None, metrics_collections=None, updates_collections=None, name=None
):
  """Returns the unbiased covariance of predictions and labels of one shape; NaN of no example.

  Batches are joined by the update of Chan et al., which keeps its precision where sums of squares
  would not: https://en.wikipedia.org/wiki/Algorithms_for_calculating_variance#Covariance.
  """
  with tf.variable_scope(name, "covariance", (predictions, labels, weights)):
    predictions, labels, weights = metrics_impl._remove_squeezable_dimensions(
      predictions=predictions, labels=labels, weights=weights
    )
    predictions.get_shape().assert_is_compatible_with(labels.get_shape())
    seen = _local("count", [], labels.dtype)
    mean_prediction = _local("mean_prediction", [], predictions.dtype)
    mean_label = _local("mean_label", [], labels.dtype)
    comoment = _local("comoment", [], predictions.dtype)

    if weights is None:
      weighted, batch = tf.identity, tf.cast(tf.size(labels), labels.dtype)
    else:
      weights = weights_broadcast_ops.broadcast_weights(tf.cast(weights, labels.dtype), labels)
      weighted, batch = lambda values: values * weights, tf.reduce_sum(weights)
    now = tf.assign_add(seen, batch)
    before = now - batch

    def moved(mean, values):
      """Returns a batch's mean, and the mean over all batches before this one."""
      of_batch = tf.div_no_nan(tf.reduce_sum(weighted(values)), batch)
      step = tf.div_no_nan((of_batch - mean) * batch, now)
      return of_batch, tf.assign_add(mean, step) - step

    batch_prediction, old_prediction = moved(mean_prediction, predictions)
    batch_label, old_label = moved(mean_label, labels)
    within = tf.reduce_sum(weighted((predictions - batch_prediction) * (labels - batch_label)))
    between = (old_prediction - batch_prediction) * (old_label - batch_label)
    update = tf.assign_add(comoment, within + between * tf.div_no_nan(before * batch, now))

    def unbiased(comoment, number, name):
      nothing = tf.less_equal(number, 1)
      return tf.where(nothing, float("nan"), tf.truediv(comoment, number - 1), name=name)

    return _collected(
      unbiased(comoment, seen, "covariance"),
      unbiased(update, now, "update_op"),
      metrics_collections,
      updates_collections,
    )


def streaming_pearson_correlation(
  predictions, labels, weights=None, metrics_collections=None, updates_collections=None, name=None
):
  """Pearson's correlation of predictions and labels of one shape; NaN where one does not vary."""
  with tf.variable_scope(name, "pearson_r", (predictions, labels, weights)):
    predictions, labels, weights = metrics_impl._remove_squeezable_dimensions(
      predictions=predictions, labels=labels, weights=weights
    )
    if weights is not None:
      weights = weights_broadcast_ops.broadcast_weights(weights, labels)
    both = streaming_covariance(predictions, labels, weights, name="covariance")
    first = streaming_covariance(predictions, predictions, weights, name="variance_predictions")
    second = streaming_covariance(labels, labels, weights, name="variance_labels")
    value, update = (
      tf.truediv(covariance, tf.sqrt(one) * tf.sqrt(other), name=operation)
      for covariance, one, other, operation in zip(
        both, first, second, ("pearson_r", "update_op"), strict=True
      )
    )
    return _collected(value, update, metrics_collections, updates_collections)


def streaming_concat(
  values, axis=0, max_size=None, metrics_collections=None, updates_collections=None, name=None
):
  """Returns all values of all batches, one after another along `axis`; the update op counts them.

  Args:
    values: a tensor whose dimensions but `axis` are known.
    axis: where the batches are joined.
    max_size: keep that many along `axis` at most: the first.
    metrics_collections: see the module.
    updates_collections: see the module.
    name: the variable scope, by default `streaming_concat`.

  Raises:
    ValueError: an unknown dimension, or an axis that is not there.
  """
  with tf.variable_scope(name, "streaming_concat", (values,)):
    values = tf.convert_to_tensor(values)
    shape = values.get_shape().as_list()
    if not 0 <= (axis + len(shape) if axis < 0 else axis) < len(shape):
      raise ValueError(f"axis = {axis} not in [0, {len(shape)})")
    axis %= len(shape)
    order = [axis, *(other for other in range(len(shape)) if other != axis)]
    rows = tf.transpose(values, order)  # The joined dimension first: [N, ...].
    if None in rows.get_shape().as_list()[1:]:
      raise ValueError(
        "all dimensions of `values` other than the dimension to concatenate along must have "
        "statically known size"
      )
    array = _local("array", [0, *rows.get_shape().as_list()[1:]], values.dtype, grows=True)
    size = _local("size", [], tf.int32)
    value = tf.transpose(array[:size], np.argsort(order))
    shape[axis] = None
    value.set_shape(shape)
    update = _append(array, size, rows if max_size is None else rows[: max_size - size])
    return _collected(value, update, metrics_collections, updates_collections)


def _append(array, size, rows):
  """Returns the op that writes `rows` behind the first `size` of the array and counts them.

  The array doubles when it is full, so that all batches together cost what they hold, twice.
  """
  now = size + tf.shape(rows)[0]

  def double():
    room = tf.maximum(now, 2 * size) - size
    empty = tf.zeros(tf.concat([[room], tf.shape(rows)[1:]], 0), rows.dtype)
    return tf.group(tf.assign(array, tf.concat([array[:size], empty], 0), validate_shape=False))

  with tf.control_dependencies([tf.cond(now > tf.shape(array)[0], double, tf.no_op)]):
    written = array[size:now].assign(rows)
  with tf.control_dependencies([written]):
    return tf.assign(size, now)


def aggregate_metrics(*value_update_tuples):
  """Returns the list of values and the list of update ops of some metrics."""
  if not value_update_tuples:
    raise ValueError("Expected at least one value_tensor/update_op pair")
  values, updates = zip(*value_update_tuples, strict=True)
  return list(values), list(updates)


def aggregate_metric_map(names_to_tuples):
  """Returns the values and the update ops of metrics, each by the metric's name."""
  values = {name: pair[0] for name, pair in names_to_tuples.items()}
  return values, {name: pair[1] for name, pair in names_to_tuples.items()}


def _local(name: str, shape: list, dtype, grows=False):
  """Returns a metric's local variable of zeros."""
  return tf.Variable(
    tf.zeros(shape, dtype),
    name=name,
    trainable=False,
    collections=[tf.GraphKeys.LOCAL_VARIABLES, tf.GraphKeys.METRIC_VARIABLES],
    validate_shape=not grows,
  )


def _collected(value, update, metrics_collections, updates_collections):
  """Returns the metric, added to the collections."""
  tf.add_to_collections(metrics_collections or [], value)
  tf.add_to_collections(updates_collections or [], update)
  return value, update


_SAME = "use tf.metrics.{} with the labels before the predictions."
__getattr__ = unknown_name(
  __name__,
  {
    "streaming_mean_cosine_distance": _SAME.format("mean_cosine_distance"),
    "streaming_mean_relative_error": _SAME.format("mean_relative_error"),
    "streaming_recall_at_k": _SAME.format("recall_at_k"),
    "streaming_sparse_recall_at_k": _SAME.format("recall_at_k"),
    "streaming_sparse_precision_at_k": _SAME.format("precision_at_k"),
    "streaming_sparse_average_precision_at_k": _SAME.format("average_precision_at_k"),
    "streaming_sensitivity_at_specificity": _SAME.format("sensitivity_at_specificity"),
    "streaming_specificity_at_sensitivity": _SAME.format("specificity_at_sensitivity"),
  },
)
