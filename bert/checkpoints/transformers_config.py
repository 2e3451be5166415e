"""`bert_config.json` and transformers' `config.json`: same sizes, different names of activations.

`"hidden_act": "gelu"` is the tanh form in the original and the erf form in transformers, where the
tanh form is `gelu_new`. Outputs differ in the third digit. Here the erf form is called `gelu_erf`.

Dictionaries in, dictionaries out; no file is touched. It is not part of `transformers_names.py`
because `modeling.py` needs the configuration only.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bert.model.families import FAMILIES

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

# The values of keys that a `config.json` does not have, of each family.
_BERT_SIZES = {
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
_SIZES = {
  "bert": _BERT_SIZES,
  "electra": {
    **_BERT_SIZES,
    **dict(embedding_size=128, hidden_size=256, num_attention_heads=4, intermediate_size=1024),
  },
  "albert": {
    **_BERT_SIZES,
    **dict(vocab_size=30000, embedding_size=128, hidden_size=4096, num_attention_heads=64),
    **dict(intermediate_size=16384, num_hidden_groups=1, inner_group_num=1),
    **dict(hidden_dropout_prob=0, attention_probs_dropout_prob=0),
  },
  "roberta": {
    **_BERT_SIZES,
    **dict(vocab_size=50265, layer_norm_eps=1e-12, pad_token_id=1),
  },
  "distilbert": {
    **_BERT_SIZES,
    **dict(num_hidden_layers=6, type_vocab_size=0, pad_token_id=0),
    **dict(qa_dropout=0.1, seq_classif_dropout=0.2),
  },
}
_DEFAULT_ACTIVATIONS = {**dict.fromkeys(_SIZES, "gelu"), "albert": "gelu_new"}
# Classes with heads that ELECTRA's own code does not have: see `families.py`.
_CLASSES_OF_OTHER_HEADS = [["ElectraForSequenceClassification"], ["ElectraForMultipleChoice"]]
# Of DistilBERT: our key -> transformers'.
_KEYS_OF_DISTILBERT = {
  "hidden_size": "dim",
  "num_hidden_layers": "n_layers",
  "num_attention_heads": "n_heads",
  "intermediate_size": "hidden_dim",
  "hidden_act": "activation",
  "hidden_dropout_prob": "dropout",
  "attention_probs_dropout_prob": "attention_dropout",
}
# ... and the keys with another default here.
_ORIGINAL_TYPE_VOCAB_SIZE = 16
_DEFAULTS_OF_OURS = {
  "roberta": {"type_vocab_size": 1, "layer_norm_eps": 1e-5},
  "distilbert": {},
}

# Keys that no `bert_config.json` has, one of which every `config.json` has.
_MARKS = ("architectures", "transformers_version", "layer_norm_eps")
# Our own configurations of these families have `model_type`, too. RoBERTa's have the same keys on
# both sides.
_OWN_TYPES = ("electra", "albert", "roberta", "distilbert")

# What `modeling.py` implements; other values would mean another model.
_EPSILON = {"layer_norm_eps": 1e-12}  # of families that have no such key
_FIXED = {
  "position_embedding_type": "absolute",
  "is_decoder": False,
  "add_cross_attention": False,
}

_DEFAULT_NUM_LABELS = 2  # of transformers, where `config.json` has no `id2label`

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
  family = content.get("model_type")
  marks: tuple[str, ...] = _MARKS
  if family == "roberta":
    marks = _MARKS[:2]
  elif family == "distilbert":
    marks = (*_MARKS, *_KEYS_OF_DISTILBERT.values())
  if any(mark in content for mark in marks):
    return True
  return family is not None and family not in _OWN_TYPES


def to_original(content: Mapping[str, Any]) -> dict[str, Any]:
  """The `bert_config.json` of the same model.

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
  family = _family_of(content)
  if family == "distilbert":
    content = {ours: content[key] for ours, key in _our_keys(content)}
  for key, needed in _fixed(family).items():
    if content.get(key, needed) != needed:
      raise ValueError(f"{key} is {content[key]!r}, but this model supports {needed!r} only.")
  if content.get("pruned_heads"):
    raise ValueError("pruned_heads: models without some of their heads cannot be loaded.")
  activation = content.get("hidden_act", _DEFAULT_ACTIVATIONS[family])
  if not isinstance(activation, str) or activation not in _ACTIVATIONS:
    raise ValueError(f"hidden_act is {activation!r}; known: {', '.join(_ACTIVATIONS)}.")
  its_family = FAMILIES[family]
  if _ACTIVATIONS[activation] in its_family.activations:
    raise ValueError(
      f"hidden_act is {activation!r}, the tanh form of GELU, but models of {its_family.title} have "
      "the erf form here ('gelu')."
    )
  original = {key: content.get(key, default) for key, default in _SIZES[family].items()}
  extra = {key: value for key, value in content.items() if _is_kept(key)}
  if family not in ("bert", "albert"):
    extra["model_type"] = family
  if family == "electra" and content.get("architectures") in _CLASSES_OF_OTHER_HEADS:
    extra["transformers_heads"] = True
  return {**original, "hidden_act": _ACTIVATIONS[activation], **extra}


