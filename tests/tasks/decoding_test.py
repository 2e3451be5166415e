"""What tasks say of their items and answers as JSON, from made-up scores: no model is loaded.

Alone: python -m pytest tests/tasks/answering_test.py (a second, no TensorFlow)
"""

import json

import numpy as np
import pytest

from bert import tokenization
from bert.io import text_lines
from bert.tasks import decoding
from tests.kit.paths import ROOT

LABELS = ["0", "1"]
FACTS = {
  "sentences": {"problem_type": "classification", "labels": LABELS},
  "squad": {"task_name": "squad"},
  "ner": {"task_name": "ner", "labels": ["O", "B-PER", "I-PER"]},
  "swag": {"task_name": "swag"},
  "similarity": {"task_name": "similarity"},
}
DISPLAYS = {
  "sentences": "classes",
  "squad": "answer",
  "ner": "entities",
  "swag": "choices",
  "similarity": "similarity",
}


def made(name: str, **facts):
  tokenizer = tokenization.load_tokenizer(str(ROOT / "samples" / "vocab.txt"), True)
  return decoding.of_run({**FACTS[name], **facts}, {}, tokenizer, 64)


def scores_of(name: str, row):
  length = len(row["input_ids"])
  logits = np.arange(length, dtype=np.float32)
  return {
    "sentences": {"logits": np.array([0.0, 2.0], np.float32)},
    "squad": {"start_logits": logits, "end_logits": logits},
    "ner": {"logits": np.tile(np.array([0.0, 1.0, 0.0], np.float32), [length, 1])},
    "swag": {"logits": np.array([float(sum(row["input_ids"]) % 7)], np.float32)},
    "similarity": {"vectors": np.array([1.0, float(length)], np.float32)},
  }[name]


def answered(name: str, task, item):
  rows = task.rows(item)
  scores = [scores_of(name, row) for row in rows]
  return task.decode(item, rows, scores), scores


@pytest.mark.parametrize("name", FACTS)
def test_the_example_of_each_kind_is_answered(name):
  task = made(name)
  item = task.example
  assert set(item) == set(task.inputs)
  answer, scores = answered(name, task, item)
  assert json.loads(text_lines.to_json(answer))
  for raw_scores in (False, True):
    for each in task.predictions(answer, scores, raw_scores):
      assert [type(each["label"]), type(each["score"])] == [str, float]
      json.dumps(each)
  assert task.display == DISPLAYS[name]


def test_classes_are_ranked_as_probabilities_or_as_logits():
  task = made("sentences")
  answer, scores = answered("sentences", task, task.example)
  assert [each["label"] for each in task.predictions(answer, scores)] == ["1", "0"]
  assert sum(each["score"] for each in task.predictions(answer, scores)) == pytest.approx(1)
  raw = task.predictions(answer, scores, raw_scores=True)
  assert [each["score"] for each in raw] == [2.0, 0.0]
  assert task.relevance(answer, scores) == pytest.approx(1 / (1 + np.exp(-2)))
  assert task.raw_relevance(scores) == 2.0  # whose sigmoid is the relevance


def test_three_classes_rank_no_texts():
  task = made("sentences", labels=["a", "b", "c"])
  scores = [{"logits": np.array([0.0, 2.0, 1.0], np.float32)}]
  answer = task.decode(task.example, [{}], scores)
  assert task.relevance(answer, scores) is None


def test_one_class_is_a_ranker():
  task = made("sentences", labels=["LABEL_0"])
  scores = [{"logits": np.array([2.0], np.float32)}]
  answer = task.decode(task.example, [{}], scores)
  assert task.relevance(answer, scores) == pytest.approx(1 / (1 + np.exp(-2)))
  assert task.raw_relevance(scores) == 2.0


def test_a_regression_has_one_score():
  task = made("sentences", problem_type="regression", labels=[])
  scores = [{"logits": np.array([0.5], np.float32)}]
  answer = task.decode(task.example, [{}], scores)
  assert task.predictions(answer, scores) == [{"label": "score", "score": 0.5}]
  assert task.predictions(answer, scores, raw_scores=True) == [{"label": "score", "score": 0.5}]
  assert (task.relevance(answer, scores), task.display, task.label_names) == (0.5, "score", ())


def test_entities_have_the_names_of_transformers():
  task = made("ner")
  answer, scores = answered("ner", task, {"text": "Ada met"})
  first = task.predictions(answer, scores)[0]
  assert (first["entity_group"], first["word"], first["start"], first["end"]) == (
    "PER",
    "Ada",
    0,
    3,
  )


def test_tags_that_are_no_entities_are_listed_by_word():
  task = made("ner", labels=["NOUN", "VERB", "DET"])
  answer, scores = answered("ner", task, {"text": "Ada met"})
  found = [(each["word"], each["label"]) for each in task.predictions(answer, scores)]
  assert found == [("Ada", "VERB"), ("met", "VERB")]


def test_raw_scores_of_choices_are_their_logits():
  task = made("swag")
  answer, scores = answered("swag", task, task.example)
  raw = task.predictions(answer, scores, raw_scores=True)
  logits = [float(each["logits"][0]) for each in scores]
  assert [each["score"] for each in raw] == sorted(logits, reverse=True)
  assert raw[0]["label"] == str(answer["choice"])
