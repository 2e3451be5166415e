"""Two runs on the same examples: what one gets right and the other wrong, and how sure that is.

Letters in shapes: N = number of examples.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bert.reports.subject import Examples
from bert.tasks.shown import Case

_SEED = 12345
_NUM_SAMPLES = 10_000
_SAMPLES_AT_ONCE = 200  # of 2000 examples 3 MB
_CONFIDENCE = 0.95
# (case of the first run, case of the second)
Pair = tuple[Case, Case]


class Counts(NamedTuple):
  """How many examples both runs, one of them, or none answered right."""

  both: int
  only_first: int
  only_second: int
  none: int

  @property
  def total(self) -> int:
    """Number of examples."""
    return sum(self)


class Difference(NamedTuple):
  """A mean over examples, of both runs."""

  name: str
  first: float
  second: float
  difference: float  # second - first
  interval: tuple[float, float] | None  # of the difference; None for a single example
  is_share: bool = False


def is_same_set(first: Examples, second: Examples) -> bool:
  """Tells whether both runs answered the same examples: places, texts, and what is right."""
  return _identities(first) == _identities(second)


def _identities(examples: Examples) -> list[tuple]:
  return [
    (number, case.gold, *((each.name, each.text) for each in case.passages))
    for number, case in zip(examples.numbers, examples.cases, strict=True)
  ]


def counts_of(pairs: Sequence[Pair]) -> Counts | None:
  """Counts; None where an answer is right by degrees, or nothing is known to be right."""
  rights = [(first.is_right, second.is_right) for first, second in pairs]
  if not rights or any(None in each for each in rights):
    return None
  kinds = [(True, True), (True, False), (False, True), (False, False)]
  return Counts(*(rights.count(kind) for kind in kinds))


def mcnemar(counts: Counts) -> float:
  """Computes the two-sided p-value of McNemar's exact test.

  If both runs were equally good, each example that only one of them gets right would be the
  first's or the second's with a probability of a half. Source: McNemar, "Note on the sampling
  error of the difference between correlated proportions or percentages", Psychometrika 12 (1947);
  recommended for two models on one test set by Dietterich, "Approximate statistical tests for
  comparing supervised classification learning algorithms", Neural Computation 10 (1998).

  Example:
    >>> mcnemar(Counts(50, 1, 9, 40)), mcnemar(Counts(50, 0, 0, 50))
    (0.021484375, 1.0)
  """
  from scipy import stats

  changed = counts.only_first + counts.only_second
  return float(stats.binomtest(counts.only_first, changed).pvalue) if changed else 1.0


def differences(pairs: Sequence[Pair], loss_name: str) -> list[Difference]:
  """Compares the share of right answers and the mean loss, as far as all examples have them."""
  found = []
  rights = [(first.is_right, second.is_right) for first, second in pairs]
  if rights and not any(None in each for each in rights):
    found.append(_difference("right answers", rights, is_share=True))
  losses = [(first.loss, second.loss) for first, second in pairs]
  if losses and loss_name and not any(None in each for each in losses):
    values = np.asarray(losses, np.float64)
    if np.isfinite(values).all():
      found.append(_difference(f"mean {loss_name}", values))
  return found


def _difference(name: str, pairs: Sequence | np.ndarray, is_share: bool = False) -> Difference:
  values = np.asarray(pairs, np.float64)  # [N, 2]
  first, second = values.mean(axis=0).tolist()
  interval = bootstrap(values[:, 1] - values[:, 0]) if len(values) > 1 else None
  return Difference(name, first, second, second - first, interval, is_share)


def bootstrap(values: np.ndarray, confidence: float = _CONFIDENCE) -> tuple[float, float]:
  """Computes an interval of the mean, by the percentiles of means of samples with replacement.

  The samples are the same each time. Of differences of two runs this is the paired bootstrap:
  Efron and Tibshirani, "An introduction to the bootstrap" (1993), chapter 13; for systems on one
  test set Koehn, "Statistical significance tests for machine translation evaluation" (2004).

  Args:
    values: float `[N]`.
    confidence: the share of such intervals that contain the mean of all possible examples.
  """
  rng = np.random.default_rng(_SEED)
  size = (_SAMPLES_AT_ONCE, len(values))
  means = [
    values[rng.integers(0, len(values), size)].mean(axis=1)
    for _ in range(_NUM_SAMPLES // _SAMPLES_AT_ONCE)
  ]
  tail = (1 - confidence) / 2
  low, high = np.quantile(np.concatenate(means), [tail, 1 - tail]).tolist()
  return low, high


def changed(pairs: Sequence[Pair], from_right: bool) -> list[int]:
  """Finds examples whose answer became wrong, or right; those whose loss changed most come first.

  Where answers are right by degrees, these are the examples whose loss rose, or fell.

  Args:
    pairs: of all examples.
    from_right: whether to find those that became wrong.
  """
  if counts_of(pairs) is not None:
    found = [n for n, (a, b) in enumerate(pairs) if (a.is_right, b.is_right) == _WAYS[from_right]]
  else:
    found = [n for n, pair in enumerate(pairs) if _rise(pair, from_right) > 0]
  return sorted(found, key=lambda n: (-_rise(pairs[n], from_right), n))


_WAYS = {True: (True, False), False: (False, True)}


def _rise(pair: Pair, from_right: bool) -> float:
  """Returns by how much the loss rose, or fell; 0 where it is unknown."""
  first, second = (each.loss for each in pair)
  if first is None or second is None or not np.isfinite([first, second]).all():
    return 0.0
  return second - first if from_right else first - second
