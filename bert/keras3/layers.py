"""Embeddings, transformer layers and pooler of a BERT, for every Keras backend.

  layer = TransformerLayer(hidden_size=256, num_heads=4, intermediate_size=1024)
  layer(vectors, attention_mask=mask)
  layer.attention.self_attention.query.kernel

The sublayers are where transformers 4's TensorFlow classes have them, see `arrangements.py`.

With default arguments they compute the same as `modeling.py`: LayerNorm with an epsilon of 1e-12,
the tanh form of GELU, -10000 added to masked scores, normalization after each residual sum. A
variable's `path` ends with its name in the original (`attention/self/query/kernel`), by which
`checkpoints/loading.py` loads weights and `optimization.py` excludes variables from weight decay.

The feed-forward networks, with x the input, W0, W1, W2 kernels (biases omitted) and act the
chosen activation:

| type | output |
|---|---|
| `mlp` | act(x W1) W2, the original |
| `glu` | (sigmoid(x W0) * x W1) W2 (arXiv:1612.08083) |
| `geglu`, `swiglu` | the same with GELU or SiLU instead of the sigmoid (arXiv:2002.05202) |

Letters in shapes: B = batch size, S = sequence length, W = width, the hidden size.
"""

from collections.abc import Sequence
from typing import ClassVar

import keras
from keras import ops

from bert import families
from bert.keras3 import arrangements, older_files
from bert.keras3.attention import ATTENTION_TYPES, Attends
from bert.keras3.building_blocks import (
  LAYER_NORM_EPSILON,
  Composite,
  Dropout,
  SpecLayer,
  create_dense,
  create_initializer,
  create_normalization,
  gelu,
  get_activation,
  register,
  require_one_of,
  resize_rows,
  scope_below,
)
from bert.keras3.input_checks import check_length
from bert.keras3.padding import AllRows
from bert.keras3.torch_modules import TorchModule

NORMALIZATION_POSITIONS = ("post", "pre")
POSITION_EMBEDDING_TYPES = ("absolute", "learned", "sinusoidal")
GATES = {"swiglu": ops.silu, "geglu": gelu, "glu": ops.sigmoid}
FFN_TYPES = ("mlp", *GATES)


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
    self.keep(locals())
    self.family = families.FAMILIES[model_type]
    self.LayerNorm = create_normalization(normalization_type, layer_norm_eps, self.dtype_policy)
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
    self.LayerNorm.build((None, None, self.spec.hidden_size))
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
    return self.dropout(self.LayerNorm(total), training=training)

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


class FeedsForward(arrangements.Arranged):
  """Base of layers with a feed-forward network.

  Roles: `intermediate`, `output`, and `gate` of the types that have one.
  """

  def create_feed_forward(
    self, hidden_size: int, intermediate_size: int, ffn_type: str, activation: str, **dense
  ) -> None:
    """Creates the sublayers.

    Args:
      hidden_size: width of input and output.
      intermediate_size: inner width.
      ffn_type: one of `FFN_TYPES`.
      activation: that of `mlp`; the others have their own.
      **dense: arguments of `create_dense`.

    Raises:
      ValueError: the type or the activation is unknown.
    """
    require_one_of("ffn_type", ffn_type, FFN_TYPES)
    self.activation = get_activation(activation)
    self.gate_activation = GATES.get(ffn_type)
    widths = {"intermediate": intermediate_size, "output": hidden_size}
    if self.gate_activation:
      widths["gate"] = intermediate_size
    for role, width in widths.items():
      name = "gate" if role == "gate" else "dense"
      self.place(role, create_dense(width, name, self.dtype_policy, **dense))

  def feed_forward(self, x):
    """Transforms vectors: float `[..., hidden_size]` to the same shape."""
    inner = self.part("intermediate")(x)
    if self.gate_activation:
      inner = self.gate_activation(self.part("gate")(x)) * inner
    else:
      inner = self.activation(inner)
    return self.part("output")(inner)


