"""SQuAD's official scores; expected ones are worked out by hand from the rules."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.tasks import squad_scores
from bert.tasks.squad import SquadExample, read_squad_examples


def test_scores_equal_the_official_script(golden_dir):
  folder = golden_dir / "squad"
  examples = read_squad_examples(folder / "input-v2.0.json", False, True)
  answers = {example.qas_id: example.answers for example in examples}
  predictions = json.loads((folder / "predictions-v2.0.json").read_text())
  null_odds = json.loads((folder / "null_odds-v2.0.json").read_text())
  found = squad_scores.evaluate_v2(answers, predictions, null_odds)
  assert found == json.loads((folder / "evaluate-v2.0.json").read_text())


def test_normalized_answers():
  assert squad_scores.normalize_answer("The  Theatre, a-b: AN (apple)!") == "theatre ab apple"
  assert squad_scores.normalize_answer("the a an") == ""


def test_an_unanswered_question_without_answer_is_right_at_every_threshold():
  null_odds, scores = {"no": -9.0, "yes": -5.0}, {"no": 1.0, "yes": 1.0}
  found = squad_scores.find_best_threshold(
    {"no": [], "yes": ["x"]}, {"no": "", "yes": "x"}, scores, null_odds
  )
  assert found == (100.0, -5.0)


@given(st.data())
def test_the_best_threshold_reaches_its_score_and_no_other_more(data):
  size = data.draw(st.integers(1, 6))
  answers = {i: data.draw(st.sampled_from([[], ["x"]])) for i in range(size)}
  best_answers = {i: data.draw(st.sampled_from(["x", "y"])) for i in range(size)}
  odds = data.draw(st.lists(st.integers(-9, 9), min_size=size, max_size=size, unique=True))
  null_odds = dict(enumerate(odds))

  def score_at(threshold):
    predictions = {i: best_answers[i] if null_odds[i] <= threshold else "" for i in answers}
    return squad_scores.evaluate_v2(answers, predictions)["exact"]

  found = squad_scores.evaluate_v2(answers, best_answers, null_odds)
  best = max(score_at(threshold) for threshold in [-99, *odds])
  assert found["best_exact"] == pytest.approx(best)
  if best > score_at(-99):
    assert score_at(found["best_exact_thresh"]) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_f1_is_what_a_run_with_its_threshold_gets(seed):
  """Also where no answer at all is best, and all odds are negative."""
  rng = random.Random(seed)
  ids = [f"q{i}" for i in range(8)]
  answers = {qid: rng.choice([[], ["x y"], ["x", "z"]]) for qid in ids}
  best = {qid: rng.choice(["x", "y", "x y z", "wrong"]) for qid in ids}
  null_odds = {qid: rng.randint(-9, 2 - seed % 4 * 3) for qid in ids}  # some are equal

  def f1_at(threshold):
    predictions = {qid: best[qid] if null_odds[qid] <= threshold else "" for qid in ids}
    return squad_scores.evaluate_v2(answers, predictions)["f1"]

  threshold = squad_scores.threshold_that_holds(answers, best, null_odds)
  every = [f1_at(each) for each in (-99.0, *null_odds.values())]
  assert f1_at(threshold) == pytest.approx(max(every))
  assert f1_at(float(f"{threshold:.3g}")) == f1_at(threshold), "the file of results rounds"


@pytest.mark.parametrize(
  ("rules", "gold", "predicted", "exact", "f1"),
  [
    ("squad", "北京大学", "北京", 0, 0),
    ("cmrc2018", "北京大学", "北京", 0, 2 / 3),
    ("cmrc2018", "《北京大学》", "北京大学。", 1, 1),
    # A run of 2 of 4 and of 5 units: the other two, though in both, are not next to it.
    ("cmrc2018", "北京大学", "大学在北京", 0, 2 * (2 / 5) * (2 / 4) / (2 / 5 + 2 / 4)),
    # Units of the first: 2008, 年, nba and 3.5; of the others nba3.5 and %, or 3.5 and %.
    ("cmrc2018", "2008年NBA 3.5", "2008年nba3.5%", 0, 2 * (2 / 4) * (2 / 4) / (2 / 4 + 2 / 4)),
    ("cmrc2018", "2008年，NBA 3.5", "2008年nba 3.5%", 0, 2 * (4 / 5) * 1 / (4 / 5 + 1)),
    ("cmrc2018", "10,000, abc.", "10,000", 0, 2 * 1 * (1 / 4) / (1 + 1 / 4)),
    ("cmrc2018", "北京", "。", 0, 0),
    ("drcd", "北京大学", "大学在北京", 0, 2 * (4 / 5) * 1 / (4 / 5 + 1)),
    ("drcd", "《北京大学》", "北京大学。", 1, 1),
    ("drcd", "the US-A", "USA", 1, 1),
    ("drcd", "ab c", "abc", 0, 2 * 1 * (3 / 4) / (1 + 3 / 4)),  # spaces count
  ],
)
def test_rules_for_texts_without_spaces(rules, gold, predicted, exact, f1):
  found = squad_scores.evaluate_v1({"q": ["x", gold]}, {"q": predicted}, rules)
  assert found == pytest.approx({"exact_match": 100 * exact, "f1": 100 * f1})
  answers, predictions = {"q": [gold], "none": []}, {"q": predicted, "none": ""}
  odds = {"q": -1.0, "none": 1.0}
  found = squad_scores.evaluate_v2(answers, predictions, odds, rules=rules)
  assert (found["HasAns_f1"], found["exact"]) == pytest.approx((100 * f1, 50 + 50 * exact))
  assert found["best_f1"] == pytest.approx(50 + 50 * f1)
  threshold = squad_scores.threshold_that_holds(answers, predictions, odds, rules)
  assert threshold == (0.0 if f1 else -2.0)


@pytest.mark.parametrize(
  ("text", "rules", "warns"),
  [
    ("北京大学是中国的大学。中国人民日报在北京。", "squad", True),
    ("北京大学是中国的大学。中国人民日报在北京。", "drcd", False),
    ("Donaudampfschifffahrtsgesellschaft ist ein langes Wort im Deutschen", "squad", False),
    ("서울특별시는 대한민국의 수도이자 최대 도시이다", "squad", False),
  ],
)
def test_rules_are_suggested_where_texts_have_no_spaces(text, rules, warns, caplog):
  squad_scores.warn_of_words([SquadExample("q", "?", text.split())], "dev.json", rules)
  assert ("dev.json: the texts have 21 characters between two spaces" in caplog.text) == warns
  assert ("--answer_scores=cmrc2018 or drcd" in caplog.text) == warns
