"""The page of a report, from made-up runs.

Alone: python -m pytest tests/reports/html_page_test.py (seconds; imports no TensorFlow)
"""

import re

import numpy as np
import pytest

from bert.checks import findings
from bert.reports import html_page
from bert.tasks import shown
from tests.reports import made_up_runs, pages
from tests.reports.made_up_runs import NASTY


@pytest.fixture(scope="module", params=made_up_runs.KINDS)
def kind(request):
  return request.param


@pytest.fixture(scope="module")
def page(kind):
  return html_page.render(made_up_runs.of_kind(kind))


def test_two_reports_of_a_run_are_equal(kind, page):
  if kind in ("classes", "numbers"):  # all charts are in these
    assert html_page.render(made_up_runs.of_kind(kind)) == page
  assert not re.search(r"20\d\d-\d\d-\d\dT", page)


def test_it_needs_nothing_else(kind, page):
  found = pages.check_alone(page)
  assert not found.links
  assert "url(#" in page or kind not in ("classes", "numbers")


@pytest.mark.parametrize("kind_", ["classes", "entities", "choices", "values"])
def test_what_users_wrote_is_text(kind_):
  examples = made_up_runs.KINDS[kind_]()
  for case in examples.cases:
    case.passages = [each._replace(text=NASTY, marks=()) for each in case.passages]
    case.passages[0] = case.passages[0]._replace(marks=(shown.Mark(0, 9, NASTY),))
    case.predicted = case.gold = case.group = NASTY
    case.pairs = [] if examples.shown.number_name else [(NASTY, NASTY)]
    case.gold_parts = frozenset([(NASTY,)])
    case.options = [each._replace(name=NASTY) for each in case.options]
    case.values = {NASTY: NASTY}
  subject = made_up_runs.subject(
    examples, task=NASTY, folder=NASTY, flags={NASTY: NASTY}, missing=[NASTY], command=NASTY
  )
  subject.curves = None  # no text of users is in them
  page = html_page.render(subject)
  pages.check_is_text(page, NASTY)
  assert pages.data_of(page)["flags"] == {NASTY: NASTY}


