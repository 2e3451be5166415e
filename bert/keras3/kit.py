"""Names of other packages: configurations by name, layers, models that return tensors.

  config = create_model_config("bert-base-uncased (110M)")
  model = BERTForSequenceClassification(config, num_labels=2)
  tokenizer = get_tokenizer("bert-base-uncased")

The layers are those of `layers.py` and `attention.py` under other names; each also takes a
configuration: `MultiHeadAttention(config)`. The models are those of `models.py`, but return the
tensor itself, hidden states or logits, instead of a named tuple. Blocks normalize after each
residual sum, as in the original.
"""

import importlib
import os
from typing import Any, ClassVar

import keras

from bert.checkpoints import model_names
from bert.keras3 import arrangements
from bert.keras3.attention import Attends
from bert.keras3.building_blocks import (
  LAYER_NORM_EPSILON,
  PACKAGE,
  SpecLayer,
  gelu,
  register,
  scope_below,
)
from bert.keras3.layers import FeedsForward, TransformerLayer
from bert.keras3.models import (
  BertForMaskedLM,
  BertForPreTraining,
  BertForSequenceClassification,
  BertModel,
  ReturnsTensor,
)
from bert.model.configuration import BertConfig


def create_model_config(name: str, **overrides) -> BertConfig:
  """Creates the configuration of a model.

  Args:
    name: of a released model in this project or in transformers, such as `bert-base-cased`; what
      follows it in parentheses is not read.
    **overrides: attributes of the configuration to replace.

  Raises:
    ValueError: the name or an override is unknown, or a value is invalid.

  Example:
    >>> config = create_model_config("bert-base-cased (110M)", num_hidden_layers=6)
    >>> config.vocab_size, config.hidden_size, config.num_hidden_layers
    (28996, 768, 6)
  """
  short = _without_size(name)
  config = BertConfig.from_name(model_names.released_name_of(short) or short)
  unknown = sorted(set(overrides) - set(vars(config)))
  if unknown:
    raise ValueError(f"Unknown attributes {', '.join(unknown)}; known: {', '.join(vars(config))}.")
  vars(config).update(overrides)
  config.validate()
  return config


def _without_size(name: str) -> str:
  """Cuts the part in parentheses off `bert-base-uncased (110M)`."""
  return name.partition(" (")[0].strip()


def get_tokenizer(name: str | os.PathLike, cache_dir: str | os.PathLike | None = None) -> Any:
  """Reads the tokenizer of a model, a class of transformers; it is downloaded if necessary.

  Args:
    name: as in `create_model_config`, or a folder with a vocabulary.
    cache_dir: folder of downloads.

  Raises:
    ImportError: transformers is not installed.
    ValueError: the model does not exist.
  """
  path = os.fsdecode(name)
  known = path if os.path.isdir(path) else _without_size(path)
  tokenizers = importlib.import_module("bert.transformers")
  return tokenizers.AutoTokenizer.from_pretrained(known, cache_dir=cache_dir)


# ---------------------------------------------------------------------------------------------
# Layers.


class _FromConfig:
  """Base before a layer's own: the first argument may be a configuration."""

  from_config_keys: ClassVar[dict[str, str]]  # argument: attribute of the config

  def __init__(self, hidden_size=768, *args, **kwargs):
    """Creates the layer.

    Args:
      hidden_size: the width; or a `BertConfig`, which also gives the other sizes.
      *args: arguments of the layer's base.
      **kwargs: further ones; they replace values of the configuration.
    """
    if isinstance(hidden_size, BertConfig):
      config, hidden_size = hidden_size, hidden_size.hidden_size
      values = {name: getattr(config, key) for name, key in self.from_config_keys.items()}
      kwargs = {**values, **kwargs}
    super().__init__(hidden_size, *args, **kwargs)


class _SelfAttention(Attends, SpecLayer):
  """Self-attention with its output projection, by itself.

  Variables, under the scope it is built in: `self/{query,key,value}` and `output/dense`, each with
  `kernel` and `bias`.
  """

  def __init__(
    self,
    hidden_size: int,
    num_heads: int,
    attention_dropout_rate: float = 0.1,
    use_bias: bool = True,
    initializer_range: float = 0.02,
    n_kv_head: int | None = None,
    window_size: int | None = None,
    name: str = "self",
    **kwargs,
  ):
    """Creates the projections; see `Attends.create_projections`."""
    super().__init__(name=name, **kwargs)
    self.places = arrangements.SELF_ATTENTION
    self.keep(locals())
    self.create_projections(
      hidden_size,
      num_heads,
      attention_dropout_rate,
      n_kv_head,
      window_size,
      use_bias=use_bias,
      initializer_range=initializer_range,
    )

  def build(self, input_shape):
    """Creates the variables under the original's names."""
    for role in ("query", "key", "value"):
      self.part(role).build(input_shape)
    # In the original `output` is a scope beside `self`, not inside it.
    with scope_below(self.path.rpartition("/")[0], "output"):
      self.output_dense.build(input_shape)
    self.built = True

  def call(self, hidden_states, attention_mask=None, head_mask=None):
    """Mixes each vector from all visible ones; see `Attends.attend`."""
    return self.attend(hidden_states, attention_mask, head_mask)


