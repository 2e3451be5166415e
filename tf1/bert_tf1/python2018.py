"""Names of Python 2.7 and 3.7, NumPy 1.16 and scikit-learn that have since gone, for scripts.

`supply` adds them to the running process, each only where it is missing, so that no code that knows
the present meaning of a name sees another one: `np.bool` of NumPy 2 stays `np.bool_`.
"""

import base64
import builtins
import collections
import collections.abc
import configparser
import fractions
import functools
import html
import html.parser
import importlib.abc
import importlib.util
import inspect
import json
import math
import os
import random
import shlex
import sys
import threading
import time
import types
import unittest
import warnings
import xml.etree.ElementTree
from collections.abc import Callable
from typing import Any

import numpy as np

ArgSpec = collections.namedtuple("ArgSpec", "args varargs keywords defaults")
_SAVE, _SUM, _LOADS = np.save, np.sum, json.loads
_SAMPLE, _SHUFFLE = random.Random.sample, random.Random.shuffle
_LIBRARIES = (os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(np.__file__)))


def supply() -> tuple[str, ...]:
  """Adds the names below that Python and NumPy lack, and NumPy 1.16's printing; returns them."""
  for owner, names in _MISSING.items():
    for name, value in names.items():
      setattr(owner, name, value)
  if np.lib.NumpyVersion(np.__version__) >= "2.0.0":
    # Scripts write numbers into files: 0.5, where NumPy 2 would write np.float64(0.5).
    np.set_printoptions(legacy="1.21")
  for owner, name, value in _REPLACED:
    setattr(owner, name, value)
  # The functions of the module are methods of one object.
  random.sample, random.shuffle = random._inst.sample, random._inst.shuffle
  # What later versions say of "\\W", and of distutils, in scripts that are correct as they are.
  warnings.filterwarnings("ignore", r".*invalid escape sequence", SyntaxWarning)
  warnings.filterwarnings("ignore", "distutils Version classes are deprecated")
  if _GoneModules not in sys.meta_path:
    sys.meta_path.append(_GoneModules)
  return tuple(f"{_name(owner)}.{name}" for owner, names in _MISSING.items() for name in names)


def _name(owner: Any) -> str:
  """Returns the dotted name of a module or class."""
  return f"{owner.__module__}.{owner.__qualname__}" if isinstance(owner, type) else owner.__name__


def _getargspec(function: Callable) -> ArgSpec:
  """`inspect.getargspec`, gone since Python 3.11."""
  spec = inspect.getfullargspec(function)
  if spec.kwonlyargs or spec.annotations:
    raise ValueError("Function has keyword-only parameters or annotations")
  return ArgSpec(spec.args, spec.varargs, spec.varkw, spec.defaults)


class _GoneModules(importlib.abc.Loader):
  """Finds modules of old Python where nobody else does: a script's own of that name wins."""

  @staticmethod
  def find_spec(fullname: str, path: Any = None, target: Any = None) -> Any:
    """See `importlib.abc.MetaPathFinder`."""
    if fullname in _MODULES:
      return importlib.util.spec_from_loader(fullname, _GoneModules())
    return None

  def exec_module(self, module: types.ModuleType) -> None:
    """Fills the module."""
    vars(module).update(_MODULES[module.__name__])


def _load_source(name: str, pathname: str, file: Any = None) -> types.ModuleType:
  """`imp.load_source`, gone since Python 3.12."""
  spec = importlib.util.spec_from_file_location(name, pathname)
  sys.modules[name] = module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _linear_assignment(X: Any) -> np.ndarray:  # noqa: N803 (the argument's name there)
  """`linear_assignment` of scikit-learn until 0.22: pairs `[N, 2]` of the smallest sum, by row."""
  from scipy.optimize import linear_sum_assignment

  return np.transpose(linear_sum_assignment(X))


