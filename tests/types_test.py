"""mypy sees through `from bert import modeling`, and finds a wrong call of a public function.

Alone: python -m pytest -m ci tests/types_test.py (half a minute the first time)
"""

import os
import pathlib
import subprocess
import sys

import pytest

from tests.kit.paths import ROOT

RIGHT = """
from bert import tokenization
from bert.tasks.public_data import is_public_task

known: bool = is_public_task("MRPC")
text: str = tokenization.convert_to_unicode("text")
"""
WRONG = """
from bert import tokenization
from bert.tasks.public_data import is_public_task

known: str = is_public_task("MRPC")
is_public_task(3)
vocab: int = tokenization.load_vocab("vocab.txt")
tokenization.no_such_name
"""


def mypy(path: pathlib.Path, source: str) -> list[str]:
  """The kinds of errors in a program beside the project."""
  path.write_text(source)
  command = [sys.executable, "-m", "mypy", "--no-error-summary", str(path)]
  environment = {**os.environ, "MYPYPATH": str(ROOT)}
  done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
  assert done.stderr == ""
  return [line.rpartition("[")[2].rstrip("]") for line in done.stdout.splitlines()]


@pytest.mark.ci
def test_public_signatures_are_seen(tmp_path):
  assert mypy(tmp_path / "right.py", RIGHT) == []
  assert mypy(tmp_path / "wrong.py", WRONG) == [
    "assignment",
    "arg-type",
    "assignment",
    "attr-defined",
  ]
