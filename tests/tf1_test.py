"""The tests of `bert.tf1`, in a process of their own: it switches TensorFlow to 1.x behaviour.

Alone: BERT_TF1_TESTS=1 python -m pytest tests/tf1
"""

import os
import subprocess
import sys

import pytest

from tests.kit.paths import ROOT


def run_tests(marks: str) -> None:
  """Runs the tests of tests/tf1 that carry `marks`; fails with their report."""
  command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
  run = subprocess.run(
    [*command, "-m", marks, "tests/tf1"],
    cwd=ROOT,
    env={**os.environ, "BERT_TF1_TESTS": "1"},
    capture_output=True,
    text=True,
  )
  print(run.stdout)
  assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]


@pytest.mark.ci
def test_the_1x_face():
  run_tests("not ci and not slow")


@pytest.mark.ci
def test_the_1x_face_in_whole_runs():
  run_tests("ci")
