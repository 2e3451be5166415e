"""docs/serving.md, typed in: from a run to a service, asked by curl and from Python.

Alone: python -m pytest tests/serving/document_test.py -m ci (about a minute)
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest

from tests.kit.documents import blocks
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
  port = _free_port()
  _run(prepare[0], tmp_path)
  with _served(f"{serve} --port={port}", port, tmp_path):
    said = [_run(block.code, tmp_path, port, block.language) for block in requests]
  assert set(json.loads(said[0])["answers"][0]) == {"label", "label_names", "probabilities"}
  assert {"'label'", "'score'"} <= set(said[1].replace("{", " ").replace(":", " ").split())


def _run(code: str, folder, port: int = 8080, language: str = "bash") -> str:
  code = code.replace(ADDRESS, f"localhost:{port}")
  shell = ["bash", "-euo", "pipefail", "-c"] if language == "bash" else [sys.executable, "-c"]
  done = subprocess.run(
    [*shell, code],
    cwd=folder,
    env=_environment(folder),
    capture_output=True,
    text=True,
    timeout=600,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  return done.stdout


@contextlib.contextmanager
def _served(command: str, port: int, folder):
  with (folder / "server.log").open("wb") as log:
    process = subprocess.Popen(
      ["bash", "-c", f"exec {command}"],
      cwd=folder,
      env=_environment(folder),
      stdout=log,
      stderr=log,
    )
    try:
      _wait(process, port, folder / "server.log")
      yield
    finally:
      process.send_signal(signal.SIGTERM)
      assert process.wait(60) == 0, (folder / "server.log").read_text("utf-8")[-3000:]


def _wait(process, port: int, log) -> None:
  until = time.monotonic() + 120
  while time.monotonic() < until and process.poll() is None:
    with contextlib.suppress(OSError, urllib.error.URLError):
      if urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200:
        return
    time.sleep(0.2)
  raise AssertionError(log.read_text("utf-8")[-3000:])


def _environment(folder) -> dict[str, str]:
  """The commands find the scripts and the samples where they run."""
  for path in [*ROOT.glob("*.py"), ROOT / "samples", ROOT / "bert"]:
    if not (folder / path.name).exists():
      (folder / path.name).symlink_to(path)
  path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
  return {**os.environ, "PATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}


def _free_port() -> int:
  with socket.socket() as found:
    found.bind(("127.0.0.1", 0))
    return found.getsockname()[1]
