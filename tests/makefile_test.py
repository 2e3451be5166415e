"""`make help` lists every target, and other files name targets that exist."""

import re
import shutil
import subprocess

import pytest

from tests.kit.paths import ROOT

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@pytest.fixture(scope="module")
def targets() -> set[str]:
  [line] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
  return set(line.split())


def test_help_has_a_line_for_every_target(targets):
  command = ["make", "--silent", "--no-print-directory", "help"]
  done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
  listed = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
  assert set(listed) == targets


@pytest.mark.parametrize(
  "path", [".ci/run", ".github/workflows/test.yml", "README.md", "CONTRIBUTING.md"]
)
def test_targets_that_are_named_exist(targets, path):
  text = (ROOT / path).read_text(encoding="utf-8")
  named = set(re.findall(r"(?:^|run: |`)make ([a-z-]+)(?=`|$| +#| +[A-Z]+=)", text, re.MULTILINE))
  assert named
  assert named <= targets
