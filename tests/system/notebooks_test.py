"""The notebooks in examples/ run from the first cell to the last, and their code is kept like ours.

Alone: python -m pytest -m ci tests/system/notebooks_test.py (two minutes)
"""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.kit.paths import ROOT

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


def cells_of(path):
  return json.loads(path.read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_is_kept_without_outputs(path):
  code = [cell for cell in cells_of(path) if cell["cell_type"] == "code"]
  assert code
  for cell in code:
    assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.ci
def test_tfbert_classes_learns(tmp_path):
  cells = cells_of(ROOT / "examples" / "tfbert_classes.ipynb")
  code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
  program = tmp_path / "notebook.py"
  program.write_text("\n\n".join(code), encoding="utf-8")
  run = subprocess.run(
    [sys.executable, program],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    capture_output=True,
    text=True,
    cwd=tmp_path,
  )
  assert run.returncode == 0, run.stderr
  accuracy, baseline = map(
    float, re.search(r"dev set: ([\d.]+); .* alone: ([\d.]+)", run.stdout).groups()
  )
  assert accuracy > baseline + 0.1
  assert "'label': 'same'" in run.stdout or "'label': 'different'" in run.stdout
