"""Heads of pre-training on words in Keras 3: the masked ones, and those of a generator.

  head = create_masked_lm_head(bert)
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
from bert.keras3.parts import (
  LAYER_NORM_EPSILON,
  create_initializer,
  create_normalization,
  get_activation,
  register,
  require_one_of,
)
from bert.keras3.torch_modules import TorchModule
from bert.keras3.weights import original_names
from bert.model import families


@register
class MaskedLMHead(TorchModule, keras.layers.Layer):
  """Scores of all words for tokens; the word embeddings are the output weights."""

  reads_pooler = False

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

  def build(self, input_shape):
    """Creates the variables."""
    width = self.spec.embedding_size or input_shape[-1]
    self.dense = _dense(width, self.spec, self.dtype_policy)
    with keras.name_scope("transform"):
      self.dense.build(input_shape)
      self.layer_norm.build((*input_shape[:-1], width))
    self.output_bias = self.add_weight(
      shape=(self.spec.vocab_size,), initializer="zeros", name="output_bias"
    )
    self.built = True

  def call(self, states, table, positions=None):
    """Scores all words.

    Args:
      states: `[B, S, W]`, the last hidden state.
      table: `[V, E]`, the word embeddings.
      positions: int `[B, P]`, the tokens to score; all by default.

    Returns:
      float32 `[B, S, V]` or `[B, P, V]`.
    """
    if positions is not None:
      states = ops.take_along_axis(states, ops.cast(positions, "int32")[..., None], axis=1)
    states = self.layer_norm(self.dense(states))
    logits = ops.matmul(states, ops.transpose(ops.cast(table, self.compute_dtype)))
    return ops.cast(logits + self.output_bias, "float32")

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """The variables by their names in the original's checkpoints."""
    dense, norm = self.dense, self.layer_norm
    parts = {"": [self.output_bias], "dense": [dense.kernel, dense.bias]}
    parts["layer_norm"] = [norm.gamma, norm.beta]
    names = keras_model.variable_names("masked_words", families.FAMILIES[self.spec.model_type])
    pairs = (zip(names[part], parts[part], strict=True) for part in names)
    return dict(itertools.chain.from_iterable(pairs))

  def get_config(self):
    """The constructor's arguments."""
    return {**super().get_config(), **vars(self.spec)}


def create_masked_lm_head(bert) -> MaskedLMHead:
  """The head for masked words of an encoder, a `BERT`, whose word embeddings it is called with."""
  return MaskedLMHead(
    *(bert.vocab_size, bert.hidden_act, bert.initializer_range, bert.embedding_size),
    model_type=bert.model_type,
    layer_norm_eps=bert.config.norm_epsilon,
    name="predictions",
  )


@register
class ReplacedTokensHead(TorchModule, keras.layers.Layer):
  """Whether each token is a generator's word: the head of ELECTRA's discriminator."""

  reads_pooler = False

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

  def build(self, input_shape):
    """Creates the variables."""
    width = input_shape[-1]
    self.dense = _dense(width, self.spec, self.dtype_policy)
    self.output_dense = keras.layers.Dense(
      1, kernel_initializer=create_initializer(None), dtype=self.dtype_policy, name="dense_1"
    )
    self.dense.build(input_shape)
    self.output_dense.build(input_shape)
    self.built = True

  def call(self, states):
    """`[B, S, W]`, the last hidden state, to float32 `[B, S]`; above 0: replaced."""
    return ops.cast(self.output_dense(self.dense(states))[..., 0], "float32")

  def compute_output_spec(self, states):
    """Shape and type of the output."""
    return keras.KerasTensor(states.shape[:-1], "float32")

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """The variables by their names in the original's checkpoints."""
    return original_names(self, "discriminator_predictions")

  def get_config(self):
    """The constructor's arguments."""
    return {**super().get_config(), **vars(self.spec)}


def _dense(width: int, spec: SimpleNamespace, policy) -> keras.layers.Dense:
  """The layer before the scores, of `spec`'s `hidden_act` and `initializer_range`."""
  return keras.layers.Dense(
    width,
    activation=get_activation(spec.hidden_act),
    kernel_initializer=create_initializer(spec.initializer_range),
    dtype=policy,
    name="dense",
  )
