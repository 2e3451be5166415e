"""What `from transformers import ...` gives in transformers' own tests: the names of this project.

Models, configurations, tokenizers and outputs are those of `bert.transformers`, whatever module
they are asked from; what tests need beside them (decorators, loggers) is that of an installed
transformers 4. A class that this project lacks skips the test that makes one.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import types
import unittest

import bert.transformers
from bert.transformers import mappings

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
  if name == "TOKENIZER_MAPPING":
    from bert.transformers import configurations, tokenization_auto

    known = tokenization_auto.TOKENIZER_MAPPING_NAMES.items()
    return {configurations.CONFIGS[family]: classes for family, classes in known}
  if name.startswith("TF_"):
    return getattr(mappings, name, {})
  try:
    return getattr(bert.transformers, name)
  except (ImportError, AttributeError):
    pass
  if name.startswith("TF") or ("Tokenizer" in name and not name.isupper()):
    return _skipping(name)
  found = getattr(importlib.import_module(module), name, None)
  if found is None and name.startswith("require_"):
    return unittest.skip(name) if "onnx" in name else lambda decorated: decorated
  if found is None:
    raise AttributeError(name)
  return found


def _skipping(name: str) -> type:
  def skip(self, *args, **kwargs):
    raise unittest.SkipTest(f"{_NOT_HERE}: {name}")

  return type(name, (), {"__init__": skip, "from_pretrained": classmethod(skip)})


def __getattr__(name: str):
  return _found(name, "transformers")


class _Module(types.ModuleType):
  def __getattr__(self, name: str):
    return _found(name, _theirs(self.__name__))


def _theirs(name: str) -> str:
  return "transformers" + name.removeprefix(__name__)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
  """Finds modules below this one wherever transformers has one of that name."""

  def find_spec(self, name, path, target=None):
    """Says whether there is one."""
    if not name.startswith(f"{__name__}."):
      return None
    try:
      exists = importlib.util.find_spec(_theirs(name)) is not None
    except (ImportError, ValueError):
      exists = False
    return importlib.machinery.ModuleSpec(name, self, is_package=True) if exists else None

  def create_module(self, spec):
    """Makes the module."""
    module = _Module(spec.name)
    module.__path__ = []
    return module

  def exec_module(self, module):
    """Does nothing: names are found when they are asked for."""


sys.meta_path.insert(0, _Finder())
