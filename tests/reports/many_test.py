"""The page of runs that differ in their seed, from made-up ones.

Alone: python -m pytest tests/reports/many_test.py (seconds; imports no TensorFlow)
"""

import copy
import re

import numpy as np
import pytest

from bert.reports import many
from bert.tasks import shown
from tests.reports import made_up_runs, pages
from tests.reports.made_up_runs import NASTY


@pytest.fixture(scope="module")
def page():
  return many.render(made_up_runs.many())


def test_two_pages_are_equal_and_need_nothing_else(page):
  assert many.render(made_up_runs.many()) == page
  assert pages.check_alone(page).links == ["seed_1/report.html"]


def test_the_verdict_and_the_table(page):
  text = " ".join(" ".join(pages.Elements(page).texts).split())
  assert "3 runs that differ in their seed have finished: from 0.6838 to 0.8000" in text
  assert "Always “yes”, the most frequent label, would be right for 75.0" in text
  for row in (
    "seed 2 0.8000 0.8500 1.5 best",
    "seed 3 0.6838 0.7338 1.5 failed",
    "seed 4 – – – did not finish",
    "mean 0.7546 0.8046",
    "lowest 0.6838 0.7338",
    "without failed runs mean 0.7900",
    "ensemble 0.8100 0.8600",
  ):
    assert row in text
  assert "Seed 3 is no better than one answer to everything: accuracy 0.6838" in text
  assert "seed 4 did not finish: exit code 1: no space" in text
  assert "python report.py /tmp/mrpc/seed_2" in text
  assert "seed_2" in page[page.index("curve0-") :]


def test_the_numbers_are_those_of_the_sweep(page):
  data = pages.data_of(page)
  results = made_up_runs.many_results()
  assert {name: data[name] for name in results} == results


def test_what_most_runs_get_wrong(page):
  found = pages.data_of(page)["examples"]
  # Two runs are wrong about the fourth example, one about each of the other three.
  assert found["counts"] == [[0, 0], [1, 3], [2, 1], [3, 0]]
  assert found["num_wrong"] == 1
  [example] = found["most_wrong"]
  assert example["number"] == 4
  of_two, of_one = example["answers"]
  assert (of_two["runs"], of_two["predicted"], of_two["is_right"]) == ("seeds 1, 2", "no", False)
  assert (of_one["runs"], of_one["is_right"]) == ("seed 3", True)
  assert of_two["loss"] == pytest.approx(-np.log(0.001), rel=1e-5)


@pytest.mark.parametrize("kind", made_up_runs.KINDS)
def test_each_kind_has_a_page(kind):
  page = many.render(made_up_runs.many(kind, curves=()))
  pages.check_alone(page)
  assert ("examples" in pages.data_of(page)) == (kind != "values")
  assert ("Most wrong examples" in page) == (kind == "numbers")


def test_degrees_are_ordered_by_their_mean_loss():
  found = many.of_answers(made_up_runs.many("numbers").answers, 9)
  losses = [np.mean([2 * a.loss, b.loss]) for a, b in (each["answers"] for each in found["cases"])]
  assert losses == sorted(losses, reverse=True)
  assert found["counts"] == []


def test_what_users_wrote_is_text():
  runs = made_up_runs.many(folder=NASTY, task=NASTY, missing=[NASTY], command=NASTY, curves=())
  runs.best_folder, runs.results = NASTY, copy.deepcopy(runs.results)
  runs.results["problems"] = [NASTY]
  for cases in runs.answers.cases:
    for case in cases:
      case.passages = [each._replace(text=NASTY, marks=()) for each in case.passages]
      case.passages[0] = case.passages[0]._replace(marks=(shown.Mark(0, 9, NASTY),))
      case.predicted = case.gold = NASTY
  pages.check_is_text(many.render(runs), NASTY)


def test_without_a_run_that_finished():
  results = made_up_runs.many_results()
  runs = [{**each, "results": None} for each in results["runs"]]
  nothing = {"metrics": {}, "metrics_without_failed": {}, "headline": None, "ensemble": None}
  nothing |= {"best_seed": None, "failed_seeds": []}
  made = many.ManyRuns("/tmp/mrpc", "run_swag", {**results, **nothing, "runs": runs})
  page = many.render(made)
  assert "No run has finished." in page
  assert len(re.findall("did not finish</span>", page)) == 4
