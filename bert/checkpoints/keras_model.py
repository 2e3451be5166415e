"""What a Keras model is in the original's terms: its configuration, its head, what has no place.

  found = describe(layers)
  found.config               # content of a bert_config.json
  found.heads                # {"classifier": "TextClassificationHead"}: layer -> its class
  found.facts                # {"problem_type": "classification"}, as a run stores them

The Keras side has more kinds of attention, normalization and heads than the original. `describe`
decides which models the rest of this project, and transformers, can compute, for
`bert/keras3/saving.py`. Dictionaries in, facts out: neither Keras nor a file is needed here.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bert import families
from bert.checkpoints.bundle_files import CheckpointError
from bert.families import Family
from bert.tasks import kinds

ARGUMENTS = {  # argument of `keras3.BERT`: key of bert_config.json
  "vocab_size": "vocab_size",
  "hidden_size": "hidden_size",
  "num_layers": "num_hidden_layers",
  "num_heads": "num_attention_heads",
  "intermediate_size": "intermediate_size",
  "hidden_act": "hidden_act",
  "hidden_dropout_prob": "hidden_dropout_prob",
  "attention_probs_dropout_prob": "attention_probs_dropout_prob",
  "max_position_embeddings": "max_position_embeddings",
  "type_vocab_size": "type_vocab_size",
  "initializer_range": "initializer_range",
}
# Arguments that some families have, under the names of their keys.
ARGUMENTS_OF_FAMILIES = (
  *("embedding_size", "num_hidden_groups", "inner_group_num"),
  *("layer_norm_eps", "pad_token_id", "seq_classif_dropout", "qa_dropout", "transformers_heads"),
)

# Other names of the tanh form of GELU, which the original calls gelu.
_TANH_FORMS = ("gelu_new", "gelu_tanh", "gelu_pytorch_tanh")
_ACTIVATIONS = ("gelu", "gelu_erf", "relu", "tanh", "linear")

# Arguments of `keras3.BERT` that the original does not have, and the values that stand for it.
_FIXED: dict[str, tuple] = {
  "layer_norm_eps": (1e-12,),
  "position_embedding_type": ("absolute", "learned"),
  "normalization_type": ("layer_norm",),
  "normalization_position": ("post",),
  "attention_type": ("multi_head",),
  "ffn_type": ("mlp",),
  "layer_args": (None, {}),
}

# Class of a model with layers of its own behind the encoder -> the heads that they are.
_HEADS_OF_MODELS = {
  "BertForSequenceClassification": ("TextClassificationHead",),
  "BERTForSequenceClassification": ("TextClassificationHead",),
  "BertForTokenClassification": ("TokenClassificationHead",),
  "BertForMultipleChoice": ("MultipleChoiceHead",),
  "BertForQuestionAnswering": ("QuestionAnsweringHead",),
  "BertForMaskedLM": ("MaskedLMHead",),
  "BERTForMaskedLM": ("MaskedLMHead",),
  "MaskedLanguageModel": ("MaskedLMHead",),
  "BertForNextSentencePrediction": ("NextSentenceHead",),
  "BertForPreTraining": ("MaskedLMHead", "NextSentenceHead"),
  "BertForReplacedTokens": ("ReplacedTokensHead",),
}


# Head: the scope of its variables in the original. That of masked tokens is the family's.
_SCOPES = {
  "TextClassificationHead": "",
  "TokenClassificationHead": "",
  "MultipleChoiceHead": "",
  "QuestionAnsweringHead": "cls/squad/",
  "MaskedLMHead": "",
  "NextSentenceHead": "cls/seq_relationship/",
  "ReplacedTokensHead": "discriminator_predictions/",
}
# The same of heads with labels where a family's are plain dense layers, `[in, out]`.
_LABEL_SCOPES = {
  "TextClassificationHead": "task_specific/task/dense/",
  "TokenClassificationHead": "task_specific/ner/dense/",
}
_SCORED = {"TextClassificationHead": "texts", "MultipleChoiceHead": "choices"}
_PROBLEM_TYPES = {"softmax": "classification", "sigmoid": "multi_label", "linear": "regression"}
_PLAIN = {  # arguments of a head, and their values where it is that of the original
  "pooling_type": "pooler",
  "use_intermediate": False,
  "use_task_attention": False,
  "use_ffn": False,
}


class Layer(NamedTuple):
  """A layer or model."""

  kind: str  # name of the class of `bert.keras3`; empty for classes of others
  name: str  # of the layer
  config: Mapping[str, Any]  # its `get_config()`


class KerasModel(NamedTuple):
  """What a Keras model is."""

  config: dict[str, Any]  # content of a `bert_config.json`
  # Names of the layers that are heads of the original -> the names of their classes. A model that
  # is a head itself has its name, with a number behind it for a second head.
  heads: dict[str, str]
  # Of a fine-tuned model, as `reading.read_facts` returns them, without labels.
  facts: dict[str, Any]
  left_out: list[str]  # for each head that only the Keras side has, its name and why
  family: Family  # the model's


def describe(layers: Iterable[Layer]) -> KerasModel:
  """What the model of these layers is.

  Args:
    layers: all of a model, the model itself included.

  Raises:
    CheckpointError: they contain no `keras3.BERT` or several, or one that the original does not
      have.
  """
  layers = list(layers)
  encoders = [layer for layer in layers if layer.kind == "BERT"]
  check_one_encoder(len(encoders), "The Keras model")
  family = family_of(encoders[0].config)
  heads, left_out = _heads(layers, family)
  config = original_config(encoders[0].config)
  return KerasModel(config, heads, _facts(layers, heads), left_out, family)


def family_of(arguments: Mapping[str, Any]) -> Family:
  """The family of a `keras3.BERT`, or of a head, with these arguments.

  ELECTRA's has hidden layers in its heads only with `transformers_heads`; BERT's head of texts has
  the activation of TinyBERT's only with `classifier_activation`.

  Raises:
    CheckpointError: it is unknown.
  """
  try:
    family = families.family_of({"model_type": arguments.get("model_type", "bert")})
  except ValueError as error:
    raise CheckpointError(str(error)) from None
  if "transformers_heads" in family.keys and not arguments.get("transformers_heads"):
    return dataclasses.replace(family, hidden_layers={})
  if activation := arguments.get("classifier_activation"):
    layer = families.HiddenLayer("", activation, drops_input=False)
    return dataclasses.replace(family, hidden_layers={**family.hidden_layers, "texts": layer})
  return family


def check_one_encoder(count: int, subject: str) -> None:
  """Raises a CheckpointError unless a model has one encoder, as a checkpoint does."""
  if count != 1:
    found = f"{count} encoders, a checkpoint has one" if count else "no BERT of bert.keras3"
    raise CheckpointError(f"{subject} contains {found}.")


def _facts(layers: list[Layer], heads: Mapping[str, str]) -> dict[str, Any]:
  """Finds the task, and what the outputs of its head mean."""
  name = _deciding_head(heads)
  if name is None:
    return {}
  if heads[name] != "TextClassificationHead":
    return {**kinds.of_class(heads[name]).facts}
  own = [each.config for each in layers if each.name == name]
  if own[0].get("num_labels") == 1:  # of a model that creates its head itself
    return {"problem_type": "regression"}
  return {"problem_type": _PROBLEM_TYPES[own[0].get("activation", "softmax")]}


def _deciding_head(heads: Mapping[str, str]) -> str | None:
  """Finds the layer whose head is that of a task; None where no head is."""
  return next((name for name, head in heads.items() if kinds.of_class(head)), None)


def original_config(arguments: Mapping[str, Any]) -> dict[str, Any]:
  """The content of the `bert_config.json` of a `keras3.BERT` with these arguments.

  Raises:
    CheckpointError: it computes something that the original does not have.

  Example:
    >>> original_config({"num_layers": 2, "hidden_act": "gelu_new"})
    {'num_hidden_layers': 2, 'hidden_act': 'gelu'}
  """
  family = family_of(arguments)
  for name, allowed in _FIXED.items():
    if name in arguments and name not in family.keys and arguments[name] not in allowed:
      raise CheckpointError(
        f"{name} is {arguments[name]!r}, which only bert.keras3 has: the original, and "
        f"transformers, have {allowed[0]!r}. Load the model with keras.models.load_model."
      )
  config = keys_of(arguments)
  activation = config.get("hidden_act", "gelu")
  name = "gelu" if activation in _TANH_FORMS else activation
  own = [each for each in _ACTIVATIONS if each not in family.activations]
  if "hidden_act" in config and name not in own:
    raise CheckpointError(
      f"hidden_act is {activation!r}, which the original does not have; it has {', '.join(own)}."
    )
  return {**config, "hidden_act": name} if "hidden_act" in config else config


def keys_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
  """The keys of a configuration for these arguments of `keras3.BERT`, with the same values.

  Example:
    >>> keys_of({"num_layers": 2, "model_type": "electra", "embedding_size": 8})
    {'num_hidden_layers': 2, 'model_type': 'electra', 'embedding_size': 8}
  """
  family = family_of(arguments)
  keys = {key: arguments[name] for name, key in ARGUMENTS.items() if name in arguments}
  if family.name == families.BERT.name:
    activation = arguments.get("classifier_activation")
    return {**keys, **({"classifier_activation": activation} if activation else {})}
  own = [name for name in ARGUMENTS_OF_FAMILIES if name in family.keys]
  return {**keys, "model_type": family.name, **{n: arguments[n] for n in own if n in arguments}}


def scope_of(head: str, family: Family) -> str:
  """Returns the scope of a head's variables, with a slash; of masked tokens that of the bias.

  Args:
    head: the name of its class in `bert.keras3`, as in the functions below.
    family: of the model.
  """
  if head == "MaskedLMHead":
    return f"{family.masked_lm}/"
  return _LABEL_SCOPES[head] if is_dense(head, family) else _SCOPES[head]


def is_dense(head: str, family: Family) -> bool:
  """Tells whether a head is a dense layer `[in, out]`, not the original's transposed weights."""
  is_in_scope = family.has_task_scopes and head in _LABEL_SCOPES
  return is_in_scope and hidden_layer(head, family) is None


