"""Intervals of results, beside other implementations."""

import math

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as theirs

from bert.reports import intervals
from bert.tasks import metrics, shown
from tests.reports import made_up_runs


@pytest.mark.parametrize(("right", "count"), [(318, 408), (0, 7)])
def test_wilson_is_that_of_scipy(right, count):
  expected = stats.binomtest(right, count).proportion_ci(method="wilson")
  np.testing.assert_allclose(intervals.wilson(right / count, count), expected, atol=1e-6)


def classes(count: int, num_classes: int, seed: int = 0):
  rng = np.random.default_rng(seed)
  labels = [f"c{n}" for n in range(num_classes)]
  gold = rng.integers(0, num_classes, count)
  predicted = np.where(rng.random(count) < 0.7, gold, rng.integers(0, num_classes, count))
  answers = [{"probabilities": np.eye(num_classes)[each]} for each in predicted]
  items = [{"text_a": "a"}] * count
  expected = [labels[each] for each in gold]
  return made_up_runs.answered(shown.Classes(labels), items, expected, answers), gold, predicted


@pytest.mark.parametrize(("name", "num_classes"), [("matthews_corrcoef", 2), ("f1", 2), ("f1", 3)])
def test_scores_of_classes_have_the_percentiles_of_a_bootstrap(name, num_classes):
  examples, gold, predicted = classes(120, num_classes)
  score = lambda y, p: metrics.METRICS[name](y, p, None, num_classes)  # noqa: E731
  value = score(gold, predicted)
  found = intervals.interval(f"eval_{name}", value, examples, 120)
  rng = np.random.default_rng(12345)
  samples = rng.integers(0, 120, (1000, 120))[:300]
  values = [score(gold[each], predicted[each]) for each in samples]
  expected = np.quantile(values, [0.025, 0.975])
  np.testing.assert_allclose([found.low, found.high], expected, atol=0.02)
  assert found.low < value < found.high
  assert (found.num_examples, found.method) == (120, "bootstrap")


@pytest.mark.parametrize("name", ["pearson", "spearman"])
def test_correlations(name):
  rng = np.random.default_rng(1)
  gold = rng.normal(size=200).round(1)
  predicted = gold + rng.normal(size=200)
  answers = [{"score": each} for each in predicted]
  items = [{"text_a": "a"}] * 200
  examples = made_up_runs.answered(shown.Numbers("score"), items, list(map(str, gold)), answers)
  value = metrics.METRICS[name](gold, predicted, None, 1)
  found = intervals.interval(f"eval_{name}", value, examples, 200)
  z = math.atanh(value)  # Fisher's interval, of the normal distribution
  expected = [math.tanh(z + sign * 1.96 / math.sqrt(197)) for sign in (-1, 1)]
  np.testing.assert_allclose([found.low, found.high], expected, atol=0.04)


def test_entities_and_questions():
  entities = made_up_runs.of_entities()
  found = intervals.interval("eval_f1", 0.4, entities, 2)  # one of three, of two found
  assert found.low == pytest.approx(0)
  assert found.high == pytest.approx(0.4)
  questions = made_up_runs.of_questions()
  value = 100 * (1 + 0.5 + 1) / 3
  found = intervals.interval("f1", value, questions, 3)
  assert (found.low, found.high) == (pytest.approx(50), pytest.approx(100))
  assert intervals.interval("best_f1", value, questions, 3) == found


def test_what_is_not_computed_here_has_none():
  examples, gold, predicted = classes(50, 3)
  value = theirs.f1_score(gold, predicted, average="macro")
  assert intervals.interval("eval_f1", value, examples, 50)
  assert intervals.interval("eval_f1", value + 0.1, examples, 50) is None, "another number"
  assert intervals.interval("eval_f1", value, examples, 51) is None, "a sample"
  assert intervals.interval("eval_depth", value, examples, 50) is None
  assert intervals.interval("eval_f1", math.nan, examples, 50) is None
  assert intervals.interval("eval_f1", value, None, 50) is None
  assert intervals.interval("eval_pearson", 0.5, made_up_runs.of_values(), 4) is None
