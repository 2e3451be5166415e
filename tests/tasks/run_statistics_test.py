"""Tests of the statistics over runs."""

import math

import numpy as np
import pytest

from bert.tasks import run_statistics


def test_the_interval_is_that_of_the_books():
  # Student's t for 7 degrees of freedom is 2.3646 (95%, two-sided).
  scores = [0.76, 0.797, 0.782, 0.771, 0.79, 0.765, 0.788, 0.78]
  half = 2.3646 * np.std(scores, ddof=1) / math.sqrt(8)
  low, high = run_statistics.interval_of_mean(scores)
  assert (low, high) == pytest.approx((np.mean(scores) - half, np.mean(scores) + half), abs=1e-6)


def test_a_summary():
  summary = run_statistics.summarize([3.0, 1.0, 2.0, 6.0])
  assert (summary.count, summary.mean, summary.minimum, summary.maximum) == (4, 3.0, 1.0, 6.0)
  assert summary.deviation == pytest.approx(math.sqrt(14 / 3))  # divisor N - 1


def test_a_single_run_has_no_spread():
  summary = run_statistics.summarize([0.5])
  assert (summary.mean, summary.deviation, summary.interval) == (0.5, None, None)