@register
class MultiHeadAttention(_FromConfig, _SelfAttention):
  """Self-attention with its output projection."""

  from_config_keys: ClassVar = {
    "num_heads": "num_attention_heads",
    "attention_dropout_rate": "attention_probs_dropout_prob",
    "initializer_range": "initializer_range",
  }


@register
class TransformerEncoderBlock(_FromConfig, TransformerLayer):
  """Attention and feed-forward network, each with a residual sum and a normalization."""

  from_config_keys: ClassVar = {
    **MultiHeadAttention.from_config_keys,
    "intermediate_size": "intermediate_size",
    "dropout_rate": "hidden_dropout_prob",
    "activation": "hidden_act",
  }


class _FeedForward(FeedsForward, SpecLayer):
  """A feed-forward network by itself.

  Variables, beside this layer's scope: `intermediate/dense` is W1, `output/dense` is W2,
  `intermediate/gate` is W0.
  """

  retired: ClassVar = {"scopes": ["intermediate", "output"]}

  def __init__(
    self,
    hidden_size: int,
    intermediate_size: int,
    ffn_type: str = "mlp",
    activation: str = "gelu",
    use_bias: bool = True,
    initializer_range: float = 0.02,
    name: str = "feed_forward",
    **kwargs,
  ):
    """Creates the projections; see `FeedsForward.create_feed_forward`."""
    super().__init__(name=name, **kwargs)
    self.places = arrangements.FEED_FORWARD
    self.keep(locals())
    self.create_feed_forward(
      hidden_size,
      intermediate_size,
      ffn_type,
      activation,
      use_bias=use_bias,
      initializer_range=initializer_range,
    )

  def build(self, input_shape):
    """Creates the variables under the original's names."""
    parent = self.path.rpartition("/")[0]
    with scope_below(parent, "intermediate"):
      self.intermediate.build(input_shape)
      if self.gate_activation:
        self.gate.build(input_shape)
    with scope_below(parent, "output"):
      self.output_dense.build((*input_shape[:-1], self.spec.intermediate_size))
    self.built = True

  def call(self, inputs):
    """Transforms vectors: float `[..., hidden_size]` to the same shape."""
    return self.feed_forward(inputs)


@keras.saving.register_keras_serializable(package=PACKAGE, name="KitFeedForward")
class FeedForward(_FromConfig, _FeedForward):
  """The feed-forward network of a block."""

  from_config_keys: ClassVar = {
    "intermediate_size": "intermediate_size",
    "activation": "hidden_act",
    "initializer_range": "initializer_range",
  }


@register
class LayerNorm(keras.layers.LayerNormalization):
  """Normalization of the last axis, with BERT's epsilon."""

  def __init__(
    self, epsilon: float | BertConfig = LAYER_NORM_EPSILON, name: str = "LayerNorm", **kwargs
  ):
    """Creates the layer.

    Args:
      epsilon: added to the variance; or a `BertConfig`, for BERT's.
      name: name of the layer.
      **kwargs: arguments of Keras's layer.

    Raises:
      ValueError: the epsilon looks like a width.
    """
    if isinstance(epsilon, BertConfig):
      epsilon = LAYER_NORM_EPSILON
    if epsilon >= 1:
      raise ValueError(f"epsilon is {epsilon}; the width comes from the input: LayerNorm().")
    super().__init__(epsilon=epsilon, name=name, **kwargs)


@register
class GELU(keras.layers.Layer):
  """Gaussian error linear unit in the tanh form, as in BERT's training."""

  def call(self, inputs):
    """Computes the function for each element: float `[...]` to the same shape."""
    return gelu(inputs)


# ---------------------------------------------------------------------------------------------
# Models.


@register
class BERTModel(ReturnsTensor, BertModel):
  """The encoder without a head: int `[B, S]` to `[B, S, W]`."""


@register
class BERTForMaskedLM(ReturnsTensor, BertForMaskedLM):
  """Scores the vocabulary for each token: int `[B, S]` to float32 `[B, S, V]`."""


@register
class BERTForSequenceClassification(ReturnsTensor, BertForSequenceClassification):
  """Scores each label for a text: int `[B, S]` to float32 `[B, C]`."""


BertPreTrainingModel = BertForPreTraining
