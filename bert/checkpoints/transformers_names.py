"""The originals' names of variables, and those of transformers.

  key_of("bert/encoder/layer_3/output/dense/kernel")
  # Place(name='bert.encoder.layer.3.output.dense.weight', is_transposed=True)
  variable_of("albert.pooler.weight", "albert")
  # Place(name='bert/pooler/dense/kernel', is_transposed=True)

They differ in three ways: modules have other names, joined by dots; PyTorch multiplies by the
transposed matrix, so a `kernel` `[in, out]` is a `weight` `[out, in]`; gamma and beta are called
weight and bias. The heads' `output_weights` are `[out, in]` on both sides. The decoder of words is
the word embeddings on both sides; a file that has it a second time holds the same values.

No file is touched here. A family is named by its `model_type`.
"""

import dataclasses
import functools
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Place(NamedTuple):
  """The name and layout of a tensor in the other format.

  Attributes:
    name: its name there.
    is_transposed: whether rows and columns are exchanged.
  """

  name: str
  is_transposed: bool = False


@dataclasses.dataclass(frozen=True)
class _Names:
  """The names of a family.

  Attributes:
    modules: the original's scope of a kernel and bias, or of gamma and beta -> transformers'
      module; N and M stand for numbers.
    exact: the original's name -> transformers', for all other tensors.
    encoder: first part of an encoder's keys, which one saved without a head leaves out.
    decoder: the keys of a second copy of the word embeddings, and of the bias beside it.
    word_head: the beginnings of the original's names in the head for masked words.
    word_bias: the original's name of its bias.
    of_heads: head -> as `exact`, before all other tables, in models with this head.
  """

  modules: Mapping[str, str]
  exact: Mapping[str, str]
  encoder: str
  decoder: tuple[str, str]
  word_head: tuple[str, ...] = ("cls/predictions/",)
  word_bias: str = "cls/predictions/output_bias"
  of_heads: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)


# ---------------------------------------------------------------------------------------------
# The tables.

_LAYER = "encoder/layer_N/"
_PARTS = (
  *("attention/self/query", "attention/self/key", "attention/self/value"),
  *("attention/output/dense", "attention/output/LayerNorm"),
  *("intermediate/dense", "output/dense", "output/LayerNorm"),
)
_TABLES = ("word_embeddings", "position_embeddings", "token_type_embeddings")


def _same_names(scope: str) -> dict[str, str]:
  """Modules whose names differ in their separators alone: those of BERT and ELECTRA."""
  layer = {f"{scope}/{_LAYER}{part}": part.replace("/", ".") for part in _PARTS}
  return {
    f"{scope}/embeddings/LayerNorm": f"{scope}.embeddings.LayerNorm",
    **{name: f"{scope}.encoder.layer.N.{part}" for name, part in layer.items()},
  }


def _tables(scope: str, module: str, names: Iterable[str] = _TABLES) -> dict[str, str]:
  return {f"{scope}/embeddings/{name}": f"{module}.embeddings.{name}.weight" for name in names}


_ANSWERS = {
  "cls/squad/output_weights": "qa_outputs.weight",
  "cls/squad/output_bias": "qa_outputs.bias",
}
_OUTPUTS = {"output_weights": "classifier.weight", "output_bias": "classifier.bias"}
_CLASSIFIERS = {**_ANSWERS, **_OUTPUTS}

# Of heads for sentences with a layer before their outputs.
_OUT_PROJECTION = {
  "output_weights": "classifier.out_proj.weight",
  "output_bias": "classifier.out_proj.bias",
}

_ALBERT_LAYER = "bert/encoder/transformer/group_N/inner_group_M"
_ALBERT_LAYER_THERE = "albert.encoder.albert_layer_groups.N.albert_layers.M"

