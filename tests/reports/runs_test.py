"""The page of several runs, from made-up ones.

Alone: python -m pytest tests/reports/runs_test.py (seconds)
"""

import dataclasses
import json

import pytest

from bert.reports import runs
from bert.scripts import report_pages
from bert.tasks import shown
from tests.reports import made_up_runs, pages
from tests.reports.made_up_runs import NASTY


def text_of(page: str) -> str:
  return " ".join(" ".join(pages.Elements(page).texts).split())


# ---------------------------------------------------------------------------------------------
# Two runs.


@pytest.fixture(scope="module", params=made_up_runs.KINDS)
def kind(request):
  return request.param


@pytest.fixture(scope="module")
def page(kind):
  return runs.render(made_up_runs.compared(*made_up_runs.two_of_kind(kind)))


def compared(first, second) -> str:
  """The page without curves, which take most of the time."""
  first, second = (dataclasses.replace(each, curves=None) for each in (first, second))
  return runs.render(made_up_runs.compared(first, second))


def test_two_pages_are_equal(kind, page):
  if kind == "classes":  # all charts are in it
    assert runs.render(made_up_runs.compared(*made_up_runs.two_of_kind(kind))) == page


def test_it_needs_nothing_else(page):
  assert set(pages.check_alone(page).links) == {"mrpc/", "mrpc_other/"}


def test_results_and_flags_of_both(page):
  data, text = pages.data_of(page), text_of(page)
  assert [each["results"]["eval_accuracy"] for each in data["runs"]] == [0.7794118, 0.8]
  assert data["differing"] == {"seeds": ["1,2", ""]}
  assert "+0.0206 difference in accuracy" in text
  assert "The accuracy of mrpc_other, 0.8000, is 0.0206 higher than that of mrpc, 0.7794." in text
  assert "mrpc 0.7794 0.5627 343" in text
  assert "difference +0.0206 – –" in text


def test_answers_are_counted():
  page = compared(*made_up_runs.two_of_kind("classes"))
  found = pages.data_of(page)["examples"]
  # Of the four the first three were right, and are wrong; the fourth is wrong in both.
  assert found["counts"] == {"both": 0, "only_first": 3, "only_second": 0, "none": 1}
  assert found["p_value"] == pytest.approx(2 / 2**3)
  assert {each["number"] for each in found["became_wrong"]} == {1, 2, 3}
  assert found["became_right"] == []
  assert "3 examples are right in mrpc and wrong in mrpc_other." in page
  assert page.count('class="case"') == 3


def test_each_kind_is_shown_in_its_form(kind, page):
  expected = {
    "classes": ["From right to wrong", "p = 0.25"],
    "labels": ["From right to wrong"],
    "numbers": [
      "Further from what is right",
      "3 examples have a higher squared error in mrpc_other",
    ],
    "entities": ["entity-type"],
    "questions": ['class="span"'],
    "choices": ["From wrong to right"],
    "values": ["The same examples"],
  }[kind]
  for text in expected:
    assert text in page


def test_other_examples_are_not_compared():
  first, second = made_up_runs.two_of_kind("choices")
  second.examples = dataclasses.replace(second.examples, numbers=[3, 4])
  page = compared(first, second)
  assert "The runs answered different examples" in page
  assert "examples" not in pages.data_of(page)


def test_without_the_data_of_one_there_is_the_rest():
  first, second = made_up_runs.two_of_kind("choices")
  second.examples, second.missing, second.results = None, ["No data."], {}
  page = compared(first, second)
  assert "No data." in page
  assert "One of the runs has no accuracy" in page
  assert "0.7794" in page


