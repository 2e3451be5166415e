"""Metrics against scikit-learn, scipy and numbers worked out by hand."""

import math
import warnings

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest

from bert.tasks import metrics
from bert.tasks.metrics import compute_metrics


@pytest.fixture(autouse=True)
def no_warning():
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    yield


# 2 true negatives, 1 false positive, 2 false negatives, 3 true positives.
LABELS = np.array([0, 0, 0, 1, 1, 1, 1, 1])
PREDICTIONS = np.array([0, 0, 1, 0, 0, 1, 1, 1])


def test_by_hand():
  names = ["accuracy", "precision", "recall", "f1", "f1_macro", "matthews_corrcoef"]
  found = compute_metrics(names, LABELS, PREDICTIONS, prefix="")
  assert found == pytest.approx(
    {
      "accuracy": 5 / 8,
      "precision": 3 / 4,
      "recall": 3 / 5,
      "f1": 2 / 3,
      "f1_macro": (2 / 3 + 4 / 7) / 2,
      "matthews_corrcoef": (3 * 2 - 1 * 2) / math.sqrt(4 * 5 * 3 * 4),
    }
  )
  assert metrics.confusion_matrix(LABELS, PREDICTIONS, 2).tolist() == [[2, 1], [2, 3]]


def test_regression_by_hand():
  found = compute_metrics(
    ["pearson", "spearman", "mse"],
    [[1.0], [2.0], [3.0], [4.0]],
    [[1.0], [3.0], [2.0], [6.0]],
    problem_type="regression",
  )
  # Deviations (-3, -1, 1, 3)/2 and (-2, 0, -1, 3): 7 / sqrt(5 * 14). Ranks 1, 3, 2, 4: 1 - 6*2/60.
  assert found == pytest.approx(
    {"eval_pearson": 7 / math.sqrt(70), "eval_spearman": 0.8, "eval_mse": 6 / 4}
  )


def test_multi_label_by_hand():
  labels = [[1, 0, 1], [0, 1, 0], [0, 0, 0]]
  probabilities = [[0.9, 0.6, 0.2], [0.1, 0.5, 0.4], [0.0, 0.1, 0.2]]
  names = ["accuracy", "f1_micro", "f1", "hamming_loss", "precision_micro", "recall_macro"]
  found = compute_metrics(names, labels, probabilities, problem_type="multi_label", prefix="")
  # Class 0: right. Class 1: one found, one too many. Class 2: one missed.
  assert found == pytest.approx(
    {
      "accuracy": 2 / 3,
      "f1_micro": 2 * 2 / (2 * 2 + 1 + 1),
      "f1": (1 + 2 / 3 + 0) / 3,
      "hamming_loss": 2 / 9,
      "precision_micro": 2 / 3,
      "recall_macro": (1 + 1 + 0) / 3,
    }
  )


@hypothesis.settings(deadline=None)  # machines may be slow
@hypothesis.given(
  hnp.arrays(np.float64, 5, elements=st.floats(allow_nan=False, allow_infinity=False)),
  hnp.arrays(np.float64, 5, elements=st.floats(allow_nan=False, allow_infinity=False)),
)
@hypothesis.example(np.array([1e300, -1e300, 1.7e308, 0, 1]), np.array([1, 2, 3, 4, 5.0]))
@hypothesis.example(np.array([1e9, 1e9 + 1e-6, 1e9, 1e9, 1e9]), np.array([1, 2, 3, 4, 5.0]))
@hypothesis.example(np.array([5e-324, 0, 0, 0, 0]), np.array([1, 2, 3, 4, 5.0]))
def test_correlations_of_any_numbers_are_numbers(labels, predictions):
  for score in (metrics.pearson, metrics.spearman):
    assert -1.0 <= score(labels, predictions) <= 1.0


@pytest.mark.parametrize("name", ["matthews_corrcoef", "pearson", "spearman"])
@pytest.mark.parametrize("stuck", ["labels", "predictions"])
def test_stuck_on_one_value_scores_zero_and_says_so(name, stuck, monkeypatch):
  notes = []
  monkeypatch.setattr(metrics.logging, "info", lambda text, *args: notes.append(text % args))
  varied, constant = np.array([0, 1, 1, 0]), np.array([1, 1, 1, 1])
  sides = (constant, varied) if stuck == "labels" else (varied, constant)
  assert getattr(metrics, name)(*sides) == 0.0
  assert notes == [f"{name} is undefined and set to 0: all {stuck} are 1."]


def test_no_positive_predicted_scores_zero():
  labels, predictions = np.array([0, 1, 1]), np.array([0, 0, 0])
  assert compute_metrics(["precision", "recall", "f1"], labels, predictions) == {
    "eval_precision": 0.0,
    "eval_recall": 0.0,
    "eval_f1": 0.0,
  }