def _fixed(family: str) -> dict[str, Any]:
  """What a configuration of a family cannot have another value of."""
  return _FIXED if "layer_norm_eps" in _SIZES[family] else {**_EPSILON, **_FIXED}


def _our_keys(content: Mapping[str, Any]) -> list[tuple[str, str]]:
  """(our name, transformers' name) of each key of a DistilBERT's configuration."""
  ours = {theirs: key for key, theirs in _KEYS_OF_DISTILBERT.items()}
  return [(ours.get(key, key), key) for key in content]


def _family_of(content: Mapping[str, Any]) -> str:
  """The `model_type` of a `config.json`; bert where it has none."""
  name = content.get("model_type", "bert")
  if name not in _SIZES:
    raise ValueError(
      f"model_type is {name!r}, but this project has models of {', '.join(_SIZES)} only."
    )
  return name


def from_original(
  content: Mapping[str, Any],
  architecture: str,
  labels: Sequence[str] | None = None,
  problem_type: str | None = None,
  family: str = "bert",
) -> dict[str, Any]:
  """The `config.json` of the same model.

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
  # No `embedding_size` is that of `hidden_size`.
  content = {key: value for key, value in content.items() if value is not None}
  if family == "electra" and "embedding_size" not in content:
    content["embedding_size"] = content["hidden_size"]
  config = {
    **_SIZES[family],
    **_DEFAULTS_OF_OURS.get(family, {"type_vocab_size": _ORIGINAL_TYPE_VOCAB_SIZE}),
    **content,
    "hidden_act": names[0],
    "architectures": [architecture],
    "model_type": family,
    **_fixed(family),
    "tie_word_embeddings": True,
  }
  config.setdefault("pad_token_id", 0)
  config.pop("transformers_heads", None)  # the class says so
  if family == "roberta":
    config |= {"bos_token_id": 0, "eos_token_id": 2}
  if family == "distilbert":
    config = {
      _KEYS_OF_DISTILBERT.get(key, key): value
      for key, value in config.items()
      if key not in (*_FIXED, *_EPSILON, "type_vocab_size")
    }
  if labels:
    config["id2label"] = {str(index): label for index, label in enumerate(labels)}
    config["label2id"] = {label: index for index, label in enumerate(labels)}
  if problem_type:
    config["problem_type"] = _PROBLEM_TYPES[problem_type]
  return config


def read_classes(content: Mapping[str, Any]) -> dict[str, Any]:
  """The outputs of a classifier.

  Args:
    content: a `config.json`.

  Returns:
    `labels`, the names of the outputs in their order, and `problem_type`, one of
    `heads.PROBLEM_TYPES`.

  Raises:
    ValueError: the labels do not have the numbers 0, 1, 2, ..., or the problem type is unknown.

  Example:
    >>> read_classes({"id2label": {"0": "no", "1": "yes"}})
    {'labels': ['no', 'yes'], 'problem_type': 'classification'}
  """
  names = content.get("id2label", {str(i): f"LABEL_{i}" for i in range(_DEFAULT_NUM_LABELS)})
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
  """Whether a key is neither a size nor a rate, but part of the original's configurations."""
  return key in ("directionality", "generator_hidden_size", "generator_layers") or key.startswith(
    "pooler_"
  )
