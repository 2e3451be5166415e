"""Weights of tokens: python -m pytest tf1/tests/token_weights_test.py"""

import numpy as np
import pytest
from tensorflow.python.ops import metrics_impl

import bert_tf1.token_weights  # noqa: F401  (what is tested)
from bert_tf1.real import tf

LABELS = [[1, 2, 0], [2, 2, 1]]
PREDICTIONS = [[1, 1, 0], [2, 0, 1]]


def matrix(*arguments):
  """The confusion matrix as scripts compute it."""
  return total(metrics_impl._streaming_confusion_matrix(*arguments))


def total(metric):
  """Runs one batch; returns the metric."""
  value, update = metric
  with tf.Session() as session:
    session.run(tf.local_variables_initializer())
    session.run(update)
    return session.run(value)


@pytest.mark.parametrize("shape", [[2, 3], [None, 3], [None, None]])
def test_weights_of_one_example_are_those_of_each(graph, monkeypatch, shape):
  said = []
  monkeypatch.setattr(tf.logging, "warning", lambda text, *values: said.append(text % values))
  labels = tf.placeholder_with_default(tf.constant(LABELS), shape)
  arguments = (labels, tf.constant(PREDICTIONS), 3)
  mask = tf.sequence_mask(2, 3)
  each = tf.tile(mask[tf.newaxis], [2, 1])
  assert matrix(*arguments, each).sum() == 4
  assert said == []
  expected = [[0, 0, 0], [0, 1, 0], [1, 1, 1]]
  np.testing.assert_array_equal(matrix(*arguments, mask), expected)
  mean_iou = tf.metrics.mean_iou(*arguments, weights=mask)
  assert total(mean_iou) == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)
  assert len(said) == 2
  assert "Weights (3,) of a metric beside labels" in said[0]
  assert "1.15 read past" in said[0]


def test_weights_of_examples_are_not_taken_for_those_of_tokens(graph):
  weights = tf.placeholder_with_default([1.0, 0.0], [None])
  with pytest.raises(tf.errors.InvalidArgumentError):
    matrix(tf.constant(LABELS), tf.constant(PREDICTIONS), 3, weights)
