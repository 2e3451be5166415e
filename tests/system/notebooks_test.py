"""The notebooks in examples/ and docs/ run from the first cell to the last, their code like ours.

Alone: python -m pytest -m ci tests/system/notebooks_test.py (four minutes)
"""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.kit.paths import ROOT

GUIDES = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted([*(ROOT / "examples").glob("*.ipynb"), *GUIDES.glob("*.ipynb")])


def cells_of(path):
  return json.loads(path.read_text(encoding="utf-8"))["cells"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_is_kept_without_outputs(path):
  code = [cell for cell in cells_of(path) if cell["cell_type"] == "code"]
  assert code
  for cell in code:
    assert (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.slow  # a minute; the tutorial of transformers' classes is run in CI
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


def printed_by(name: str, folder, python, monkeypatch) -> str:
  """Runs a notebook of docs/ as Jupyter does, in an empty folder; returns what its cells show.

  The commands in its cells are forks.
  """
  import nbclient
  import nbformat

  monkeypatch.setenv("PATH", python.environment["PATH"])
  for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
    monkeypatch.setenv(variable, str(folder / ".jupyter"))
  notebook = nbformat.read(GUIDES / name, as_version=4)
  nbformat.validate(notebook)
  for cell in notebook.cells:
    cell.source = cell.source.replace("!{sys.executable} ", "!python ")
  client = nbclient.NotebookClient(
    notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
  )
  client.execute()
  outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
  texts = [each.get("text") or each.get("data", {}).get("text/plain", "") for each in outputs]
  return "\n".join(texts)


@pytest.mark.ci
def test_first_run_learns_shows_and_answers(tmp_path, forked_python, monkeypatch):
  printed = printed_by("first_run.ipynb", tmp_path, forked_python, monkeypatch)
  majority = float(re.search(r"right for ([\d.]+)", printed)[1])
  accuracy = float(re.search(r"'eval_accuracy': '([\d.]+)'", printed)[1])
  assert accuracy > majority + 0.1
  num_wrong, num_pairs = map(int, re.search(r"(\d+) of (\d+) are wrong", printed).groups())
  assert 1 - num_wrong / num_pairs == pytest.approx(accuracy, abs=1e-4)
  assert "<IPython.core.display.Image object>" in printed


@pytest.mark.slow
def test_vectors_and_search_finds_by_meaning(tmp_path, forked_python, monkeypatch):
  printed = printed_by("vectors_and_search.ipynb", tmp_path, forked_python, monkeypatch)
  found = re.search(r"by vectors ([\d.]+), by common words ([\d.]+)", printed)
  assert float(found[1]) > max(0.9, float(found[2]))
