"""Tables of a report: confusions, calibration, results by length, by label, by unknown words.

Letters in shapes: C = number of classes.
"""

import collections
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.reports.subject import Examples
from bert.tasks.shown import Case

_NUM_LENGTHS = 5  # groups of about equal size
_NUM_BINS = 10  # of probabilities
_FEW = 10  # examples of a class: its share of right answers is known to within 30 points


class Matrix(NamedTuple):
  """How often what is right (rows) was answered (columns): counts `[C, C]`."""

  labels: list[str]
  counts: list[list[int]]


class Group(NamedTuple):
  """Results of some of the examples."""

  name: str
  size: int
  right: float | None  # the share of right answers; None where there are none
  loss: float | None  # the mean


class TypeScore(NamedTuple):
  """Precision, recall and F1 of a type of what is found, and how many there are."""

  name: str
  precision: float
  recall: float
  f1: float
  support: int


class Bin(NamedTuple):
  """Answers of about the same probability."""

  low: float
  high: float
  size: int
  confidence: float  # the mean
  right: float  # the share


def confusion(examples: Examples) -> Matrix | None:
  """Counts pairs of what is right and what was answered; None where answers are no classes."""
  pairs = collections.Counter(pair for case in examples.cases for pair in case.pairs)
  if not pairs or examples.shown.number_name:
    return None
  occurring = sorted({label for pair in pairs for label in pair})
  known = list(examples.shown.classes)
  labels = known + [label for label in occurring if label not in known]
  return Matrix(labels, [[pairs[right, predicted] for predicted in labels] for right in labels])


def worst_first(cases: Sequence[Case]) -> list[int]:
  """Orders cases by their loss; of equals those that are wrong for sure, or right by luck."""
  return sorted(range(len(cases)), key=lambda n: (*_rank(cases[n]), n))


def _rank(case: Case) -> tuple[float, float]:
  sure = case.confidence or 0.0
  loss = -1.0 if case.loss is None else case.loss
  return -(math.inf if math.isnan(loss) else loss), -sure if loss else sure


def most_wrong(cases: Sequence[Case]) -> list[int]:
  """Finds the wrong cases, the highest loss first; all where none is wrong, or right by degrees."""
  order = worst_first(cases)
  if any(case.is_right is None for case in cases):
    return order
  return [n for n in order if not cases[n].is_right] or order


def rare_classes(examples: Examples) -> dict[str, int]:
  """Finds classes and types with few examples: figures of them are chance."""
  counts = dict(examples.label_counts)
  if not counts and len(examples.cases) == examples.total:
    counts = {each.name: each.support for each in scores_by_type(examples.cases)[:-1]}
  rare = ((name, count) for name, count in counts.items() if count < _FEW)
  return dict(sorted(rare, key=lambda each: (each[1], each[0])))


