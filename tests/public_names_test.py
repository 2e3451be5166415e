"""docs/api.md: every import in its tables works."""

import os
import re
import subprocess
import sys
import sysconfig

import pytest

from tests.kit import installations
from tests.kit.paths import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
IMPORTS = re.findall(r"^\| `(from [^`]+)` \|", PAGE, re.MULTILINE)


def test_the_tables_name_what_they_have_to():
  assert len(IMPORTS) > 20
  for name in ("modeling", "Predictor", "Estimator", "export_encoder", "keras3", "TaskModel"):
    assert any(line.endswith(name) or f" {name}," in line for line in IMPORTS), name
  assert len(set(IMPORTS)) == len(IMPORTS)


@pytest.mark.parametrize("line", IMPORTS)
def test_a_public_import(line):
  names: dict = {}
  exec(line, names)
  for name in re.split(", ", line.partition(" import ")[2]):
    assert names[name].__doc__ or not callable(names[name]), name


@pytest.mark.parametrize("line", [line for line in IMPORTS if "from bert import" in line])
def test_names_that_the_table_gives_for_a_module_exist(line):
  names: dict = {}
  exec(line, names)
  [row] = [row for row in PAGE.splitlines() if row.startswith(f"| `{line}` |")]
  for name in re.findall(r"`(\w+)`", row.split("|")[2]):
    assert hasattr(names[line.rpartition(" ")[2]], name), name


@pytest.mark.ci
def test_public_imports_of_an_installed_wheel(tmp_path_factory, tmp_path):
  installation = installations.installed("wheel", tmp_path_factory, ["bert_alive"])
  done = installation.run("-c", "\n".join(IMPORTS), folder=tmp_path)
  assert done.returncode == 0, done.stderr


def test_a_clone_named_bert_used_from_its_parent_folder_ends_as_the_page_says(tmp_path):
  (tmp_path / "bert").symlink_to(ROOT, target_is_directory=True)
  # -S: site-packages without its .pth files, which may name this checkout.
  done = subprocess.run(
    [sys.executable, "-S", "-c", "from bert import tokenization"],
    cwd=tmp_path,
    env={**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 1
  assert re.search(r"No module named 'bert\.\w+'", done.stderr), done.stderr
