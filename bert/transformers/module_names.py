"""transformers 4's modules by name, so that import lines that name them work, too.

  from bert.transformers.models.bert.modeling_tf_bert import TFBertMainLayer
  from bert.transformers.trainer_utils import get_last_checkpoint

Each has the names of `bert.transformers`, and those of transformers 5's module of that name.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from bert.families.files import FILES

_FAMILIES = ("auto", *FILES)
_KINDS = ("configuration", "modeling_tf", "tokenization")
_NAMES = (
  "activations_tf",
  "configuration_utils",
  "data",
  "data.data_collator",
  "data.processors",
  "data.processors.glue",
  "data.processors.utils",
  "file_utils",
  "hf_argparser",
  "keras_callbacks",
  "modeling_tf_outputs",
  "modeling_tf_utils",
  "optimization_tf",
  "tf_utils",
  "tokenization_utils",
  "tokenization_utils_base",
  "tokenization_utils_fast",
  "trainer_utils",
  "training_args",
  "utils",
  "utils.generic",
  "utils.hub",
  "utils.import_utils",
  "utils.logging",
  "utils.versions",
  *(f"models.{family}" for family in _FAMILIES),
  *(f"models.{family}.{kind}_{family}" for family in _FAMILIES for kind in _KINDS),
  *(f"models.{family}.tokenization_{family}_fast" for family in _FAMILIES),
  # Until version 3 there were no folders.
  *(f"{kind}_{family}" for family in _FAMILIES for kind in _KINDS),
)


def register(package: str, find: Callable[[str, str], Any]) -> None:
  """Makes them known to Python.

  Args:
    package: the name before theirs.
    find: finds what a name in a module stands for.
  """
  for name in _NAMES:
    module = _Module(f"{package}.{name}", __doc__)
    module.__path__ = []
    module.find = find
    sys.modules[module.__name__] = module


class _Module(ModuleType):
  """A module whose names are found when they are asked for."""

  find: Callable[[str, str], Any]

  def __getattr__(self, name: str) -> Any:
    submodule = sys.modules.get(f"{self.__name__}.{name}")
    return submodule or self.find(name, self.__name__.partition(".transformers.")[2])
