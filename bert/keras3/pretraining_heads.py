"""Heads of pre-training in Keras 3: masked tokens, replaced tokens, pairs of sentences.

  head = MaskedLMHead.for_encoder(bert)
  logits = head(bert(inputs)["last_hidden_state"], bert.embeddings.word_embeddings)
  was_replaced = ReplacedTokensHead("gelu_erf")(bert(inputs)["last_hidden_state"])

Letters in shapes: B = batch size, S = sequence length, P = masked positions, W = width, E = width
of the embeddings, V = vocabulary size.
"""

import itertools
from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from bert.checkpoints import keras_model
from bert.checkpoints.loading import original_names
from bert.keras3.building_blocks import (
  LAYER_NORM_EPSILON,
  create_dense,
  create_normalization,
  register,
  require_one_of,
  resize_rows,
)
from bert.keras3.heads import EncoderHead, TaskHead, pool
from bert.model import families
from bert.model.configuration import BertConfig


class TokensHead(EncoderHead):
  """Base of the heads that are called with the encoder's `last_hidden_state` alone."""

  def build_for(self, bert) -> None:
    """Creates the variables for the outputs of a `BERT`, unless they exist."""
    if not self.built:
      self.build((None, None, bert.hidden_size))

  def score(self, bert, outputs):
    """Calls the head with the outputs of a `BERT`."""
    del bert
    return self(outputs["last_hidden_state"])


@register
class MaskedLMHead(TokensHead):
  """Scores all tokens of the vocabulary; the word embeddings are the output weights."""

  original = "MaskedLMHead"

  def __init__(
    self,
    vocab_size: int,
    hidden_act: str = "gelu",
    initializer_range: float = 0.02,
    embedding_size: int | None = None,
    model_type: str = "bert",
    layer_norm_eps: float = LAYER_NORM_EPSILON,
    **kwargs,
  ):
    """Creates the head.

    Args:
      vocab_size: V.
      hidden_act: activation of its dense layer.
      initializer_range: standard deviation of the initial kernel.
      embedding_size: E, width of the word embeddings; W by default.
      model_type: the encoder's family, which names the variables.
      layer_norm_eps: epsilon of its normalization.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    require_one_of("model_type", model_type, tuple(families.FAMILIES))
    self.spec = SimpleNamespace(
      vocab_size=vocab_size,
      hidden_act=hidden_act,
      initializer_range=initializer_range,
      embedding_size=embedding_size,
      model_type=model_type,
      layer_norm_eps=layer_norm_eps,
    )
    self.layer_norm = create_normalization("layer_norm", layer_norm_eps, self.dtype_policy)
    self.dense: Any = None  # of `build`

  @classmethod
  def for_encoder(cls, bert, num_labels: int | None = None) -> "MaskedLMHead":
    """Creates the head `predictions`; see `EncoderHead`."""
    return cls(**masked_lm_arguments(bert.config), name="predictions")

  def build(self, input_shape):
    """Creates the variables."""
    width = self.spec.embedding_size or input_shape[-1]
    spec = self.spec
    self.dense = create_dense(
      width, "dense", self.dtype_policy, spec.initializer_range, spec.hidden_act
    )
    with keras.name_scope("transform"):
      self.dense.build(input_shape)
      self.layer_norm.build((*input_shape[:-1], width))
    self.output_bias = self.add_weight(
      shape=(self.spec.vocab_size,), initializer="zeros", name="output_bias"
    )
    self.built = True

  def resize_vocabulary(self, rows: int) -> None:
    """Changes the number of scores; see `building_blocks.resize_rows`."""
    resize_rows(self, "output_bias", rows)
    self.spec.vocab_size = rows

  def call(self, states, table, positions=None):
    """Scores the vocabulary for tokens.

    Args:
      states: `[B, S, W]`, the last hidden state.
      table: `[V, E]`, the word embeddings.
      positions: int `[B, P]`, positions to predict; all by default.

    Returns:
      float32 `[B, S, V]` or `[B, P, V]`.
    """
    if positions is not None:
      states = ops.take_along_axis(states, ops.cast(positions, "int32")[..., None], axis=1)
    states = self.layer_norm(self.dense(states))
    logits = ops.matmul(states, ops.transpose(ops.cast(table, self.compute_dtype)))
    return ops.cast(logits + self.output_bias, "float32")

  def score(self, bert, outputs):
    """Scores the tokens at `masked_lm_positions` in the outputs of a `BERT`, or all."""
    table = bert.embeddings.word_embeddings
    return self(outputs["last_hidden_state"], table, outputs.get("masked_lm_positions"))

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """Returns the variables by their names in the original's checkpoints."""
    dense, norm = self.dense, self.layer_norm
    parts = {"": [self.output_bias], "dense": [dense.kernel, dense.bias]}
    parts["layer_norm"] = [norm.gamma, norm.beta]
    names = keras_model.variable_names("MaskedLMHead", families.FAMILIES[self.spec.model_type])
    pairs = (zip(names[part], parts[part], strict=True) for part in names)
    return dict(itertools.chain.from_iterable(pairs))