def test_a_large_run_is_small():
  rng = np.random.default_rng(0)
  count = 2000
  items = [{"text_a": "ж🙂" * 50_000, "text_b": f"b{n}"} for n in range(20)] * (count // 20)
  answers = [{"probabilities": rng.dirichlet(np.ones(30))} for _ in range(count)]
  how = shown.Classes([f"label {n}" for n in range(30)])
  expected = [f"label {n % 30}" for n in range(count)]
  examples = made_up_runs.answered(how, items, expected, answers, total=50_000)
  page = html_page.render(made_up_runs.subject(examples, curves=None))
  assert len(page.encode()) <= html_page.MOST_BYTES
  assert "A random sample of 2000 of 50000 examples" in page
  assert "In a sample of 2000 examples: Always “label 0”" in page
  assert "more letters" in page
  assert "The most frequent confusions among 30 classes" in page


def test_examples_are_left_out_where_the_page_would_be_too_large(monkeypatch):
  made = made_up_runs.subject(made_up_runs.of_classes(), curves=None)
  whole = html_page.render(made)
  monkeypatch.setattr(html_page, "MOST_BYTES", len(whole.encode()) - 2000)
  smaller = html_page.render(made)
  assert whole.count('class="case"') == 4
  assert smaller.count('class="case"') < 4


def test_without_examples_there_is_the_rest():
  page = html_page.render(made_up_runs.subject(None, curves=None, missing=["No data."]))
  assert "No data." in page
  assert "Most wrong examples" not in page
  assert "0.7794118" in page


def test_each_kind_is_shown_in_its_form(kind, page):
  expected = {
    "classes": ['class="matrix"', "Always “yes”", "; the model is right for 75.0"],
    "labels": ["Labels by type", "good, long"],
    "numbers": ["Predicted and gold scores", "squared error"],
    "entities": ['class="entity">ada<span class="entity-type">PER', "no entity", "Marking nothing"],
    "questions": ['class="span">London in 1815</mark>', "no answer", "By question word"],
    "choices": ["By place of the right choice", "choice 2"],
    "values": ["depth", "0.25", "a, b"],
  }[kind]
  for text in expected:
    assert text in page


def test_numbers_that_are_none_are_no_trouble():
  answers = [{"score": score} for score in (np.nan, 1.0, np.inf, 3.0)]
  how = shown.Numbers("score")
  examples = made_up_runs.answered(how, made_up_runs.ITEMS, ["1", "2", "3", "4"], answers)
  results = {"eval_accuracy": "nan"}
  page = html_page.render(made_up_runs.subject(examples, curves=None, results=results))
  assert pages.data_of(page)["results"] == {"eval_accuracy": None}
  losses = [each["loss"] for each in pages.data_of(page)["examples"]["highest_loss"]]
  assert losses == [None, None, 1.0, 1.0]


def test_a_model_that_gives_one_answer_is_called_so():
  examples = made_up_runs.of_classes()
  for case in examples.cases:
    case.is_right = case.gold == "yes"
  page = html_page.render(made_up_runs.subject(examples, curves=None))
  said = "The model is no better than one answer to everything."
  assert said in page
  assert "label in doubt" not in page
  assert said not in html_page.render(made_up_runs.of_kind("numbers"))
  failed = made_up_runs.subject(examples, failure="accuracy 0.5", curves=None)
  assert said not in html_page.render(failed)  # a sentence that says more stands there


def test_nothing_is_called_wrong_where_all_is_right():
  examples = made_up_runs.of_classes()
  said = html_page.render(made_up_runs.subject(examples, curves=None))
  assert "Most wrong examples" in said
  assert "1 is wrong; the highest loss comes first." in said
  assert said.index('class="case"') < said.index('<details id="further">')
  for case in examples.cases:
    case.is_right = True
  said = html_page.render(made_up_runs.subject(examples, curves=None))
  assert "Most wrong examples" not in said
  assert "Labels that are wrong" not in said
  assert "All answers are right. These are the 4 with the highest loss." in said


def test_the_headline_has_its_interval_and_what_spoils_it():
  leak = findings.note("3 of 4 examples of dev are in train, too.", "dev.tsv:1", "Remove them.")
  examples = made_up_runs.of_classes()
  examples.label_counts = {"no": 1, "yes": 407}
  subject = made_up_runs.subject(
    examples, curves=None, findings=[leak._replace(leaks="dev")], evaluated=408
  )
  page = html_page.render(subject)
  # Of 0.7794118 and 408: statsmodels' proportion_confint(318, 408, method="wilson").
  assert "95 % confidence interval over 408 examples: 0.7367 to 0.8169" in page
  verdict = page[page.index('id="verdict"') : page.index('id="matrix"')]
  assert '<p class="error">3 of 4 examples of dev are in train, too. Remove them.</p>' in verdict
  assert '<p class="error">dev has very few examples of “no” (1): figures for them' in verdict
  data = pages.data_of(page)
  assert data["interval"]["num_examples"] == 408
  assert len(data["cautions"]) == 2
  subject.findings = [leak._replace(leaks="test")]
  assert "in train, too" not in html_page.render(subject).split('id="matrix"')[0]


def test_words_say_what_they_contributed():
  page = html_page.render(made_up_runs.of_kind("classes"))
  found = pages.Elements(page)
  text = " ".join(" ".join(found.texts).split())
  assert "Which words led to “yes”" in text
  assert f"Most for it: “ {' '.join(NASTY.split())} ”. Most against it: “ so ”." in text
  assert '<span class="word is-against" style="--share: 40%">so</span>' in page
  assert '<span class="is-special">[CLS]</span>' in page
  card = next(each for each in pages.data_of(page)["examples"]["highest_loss"] if "words" in each)
  assert card["words"] == {
    "to": "“yes”",
    "rows": [[["[CLS]", 3.0], ["so", -0.5], [NASTY, 1.25]]],
  }
