"""SQuAD's official scores: exact match, F1, and the best threshold for "no answer".

  evaluate_v1({"q1": ["in 1997", "1997"]}, {"q1": "1997"})   # {"exact_match": 100.0, "f1": 100.0}

The scores are those of evaluate-v1.1.py and evaluate-v2.0.py (Rajpurkar et al. 2016,
arXiv:1606.05250, and 2018, arXiv:1806.03822): percentages, under the same names. Other `RULES`
compare answers in languages without spaces. Pure Python.
"""

import collections
import difflib
import functools
import itertools
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from absl import logging

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)

# More characters than between two spaces of any language that has them.
_LONG_WORDS = 12

Scores = Mapping[str, float]

# The results that can select a checkpoint. In 2.0, those of questions with and without an answer
# are there if the file has such questions.
RESULTS_OF_1_1 = ("exact_match", "f1", "total")
RESULTS_OF_2_0 = (
  *("exact", "f1", "total", "best_exact", "best_f1"),
  *(f"{kind}_{name}" for kind in ("HasAns", "NoAns") for name in ("exact", "f1", "total")),
  *("HasAns_exact_if_answered", "HasAns_f1_if_answered"),
)


# Those to compare runs by; each version has its own.
HEADLINES = ("f1", "exact_match", "exact", "best_f1", "best_exact")


def normalize_answer(text: str) -> str:
  """Writes an answer in lower case, without punctuation, articles and repeated spaces.

  Example:
    >>> normalize_answer("  The (U.S.)  Congress")
    'us congress'
  """
  text = text.lower().translate(_WITHOUT_PUNCTUATION)
  return " ".join(_ARTICLES.sub(" ", text).split())


class Rules(NamedTuple):
  """How two answers are compared."""

  normalize: Callable[[str], str]
  split: Callable[[str], Sequence[str]]  # into the units that F1 counts
  overlap: Callable[[Sequence[str], Sequence[str]], int]  # counts the units of both


def _common(units: Sequence[str], others: Sequence[str]) -> int:
  return sum((collections.Counter(units) & collections.Counter(others)).values())


def _longest_common_run(units: Sequence[str], others: Sequence[str]) -> int:
  return difflib.SequenceMatcher(None, units, others, False).find_longest_match().size


# As cmrc2018_evaluate.py splits: each Chinese character (of this range), and the words of NLTK in
# the text between them, but for English contractions and "...".
_UNITS_OF_CMRC = re.compile(
  r"""[\u4e00-\u9fa5;@#$%&?!()\[\]{}<>"]|,(?!\d)|\.(?=\s*(?:[\u4e00-\u9fa5]|$))"""
  r"""|(?:(?!\.\s*(?:[\u4e00-\u9fa5]|$))[^\s\u4e00-\u9fa5;@#$%&?!()\[\]{}<>",]|,(?=\d))+"""
)
_PUNCTUATION_OF_CMRC = str.maketrans("", "", "-:_*^/\\~`+=，。：？！“”；’《》·、「」（）－～『』")
_PUNCTUATION_OF_DRCD = str.maketrans("", "", "《》？，。、；：")

RULES = {
  "squad": Rules(normalize_answer, str.split, _common),
  "cmrc2018": Rules(
    lambda text: text.lower().strip().translate(_PUNCTUATION_OF_CMRC),
    _UNITS_OF_CMRC.findall,
    _longest_common_run,
  ),
  "drcd": Rules(lambda text: normalize_answer(text.translate(_PUNCTUATION_OF_DRCD)), list, _common),
}
"""The rules of official scripts.

SQuAD's count words between spaces, in any order. Those of CMRC 2018 (Cui et al. 2019,
arXiv:1810.07366) count the longest common run of Chinese characters and words, those of DRCD (Shao
et al. 2018, arXiv:1806.00920) characters, in any order. Both ignore punctuation.
"""


def compute_exact(gold: str, predicted: str, rules: str = "squad") -> float:
  """Returns 1 if both are equal after normalization, else 0."""
  normalize = RULES[rules].normalize
  return float(normalize(gold) == normalize(predicted))


def compute_f1(gold: str, predicted: str, rules: str = "squad") -> float:
  """Computes the harmonic mean of precision and recall over words or characters, see `RULES`.

  Two empty answers agree completely, as in SQuAD 2.0.

  Example:
    >>> round(compute_f1("the white house", "white house lawn"), 3)
    0.8
    >>> compute_f1("", ""), compute_f1("", "house")
    (1.0, 0.0)
    >>> [round(compute_f1("北京大学", "北京", rules), 3) for rules in RULES]
    [0.0, 0.667, 0.667]
  """
  normalize, split, overlap = RULES[rules]
  gold_words, words = split(normalize(gold)), split(normalize(predicted))
  if not gold_words or not words:
    return float(gold_words == words)
  common = overlap(gold_words, words)
  if not common:
    return 0.0
  precision, recall = common / len(words), common / len(gold_words)
  return 2 * precision * recall / (precision + recall)


