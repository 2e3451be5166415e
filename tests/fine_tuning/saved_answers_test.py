"""What tasks make of the outputs that their runs saved: answers as a `Predictor` gives them.

Alone: python -m pytest tests/fine_tuning/saved_answers_test.py (seconds); that they are what the
models answer, tests/many_runs/report_test.py asks runs.
"""

import types

import numpy as np
import pytest

from bert import run_classifier, run_ner, run_similarity, run_swag
from bert.tasks import choice_answers, shown, tags_shown


def answers(task_class, examples, outputs, **attributes):
  """The answers of a task without files."""
  task = task_class.__new__(task_class)
  vars(task).update(attributes)
  data = types.SimpleNamespace(examples=examples)
  return task.answers_of_outputs(data, np.array(outputs, np.float32))


def test_probabilities_scores_and_labels():
  of = run_classifier.Classification
  rows = [[0.2, 0.8], [0.6, 0.7]]
  one, _ = answers(of, [None] * 2, rows, problem_type="classification")
  assert shown.Classes(["no", "yes"]).case({}, "yes", one).predicted == "yes"
  one, other = answers(of, [None] * 2, [[2.5], [-1.0]], problem_type="regression")
  assert (one, other) == ({"score": 2.5}, {"score": -1.0})
  one, other = answers(of, [None] * 2, rows, problem_type="multi_label")
  labels = shown.ManyLabels(["long", "odd"])
  assert [labels.case({}, (), each).predicted for each in (one, other)] == ["odd", "long, odd"]


def test_tags_stand_at_the_places_of_their_words():
  example = types.SimpleNamespace(words=["ada", "met", "bob"])
  rows = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.7]]
  [one] = answers(run_ner.Tagging, [example], rows, labels=["O", "B-PER"])
  case = tags_shown.Tags().case({"text": "ada met bob"}, ["B-PER", "O", "O"], one)
  assert [(each.start, each.end) for each in case.passages[1].marks] == [(0, 3), (8, 11)]
  assert case.confidence == pytest.approx(0.9 * 0.8 * 0.7)


def test_choices_have_as_many_probabilities_as_there_are():
  example = types.SimpleNamespace(choices=["a", "b"])
  [one] = answers(run_swag.MultipleChoice, [example], [[0.4, 0.6, 0.0]])
  item = {"context": "c", "choices": ["a", "b"]}
  assert choice_answers.Choices().case(item, 1, one).predicted == "b"


@pytest.mark.parametrize("dev_has_scores", [True, False])
def test_similarities_of_ranked_texts_are_of_all_candidates(dev_has_scores):
  found = answers(run_similarity.Similarity, [None], [[0.5]], dev_has_scores=dev_has_scores)
  assert found == ([{"similarity": 0.5}] if dev_has_scores else None)