@register
class TransformerLayer(Attends, FeedsForward, SpecLayer):
  """Self-attention and a feed-forward network, each with a residual sum and a normalization."""

  retired: ClassVar = {
    "attention_args": None,
    "ffn_args": None,
    "lambda_init": 0.8,
    "use_stochastic_depth": False,
    "stochastic_depth_rate": 0.1,
  }

  def __init__(
    self,
    hidden_size: int = 768,
    num_heads: int = 12,
    intermediate_size: int = 3072,
    attention_type: str = "multi_head",
    normalization_type: str = "layer_norm",
    normalization_position: str = "post",
    ffn_type: str = "mlp",
    dropout_rate: float = 0.1,
    attention_dropout_rate: float = 0.1,
    activation: str = "gelu",
    use_bias: bool = True,
    initializer_range: float = 0.02,
    layer_norm_eps: float = LAYER_NORM_EPSILON,
    window_size: int = 8,
    n_kv_head: int | None = None,
    model_type: str = "bert",
    **kwargs,
  ):
    """Creates the sublayers.

    Args:
      hidden_size: W.
      num_heads: attention heads; must divide `hidden_size`.
      intermediate_size: width inside the feed-forward network.
      attention_type: one of `attention.ATTENTION_TYPES`.
      normalization_type: one of `building_blocks.NORMALIZATION_TYPES`.
      normalization_position: `post`, as in the original: normalize the residual sum; or `pre`:
        normalize the input of each half.
      ffn_type: one of `FFN_TYPES`.
      dropout_rate: dropout of the output of each half.
      attention_dropout_rate: dropout of attention probabilities.
      activation: activation of the feed-forward network, see `building_blocks.ACTIVATIONS`.
      use_bias: whether matrix products have a bias.
      initializer_range: standard deviation of the initial kernels.
      layer_norm_eps: epsilon of both normalizations.
      window_size: for `window`: number of visible tokens on each side.
      n_kv_head: for `group_query`: number of key and value heads; `num_heads` / 4 by default.
      model_type: family of models, which decides the names of sublayers and variables.
      **kwargs: arguments of `keras.layers.Layer`.

    Raises:
      ValueError: a value is unknown, or sizes do not fit.
    """
    super().__init__(**kwargs)
    require_one_of("attention_type", attention_type, ATTENTION_TYPES)
    require_one_of("normalization_position", normalization_position, NORMALIZATION_POSITIONS)
    require_one_of("model_type", model_type, tuple(families.FAMILIES))
    self.keep(locals())
    self.family = families.FAMILIES[model_type]
    self.places = arrangements.TRANSFORMER_LAYERS[model_type]
    dense: dict = {"initializer_range": initializer_range, "use_bias": use_bias}
    groups = n_kv_head or max(1, num_heads // 4)
    self.create_projections(
      hidden_size,
      num_heads,
      attention_dropout_rate,
      groups if attention_type == "group_query" else None,
      window_size if attention_type == "window" else None,
      **dense,
    )
    self.create_feed_forward(hidden_size, intermediate_size, ffn_type, activation, **dense)
    for role in ("attention_norm", "output_norm"):
      name = getattr(self.family.layer, role).rpartition("/")[2]
      norm = create_normalization(normalization_type, layer_norm_eps, self.dtype_policy, name)
      self.place(role, norm)
    dropout = Dropout(dropout_rate, dtype=self.dtype_policy)
    for role in ("dropout", "output_dropout"):  # one sequence of random numbers for both halves
      self.place(role, dropout)

  def scopes(self) -> dict[str, str]:
    """Returns the scope of each layer with variables, by role."""
    names = self.family.layer
    inner = names.intermediate.rpartition("/")[0]
    scopes = dict.fromkeys(("query", "key", "value"), names.attention)
    for role in ("attention_output", "attention_norm", "intermediate", "output", "output_norm"):
      scopes[role] = getattr(names, role).rpartition("/")[0]
    return {**scopes, "gate": inner} if self.gate_activation else scopes

  def build(self, input_shape=None):
    """Creates the variables under the original's names."""
    del input_shape
    for role, scope in self.scopes().items():
      width = self.spec.intermediate_size if role == "output" else self.spec.hidden_size
      with scope_below(self.path, scope):
        self.part(role).build((None, None, width))
    self.built = True

  @property
  def variables(self):
    """All variables, normalizations last: the order of an optimizer's state in files."""
    return sorted(super().variables, key=_is_of_a_normalization)

  @property
  def weights(self):
    """Those of them that `set_weights` takes, in the same order."""
    return sorted(super().weights, key=_is_of_a_normalization)

  def call(self, hidden_states, attention_mask=None, training=None, head_mask=None, rows=None):
    """Transforms the vectors of each sequence.

    Args:
      hidden_states: `[B, S, W]`; with `rows` `[1, M, W]`.
      attention_mask: `[B, S]` or `[B, S, S]`, 0 for hidden tokens; none by default.
      training: whether to apply dropout.
      head_mask: float `[N]`, by which the heads' probabilities are multiplied; none by default.
      rows: where the vectors stand in their sequences, if padding was left out.

    Returns:
      The shape of `hidden_states`.
    """

    def attend(x):
      x = self.attend(x, attention_mask, head_mask, rows)
      drops = self.family.drops_attention_output
      return self.part("dropout")(x, training=training) if drops else x

    def feed_forward(x):
      return self.part("output_dropout")(self.feed_forward(x), training=training)

    hidden_states = self._add(hidden_states, attend, self.part("attention_norm"))
    return self._add(hidden_states, feed_forward, self.part("output_norm"))

  def _add(self, residual, half, norm):
    if self.spec.normalization_position == "pre":
      return residual + half(norm(residual))
    return norm(residual + half(residual))

  def attention_maps(self, hidden_states, attention_mask=None):
    """Computes the attention probabilities of `call` with the same arguments: `[B, N, S, S]`."""
    if self.spec.normalization_position == "pre":
      hidden_states = self.part("attention_norm")(hidden_states)
    return super().attention_maps(hidden_states, attention_mask)

  def compute_output_spec(self, hidden_states, *args, **kwargs):
    """Returns the shape and type of the output."""
    return keras.KerasTensor(hidden_states.shape, self.compute_dtype)

  def load_own_variables(self, store):
    """Loads a file, perhaps one that was written when the sublayers had other places."""
    if group := older_files.group(store, "feed_forward"):
      older_files.read_layer(self, group)
    else:
      super().load_own_variables(store)


def _is_of_a_normalization(variable: keras.Variable) -> bool:
  return "LayerNorm" in variable.path


class LayerGroup(TorchModule, keras.layers.Layer):
  """Layers of ALBERT that are computed one after the other, perhaps several times.

  Attributes:
    albert_layers: the layers.
  """

  def __init__(self, layers: Sequence[TransformerLayer], **kwargs):
    super().__init__(**kwargs)
    self.albert_layers = list(layers)
    self.built = True

  def call(self, hidden_states, attention_mask=None, training=None):
    """Transforms the vectors of each sequence: `[B, S, W]` to the same shape."""
    for layer in self.albert_layers:
      hidden_states = layer(hidden_states, attention_mask=attention_mask, training=training)
    return hidden_states


class Encoder(TorchModule, keras.layers.Layer):
  """The transformer layers of a BERT.

  Attributes:
    layer: the layers, each once.
    albert_layer_groups: the same in groups, in a family whose layers share weights.
    embedding_hidden_mapping_in: ALBERT's projection of the embeddings, or None.
    LayerNorm: of the last output where layers normalize their inputs, or None.
  """

  def __init__(
    self,
    layers: Sequence[TransformerLayer],
    scopes: Sequence[str],
    group_size: int | None = None,
    projection: keras.layers.Dense | None = None,
    norm: keras.layers.Layer | None = None,
    **kwargs,
  ):
    """Takes the layers.

    Args:
      layers: each once.
      scopes: the scope of the variables of each layer, in order of computation.
      group_size: number of layers in a group that shares its weights.
      projection: of the embeddings.
      norm: of the last output.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    self._scopes = list(dict.fromkeys(scopes))
    self._schedule = [self._scopes.index(scope) for scope in scopes]
    self.embedding_hidden_mapping_in = projection
    self.layer = list(layers)
    if group_size:
      self.albert_layer_groups = [
        LayerGroup(layers[i : i + group_size], name=f"group_{i // group_size}")
        for i in range(0, len(layers), group_size)
      ]
    self.LayerNorm = norm

  def build(self, input_shape=None):
    """Creates the variables under the original's names."""
    width = self.layer[0].spec.hidden_size
    if self.embedding_hidden_mapping_in is not None:
      self.embedding_hidden_mapping_in.build(input_shape)
    for layer, scope in zip(self.layer, self._scopes, strict=True):
      with scope_below(self.path, scope.rpartition("/")[0]):
        layer.build((None, None, width))
    if self.LayerNorm is not None:
      self.LayerNorm.build((None, None, width))
    self.built = True

  @property
  def schedule(self) -> list[TransformerLayer]:
    """The layers in order of computation."""
    return [self.layer[index] for index in self._schedule]

  def call(
    self,
    hidden_states,
    attention_mask=None,
    head_mask=None,
    output_attentions=False,
    output_hidden_states=False,
    training=None,
    rows=None,
  ):
    """Transforms embeddings by all layers.

    Args:
      hidden_states: `[B, S, W]`, ALBERT's `[B, S, E]`; with `rows` `[1, M, W]`.
      attention_mask: `[B, S]`, 0 for hidden tokens; none by default.
      head_mask: float `[N]`, or `[L, N]` for each of L layers; none by default.
      output_attentions: whether to return `attentions`; they are computed once more.
      output_hidden_states: whether to return `hidden_states`.
      training: whether to apply dropout.
      rows: where the vectors stand in their sequences, if padding was left out.

    Returns:
      A dict of `last_hidden_state` `[B, S, W]`, and what is asked for: see `BERT.call`.
    """
    rows = rows or AllRows()
    if self.embedding_hidden_mapping_in is not None:
      hidden_states = self.embedding_hidden_mapping_in(hidden_states)
    states, layers = [hidden_states], self.schedule
    head_masks = _for_layers(head_mask, len(layers))
    for layer, mask in zip(layers, head_masks, strict=True):
      state = layer(
        states[-1], attention_mask=attention_mask, training=training, head_mask=mask, rows=rows
      )
      states.append(state)
    outputs = {}
    if output_attentions:
      outputs["attentions"] = tuple(
        layer.attention_maps(x, attention_mask)
        * (1.0 if mask is None else ops.cast(mask, self.compute_dtype)[:, None, None])
        for layer, x, mask in zip(layers, states[:-1], head_masks, strict=True)
      )
    if self.LayerNorm is not None:
      states[-1] = self.LayerNorm(states[-1])
    states[-1] = rows.restore(states[-1])
    if output_hidden_states:
      outputs["hidden_states"] = tuple(states)
    return {"last_hidden_state": states[-1], **outputs}


def _for_layers(head_mask, count: int) -> list:
  """Splits a head mask, `[N]` or `[L, N]`, into that of each of L layers; None for none."""
  if head_mask is None:
    return [None] * count
  head_mask = ops.convert_to_tensor(head_mask)
  if len(head_mask.shape) == 1:
    return [head_mask] * count
  if head_mask.shape[0] != count:
    raise ValueError(f"head_mask has {head_mask.shape[0]} rows; the model has {count} layers.")
  return list(ops.unstack(head_mask, count))


class Pooler(Composite):
  """Computes a vector of a text from that of its first token, by a dense layer and a tanh.

  Attributes:
    dense: the layer.
  """

  def __init__(self, width: int, initializer_range: float, name: str = "pooler", **kwargs):
    super().__init__(name=name, **kwargs)
    self.dense = create_dense(width, "dense", self.dtype_policy, initializer_range, "tanh")

  def call(self, hidden_states):
    """Computes `[B, W]` of `[B, S, W]`."""
    return self.dense(hidden_states[:, 0])
