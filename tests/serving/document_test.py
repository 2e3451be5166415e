"""docs/serving.md, typed in: from a run to a service, asked by curl and from Python.

Alone: python -m pytest tests/serving/document_test.py -m ci (about a minute)
"""

import json
import shutil

import pytest

from benchmarks.http_load import free_port
from tests.kit.documents import blocks
from tests.kit.page_runs import make_like_a_checkout, run_code, served
from tests.kit.paths import ROOT

MARKER = "a server: tests/serving/document_test.py"
ADDRESS = "localhost:8080"


@pytest.mark.ci
@pytest.mark.skipif(not shutil.which("curl"), reason="the page's first request needs curl")
def test_the_page_is_true(tmp_path, forked_python):
  start, *requests = (
    block for block in blocks(ROOT / "docs" / "serving.md") if block.marker.startswith(MARKER)
  )
  prepare, serve = start.code.strip().rsplit("\n", 1)
  port = free_port()
  make_like_a_checkout(tmp_path)
  run_code(prepare, start, tmp_path, forked_python)
  with served(serve, port, tmp_path, forked_python):
    codes = [block.code.replace(ADDRESS, f"localhost:{port}") for block in requests]
    said = [
      run_code(code, block, tmp_path, forked_python)
      for code, block in zip(codes, requests, strict=True)
    ]
  assert set(json.loads(said[0])["answers"][0]) == {"label", "label_names", "probabilities"}
  assert {"'label'", "'score'"} <= set(said[1].replace("{", " ").replace(":", " ").split())
