"""How named entities are shown: marked in the text, those that are right and those that were found.

Where tags are no entities, parts of speech say, each word is one.
"""

import math
from collections.abc import Sequence

from bert.tasks import label_schemes
from bert.tasks.shown import Baseline, Case, Mark, Passage, Shown

NOTHING = "no entity"


class Tags(Shown):
  """Entities in a text."""

  loss_name = "wrong entities"
  loss_help = (
    "Ordered by the number of entities that are missing or wrong, and among equals by how sure "
    "the model was of its tags."
  )
  part_name = "entities"

  def __init__(self, scheme: str = "bio"):
    """Takes the scheme of the model's labels."""
    self._scheme = scheme

  def case(self, item, gold, answer):
    """Marks both in the text; `gold` are the labels of its words."""
    text = " ".join(item["words"]) if "words" in item else item["text"]
    places = list(zip(map(int, answer["starts"]), map(int, answer["ends"]), strict=True))
    predicted = self._parts(answer["tags"])
    found = Case([Passage("predicted", text, _marks(predicted, places))], None, _listed(predicted))
    sure = [float(each) for each in answer["probabilities"]]
    found.confidence = math.prod(sure) if sure else None  # words are labelled independently
    found.predicted_parts = frozenset(predicted)
    if gold is None or len(gold) != len(places):
      return found
    right = self._parts(gold)
    found.passages = [Passage("gold", text, _marks(right, places)), *found.passages]
    found.gold, found.gold_parts = _listed(right), frozenset(right)
    found.is_right = found.gold_parts == found.predicted_parts
    found.loss = float(len(found.gold_parts ^ found.predicted_parts))
    found.pairs = _pairs(right, predicted)
    return found

  def _parts(self, tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Returns type, first word and the one after the last of each entity."""
    if self._scheme == "plain":
      return [(tag, n, n + 1) for n, tag in enumerate(tags) if tag != "O"]
    return [(e.type, e.start, e.end) for e in label_schemes.entities_of(tags, self._scheme)]

  def baseline(self, gold):
    """Says what marking nothing would score."""
    tags = [tag for each in gold if each is not None for tag in each]
    if not tags:
      return None
    what = "Marking nothing has an F1 of 0, and the right label for words in"
    return Baseline(what, sum(tag == "O" for tag in tags) / len(tags), is_of_examples=False)


def _marks(parts, places) -> tuple[Mark, ...]:
  return tuple(Mark(places[first][0], places[end - 1][1], kind) for kind, first, end in parts)


def _listed(parts) -> str:
  return ", ".join(kind for kind, _, _ in parts) or NOTHING


def _pairs(right, predicted) -> list[tuple[str, str]]:
  """Pairs the types of the same words; what the other side has not is `NOTHING`."""
  of_right = {each[1:]: each[0] for each in right}
  of_predicted = {each[1:]: each[0] for each in predicted}
  return [
    (of_right.get(place, NOTHING), of_predicted.get(place, NOTHING))
    for place in sorted({*of_right, *of_predicted})
  ]
