"""The original's names of variables, and those of transformers.

  key_of("bert/encoder/layer_3/output/dense/kernel")
  # Place(name='bert.encoder.layer.3.output.dense.weight', is_transposed=True)
  variable_of("bert.encoder.layer.3.output.dense.weight")
  # Place(name='bert/encoder/layer_3/output/dense/kernel', is_transposed=True)

They differ in three ways: scopes are joined by dots; PyTorch multiplies by the
transposed matrix, so a `kernel` `[in, out]` is a `weight` `[out, in]`; gamma and beta are called
weight and bias. The heads' `output_weights` are `[out, in]` on both sides. The decoder of words is
the word embeddings on both sides; a file that has it a second time holds the same values.

No file is touched here.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple


class Place(NamedTuple):
  """The name and layout of a tensor in the other format.

  Attributes:
    name: its name there.
    is_transposed: whether rows and columns are exchanged.
  """

  name: str
  is_transposed: bool = False


# The original's name: transformers'. All others follow the rule of `_LEAVES`.
_EXACT = {
  "bert/embeddings/word_embeddings": "bert.embeddings.word_embeddings.weight",
  "bert/embeddings/position_embeddings": "bert.embeddings.position_embeddings.weight",
  "bert/embeddings/token_type_embeddings": "bert.embeddings.token_type_embeddings.weight",
  "cls/predictions/output_bias": "cls.predictions.bias",
  "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
  "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
  "cls/squad/output_weights": "qa_outputs.weight",
  "cls/squad/output_bias": "qa_outputs.bias",
  "output_weights": "classifier.weight",
  "output_bias": "classifier.bias",
}
_EXACT_BACK = {key: name for name, key in _EXACT.items()}

# Last part of a variable's name -> last part of its key.
_LEAVES = {"kernel": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
_LEAVES_OF_DENSE = {"weight": "kernel", "bias": "bias"}
# The oldest files, those of the released models among them, still have gamma and beta.
_LEAVES_OF_NORM = {"weight": "gamma", "bias": "beta", "gamma": "gamma", "beta": "beta"}

_LAYER = re.compile(r"\blayer[._](\d+)\b")
_MODULE = re.compile(
  r"bert\.embeddings\.LayerNorm"
  r"|bert\.encoder\.layer\.\d+\.attention\.self\.(query|key|value)"
  r"|bert\.encoder\.layer\.\d+\.(attention\.output|output)\.(dense|LayerNorm)"
  r"|bert\.encoder\.layer\.\d+\.intermediate\.dense"
  r"|bert\.pooler\.dense"
  r"|cls\.predictions\.transform\.(dense|LayerNorm)"
)
_BARE = ("embeddings.", "encoder.", "pooler.")  # keys of an encoder saved without a head
_DECODER = "cls.predictions.decoder."


def key_of(name: str) -> Place:
  """Where a variable of the original is in transformers' files; others keep their name.

  Example:
    >>> key_of("bert/encoder/layer_10/attention/output/LayerNorm/gamma")
    Place(name='bert.encoder.layer.10.attention.output.LayerNorm.weight', is_transposed=False)
    >>> key_of("output_weights").name, key_of("my/own/variable").name
    ('classifier.weight', 'my/own/variable')
  """
  if name in _EXACT:
    return Place(_EXACT[name])
  scope, _, leaf = name.rpartition("/")
  module = _LAYER.sub(r"layer.\1", scope.replace("/", "."))
  if not _MODULE.fullmatch(module) or leaf not in _LEAVES:
    return Place(name)
  key = f"{module}.{_LEAVES[leaf]}"
  place = variable_of(key)  # a LayerNorm has no kernel
  return Place(key, place.is_transposed) if place.name == name else Place(name)


def variable_of(key: str) -> Place:
  """The original's variable for a key of transformers' files; the inverse of `key_of`.

  Other keys keep their name. See `variables_of` for keys that are ignored.

  Example:
    >>> variable_of("bert.pooler.dense.weight")
    Place(name='bert/pooler/dense/kernel', is_transposed=True)
    >>> variable_of("pooler.dense.bias"), variable_of("embeddings.LayerNorm.gamma")[0]
    (Place(name='bert/pooler/dense/bias', is_transposed=False), 'bert/embeddings/LayerNorm/gamma')
  """
  full = f"bert.{key}" if key.startswith(_BARE) else key
  if full in _EXACT_BACK:
    return Place(_EXACT_BACK[full])
  module, _, leaf = full.rpartition(".")
  leaves = _LEAVES_OF_NORM if module.endswith(".LayerNorm") else _LEAVES_OF_DENSE
  if not _MODULE.fullmatch(module) or leaf not in leaves:
    return Place(key)
  scope = _LAYER.sub(r"layer_\1", module).replace(".", "/")
  return Place(f"{scope}/{leaves[leaf]}", leaves[leaf] == "kernel")


def variables_of(keys: Iterable[str]) -> dict[str, Place]:
  """The original's name of each tensor of a file -> its key there.

  Ignored are position_ids, which are 0, 1, 2, ..., and the decoder's second name of the word
  embeddings; the decoder's bias is used if the file has it under no other name.

  Raises:
    ValueError: two keys mean the same variable.

  Example:
    >>> variables_of(["bert.embeddings.position_ids", "pooler.dense.weight"])
    {'bert/pooler/dense/kernel': Place(name='pooler.dense.weight', is_transposed=True)}
  """
  keys = list(keys)
  found: dict[str, Place] = {}
  for key in keys:
    if key.endswith("embeddings.position_ids"):
      continue
    variable = variable_of(key)
    if key.startswith(_DECODER):
      if not key.endswith(".bias") or "cls.predictions.bias" in keys:
        continue
      variable = Place("cls/predictions/output_bias")
    if variable.name in found:
      raise ValueError(f"{found[variable.name].name} and {key} are both {variable.name}.")
    found[variable.name] = Place(key, variable.is_transposed)
  return found