def variable_names(head: str, family: Family) -> dict[str, tuple[str, ...]]:
  """Maps parts of a head's layer to the original's names of their variables, in Keras' order."""
  scope = scope_of(head, family)
  if head == "MaskedLMHead":
    transform = family.masked_lm_transform
    return {
      "": (f"{scope}output_bias",),
      "dense": (f"{transform}/dense/kernel", f"{transform}/dense/bias"),
      "layer_norm": (f"{transform}/LayerNorm/gamma", f"{transform}/LayerNorm/beta"),
    }
  if head == "ReplacedTokensHead":
    layers = {"dense": "dense", "output_dense": "dense_1"}
    return {part: (f"{scope}{name}/kernel", f"{scope}{name}/bias") for part, name in layers.items()}
  leaves = ("kernel", "bias") if is_dense(head, family) else ("output_weights", "output_bias")
  names = {"": tuple(f"{scope}{leaf}" for leaf in leaves)}
  if hidden := hidden_layer(head, family):
    names["hidden"] = f"{hidden.scope}/kernel", f"{hidden.scope}/bias"
  return names


def hidden_layer(head: str | None, family: Family) -> families.HiddenLayer | None:
  """Returns the layer before the outputs of a head; None where there is none."""
  return family.hidden_layers.get(_SCORED.get(head or "", ""))


