"""Layers of pre-training and of the models' heads: masked and replaced tokens, pairs, texts.

  head = MaskedLMHead(vocab_size=30522)
  logits = head(bert(inputs)["last_hidden_state"], bert.embeddings.word_embeddings)
  was_replaced = ReplacedTokensHead("gelu_erf")(bert(inputs)["last_hidden_state"])

Letters in shapes: B = batch size, S = sequence length, P = masked positions, W = width, E = width
of the embeddings, V = vocabulary size, C = number of classes.
"""

import itertools
from typing import Any

import keras
from keras import ops

from bert import families
from bert.checkpoints import keras_model
from bert.checkpoints.loading import original_names
from bert.keras3 import arrangements, older_files
from bert.keras3.building_blocks import (
  LAYER_NORM_EPSILON,
  Composite,
  Dropout,
  SpecLayer,
  Transposed,
  create_dense,
  create_normalization,
  get_activation,
  register,
  require_one_of,
  resize_rows,
)
from bert.model.configuration import BertConfig


@register
class MaskedLMHead(arrangements.Arranged, SpecLayer):
  """Scores all tokens of the vocabulary; the word embeddings are the output weights."""

  def __init__(
    self,
    vocab_size: int,
    hidden_act: str = "gelu",
    initializer_range: float = 0.02,
    embedding_size: int | None = None,
    model_type: str = "bert",
    layer_norm_eps: float = LAYER_NORM_EPSILON,
    input_embeddings: Any = None,
    **kwargs,
  ):
    """Creates the head.

    Args:
      vocab_size: V.
      hidden_act: activation of its dense layer.
      initializer_range: standard deviation of the initial kernel.
      embedding_size: E, width of the word embeddings; W by default.
      model_type: the encoder's family, which names sublayers and variables.
      layer_norm_eps: epsilon of its normalization.
      input_embeddings: the `BertEmbeddings` whose table is read by calls without one.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    require_one_of("model_type", model_type, tuple(families.FAMILIES))
    self.keep(locals())
    del self.spec.input_embeddings
    _, self.places = arrangements.MASKED_LM_HEADS[model_type]
    self.place("norm", create_normalization("layer_norm", layer_norm_eps, self.dtype_policy))
    # Not the layer itself, whose weights would count twice.
    self._table = None if input_embeddings is None else lambda: input_embeddings.word_embeddings

  def build(self, input_shape):
    """Creates the variables."""
    spec = self.spec
    width = spec.embedding_size or input_shape[-1]
    self.place(
      "dense",
      create_dense(width, "dense", self.dtype_policy, spec.initializer_range, spec.hidden_act),
    )
    with keras.name_scope("transform"):
      self.part("dense").build(input_shape)
      self.part("norm").build((*input_shape[:-1], width))
    self.output_bias = self.add_weight(
      shape=(spec.vocab_size,), initializer="zeros", name="output_bias"
    )
    self.built = True

  @property
  def bias(self) -> keras.Variable:
    """The bias of the scores, under transformers' name."""
    return self.output_bias

  def resize_vocabulary(self, rows: int) -> None:
    """Changes the number of scores; see `building_blocks.resize_rows`."""
    resize_rows(self, "output_bias", rows)
    self.spec.vocab_size = rows

  def call(self, states, table=None, positions=None):
    """Scores the vocabulary for tokens.

    Args:
      states: `[B, S, W]`, the last hidden state.
      table: `[V, E]`, the word embeddings; by default those of `input_embeddings`.
      positions: int `[B, P]`, positions to predict; all by default.

    Returns:
      float32 `[B, S, V]` or `[B, P, V]`.
    """
    if table is None:
      table = self._table()
    if positions is not None:
      states = ops.take_along_axis(states, ops.cast(positions, "int32")[..., None], axis=1)
    states = self.part("norm")(self.part("dense")(states))
    logits = ops.matmul(states, ops.transpose(ops.cast(table, self.compute_dtype)))
    return ops.cast(logits + self.output_bias, "float32")

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """Returns the variables by their names in the original's checkpoints."""
    dense, norm = self.part("dense"), self.part("norm")
    parts = {"": [self.output_bias], "dense": [dense.kernel, dense.bias]}
    parts["layer_norm"] = [norm.gamma, norm.beta]
    names = keras_model.variable_names("MaskedLMHead", families.FAMILIES[self.spec.model_type])
    pairs = (zip(names[part], parts[part], strict=True) for part in names)
    return dict(itertools.chain.from_iterable(pairs))

  def load_own_variables(self, store):
    """Loads a file, perhaps one that was written when the sublayers had other places."""
    found = older_files.group(store, "layer_norm")
    if found and self.places["norm"] != "layer_norm":
      older_files.read_masked_lm_head(self, found)
    else:
      super().load_own_variables(store)