def typical(cases: Sequence[Case], count: int) -> list[int]:
  """Finds the cases around the median loss; none where there are no losses."""
  order = [n for n in worst_first(cases) if cases[n].loss is not None]
  first = max(0, (len(order) - count) // 2)
  return order[first : first + count]


def doubtful_labels(examples: Examples) -> list[int]:
  """Finds cases whose label may be wrong in the data, the most doubtful first.

  By confident learning (Northcutt et al. 2021, https://arxiv.org/abs/1911.00068): the model is as
  sure of another label as it is, on average, of the examples that have that label.
  """
  if not examples.shown.classes:
    return []
  known = [(n, c) for n, c in enumerate(examples.cases) if c.group and c.loss is not None]
  of_label = _grouped(known, lambda pair: pair[1].group)
  least = {
    label: float(np.mean([math.exp(-case.loss) for _, case in its]))
    for label, its in of_label.items()
  }
  found = [
    n
    for n, c in known
    if not c.is_right and (c.confidence or 0.0) >= least.get(c.predicted, math.inf)
  ]
  return sorted(found, key=lambda n: -examples.cases[n].loss)


def by_label(examples: Examples) -> list[Group]:
  """Results by what is right."""
  known = list(examples.shown.classes)
  groups = _grouped(examples.cases, lambda case: case.group)
  groups.pop("", None)
  order = {name: n for n, name in enumerate(known)}
  names = sorted(groups, key=lambda name: (order.get(name, len(order)), -len(groups[name]), name))
  return [_group(name, groups[name]) for name in names]


def by_length(examples: Examples) -> list[Group]:
  """Results by the number of tokens, in groups of about equal size."""
  lengths = np.asarray(examples.lengths)
  if not len(lengths):
    return []
  shares = np.linspace(0, 1, _NUM_LENGTHS + 1)
  edges = np.unique(np.quantile(lengths, shares, method="higher")).tolist()
  found = []
  for n, (low, high) in enumerate(itertools.pairwise(edges)):
    low = low if n == 0 else low + 1
    inside = (lengths >= low) & (lengths <= high)
    if inside.any():
      cases = list(itertools.compress(examples.cases, inside))
      found.append(_group(f"{low} to {high}" if low < high else f"{low}", cases))
  return found or [_group(str(edges[0]), examples.cases)]


def by_unknown_words(examples: Examples) -> list[Group]:
  """Results of examples with and without unknown words; nothing where all are known."""
  groups = _grouped(zip(examples.cases, examples.unknown, strict=True), lambda pair: pair[1] > 0)
  if True not in groups:
    return []
  names = {False: "all words known", True: "with unknown words"}
  return [_group(names[key], [case for case, _ in groups[key]]) for key in sorted(groups)]


def scores_by_type(cases: Iterable[Case]) -> list[TypeScore]:
  """Scores of what is found, by its type, and of all."""
  counts: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
  for case in cases:
    for name, parts in (
      ("right", case.gold_parts & case.predicted_parts),
      ("gold", case.gold_parts),
      ("predicted", case.predicted_parts),
    ):
      for part in parts:
        counts[part[0]][name] += 1
  if not counts:
    return []
  found = [_type_score(name, counts[name]) for name in sorted(counts)]
  return [*found, _type_score("all", sum(counts.values(), collections.Counter()))]


def calibration(cases: Iterable[Case]) -> list[Bin]:
  """Groups answers by their probability; nothing where they have none, or are right by degrees."""
  known = [(c.confidence, c.is_right) for c in cases if c.confidence is not None]
  pairs = np.array([pair for pair in known if pair[1] is not None], np.float64).reshape(-1, 2)
  found = []
  for n in range(_NUM_BINS):
    low, high = n / _NUM_BINS, (n + 1) / _NUM_BINS
    inside = pairs[np.minimum((pairs[:, 0] * _NUM_BINS).astype(int), _NUM_BINS - 1) == n]
    if len(inside):
      found.append(Bin(low, high, len(inside), *map(float, inside.mean(axis=0))))
  return found


def calibration_error(bins: Sequence[Bin]) -> float:
  """Computes the expected calibration error: the mean distance of probability and share of right.

  Example:
    >>> calibration_error([Bin(0.5, 0.6, 3, 0.5, 0.5), Bin(0.9, 1.0, 1, 1.0, 0.0)])
    0.25
  """
  total = sum(each.size for each in bins)
  return sum(each.size * abs(each.confidence - each.right) for each in bins) / max(total, 1)


def _grouped(values: Iterable, key: Callable[[Any], Any]) -> dict[Any, list]:
  groups = collections.defaultdict(list)
  for value in values:
    groups[key(value)].append(value)
  return dict(groups)


def _group(name: str, cases: Sequence[Case]) -> Group:
  right = [case.is_right for case in cases if case.is_right is not None]
  losses = [case.loss for case in cases if case.loss is not None]
  return Group(name, len(cases), _mean(right), _mean(losses))


def _mean(values: Sequence) -> float | None:
  return float(np.mean(values)) if values else None


def _type_score(name: str, counts: collections.Counter) -> TypeScore:
  precision = counts["right"] / max(counts["predicted"], 1)
  recall = counts["right"] / max(counts["gold"], 1)
  f1 = 2 * precision * recall / (precision + recall) if counts["right"] else 0.0
  return TypeScore(name, precision, recall, f1, counts["gold"])
