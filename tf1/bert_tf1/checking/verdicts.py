"""Whether a script of TensorFlow 1.x gets a name, asked of what it would get in a run."""

import ast
import enum
import functools
import importlib
import importlib.util
import inspect
import os
import sys
import types
import warnings
from typing import Any, NamedTuple

import bert_tf1
from bert_tf1.checking.differences import DIFFERENCES, LIBRARY_LOADERS, NEEDS_BUILDING
from bert_tf1.checking.uses import Use
from bert_tf1.errors import NotAvailableError, missing, public_names
from bert_tf1.face import INTERNAL
from bert_tf1.importing import LIBRARY, PartFiles, of_bert
from bert_tf1.library import hub, keras2


class Verdict(enum.Enum):
  """What is said of a name, the worst first; the values are the headings."""

  NOT_THERE = "not there"
  GUARDED = "not there, in a try or under a condition on versions: the script has another way"
  DIFFERENT = "there, with a difference"
  SUPPLIED = "gone from Python or NumPy since 2019, supplied here"
  THERE = "there"


class Finding(NamedTuple):
  """What was found of a name."""

  verdict: Verdict  # whether it is there
  name: str  # as a script writes it after `import tensorflow as tf`
  note: str = ""  # what differs or what to do; may be empty


OF_PYTHON_2 = "of Python 2; convert a copy of the script: 2to3 -w FILE"
_UNAVAILABLE = "is not available on this TensorFlow: "  # The heading says so already.
_INSIDE = tuple(f"tensorflow.{part}" for part in INTERNAL)
_PACKAGES = frozenset(("bert", "hub", "tf", *LIBRARY))  # All scripts import them: not worth a line.
_UNIMPORTABLE = frozenset(("antigravity", "this"))  # They print, or open a browser.


class _MissingError(Exception):
  """A name, the first argument, is not there; the second says what to do."""


class _Reached(NamedTuple):
  """Where the parts of a dotted name lead."""

  name: str  # the name, as far as modules and classes have the parts
  value: Any  # what it stands for
  is_whole: bool  # False where more parts follow, of an object that only a run makes
  is_method: bool  # whether it belongs to an object of a class


def find(use: Use, supplied: frozenset[str]) -> Finding | None:
  """Makes the finding of a use of any package's name; None where there is nothing to say.

  `supplied` are the names of Python and NumPy that `python2018` adds.
  """
  parts = use.name.split(".")
  if parts[0] == "tensorflow_hub" and not importlib.util.find_spec("tensorflow_hub"):
    return None  # `check` names it with the packages that are needed.
  if parts[0] in ("tensorflow", "bert_tf1", "tensorflow_hub", "bert", "keras", *LIBRARY):
    return _find_in_face(_as_shown(parts), use)
  if parts[0] == "numpy" or parts[0] in sys.stdlib_module_names - _UNIMPORTABLE:
    return _find_in_python(parts, supplied)
  return None


def _find_in_face(parts: list[str], use: Use) -> Finding | None:
  try:
    reached = _reach(parts, use.call is not None)
  except _MissingError as gone:
    name, note = gone.args
    return Finding(Verdict.NOT_THERE, name, note.partition(_UNAVAILABLE)[2] or note)
  if reached is None or reached.name in _PACKAGES:
    return None
  refused = _refused(reached, use) if use.call and reached.is_whole else ""
  if refused:
    return Finding(Verdict.NOT_THERE, reached.name, refused)
  if reached.is_method:
    return None
  difference = _difference(reached)
  return Finding(Verdict.DIFFERENT if difference else Verdict.THERE, reached.name, difference)


def _as_shown(parts: list[str]) -> list[str]:
  """Returns all spellings of TensorFlow's name made one, `tf`."""
  if parts[0] == "bert_tf1":
    parts = ["tensorflow", *parts[1:]]
  while parts[0] == "tensorflow" and parts[1:3] == ["compat", "v1"]:
    parts = ["tensorflow", *parts[3:]]
  return [{"tensorflow": "tf", "tensorflow_hub": "hub"}.get(parts[0], parts[0]), *parts[1:]]


def _plain(parts: list[str]) -> str:
  return ".".join(parts).replace("()", "")


def _reach(parts: list[str], is_called: bool) -> _Reached | None:
  """Follows the parts of a name; None where they belong to what a function returns.

  Raises:
    _MissingError: a part is not there.
  """
  try:
    value, of_object = _root(parts), False
  except ImportError as error:
    raise _MissingError(_plain(parts[:2]), str(error)) from None
  for depth, part in enumerate(parts[1:], 1):
    if not isinstance(value, (types.ModuleType, type)):
      return None if of_object else _Reached(_plain(parts[:depth]), value, False, False)
    try:
      value = _part(value, part.removesuffix("()"), _plain(parts[:depth]))
    except (AttributeError, ImportError) as error:
      if of_object and (not is_called or depth < len(parts) - 1 or hasattr(value, "__getattr__")):
        return None
      raise _MissingError(_plain(parts[: depth + 1]), str(error)) from None
    if isinstance(value, PartFiles) and is_called and depth == len(parts) - 1:
      raise _MissingError(_plain(parts), "no function of this name is here.")
    if part.endswith("()"):
      if not isinstance(value, type):
        return None
      of_object = True
  return _Reached(_plain(parts), value, True, of_object)