def test_auc():
  probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.65, 0.35], [0.2, 0.8]])
  labels = np.array([0, 0, 1, 1])
  # Of the four pairs of a negative and a positive, three are in order.
  assert compute_metrics(["auc"], labels, probabilities) == {"eval_auc": 0.75}
  assert compute_metrics(["auc"], labels, np.log(probabilities)) == {"eval_auc": 0.75}
  assert compute_metrics(["auc"], np.ones(4, int), probabilities) == {"eval_auc": 0.5}
  for outputs in (labels, np.ones([4, 3])):
    with pytest.raises(ValueError, match="auc needs"):
      compute_metrics(["auc"], labels, outputs)


def test_two_outputs_score_class_1_even_where_it_never_occurs():
  probabilities = np.array([[0.9, 0.1], [0.8, 0.2]])
  assert compute_metrics(["f1"], [0, 0], probabilities) == {"eval_f1": 0.0}
  # Three outputs: the mean over the classes that occur, here class 0 alone.
  probabilities = np.array([[0.9, 0.1, 0.0], [0.8, 0.2, 0.0]])
  assert compute_metrics(["f1"], [0, 0], probabilities) == {"eval_f1": 1.0}


@pytest.mark.parametrize("mask_type", [bool, np.int32, np.float32])
def test_padding_has_no_weight(mask_type):
  mask = np.array([1, 1, 0, 1, 0]).astype(mask_type)
  labels = np.array([0, 1, 0, 1, 0])
  outputs = np.array([[0.9, 0.1], [0.2, 0.8], [np.nan, 1.0], [0.7, 0.3], [0.0, 1.0]])
  losses = np.array([1.0, 2.0, np.nan, 6.0, 100.0])
  assert compute_metrics(["accuracy"], labels, outputs, mask, losses=losses) == {
    "eval_accuracy": 2 / 3,
    "eval_loss": 3.0,
  }


def test_keep_real():
  kept = metrics.keep_real([1.0, 0.0, 1.0], [1, 2, 3], [[1, 2], [3, 4], [5, 6]])
  assert [array.tolist() for array in kept] == [[1, 3], [[1, 2], [5, 6]]]
  assert metrics.keep_real(None, [1, 2])[0].tolist() == [1, 2]
  for mask in (None, [1, 1]):
    with pytest.raises(ValueError, match="differ in length"):
      metrics.keep_real(mask, [1, 2, 3], [1, 2])


def test_results_are_plain_floats_in_the_order_asked_for():
  found = compute_metrics(["f1", "accuracy"], LABELS, PREDICTIONS, losses=np.ones(8, np.float32))
  assert list(found) == ["eval_f1", "eval_accuracy", "eval_loss"]
  assert {type(value) for value in found.values()} == {float}


def test_a_diverged_loss_stays_visible():
  assert math.isnan(metrics.mean_loss([1.0, np.nan]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_no_score(bad):
  with pytest.raises(ValueError, match=r"predictions .* row 1"):
    compute_metrics(["mse"], [1.0, 2.0], [1.0, bad], problem_type="regression")
  with pytest.raises(ValueError, match=r"predictions .* row 0"):
    compute_metrics(["accuracy"], [1, 0], [[0.5, bad], [0.5, 0.5]])
  with pytest.raises(ValueError, match=r"labels .* row 1"):
    compute_metrics(["mse"], [1.0, bad], [1.0, 1.0], problem_type="regression")


def test_misuse_is_named():
  with pytest.raises(
    ValueError, match=r"No metric 'pearson' for classification\. Possible metrics: acc"
  ):
    compute_metrics(["pearson"], [1], [1])
  with pytest.raises(ValueError, match="problem_type is 'ranking'"):
    compute_metrics([], [1], [1], problem_type="ranking")
  with pytest.raises(ValueError, match="No example"):
    compute_metrics(["accuracy"], [1, 0], [1, 0], is_real_example=[0, 0])
  with pytest.raises(ValueError, match=r"Labels are \(2, 3\), but predictions \(2,\)"):
    compute_metrics(["accuracy"], np.ones([2, 3]), np.ones([2, 3]))


def test_confusion_matrix_as_text():
  text = metrics.format_confusion_matrix(np.array([[1, 20000], [3, 4]]), ["a", "a long name"])
  lines = text.split("\n")
  assert len(lines) == 3
  assert len({len(line) for line in lines}) == 1
  assert lines[1].split() == ["a", "1", "20000"]
  assert lines[2].split() == ["a", "long", "name", "3", "4"]
  with pytest.raises(ValueError, match=r"shape \(2, 2\), but there are 3 labels"):
    metrics.format_confusion_matrix(np.ones([2, 2]), ["a", "b", "c"])
  assert "7" in metrics.format_confusion_matrix([[7]], ["only"])