def _in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> np.ndarray:
  """`np.in1d`, gone since NumPy 2.4: `np.isin` of the flat array."""
  return np.isin(np.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


def _asfarray(a: Any, dtype: Any = np.float64) -> np.ndarray:
  """`np.asfarray`, gone since NumPy 2: an array of floats."""
  return np.asarray(a, dtype if np.issubdtype(dtype, np.inexact) else np.float64)


@functools.wraps(_SAMPLE)
def _sample(self: random.Random, population: Any, k: int, **other: Any) -> list:
  """`sample`, also of a set, as until Python 3.10."""
  if isinstance(population, collections.abc.Set):
    population = tuple(population)
  return _SAMPLE(self, population, k, **other)


@functools.wraps(_SHUFFLE)
def _shuffle(self: random.Random, x: Any, random: Callable[[], float] | None = None) -> None:
  """`shuffle`, also with a function that draws, as until Python 3.10."""
  if random is None:
    _SHUFFLE(self, x)
  else:
    for i in reversed(range(1, len(x))):
      j = int(random() * (i + 1))
      x[i], x[j] = x[j], x[i]


def _of_rows(function: Callable) -> Callable:
  """`np.array` and the like; rows of different lengths make an array of lists, as before 1.24.

  Only for callers outside the libraries, which may rely on the error. And `copy=False` copies where
  it must, as before NumPy 2.
  """

  @functools.wraps(function)
  def made(*arguments: Any, **named: Any) -> np.ndarray:
    try:
      return function(*arguments, **named)
    except ValueError as error:
      has_dtype = len(arguments) > 1 or "dtype" in named
      if sys._getframe(1).f_code.co_filename.startswith(_LIBRARIES):
        raise
      if "copy=False" in str(error):
        named["copy"] = None
      elif "inhomogeneous" in str(error) and not has_dtype:
        named["dtype"] = object
      else:
        raise
    return function(*arguments, **named)

  return made


@functools.wraps(_SAVE)
def _save(file: Any, arr: Any, *other: Any, **named: Any) -> None:
  """`np.save`, also of rows of different lengths."""
  _SAVE(file, np.asanyarray(arr), *other, **named)


@functools.wraps(_SUM)
def _sum(a: Any, *other: Any, **named: Any) -> Any:
  """`np.sum`, also of a generator, as before NumPy 2.4: Python's sum of what it gives."""
  return sum(a) if inspect.isgenerator(a) else _SUM(a, *other, **named)


@functools.wraps(_LOADS)
def _loads(s: Any, **named: Any) -> Any:
  """`json.loads`, also with the `encoding` that it took, and did not use, until Python 3.8."""
  named.pop("encoding", None)
  return _LOADS(s, **named)


_ABSTRACT = {name: getattr(collections.abc, name) for name in collections.abc.__all__}
_ASSERTIONS = {
  "assertEquals": "assertEqual",
  "assertNotEquals": "assertNotEqual",
  "assertAlmostEquals": "assertAlmostEqual",
  "assertNotAlmostEquals": "assertNotAlmostEqual",
  "assertRegexpMatches": "assertRegex",
  "assertNotRegexpMatches": "assertNotRegex",
  "assertRaisesRegexp": "assertRaisesRegex",
  "assert_": "assertTrue",
}
_NUMPY = {
  # Python's own types, by NumPy's name of old.
  "int": int,
  "long": int,
  "float": float,
  "complex": complex,
  "bool": bool,
  "object": object,
  "str": str,
  "unicode": str,
  # Second names.
  "bool8": np.bool_,
  "float_": np.float64,
  "longfloat": np.longdouble,
  "complex_": np.complex128,
  "cfloat": np.complex128,
  "singlecomplex": np.complex64,
  "string_": np.bytes_,
  "unicode_": np.str_,
  "Inf": np.inf,
  "Infinity": np.inf,
  "infty": np.inf,
  "PINF": np.inf,
  "NINF": -np.inf,
  "NaN": np.nan,
  "NAN": np.nan,
  "round_": np.round,
  "product": np.prod,
  "cumproduct": np.cumprod,
  "sometrue": np.any,
  "alltrue": np.all,
  "rank": np.ndim,
  "alen": len,
  "mat": np.asmatrix,
  "row_stack": np.vstack,
  "trapz": getattr(np, "trapezoid", None) or getattr(np, "trapz", None),
  "in1d": _in1d,
  "issubclass_": issubclass,
  "issubsctype": np.issubdtype,
  "asfarray": _asfarray,
  "asscalar": lambda a: a.item(),
  "msort": lambda a: np.sort(a, axis=0),
  "math": math,
}
_GONE: dict[Any, dict[str, Any]] = {
  builtins: {
    "basestring": str,
    "long": int,
    "raw_input": input,
    "reduce": functools.reduce,
    "reload": importlib.reload,
    "unichr": chr,
    "unicode": str,
    "xrange": range,
  },
  collections: _ABSTRACT,
  configparser: {"SafeConfigParser": configparser.ConfigParser},
  configparser.RawConfigParser: {"readfp": configparser.RawConfigParser.read_file},
  np: _NUMPY,
  base64: {"encodestring": base64.encodebytes, "decodestring": base64.decodebytes},
  fractions: {"gcd": math.gcd},
  html.parser.HTMLParser: {"unescape": staticmethod(html.unescape)},
  inspect: {"getargspec": _getargspec},
  sys: {
    "getcheckinterval": lambda: 100,
    "setcheckinterval": lambda interval: None,
    "setdefaultencoding": lambda name: None,
  },
  threading.Thread: {"isAlive": threading.Thread.is_alive},
  time: {"clock": time.process_time},
  unittest.TestCase: {old: getattr(unittest.TestCase, new) for old, new in _ASSERTIONS.items()},
}
_REPLACED: tuple[tuple[Any, str, Any], ...] = (
  (np, "array", _of_rows(np.array)),
  (np, "asarray", _of_rows(np.asarray)),
  (np, "asanyarray", _of_rows(np.asanyarray)),
  (np, "save", _save),
  (np, "sum", _sum),
  (json, "loads", _loads),  # json.load calls it, too.
  (random.Random, "sample", _sample),
  (random.Random, "shuffle", _shuffle),
)


# Modules that are gone, with what scripts use of them.
_MODULES: dict[str, dict[str, Any]] = {
  "imp": {"reload": importlib.reload, "load_source": _load_source},
  "pipes": {"quote": shlex.quote},
  "sklearn.utils.linear_assignment_": {"linear_assignment": _linear_assignment},
  "xml.etree.cElementTree": {
    name: getattr(xml.etree.ElementTree, name) for name in xml.etree.ElementTree.__all__
  },
}


def _missing() -> dict[Any, dict[str, Any]]:
  """The names above that today's Python and NumPy lack, by the module or class they belong to."""
  with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # Those that are there, but deprecated.
    return {
      owner: {name: value for name, value in names.items() if not hasattr(owner, name)}
      for owner, names in _GONE.items()
    }


_MISSING = _missing()
