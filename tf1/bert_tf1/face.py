"""The names of TensorFlow 1.15: those of `compat.v1`, and what 2.21 no longer has."""

import functools
import importlib
import sys
import types
from typing import Any

import bert_tf1.real  # First: it sets what TensorFlow reads when it is imported.
import bert_tf1.session_settings
import bert_tf1.token_weights
import bert_tf1.written_graphs  # noqa: F401  (these change what TensorFlow itself does)
from bert_tf1 import contrib, estimator, extremes, parsing, signatures
from bert_tf1.errors import missing
from bert_tf1.real import tf

VERSION = "1.15.5"
# Parts of the real package that are no public names, and that scripts reach into all the same.
INTERNAL = ("python", "core", "compiler", "lite", "tools")


class Namespace(types.ModuleType):
  """A module with some names of its own; the others are those of another module.

  Args:
    name: as shown, such as `tf.nn`.
    base: the module below, or None.
    names: what wins over it.
  """

  def __init__(self, name: str, base: Any, names: dict[str, Any]):
    super().__init__(name)
    self.__dict__.update(names)
    self._base = base

  def __getattr__(self, name: str) -> Any:
    base = self.__dict__.get("_base")
    try:
      return getattr(base, name)
    except AttributeError:
      if name.startswith("__"):
        raise
      raise missing(self.__name__, name, dir(self)) from None

  def __dir__(self):
    return sorted(n for n in {*vars(self), *dir(self._base)} if not n.startswith("_"))


class _Python(Namespace):
  """`tensorflow.python`, with the files that 1.15 had imported into it, under their names."""

  def __getattr__(self, name: str) -> Any:
    for folder in ("", "framework.", "ops.", "util.", "platform.", "training.", "eager."):
      try:
        return importlib.import_module(f"{self.__name__}.{folder}{name}")
      except ModuleNotFoundError:
        continue
    return getattr(self._base, name)


class _PythonOps(Namespace):
  """`tensorflow.python.ops`: a folder, and to who imports it alone the file `framework/ops.py`."""

  def __getattr__(self, name: str) -> Any:
    if hasattr(self._base, name):
      return getattr(self._base, name)
    try:
      return importlib.import_module(f"{self.__name__}.{name}")
    except ModuleNotFoundError:
      return getattr(importlib.import_module("tensorflow.python.framework.ops"), name)


@functools.cache
def _python() -> Namespace:
  """Returns `tensorflow.python` as 1.15 had it."""
  package = importlib.import_module("tensorflow.python")
  ops = _PythonOps("tensorflow.python.ops", importlib.import_module("tensorflow.python.ops"), {})
  return _Python(package.__name__, package, {"ops": ops})


def _overlay(name: str, base: Any, names: dict[str, Any]) -> Namespace:
  """`base` with `names` over it; dots in a name lead into namespaces below."""
  own: dict[str, Any] = {}
  below: dict[str, dict[str, Any]] = {}
  for dotted, value in names.items():
    first, _, rest = dotted.partition(".")
    if rest:
      below.setdefault(first, {})[rest] = value
    else:
      own[first] = value
  for part, inner in below.items():
    own[part] = _overlay(f"{name}.{part}", getattr(base, part, None), inner)
  return Namespace(name, base, own)


_FACE = _overlay(
  "tf",
  tf,
  {
    "__version__": VERSION,
    "VERSION": VERSION,
    "GIT_VERSION": f"v{VERSION}",
    "version.VERSION": VERSION,
    "version.GIT_VERSION": f"v{VERSION}",
    "contrib": contrib,
    "estimator": estimator,
    **signatures.NAMES,
    **parsing.NAMES,
    **extremes.NAMES,
    "compat.v1": sys.modules["bert_tf1"],
    "compat.v2.compat.v1": sys.modules["bert_tf1"],
    "compat.v2.estimator": estimator,
    "distribute.cluster_resolver.TPUClusterResolver": contrib.cluster_resolver.TPUClusterResolver,
  },
)


def lookup(name: str) -> Any:
  """Returns the value of `tf.NAME`.

  Raises:
    NotAvailableError: 1.15 has no such name, or it cannot be had; the message says what to do.
  """
  if name == "python":
    return _python()
  if name in INTERNAL:
    return importlib.import_module(f"tensorflow.{name}")
  return getattr(_FACE, name)


def names() -> list[str]:
  """Returns all public names of the face."""
  return dir(_FACE)
