"""The tables of a report."""

import numpy as np
import pytest

from bert.reports import statistics
from tests.reports import made_up_runs


def test_confusions_and_results_by_label():
  examples = made_up_runs.of_classes()
  assert statistics.confusion(examples) == (["no", "yes"], [[1, 0], [1, 2]])
  no, yes = statistics.by_label(examples)
  assert (no.name, no.size, no.right) == ("no", 1, 1.0)
  assert (yes.name, yes.size, yes.right) == ("yes", 3, pytest.approx(2 / 3))
  assert no.loss == pytest.approx(-np.log(0.75), rel=1e-6)


def test_groups_of_lengths_hold_each_example_once():
  examples = made_up_runs.of_classes()
  for lengths in ([3, 3, 3, 3], [1, 2, 3, 4], [5, 1, 1, 900]):
    examples.lengths = lengths
    groups = statistics.by_length(examples)
    assert sum(each.size for each in groups) == 4, lengths


def test_unknown_words():
  examples = made_up_runs.of_classes()
  assert [each.size for each in statistics.by_unknown_words(examples)] == [2, 2]
  examples.unknown = [0.0] * 4
  assert statistics.by_unknown_words(examples) == []


def test_entities_by_type():
  found = {each.name: each for each in statistics.scores_by_type(made_up_runs.of_entities().cases)}
  assert found["PER"][1:] == (1.0, 0.5, pytest.approx(2 / 3), 2)
  assert found["LOC"][1:] == (0.0, 0.0, 0.0, 1)
  assert found["all"].support == 3
  matrix = statistics.confusion(made_up_runs.of_entities())
  assert matrix.labels == ["LOC", "PER", "no entity"]
  assert matrix.counts == [[0, 0, 1], [1, 1, 0], [0, 0, 0]]


def test_calibration():
  bins = statistics.calibration(made_up_runs.of_classes().cases)
  assert [(each.low, each.size, each.right) for each in bins] == [
    (0.7, 1, 1.0),
    (0.8, 1, 1.0),
    (0.9, 2, 0.5),
  ]
  error = statistics.calibration_error(bins)
  mean = (0.95 + 0.999) / 2
  assert error == pytest.approx((0.25 + 0.15 + 2 * (mean - 0.5)) / 4, rel=1e-5)


def test_scores_are_not_calibrated():
  assert statistics.calibration(made_up_runs.of_numbers().cases) == []
  assert statistics.confusion(made_up_runs.of_numbers()) is None
