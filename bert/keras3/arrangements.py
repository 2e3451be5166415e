"""Where transformers 4's TensorFlow classes have the layers of each family.

  bert.encoder.layer[0].attention.self_attention.query
  distilbert.transformer.layer[0].attention.q_lin            # the same in DistilBERT

A role is what a layer computes, in every family; its place is the attribute, perhaps of a `Part`,
under which transformers' users find it. The names of variables, which are the original's, are in
`bert/families`.
"""

import operator
from collections.abc import Mapping
from typing import Any

import keras

from bert.keras3.torch_modules import TorchModule

_BERT = {
  "query": "attention.self_attention.query",
  "key": "attention.self_attention.key",
  "value": "attention.self_attention.value",
  "attention_dropout": "attention.self_attention.dropout",
  "attention_output": "attention.dense_output.dense",
  "dropout": "attention.dense_output.dropout",
  "attention_norm": "attention.dense_output.LayerNorm",
  "intermediate": "intermediate.dense",
  "gate": "intermediate.gate",
  "output": "bert_output.dense",
  "output_dropout": "bert_output.dropout",
  "output_norm": "bert_output.LayerNorm",
}
TRANSFORMER_LAYERS: dict[str, Mapping[str, str]] = {
  "bert": _BERT,
  "roberta": _BERT,
  "electra": _BERT,
  "albert": {
    "query": "attention.query",
    "key": "attention.key",
    "value": "attention.value",
    "attention_dropout": "attention.attention_dropout",
    "attention_output": "attention.dense",
    "dropout": "attention.output_dropout",
    "attention_norm": "attention.LayerNorm",
    "intermediate": "ffn",
    "gate": "ffn_gate",
    "output": "ffn_output",
    "output_dropout": "dropout",
    "output_norm": "full_layer_layer_norm",
  },
  "distilbert": {
    "query": "attention.q_lin",
    "key": "attention.k_lin",
    "value": "attention.v_lin",
    "attention_dropout": "attention.dropout",
    "attention_output": "attention.out_lin",
    "dropout": "dropout",
    "attention_norm": "sa_layer_norm",
    "intermediate": "ffn.lin1",
    "gate": "ffn.gate",
    "output": "ffn.lin2",
    "output_dropout": "ffn.dropout",
    "output_norm": "output_layer_norm",
  },
}
"""`model_type` -> role -> place in a `TransformerLayer`."""

SELF_ATTENTION = {
  **{role: role for role in ("query", "key", "value")},
  "attention_dropout": "dropout",
  "attention_output": "output_dense",
}
FEED_FORWARD = {"intermediate": "intermediate", "output": "output_dense", "gate": "gate"}
"""Role -> place in a `SelfAttention` and in a `FeedForward`, layers by themselves."""

_PLAIN = {"dense": "dense", "norm": "LayerNorm"}
MASKED_LM_HEADS: dict[str, tuple[str, Mapping[str, str]]] = {
  "bert": (
    "mlm",
    {"dense": "predictions.transform.dense", "norm": "predictions.transform.LayerNorm"},
  ),
  "roberta": ("lm_head", {"dense": "dense", "norm": "layer_norm"}),
  "electra": ("generator_predictions", _PLAIN),
  "albert": ("predictions", _PLAIN),
  "distilbert": ("vocab_projector", _PLAIN),
}
"""`model_type` -> attribute of a model, and role -> place in the `MaskedLMHead` there."""

SENTENCE_HEADS: dict[str, tuple[str, Mapping[str, str]]] = {
  "bert": ("nsp", {"scores": "seq_relationship"}),
  "albert": ("sop_classifier", {"scores": "classifier"}),
}
"""The same of the `NextSentenceHead`."""


class Part(TorchModule, keras.layers.Layer):
  """A place for layers; it computes nothing itself."""

  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.built = True  # it has no variables of its own

  @property
  def self(self):
    """The projections of attention, under the name that PyTorch's classes have."""
    return self.self_attention

  @property
  def output(self):
    """What follows the attention, under the name that PyTorch's classes have."""
    return self.dense_output


class Arranged(keras.layers.Layer):
  """A layer whose sublayers are in the places of its family.

  Attributes:
    places: role -> place.
  """

  places: Mapping[str, str]

  def place(self, role: str, layer: keras.layers.Layer) -> None:
    """Puts a layer into the place of its role."""
    *outer, name = self.places[role].split(".")
    owner: Any = self
    for each in outer:
      if not hasattr(owner, each):
        setattr(owner, each, Part(name=each, dtype=self.dtype_policy))
      owner = getattr(owner, each)
    setattr(owner, name, layer)

  def part(self, role: str) -> Any:
    """Returns the layer in the place of a role."""
    return operator.attrgetter(self.places[role])(self)