def evaluate_v1(
  answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str], rules: str = "squad"
) -> dict[str, float]:
  """Computes `exact_match` and `f1` of evaluate-v1.1.py, percentages.

  The closest correct answer counts. A question without a prediction has score 0.
  """

  def f1(gold, predicted):
    # 1.1 has no empty answers; the rule that two empty answers agree is of 2.0.
    return compute_f1(gold, predicted, rules) if RULES[rules].normalize(gold) else 0.0

  exact = _best_scores(answers, predictions, _metrics(rules)["exact"])
  return {
    "exact_match": _percent(exact.values(), len(answers)),
    "f1": _percent(_best_scores(answers, predictions, f1).values(), len(answers)),
  }


def evaluate_v2(
  answers: Mapping[str, Sequence[str]],
  predictions: Mapping[str, str],
  null_odds: Mapping[str, float] | None = None,
  best_answers: Mapping[str, str] | None = None,
  rules: str = "squad",
) -> dict[str, float]:
  """Computes the scores of evaluate-v2.0.py.

  Args:
    answers: id -> correct answers, an empty list for a question without an answer.
    predictions: id -> predicted text, "" for no answer. Questions that are missing do not count.
    null_odds: id -> odds of no answer, on any scale. If given, the best thresholds are added: a
      question is answered if its odds are not greater.
    best_answers: the answers below the threshold; by default `predictions`, as in the official
      script, where thresholds above that of `predictions` can then not improve the score.
    rules: of `RULES`.

  Returns:
    `exact`, `f1`, `total`; the same for questions with (`HasAns_`) and without an answer
    (`NoAns_`), if any; `best_exact`, `best_exact_thresh`, `best_f1`, `best_f1_thresh`.
  """
  gold, metrics = _with_text(answers, rules), _metrics(rules)
  exact, f1 = (_best_scores(gold, predictions, metric) for metric in metrics.values())
  results = _averages(exact, f1, exact)
  for prefix, has_answer in (("HasAns", True), ("NoAns", False)):
    chosen = [qid for qid in exact if bool(answers[qid]) == has_answer]
    if chosen:
      results |= {f"{prefix}_{k}": v for k, v in _averages(exact, f1, chosen).items()}
  if null_odds is not None:
    best_answers = predictions if best_answers is None else best_answers
    for name, metric in metrics.items():
      scores = _best_scores(gold, best_answers, metric)
      best, threshold = find_best_threshold(answers, best_answers, scores, null_odds)
      results |= {f"best_{name}": best, f"best_{name}_thresh": threshold}
  return results


def evaluate_answers(
  answers: Iterable, version_2_with_negative: bool, rules: str = "squad"
) -> dict[str, float]:
  """Computes the scores of answers to questions whose correct answers are known.

  Args:
    answers: `squad_answers.QuestionAnswers`.
    version_2_with_negative: whether to use the rules of 2.0, with the best thresholds, or of 1.1.
    rules: of `RULES`.

  Returns:
    Those of `evaluate_v1` and the `total` of questions; or those of `evaluate_v2`, and
    `best_f1_null_score_diff_threshold`: see `threshold_that_holds`; and `HasAns_exact_if_answered`
    and `HasAns_f1_if_answered`: the scores of the answerable questions if all were answered.
  """
  by_id = {answer.example.qas_id: answer for answer in answers}
  gold = {qid: answer.example.answers for qid, answer in by_id.items()}
  predictions = {qid: answer.prediction.text for qid, answer in by_id.items()}
  if not version_2_with_negative:
    return {**evaluate_v1(gold, predictions, rules), "total": len(gold)}
  null_odds = {qid: answer.null_odds for qid, answer in by_id.items()}
  best = {qid: a.best_answer.text if a.best_answer else "" for qid, a in by_id.items()}
  results = evaluate_v2(gold, predictions, null_odds, best, rules)
  results["best_f1_null_score_diff_threshold"] = threshold_that_holds(gold, best, null_odds, rules)
  answerable = {qid: texts for qid, texts in gold.items() if texts}
  if answerable:
    forced = evaluate_v2(answerable, best, rules=rules)
    results |= {f"HasAns_{name}_if_answered": forced[name] for name in ("exact", "f1")}
  return results


