"""Versions of what is installed, as transformers' scripts ask for them."""

import importlib.metadata
import platform

TRANSFORMERS = "4.57.6"
"""The version of transformers whose TensorFlow classes these are like."""


def require_version(requirement: str, hint: str | None = None) -> None:
  """Checks that a package is installed in a version.

  Args:
    requirement: such as "datasets>=1.8.0,<4", "numpy", or "python>=3.9".
    hint: what to do otherwise; is added to the message.

  Raises:
    PackageNotFoundError: it is not installed.
    ImportError: it is, in another version.
    ValueError: `requirement` says something else.
  """
  from packaging.requirements import InvalidRequirement, Requirement

  try:
    wanted = Requirement(requirement)
  except InvalidRequirement as error:
    raise ValueError(f"{requirement!r} is no requirement such as 'numpy>=1.2': {error}") from None
  hint = f" {hint}" if hint else ""
  is_python = wanted.name == "python"
  try:
    found = platform.python_version() if is_python else importlib.metadata.version(wanted.name)
  except importlib.metadata.PackageNotFoundError:
    message = f"{requirement} is needed, but it is not installed.{hint}"
    raise importlib.metadata.PackageNotFoundError(message) from None
  if not wanted.specifier.contains(found, prereleases=True):
    raise ImportError(f"{requirement} is needed, but {wanted.name} {found} is installed.{hint}")


def require_version_core(requirement: str) -> None:
  """Checks a requirement; see `require_version`."""
  require_version(requirement)


def is_newer(version: str, other: str) -> bool:
  """Tells whether a version comes after another.

  Example:
    >>> is_newer("4.52.0.dev0", "4.57.6"), is_newer("5.0", "4.57.6")
    (False, True)
  """
  from packaging.version import Version

  return Version(version) > Version(other)
