"""What two runs say of the same examples.

Alone: python -m pytest tests/reports/paired_test.py (a second)
"""

import dataclasses
import math

import pytest

from bert.reports import paired
from bert.reports.paired import Counts
from bert.tasks.shown import Case
from tests.reports import made_up_runs


def pairs_of(rights, losses=None):
  cases = [[Case((), "a", "b", is_right=right) for right in pair] for pair in rights]
  for pair, values in zip(cases, losses or (), strict=bool(losses)):
    for case, loss in zip(pair, values, strict=True):
      case.loss = loss
  return [tuple(pair) for pair in cases]


@pytest.mark.parametrize(("first", "second"), [(1, 9), (0, 5), (7, 7), (12, 17)])
def test_mcnemar_sums_the_tails_of_coins(first, second):
  n, less = first + second, min(first, second)
  tail = sum(math.comb(n, k) for k in range(less + 1)) / 2**n
  assert paired.mcnemar(Counts(50, first, second, 3)) == pytest.approx(min(1.0, 2 * tail))


def test_differences():
  rights = [(True, False), (False, True), (False, True), (True, True)]
  share, loss = paired.differences(pairs_of(rights, [(1, 2), (3, 1), (0, 0), (0, 1)]), "loss")
  assert share[:4] == ("right answers", 0.5, 0.75, 0.25)
  assert share.interval[0] < 0.25 < share.interval[1]
  assert loss[:4] == ("mean loss", 1.0, 1.0, 0.0)
  [only] = paired.differences(pairs_of([(True, False)], [(1, math.nan)]), "loss")
  assert only == ("right answers", 1.0, 0.0, -1.0, None, True)


def test_the_same_set_has_equal_places_texts_and_right_answers():
  first, other = made_up_runs.of_classes(), made_up_runs.of_classes()
  assert paired.is_same_set(first, other)
  for changed in ({"numbers": [1, 2, 3, 5]}, {"cases": first.cases[:3], "numbers": [1, 2, 3]}):
    assert not paired.is_same_set(first, dataclasses.replace(other, **changed))
  other.cases[0].gold = "no"
  assert not paired.is_same_set(first, other)


def test_changed_examples_come_by_the_change_of_their_loss():
  rights = [(True, False), (True, False), (False, True), (True, True)]
  pairs = pairs_of(rights, [(0, 1), (0, 3), (2, 0), (0, 9)])
  assert paired.changed(pairs, from_right=True) == [1, 0]
  assert paired.changed(pairs, from_right=False) == [2]
  by_degrees = pairs_of([(None, None)] * 3, [(0, 1), (2, 0), (1, 1)])
  assert paired.changed(by_degrees, from_right=True) == [0]
  assert paired.changed(by_degrees, from_right=False) == [1]