def warn_of_words(examples: Iterable, path: str, rules: str) -> None:
  """Warns where SQuAD's rules compare words of texts without spaces."""
  words = [word for example in examples for word in example.doc_tokens]
  length = sum(map(len, words)) / max(len(words), 1)
  if rules == "squad" and length > _LONG_WORDS:
    logging.warning(
      "%s: the texts have %.0f characters between two spaces, and F1 compares what is between "
      "spaces. Compare characters: --answer_scores=cmrc2018 or drcd.",
      path,
      length,
    )


def known_scores(
  answers: Sequence, version_2_with_negative: bool, path: str, rules: str = "squad"
) -> dict[str, float]:
  """Applies `evaluate_answers` to questions of a file whose correct answers are known, if any."""
  known = [each for each in answers if each.example.answers is not None]
  if not known:
    logging.info("%s has no correct answers: no scores.", path)
    return {}
  if len(known) < len(answers):
    logging.warning("Scores are those of %d questions of %d.", len(known), len(answers))
  return evaluate_answers(known, version_2_with_negative, rules)


def find_best_threshold(
  answers: Mapping[str, Sequence[str]],
  predictions: Mapping[str, str],
  scores: Scores,
  null_odds: Mapping[str, float],
) -> tuple[float, float]:
  """Finds the threshold on the null odds with the best score.

  Starts with no question answered, then answers one after another, the most certain first. `scores`
  are of the predictions; the other arguments are those of `evaluate_v2`.

  Returns:
    The best score as a percentage, and the threshold. As in the official script the latter is 0.0
    if no answers at all score best, although some odds may be below that; and of questions with
    equal odds one may be answered and another not. `threshold_that_holds` can be used instead.
  """
  score = best_score = float(sum(not answers[qid] for qid in scores))
  best_threshold = 0.0
  for qid in sorted(null_odds, key=null_odds.get):
    if qid not in scores:
      continue
    if answers[qid]:
      score += scores[qid]
    elif predictions[qid]:
      score -= 1
    if score > best_score:
      best_score, best_threshold = score, null_odds[qid]
  return 100.0 * best_score / len(scores), best_threshold


def threshold_that_holds(
  answers: Mapping[str, Sequence[str]],
  predictions: Mapping[str, str],
  null_odds: Mapping[str, float],
  rules: str = "squad",
) -> float:
  """Finds the threshold that gives the best F1 when used: `--null_score_diff_threshold`.

  It lies halfway between the odds of the questions that are answered and of those that are not, or
  1 beyond all of them, so that rounding does not matter. A question without an answer has no
  correct ones, and "" as prediction for none.

  Example:
    >>> threshold_that_holds({"a": ["x"], "b": []}, {"a": "x", "b": "y"}, {"a": -3.0, "b": 1.0})
    -1.0
    >>> threshold_that_holds({"a": ["x"], "b": []}, {"a": "y", "b": "y"}, {"a": -3.0, "b": 1.0})
    -4.0
  """
  f1 = _best_scores(_with_text(answers, rules), predictions, _metrics(rules)["f1"])
  gains: dict[float, float] = collections.defaultdict(float)
  for qid, value in null_odds.items():
    # What is gained by answering it: an unanswerable question counts 1 without an answer.
    gains[value] += f1[qid] - (not answers[qid])
  odds = sorted(gains)
  # Of n different odds the first `count` are answered.
  totals = list(itertools.accumulate((gains[value] for value in odds), initial=0.0))
  count = max(range(len(totals)), key=totals.__getitem__)
  neighbours = [odds[0] - 2, *odds, odds[-1] + 2]
  return (neighbours[count] + neighbours[count + 1]) / 2


def _metrics(rules: str) -> dict[str, Callable[[str, str], float]]:
  metrics = {"exact": compute_exact, "f1": compute_f1}
  return {name: functools.partial(metric, rules=rules) for name, metric in metrics.items()}


def _with_text(answers: Mapping[str, Sequence[str]], rules: str) -> dict[str, Sequence[str]]:
  """Leaves answers out that consist of punctuation and articles, and would become empty."""
  normalize = RULES[rules].normalize
  return {qid: [a for a in texts if normalize(a)] or [""] for qid, texts in answers.items()}


def _best_scores(answers, predictions, metric: Callable[[str, str], float]) -> dict[str, float]:
  """Scores each prediction against the correct answer closest to it."""
  return {
    qid: max(metric(text, predictions[qid]) for text in texts)
    for qid, texts in answers.items()
    if qid in predictions
  }


def _averages(exact: Scores, f1: Scores, chosen: Iterable[str]) -> dict[str, float]:
  chosen = list(chosen)
  return {
    "exact": _percent((exact[qid] for qid in chosen), len(chosen)),
    "f1": _percent((f1[qid] for qid in chosen), len(chosen)),
    "total": len(chosen),
  }


def _percent(scores: Iterable[float], count: int) -> float:
  return 100.0 * sum(scores) / count if count else 0.0
