"""Tests of bert/io/installation.py."""

import re
import subprocess
import sys

import pytest
from packaging.specifiers import SpecifierSet

import bert
from bert.io import installation
from tests.kit.paths import ROOT


def test_requirements_are_read_from_the_project_file():
  supported, requirements = installation.requirements()
  assert supported.startswith(">=3.10")
  assert "setuptools<82" in requirements
  assert not [text for text in requirements if "pytest" in text]


def test_a_missing_extra_is_named_with_the_command_that_installs_it():
  with pytest.raises(ImportError, match=r'jax_zyxw.*pip install "bert-alive\[keras\]"') as caught:
    with installation.extra("keras", "bert.keras3"):
      import jax_zyxw  # noqa: F401
  assert isinstance(caught.value, ValueError)  # scripts show it as one message
  assert str(caught.value).startswith("bert.keras3 needs an optional package")


def test_the_version_is_the_same_everywhere():
  citation = (ROOT / "CITATION.cff").read_text()
  changes = (ROOT / "CHANGELOG.md").read_text()
  assert f"\nversion: {bert.__version__}\n" in citation
  assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == bert.__version__
  assert "\nversion =" not in (ROOT / "pyproject.toml").read_text()
  other = (ROOT / "tf1" / "bert_tf1" / "__init__.py").read_text()
  assert f'\n_DISTRIBUTION_VERSION = "{bert.__version__}"\n' in other


def test_workflows_try_the_supported_pythons():
  supported, _ = installation.requirements()
  workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
  tried = re.findall(r'"(3\.\d+)"', workflow.split("matrix:")[1].split("steps:")[0])
  assert tried == [
    f"3.{minor}" for minor in range(3, 30) if f"3.{minor}" in SpecifierSet(supported)
  ]


def test_a_new_python_finds_the_package_from_another_folder(tmp_path):
  environment = installation.importable_environment()
  code = "import bert; print(bert.__version__)"
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
  )
  assert done.stdout == f"{bert.__version__}\n", done.stderr


@pytest.mark.parametrize(
  ("name", "top_level", "found"),
  [
    ("bert-tensorflow", "bert", ["bert-tensorflow"]),
    ("bert-for-tf2", "bert", ["bert-for-tf2"]),
    ("bert-score", "bert_score", []),
    ("bert-alive", "bert", []),
  ],
)
def test_other_distributions_with_a_package_bert_are_found(
  tmp_path, monkeypatch, name, top_level, found
):
  metadata = tmp_path / f"{name.replace('-', '_')}-9.0.dist-info"
  metadata.mkdir()
  (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.0\n")
  (metadata / "top_level.txt").write_text(f"{top_level}\n")
  monkeypatch.syspath_prepend(tmp_path)
  assert installation.namesakes() == found
