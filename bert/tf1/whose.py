"""Whose `bert` or `modeling` an import finds: a script's own, or this project's.

Both a run and `--check` ask here, so that they agree. This project's files are known by what lies
beside them and not by their path: a second checkout is this project, too.
"""

import importlib.machinery
import itertools
import os
import pathlib
from collections.abc import Iterable, Sequence

_HOUSE = pathlib.Path(__file__).resolve().parents[1]  # the folder `bert`


def is_ours(folder: str, name: str) -> bool:
  """Tells whether the top-level module or package `name` in this folder is this project's.

  A wheel has the modules of the root inside the package: what lies beside it is of others.
  """
  house = os.path.join(folder, "bert")
  if not os.path.isfile(os.path.join(house, "tf1", "importing.py")):
    return False
  return name == "bert" or not os.path.isfile(os.path.join(house, f"{name}.py"))


def names() -> frozenset[str]:
  """Lists `bert` and the modules beside it in a checkout, which may hide a script's own."""
  beside = [
    path.stem for path in _HOUSE.parent.glob("*.py") if is_ours(str(path.parent), path.stem)
  ]
  return frozenset(("bert", *beside))


def has_modules(folder: str) -> bool:
  """Tells whether a folder without an `__init__.py` is a package, and not one of data."""
  path = pathlib.Path(folder)
  return next(itertools.chain(path.glob("*.py"), path.glob("*/*.py")), None) is not None


def find_other(name: str, search: Sequence[str]) -> importlib.machinery.ModuleSpec | None:
  """Finds a top-level module as Python would if this project lay nowhere on the path.

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
