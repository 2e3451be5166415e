"""This installation: version, folder of samples, requirements, missing packages.

The package lies in a checkout, where pyproject.toml, samples and the scripts are beside it, or in
site-packages, where samples and scripts are inside it.
"""

import contextlib
import importlib.metadata
import importlib.util
import os
import pathlib
import re
from collections.abc import Iterator

import bert

DISTRIBUTION = "bert-alive"

PACKAGE = pathlib.Path(bert.__file__).resolve().parent
_PROJECT_FILE = PACKAGE.parent / "pyproject.toml"
IS_CHECKOUT = (PACKAGE.parent / "modeling.py").is_file() and _PROJECT_FILE.is_file()

# A global variable of a script: the command line that started it, if it was `bert ...`.
PROGRAM_NAME = "__program__"

# The folder of the scripts and the original's three libraries.
ROOT = PACKAGE.parent if IS_CHECKOUT else PACKAGE

SAMPLES = ROOT / "samples"


def version_line() -> str:
  """Returns what `--version` prints: the project's version and Python's."""
  import platform

  return f"{DISTRIBUTION} {bert.__version__} (Python {platform.python_version()})"


def importable_environment() -> dict[str, str]:
  """Returns the environment for a Python process that must find `bert` from any folder.

  A checkout need not be installed, so its path goes first in PYTHONPATH. Site-packages must not:
  PYTHONPATH comes before the standard library.
  """
  environment = dict(os.environ)
  if IS_CHECKOUT:
    paths = [str(ROOT), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
  return environment


def requirements() -> tuple[str, list[str]]:
  """Returns the Python versions and libraries that are needed, as `>=3.10` and `numpy>=1.26`.

  Read from pyproject.toml in a checkout, where the metadata of an earlier installation may be
  stale, else from the metadata of the installed distribution. Empty where neither exists.
  """
  if IS_CHECKOUT:
    text = _PROJECT_FILE.read_text(encoding="utf-8")
    supported = re.search(r'^requires-python = "(.+)"$', text, re.MULTILINE)
    block = re.search(r"^dependencies = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    if supported and block:
      return supported[1], re.findall(r'^\s*"(.+?)"', block[1], re.MULTILINE)
  try:
    pythons = importlib.metadata.metadata(DISTRIBUTION)["Requires-Python"] or ""
  except importlib.metadata.PackageNotFoundError:
    return "", []
  return pythons, requirements_of(DISTRIBUTION)


def requirements_of(distribution: str) -> list[str]:
  """Lists what an installed distribution requires; nothing if it is not installed."""
  try:
    return importlib.metadata.requires(distribution) or []
  except importlib.metadata.PackageNotFoundError:
    return []


def namesakes() -> list[str]:
  """Finds other installed distributions with an import package `bert`, such as bert-tensorflow."""
  owners = importlib.metadata.packages_distributions().get("bert", [])
  return sorted({name for name in owners if name != DISTRIBUTION})


def num_cores() -> int:
  """Counts the cores that this process may use, for instance in a container."""
  if hasattr(os, "sched_getaffinity"):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1


class MissingExtraError(ImportError, ValueError):
  """An optional package is not installed. A ValueError, so that scripts show it as one message."""


@contextlib.contextmanager
def extra(name: str, what: str) -> Iterator[None]:
  """Names the extra to install where an import in the block fails; `what` is the feature in need.

  Raises:
    MissingExtraError: the import failed; the message has the command that installs the extra.

  Example:
    >>> with extra("beam", "--runner=beam"):
    ...   import a_package_that_is_not_installed
    Traceback (most recent call last):
      ...
    bert.io.installation.MissingExtraError: --runner=beam needs an optional package (No module \
named 'a_package_that_is_not_installed'). Install it: pip install "bert-alive[beam]"
  """
  try:
    yield
  except ImportError as error:
    raise MissingExtraError(
      f"{what} needs an optional package ({error}). "
      f'Install it: pip install "{DISTRIBUTION}[{name}]"'
    ) from error


def check_text_operations(what: str) -> None:
  """Checks that tensorflow_text, which has no wheels for Windows, is there; imports nothing.

  Raises:
    MissingExtraError: it is not; one line says that `what` needs it, and what to do.
  """
  if importlib.util.find_spec("tensorflow_text") is None:
    raise MissingExtraError(
      f"{what} needs tensorflow-text, which is not installed. Only exports that read text need it; "
      'all else works without it. Install it: pip install "tensorflow-text==2.21.*". It has no '
      "wheels for Windows: export, and use exports, in WSL2 (docs/platforms.md)."
    )


def text_operations(what: str):
  """Returns the module tensorflow_text, which registers its operations when it is imported.

  Raises:
    MissingExtraError: as `check_text_operations`.
  """
  check_text_operations(what)
  import tensorflow_text

  return tensorflow_text
