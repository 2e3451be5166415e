"""How a task's examples and answers are shown to people: what a report asks of a task.

  shown = decoder.shown()                       # of the kind of task, `Decoder.shown`
  case = shown.case(item, "1", answer)            # one example: its texts, what is right, how wrong
  shown.baseline(["1", "1", "0"])                 # what a model without a thought would score

Everything here is plain values; the page around them is `bert/reports`. A task of one's own returns
an own subclass of `Shown` from `Task.shown`, or one of those here. Python and NumPy alone.
"""

import dataclasses
import math
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

# The least probability of float32: its logarithm is still a number.
_LEAST = float(np.finfo(np.float32).tiny)


class Mark(NamedTuple):
  """A part of a text that stands out."""

  start: int  # its first character
  end: int  # the one after its last
  label: str = ""


class Passage(NamedTuple):
  """A text of an example. Marks do not overlap, and are in the order of the text."""

  name: str
  text: str
  marks: tuple[Mark, ...] = ()


class Option(NamedTuple):
  """One of the answers that were possible."""

  name: str
  share: float  # from 0 to 1
  is_gold: bool = False
  is_predicted: bool = False


class Baseline(NamedTuple):
  """What the best answer that is always the same would score."""

  what: str  # a sentence, without its end where there is a value
  value: float | None = None  # a share
  is_of_examples: bool = True  # whether it is to be compared with the share of right examples


@dataclasses.dataclass
class Case:
  """One example with its answer.

  Attributes:
    passages: its texts.
    gold: the gold answer, in words; None where that is unknown.
    predicted: what the model says; "" where `values` say it.
    is_right: whether both agree; None where that is a matter of degree, or unknown.
    loss: how wrong the answer is, more is worse; None where that is unknown.
    confidence: the probability of what the model says; None where it gives none.
    group: of what is right, by which results are listed; "" where there are none.
    pairs: (gold, predicted) for each decision; the cells of a confusion matrix.
    gold_parts, predicted_parts: what is found or not, such as entities; the first of each is
      its type, by which precision and recall are listed.
    options: the possible answers, where there are some.
    values: further values by name.
  """

  passages: Sequence[Passage]
  gold: str | None
  predicted: str
  is_right: bool | None = None
  loss: float | None = None
  confidence: float | None = None
  group: str = ""
  pairs: Sequence[tuple[str, str]] = ()
  gold_parts: frozenset[tuple] = frozenset()
  predicted_parts: frozenset[tuple] = frozenset()
  options: Sequence[Option] = ()
  values: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Shown:
  """How examples of a task are shown; by default the values of an answer, in a table.

  Attributes:
    loss_name: what `Case.loss` is called.
    loss_help: how it is computed, a sentence.
    group_name: what `Case.group` is.
    part_name: what the parts are: the plural of a word; "" where answers have none.
    number_name: what answers are numbers of, to be drawn over the gold ones; "" of others.
    classes: names in the order of the rows of a confusion matrix; none where there is none.
  """

  loss_name: ClassVar[str] = ""
  loss_help: ClassVar[str] = ""
  group_name: ClassVar[str] = ""
  part_name: ClassVar[str] = ""
  number_name: str = ""
  classes: Sequence[str] = ()

  def case(self, item: Mapping[str, Any], gold: Any, answer: Mapping[str, Any]) -> Case:
    """Shows one example.

    Args:
      item: its texts by name, as a `Predictor` takes them.
      gold: what is right, as `Task.gold` returns it; None where that is unknown.
      answer: what the `Predictor` answers.
    """
    values = {name: in_words(value) for name, value in answer.items()}
    right = None if gold is None else in_words(gold)
    return Case(passages_of(item), right, "", values=values)

  def baseline(self, gold: Sequence[Any]) -> Baseline | None:
    """Says what the best constant answer would score; None where that cannot be said."""
    return None


class Classes(Shown):
  """One of several classes, each with a probability."""

  loss_name = "loss"
  loss_help = "The loss of an example is −ln of the probability of its gold label."
  group_name = "label"

  def __init__(self, labels: Sequence[str], probabilities: str = "probabilities"):
    """Takes C names, and the name of the C probabilities in an answer."""
    self.classes = list(labels)
    self._probabilities = probabilities

  def case(self, item, gold, answer):
    """Shows all classes, or the first of many."""
    shares = np.asarray(answer[self._probabilities], np.float64).ravel()
    predicted = self.classes[int(shares.argmax())]
    right = None if gold is None else str(gold)
    case = Case(passages_of(item), right, predicted, confidence=float(shares.max()))
    options = (
      Option(name, float(share), name == right, name == predicted)
      for name, share in zip(self.classes, shares, strict=True)
    )
    ranked = sorted(options, key=lambda each: -each.share)
    case.options = [each for n, each in enumerate(ranked) if n < 5 or each.is_gold]
    if right is not None:
      case.is_right, case.group, case.pairs = predicted == right, right, [(right, predicted)]
    if right in self.classes:
      case.loss = -math.log(max(float(shares[self.classes.index(right)]), _LEAST))
    return case

  def baseline(self, gold):
    """Names the most frequent class."""
    known = [str(each) for each in gold if each is not None]
    if not known:
      return None
    most = max(sorted(set(known)), key=known.count)
    share = known.count(most) / len(known)
    return Baseline(f"Always “{most}”, the most frequent label, would be right for", share)