def _root(parts: list[str]) -> Any:
  """Returns the module that a name begins with, as the import of a script gives it."""
  if parts[0] == "tf":
    return bert_tf1
  if parts[0] == "keras":
    return keras2.load()
  if parts[0] == "bert":
    return of_bert("bert", None, None, tuple(parts[1:2]))
  if parts[0] == "hub":
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")
      return hub.Hub(importlib.import_module("tensorflow_hub"))
  return LIBRARY[parts[0]]


def _part(value: Any, name: str, owner: str) -> Any:
  """Returns an attribute, or a module of TensorFlow's inside that no attribute names yet."""
  if owner.startswith("tf.contrib.") and name == "python":
    return PartFiles(value, 0)
  try:
    return getattr(value, name)
  except NotAvailableError:
    raise
  except AttributeError:
    module = getattr(value, "__name__", "") if isinstance(value, types.ModuleType) else ""
  if not module.startswith(_INSIDE):
    raise missing(owner, name, public_names(value))
  try:
    return importlib.import_module(f"{module}.{name}")
  except ImportError:
    raise AttributeError(
      f"{module}.{name} is gone from TensorFlow's inside; use the public name (tf....) instead."
    ) from None


def _refused(reached: _Reached, use: Use) -> str:
  """Why a call cannot be made as the script makes it; empty where nothing speaks against it."""
  call = use.call
  if reached.name in LIBRARY_LOADERS and use.argument and not os.path.exists(use.argument):
    return f"there, but the file {use.argument} is not in {os.getcwd()}. {NEEDS_BUILDING}"
  try:
    signature = inspect.signature(reached.value)
  except (TypeError, ValueError):
    return ""
  taken = signature.parameters.values()
  named = [keyword.arg for keyword in call.keywords if keyword.arg]
  if not any(parameter.kind == inspect.Parameter.VAR_KEYWORD for parameter in taken):
    unknown = [name for name in named if name not in signature.parameters]
    if unknown:
      known = ", ".join(signature.parameters)
      return f"there, but without the argument {', '.join(unknown)}. It takes {known}."
  if any(isinstance(argument, ast.Starred) for argument in call.args):
    return ""
  bind = signature.bind if len(named) == len(call.keywords) else signature.bind_partial
  try:
    bind(*[None] * (len(call.args) + _takes_self(reached)), **dict.fromkeys(named))
  except TypeError as error:
    return f"there, but not as it is called: {error}."
  return ""


def _takes_self(reached: _Reached) -> bool:
  return reached.is_method and inspect.isfunction(reached.value)


def _difference(reached: _Reached) -> str:
  """The sentence of DIFFERENCES for this name, one above it or another of the same object."""
  parts = reached.name.split(".")
  for end in range(len(parts), 0, -1):
    if ".".join(parts[:end]) in DIFFERENCES:
      return DIFFERENCES[".".join(parts[:end])]
  return _different_objects().get(id(reached.value), "")


@functools.cache
def _different_objects() -> dict[int, str]:
  """Returns the sentences by the classes and functions that they are about."""
  objects = {}
  for name, sentence in DIFFERENCES.items():
    reached = _reach(name.split("."), False) if "." in name else None
    if reached and callable(reached.value):
      objects[id(reached.value)] = sentence
  return objects


def _find_in_python(parts: list[str], supplied: frozenset[str]) -> Finding | None:
  """Returns the finding of a name of Python or NumPy; None where it is as it was."""
  plain = _plain(parts).split(".")
  for end in range(2, len(plain) + 1):
    if ".".join(plain[:end]) in supplied:
      return Finding(Verdict.SUPPLIED, _short(plain[:end]))
  try:
    value = importlib.import_module(parts[0])
  except ImportError:
    return None
  for depth, part in enumerate(parts[1:], 1):
    if not isinstance(value, types.ModuleType):
      return None
    try:
      value = getattr(value, part.removesuffix("()"))
    except AttributeError as error:
      try:
        value = importlib.import_module(".".join(parts[: depth + 1]))
      except ImportError:
        return Finding(Verdict.NOT_THERE, _short(plain[: depth + 1]), _of_old(parts[0], error))
    if part.endswith("()"):
      return None
  return None


def _short(parts: list[str]) -> str:
  if parts[0] == "builtins":
    return parts[1]
  return ".".join(["np" if parts[0] == "numpy" else parts[0], *parts[1:]])


def _of_old(root: str, error: AttributeError) -> str:
  if root == "builtins":
    return OF_PYTHON_2
  if root == "numpy":
    return str(error)
  version = f"Python {sys.version_info.major}.{sys.version_info.minor}"
  return f"{version} has no such name. If it is Python 2's, convert a copy: 2to3 -w FILE"
