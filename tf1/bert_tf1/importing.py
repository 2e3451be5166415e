"""Which `tensorflow` an import gives: 1.15's face to scripts, the real one to packages.

The answer depends on who asks, so it cannot lie in `sys.modules`: what is replaced is the function
behind the `import` statement.
"""

import builtins
import functools
import importlib
import os
import site
import sys
import sysconfig
import types
from typing import Any

from bert_tf1 import python2018, whose
from bert_tf1.errors import (
  NotAvailableError,
  missing_of_original,
  unknown_name_of_original,
)
from bert_tf1.face import INTERNAL, Namespace
from bert_tf1.library import (
  hub,
  keras2,
  modeling,
  optimization,
  run_classifier,
  run_classifier_with_tfhub,
  tokenization,
)

_HERE = os.path.join(os.path.dirname(os.path.realpath(__file__)), "")
# Modules of the original, for scripts that find none of their own.
LIBRARY = {
  "modeling": modeling,
  "optimization": optimization,
  "run_classifier": run_classifier,
  "run_classifier_with_tfhub": run_classifier_with_tfhub,
  "tokenization": tokenization,
}
# Modules of the original that are scripts, and have no twin.
_SCRIPTS = ("create_pretraining_data", "extract_features", "run_pretraining", "run_squad")
# Packages that are written for the `keras` of today.
_OF_KERAS_3 = ("bert", "keras", "keras_hub", "keras_nlp", "tensorflow", "tf_keras")
for _name, _module in LIBRARY.items():
  vars(_module).setdefault("__getattr__", unknown_name_of_original(_name, _module))


class _Package(Namespace):
  """What `import bert` gives: the original's modules, and bert-alive's where it is installed."""

  def __getattr__(self, name: str) -> Any:
    try:
      return getattr(self.__dict__["_base"], name)
    except AttributeError:
      if name.startswith("__"):
        raise
      raise missing_of_original("bert", name, LIBRARY) from None


_package = _Package("bert", None, dict(LIBRARY))
_real_import = builtins.__import__
_real_import_module = importlib.import_module
_face: Any = None
_folder = ""  # the script's


class NotImportableError(ImportError):
  """A module or name of TensorFlow 1.x that cannot be imported; the message says what to do."""


def install(face: types.ModuleType, folder: str | None = None) -> None:
  """Replaces the import of `tensorflow`; see `bert_tf1.install`."""
  global _face, _folder
  _face = face
  _folder = os.path.realpath(folder or os.getcwd())
  if _OthersFirst not in sys.meta_path:
    sys.meta_path.insert(0, _OthersFirst)
  _stands_in("bert")  # Else bert-alive's makes room now, before anything asks for it another way.
  python2018.supply()
  builtins.__import__ = _import
  importlib.import_module = _import_module


class _OthersFirst:
  """Finds a script's own `bert` or `modeling` although bert-alive comes before it on the path."""

  @staticmethod
  def find_spec(fullname, path=None, target=None):
    """See importlib.abc.MetaPathFinder."""
    is_asked = path is None and fullname in whose.names(_search_path())
    return _find_other(fullname) if is_asked else None


def _search_path() -> list[str]:
  """Returns the path as it is now: scripts add folders to it."""
  return [path for path in sys.path if isinstance(path, str)]


def _find_other(name: str) -> Any:
  """Finds a script's own module."""
  search = _search_path()
  if _folder not in map(os.path.realpath, search):
    search.insert(0, _folder)
  return whose.find_other(name, search)


@functools.cache
def _installed_folders() -> tuple[str, ...]:
  """Returns where Python and installed packages lie."""
  paths = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
  paths.update(site.getsitepackages() if hasattr(site, "getsitepackages") else [])
  paths.add(site.getusersitepackages())
  return tuple(os.path.realpath(path) + os.sep for path in paths if path)


