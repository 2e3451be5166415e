"""The project as others have it: beside a program as a checkout, or installed into an environment.

An environment made here sees the packages of the one that runs the tests, so nothing is downloaded,
but not the project itself unless it is installed.
"""

import os
import pathlib
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from typing import NamedTuple

from tests.kit import once, workflows
from tests.kit.paths import ROOT

KINDS = ("wheel", "editable")  # the wheel is built from the sdist
_BORROWED = "borrowed_packages.pth"


class Installation(NamedTuple):
  """A Python that finds the project."""

  python: str  # its path
  environment: dict[str, str]  # variables for its processes
  site_packages: pathlib.Path | None = None  # where the project was installed; None for a checkout

  def run(self, *arguments: str, folder: pathlib.Path) -> subprocess.CompletedProcess:
    """Runs `python ARGUMENTS` in a folder."""
    return self._run([self.python, *arguments], folder)

  def run_command(self, *arguments: str, folder: pathlib.Path) -> subprocess.CompletedProcess:
    """Runs `bert ARGUMENTS` in a folder."""
    if self.site_packages is None:
      return self.run("-m", "bert", *arguments, folder=folder)
    return self._run([str(pathlib.Path(self.python).parent / "bert"), *arguments], folder)

  def names(self) -> list[str]:
    """What the installation added to site-packages."""
    return sorted(path.name for path in self.site_packages.iterdir() if path.name != _BORROWED)

  def _run(self, command: list[str], folder: pathlib.Path) -> subprocess.CompletedProcess:
    return subprocess.run(
      command,
      cwd=folder,
      env=self.environment,
      capture_output=True,
      text=True,
      timeout=300,
      check=False,
    )


def checkout() -> Installation:
  """This checkout, on PYTHONPATH."""
  return Installation(sys.executable, _clean_environment() | {"PYTHONPATH": str(ROOT)})


def built(tmp_path_factory) -> pathlib.Path:
  """The directory of wheels and sdists that the release workflow builds, once in a session."""
  return once.folder(tmp_path_factory, "dist", _build)


def _build(folder: pathlib.Path) -> None:
  folder.mkdir()
  for step in workflows.steps("release", "build"):
    if step.startswith("python -m build "):  # without isolation: nothing is downloaded
      workflows.run(step.replace("build ", "build --no-isolation "), ROOT, DIST=str(folder))


def installed(kind: str, tmp_path_factory, names: Sequence[str] = ("bert_alive",)) -> Installation:
  """Installs distributions into a new environment, by one of `KINDS`."""
  folder = tmp_path_factory.mktemp(kind)
  subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
  paths = {"base": str(folder), "platbase": str(folder)}
  site_packages = pathlib.Path(sysconfig.get_path("purelib", "venv", paths))
  python = str(pathlib.Path(sysconfig.get_path("scripts", "venv", paths)) / "python")
  (site_packages / _BORROWED).write_text(sysconfig.get_path("purelib") + "\n")
  if kind == "editable":
    checkouts = {"bert_alive": ROOT, "bert_alive_tf1": ROOT / "tf1"}
    sources = [f"--editable={checkouts[name]}" for name in names]
  else:
    dist = built(tmp_path_factory)
    sources = [str(path) for name in names for path in dist.glob(f"{name}-*.whl")]
  command = [sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet"]
  command += ["--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
  subprocess.run([*command, "--no-compile", *sources], check=True, env=_clean_environment())
  return Installation(python, _clean_environment(), site_packages)


def _clean_environment() -> dict[str, str]:
  return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
