"""The original's names of variables and of settings, and those of transformers.

  key_of("bert/encoder/layer_3/output/dense/kernel")
  # Place(name='bert.encoder.layer.3.output.dense.weight', is_transposed=True)
  variable_of("bert.encoder.layer.3.output.dense.weight")
  # Place(name='bert/encoder/layer_3/output/dense/kernel', is_transposed=True)

Names of variables differ in three ways: scopes are joined by dots; PyTorch multiplies by the
transposed matrix, so a `kernel` `[in, out]` is a `weight` `[out, in]`; gamma and beta are called
weight and bias. The heads' `output_weights` are `[out, in]` on both sides. The decoder of words is
the word embeddings on both sides; a file that has it a second time holds the same values.

The settings of a `bert_config.json` and of transformers' `config.json` are the same sizes, under
one name that misleads: `"hidden_act": "gelu"` is the tanh form in the original and the erf form in
transformers, where the tanh form is `gelu_new`. Outputs differ in the third digit. Here the erf
form is called `gelu_erf`.

No file is touched here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

# ---------------------------------------------------------------------------------------------
# Variables.


class Place(NamedTuple):
  """Where a tensor is on the other side.

  Attributes:
    name: its name there.
    is_transposed: whether rows and columns change places.
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
_BARE = ("embeddings.", "encoder.", "pooler.")  # as an encoder without a head is saved
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
  """The variable of the original that is under a key in transformers' files, and `key_of` back.

  Other keys keep their name. See `variables_of` for those that mean nothing.

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

  Left out are position_ids, which are 0, 1, 2, ..., and the decoder's second name of the word
  embeddings; its bias counts if the file has it under no other name.

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


# ---------------------------------------------------------------------------------------------
# Configurations.

# transformers' name: ours. Of several names the first is the one that is written.
_ACTIVATIONS = {
  "gelu_new": "gelu",
  "gelu_pytorch_tanh": "gelu",
  "gelu_fast": "gelu",
  "gelu_python_tanh": "gelu",
  "gelu": "gelu_erf",
  "gelu_python": "gelu_erf",
  "relu": "relu",
  "tanh": "tanh",
  "linear": "linear",
}

# The values of keys that a `config.json` does not have.
_SIZES = {
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
_ORIGINAL_TYPE_VOCAB_SIZE = 16  # ... and the one key whose default is another in the original

# Keys that no `bert_config.json` has, one of which every `config.json` has.
_MARKS = ("model_type", "architectures", "transformers_version", "layer_norm_eps")

# What `modeling.py` computes; other values would be another model.
_FIXED = {
  "model_type": "bert",
  "layer_norm_eps": 1e-12,
  "position_embedding_type": "absolute",
  "is_decoder": False,
  "add_cross_attention": False,
}

_PROBLEM_TYPES = {
  "classification": "single_label_classification",
  "regression": "regression",
  "multi_label": "multi_label_classification",
}


def is_transformers_config(content: Mapping[str, Any]) -> bool:
  """Whether it is transformers' `config.json`, rather than the original's.

  Example:
    >>> is_transformers_config({"model_type": "bert", "hidden_size": 768})
    True
  """
  return any(mark in content for mark in _MARKS)


def config_to_original(content: Mapping[str, Any]) -> dict[str, Any]:
  """The `bert_config.json` of the same model.

  Keys that concern no size or rate are left out, except those with which the original's released
  configurations describe their pooler.

  Args:
    content: a `config.json`; missing keys have transformers' defaults.

  Raises:
    ValueError: it is of a model that the original cannot express; the key is named.

  Example:
    >>> config_to_original({"model_type": "bert", "hidden_act": "gelu_new"})["hidden_act"]
    'gelu'
    >>> config_to_original({"model_type": "bert"})["hidden_act"]
    'gelu_erf'
  """
  for key, needed in _FIXED.items():
    if content.get(key, needed) != needed:
      raise ValueError(f"{key} is {content[key]!r}, but this model computes with {needed!r} only.")
  if content.get("pruned_heads"):
    raise ValueError("pruned_heads: models without some of their heads cannot be loaded.")
  activation = content.get("hidden_act", "gelu")
  if not isinstance(activation, str) or activation not in _ACTIVATIONS:
    raise ValueError(f"hidden_act is {activation!r}; known: {', '.join(_ACTIVATIONS)}.")
  original = {key: content.get(key, default) for key, default in _SIZES.items()}
  extra = {key: value for key, value in content.items() if _describes_pooler(key)}
  return {**original, "hidden_act": _ACTIVATIONS[activation], **extra}


def config_from_original(
  content: Mapping[str, Any],
  architecture: str,
  labels: Sequence[str] | None = None,
  problem_type: str | None = None,
) -> dict[str, Any]:
  """The `config.json` of the same model.

  Args:
    content: a `bert_config.json`.
    architecture: transformers' class for the model and its head, such as `BertForMaskedLM`.
    labels: names of a head's outputs, in their order.
    problem_type: one of `heads.PROBLEM_TYPES`, if there is a head for sequences.

  Raises:
    ValueError: `hidden_act` has no name there.

  Example:
    >>> config_from_original({"vocab_size": 100, "hidden_act": "gelu"}, "BertModel")["hidden_act"]
    'gelu_new'
  """
  activation = str(content.get("hidden_act", "gelu")).lower()
  activation = "linear" if activation in ("", "none") else activation
  names = [name for name, ours in _ACTIVATIONS.items() if ours == activation]
  if not names:
    raise ValueError(f"hidden_act is {activation!r}, which has no name in transformers.")
  config = {
    **_SIZES,
    "type_vocab_size": _ORIGINAL_TYPE_VOCAB_SIZE,
    **content,
    "hidden_act": names[0],
    "architectures": [architecture],
    **_FIXED,
    "tie_word_embeddings": True,
    "pad_token_id": 0,
  }
  if labels:
    config["id2label"] = {str(index): label for index, label in enumerate(labels)}
    config["label2id"] = {label: index for index, label in enumerate(labels)}
  if problem_type:
    config["problem_type"] = _PROBLEM_TYPES[problem_type]
  return config


def _describes_pooler(key: str) -> bool:
  return key == "directionality" or key.startswith("pooler_")