@pytest.mark.parametrize("kind_", ["classes", "entities"])
def test_what_users_wrote_is_text(kind_):
  first, second = made_up_runs.two_of_kind(kind_)
  for run, folder in ((first, NASTY), (second, NASTY + "2")):
    run.folder, run.task, run.missing, run.flags = folder, NASTY, [NASTY], {NASTY: folder}
    run.failure = NASTY
    for case in run.examples.cases:
      case.passages = [each._replace(text=NASTY, marks=()) for each in case.passages]
      case.passages[0] = case.passages[0]._replace(marks=(shown.Mark(0, 9, NASTY),))
      case.predicted = case.gold = case.group = NASTY
  pages.check_is_text(compared(first, second), NASTY)


def test_more_runs_are_summarized_where_only_their_seed_differs():
  first, second = made_up_runs.two_of_kind("values")
  subjects = [
    dataclasses.replace(
      each, folder=f"/tmp/{n}", flags={"seed": n, "rate": 1 if n < 3 else 2}, examples=None
    )
    for n, each in enumerate([first, second, second], 1)
  ]
  page = runs.render(made_up_runs.compared(*subjects))
  assert "mean ± SD, rate 1 0.7897 ± 0.0146" in text_of(page)
  assert "rate 2" not in text_of(page)
  assert pages.data_of(page)["differing"] == {"seed": ["1", "2", "3"], "rate": ["1", "1", "2"]}


# ---------------------------------------------------------------------------------------------
# Runs that differ in their seed.


@pytest.fixture
def seeds(tmp_path):
  return made_up_runs.write_seeds(tmp_path / "seeds")


def page_of(folder) -> str:
  return report_pages.page_of_sweep(str(folder), str(folder / "report.html"))


def test_seeds_and_their_spread(seeds):
  page = page_of(seeds)
  pages.check_alone(page)
  text = text_of(page)
  assert "0.7546 mean accuracy" in text
  assert "3 runs that differ in their seed have finished: from 0.6838 to 0.8000" in text
  for row in (
    "seed 2 0.8000 0.8500 1.5 best",
    "seed 3 0.6838 0.7338 1.5 failed",
    "seed 4 – – – did not finish exit code 1: no space",
    "mean 0.7546 0.8046 SD 0.0621 0.0621",
    "highest 0.8000 0.8500",
    "mean, without failed runs 0.7900 0.8400",
  ):
    assert row in text
  assert "seed 3 is no better than a constant answer: accuracy 0.6838" in text
  assert "seed 4 did not finish: exit code 1: no space" in text
  assert f"python report.py {seeds}/seed_2" in text
  results = json.loads((seeds / "results.json").read_text())
  for run, entry in zip(results["runs"], pages.data_of(page)["runs"], strict=True):
    assert entry["results"] == run["results"]


def test_results_of_an_earlier_version_say_what_to_do(seeds):
  earlier = {"runs": [], "metrics": {}, "best_seed": 2}
  (seeds / "results.json").write_text(json.dumps(earlier))
  with pytest.raises(ValueError, match="Give the command of its runs once more"):
    page_of(seeds)


# ---------------------------------------------------------------------------------------------
# A grid over tasks.


@pytest.fixture
def tasks(tmp_path):
  return made_up_runs.write_tasks(tmp_path)


def test_tasks_and_runs(tasks):
  page = page_of(tasks)
  pages.check_alone(page)
  text = text_of(page)
  assert "65.00 mean over 1 task" in text
  assert "With the best seed of each task it is 70.00." in text
  assert "3 of 5 runs have finished" in text
  # The setting with a seed that did not finish does not count.
  assert "RTE 70.00 65.00 ± 7.07 rate 2e-05, 3 epochs 3 of 4 MRPC – – – 0 of 1" in text
  assert "rate 2e-05, 3 epochs, seed 1 70.00 1.0 best" in text
  assert "rate 2e-05, 3 epochs, seed 2 60.00 1.1 failed one answer" in text
  assert "rate 5e-05, 3 epochs, seed 2 – – did not finish exit code 1: no <b>space</b>" in text
  assert "mean ± SD, rate 2e-05, 3 epochs 65.00 ± 7.07" in text
  assert "predicting AX: no weights" in text
