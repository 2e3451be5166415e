"""transformers' modules by name, so that import lines that name them work, too.

  from bert.transformers.models.bert.modeling_tf_bert import TFBertMainLayer
  from bert.transformers.keras_callbacks import KerasMetricCallback

Each has all names of `bert.transformers`, wherever transformers keeps them.
"""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from bert.checkpoints.families import FILES

_FAMILIES = ("auto", *FILES)
_KINDS = ("configuration", "modeling_tf", "tokenization")
_NAMES = (
  *("configuration_utils", "data", "data.data_collator", "data.processors", "data.processors.glue"),
  *("data.processors.utils", "keras_callbacks", "modeling_tf_outputs", "modeling_tf_utils"),
  *("optimization_tf", "tf_utils", "tokenization_utils", "tokenization_utils_base"),
  "tokenization_utils_fast",
  *(f"models.{family}" for family in _FAMILIES),
  *(f"models.{family}.{kind}_{family}" for family in _FAMILIES for kind in _KINDS),
  *(f"models.{family}.tokenization_{family}_fast" for family in _FAMILIES),
  # Until version 3 there were no folders.
  *(f"{kind}_{family}" for family in _FAMILIES for kind in _KINDS[:2]),
)


def register(package: str, find: Callable[[str], Any]) -> None:
  """Makes them known to Python.

  Args:
    package: the name before theirs.
    find: finds what a name stands for.
  """
  for name in _NAMES:
    module = ModuleType(f"{package}.{name}", __doc__)
    vars(module).update(__getattr__=find, __path__=[])
    sys.modules[module.__name__] = module
