"""What `from transformers import ...` gives in transformers 4's own tests: this project's names.

Models, their outputs and all that transformers 5 still has are those of `bert.transformers`,
whatever module they are asked from. A class that it lacks skips the test that makes one; decorators
that transformers 5 lacks change nothing.
"""

import importlib.abc
import importlib.machinery
import sys
import types
import unittest

import bert.transformers

__path__: list[str] = []

_NOT_HERE = "a class that is not here"


def _found(name: str, module: str):
  """What a name stands for; `module` is that of transformers in which it was looked for."""
  if name.startswith("__"):
    raise AttributeError(name)
  if name == "keras":
    import keras

    return keras
  if name == "get_values":
    return lambda table: list(table.values())
  try:
    return bert.transformers._find(name, module)
  except (ImportError, AttributeError):
    pass
  if name.startswith("TF_"):
    return {}  # a mapping of models that are not here
  if name.startswith("TF"):
    return _skipping(name)
  if "onnx" in name or name == "is_pt_tf_cross_test":
    return unittest.skip(f"{name}: needs PyTorch or onnx")
  return lambda decorated: decorated  # another decorator, or what only skipped tests use


def _skipping(name: str) -> type:
  def skip(self, *args, **kwargs):
    raise unittest.SkipTest(f"{_NOT_HERE}: {name}")

  return type(name, (), {"__init__": skip, "from_pretrained": classmethod(skip)})


def __getattr__(name: str):
  return _found(name, "")


class _Module(types.ModuleType):
  def __getattr__(self, name: str):
    return _found(name, self.__name__.removeprefix(f"{__name__}."))


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
  """Finds every module below this one."""

  def find_spec(self, name, path, target=None):
    """Says that there is one."""
    is_below = name.startswith(f"{__name__}.")
    return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_below else None

  def create_module(self, spec):
    """Makes the module."""
    module = _Module(spec.name)
    module.__path__ = []
    return module

  def exec_module(self, module):
    """Does nothing: names are found when they are asked for."""


sys.meta_path.insert(0, _Finder())
