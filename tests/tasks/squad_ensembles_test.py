"""Tests of the answers of several runs together, by hand."""

import json
import math

import pytest

from bert.tasks import squad_ensembles
from bert.tasks.squad import SquadExample


def answers(**probabilities):
  return [{"text": text, "probability": p} for text, p in probabilities.items()]


QUESTION = SquadExample("q", "when ?", ["in", "1997"])


def test_answers_by_hand():
  runs = [{"q": answers(a=0.6, b=0.4)}, {"q": answers(b=0.7, c=0.3)}]
  [found] = squad_ensembles.averaged_answers([QUESTION], runs, n_best_size=2)
  assert [answer.text for answer in found.nbest] == ["b", "a"]
  assert found.prediction.text == "b"
  assert found.null_odds is None
  # 0.55 and 0.3 of what is kept.
  assert found.probabilities == pytest.approx([0.55 / 0.85, 0.3 / 0.85])


@pytest.mark.parametrize(("threshold", "text"), [(0.0, ""), (1.0, "b")])
def test_no_answer_by_hand(threshold, text):
  runs = [
    {"q": [*answers(b=0.6), {"text": "", "probability": 0.4}]},
    {"q": [*answers(a=0.3), {"text": "", "probability": 0.7}]},
  ]
  [found] = squad_ensembles.averaged_answers(
    [QUESTION],
    runs,
    n_best_size=1,
    version_2_with_negative=True,
    null_score_diff_threshold=threshold,
  )
  # "" has 0.55 and "b" 0.3; the best answer is kept beside it, whatever `n_best_size` says.
  assert found.prediction.text == text
  assert found.null_odds == pytest.approx(math.log(0.55 / 0.3))


def test_other_questions_are_refused(tmp_path):
  (tmp_path / "nbest_predictions.json").write_text(json.dumps({"other": []}))
  with pytest.raises(ValueError, match="has other questions"):
    squad_ensembles.mean_answers([str(tmp_path)], [QUESTION], n_best_size=1)


def test_of_several_models_the_mean_of_the_null_odds_counts():
  runs = [{"q": [{"text": "1997", "probability": 1.0}]}] * 2
  odds = [{"q": -3.0}, {"q": 1.0}]
  for threshold, text in ((-1.5, ""), (-1.0, "1997"), (None, "1997")):
    [found] = squad_ensembles.averaged_answers(
      [QUESTION],
      runs,
      n_best_size=20,
      version_2_with_negative=True,
      null_score_diff_threshold=threshold,
      null_rule="electra",
      null_odds=odds,
    )
    assert (found.null_odds, found.prediction.text) == (-1.0, text)