class ManyLabels(Shown):
  """Any number of several labels, each with a probability."""

  loss_name = "loss"
  loss_help = (
    "The loss of an example is −ln of the probability of each gold value, averaged over all labels."
  )
  part_name = "labels"

  def __init__(self, labels: Sequence[str]):
    """Takes C names."""
    self._labels = list(labels)

  def case(self, item, gold, answer):
    """Shows the labels that are gold or predicted."""
    shares = np.asarray(answer["probabilities"], np.float64)
    predicted = [bool(each) for each in answer["labels"]]
    right = None if gold is None else [label in gold for label in self._labels]
    options = [
      Option(label, float(share), right is not None and right[n], predicted[n])
      for n, (label, share) in enumerate(zip(self._labels, shares, strict=True))
      if predicted[n] or (right is not None and right[n])
    ]
    found = Case(passages_of(item), None, self._joined(predicted), options=options)
    if right is None:
      return found
    of_right = np.where(right, shares, 1 - shares)
    found.gold, found.is_right = self._joined(right), right == predicted
    found.loss = float(np.mean(-np.log(np.maximum(of_right, _LEAST))))
    found.gold_parts, found.predicted_parts = self._parts(right), self._parts(predicted)
    return found

  def _joined(self, chosen):
    return ", ".join(n for n, is_in in zip(self._labels, chosen, strict=True) if is_in) or "none"

  def _parts(self, chosen):
    return frozenset((n,) for n, is_in in zip(self._labels, chosen, strict=True) if is_in)

  def baseline(self, gold):
    """Says how many single decisions are right if each label is always or never predicted."""
    known = [each for each in gold if each is not None]
    if not known:
      return None
    shares = np.mean([[label in each for label in self._labels] for each in known], axis=0)
    value = float(np.mean(np.maximum(shares, 1 - shares)))
    return Baseline("The best constant answer is right for single labels in", value, False)


class Numbers(Shown):
  """A number, compared with the gold one."""

  loss_name = "squared error"
  loss_help = "The error of an example is the square of the difference to its gold score."

  def __init__(self, name: str):
    """Takes the name of the number in an answer."""
    self.number_name = name

  def case(self, item, gold, answer):
    """Shows both numbers."""
    predicted = float(np.ravel(answer[self.number_name])[0])
    case = Case(passages_of(item), None, in_words(predicted))
    if gold is not None:
      right = float(gold)
      case.gold, case.loss = in_words(right), (predicted - right) ** 2
      case.pairs = [(str(right), str(predicted))]
    return case

  def baseline(self, gold):
    """Says what the mean of the right numbers would score."""
    known = [float(each) for each in gold if each is not None]
    if not known:
      return None
    mean, variance = float(np.mean(known)), float(np.var(known))
    what = f"Always {in_words(mean)}, the mean, has a correlation of 0 and a squared error of"
    return Baseline(f"{what} {in_words(variance)}.")


# ---------------------------------------------------------------------------------------------
# Values.


def passages_of(item: Mapping[str, Any]) -> list[Passage]:
  """Returns the texts of an item, one after another; one that is missing is empty."""
  return [
    Passage(name, "" if text is None else str(text))
    for name, value in item.items()
    for text in (value if isinstance(value, (list, tuple)) else [value])
  ]


def is_visible(text: str) -> bool:
  r"""Tells whether a text has a character that is seen.

  Example:
    >>> is_visible(" a"), is_visible(" \u200b\n"), is_visible("")
    (True, False, False)
  """
  return any(unicodedata.category(char)[0] not in "ZC" for char in text)


def drop_unused(cases: Sequence[Case]) -> None:
  """Removes the passages of names that are blank in all cases, such as a second text of no task.

  Blank texts of other names stay: they are found in the data, and explain an answer.
  """
  used = {each.name for case in cases for each in case.passages if is_visible(each.text)}
  for case in cases:
    case.passages = [each for each in case.passages if each.name in used] or case.passages[:1]


def in_words(value: Any) -> str:
  """Writes a value: numbers with four digits, arrays with their first numbers.

  Example:
    >>> in_words(0.123456), in_words(3), in_words([0.5, 1.0]), in_words("a")
    ('0.1235', '3', '0.5, 1', 'a')
  """
  if isinstance(value, bool) or not isinstance(value, (float, np.floating, np.ndarray, list)):
    return str(value)
  if np.ndim(value) == 0:
    return f"{float(np.asarray(value).item()):.4g}"
  flat = list(np.ravel(np.asarray(value, object)))
  return ", ".join(map(in_words, flat[:8])) + (f", … ({len(flat)})" if len(flat) > 8 else "")
