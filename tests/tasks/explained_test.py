"""What of its scores each kind of task explains: weights of the scores' shapes.

Alone: python -m pytest tests/tasks/explained_test.py (seconds)
"""

import types

import numpy as np
import pytest

from bert.tasks.choice_decoder import ChoiceDecoder
from bert.tasks.decoding import TextDecoder
from bert.tasks.pair_decoder import PairDecoder
from bert.tasks.sentence_decoder import SentenceDecoder
from bert.tasks.span_decoder import SpanDecoder
from bert.tasks.tag_decoder import TagDecoder

RNG = np.random.default_rng(0)


def total(explained, scores):
  """The number that is explained."""
  rows = range(len(scores)) if explained.rows is None else explained.rows
  return sum(
    float(np.sum(weight * scores[row][name]))
    for row, weights in zip(rows, explained.weights, strict=True)
    for name, weight in weights.items()
  )


def made(decoder_class, **attributes):
  """An `Decoder` that has only what it is asked for."""
  decoder = object.__new__(decoder_class)
  vars(decoder).update(attributes)
  return decoder


def of_sentences(problem_type):
  labels = ["bad", "good", "odd"]
  return made(SentenceDecoder, _problem_type=problem_type, _labels=labels, _windows=None)


def test_a_class_is_explained_against_the_others():
  scores = [{"logits": np.array([1.0, 5.0, 3.0])}]
  found = of_sentences("classification").explained({}, [{}], {}, scores)
  assert found.what == "“good”"
  assert total(found, scores) == 5 - (1 + 3) / 2


def test_windows_count_alike():
  scores = [{"logits": np.array([1.0, 5.0, 3.0])}, {"logits": np.array([3.0, 4.0, 2.0])}]
  found = of_sentences("classification").explained({}, [{}, {}], {}, scores)
  assert total(found, scores) == 4.5 - (2 + 2.5) / 2


def test_of_several_labels_the_likeliest_is_explained():
  scores = [{"logits": np.array([1.0, 5.0, 3.0])}]
  assert total(of_sentences("multi_label").explained({}, [{}], {}, scores), scores) == 5


def test_a_score_is_explained():
  scores = [{"logits": np.array([2.5])}]
  found = of_sentences("regression").explained({}, [{}], {}, scores)
  assert (found.what, total(found, scores)) == ("the score", 2.5)


def test_a_choice_is_explained_against_the_others():
  scores = [{"logits": np.array([each])} for each in (1.0, 7.0, 3.0)]
  found = made(ChoiceDecoder).explained({}, [{}] * 3, {"choice": 1}, scores)
  assert total(found, scores) == 7 - 2


def test_the_least_sure_word_of_a_sentence_is_explained():
  answer = {"probabilities": np.array([0.9, 0.4]), "tags": ["O", "B-PER"], "words": ["saw", "Ada"]}
  rows = [{"places": [1]}, {"places": [2]}]
  scores = [{"logits": RNG.normal(size=(4, 3))} for _ in rows]
  found = made(TagDecoder).explained({}, rows, answer, scores)
  assert found.what == "the tag B-PER of “Ada”"
  assert found.rows == [1]
  (weights,) = found.weights
  assert weights["logits"].shape == (4, 3)
  assert np.flatnonzero(weights["logits"].any(axis=1)).tolist() == [2]
  assert made(TagDecoder).explained({}, [], answer, []) is None


def test_both_ends_of_an_answer_are_explained():
  names = ("start_logits", "end_logits")
  scores = [dict.fromkeys(names, np.array([0.0, 1.0])), dict.fromkeys(names, np.array([9.0, 1.0]))]
  found = made(SpanDecoder).explained({}, [{}] * 2, {}, scores)
  assert found.rows == [1]
  assert total(found, scores) == 2 * (9 - 1)
  assert made(SpanDecoder).explained({}, [{}], {}, [{"start_top_log_probs": 1}]) is None


def test_a_similarity_is_explained_by_its_slope():
  scores = [{"vectors": RNG.normal(size=4)} for _ in range(2)]
  decoder = made(PairDecoder)
  found = decoder.explained({}, [{}] * 2, {}, scores)
  similarity = lambda scores: decoder.decode({}, [], scores)["similarity"]  # noqa: E731
  step = RNG.normal(size=4) * 1e-5
  moved = [{"vectors": scores[0]["vectors"] + step}, scores[1]]
  slope = float(found.weights[0]["vectors"] @ step)
  assert similarity(moved) - similarity(scores) == pytest.approx(slope, rel=1e-3)


def test_a_task_of_ones_own_explains_its_logits():
  decoder = made(TextDecoder, _is_of_tokens=lambda name: False)
  scores = [{"logits": np.array([1.0, 4.0])}]
  assert total(decoder.explained({}, [{}], {}, scores), scores) == 3
  assert decoder.explained({}, [{}, {}], {}, scores * 2) is None  # of several rows it is unknown
  assert decoder.explained({}, [{}], {}, [{"depth": np.array(1.0)}]) is None
  tokens = types.SimpleNamespace(**{"_is_of_tokens": lambda name: True})
  assert type(decoder).explained(tokens, {}, [{}], {}, scores) is None
