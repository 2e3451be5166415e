"""How sure a result is: its interval over examples, as if others like them had been evaluated.

  interval("eval_accuracy", 0.78, subject.examples, 408)    # Interval(low=0.737, high=0.817, ...)

A share of right answers has Wilson's interval (Wilson 1927,
https://doi.org/10.1080/01621459.1927.10502953). Other results have percentiles of a bootstrap
(Efron and Tibshirani 1993, chapter 13), if this module computes the same value from all answers.
Seeds, another source of chance, are not in it.

Letters in shapes: N = examples, R = samples of them, C = classes.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bert.reports.subject import Examples

_Z = 1.959964  # of 95 % of a normal distribution
_NUM_SAMPLES = 1000
_SEED = 12345
_TOLERANCE = 2e-3  # between the result and what is computed here: of rounding, and close calls
# From samples, places of examples [R, N], to the value of each.
Statistic = Callable[[np.ndarray], np.ndarray]


class Interval(NamedTuple):
  """An interval of 95 % confidence."""

  low: float
  high: float
  num_examples: int
  method: str


def interval(
  name: str, value: float, examples: Examples | None, evaluated: int | None
) -> Interval | None:
  """Computes the interval of a result; None where it cannot be said.

  Args:
    name: of the result, as in `eval_results.txt`.
    value: of the result.
    examples: that were answered, with their answers.
    evaluated: the number of examples of which the result is.
  """
  scale = 1 if name.startswith("eval_") else 100  # SQuAD's are percentages
  plain = name.removeprefix("eval_").removeprefix("best_")
  share, count = value / scale, evaluated or (examples.total if examples else 0)
  if not math.isfinite(share):
    return None
  if plain in ("accuracy", "exact_match", "exact") and count and 0 <= share <= 1:
    low, high = wilson(share, count)
    return Interval(scale * low, scale * high, count, "Wilson")
  is_whole = examples is not None and len(examples.cases) == examples.total == count
  if not is_whole or count < 2 or (statistic := _statistic(plain, examples)) is None:
    return None
  everything = np.arange(count)[None]
  if not abs(float(statistic(everything)[0]) - share) <= _TOLERANCE:
    return None
  samples = np.random.default_rng(_SEED).integers(0, count, (_NUM_SAMPLES, count))
  values = np.concatenate([statistic(part) for part in np.array_split(samples, 20)])
  low, high = np.nanquantile(values, [0.025, 0.975]).tolist()
  return Interval(scale * low, scale * high, count, "bootstrap")


def wilson(share: float, count: int) -> tuple[float, float]:
  """Computes Wilson's score interval of a share.

  Example:
    >>> [round(bound, 4) for bound in wilson(0.9, 10)]
    [0.5958, 0.9821]
  """
  middle = (share + _Z**2 / (2 * count)) / (1 + _Z**2 / count)
  root = math.sqrt(share * (1 - share) / count + _Z**2 / (4 * count**2))
  half = _Z * root / (1 + _Z**2 / count)
  return max(0.0, middle - half), min(1.0, middle + half)


def _statistic(name: str, examples: Examples) -> Statistic | None:
  """Finds how a result is computed from the answers; None of an unknown one."""
  cases = examples.cases
  if examples.shown.number_name and all(len(case.pairs) == 1 for case in cases):
    pairs = np.array([case.pairs[0] for case in cases], np.float64)
    return _of_numbers(name, pairs)
  if name == "f1" and any(case.gold_parts or case.predicted_parts for case in cases):
    found = [
      (len(c.gold_parts & c.predicted_parts), len(c.gold_parts) + len(c.predicted_parts))
      for c in cases
    ]
    right, both = np.array(found, np.float64).T
    return lambda at: 2 * right[at].sum(1) / np.maximum(both[at].sum(1), 1)
  if name == "f1" and examples.shown.loss_name == "1 − F1":
    losses = np.array([math.nan if case.loss is None else case.loss for case in cases])
    return lambda at: (1 - losses[at]).mean(1)
  labels = list(examples.shown.classes)
  if labels and all(len(c.pairs) == 1 and {*c.pairs[0]} <= {*labels} for c in cases):
    cells = [labels.index(c.pairs[0][0]) * len(labels) + labels.index(c.pairs[0][1]) for c in cases]
    return _of_classes(name, np.array(cells), len(labels))
  return None


def _of_numbers(name: str, pairs: np.ndarray) -> Statistic | None:
  """Returns the correlation of samples of gold and predicted numbers, `[N, 2]`."""
  if name not in ("pearson", "spearman") or not np.isfinite(pairs).all():
    return None

  def correlation(at):
    sides = [pairs[at, n] for n in (0, 1)]  # [R, N] each
    if name == "spearman":
      from scipy import stats

      sides = [stats.rankdata(side, axis=1) for side in sides]
    gold, predicted = (side - side.mean(1, keepdims=True) for side in sides)
    norm = np.sqrt((gold**2).sum(1) * (predicted**2).sum(1))
    return (gold * predicted).sum(1) / np.where(norm == 0, np.inf, norm)

  return correlation


def _of_classes(name: str, cells: np.ndarray, count: int) -> Statistic | None:
  """Returns a score of samples of decisions, each `gold * C + predicted`; as in `tasks.metrics`."""
  if name == "f1":
    name = "f1_binary" if count == 2 else "f1_macro"
  if name not in ("matthews_corrcoef", "f1_binary", "f1_macro"):
    return None

  def score(at):
    counts = np.array([np.bincount(row, minlength=count * count) for row in cells[at]])
    table = counts.reshape(-1, count, count).astype(np.float64)  # [R, C, C]
    right, gold, predicted = np.einsum("rcc->rc", table), table.sum(2), table.sum(1)
    if name == "matthews_corrcoef":
      total = table.sum((1, 2))
      norm = (total**2 - (gold**2).sum(1)) * (total**2 - (predicted**2).sum(1))
      above = right.sum(1) * total - (gold * predicted).sum(1)
      return above / np.sqrt(np.where(norm == 0, np.inf, norm))
    scores = 2 * right / np.maximum(gold + predicted, 1)
    if name == "f1_binary":
      return scores[:, 1]
    occurs = gold + predicted > 0
    return (scores * occurs).sum(1) / np.maximum(occurs.sum(1), 1)

  return score
