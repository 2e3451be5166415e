"""The public workflows: the steps of the release run here; what the tests call exists.

Alone: python -m pytest tests/workflows_test.py -m "" (a minute)
"""

import re
import shutil
import sys
import zipfile

import pytest

import bert
from tests.kit import installations, workflows
from tests.kit.paths import ROOT
from tools import check_dist

TAG = f"v{bert.__version__}"


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
  """What the steps of the job `build` built."""
  return installations.built(tmp_path_factory)


@pytest.mark.ci
def test_the_release_checks_what_it_built(dist):
  checks = [step for step in workflows.steps("release", "build") if "pip install" not in step]
  checks = [step for step in checks if not step.startswith("python -m build ")]
  assert len(checks) == 2  # twine's and this project's
  for step in checks:
    workflows.run(step, ROOT, DIST=str(dist), GITHUB_REF_NAME=TAG)


@pytest.mark.ci
def test_the_release_tries_the_wheels(tmp_path_factory, tmp_path):
  names = ("bert_alive", "bert_alive_tf1")
  installation = installations.installed("wheel", tmp_path_factory, names)
  install, *tries = workflows.steps("release", "check")
  assert install.startswith("python -m pip install ")
  for step in tries:
    workflows.run(step, tmp_path, installation.python)


def test_the_tests_call_make_or_the_gate():
  for job in ("linux", "gate"):
    *_, last = workflows.steps("test", job)
    target = re.match(r"make ([a-z-]+) PYTHON=python$", last)
    if target:
      assert f"\n{target[1]}: " in (ROOT / "Makefile").read_text(encoding="utf-8")
    else:
      assert last == "bash .ci/run"
      assert (ROOT / ".ci" / "run").is_file()


# ---------------------------------------------------------------------------------------------
# tools/check_dist.py finds what would make a wheel useless.


def changed(wheel, folder, change):
  """A copy of a wheel in a folder; `change` gets each name and returns another one, or none."""
  with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(folder / wheel.name, "w") as new:
    for name in old.namelist():
      if renamed := change(name):
        new.writestr(renamed, old.read(name))


@pytest.mark.ci
@pytest.mark.parametrize(
  ("distribution", "old", "new", "message"),
  [
    ("bert_alive", "bert/py.typed", "", "lacks bert/py.typed"),
    ("bert_alive", "bert/modeling.py", "", "lacks bert/modeling.py"),
    ("bert_alive", "bert/modeling.py", "modeling.py", "its top-level names are ['bert', 'modeling"),
    ("bert_alive", "bert/samples/vocab.txt", "", "lacks bert/samples/vocab.txt"),
    ("bert_alive", "bert/reports/page/report.css", "", "lacks bert/reports/page/report.css"),
    ("bert_alive", "bert/serving/page/page.js", "", "lacks bert/serving/page/page.js"),
    ("bert_alive", "bert/__main__.py", "", "the entry point bert of console_scripts is"),
    ("bert_alive", "entry_points.txt", "", "lacks entry_points.txt"),
    ("bert_alive_tf1", "bert_tf1/__init__.py", "bert/__init__.py", "its top-level names are"),
  ],
)
def test_a_wheel_without_a_part_is_found(dist, tmp_path, distribution, old, new, message):
  for path in dist.iterdir():
    if path.name.startswith(f"{distribution}-") and path.suffix == ".whl":
      changed(path, tmp_path, lambda name: new if name.endswith(old) else name)
    else:
      shutil.copy(path, tmp_path)
  assert any(message in problem for problem in check_dist.problems(tmp_path, TAG))


@pytest.mark.ci
def test_another_tag_and_a_missing_distribution_are_found(dist, tmp_path, capsys):
  assert check_dist.main([str(dist), "v9.9"]) == 1
  assert "expected one version, found" in capsys.readouterr().out
  for path in dist.glob("bert_alive-*"):
    shutil.copy(path, tmp_path)
  [problem] = check_dist.problems(tmp_path, TAG)
  assert f"bert_alive_tf1-{bert.__version__}.tar.gz" in problem


def test_the_checker_needs_the_standard_library_only():
  source = (ROOT / "tools" / "check_dist.py").read_text(encoding="utf-8")
  imported = set(re.findall(r"^(?:import|from) (\w+)", source, re.MULTILINE))
  assert imported <= sys.stdlib_module_names
