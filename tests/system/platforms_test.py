"""What other systems than Linux need: one lock for all, and work without tensorflow_text."""

import os
import re
import sys

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

from bert import export_hub, predict, run_classifier
from bert.io import installation
from tests.kit import every_script
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script

PLATFORMS = {
  "Linux, x86": {"sys_platform": "linux", "os_name": "posix", "platform_machine": "x86_64"},
  "Linux, ARM": {"sys_platform": "linux", "os_name": "posix", "platform_machine": "aarch64"},
  "macOS, ARM": {"sys_platform": "darwin", "os_name": "posix", "platform_machine": "arm64"},
  "Windows": {"sys_platform": "win32", "os_name": "nt", "platform_machine": "AMD64"},
}
_SYSTEMS = {"linux": "Linux", "darwin": "Darwin", "win32": "Windows"}


def _locked(environment) -> list[str]:
  """The packages that the lock has for a platform, a name for each line."""
  lines = re.findall(r"^([a-z0-9._-]+)==\S+(?: ; (.+?))? \\$", _lock(), re.MULTILINE)
  assert len(lines) > 100
  return [name for name, marker in lines if not marker or Marker(marker).evaluate(environment)]


def _lock() -> str:
  return (ROOT / "requirements.lock").read_text(encoding="utf-8")


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13"])
def test_the_lock_has_one_version_of_each_package_for_each_platform(platform, python):
  environment = {
    **PLATFORMS[platform],
    **{"python_version": python, "python_full_version": f"{python}.0", "extra": ""},
    **{"platform_python_implementation": "CPython", "implementation_name": "cpython"},
    "platform_system": _SYSTEMS[PLATFORMS[platform]["sys_platform"]],
  }
  locked = _locked(environment)
  assert len(set(locked)) == len(locked)
  _, requirements = installation.requirements()
  needed = {
    requirement.name
    for requirement in map(Requirement, requirements)
    if not requirement.marker or requirement.marker.evaluate(environment)
  }
  assert needed <= set(locked)
  assert ("tensorflow-text" in locked) == (platform != "Windows")


def test_the_lock_names_no_server():
  assert "//" not in _lock()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  return every_script.write_files(tmp_path_factory.mktemp("files"))


def test_without_tensorflow_text_one_line_says_so_before_any_work(
  files, exported, tmp_path, monkeypatch
):
  monkeypatch.setitem(sys.modules, "tensorflow_text", None)
  errors = [
    Script(run_classifier).error_of(
      **every_script.flags("run_classifier", files, tmp_path, do_export=True)
    ),
    Script(export_hub).error_of(
      **{**every_script.flags("export_hub", files, tmp_path), "export_dir": tmp_path / "new"}
    ),
    Script(predict).error_of(init_checkpoint=exported),
  ]
  features = ("--do_export", "An export that reads text", "An exported task model")
  for error, what in zip(errors, features, strict=True):
    line = error.splitlines()[0]
    assert line.startswith(f"ERROR: {what} needs tensorflow-text, which is not installed. Only")
    assert "pip install" in line
    assert "WSL2 (docs/platforms.md)" in line
  assert os.listdir(tmp_path) == []
