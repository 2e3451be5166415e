"""The page of a sweep over tasks, from made-up runs.

Alone: python -m pytest tests/reports/grid_test.py (a second; imports no TensorFlow)
"""

import pytest

from bert.reports import grid
from tests.reports import made_up_runs, pages
from tests.reports.made_up_runs import NASTY


@pytest.fixture(scope="module")
def page():
  return grid.render(made_up_runs.grid())


def test_two_pages_are_equal_and_need_nothing_else(page):
  assert grid.render(made_up_runs.grid()) == page
  assert set(pages.check_alone(page).links) == {"1/", "2/"}


def test_tasks_and_runs(page):
  text = " ".join(" ".join(pages.Elements(page).texts).split())
  assert "65.0 mean over 1 task" in text
  assert "with the best seed of each it is 70.0" in text
  assert "3 of 5 runs have finished" in text
  # The setting with a seed that did not finish does not count. Three runs took three minutes.
  assert "RTE accuracy 70.0 70.0 65.0 65.0 ± 7.1 rate 2e-05, 3 epochs 234 3.0 3 of 4" in text
  assert "1 did not finish 1 failed MRPC" in text
  assert "rate 2e-05, 3 epochs 2 60.0 234 1.1 failed one answer" in text
  assert "MRPC – – – – – – 0.0 0 of 1" in text
  assert "rate 2e-05, 3 epochs 1 70.0 234 1.0 best" in text
  assert "rate 5e-05, 3 epochs 2 – – – did not finish exit code 1: no <b>space</b>" in text
  assert "predicting AX: no weights" in text
  assert "Not in the average: CoLA, SST-2, MRPC, STS-B" in text


def test_the_numbers_are_those_of_the_sweep(page):
  assert pages.data_of(page) == made_up_runs.task_results()


def test_figures_of_an_earlier_version_have_no_median_and_no_steps():
  made = made_up_runs.grid()
  figures = made.results["tasks"]["RTE"]
  del figures["median"]
  for run in figures["runs"]:
    del run["steps"], run["seconds"], run["collapsed"]
  assert "RTE" in grid.render(made)


def test_what_users_wrote_is_text():
  made = made_up_runs.grid()
  made.folder, made.results["problems"] = NASTY, [NASTY] * 4
  for run in made.results["tasks"]["RTE"]["runs"]:
    run["failure"] = run["collapsed"] = NASTY
  pages.check_is_text(grid.render(made), NASTY)


def test_without_a_score():
  made = made_up_runs.grid()
  made.results = {**made.results, "tasks": {"MRPC": made.results["tasks"]["MRPC"]}}
  del made.results["average"]
  assert "No task has a score." in grid.render(made)
