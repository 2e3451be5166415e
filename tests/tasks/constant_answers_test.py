"""Tests of the rule that says whether a model has failed."""

import numpy as np
import pytest

from bert.tasks.constant_answers import (
  FAILURE,
  failure_of_answers,
  failure_of_classes,
  failure_of_tags,
  warn_of,
  with_failure,
)


def one_hot(classes, count=2):
  return np.eye(count)[classes]


def test_classes_need_more_than_the_share_of_the_most_frequent():
  labels = [1, 1, 1, 0]
  names = ["no", "yes"]
  assert "0.7500, the share of the most frequent label (yes)" in failure_of_classes(
    labels, one_hot([1, 1, 1, 1]), names
  )
  # Another answer with the same accuracy is no better either.
  assert failure_of_classes(labels, one_hot([1, 1, 0, 0]), names)
  assert failure_of_classes(labels, one_hot([1, 1, 1, 0]), names) is None


def test_a_dev_set_of_one_label_says_nothing():
  assert failure_of_classes([1, 1], one_hot([0, 0]), ["no", "yes"]) is None


def test_regression_needs_an_error_below_the_variance():
  labels = [0.0, 1.0, 2.0, 5.0]
  constant = np.full([4, 1], np.mean(labels), np.float32)
  assert "not below 3.5" in failure_of_classes(labels, constant, ["score"], "regression")
  good = np.array([[0.5], [1.0], [2.0], [4.0]])
  assert failure_of_classes(labels, good, ["score"], "regression") is None


def test_several_labels_need_more_right_decisions_than_constant_ones():
  labels = [[1, 0], [1, 0], [1, 1], [0, 1]]
  constant = np.array([[0.9, 0.1]] * 4)
  names = ["a", "b"]
  assert "0.6250" in failure_of_classes(labels, constant, names, "multi_label")
  assert failure_of_classes(labels, np.array(labels) * 0.9, names, "multi_label") is None


@pytest.mark.parametrize(("f1", "failed"), [(0.0, True), (0.01, False)])
def test_tags_need_an_entity(f1, failed):
  assert bool(failure_of_tags({"eval_f1": f1})) == failed


def test_answers_need_more_than_none():
  never = {"exact": 50.0, "f1": 50.0, "total": 4, "NoAns_total": 2, "HasAns_total": 2}
  assert "50.00" in failure_of_answers(never)
  assert failure_of_answers({**never, "f1": 51.0}) is None
  assert failure_of_answers({"exact_match": 0.0, "f1": 8.0, "total": 4})
  assert failure_of_answers({"exact_match": 25.0, "f1": 30.0, "total": 4}) is None


def test_results_say_why_a_model_failed(caplog):
  results = with_failure({"eval_f1": 0.0}, [0, 1, 1], one_hot([1, 1, 1]), "ab")
  warn_of(results[FAILURE])
  assert "no better than one answer to everything: accuracy 0.6667 is not above" in caplog.text
  good = with_failure({"eval_f1": 1.0}, [0, 1], one_hot([0, 1]), "ab")
  assert good == {"eval_f1": 1.0}
  caplog.clear()
  warn_of(None)
  assert not caplog.messages
