"""What several runs of the same settings say together: mean, spread, and an interval of the mean.

  summary = summarize([0.760, 0.797, 0.782])
  summary.mean, summary.deviation, summary.interval

Pure Python, and scipy for the quantile.
"""

import collections
import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence

CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Summary:
  """The scores of several runs."""

  count: int  # of runs
  mean: float  # of their scores
  deviation: float | None  # the sample standard deviation (divisor N - 1); None for a single run
  interval: tuple[float, float] | None  # of the mean, see `interval_of_mean`; None for a single run
  minimum: float  # lowest score
  maximum: float  # highest score


def summarize(scores: Sequence[float]) -> Summary:
  """Summarizes at least one score.

  Example:
    >>> summary = summarize([1.0, 2.0, 3.0])
    >>> summary.mean, summary.deviation, [round(bound, 3) for bound in summary.interval]
    (2.0, 1.0, [-0.484, 4.484])
  """
  several = len(scores) > 1
  return Summary(
    len(scores),
    statistics.fmean(scores),
    statistics.stdev(scores) if several else None,
    interval_of_mean(scores) if several else None,
    min(scores),
    max(scores),
  )


def interval_of_mean(
  scores: Sequence[float], confidence: float = CONFIDENCE
) -> tuple[float, float]:
  """Computes the bounds of the mean by Student's t: mean ± t * deviation / sqrt(N).

  It holds for two or more independent runs whose scores are about normally distributed; runs that
  failed make it wide, and are no normal distribution. `confidence` is the share of such intervals
  that contain the true mean.
  """
  from scipy import stats

  count, mean = len(scores), statistics.fmean(scores)
  quantile = float(stats.t.ppf((1 + confidence) / 2, df=count - 1))
  half = quantile * statistics.stdev(scores) / math.sqrt(count)
  return mean - half, mean + half


# ---------------------------------------------------------------------------------------------
# Scores as words.


def title(metric: str) -> str:
  """Writes the name of a metric for people.

  Example:
    >>> title("eval_f1_LOC"), title("eval_accuracy_mismatched"), title("exact_match")
    ('f1 LOC', 'accuracy (mismatched)', 'exact match')
  """
  name = metric.removeprefix("eval_")
  if name.endswith("_mismatched"):
    return f"{title(name.removesuffix('_mismatched'))} (mismatched)"
  return name.replace("_", " ")


def titles(metrics: Iterable[str]) -> dict[str, str]:
  """Writes the names of some metrics so that they differ: `title`, but where two share that.

  Example:
    >>> titles(["eval_accuracy", "eval_loss", "loss"])
    {'eval_accuracy': 'accuracy', 'eval_loss': 'eval_loss', 'loss': 'loss'}
  """
  found = {name: title(name) for name in metrics}
  often = {text for text, count in collections.Counter(found.values()).items() if count > 1}
  return {name: name if text in often else text for name, text in found.items()}


def shown(metric: str, value: float) -> str:
  """Writes a number as tables have it: shares with four digits, SQuAD's percentages with two.

  Example:
    >>> shown("eval_accuracy", 0.79657), shown("f1", 46.2)
    ('0.7966', '46.20')
  """
  return f"{value:.4f}" if metric.startswith("eval_") else f"{value:.2f}"
