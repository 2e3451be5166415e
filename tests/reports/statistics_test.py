"""The tables of a report."""

import math

import numpy as np
import pytest

from bert.reports import statistics
from bert.tasks import shown
from tests.reports import made_up_runs


def test_confusions_and_results_by_label():
  examples = made_up_runs.of_classes()
  assert statistics.confusion(examples) == (["no", "yes"], [[1, 0], [1, 2]])
  no, yes = statistics.by_label(examples)
  assert (no.name, no.size, no.right) == ("no", 1, 1.0)
  assert (yes.name, yes.size, yes.right) == ("yes", 3, pytest.approx(2 / 3))
  assert no.loss == pytest.approx(-np.log(0.75), rel=1e-6)


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


def test_the_most_wrong_come_first_and_typical_ones_are_in_the_middle():
  losses = [0.1, None, 2.0, 0.5, math.nan, 0.2]
  cases = [shown.Case([], None, "", loss=loss) for loss in losses]
  assert statistics.worst_first(cases) == [4, 2, 3, 5, 0, 1]
  assert statistics.typical(cases, 3) == [2, 3, 5]
  assert statistics.typical([shown.Case([], None, "")], 3) == []


def test_classes_and_types_with_few_examples_are_named():
  examples = made_up_runs.of_classes()
  examples.label_counts = {"no": 10, "yes": 9, "odd": 0}
  assert statistics.rare_classes(examples) == {"odd": 0, "yes": 9}
  assert statistics.rare_classes(made_up_runs.of_entities()) == {"LOC": 1, "PER": 2}
  entities = made_up_runs.of_entities()
  entities.total = 50
  assert statistics.rare_classes(entities) == {}, "of a sample it is not known"
  assert statistics.rare_classes(made_up_runs.of_numbers()) == {}


def test_labels_are_in_doubt_where_the_model_is_as_sure_as_usual_of_another():
  shares = [(0.1, 0.9), (0.2, 0.8), (0.7, 0.3), (0.1, 0.9), (0.4, 0.6)]
  answers = [{"probabilities": np.array(each)} for each in shares]
  expected = ["yes", "yes", "no", "no", "no"]
  items = [{"text_a": "a", "text_b": ""}] * 5
  examples = made_up_runs.answered(shown.Classes(["no", "yes"]), items, expected, answers)
  # Of "yes" it is 0.85 sure where that is right: the fourth is surer, the fifth is not.
  assert statistics.doubtful_labels(examples) == [3]
  assert statistics.doubtful_labels(made_up_runs.of_numbers()) == []