_NAMES = {
  "bert": _Names(
    modules={
      **_same_names("bert"),
      "bert/pooler/dense": "bert.pooler.dense",
      "fit_dense": "fit_dense",  # of TinyBERT
      "cls/predictions/transform/dense": "cls.predictions.transform.dense",
      "cls/predictions/transform/LayerNorm": "cls.predictions.transform.LayerNorm",
    },
    exact={
      **_tables("bert", "bert"),
      "cls/predictions/output_bias": "cls.predictions.bias",
      "cls/seq_relationship/output_weights": "cls.seq_relationship.weight",
      "cls/seq_relationship/output_bias": "cls.seq_relationship.bias",
      **_CLASSIFIERS,
    },
    encoder="bert.",
    decoder=("cls.predictions.decoder.weight", "cls.predictions.decoder.bias"),
  ),
  # A generator alone has the names of a discriminator there, and so it has here.
  "electra": _Names(
    modules={
      **_same_names("electra"),
      "electra/embeddings_project": "electra.embeddings_project",
      "generator_predictions/dense": "generator_predictions.dense",
      "generator_predictions/LayerNorm": "generator_predictions.LayerNorm",
      "discriminator_predictions/dense": "discriminator_predictions.dense",
      "discriminator_predictions/dense_1": "discriminator_predictions.dense_prediction",
      "task_specific/ner/dense": "classifier",
      # Of transformers' heads, which the original does not have.
      "classifier/dense": "classifier.dense",
      "sequence_summary": "sequence_summary.summary",
    },
    exact={
      **_tables("electra", "electra"),
      **_ANSWERS,
      "generator_predictions/output_bias": "generator_lm_head.bias",
    },
    encoder="electra.",
    decoder=("generator_lm_head.weight", ""),
    word_head=("generator_predictions/",),
    word_bias="generator_predictions/output_bias",
    of_heads={"sentences": _OUT_PROJECTION, "swag": _OUTPUTS},
  ),
  "albert": _Names(
    modules={
      "bert/embeddings/LayerNorm": "albert.embeddings.LayerNorm",
      "bert/encoder/embedding_hidden_mapping_in": "albert.encoder.embedding_hidden_mapping_in",
      **{
        f"{_ALBERT_LAYER}/attention_1/self/{part}": f"{_ALBERT_LAYER_THERE}.attention.{part}"
        for part in ("query", "key", "value")
      },
      f"{_ALBERT_LAYER}/attention_1/output/dense": f"{_ALBERT_LAYER_THERE}.attention.dense",
      f"{_ALBERT_LAYER}/LayerNorm": f"{_ALBERT_LAYER_THERE}.attention.LayerNorm",
      f"{_ALBERT_LAYER}/ffn_1/intermediate/dense": f"{_ALBERT_LAYER_THERE}.ffn",
      f"{_ALBERT_LAYER}/ffn_1/intermediate/output/dense": f"{_ALBERT_LAYER_THERE}.ffn_output",
      f"{_ALBERT_LAYER}/LayerNorm_1": f"{_ALBERT_LAYER_THERE}.full_layer_layer_norm",
      "bert/pooler/dense": "albert.pooler",
      "cls/predictions/transform/dense": "predictions.dense",
      "cls/predictions/transform/LayerNorm": "predictions.LayerNorm",
    },
    exact={
      **_tables("bert", "albert"),
      "cls/predictions/output_bias": "predictions.bias",
      "cls/seq_relationship/output_weights": "sop_classifier.classifier.weight",
      "cls/seq_relationship/output_bias": "sop_classifier.classifier.bias",
      **_CLASSIFIERS,
    },
    encoder="albert.",
    decoder=("predictions.decoder.weight", "predictions.decoder.bias"),
  ),
  "roberta": _Names(
    modules={
      **_same_names("roberta"),
      "roberta/pooler/dense": "roberta.pooler.dense",
      "classifier/dense": "classifier.dense",
      "lm_head/dense": "lm_head.dense",
      "lm_head/LayerNorm": "lm_head.layer_norm",
    },
    exact={
      **_tables("roberta", "roberta"),
      "lm_head/output_bias": "lm_head.bias",
      **_CLASSIFIERS,
    },
    encoder="roberta.",
    decoder=("lm_head.decoder.weight", "lm_head.decoder.bias"),
    word_head=("lm_head/",),
    word_bias="lm_head/output_bias",
    of_heads={"sentences": _OUT_PROJECTION},
  ),
  "distilbert": _Names(
    modules={
      "distilbert/embeddings/LayerNorm": "distilbert.embeddings.LayerNorm",
      **{
        f"distilbert/{_LAYER}{part}": f"distilbert.transformer.layer.N.{there}"
        for part, there in zip(
          _PARTS,
          (
            *("attention.q_lin", "attention.k_lin", "attention.v_lin"),
            *("attention.out_lin", "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm"),
          ),
          strict=True,
        )
      },
      "pre_classifier": "pre_classifier",
      "vocab_transform/dense": "vocab_transform",
      "vocab_transform/LayerNorm": "vocab_layer_norm",
    },
    exact={
      **_tables("distilbert", "distilbert", _TABLES[:2]),
      "vocab_projector/output_bias": "vocab_projector.bias",
      **_CLASSIFIERS,
    },
    encoder="distilbert.",
    decoder=("vocab_projector.weight", ""),
    word_head=("vocab_transform/", "vocab_projector/"),
    word_bias="vocab_projector/output_bias",
  ),
}

# Last part of a variable's name -> last part of its key.
_LEAVES_OF_DENSE = {"kernel": "weight", "bias": "bias"}
_LEAVES_OF_NORM = {"gamma": "weight", "beta": "bias"}


# ---------------------------------------------------------------------------------------------
# Names of one side to those of the other.


