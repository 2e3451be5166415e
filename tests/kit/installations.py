"""The project as others have it: beside a program as a checkout, or installed into an environment.

An environment made here sees the packages of the one that runs the tests, so nothing is downloaded,
but not the project itself unless it is installed.
"""

import os
import pathlib
import subprocess
import sys
import sysconfig
from typing import NamedTuple

from tests.kit.paths import ROOT

KINDS = ("wheel", "sdist", "editable")
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


def installed(kind: str, folder: pathlib.Path) -> Installation:
  """Installs the project into a new environment, by one of `KINDS`."""
  subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
  paths = {"base": str(folder), "platbase": str(folder)}
  site_packages = pathlib.Path(sysconfig.get_path("purelib", "venv", paths))
  python = str(pathlib.Path(sysconfig.get_path("scripts", "venv", paths)) / "python")
  (site_packages / _BORROWED).write_text(sysconfig.get_path("purelib") + "\n")
  source = str(ROOT) if kind != "sdist" else _sdist(folder)
  command = [sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet"]
  command += ["--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
  command += ["--editable", source] if kind == "editable" else [source]
  subprocess.run(command, check=True, env=_clean_environment())
  return Installation(python, _clean_environment(), site_packages)


def _sdist(folder: pathlib.Path) -> str:
  code = "import sys; from hatchling.build import build_sdist; print(build_sdist(sys.argv[1]))"
  done = subprocess.run(
    [sys.executable, "-c", code, str(folder)], cwd=ROOT, check=True, capture_output=True, text=True
  )
  return str(folder / done.stdout.split()[-1])


def _clean_environment() -> dict[str, str]:
  return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