def masked_lm_arguments(config: BertConfig) -> dict:
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
class ReplacedTokensHead(Composite, SpecLayer):
  """Predicts which tokens a generator replaced: the head of ELECTRA's discriminator."""

  def __init__(self, hidden_act: str = "gelu_erf", initializer_range: float = 0.02, **kwargs):
    """Creates the head.

    Args:
      hidden_act: activation of its dense layer.
      initializer_range: standard deviation of that layer's initial kernel.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    self.keep(locals())
    self.dense: Any = None  # of `build`, as the next
    self.dense_prediction: Any = None

  def build(self, input_shape):
    """Creates the variables."""
    spec = self.spec
    self.dense = create_dense(
      input_shape[-1], "dense", self.dtype_policy, spec.initializer_range, spec.hidden_act
    )
    self.dense_prediction = create_dense(1, "dense_1", self.dtype_policy, None)
    super().build(input_shape)

  @property
  def output_dense(self) -> keras.layers.Dense:
    """The layer of the scores, under its name in files written before."""
    return self.dense_prediction

  def call(self, states):
    """Scores the last hidden state `[B, S, W]`: float32 `[B, S]`, above 0 where replaced."""
    return ops.cast(self.dense_prediction(self.dense(states))[..., 0], "float32")

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """Returns the variables by their names in the original's checkpoints."""
    return original_names(self, "discriminator_predictions")


@register
class NextSentenceHead(Composite, arrangements.Arranged, SpecLayer):
  """Predicts whether the second segment follows the first (class 0) or is random (class 1).

  In a family with the objective `mlm_sop` class 1 means that the two are exchanged.
  """

  def __init__(
    self,
    num_outputs: int = 2,
    dropout_rate: float = 0.0,
    initializer_range: float = 0.02,
    model_type: str = "bert",
    **kwargs,
  ):
    """Creates the head.

    Args:
      num_outputs: C.
      dropout_rate: dropout before the scores.
      initializer_range: standard deviation of the initial kernel.
      model_type: the encoder's family, which names the sublayer.
      **kwargs: arguments of `keras.layers.Layer`.

    Raises:
      ValueError: models of the family are not pre-trained with pairs.
    """
    super().__init__(**kwargs)
    require_one_of("model_type", model_type, tuple(arrangements.SENTENCE_HEADS))
    self.keep(locals())
    _, self.places = arrangements.SENTENCE_HEADS[model_type]
    self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy)
    name = self.places["scores"]
    self.place("scores", create_dense(num_outputs, name, self.dtype_policy, initializer_range))

  def call(self, pooled):
    """Scores the encoder's `pooler_output`: `[B, W]` to float32 `[B, C]`."""
    return ops.cast(self.part("scores")(self.dropout(pooled)), "float32")

  def checkpoint_variables(self) -> dict:
    """Returns the variables by their names in the original's checkpoints."""
    scores = self.part("scores")
    names = keras_model.variable_names("NextSentenceHead", families.FAMILIES[self.spec.model_type])
    return dict(zip(names[""], (Transposed(scores.kernel), scores.bias), strict=True))


class ClassificationHead(Composite):
  """RoBERTa's and ELECTRA's layers from the last hidden state to the scores of a text.

  Attributes:
    dense, out_proj: `keras.layers.Dense`.
    dropout: before each of them.
  """

  def __init__(
    self, width: int, classes: int, activation: str, rate: float, initializer_range: float, **kwargs
  ):
    """Creates the layers.

    Args:
      width: W.
      classes: C.
      activation: of `dense`.
      rate: of dropout.
      initializer_range: standard deviation of the initial kernels.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    policy = self.dtype_policy
    self.dropout = Dropout(rate, dtype=policy)
    dense = create_dense(width, "dense", policy, initializer_range, activation)
    # Before the other layer, as in the state of optimizers in files.
    self.out_proj = create_dense(classes, "out_proj", policy, initializer_range)
    self.dense = dense

  def call(self, states, training=None):
    """Scores the first vectors of `[B, S, W]`: `[B, C]`."""
    hidden = self.dense(self.dropout(states[:, 0], training=training))
    return self.out_proj(self.dropout(hidden, training=training))


class SequenceSummary(Composite):
  """ELECTRA's vector of a text, by which it chooses among several.

  Attributes:
    summary: `keras.layers.Dense`.
    last_dropout: after it and its activation.
  """

  def __init__(self, width: int, activation: str, rate: float, initializer_range: float, **kwargs):
    """Creates the layers.

    Args:
      width: W.
      activation: after `summary`.
      rate: of dropout.
      initializer_range: standard deviation of the initial kernel.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    self.activation = get_activation(activation)
    self.last_dropout = Dropout(rate, dtype=self.dtype_policy)
    self.summary = create_dense(width, "summary", self.dtype_policy, initializer_range)

  def call(self, states, training=None):
    """Computes `[B, W]` of the first vectors of `[B, S, W]`."""
    return self.last_dropout(self.activation(self.summary(states[:, 0])), training=training)
