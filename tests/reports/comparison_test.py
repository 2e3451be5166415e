"""The page of two runs, from made-up ones.

Alone: python -m pytest tests/reports/comparison_test.py (seconds; imports no TensorFlow)
"""

import dataclasses

import pytest

from bert.reports import comparison, html_page
from bert.tasks import shown
from tests.reports import made_up_runs, pages
from tests.reports.made_up_runs import NASTY


@pytest.fixture(scope="module", params=made_up_runs.KINDS)
def kind(request):
  return request.param


@pytest.fixture(scope="module")
def page(kind):
  return comparison.render(*made_up_runs.two_of_kind(kind))


def test_two_pages_are_equal(kind, page):
  if kind == "classes":  # all charts are in it
    assert comparison.render(*made_up_runs.two_of_kind(kind)) == page


def test_it_needs_nothing_else(page):
  assert not pages.check_alone(page).links


def test_results_and_flags_of_both(page):
  data = pages.data_of(page)
  results = {each["name"]: each for each in data["results"]}
  assert results["eval_accuracy"]["difference"] == pytest.approx(0.8 - 0.7794118)
  assert results["eval_loss"]["second"] is results["eval_loss"]["difference"] is None
  assert [each["name"] for each in data["flags"]] == ["seeds"]
  assert data["flags"][0]["first"] == "1,2"
  for text in ("0.7794118", "+0.0206", "mrpc_other"):
    assert text in page


def test_answers_are_counted():
  runs = made_up_runs.two_of_kind("classes")
  page = comparison.render(*(dataclasses.replace(run, curves=None) for run in runs))
  found = pages.data_of(page)["examples"]
  # Of the four the first three were right, and are wrong; the fourth is wrong in both.
  assert found["counts"] == {"both": 0, "only_first": 3, "only_second": 0, "none": 1}
  assert found["p_value"] == pytest.approx(2 / 2**3)
  assert {each["number"] for each in found["became_wrong"]} == {1, 2, 3}
  assert found["became_right"] == []
  by_label = {each["name"]: (each["first"], each["second"]) for each in found["by_label"]}
  assert by_label == {"no": (1.0, 0.0), "yes": (pytest.approx(2 / 3), 0.0)}
  assert "3 examples are right in mrpc and wrong in mrpc_other." in page
  assert page.count('class="case"') == 3


def test_each_kind_is_shown_in_its_form(kind, page):
  expected = {
    "classes": ["From right to wrong", "p = 0.25"],
    "labels": ["F1 of labels by type"],
    "numbers": [
      "Further from what is right",
      "squared error of 3 examples is higher in mrpc_other",
    ],
    "entities": ["F1 of entities by type", "entity-type"],
    "questions": ["Right answers by question word", 'class="span"'],
    "choices": ["Right answers by place of the right choice"],
    "values": ["The same examples"],
  }[kind]
  for text in expected:
    assert text in page


def test_a_passage_that_differs_is_shown_of_each():
  first, second = made_up_runs.two_of_kind("entities")
  case = second.examples.cases[0]
  gold, predicted = case.passages
  assert predicted.marks
  case.passages = [gold, predicted._replace(marks=())]
  [card] = comparison.contents(first, second, 9)["examples"]["became_right"]
  assert [(each.name, each.runs) for each in card["texts"]] == [
    ("gold", ""),
    ("predicted", "mrpc"),
    ("predicted", "mrpc_other"),
  ]


def test_other_examples_are_not_compared():
  first, second = made_up_runs.two_of_kind("choices")
  second.examples = dataclasses.replace(second.examples, numbers=[3, 4])
  page = comparison.render(first, second)
  assert "The runs answered different examples" in page
  assert "examples" not in pages.data_of(page)


def test_without_the_data_of_one_there_is_the_rest():
  first, second = made_up_runs.two_of_kind("choices")
  second.examples, second.missing, second.results = None, ["No data."], {}
  page = comparison.render(first, second)
  assert "No data." in page
  assert "One of the runs has no accuracy" in page
  assert "0.7794118" in page


@pytest.mark.parametrize("kind_", made_up_runs.KINDS)
def test_what_users_wrote_is_text(kind_):
  first, second = made_up_runs.two_of_kind(kind_)
  for run, folder in ((first, NASTY), (second, NASTY + "2")):
    run.folder, run.task, run.missing, run.flags = folder, NASTY, [NASTY], {NASTY: folder}
    run.curves = None
    for case in run.examples.cases:
      case.passages = [each._replace(text=NASTY, marks=()) for each in case.passages]
      case.passages[0] = case.passages[0]._replace(marks=(shown.Mark(0, 9, NASTY),))
      case.predicted = case.gold = case.group = NASTY
  pages.check_is_text(comparison.render(first, second), NASTY)


def test_names_of_runs_in_charts_are_text():
  first, second = made_up_runs.two_of_kind("classes")
  for run, name in ((first, "<b>&1"), (second, "<b>&2")):
    run.folder = f"/tmp/{name}"
    run.curves = dataclasses.replace(run.curves, folder=run.folder)
  found = pages.Elements(comparison.render(first, second))
  assert "b" not in found.names
  assert "<b>&1" in found.texts


def test_examples_are_left_out_where_the_page_would_be_too_large(monkeypatch):
  monkeypatch.setattr(html_page, "MOST_CASES", 12)
  first, second = made_up_runs.two_of_kind("questions")
  whole = comparison.render(first, second)
  monkeypatch.setattr(html_page, "MOST_BYTES", len(whole.encode()) - 200)
  assert 'class="case"' in whole
  assert 'class="case"' not in comparison.render(first, second)
