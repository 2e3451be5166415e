"""docs/api.md: every import in its tables works."""

import re

import pytest

from tests.kit import installations
from tests.kit.paths import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
IMPORTS = re.findall(r"^\| `(from [^`]+)` \|", PAGE, re.MULTILINE)


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
  installation = installations.installed("wheel", tmp_path_factory)
  done = installation.run("-c", "\n".join(IMPORTS), folder=tmp_path)
  assert done.returncode == 0, done.stderr
