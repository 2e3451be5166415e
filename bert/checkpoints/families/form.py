"""The form in which a family says what files hold of it: names of tensors, keys, published models.

The module of a family has one `FamilyFiles`, `FILES`; `bert.checkpoints.families` lists them.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Shapes = Mapping[str, tuple[int, ...]]


@dataclasses.dataclass(frozen=True)
class TensorNames:
  """Names of a family's tensors in files of transformers.

  Attributes:
    modules: the original's scope of a kernel and bias, or of gamma and beta -> transformers'
      module; N and M stand for numbers.
    exact: the original's name -> transformers', for all other tensors.
    decoder: the keys of a second copy of the word embeddings, and of the bias beside it.
    by_head: head -> as `exact`, before all other tables, in models with this head.
  """

  modules: Mapping[str, str]
  exact: Mapping[str, str]
  decoder: tuple[str, str]
  by_head: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Transformers:
  """A family in transformers.

  Attributes:
    class_prefix: first part of the names of its classes.
    names: of tensors.
    defaults: key -> value, where a `config.json` does not have the key.
    default_activation: `hidden_act`, where a `config.json` does not have it.
    original_defaults: key -> value, where the original's configuration does not have the key and
      means another value than `defaults`.
    keys: key of the original -> that of a `config.json`, where they differ.
    absent_keys: keys that its `config.json` does not have.
    fixed: key -> value, which each `config.json` gets.
    has_model_type: whether the original's configuration names the family, too.
    classes_with_hidden_layers: classes whose heads have a hidden layer that the original's lack.
    missing_heads: head -> why there is no class that computes the same.
    marked_heads: head -> (a variable of the model without which no class computes the same, why).
  """

  class_prefix: str
  names: TensorNames
  defaults: Mapping[str, Any]
  default_activation: str = "gelu"
  original_defaults: Mapping[str, Any] = dataclasses.field(
    default_factory=lambda: {"type_vocab_size": 16}
  )
  keys: Mapping[str, str] = dataclasses.field(default_factory=dict)
  absent_keys: frozenset[str] = frozenset()
  fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  has_model_type: bool = True
  classes_with_hidden_layers: tuple[str, ...] = ()
  missing_heads: Mapping[str, str] = dataclasses.field(default_factory=dict)
  marked_heads: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Released:
  """A model that its authors published.

  Attributes:
    path: of its archive, or of the folder of its files, below `base_url`.
    base_url: where its family lies.
    files: without which it is not complete.
    is_folder: whether it is a folder of transformers, fetched file by file.
    sizes: the content of its configuration; None where only its files say it.
  """

  path: str
  base_url: str
  files: tuple[str, ...]
  is_folder: bool = False
  sizes: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class FamilyFiles:
  """What files hold of a family.

  Attributes:
    name: `model_type`.
    transformers: in files of transformers.
    released: name -> published model.
    aliases: name elsewhere -> the published model with the very same weights.
    owners: what people write before a name, or before the last part of an address: publishers.
    sizes_of: makes the content of a configuration from the shapes of a checkpoint that comes
      without one; it returns None for other models.
  """

  name: str
  transformers: Transformers
  released: Mapping[str, Released]
  aliases: Mapping[str, str]
  owners: tuple[str, ...] = ()
  sizes_of: Callable[[Shapes], dict[str, Any] | None] = lambda shapes: None


# ---------------------------------------------------------------------------------------------
# What several families share.

LAYER = "encoder/layer_N/"
LAYER_MODULES = (
  *("attention/self/query", "attention/self/key", "attention/self/value"),
  *("attention/output/dense", "attention/output/LayerNorm"),
  *("intermediate/dense", "output/dense", "output/LayerNorm"),
)
EMBEDDINGS = ("word_embeddings", "position_embeddings", "token_type_embeddings")
SPAN_HEAD = {
  "cls/squad/output_weights": "qa_outputs.weight",
  "cls/squad/output_bias": "qa_outputs.bias",
}
CLASSIFIER = {"output_weights": "classifier.weight", "output_bias": "classifier.bias"}
# Of a classifier with a layer before its outputs.
OUT_PROJECTION = {
  "output_weights": "classifier.out_proj.weight",
  "output_bias": "classifier.out_proj.bias",
}
# transformers' BERT.
BERT_DEFAULTS = {
  "vocab_size": 30522,
  "hidden_size": 768,
  "num_hidden_layers": 12,
  "num_attention_heads": 12,
  "intermediate_size": 3072,
  "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1,
  "max_position_embeddings": 512,
  "type_vocab_size": 2,
  "initializer_range": 0.02,
}
NO_SENTENCE_PAIRS = "it was pre-trained without pairs of sentences"


def same_modules(scope: str) -> dict[str, str]:
  """Names modules that differ in their separators alone: those of BERT and ELECTRA."""
  layer = {f"{scope}/{LAYER}{part}": part.replace("/", ".") for part in LAYER_MODULES}
  return {
    f"{scope}/embeddings/LayerNorm": f"{scope}.embeddings.LayerNorm",
    **{name: f"{scope}.encoder.layer.N.{part}" for name, part in layer.items()},
  }


def embedding_tables(scope: str, module: str, names: Iterable[str] = EMBEDDINGS) -> dict[str, str]:
  """Names the tables of embeddings."""
  return {f"{scope}/embeddings/{name}": f"{module}.embeddings.{name}.weight" for name in names}


def hub_folder(folder: str, tokenizer_files: Iterable[str], sizes: Mapping[str, Any]) -> Released:
  """Describes a published folder, OWNER/NAME on the Hub, its tokenizer's files and its sizes."""
  files = ("config.json", *tokenizer_files, "model.safetensors")
  url = "https://huggingface.co/"
  return Released(f"{folder}/resolve/main", url, files, is_folder=True, sizes=sizes)