def bias_of_labels(model: KerasModel) -> str | None:
  """Names the bias that has a number for each label; None where outputs have no names."""
  head = model.heads.get(_deciding_head(model.heads) or "")
  return variable_names(head, model.family)[""][-1] if head in _LABEL_SCOPES else None


def _heads(layers: list[Layer], family: Family) -> tuple[dict[str, str], list[str]]:
  """The names of the heads that the original has -> their classes; and why others are left out."""
  found: dict[str, str] = {}
  reasons = {}
  for layer in layers:
    if heads := _HEADS_OF_MODELS.get(layer.kind):
      names = (layer.name, f"{layer.name} 2")
      return dict(zip(names, heads, strict=False)), []
  for layer in layers:
    if layer.kind.endswith("Head") and layer.kind not in _SCOPES:
      reasons[layer.name] = f"a checkpoint has no {layer.kind}"
    elif layer.kind in _SCOPES:
      head = layer.kind
      if variable_names(head, family) != variable_names(head, family_of(layer.config)):
        reasons[layer.name] = f"a head of {family.title} needs the encoder's model_type"
        continue
      unlike = [k for k, plain in _PLAIN.items() if layer.config.get(k, plain) != plain]
      if head != "MultipleChoiceHead" and not layer.config.get("use_bias", True):
        unlike.append("use_bias")
      if unlike:
        values = ", ".join(f"{key}={layer.config[key]!r}" for key in unlike)
        reasons[layer.name] = f"the original's head does not have {values}"
      else:
        found[layer.name] = head
  for scope in {scope_of(head, family) for head in found.values()}:
    same = [name for name, head in found.items() if scope_of(head, family) == scope]
    if len(same) > 1:  # several classifiers: their variables would have the same names
      for name in same:
        reasons[name] = f"the model has {len(same)} such heads, a checkpoint has one"
        del found[name]
  return found, [f"{name} ({reason})" for name, reason in reasons.items()]
