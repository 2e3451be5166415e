"""docs/serving.md, typed in: from a run to a service, asked by curl and from Python.

Alone: python -m pytest tests/serving/document_test.py -m ci (about a minute)
"""

import json
import shutil
import subprocess
import sys

import pytest

from benchmarks.http_load import free_port
from tests.kit.documents import blocks
from tests.kit.page_runs import environment, make_like_a_checkout, served
from tests.kit.paths import ROOT

MARKER = "a server: tests/serving/document_test.py"
ADDRESS = "localhost:8080"


@pytest.mark.ci
@pytest.mark.skipif(not shutil.which("curl"), reason="the page's first request needs curl")
def test_the_page_is_true(tmp_path):
  start, *requests = (
    block for block in blocks(ROOT / "docs" / "serving.md") if block.marker.startswith(MARKER)
  )
  *prepare, serve = start.code.strip().rsplit("\n", 1)
  port = free_port()
  make_like_a_checkout(tmp_path)
  _run(prepare[0], tmp_path)
  with served(serve, port, tmp_path):
    said = [_run(block.code, tmp_path, port, block.language) for block in requests]
  assert set(json.loads(said[0])["answers"][0]) == {"label", "label_names", "probabilities"}
  assert {"'label'", "'score'"} <= set(said[1].replace("{", " ").replace(":", " ").split())


def _run(code: str, folder, port: int = 8080, language: str = "bash") -> str:
  code = code.replace(ADDRESS, f"localhost:{port}")
  shell = ["bash", "-euo", "pipefail", "-c"] if language == "bash" else [sys.executable, "-c"]
  done = subprocess.run(
    [*shell, code],
    cwd=folder,
    env=environment(),
    capture_output=True,
    text=True,
    timeout=600,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  return done.stdout
