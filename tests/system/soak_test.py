"""Half an hour of training, evaluation, export and prediction in one process leaks nothing. Slow:

python -m pytest -m slow tests/system/soak_test.py            SOAK_MINUTES=5 for less
"""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from tools import several_devices

# Until caches are filled; as a share of all cycles.
WARM_UP = 0.25


def growth(values) -> float:
  """Growth per cycle: the slope of the line through the figures.

  Example:
    >>> round(growth([5, 7, 9, 11]), 6)
    2.0
  """
  return float(np.polyfit(np.arange(len(values)), values, 1)[0])


@pytest.mark.slow
def test_nothing_grows(tmp_path):
  path = tmp_path / "figures.jsonl"
  done = subprocess.run(
    [sys.executable, "-m", "tests.system.soak", os.environ.get("SOAK_MINUTES", "30"), path],
    env=several_devices.environment(),
    stdout=subprocess.DEVNULL,
    stderr=subprocess.PIPE,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-5000:]
  rows = [json.loads(line) for line in path.read_text().splitlines()]
  assert len(rows) >= 6, "too few cycles to tell: give more SOAK_MINUTES"
  print(f"\n{len(rows)} cycles; first, after the warm-up, last:")
  warm = rows[int(WARM_UP * len(rows)) :]
  for row in (rows[0], warm[0], warm[-1]):
    print(json.dumps(row))
  for name in ("files", "threads", "graphs", "functions", "traces"):
    assert max(row[name] for row in warm[-3:]) <= max(row[name] for row in warm[:3]), name
  memory = [row["memory"] for row in warm]
  print(f"memory grows by {growth(memory):.0f} KB a cycle")
  # Allocators keep and give back some megabytes as they like, from cycle to cycle.
  assert growth(memory) * len(memory) < 0.05 * memory[0]
