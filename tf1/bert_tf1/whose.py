"""Whose `bert` or `modeling` an import finds: a script's own, or that of the project bert-alive.

bert-alive's modules have the names of the original's and are written for TensorFlow 2, so a script
of 1.x must not get them. Both a run and `--check` ask here, so that they agree. bert-alive's files
are known by what is beside them and not by their path: it may be a checkout or installed.
"""

import functools
import importlib.machinery
import itertools
import os
import pathlib
from collections.abc import Iterable, Sequence

_MARK = os.path.join("bert", "io", "installation.py")  # a file that bert-alive alone has


def is_ours(folder: str, name: str) -> bool:
  """Tells whether the top-level module or package `name` in this folder is bert-alive's.

  A wheel has the modules of the root inside the package: what is beside it belongs to others.
  """
  if not os.path.isfile(os.path.join(folder, _MARK)):
    return False
  return name == "bert" or not os.path.isfile(os.path.join(folder, "bert", "modeling.py"))


def is_in_our_package(path: str) -> bool:
  """Tells whether a file is in bert-alive's package `bert`."""
  packages = (above for above in pathlib.Path(path).parents if above.name == "bert")
  return any(is_ours(str(package.parent), "bert") for package in packages)


def names(search: Iterable[str]) -> frozenset[str]:
  """Lists `bert`, and the modules beside it in checkouts on the path, which may hide a script's."""
  return frozenset(("bert",)).union(*map(_names_in, search))


@functools.cache
def _names_in(folder: str) -> frozenset[str]:
  if not folder or not is_ours(folder, "modeling"):
    return frozenset()
  return frozenset(path.stem for path in pathlib.Path(folder).glob("*.py"))


def has_modules(folder: str) -> bool:
  """Tells whether a folder without an `__init__.py` is a package, and not one of data."""
  path = pathlib.Path(folder)
  return next(itertools.chain(path.glob("*.py"), path.glob("*/*.py")), None) is not None


def find_other(name: str, search: Sequence[str]) -> importlib.machinery.ModuleSpec | None:
  """Finds a top-level module as Python would if bert-alive were nowhere on the path.

  Args:
    name: such as `bert`.
    search: the folders, as in `sys.path`.

  Returns:
    How to load it; None if no folder has one. A folder without any module counts as none: it holds
    data, or a submodule that was not fetched.
  """
  portions: list[str] = []
  for folder in search:
    if is_ours(folder, name):
      continue
    found = importlib.machinery.PathFinder.find_spec(name, [folder])
    if found and found.loader:
      return found
    portions += filter(has_modules, _portions(found))
  if not portions:
    return None
  package = importlib.machinery.ModuleSpec(name, None, is_package=True)
  package.submodule_search_locations = portions
  return package


def _portions(spec: importlib.machinery.ModuleSpec | None) -> Iterable[str]:
  """Returns the folders of a package without an `__init__.py`."""
  return (spec.submodule_search_locations or ()) if spec else ()
