"""Answers by the rules of ALBERT and ELECTRA, from made-up outputs of their models."""

import gzip
import json

import numpy as np
import pytest

from bert.tasks import answer_texts, squad_scores
from bert.tasks.squad import SquadExample, read_squad_examples
from bert.tasks.squad_answers import WindowScores, answer_questions, with_threshold
from bert.tasks.squad_features import InputFeatures
from tests.kit.squad_samples import features_of


@pytest.fixture(scope="module")
def albert(golden_dir):
  """Questions, windows, outputs of the windows, and what ALBERT made of them."""
  pytest.importorskip("sentencepiece")
  from bert.text.sentence_pieces import SentencePieceTokenizer

  folder = golden_dir / "albert"
  ids = json.loads((folder / "squad_questions.json").read_text())
  read = read_squad_examples(golden_dir / "squad" / "train_input-v2.0.json", False, True)
  by_id = {example.qas_id: example for example in read}
  examples = [by_id[qas_id] for qas_id in ids]
  tokenizer = SentencePieceTokenizer(folder / "tiny_spm.model")
  windows = features_of(examples, tokenizer, (64, 24, 16))
  with gzip.open(folder / "squad_answers.json.gz", "rt", encoding="utf-8") as lines:
    return examples, windows, np.load(folder / "squad_answers.npz"), json.load(lines)


def beams_of(outputs):
  return [
    WindowScores(
      int(unique_id),
      null_logit=float(outputs["cls_logits"][row]),
      beam=(
        outputs["start_top_log_probs"][row],
        outputs["start_top_index"][row],
        outputs["end_top_log_probs"][row].reshape(5, 5),
        outputs["end_top_index"][row].reshape(5, 5),
      ),
    )
    for row, unique_id in enumerate(outputs["unique_ids"])
  ]


def answers_of(albert, results, **options):
  examples, windows, _, _ = albert
  return answer_questions(examples, windows, results, 20, 30, True, null_rule="albert", **options)


def predictions(answers):
  return {answer.example.qas_id: answer.prediction.text for answer in answers}


def assert_nbest(answers, expected):
  for answer in answers:
    golden = expected[answer.example.qas_id]
    assert [each.text for each in answer.nbest] == [each["text"] for each in golden]
    found = [
      answer.probabilities,
      [each.start_logit for each in answer.nbest],
      [each.end_logit for each in answer.nbest],
    ]
    keys = ("probability", "start_log_prob", "end_log_prob")
    expected_numbers = [[each[key] for each in golden] for key in keys]
    np.testing.assert_allclose(found, expected_numbers, rtol=1e-12)


def test_answers_equal_alberts(albert):
  *_, outputs, golden = albert
  results = beams_of(outputs)
  options = {"version_2_with_negative": True}
  answers = answers_of(albert, results, null_score_diff_threshold=None, **options)
  assert predictions(answers) == golden["predictions_no_threshold"]
  assert_nbest(answers, golden["nbest"])
  assert {a.example.qas_id: a.null_odds for a in answers} == golden["null_odds"]
  at_zero = answers_of(albert, results, null_score_diff_threshold=0.0, **options)
  assert predictions(at_zero) == golden["predictions_threshold_0"]
  # As the original: the threshold is the best one for the questions that it is tuned on.
  threshold = squad_scores.evaluate_answers(answers, True)["best_f1_thresh"]
  assert threshold == golden["evaluation"]["null_score_diff_threshold"]
  tuned = [with_threshold(answer, threshold, "albert") for answer in answers]
  assert predictions(tuned) == golden["predictions"]
  scores = squad_scores.evaluate_answers(tuned, True)
  for name in ("exact", "f1", "total"):
    assert scores[name] == pytest.approx(golden["evaluation"][name])


def test_answers_of_squad_1_equal_alberts(albert):
  *_, outputs, golden = albert
  rows = zip(outputs["unique_ids"], outputs["start_logits"], outputs["end_logits"], strict=True)
  results = [WindowScores(int(unique_id), start, end) for unique_id, start, end in rows]
  answers = answers_of(albert, results)
  assert predictions(answers) == golden["v1_predictions"]
  assert_nbest(answers, golden["v1_nbest"])


def test_places_of_answers_in_the_paragraph(albert):
  *_, outputs, _ = albert
  answers = answers_of(albert, beams_of(outputs), version_2_with_negative=True)
  for answer in answers:
    for each in answer.nbest:
      span = answer_texts.context_span(answer.example, each)
      if each.text:
        assert answer.example.context[slice(*span)] == each.text


# ---------------------------------------------------------------------------------------------
# ELECTRA, on two windows made by hand.

EXAMPLE = SquadExample("q", "Who?", ["Ada", "met", "him"], word_starts=[0, 4, 8])


def window(unique_id):
  """`[CLS] who ? [SEP] ada met him [SEP]`; the second one has less context."""
  tokens = ["[CLS]", "who", "?", "[SEP]", "ada", "met", "him", "[SEP]"]
  words = {4: 0, 5: 1, 6: 2}
  return InputFeatures(unique_id, 0, 0, tokens, words, dict.fromkeys(words, True), [], [], [])


def electra(*null_logits, starts=(4, 0), ends=((6, 4), (5, 6)), **options):
  results = [
    WindowScores(
      i,
      start_logits=[1.0, 0.0],
      end_logits=[0.0, 0.0],
      null_logit=null,
      beam=([-0.5, -1.0], starts, [[-0.25, -0.5], [-0.1, -0.2]], ends),
    )
    for i, null in enumerate(null_logits)
  ]
  windows = [window(i) for i in range(len(results))]
  options = {"version_2_with_negative": True, "null_rule": "electra", **options}
  return answer_questions([EXAMPLE], windows, results, 20, 30, True, **options)[0]


@pytest.mark.parametrize(
  ("threshold", "text"),
  [(-2.75, ""), (-1.5, "Ada met him"), (-1.0, "Ada met him"), (None, "Ada met him")],
)
def test_electra_asks_its_classifier(threshold, text):
  answers = electra(3.0, -1.5, null_score_diff_threshold=threshold)
  assert answers.null_odds == -1.5  # the lowest of the windows
  assert [answer.text for answer in answers.nbest] == ["Ada met him", "Ada"]
  assert answers.prediction.text == text
  assert answers.best_answer.score == -0.75


def test_electra_without_classifier_compares_with_the_first_position():
  answers = electra(None, null_score_diff_threshold=1.7)
  assert answers.null_odds == 1.0 - (-0.75)
  assert answers.prediction.text == ""
  assert "" not in [answer.text for answer in answers.nbest]


def test_a_beam_outside_the_paragraph_gives_the_originals_word():
  answers = electra(0.0, starts=(0, 1), ends=((0, 0), (3, 7)))
  assert answers.nbest[0].text == answers.best_answer.text == "empty"


def test_a_span_that_is_too_long_is_no_candidate():
  answers = electra(0.0, null_score_diff_threshold=None)
  assert len(answers.nbest) == 2
  results = [WindowScores(0, null_logit=0.0, beam=([-0.5], [4], [[-0.1, -0.2]], [[6, 4]]))]
  answers = answer_questions([EXAMPLE], [window(0)], results, 20, 2, True, null_rule="electra")[0]
  assert [answer.text for answer in answers.nbest] == ["Ada"]
