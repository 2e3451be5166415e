"""`bert_config.json` and transformers' `config.json`: same sizes, different names of activations.

`"hidden_act": "gelu"` is the tanh form in the original and the erf form in transformers, where the
tanh form is `gelu_new`. Outputs differ in the third digit. Here the erf form is called `gelu_erf`.

Dictionaries in, dictionaries out; no file is touched.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bert.families import FAMILIES
from bert.families.files import FILES, files_of
from bert.families.form import Transformers

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

# Keys of which every `config.json` has one. A `bert_config.json` has none of them but its family's.
_MARKS = ("architectures", "transformers_version", "layer_norm_eps")

# What `modeling.py` implements; other values would mean another model.
_EPSILON = {"layer_norm_eps": 1e-12}  # of families that have no such key
_FIXED = {"position_embedding_type": "absolute", "is_decoder": False, "add_cross_attention": False}

_DEFAULT_NUM_LABELS = 2  # of transformers, where `config.json` has neither `id2label` nor a number
_TOO_MANY_LABELS = 2**16

_PROBLEM_TYPES = {
  "classification": "single_label_classification",
  "regression": "regression",
  "multi_label": "multi_label_classification",
}


def is_transformers_config(content: Mapping[str, Any]) -> bool:
  """Tells transformers' `config.json` from the original's.

  Example:
    >>> is_transformers_config({"model_type": "bert", "hidden_size": 768})
    True
  """
  name = content.get("model_type")
  if name not in tuple(FAMILIES):
    return name is not None or any(mark in content for mark in _MARKS)
  marks = {*_MARKS, *FILES[name].transformers.keys.values()} - FAMILIES[name].keys.keys()
  # A family's own configurations have `model_type`, too, but those of BERT.
  return name == "bert" or any(mark in content for mark in marks)


def to_original(content: Mapping[str, Any]) -> dict[str, Any]:
  """Makes the `bert_config.json` of the same model.

  Keys other than sizes and rates are dropped, except those that describe the pooler in the
  original's released configurations.

  Args:
    content: a `config.json`; missing keys have transformers' defaults.

  Raises:
    ValueError: a key has a value that the original does not support; the message names it.

  Example:
    >>> to_original({"model_type": "bert", "hidden_act": "gelu_new"})["hidden_act"]
    'gelu'
    >>> to_original({"model_type": "bert"})["hidden_act"]
    'gelu_erf'
  """
  files = files_of(content.get("model_type", "bert"))
  family, theirs = FAMILIES[files.name], files.transformers
  ours = {key: own for own, key in theirs.keys.items()}
  content = {ours.get(key, key): value for key, value in content.items()}
  for key, needed in _fixed(theirs).items():
    if content.get(key, needed) != needed:
      raise ValueError(f"{key} is {content[key]!r}, but this model supports {needed!r} only.")
  if content.get("pruned_heads"):
    raise ValueError("pruned_heads: models without some of their heads cannot be loaded.")
  activation = content.get("hidden_act", theirs.default_activation)
  if not isinstance(activation, str) or activation not in _ACTIVATIONS:
    raise ValueError(f"hidden_act is {activation!r}; known: {', '.join(_ACTIVATIONS)}.")
  if _ACTIVATIONS[activation] in family.activations:
    raise ValueError(
      f"hidden_act is {activation!r}, the tanh form of GELU, but models of {family.title} have "
      "the erf form here ('gelu')."
    )
  original = {key: content.get(key, default) for key, default in theirs.defaults.items()}
  extra = {key: value for key, value in content.items() if _is_kept(key)}
  if theirs.has_model_type:
    extra["model_type"] = family.name
  if content.get("architectures") in [[name] for name in theirs.classes_with_hidden_layers]:
    extra["transformers_heads"] = True
  return {**original, "hidden_act": _ACTIVATIONS[activation], **extra}


def _fixed(theirs: Transformers) -> dict[str, Any]:
  """Lists the keys of which a family's configuration cannot have another value."""
  return _FIXED if "layer_norm_eps" in theirs.defaults else {**_EPSILON, **_FIXED}


