"""Every name that this project supplies to scripts of 1.x is there and is tried by some test."""

import pathlib
import re
import types

import pytest

import bert_tf1 as tf1
from bert_tf1 import face
from bert_tf1.errors import unknown_name

TESTS = pathlib.Path(__file__).parent


def supplied(name: str, module: types.ModuleType) -> dict[str, object]:
  """Dotted name -> value of what a namespace of 1.x offers and this project computes."""
  found = {}
  for part in getattr(module, "__all__", None) or dir(module):
    value = getattr(module, part)
    if isinstance(value, types.ModuleType):
      if hasattr(module, "__all__"):  # A namespace of namespaces; else a file of the part.
        found |= supplied(f"{name}.{part}", value)
    elif not part.startswith("_") and value is not unknown_name:
      origin = str(getattr(value, "__module__", None))
      if origin.startswith("bert_tf1."):
        found[f"{name}.{part}"] = value
  return found


@pytest.mark.parametrize("namespace", ["contrib", "estimator"])
def test_each_supplied_name_is_in_a_test(namespace):
  words = set()
  for path in TESTS.rglob("*.py"):
    if path != pathlib.Path(__file__):
      words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
  names = supplied(namespace, getattr(tf1, namespace))
  assert len(names) > 30
  assert sorted(name for name in names if name.rpartition(".")[2] not in words) == []


def test_dir_has_the_names_of_1x():
  for name in ("contrib", "estimator", "placeholder", "flags", "Session", "nn", "to_int32"):
    assert name in dir(tf1)
  assert face.lookup("compat").v1 is tf1
  assert not hasattr(tf1, "no_such_name")
