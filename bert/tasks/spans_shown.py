"""How answers to questions are shown: the paragraph with the answer marked, and the right ones."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from bert.tasks import squad_scores
from bert.tasks.shown import Baseline, Case, Mark, Passage, Shown

NO_ANSWER = "no answer"
# Words that questions begin with.
_KINDS = ("who", "what", "when", "where", "which", "why", "how")


class Spans(Shown):
  """A part of a text that answers a question."""

  loss_name = "1 − F1"
  loss_help = (
    "Ordered by the words that answer and gold answer do not share, 1 − F1, and among equals by "
    "how sure the model was."
  )
  group_name = "question word"

  def __init__(self, rules: str = "squad"):
    """Compares answers by one of `squad_scores.RULES`."""
    self._rules = rules

  def case(self, item, gold, answer):
    """Marks the answer; `gold` are the right answers, none where there is none."""
    predicted = answer["answer"] or NO_ANSWER
    sure = float(answer["probability"])
    found = Case(_passages(item, answer), None, predicted, confidence=sure)
    if gold is None:
      return found
    right = list(dict.fromkeys(gold)) or [""]
    both = [(text, answer["answer"], self._rules) for text in right]
    best = max(itertools.starmap(squad_scores.compute_f1, both))
    found.gold = " / ".join(text or NO_ANSWER for text in right)
    found.is_right = any(itertools.starmap(squad_scores.compute_exact, both))
    found.loss = 1 - best
    found.group = _kind_of(str(item["question"]))
    return found

  def baseline(self, gold):
    """Says what never answering would score, where questions may have no answer."""
    known = [each for each in gold if each is not None]
    never = [not any(each) for each in known]
    if not any(never):
      return None
    return Baseline("Never answering would be right for", sum(never) / len(never))


def _passages(item: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Passage]:
  start, end = int(answer["start"]), int(answer["end"])
  marks = (Mark(start, end),) if 0 <= start < end else ()
  return [Passage("question", item["question"]), Passage("context", item["context"], marks)]


def _kind_of(question: str) -> str:
  words: Sequence[str] = question.lower().split()
  return next((word for word in words if word in _KINDS), "other")
