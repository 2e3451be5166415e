"""The choice among possible continuations of a text, from the score of each.

Letters in shapes: N = choices of a question.
"""

from typing import ClassVar

import numpy as np

from bert.tasks.decoding import Decoder, Explained, against_others, softmax
from bert.tasks.shown import Baseline, Classes, Passage


class ChoiceDecoder(Decoder):
  """A row for each choice; `choice` is the number of the best, `probabilities` float32 `[N]`."""

  title: ClassVar = "Multiple choice"
  inputs = ("context", "choices")
  list_inputs: ClassVar = ("choices",)
  has_raw_scores: ClassVar = True
  display = "choices"

  def rows(self, item):
    """Makes the rows of the text with each choice."""
    context, choices = (item[name] for name in self.inputs)
    return [self._row(context, choice) for choice in choices]

  def decode(self, item, rows, scores):
    """Compares the scores."""
    logits = np.concatenate([each["logits"] for each in scores])
    return {"choice": int(np.argmax(logits)), "probabilities": softmax(logits)}

  @classmethod
  def synthetic_example(cls):
    """Returns a beginning, and ends to choose from."""
    ends = ["opens an umbrella.", "waters the moon.", "is a Tuesday."]
    return {"context": "It begins to rain, so she", "choices": ends}

  def predictions(self, answer, scores, raw_scores=False):
    """Lists the numbers of the choices, from 0, as labels."""
    values = np.asarray(answer["probabilities"])
    if raw_scores:
      values = np.concatenate([each["logits"] for each in scores])
    order = np.argsort(-values, kind="stable")
    return [{"label": str(index), "score": float(values[index])} for index in order.tolist()]

  def explained(self, item, rows, answer, scores):
    """Explains what is chosen against the other choices."""
    logits = np.concatenate([each["logits"] for each in scores])
    weights = against_others(logits, answer["choice"])
    return Explained("this choice", [{"logits": weights[n : n + 1]} for n in range(len(rows))])

  def shown(self):
    """Lists the choices."""
    return Choices()


class Choices(Classes):
  """One of the choices of an example; results are listed by the place of the right one."""

  loss_help = "The loss of an example is −ln of the probability of the right choice."
  group_name = "place of the right choice"

  def __init__(self):
    super().__init__([])

  def case(self, item, gold, answer):
    """Shows the choices with their probabilities."""
    context, choices = item.values()
    places = [f"choice {number}" for number in range(1, len(choices) + 1)]
    right = None if gold is None else places[int(gold)]
    found = Classes(places).case({"context": context}, right, answer)
    found.passages = [Passage("context", context)]
    texts = dict(zip(places, choices, strict=True))
    found.options = [each._replace(name=texts[each.name]) for each in found.options]
    found.gold = None if right is None else texts[right]
    found.predicted, found.pairs = texts[found.predicted], ()
    return found

  def baseline(self, gold):
    """Names the place at which most right choices are."""
    known = [f"choice {int(each) + 1}" for each in gold if each is not None]
    found = super().baseline(known)
    what = found and found.what.replace("the most frequent label", "the most frequent place")
    return found and Baseline(what, found.value)