def key_of(name: str, family: str = "bert", head: str | None = None) -> Place:
  """Where a variable of the original is in transformers' files; others keep their name.

  Args:
    name: of the variable.
    family: `model_type`.
    head: key of `transformers_heads.HEADS`; some heads have other names for the same variables.

  Example:
    >>> key_of("bert/encoder/layer_10/attention/output/LayerNorm/gamma")
    Place(name='bert.encoder.layer.10.attention.output.LayerNorm.weight', is_transposed=False)
    >>> key_of("output_weights").name, key_of("my/own/variable").name
    ('classifier.weight', 'my/own/variable')
    >>> key_of("bert/encoder/transformer/group_0/inner_group_0/LayerNorm_1/beta", "albert").name
    'albert.encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm.bias'
  """
  names = _NAMES[family]
  if name in names.of_heads.get(head, {}):
    return Place(names.of_heads[head][name])
  if name in names.exact:
    return Place(names.exact[name])
  scope, _, leaf = name.rpartition("/")
  module = _translated(scope, *_patterns(family)[0])
  leaves = _LEAVES_OF_NORM if _is_norm(scope) else _LEAVES_OF_DENSE
  if module is None or leaf not in leaves:
    return Place(name)
  return Place(f"{module}.{leaves[leaf]}", leaf == "kernel")


def variable_of(key: str, family: str = "bert", head: str | None = None) -> Place:
  """The original's variable for a key of transformers' files; the inverse of `key_of`.

  Other keys keep their name. See `variables_of` for keys that are ignored.

  Example:
    >>> variable_of("bert.pooler.dense.weight")
    Place(name='bert/pooler/dense/kernel', is_transposed=True)
    >>> variable_of("pooler.dense.bias"), variable_of("embeddings.LayerNorm.gamma")[0]
    (Place(name='bert/pooler/dense/bias', is_transposed=False), 'bert/embeddings/LayerNorm/gamma')
  """
  names = _NAMES[family]
  back = {there: name for name, there in names.exact.items()}
  back |= {there: name for name, there in names.of_heads.get(head, {}).items()}
  for full in (key, names.encoder + key):  # the second of an encoder saved without a head
    if full in back:
      return Place(back[full])
    module, _, leaf = full.rpartition(".")
    scope = _translated(module, *_patterns(family)[1])
    if scope is None:
      continue
    own = _LEAVES_OF_NORM if _is_norm(scope) else _LEAVES_OF_DENSE
    leaves = {there: name for name, there in own.items()}
    # The oldest files, those of the released models among them, still have gamma and beta.
    leaves |= {name: name for name in own if own is _LEAVES_OF_NORM}
    if leaf in leaves:
      return Place(f"{scope}/{leaves[leaf]}", leaves[leaf] == "kernel")
  return Place(key)


def variables_of(
  keys: Iterable[str], family: str = "bert", head: str | None = None
) -> dict[str, Place]:
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
  names = _NAMES[family]
  weight_of_decoder, bias_of_decoder = names.decoder
  bias = names.word_bias
  found: dict[str, Place] = {}
  for key in keys:
    if key.endswith("embeddings.position_ids") or key == weight_of_decoder:
      continue
    variable = variable_of(key, family, head)
    if key == bias_of_decoder:
      if names.exact[bias] in keys:
        continue
      variable = Place(bias)
    if variable.name in found:
      raise ValueError(f"{found[variable.name].name} and {key} are both {variable.name}.")
    found[variable.name] = Place(key, variable.is_transposed)
  return found


def decoder_of(family: str) -> str:
  """The key of a second copy of the word embeddings."""
  return _NAMES[family].decoder[0]


def word_head_of(family: str) -> tuple[str, ...]:
  """The beginnings of the original's names in the head for masked words."""
  return _NAMES[family].word_head


def _is_norm(scope: str) -> bool:
  return scope.rpartition("/")[2].startswith("LayerNorm")


@functools.cache
def _patterns(family: str) -> tuple[tuple[re.Pattern, dict], tuple[re.Pattern, dict]]:
  """For each direction, a pattern of numbers and a table of modules without them."""
  forth = _NAMES[family].modules
  back = {there: name for name, there in forth.items()}
  return (re.compile(r"(?<=layer_|group_)\d+(?=/)"), dict(forth)), (
    re.compile(r"(?<=\.)\d+(?=\.)"),
    back,
  )


def _translated(module: str, numbers: re.Pattern, table: Mapping[str, str]) -> str | None:
  """A module's name on the other side; None if it is none of the family's."""
  found = numbers.findall(module)
  letters = iter("NM")
  there = table.get(numbers.sub(lambda _: next(letters, "?"), module))
  if there is None:
    return None
  for letter, number in zip("NM", found, strict=False):
    there = re.sub(rf"(?<=[._]){letter}(?=[./]|$)", number, there)
  return there
