"""The scripts of docs/forks_moving.md: each evaluates what the other has trained, to the same loss.

Alone: python -m pytest tf1/tests/moving_test.py -m "" (a minute)
"""

import os
import re
import subprocess
import sys

import pytest

from tests.kit.paths import TF1

FOLDER = TF1 / "docs" / "moving"
BEFORE = (sys.executable, "-m", "bert_tf1", FOLDER / "before.py")
AFTER = (sys.executable, FOLDER / "after.py")
_LINE = re.compile(r"^(eval_accuracy|global_step|loss) = (\S+)$", re.MULTILINE)


def results(command, folder, head, *flags) -> dict[str, float]:
  environment = {**os.environ, "PYTHONPATH": f"{TF1.parent}{os.pathsep}{TF1}"}
  done = subprocess.run(
    [*map(str, command), f"--output_dir={folder}", f"--head={head}", *flags],
    env={**environment, "TF_CPP_MIN_LOG_LEVEL": "3"},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  return {name: float(value) for name, value in _LINE.findall(done.stdout)}


@pytest.mark.slow
@pytest.mark.parametrize("head", ["dense", "keras", "crf"])
def test_both_compute_the_same(head, tmp_path):
  for name, trains, evaluates in (("a", BEFORE, AFTER), ("b", AFTER, BEFORE)):
    expected = results(trains, tmp_path / name, head)
    found = results(evaluates, tmp_path / name, head, "--do_train=false")
    assert found == pytest.approx(expected, rel=1e-4)
    assert found["global_step"] == 20