@functools.cache
def is_script_file(file: str) -> bool:
  """Tells whether a module's file belongs to a script, and not to a package or to this project.

  A package `bert` that is installed and not bert-alive's is of 1.x, as bert-tensorflow is.
  """
  path = os.path.realpath(file)
  if path.startswith(_HERE) or file.startswith("<frozen") or whose.is_in_our_package(path):
    return False
  installed = _installed_folders()
  is_bert = path.startswith(tuple(os.path.join(folder, "bert", "") for folder in installed))
  return is_bert or not path.startswith(installed)


def _is_script(importer: dict[str, Any] | None) -> bool:
  """Tells whether the module with these globals gets the 1.x face."""
  if importer is None:
    return False
  file = importer.get("__file__")
  if not file:  # a notebook's cell, or the prompt
    return importer.get("__name__") == "__main__"
  return is_script_file(file)


def _import(name, globals=None, locals=None, fromlist=(), level=0):
  """Returns the `import` statement."""
  top = name.partition(".")[0]
  if level == 0 and top == "keras" and _takes_keras_2(globals):
    return _named(keras2.load(), name, fromlist)
  if level == 0 and _is_script(globals):
    if top == "tensorflow":
      return _tensorflow(name, fromlist)
    if top == "bert" and _stands_in("bert"):
      return of_bert(name, globals, locals, fromlist)
    if name in LIBRARY and _stands_in(name):
      _check_names(_library(name), name, fromlist)
      return LIBRARY[name]
    if name == "tensorflow_hub":
      module = hub.load(_real_import)
      _check_names(module, name, fromlist)
      return module
    if top != "bert" and top in whose.names(_search_path()) and not _find_other(top):
      raise NotImportableError(
        f"{top} was not found beside the script or on its path (bert-alive's is for TensorFlow 2). "
        "If the script has its own, set PYTHONPATH to the directory that it is in.",
        name=top,
      )
  return _real_import(name, globals, locals, fromlist, level)


def _import_module(name, package=None):
  """`importlib.import_module`."""
  importer = sys._getframe(1).f_globals
  top, _, rest = name.partition(".")
  if top == "keras" and _takes_keras_2(importer):
    return _named(keras2.load(), name, ("*",))
  if top and _is_script(importer):
    if top == "tensorflow":
      return _tensorflow(name, ("*",))
    if name in LIBRARY and _stands_in(name):
      return _library(name)
    if top == "bert" and _stands_in("bert") and rest in LIBRARY:
      return _library(rest)
  return _real_import_module(name, package)


def _takes_keras_2(importer: dict[str, Any] | None) -> bool:
  """Tells whether `import keras` gives Keras 2: to scripts, and to packages such as keras-bert.

  A script's own package `keras` wins.
  """
  package = (importer or {}).get("__name__", "").partition(".")[0]
  if package in _OF_KERAS_3 and not _is_script(importer):
    return False
  found = _find_other("keras")
  return not (found and found.origin and is_script_file(found.origin))


def _stands_in(name: str) -> bool:
  """Tells whether `LIBRARY` stands in for a module that the script has not, itself.

  Where it has one, what was imported of bert-alive under that name is removed to make room.
  """
  loaded = sys.modules.get(name)
  if loaded is not None and not _is_our_module(loaded, name):
    return False
  if not _find_other(name):
    return True
  if loaded is not None:
    for each in [each for each in sys.modules if each == name or each.startswith(f"{name}.")]:
      del sys.modules[each]
  if name == "bert":  # Its finder would take a module that the script's package lacks from here.
    sys.meta_path[:] = [f for f in sys.meta_path if getattr(f, "__module__", "") != "bert"]
  return False


def _is_our_module(module: types.ModuleType, name: str) -> bool:
  path = getattr(module, "__file__", None) or ""
  above = os.path.dirname(path)
  if os.path.basename(path) == "__init__.py":
    above = os.path.dirname(above)
  return bool(path) and whose.is_ours(above, name)


def _library(name: str) -> types.ModuleType:
  """Returns a module of the original, imported: `run_classifier` defines its flags."""
  if name == "run_classifier":
    run_classifier.define_flags()
  return LIBRARY[name]


