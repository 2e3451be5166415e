"""The originals' names of variables, and those of transformers.

  key_of("bert/encoder/layer_3/output/dense/kernel")
  # Counterpart(name='bert.encoder.layer.3.output.dense.weight', is_transposed=True)
  variable_of("albert.pooler.weight", "albert")
  # Counterpart(name='bert/pooler/dense/kernel', is_transposed=True)

They differ in three ways: modules have other names, joined by dots; PyTorch multiplies by the
transposed matrix, so a `kernel` `[in, out]` is a `weight` `[out, in]`; gamma and beta are called
weight and bias. The heads' `output_weights` are `[out, in]` on both sides. The decoder of words is
the word embeddings on both sides; a file that has it a second time holds the same values.

No file is touched here. A family is named by its `model_type`, and its tables lie in
`bert/families`.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bert.families import FAMILIES
from bert.families.files import FILES
from bert.families.form import TensorNames


class Counterpart(NamedTuple):
  """The name and layout of a tensor in the other format."""

  name: str  # its name there
  is_transposed: bool = False  # whether rows and columns are exchanged


# Last part of a variable's name -> last part of its key.
_LEAVES_OF_DENSE = {"kernel": "weight", "bias": "bias"}
_LEAVES_OF_NORM = {"gamma": "weight", "beta": "bias"}

# Those of transformers' TensorFlow classes, where they differ.
_LEAVES_OF_WEIGHTS = {"kernel": "weight", "embeddings": "weight", "gamma": "weight", "beta": "bias"}


# ---------------------------------------------------------------------------------------------
# Names of one side to those of the other.


def key_of(name: str, family: str = "bert", head: str | None = None) -> Counterpart:
  """Finds a variable of the original in transformers' files; others keep their name.

  Args:
    name: of the variable.
    family: `model_type`.
    head: value of `transformers_heads.HEADS`; some heads have other names for the same variables.

  Example:
    >>> key_of("bert/encoder/layer_10/attention/output/LayerNorm/gamma")
    Counterpart(name='bert.encoder.layer.10.attention.output.LayerNorm.weight', is_transposed=False)
    >>> key_of("output_weights").name, key_of("my/own/variable").name
    ('classifier.weight', 'my/own/variable')
    >>> key_of("bert/encoder/transformer/group_0/inner_group_0/LayerNorm_1/beta", "albert").name
    'albert.encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm.bias'
  """
  names = _names_of(family)
  if name in names.by_head.get(head, {}):
    return Counterpart(names.by_head[head][name])
  if name in names.exact:
    return Counterpart(names.exact[name])
  scope, _, leaf = name.rpartition("/")
  module = _translated(scope, *_patterns(family)[0])
  leaves = _LEAVES_OF_NORM if _is_norm(scope) else _LEAVES_OF_DENSE
  if module is None or leaf not in leaves:
    return Counterpart(name)
  return Counterpart(f"{module}.{leaves[leaf]}", leaf == "kernel")


def variable_of(key: str, family: str = "bert", head: str | None = None) -> Counterpart:
  """Finds the original's variable for a key of transformers' files; the inverse of `key_of`.

  Other keys keep their name. See `variables_of` for keys that are ignored.

  Example:
    >>> variable_of("bert.pooler.dense.weight")
    Counterpart(name='bert/pooler/dense/kernel', is_transposed=True)
    >>> variable_of("pooler.dense.bias").name, variable_of("embeddings.LayerNorm.gamma").name
    ('bert/pooler/dense/bias', 'bert/embeddings/LayerNorm/gamma')
  """
  names = _names_of(family)
  back = {there: name for name, there in names.exact.items()}
  back |= {there: name for name, there in names.by_head.get(head, {}).items()}
  for full in (key, f"{family}.{key}"):  # the second of an encoder saved without a head
    if full in back:
      return Counterpart(back[full])
    module, _, leaf = full.rpartition(".")
    scope = _translated(module, *_patterns(family)[1])
    if scope is None:
      continue
    own = _LEAVES_OF_NORM if _is_norm(scope) else _LEAVES_OF_DENSE
    leaves = {there: name for name, there in own.items()}
    # The oldest files, those of the released models among them, still have gamma and beta.
    leaves |= {name: name for name in own if own is _LEAVES_OF_NORM}
    if leaf in leaves:
      return Counterpart(f"{scope}/{leaves[leaf]}", leaves[leaf] == "kernel")
  return Counterpart(key)


def variables_of(
  keys: Iterable[str], family: str = "bert", head: str | None = None
) -> dict[str, Counterpart]:
  """Maps the original's name of each tensor of a file to its key there.

  Ignored are position_ids, which are 0, 1, 2, ..., and the decoder's second name of the word
  embeddings; the decoder's bias is used if the file has it under no other name.

  Raises:
    ValueError: two keys mean the same variable.

  Example:
    >>> variables_of(["bert.embeddings.position_ids", "pooler.dense.weight"])
    {'bert/pooler/dense/kernel': Counterpart(name='pooler.dense.weight', is_transposed=True)}
  """
  keys = list(keys)
  names = _names_of(family)
  weight_of_decoder = names.decoder[0]
  own_bias, bias_of_decoder = biases_of_words(family)
  found: dict[str, Counterpart] = {}
  for key in keys:
    if key.endswith("embeddings.position_ids") or key == weight_of_decoder:
      continue
    variable = variable_of(key, family, head)
    if key == bias_of_decoder:
      if own_bias in keys:
        continue
      variable = variable_of(own_bias, family)
    if variable.name in found:
      raise ValueError(f"{found[variable.name].name} and {key} are both {variable.name}.")
    found[variable.name] = Counterpart(key, variable.is_transposed)
  return found


def key_of_weight(path: str, family: str) -> Counterpart:
  """Finds the key for a weight of transformers' TensorFlow classes, which is transposed or not.

  Before the name of a module come those of layers and of the model, which changed with the class
  and the version: the longest end of the path that names something of the family counts.

  Args:
    path: of the weight in a file, or its name.
    family: `model_type`.

  Example:
    >>> key_of_weight("nsp___cls/tf_bert_model_1/nsp___cls/seq_relationship/kernel:0", "bert")
    Counterpart(name='cls.seq_relationship.weight', is_transposed=True)
    >>> key_of_weight("tf_bert_model/bert/encoder/layer_._3/output/LayerNorm/beta:0", "bert").name
    'bert.encoder.layer.3.output.LayerNorm.bias'
    >>> key_of_weight("mine/my_model/mine/gate/kernel:0", "bert").name
    'mine.gate.weight'
  """
  # layer_._3 is number 3 of a list; in mlm___cls, cls is the module and mlm the layer's own name.
  parts = [part.rpartition("___")[2] for part in path.replace("_._", "/").split("/")]
  leaf = re.sub(r":\d+$", "", parts.pop())
  end = _LEAVES_OF_WEIGHTS.get(leaf, leaf)
  keys = [".".join([*parts[start:], end]) for start in range(len(parts))]
  known = (key for key in keys if is_of_family(key, family))
  key = next(known, keys[min(2, len(keys) - 1)] if keys else end)
  return Counterpart(key, leaf == "kernel")


def is_of_family(key: str, family: str) -> bool:
  """Tells whether a key of transformers' files is one of a family's, whatever the head."""
  names = _names_of(family)
  heads = (None, *names.by_head)
  return key in names.decoder or any(variable_of(key, family, head).name != key for head in heads)


def biases_of_words(family: str) -> tuple[str, str]:
  """Names the keys of the bias for masked words, and of the decoder's bias or ""."""
  names = _names_of(family)
  return names.exact[f"{FAMILIES[family].masked_lm}/output_bias"], names.decoder[1]


