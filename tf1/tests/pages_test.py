"""The commands and programs of the README and the guides, in order, as a reader types them.

A block of `text` shows lines of the output before it, whatever numbers they hold; `...` stands for
what was left out. A comment before a block says that it needs a network, or that it fails.

Alone: python -m pytest tf1/tests/pages_test.py (a minute)
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

from tests.kit.paths import TF1

PAGES = [TF1 / "README.md", *sorted((TF1 / "docs").glob("*.md"))]
EACH = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
BLOCK = re.compile(r"^(?:<!-- ([^\n]+) -->\n)?```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,.:]*(?:e[-+]?\d+)?")


@pytest.mark.ci
@EACH
def test_every_command_runs(page, tmp_path):
  (tmp_path / "tf1").symlink_to(TF1)
  blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
  assert blocks
  output = ""
  for marker, language, code in blocks:
    assert marker == "" or marker.startswith(("needs a network: ", "fails: ")), marker
    if language == "text":
      check_shown(code, output)
    elif not marker.startswith("needs"):
      output = run(language, code, tmp_path, fails=marker.startswith("fails"))


def run(language: str, code: str, folder: pathlib.Path, fails: bool) -> str:
  """Runs a block; returns both streams."""
  program = [sys.executable, "-c"] if language == "python" else ["bash", "-euo", "pipefail", "-c"]
  path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
  done = subprocess.run(
    [*program, code],
    cwd=folder,
    env={**os.environ, "PATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    timeout=300,
  )
  assert (done.returncode != 0) == fails, done.stdout[-5000:]
  return done.stdout


def check_shown(shown: str, output: str) -> None:
  """Checks that each shown line is in the output."""
  lines = [NUMBER.sub("N", " ".join(line.split())) for line in output.splitlines()]
  for line in shown.splitlines():
    parts = [NUMBER.sub("N", " ".join(part.split())) for part in line.split("...")]
    pattern = re.compile(".*".join(map(re.escape, parts)))
    assert any(map(pattern.fullmatch, lines)), f"no output is like {line!r}\n{output}"


@EACH
def test_links_lead_to_files(page):
  for target in re.findall(r"\]\(([^)\s#]+)[^)\s]*\)", page.read_text(encoding="utf-8")):
    assert target.startswith("https://") or (page.parent / target).exists(), target