def from_original(
  content: Mapping[str, Any],
  architecture: str,
  labels: Sequence[str] | None = None,
  problem_type: str | None = None,
  family: str = "bert",
) -> dict[str, Any]:
  """Makes the `config.json` of the same model.

  Args:
    content: a `bert_config.json`.
    architecture: transformers' class for the model and its head, such as `BertForMaskedLM`.
    labels: names of a head's outputs, in their order.
    problem_type: one of `heads.PROBLEM_TYPES`, if there is a head for sequences.
    family: `model_type`.

  Raises:
    ValueError: transformers does not have this `hidden_act`.

  Example:
    >>> from_original({"vocab_size": 100, "hidden_act": "gelu"}, "BertModel")["hidden_act"]
    'gelu_new'
  """
  activation = str(content.get("hidden_act", "gelu")).lower()
  activation = "linear" if activation in ("", "none") else activation
  names = [name for name, ours in _ACTIVATIONS.items() if ours == activation]
  if not names:
    raise ValueError(f"hidden_act is {activation!r}, which transformers does not have.")
  theirs = files_of(family).transformers
  content = {key: value for key, value in content.items() if value is not None}
  follows_hidden_size = FAMILIES[family].keys.get("embedding_size", 0) is None
  if follows_hidden_size and "embedding_size" not in content:
    content["embedding_size"] = content["hidden_size"]
  config = {
    **theirs.defaults,
    **theirs.original_defaults,
    **content,
    "hidden_act": names[0],
    "architectures": [architecture],
    "model_type": family,
    **_fixed(theirs),
    "tie_word_embeddings": True,
  }
  config.setdefault("pad_token_id", 0)
  config.pop("transformers_heads", None)  # the class says so
  config |= theirs.fixed
  kept = {key: value for key, value in config.items() if key not in theirs.absent_keys}
  config = {theirs.keys.get(key, key): value for key, value in kept.items()}
  if labels:
    config["id2label"] = {str(index): label for index, label in enumerate(labels)}
    config["label2id"] = {label: index for index, label in enumerate(labels)}
  if problem_type:
    config["problem_type"] = _PROBLEM_TYPES[problem_type]
  return config


def read_classes(content: Mapping[str, Any]) -> dict[str, Any]:
  """Reads the outputs of a classifier in a `config.json`.

  Returns:
    `labels`, the names of the outputs in their order, and `problem_type`, one of
    `heads.PROBLEM_TYPES`.

  Raises:
    ValueError: the labels do not have the numbers 0, 1, 2, ..., or the problem type is unknown.

  Example:
    >>> read_classes({"id2label": {"0": "no", "1": "yes"}})
    {'labels': ['no', 'yes'], 'problem_type': 'classification'}
  """
  count = content.get("num_labels")  # of versions before 2.2
  if not isinstance(count, int) or not 0 < count < _TOO_MANY_LABELS:
    count = _DEFAULT_NUM_LABELS
  names = content.get("id2label", {str(i): f"LABEL_{i}" for i in range(count)})
  labels = [names.get(str(i)) for i in range(len(names))] if isinstance(names, dict) else []
  if not labels or not all(isinstance(label, str) for label in labels):
    raise ValueError(f"id2label is {names!r:.80}, not a label for each of 0, 1, 2, ...")
  theirs = content.get("problem_type")
  ours = {name: own for own, name in _PROBLEM_TYPES.items()}
  # What transformers assumes where nothing is said.
  ours[None] = "regression" if len(labels) == 1 else "classification"
  if theirs not in ours:
    raise ValueError(f"problem_type is {theirs!r}; known: {', '.join(_PROBLEM_TYPES.values())}.")
  return {"labels": labels, "problem_type": ours[theirs]}


def _is_kept(key: str) -> bool:
  """Tells whether a key of the original's is kept that is neither a size nor a rate."""
  kept = ("directionality", "generator_hidden_size", "generator_layers", "classifier_activation")
  return key in kept or key.startswith("pooler_")
