"""The form in which a family says what files hold of it: names of tensors, keys, published models.

The module of a family has one `FamilyFiles`, `FILES`; `bert.families.files` lists them.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Shapes = Mapping[str, tuple[int, ...]]

# Heads, by the end of the name of their classes in transformers.
ENCODER = "Model"
PRETRAINING = "ForPreTraining"
MASKED_TOKENS = "ForMaskedLM"
NEXT_SENTENCE = "ForNextSentencePrediction"
TEXTS = "ForSequenceClassification"
TOKENS = "ForTokenClassification"
SPANS = "ForQuestionAnswering"
CHOICES = "ForMultipleChoice"


@dataclasses.dataclass(frozen=True)
class TensorNames:
  """Names of a family's tensors in files of transformers."""

  # The original's scope of a kernel and bias, or of gamma and beta -> transformers' module; N and M
  # stand for numbers.
  modules: Mapping[str, str]
  exact: Mapping[str, str]  # the original's name -> transformers', for all other tensors
  # The keys of a second copy of the word embeddings, and of the bias beside it.
  decoder: tuple[str, str]
  # Head -> as `exact`, before all other tables, in models with this head.
  by_head: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Transformers:
  """A family in transformers."""

  class_prefix: str  # first part of the names of its classes
  names: TensorNames  # of tensors
  defaults: Mapping[str, Any]  # key -> value, where a `config.json` does not have the key
  default_activation: str = "gelu"  # `hidden_act`, where a `config.json` does not have it
  # Key -> value, where the original's configuration does not have the key and means another value
  # than `defaults`.
  original_defaults: Mapping[str, Any] = dataclasses.field(
    default_factory=lambda: {"type_vocab_size": 16}
  )
  # Key of the original -> that of a `config.json`, where they differ.
  keys: Mapping[str, str] = dataclasses.field(default_factory=dict)
  absent_keys: frozenset[str] = frozenset()  # keys that its `config.json` does not have
  # Key -> value, which each `config.json` gets.
  fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  # Whether its encoder alone has a pooler although the original's family has none.
  encoder_has_pooler: bool = False
  has_model_type: bool = True  # whether the original's configuration names the family, too
  # Classes whose heads have a hidden layer that the original's lack.
  classes_with_hidden_layers: tuple[str, ...] = ()
  # Head -> why there is no class that computes the same.
  missing_heads: Mapping[str, str] = dataclasses.field(default_factory=dict)
  # Head -> the key of the dropout before its scores, where a `config.json` may have one.
  dropout_keys: Mapping[str, str] = dataclasses.field(default_factory=dict)
  # Head -> a variable of it, where it is not BERT's; "" where its name has that of the task.
  marks: Mapping[str, str] = dataclasses.field(default_factory=dict)
  # Heads that read the one vector of a text that the keys `summary_...` describe.
  summarized_heads: tuple[str, ...] = ()
  # Head -> (a variable of the model without which no class computes the same, why).
  marked_heads: Mapping[str, tuple[str, str]] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Released:
  """A model that its authors published."""

  path: str  # of its archive, or of the folder of its files, below `base_url`
  base_url: str  # where its family lies
  files: tuple[str, ...]  # without which it is not complete
  is_folder: bool = False  # whether it is a folder of transformers, fetched file by file
  # The content of its configuration; None where only its files say it.
  sizes: Mapping[str, Any] | None = None


@dataclasses.dataclass(frozen=True)
class FamilyFiles:
  """What files hold of a family."""

  name: str  # `model_type`
  transformers: Transformers  # in files of transformers
  released: Mapping[str, Released]  # name -> published model
  aliases: Mapping[str, str]  # name elsewhere -> the published model with the very same weights
  # What people write before a name, or before the last part of an address: publishers.
  owners: tuple[str, ...] = ()
  # Makes the content of a configuration from the shapes of a checkpoint that comes without one; it
  # returns None for other models.
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
DROPOUT_OF_CLASSIFIERS = dict.fromkeys((TEXTS, TOKENS), "classifier_dropout")
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