def decoder_of(family: str) -> str:
  """Names the key of a second copy of the word embeddings."""
  return _names_of(family).decoder[0]


def word_head_of(family: str) -> tuple[str, ...]:
  """Lists the beginnings of the original's names in the masked-LM head."""
  row = FAMILIES[family]
  return f"{row.masked_lm}/", f"{row.masked_lm_transform}/"


def _names_of(family: str) -> TensorNames:
  return FILES[family].transformers.names


def _is_norm(scope: str) -> bool:
  return scope.rpartition("/")[2].startswith("LayerNorm")


@functools.cache
def _patterns(family: str) -> tuple[tuple[re.Pattern, dict], tuple[re.Pattern, dict]]:
  """Makes, for each direction, a pattern of numbers and a table of modules without them."""
  forth = _names_of(family).modules
  back = {there: name for name, there in forth.items()}
  return (re.compile(r"(?<=layer_|group_)\d+(?=/)"), dict(forth)), (
    re.compile(r"(?<=\.)\d+(?=\.)"),
    back,
  )


def _translated(module: str, numbers: re.Pattern, table: Mapping[str, str]) -> str | None:
  """Translates a module's name; None if it is none of the family's."""
  found = numbers.findall(module)
  letters = iter("NM")
  there = table.get(numbers.sub(lambda _: next(letters, "?"), module))
  if there is None:
    return None
  for letter, number in zip("NM", found, strict=False):
    there = re.sub(rf"(?<=[._]){letter}(?=[./]|$)", number, there)
  return there