def masked_lm_arguments(config: BertConfig) -> dict[str, Any]:
  """Returns the arguments of the `MaskedLMHead` of an encoder of this configuration."""
  return {
    "vocab_size": config.vocab_size,
    "hidden_act": config.hidden_act,
    "initializer_range": config.initializer_range,
    "embedding_size": getattr(config, "embedding_size", None),
    "model_type": config.family.name,
    "layer_norm_eps": config.norm_epsilon,
  }


@register
class ReplacedTokensHead(TokensHead):
  """Predicts which tokens a generator replaced: the head of ELECTRA's discriminator."""

  original = "ReplacedTokensHead"

  def __init__(self, hidden_act: str = "gelu_erf", initializer_range: float = 0.02, **kwargs):
    """Creates the head.

    Args:
      hidden_act: activation of its dense layer.
      initializer_range: standard deviation of that layer's initial kernel.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    self.spec = SimpleNamespace(hidden_act=hidden_act, initializer_range=initializer_range)
    self.dense: Any = None  # of `build`, as the next
    self.output_dense: Any = None

  @classmethod
  def for_encoder(cls, bert, num_labels: int | None = None) -> "ReplacedTokensHead":
    """Creates the head `discriminator`; see `EncoderHead`."""
    if not bert.family.has_generator:
      raise ValueError(f"{bert.family.title} has no head for replaced words; ELECTRA has.")
    return cls(bert.hidden_act, bert.initializer_range, name="discriminator")

  def build(self, input_shape):
    """Creates the variables."""
    spec = self.spec
    self.dense = create_dense(
      input_shape[-1], "dense", self.dtype_policy, spec.initializer_range, spec.hidden_act
    )
    self.output_dense = create_dense(1, "dense_1", self.dtype_policy, None)
    self.dense.build(input_shape)
    self.output_dense.build(input_shape)
    self.built = True

  def call(self, states):
    """Scores the last hidden state `[B, S, W]`: float32 `[B, S]`, above 0 where replaced."""
    return ops.cast(self.output_dense(self.dense(states))[..., 0], "float32")

  def compute_output_spec(self, states):
    """Returns the shape and type of the output."""
    return keras.KerasTensor(states.shape[:-1], "float32")

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """Returns the variables by their names in the original's checkpoints."""
    return original_names(self, "discriminator_predictions")


@register
class NextSentenceHead(TaskHead):
  """Predicts whether the second segment follows the first (class 0) or is random (class 1).

  In a family with the objective `mlm_sop` class 1 means that the two are exchanged.
  """

  original = "NextSentenceHead"
  reads_pooler = True
  reads_padding = False

  def __init__(self, **kwargs):
    super().__init__(**{"num_outputs": 2, "dropout_rate": 0.0, **kwargs})

  @classmethod
  def _arguments_for(cls, bert, num_labels) -> dict:
    if bert.family.objective not in ("mlm_nsp", "mlm_sop"):
      raise ValueError(
        f"{bert.family.title} has no pairs of sentences in pre-training; its head for words is in "
        "BertForMaskedLM."
      )
    return {"dropout_rate": 0.0, "name": "seq_relationship"}

  def _features(self, inputs):
    return pool(inputs, "pooler")
