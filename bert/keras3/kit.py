"""Alternative names, with capital BERT: model configurations by name, layers, models.

  config = create_model_config("bert-base-uncased (110M)")
  model = BERTForSequenceClassification(config, num_labels=2)
  tokenizer = get_tokenizer("bert-base-uncased")

The layers are those of `layers.py`, `attention.py` and `parts.py` under other names. The models are
those of `models.py`, but return the tensor itself, hidden states or logits, instead of a named
tuple. Blocks normalize after each residual sum, as in the original.
"""

import os

import keras

from bert.checkpoints import model_names
from bert.keras3.attention import SelfAttention
from bert.keras3.layers import TransformerLayer
from bert.keras3.models import BertForMaskedLM, BertForSequenceClassification, BertModel
from bert.keras3.parts import LAYER_NORM_EPSILON, gelu, register
from bert.keras3.tokenizer import BertTokenizer
from bert.model.configuration import BertConfig

MODEL_NAMES = (
  "bert-base-uncased (110M)",
  "bert-large-uncased (340M)",
  "bert-base-cased (110M)",
  "bert-large-cased (340M)",
)


def create_model_config(name: str, **overrides) -> BertConfig:
  """The configuration of a model.

  Args:
    name: one of `MODEL_NAMES`, with or without the part in parentheses; or the name of any released
      model in this project or in transformers.
    **overrides: attributes of the configuration to replace.

  Raises:
    ValueError: the name or an override is unknown, or a value is invalid.

  Example:
    >>> config = create_model_config("bert-base-cased (110M)", num_hidden_layers=6)
    >>> config.vocab_size, config.hidden_size, config.num_hidden_layers
    (28996, 768, 6)
  """
  try:
    short = _without_size(name)
    config = BertConfig.from_name(model_names.released_name_of(short) or short)
  except ValueError as error:
    known = ", ".join(repr(name) for name in MODEL_NAMES)
    raise ValueError(f"Unknown model {name!r}; known: {known}. {error}") from None
  unknown = sorted(set(overrides) - set(vars(config)))
  if unknown:
    raise ValueError(f"Unknown attributes {', '.join(unknown)}; known: {', '.join(vars(config))}.")
  vars(config).update(overrides)
  config.validate()
  return config


def _without_size(name: str) -> str:
  """`bert-base-uncased (110M)` without the part in parentheses."""
  return name.partition(" (")[0].strip()


def get_tokenizer(name: str, cache_dir: str | os.PathLike | None = None) -> BertTokenizer:
  """The tokenizer of a model, downloaded if necessary.

  Args:
    name: as in `create_model_config`, or a folder with a `vocab.txt`.
    cache_dir: folder of downloads.

  Raises:
    ValueError: the model does not exist.
  """
  path = os.fspath(name)
  return BertTokenizer.from_pretrained(
    path if os.path.isdir(path) else _without_size(path), cache_dir=cache_dir
  )


# ---------------------------------------------------------------------------------------------
# Layers.

MultiHeadAttention = SelfAttention
TransformerEncoderBlock = TransformerLayer


@register
class LayerNorm(keras.layers.LayerNormalization):
  """Normalization of the last axis, with BERT's epsilon."""

  def __init__(self, epsilon: float = LAYER_NORM_EPSILON, name: str = "LayerNorm", **kwargs):
    super().__init__(epsilon=epsilon, name=name, **kwargs)


@register
class GELU(keras.layers.Layer):
  """Gaussian error linear unit in the tanh form, as in BERT's training."""

  def call(self, inputs):
    """float `[...]` to the same shape."""
    return gelu(inputs)


# ---------------------------------------------------------------------------------------------
# Models.


@register
class BERTModel(BertModel):
  """The encoder without a head: int `[B, S]` to `[B, S, W]`."""

  def _outputs(self, outputs):
    return outputs["last_hidden_state"]


@register
class BERTForMaskedLM(BertForMaskedLM):
  """Scores every word of the vocabulary for each token: int `[B, S]` to float32 `[B, S, V]`."""

  def _outputs(self, outputs):
    return super()._outputs(outputs).logits


@register
class BERTForSequenceClassification(BertForSequenceClassification):
  """Scores each label for a text: int `[B, S]` to float32 `[B, C]`."""

  def _outputs(self, outputs):
    return super()._outputs(outputs).logits
