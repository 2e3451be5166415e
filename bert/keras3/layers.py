"""Embeddings and transformer layers of a BERT, for every Keras backend.

  layer = TransformerLayer(hidden_size=256, num_heads=4, intermediate_size=1024)
  layer(vectors, attention_mask=mask)

With default arguments they compute the same as `modeling.py`: LayerNorm with an epsilon of 1e-12,
the tanh form of GELU, -10000 added to masked scores, normalization after each residual sum. A
variable's `path` ends with its name in the original (`attention/self/query/kernel`), by which
`weights.py` loads weights and `optimization.py` excludes variables from weight decay.

Letters in shapes: B = batch size, S = sequence length, W = width, the hidden size.
"""

from types import SimpleNamespace

import keras
from keras import ops

from bert.keras3.attention import create_attention
from bert.keras3.building_blocks import (
  LAYER_NORM_EPSILON,
  Dropout,
  SpecLayer,
  create_feed_forward,
  create_initializer,
  create_normalization,
  register,
  require_one_of,
  resize_rows,
  scope_below,
)
from bert.keras3.input_checks import check_length
from bert.model import families

NORMALIZATION_POSITIONS = ("post", "pre")
POSITION_EMBEDDING_TYPES = ("absolute", "learned", "sinusoidal")


@register
class BertEmbeddings(SpecLayer):
  """Word, position and segment embeddings: summed and normalized, with dropout.

  Attributes:
    word_embeddings: a variable `[vocab_size, W]`.
    token_type_embeddings: a variable `[type_vocab_size, W]`; None if it has no rows.
    position_embeddings: a variable `[max_position_embeddings, W]`; None if sinusoidal.
  """

  def __init__(
    self,
    vocab_size: int = 30522,
    hidden_size: int = 768,
    max_position_embeddings: int = 512,
    type_vocab_size: int = 2,
    hidden_dropout_prob: float = 0.1,
    initializer_range: float = 0.02,
    layer_norm_eps: float = LAYER_NORM_EPSILON,
    normalization_type: str = "layer_norm",
    position_embedding_type: str = "absolute",
    name: str = "embeddings",
    model_type: str = "bert",
    pad_token_id: int = 0,
    **kwargs,
  ):
    """Sets the sizes; `build` creates the tables.

    Args:
      vocab_size: rows of the word embeddings.
      hidden_size: W.
      max_position_embeddings: longest sequence.
      type_vocab_size: number of segment ids.
      hidden_dropout_prob: dropout of the normalized sum.
      initializer_range: standard deviation of the initial tables.
      layer_norm_eps: epsilon of the normalization.
      normalization_type: one of `building_blocks.NORMALIZATION_TYPES`.
      position_embedding_type: `absolute` or its synonym `learned`, or `sinusoidal`, which has no
        variables (arXiv:1706.03762, section 3.5).
      name: name of the layer.
      model_type: family of models, which decides how segments and positions count.
      pad_token_id: id of the padding token, for families that number positions by it.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    super().__init__(name=name, **kwargs)
    require_one_of("position_embedding_type", position_embedding_type, POSITION_EMBEDDING_TYPES)
    require_one_of("model_type", model_type, tuple(families.FAMILIES))
    self.spec = SimpleNamespace(
      vocab_size=vocab_size,
      hidden_size=hidden_size,
      max_position_embeddings=max_position_embeddings,
      type_vocab_size=type_vocab_size,
      hidden_dropout_prob=hidden_dropout_prob,
      initializer_range=initializer_range,
      layer_norm_eps=layer_norm_eps,
      normalization_type=normalization_type,
      position_embedding_type=position_embedding_type,
      model_type=model_type,
      pad_token_id=pad_token_id,
    )
    self.family = families.FAMILIES[model_type]
    self.layer_norm = create_normalization(normalization_type, layer_norm_eps, self.dtype_policy)
    self.dropout = Dropout(hidden_dropout_prob, dtype=self.dtype_policy)

  def build(self, input_shape=None):
    """Creates the variables; no shape depends on the input."""
    del input_shape
    self.word_embeddings = self._table("word_embeddings", self.spec.vocab_size)
    self.token_type_embeddings = None
    if self.spec.type_vocab_size:
      self.token_type_embeddings = self._table("token_type_embeddings", self.spec.type_vocab_size)
    self.position_embeddings = None
    if self.spec.position_embedding_type != "sinusoidal":
      self.position_embeddings = self._table(
        "position_embeddings", self.spec.max_position_embeddings
      )
    self.layer_norm.build((None, None, self.spec.hidden_size))
    self.built = True

  def _table(self, name: str, rows: int) -> keras.Variable:
    return self.add_weight(
      shape=(rows, self.spec.hidden_size),
      initializer=create_initializer(self.spec.initializer_range),
      name=name,
    )

  @property
  def weight(self):
    """The variable of the word embeddings, by the name that PyTorch and transformers give it."""
    return self.word_embeddings.value

  def resize_vocabulary(self, rows: int) -> None:
    """Changes the number of word embeddings; see `building_blocks.resize_rows`."""
    resize_rows(self, "word_embeddings", rows)
    self.spec.vocab_size = rows

  def call(
    self, input_ids, token_type_ids=None, position_ids=None, training=None, inputs_embeds=None
  ):
    """Looks up the embeddings of tokens.

    Args:
      input_ids: int `[B, S]`; not read with `inputs_embeds`.
      token_type_ids: int `[B, S]`; zeros by default.
      position_ids: int `[B, S]` or `[S]`; 0, 1, 2, ... by default.
      training: whether to apply dropout.
      inputs_embeds: `[B, S, W]`, vectors to take instead of the word embeddings.

    Returns:
      `[B, S, W]`.
    """
    if inputs_embeds is not None:  # all of them are tokens, none is padding
      input_ids = ops.full_like(inputs_embeds[..., 0], self.spec.pad_token_id + 1, dtype="int32")
      total = ops.cast(inputs_embeds, self.compute_dtype)
    else:
      input_ids = ops.cast(input_ids, "int32")
      total = self.look_up(self.word_embeddings, input_ids)
    total = self._without_gradient(total, input_ids)
    if self.token_type_embeddings is not None:
      total = total + self._segments(input_ids, token_type_ids)
    total = total + self._positions(input_ids, position_ids)
    return self.dropout(self.layer_norm(total), training=training)

  @staticmethod
  def look_up(table, ids):
    """Returns the rows of a table `[V, W]` for ids."""
    return ops.take(table, ids, axis=0)

  def _segments(self, input_ids, token_type_ids):
    """Computes segment embeddings `[B, S, W]`.

    By a product, as in the original, because the norm of gradients depends on it.
    """
    if token_type_ids is None or not self.family.has_segments:
      token_type_ids = ops.zeros_like(input_ids)
    token_type_ids = ops.cast(token_type_ids, "int32")
    if self.family.gathers_segments:
      return self.look_up(self.token_type_embeddings, token_type_ids)
    segments = ops.one_hot(token_type_ids, self.spec.type_vocab_size, dtype=self.compute_dtype)
    return ops.matmul(segments, self.token_type_embeddings)

  def _positions(self, input_ids, position_ids):
    """Computes `[S, W]`, or `[B, S, W]` where positions are given or depend on the ids."""
    length = ops.shape(input_ids)[1]
    if self.family.positions_from_ids:
      return self._positions_after_padding(input_ids, position_ids)
    if self.position_embeddings is None:
      position_ids = ops.arange(length) if position_ids is None else position_ids
      waves = sinusoidal_embeddings(position_ids, self.spec.hidden_size)
      return ops.cast(waves, self.compute_dtype)
    if position_ids is not None:
      return self.look_up(self.position_embeddings, ops.cast(position_ids, "int32"))
    if input_ids.shape[1] is not None:
      check_length(input_ids.shape[1], self.spec.max_position_embeddings)
    return ops.convert_to_tensor(self.position_embeddings)[:length]

  def _positions_after_padding(self, input_ids, position_ids):
    """Computes `[B, S, W]`: padding has the row `pad_token_id`, the tokens those behind it."""
    padding = self.spec.pad_token_id
    if position_ids is None:
      if input_ids.shape[1] is not None:
        check_length(input_ids.shape[1], self.spec.max_position_embeddings - padding - 1)
      is_token = ops.cast(ops.not_equal(input_ids, padding), "int32")
      position_ids = ops.cumsum(is_token, axis=1) * is_token + padding
    else:
      position_ids = ops.cast(position_ids, "int32") + (padding + 1)
    vectors = self.look_up(self.position_embeddings, position_ids)
    return self._without_gradient(vectors, position_ids)

  def _without_gradient(self, vectors, ids):
    """Stops the gradients of the vectors of padding, in families that do."""
    if not self.family.padding_is_fixed:
      return vectors
    is_padding = ops.equal(ids, self.spec.pad_token_id)[..., None]
    return ops.where(is_padding, ops.stop_gradient(vectors), vectors)

  def compute_output_spec(
    self, input_ids, token_type_ids=None, position_ids=None, training=None, inputs_embeds=None
  ):
    """Returns the shape and type of the output."""
    shape = input_ids.shape if inputs_embeds is None else inputs_embeds.shape[:-1]
    return keras.KerasTensor((*shape, self.spec.hidden_size), self.compute_dtype)


def sinusoidal_embeddings(position_ids, width: int):
  """Computes sines and cosines of the positions, at wavelengths from 2 pi to 20000 pi.

  Args:
    position_ids: int, any shape.
    width: W, an even number; the first half are sines.

  Returns:
    float32 `[..., W]`.
  """
  exponents = ops.arange(width // 2, dtype="float32") / (width // 2)
  angles = ops.cast(position_ids, "float32")[..., None] * ops.power(10000.0, -exponents)
  return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


@register
class TransformerLayer(SpecLayer):
  """Self-attention and a feed-forward network, each with a residual sum and a normalization."""

  def __init__(
    self,
    hidden_size: int = 768,
    num_heads: int = 12,
    intermediate_size: int = 3072,
    attention_type: str = "multi_head",
    attention_args: dict | None = None,
    normalization_type: str = "layer_norm",
    normalization_position: str = "post",
    ffn_type: str = "mlp",
    ffn_args: dict | None = None,
    dropout_rate: float = 0.1,
    attention_dropout_rate: float = 0.1,
    use_stochastic_depth: bool = False,
    stochastic_depth_rate: float = 0.1,
    activation: str = "gelu",
    use_bias: bool = True,
    initializer_range: float = 0.02,
    layer_norm_eps: float = LAYER_NORM_EPSILON,
    window_size: int = 8,
    n_kv_head: int | None = None,
    lambda_init: float = 0.8,
    model_type: str = "bert",
    **kwargs,
  ):
    """Creates the sub-layers.

    Args:
      hidden_size: W.
      num_heads: attention heads; must divide `hidden_size`.
      intermediate_size: width inside the feed-forward network.
      attention_type: one of `attention.ATTENTION_TYPES`.
      attention_args: further arguments of the attention.
      normalization_type: one of `building_blocks.NORMALIZATION_TYPES`.
      normalization_position: `post`, as in the original: normalize the residual sum; or `pre`:
        normalize the input of each sub-layer.
      ffn_type: one of `building_blocks.FFN_TYPES`.
      ffn_args: further arguments of the network.
      dropout_rate: dropout of each sub-layer's output.
      attention_dropout_rate: dropout of attention probabilities.
      use_stochastic_depth: skip sub-layers at random in training (arXiv:1603.09382).
      stochastic_depth_rate: probability of skipping, independent for each example.
      activation: activation of the feed-forward network, see `building_blocks.ACTIVATIONS`.
      use_bias: whether matrix products have a bias.
      initializer_range: standard deviation of the initial kernels.
      layer_norm_eps: epsilon of both normalizations.
      window_size: for `window`: number of visible tokens on each side.
      n_kv_head: for `group_query`: number of key and value heads; `num_heads` / 4 by default.
      lambda_init: for `differential`: the initial weight of the subtracted map.
      model_type: family of models that names the variables, see `bert/model/families.py`.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    require_one_of("normalization_position", normalization_position, NORMALIZATION_POSITIONS)
    require_one_of("model_type", model_type, tuple(families.FAMILIES))
    self.spec = SimpleNamespace(
      hidden_size=hidden_size,
      num_heads=num_heads,
      intermediate_size=intermediate_size,
      attention_type=attention_type,
      attention_args=attention_args,
      normalization_type=normalization_type,
      normalization_position=normalization_position,
      ffn_type=ffn_type,
      ffn_args=ffn_args,
      dropout_rate=dropout_rate,
      attention_dropout_rate=attention_dropout_rate,
      use_stochastic_depth=use_stochastic_depth,
      stochastic_depth_rate=stochastic_depth_rate,
      activation=activation,
      use_bias=use_bias,
      initializer_range=initializer_range,
      layer_norm_eps=layer_norm_eps,
      window_size=window_size,
      n_kv_head=n_kv_head,
      lambda_init=lambda_init,
      model_type=model_type,
    )
    self.family = families.FAMILIES[model_type]
    self.names = self.family.layer
    self.attention = create_attention(self.spec, self.dtype_policy)
    self.feed_forward = create_feed_forward(self.spec, self.dtype_policy)
    self.attention_norm = self._normalization(self.names.attention_norm)
    self.output_norm = self._normalization(self.names.output_norm)
    self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy)
    self.skip = None
    if use_stochastic_depth:
      # One random number per example keeps or skips the whole sub-layer.
      self.skip = Dropout(stochastic_depth_rate, noise_shape=(None, 1, 1), dtype=self.dtype_policy)

  def _normalization(self, name: str):
    return create_normalization(
      self.spec.normalization_type,
      self.spec.layer_norm_eps,
      self.dtype_policy,
      name=name.rpartition("/")[2],
    )

  def build(self, input_shape=None):
    """Creates the variables under the original's names."""
    del input_shape
    shape = (None, None, self.spec.hidden_size)
    for part, name in (
      (self.attention, self.names.attention),
      (self.attention_norm, self.names.attention_norm),
      (self.output_norm, self.names.output_norm),
    ):
      with scope_below(self.path, name.rpartition("/")[0]):
        part.build(shape)
    self.feed_forward.build(shape)
    self.built = True

  def call(self, hidden_states, attention_mask=None, training=None, head_mask=None, rows=None):
    """Transforms the vectors of each sequence.

    Args:
      hidden_states: `[B, S, W]`; with `rows` `[1, M, W]`.
      attention_mask: `[B, S]` or `[B, S, S]`, 0 for hidden tokens; none by default.
      training: whether to apply dropout.
      head_mask: float `[N]`, see `SelfAttention`.
      rows: where the vectors stand in their sequences, if padding was left out.

    Returns:
      The shape of `hidden_states`.
    """

    def attend(x):
      return self.attention(
        x, attention_mask=attention_mask, training=training, head_mask=head_mask, rows=rows
      )

    def feed_forward(x):
      return self.feed_forward(x)

    drops = self.family.drops_attention_output
    hidden_states = self._add(hidden_states, attend, self.attention_norm, training, drops)
    return self._add(hidden_states, feed_forward, self.output_norm, training)

  @property
  def is_positionwise(self) -> bool:
    """Whether padding changes nothing but itself, and each position is computed by itself."""
    spec = self.spec
    return (
      self.attention.spec.window_size is None
      and spec.normalization_type != "batch_norm"
      and not spec.use_stochastic_depth
    )

  def attention_maps(self, hidden_states, attention_mask=None):
    """Computes the attention probabilities of `call` with the same arguments: `[B, N, S, S]`."""
    if self.spec.normalization_position == "pre":
      hidden_states = self.attention_norm(hidden_states)
    return self.attention.attention_maps(hidden_states, attention_mask)

  def _add(self, residual, sublayer, norm, training, drops=True):
    pre = self.spec.normalization_position == "pre"
    update = sublayer(norm(residual) if pre else residual)
    if drops:
      update = self.dropout(update, training=training)
    if self.skip is not None:
      update = self.skip(update, training=training)
    return residual + update if pre else norm(residual + update)

  def compute_output_spec(
    self, hidden_states, attention_mask=None, training=None, head_mask=None, rows=None
  ):
    """Returns the shape and type of the output."""
    return keras.KerasTensor(hidden_states.shape, self.compute_dtype)