def of_bert(name, globals, locals, fromlist):
  """`import bert`, `from bert import modeling` and the like, of a script without its own `bert`."""
  rest = name.partition(".")[2]
  wanted = [rest] if rest else list(fromlist or ())
  for part in wanted:
    if part in _SCRIPTS:
      raise NotImportableError(
        f"bert.{part} is not available to a script of TensorFlow 1.x that has no `bert` of its "
        f"own. Put the original's {part}.py beside your script and write `import {part}`.",
        name=name,
      )
  if "run_classifier" in wanted:
    run_classifier.define_flags()
  if rest in LIBRARY:
    _check_names(LIBRARY[rest], name, fromlist)
    return LIBRARY[rest] if fromlist else _package
  others = [part for part in wanted if part not in LIBRARY]
  if others:  # Of bert-alive, where it is installed.
    if not any(whose.is_ours(folder, "bert") for folder in _search_path()):
      raise NotImportableError(str(missing_of_original("bert", others[0], LIBRARY)), name=name)
    try:
      found = _real_import(name, globals, locals, fromlist if rest else others, 0)
    except ModuleNotFoundError as error:
      if not f"{name}.".startswith(f"{error.name}."):  # Something that bert-alive itself needs.
        raise
      raise NotImportableError(str(missing_of_original("bert", rest, LIBRARY)), name=name) from None
    _package._base = sys.modules["bert"]
    if not rest:
      _check_names(_package, name, fromlist)
    return found if rest and fromlist else _package
  return _package


def _tensorflow(name: str, fromlist) -> Any:
  """Returns the module that `import name` or `from name import ...` gives."""
  path = name.split(".")[1:]
  if path[:2] == ["compat", "v1"]:
    path = path[2:]
  if path and path[0] in INTERNAL:
    return _internal(name, fromlist)
  return _named(_face, ".".join(["tensorflow", *path]), fromlist)


def _named(top: Any, name: str, fromlist) -> Any:
  """Returns the module that `import name` or `from name import ...` gives, by attributes of top."""
  found = top
  path = name.split(".")[1:]
  for part in path:
    if part == "python" and path[0] == "contrib":  # The file of a part: the part stands for it.
      found.python = PartFiles(found, 0)  # `import tensorflow.contrib.crf.python... as x` asks so.
    try:
      found = getattr(found, part)
    except NotAvailableError as error:
      raise NotImportableError(str(error), name=name) from None
  _check_names(found, name, fromlist)
  return found if fromlist else top


def _check_names(module: Any, name: str, fromlist) -> None:
  """Says why a name of `from name import ...` is not there; Python itself would not."""
  for wanted in fromlist or ():
    if wanted != "*":
      try:
        getattr(module, wanted)
      except NotAvailableError as error:
        raise NotImportableError(str(error), name=name) from None
      except AttributeError:
        pass


def _internal(name: str, fromlist) -> Any:
  """Returns a module of TensorFlow's inside: the real one, where it still exists."""
  try:
    module = _face.python if name == "tensorflow.python" else _real_import_module(name)
  except ModuleNotFoundError as error:
    raise NotImportableError(
      f"{name} is not available on this TensorFlow: it is no public name, and its file is gone. "
      "Import the public name (tf....) instead."
    ) from error
  for wanted in fromlist or ():
    if wanted != "*" and not hasattr(module, wanted):
      try:
        _real_import_module(f"{name}.{wanted}")
      except ModuleNotFoundError:
        raise NotImportableError(
          f"{name}.{wanted} is not available on this TensorFlow: it is no public name, and it is "
          "gone. Use the public name (tf....) instead."
        ) from None
  return module if fromlist else _face


class PartFiles(Namespace):
  """A part of contrib under the names of its files: `tensorflow.contrib.crf.python.ops.crf`.

  Below `python` 1.15 has folders and files, two deep, with the part's names in them.

  Args:
    part: the module of the part.
    depth: how many names below `python` this one is.
  """

  def __init__(self, part, depth):
    super().__init__(part.__name__, part, {"_depth": depth})

  def __getattr__(self, name):
    base, depth = self.__dict__["_base"], self.__dict__["_depth"]
    if hasattr(base, name) or name.startswith("__") or depth >= 2:
      return getattr(base, name)
    return PartFiles(base, depth + 1)
