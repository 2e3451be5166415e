"""BERT as graph functions: embeddings, transformer, pooler (arXiv:1810.04805).

All families are the same functions: `bert/families/__init__.py` says what sets them apart.

The functions have the original's names and signatures, ask for their variables by the original's
names (`bert/model/variables.py`), and run eagerly or inside a `tf.function`, with batch and length
unknown.

Letters in shapes, everywhere in this file:
  B = batch size (number of sequences)
  F = `from_tensor` sequence length
  T = `to_tensor` sequence length; S where both are the same
  N = number of attention heads
  H = size of one head
  W = width, the hidden size; N * H in the encoder
  E = width of the embeddings; W in BERT

Mixed precision: with `dtype` bfloat16 or float16 the matrix products are computed in it, and what
they read and write has that type. Variables, the residual stream and all arithmetic between
products (LayerNorm, softmax, activations) stay float32.
"""

import contextlib
import copy
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import tensorflow as tf

from bert.families import LAYER_NORM_EPSILON, LayerNames
from bert.model import kernels
from bert.model.block_notes import noted
from bert.model.configuration import RELEASED_SIZES, BertConfig
from bert.model.embeddings import embedding_lookup, embedding_postprocessor, positions_of
from bert.model.layers import (
  Float32AndCompute,
  Projection,
  create_attention_mask_from_input_mask,
  create_initializer,
  dense,
  dense_add_layer_norm,
  dropout,
  gelu,
  get_activation,
  layer_norm,
  layer_norm_and_dropout,
  mask_of_batch,
  product,
  project,
)
from bert.model.token_rows import (
  TokenRows,
  Unpadding,
  assert_rank,
  get_shape_list,
  reshape_from_matrix,
  reshape_to_matrix,
)
from bert.model.variables import (
  get_assignment_map_from_checkpoint,
  next_random_seed,
  variable_scope,
)

__all__ = [
  "RELEASED_SIZES",
  "BertConfig",
  "BertModel",
  "assert_rank",
  "attention_layer",
  "create_attention_mask_from_input_mask",
  "create_initializer",
  "dense",
  "dropout",
  "embedding_lookup",
  "embedding_postprocessor",
  "gelu",
  "get_activation",
  "get_assignment_map_from_checkpoint",
  "get_shape_list",
  "layer_norm",
  "layer_norm_and_dropout",
  "reshape_from_matrix",
  "reshape_to_matrix",
  "transformer_model",
]

# From this width on, compiled blocks save more training time than compiling takes.
_MIN_WIDTH_TO_COMPILE = 256


class BertModel:
  """Embeddings, transformer and pooler; the constructor computes all outputs.

  Example:
    config = BertConfig(vocab_size=32000, hidden_size=512, num_hidden_layers=8,
                        num_attention_heads=8, intermediate_size=1024)
    model = BertModel(config, is_training=True, input_ids=[[31, 51, 99], [15, 5, 0]],
                      input_mask=[[1, 1, 1], [1, 1, 0]], token_type_ids=[[0, 0, 1], [0, 2, 0]])
    logits = tf.matmul(model.get_pooled_output(), label_embeddings)
  """

  def __init__(
    self,
    config: BertConfig,
    is_training: bool,
    input_ids,
    input_mask=None,
    token_type_ids=None,
    use_one_hot_embeddings: bool = False,
    scope: str | None = None,
    *,
    dtype: tf.DType = tf.float32,
    skip_padding: bool = False,
    row_multiple: int = 128,
    only_pooled_output: bool = False,
    keeps_attention_scores: bool = False,
    padding_id: int | None = None,
    embedding_scope: str | None = None,
  ):
    """Builds the model.

    Args:
      config: sizes and rates.
      is_training: whether to apply dropout.
      input_ids: int `[B, S]`, word pieces.
      input_mask: int `[B, S]`, 1 for a piece, 0 for padding; ones by default.
      token_type_ids: int `[B, S]`, segment of each piece; zeros by default. Not read in families
        without segments.
      use_one_hot_embeddings: look words up by a matrix product instead of a gather (for TPUs).
      scope: prefix of all variable names; that of the config's family, `bert`, by default.
      dtype: of the matrix products: float32, bfloat16 or float16.
      skip_padding: compute only the tokens that `input_mask` marks. The outputs are 0 at padding,
        where the original has values that no head should read; all others are equal.
      row_multiple: with `skip_padding`, the number of rows computed is a multiple of this.
      only_pooled_output: compute the last layer for the first token alone, which is all that
        `get_pooled_output` needs. Sequence outputs are then not available.
      keeps_attention_scores: keep what `get_attention_scores` returns, which takes memory.
      padding_id: a word that learns nothing from where it stands, as PyTorch's `padding_idx`.
      embedding_scope: prefix of the embeddings' names; `scope` by default. ELECTRA's generator has
        those of the discriminator.

    Raises:
      ValueError: the config or an input's rank is invalid.
    """
    config = copy.deepcopy(config)
    config.validate()
    if not is_training:
      config.hidden_dropout_prob = 0.0
      config.attention_probs_dropout_prob = 0.0

    input_ids = tf.convert_to_tensor(input_ids)
    batch_size, seq_length = get_shape_list(input_ids, expected_rank=2)
    if input_mask is None:
      input_mask = tf.ones([batch_size, seq_length], tf.int32)
    family = config.family
    if token_type_ids is None or not family.has_segments:
      token_type_ids = tf.zeros([batch_size, seq_length], tf.int32)

    input_mask = tf.convert_to_tensor(input_mask)
    rows = Unpadding(input_mask, row_multiple) if skip_padding else None
    self.is_compiled = is_training and config.hidden_size >= _MIN_WIDTH_TO_COMPILE
    blocks = kernels.compile_blocks(self.is_compiled) if is_training else kernels.portable_blocks()
    scope = scope or family.scope
    position_ids = positions_of(input_ids, config) if family.positions_from_ids else None
    if padding_id is None and family.padding_is_fixed:
      padding_id = config.pad_token_id
    self._attention_scores: list[tf.Tensor] | None = [] if keeps_attention_scores else None
    with blocks:
      with variable_scope(f"{embedding_scope or scope}/embeddings"):
        # [B, S, E], [V, E]
        embedding_output, self.embedding_table = embedding_lookup(
          input_ids=input_ids,
          vocab_size=config.vocab_size,
          embedding_size=config.embedding_width,
          initializer_range=config.initializer_range,
          word_embedding_name="word_embeddings",
          use_one_hot_embeddings=use_one_hot_embeddings,
          padding_id=padding_id,
        )
        self.word_embedding_output = embedding_output
        self.embedding_output = embedding_postprocessor(  # [B, S, E]
          input_tensor=embedding_output,
          use_token_type=config.type_vocab_size > 0,
          token_type_ids=token_type_ids,
          token_type_vocab_size=config.type_vocab_size,
          token_type_embedding_name="token_type_embeddings",
          use_position_embeddings=True,
          position_embedding_name="position_embeddings",
          initializer_range=config.initializer_range,
          max_position_embeddings=config.max_position_embeddings,
          dropout_prob=config.hidden_dropout_prob,
          position_ids=position_ids,
          rows=rows,
          gather_segments=family.gathers_segments,
          padding_position=padding_id if family.positions_from_ids else None,
          epsilon=config.norm_epsilon,
        )

      with variable_scope(scope):
        self.encoder_input = self._projected_embeddings(config, rows, dtype)  # [B, S, W]
        with variable_scope("encoder"):
          self.all_encoder_layers = transformer_model(
            input_tensor=self.encoder_input,
            attention_mask=mask_of_batch(input_mask),
            hidden_size=config.hidden_size,
            num_hidden_layers=config.num_hidden_layers,
            num_attention_heads=config.num_attention_heads,
            intermediate_size=config.intermediate_size,
            intermediate_act_fn=get_activation(config.hidden_act),
            hidden_dropout_prob=config.hidden_dropout_prob,
            attention_probs_dropout_prob=config.attention_probs_dropout_prob,
            initializer_range=config.initializer_range,
            do_return_all_layers=True,
            dtype=dtype,
            rows=rows,
            only_first_token=only_pooled_output,
            layer_scopes=family.layer_scopes(config),
            layer_names=family.layer,
            drop_attention_output=family.drops_attention_output,
            epsilon=config.norm_epsilon,
            attention_scores=self._attention_scores,
          )
        self.sequence_output = self.all_encoder_layers[-1]  # [B, S, W], or [B, 1, W]
        self._has_sequence_output = not only_pooled_output

        # The first piece, [CLS], represents the whole sequence.
        first_token = self.sequence_output[:, 0, :]  # [B, W]
        self.pooled_output = first_token
        if family.has_pooler:
          pooled = dense(first_token, config.hidden_size, "pooler/dense", config.initializer_range)
          self.pooled_output = tf.tanh(pooled)

  def _projected_embeddings(self, config, rows, dtype) -> tf.Tensor:
    """float32 `[B, S, W]`: the embeddings, widened where they are narrower than the encoder."""
    width, family = config.hidden_size, config.family
    if config.embedding_width == width:
      return self.embedding_output
    rows = rows or TokenRows(*get_shape_list(self.embedding_output)[:2])
    initializer_range = None if family.projection_is_glorot else config.initializer_range
    matrix = rows.remove(reshape_to_matrix(self.embedding_output))
    matrix = dense(matrix, width, family.projection, initializer_range, dtype=dtype)
    projected = rows.restore(matrix)
    if family.projects_embedding_output:
      self.embedding_output = projected
    return projected

  def get_pooled_output(self) -> tf.Tensor:
    """Returns float32 `[B, W]`: one vector for each sequence.

    In a family without a pooler it is the last layer's first vector.
    """
    return self.pooled_output

  def get_sequence_output(self) -> tf.Tensor:
    """Returns float32 `[B, S, W]`: the last layer."""
    self._check_sequence_output()
    return self.sequence_output

  def get_all_encoder_layers(self) -> list[tf.Tensor]:
    """Returns float32 `[B, S, W]` for each layer, first to last."""
    self._check_sequence_output()
    return self.all_encoder_layers

  def _check_sequence_output(self):
    if not self._has_sequence_output:
      raise ValueError("The model was built with only_pooled_output: it has no sequence output.")

  def get_attention_scores(self) -> list[tf.Tensor]:
    """float32 `[B, N, S, S]` for each layer: scores before the softmax, -10000 added to padding."""
    if self._attention_scores is None:
      raise ValueError("The model was built without keeps_attention_scores.")
    return self._attention_scores

  def get_word_embedding_output(self) -> tf.Tensor:
    """Returns float32 `[B, S, E]`: the word embeddings alone."""
    return self.word_embedding_output

  def get_embedding_output(self) -> tf.Tensor:
    """Returns float32 `[B, S, W]`: the input of the first layer, after LayerNorm and dropout.

    ALBERT's is `[B, S, E]`, before the projection to the encoder's width.
    """
    return self.embedding_output

  def get_embedding_table(self) -> tf.Variable:
    """Returns float32 `[V, E]`: the word embeddings."""
    return self.embedding_table


# ---------------------------------------------------------------------------------------------
# The transformer.


def attention_layer(
  from_tensor: tf.Tensor,
  to_tensor: tf.Tensor,
  attention_mask: tf.Tensor | None = None,
  num_attention_heads: int = 1,
  size_per_head: int = 512,
  query_act=None,
  key_act=None,
  value_act=None,
  attention_probs_dropout_prob: float = 0.0,
  initializer_range: float = 0.02,
  do_return_2d_tensor: bool = False,
  batch_size=None,
  from_seq_length=None,
  to_seq_length=None,
  *,
  dtype: tf.DType = tf.float32,
  rows: TokenRows | None = None,
  attention_scores: list[tf.Tensor] | None = None,
) -> tf.Tensor:
  """Multi-headed scaled dot-product attention (arXiv:1706.03762, section 3.2).

  Args:
    from_tensor: float `[B, F, W]` or `[B * F, W]`: the queries.
    to_tensor: float `[B, T, W]` or `[B * T, W]`: keys and values; `from_tensor` itself for
      self-attention.
    attention_mask: `[B, F, T]` or `[B, 1, T]`; 1 for a key that the query attends to, 0 for others.
    num_attention_heads: N.
    size_per_head: H.
    query_act: activation of the query projection, or None.
    key_act: the same for keys.
    value_act: the same for values.
    attention_probs_dropout_prob: dropout of the probabilities; it drops whole tokens.
    initializer_range: standard deviation of initial weights.
    do_return_2d_tensor: return `[B * F, N * H]` instead.
    batch_size: B, needed with two-dimensional inputs.
    from_seq_length: F, likewise.
    to_seq_length: T, likewise.
    dtype: of the matrix products.
    rows: the rows of `to_tensor`, if it is a matrix `[M, W]` without padding; so are `from_tensor`
      and the result in self-attention.
    attention_scores: a list to which float32 `[B, N, F, T]` is added: what the softmax is taken of.

  Returns:
    `[B, F, N * H]` or `[B * F, N * H]`, of type `dtype`.

  Raises:
    ValueError: ranks differ, or sizes that two-dimensional inputs need are missing.
  """
  from_rank, to_rank = from_tensor.shape.rank, to_tensor.shape.rank
  if from_rank != to_rank:
    raise ValueError(
      f"The ranks of `from_tensor` ({from_rank}) and `to_tensor` ({to_rank}) must match."
    )
  if from_rank == 3:
    batch_size, from_seq_length, _ = get_shape_list(from_tensor)
    to_seq_length = get_shape_list(to_tensor)[1]
  elif batch_size is None or from_seq_length is None or to_seq_length is None:
    raise ValueError(
      "With rank 2 tensors, `batch_size`, `from_seq_length` and `to_seq_length` must all be given."
    )
  is_self_attention = from_tensor is to_tensor
  to_rows = rows or TokenRows(batch_size, to_seq_length)
  from_rows = to_rows if is_self_attention else TokenRows(batch_size, from_seq_length)
  from_2d, to_2d = reshape_to_matrix(from_tensor), reshape_to_matrix(to_tensor)
  width = num_attention_heads * size_per_head

  # Scaling the query instead of the scores touches H numbers for each position, not T.
  scale = 1.0 / math.sqrt(size_per_head)
  to_query = Projection("query", from_2d, width, initializer_range, query_act, scale)
  to_key = Projection("key", to_2d, width, initializer_range, key_act)
  to_value = Projection("value", to_2d, width, initializer_range, value_act)
  if is_self_attention:
    projected = project(to_2d, [to_query, to_key, to_value], dtype)
    query, key, value = tf.unstack(to_rows.to_heads(projected, 3, num_attention_heads))
  else:
    projected = project(from_2d, [to_query], dtype)
    [query] = tf.unstack(from_rows.to_heads(projected, 1, num_attention_heads))  # [B, N, F, H]
    projected = project(to_2d, [to_key, to_value], dtype)
    key, value = tf.unstack(to_rows.to_heads(projected, 2, num_attention_heads))  # [B, N, T, H]

  scores = product(query, key, dtype, transpose_b=True)  # [B, N, F, T]
  adder = None
  if attention_mask is not None:
    # Not -inf: its softmax is NaN for a sequence that is all padding. With -10000 added, the
    # probability of a hidden position is 0.
    adder = (1.0 - tf.cast(attention_mask, tf.float32)) * -10000.0
    adder = tf.expand_dims(adder, 1)  # [B, 1, F, T]; LiteRT has no tf.newaxis
  if attention_scores is not None:
    kept = tf.cast(scores, tf.float32)
    attention_scores.append(kept if adder is None else kept + adder)
  seed = next_random_seed() if attention_probs_dropout_prob else None
  probs = kernels.softmax_dropout(scores, adder, attention_probs_dropout_prob, seed, dtype)

  context = from_rows.from_heads(product(probs, value, dtype))  # [B * F, N * H] or [M, N * H]
  has_activations = any((query_act, key_act, value_act))
  if to_rows.has_padding and not has_activations and not attention_probs_dropout_prob:
    parts = {"query": to_query, "key": to_key, "value": to_value}
    inputs = {f"{name}/{part}": getattr(p, part) for name, p in parts.items() for part in p.PARTS}
    inputs |= {"queries": from_2d, "keys": to_2d, "mask": attention_mask, "adder": adder}
    inputs["batch_size"] = batch_size
    noted("attention", context, {"heads": num_attention_heads}, **inputs)
  return context if do_return_2d_tensor else from_rows.restore(context)


def transformer_model(
  input_tensor: tf.Tensor,
  attention_mask: tf.Tensor | None = None,
  hidden_size: int = 768,
  num_hidden_layers: int = 12,
  num_attention_heads: int = 12,
  intermediate_size: int = 3072,
  intermediate_act_fn=gelu,
  hidden_dropout_prob: float = 0.1,
  attention_probs_dropout_prob: float = 0.1,
  initializer_range: float = 0.02,
  do_return_all_layers: bool = False,
  *,
  dtype: tf.DType = tf.float32,
  rows: TokenRows | None = None,
  only_first_token: bool = False,
  layer_scopes: Sequence[str] | None = None,
  layer_names: LayerNames | None = None,
  drop_attention_output: bool = True,
  epsilon: float = LAYER_NORM_EPSILON,
  attention_scores: list[tf.Tensor] | None = None,
):
  """The encoder of "Attention is all you need" (arXiv:1706.03762), LayerNorm after each sub-layer.

  Args:
    input_tensor: float32 `[B, S, W]`.
    attention_mask: `[B, S, S]` or `[B, 1, S]`, 1 for a key that a query attends to.
    hidden_size: W.
    num_hidden_layers: number of layers.
    num_attention_heads: N; must divide W.
    intermediate_size: width of the feed-forward layer.
    intermediate_act_fn: its activation.
    hidden_dropout_prob: dropout of each sub-layer's output.
    attention_probs_dropout_prob: dropout of attention probabilities.
    initializer_range: standard deviation of initial weights.
    do_return_all_layers: whether to return every layer's output.
    dtype: of the matrix products.
    rows: the positions to compute; all by default. Outputs are 0 at the others.
    only_first_token: compute the last layer for the first token alone: `[B, 1, W]`.
    layer_scopes: scope of each layer's variables; `layer_0`, `layer_1` ... by default. Layers with
      the same scope share them.
    layer_names: of the variables in a layer; BERT's by default.
    drop_attention_output: whether dropout follows the dense layer after the attention.
    epsilon: of every LayerNorm.
    attention_scores: a list to which each layer adds its own, see `attention_layer`.

  Returns:
    float32 `[B, S, W]` of the last layer, or a list with one for each layer.

  Raises:
    ValueError: W is not a multiple of N, or not the input's width.
  """
  if hidden_size % num_attention_heads:
    raise ValueError(
      f"The hidden size ({hidden_size}) is not a multiple of the number of attention heads "
      f"({num_attention_heads})."
    )
  batch_size, seq_length, input_width = get_shape_list(input_tensor, expected_rank=3)
  if input_width != hidden_size:  # the residual sums require it
    raise ValueError(
      f"The width of the input tensor ({input_width}) is not the hidden size ({hidden_size})."
    )
  settings = _LayerSettings(
    num_attention_heads,
    intermediate_size,
    intermediate_act_fn,
    hidden_dropout_prob,
    attention_probs_dropout_prob,
    initializer_range,
    dtype,
    layer_names or LayerNames(),
    drop_attention_output,
    epsilon,
    attention_scores,
  )
  layer_scopes = layer_scopes or [f"layer_{layer}" for layer in range(num_hidden_layers)]
  rows = rows or TokenRows(batch_size, seq_length)
  # All layers work on a matrix, [B*S, W], or [M, W] without padding.
  matrix = rows.remove(reshape_to_matrix(input_tensor))
  x = Float32AndCompute(matrix, tf.cast(matrix, dtype))
  outputs = []
  for layer, layer_scope in enumerate(layer_scopes):
    with variable_scope(layer_scope):
      is_first_token = only_first_token and layer == len(layer_scopes) - 1
      x, rows = _transformer_layer(x, rows, attention_mask, settings, is_first_token)
    outputs.append((x.exact, rows))
  if do_return_all_layers:
    return [its_rows.restore(output) for output, its_rows in outputs]
  return rows.restore(x.exact)


class _LayerSettings(NamedTuple):
  """The settings of all layers of an encoder; see `transformer_model`."""

  heads: int
  intermediate_size: int
  intermediate_act_fn: Callable | None
  dropout_prob: float
  attention_dropout_prob: float
  initializer_range: float
  dtype: tf.DType
  names: LayerNames
  drop_attention_output: bool
  epsilon: float
  attention_scores: list[tf.Tensor] | None


def _transformer_layer(
  x: Float32AndCompute,
  rows: TokenRows,
  attention_mask,
  settings: _LayerSettings,
  only_first_token: bool,
) -> tuple[Float32AndCompute, TokenRows]:
  """One layer of the encoder (arXiv:1706.03762, section 3.1).

    y = LayerNorm(x + Dropout(Attention(x) W + b))
    z = LayerNorm(y + Dropout(activation(y W + b) W + b))

  Args:
    x: `[M, W]`.
    rows: those of `x`.
    attention_mask: as in `attention_layer`.
    settings: sizes and rates.
    only_first_token: whether to compute the first token of each sequence alone.

  Returns:
    z, `[M, W]`, and the rows it has.
  """
  heads, rate, dtype = settings.heads, settings.dropout_prob, settings.dtype
  names, epsilon = settings.names, settings.epsilon
  initializer_range = settings.initializer_range
  queries, query_rows = x, rows
  attention_blocks: contextlib.AbstractContextManager = contextlib.nullcontext()
  if only_first_token:
    # The first tokens attend to all others, whose outputs are not needed: [B, W].
    first_tokens = rows.first_tokens(x.exact)
    queries = Float32AndCompute(first_tokens, tf.cast(first_tokens, dtype))
    query_rows = TokenRows(rows.batch_size, 1)
    attention_mask = None if attention_mask is None else attention_mask[:, :1]
    attention_blocks = kernels.compile_blocks(False)  # too small to repay the compilation

  with variable_scope(names.attention), attention_blocks:
    attended = attention_layer(
      from_tensor=queries.low,
      to_tensor=x.low,
      attention_mask=attention_mask,
      num_attention_heads=heads,
      size_per_head=x.low.shape[-1] // heads,
      attention_probs_dropout_prob=settings.attention_dropout_prob,
      initializer_range=initializer_range,
      do_return_2d_tensor=True,
      batch_size=rows.batch_size,
      from_seq_length=query_rows.seq_length,
      to_seq_length=rows.seq_length,
      dtype=dtype,
      rows=rows,
      attention_scores=settings.attention_scores,
    )
  y = dense_add_layer_norm(
    attended,
    queries.exact,
    rate if settings.drop_attention_output else 0.0,
    initializer_range,
    dtype,
    names.attention_output,
    names.attention_norm,
    epsilon,
  )
  size, act_fn = settings.intermediate_size, settings.intermediate_act_fn
  inner = dense(
    y.low, size, names.intermediate, initializer_range, act_fn, dtype, output_dtype=dtype
  )
  z = dense_add_layer_norm(
    inner, y.exact, rate, initializer_range, dtype, names.output, names.output_norm, epsilon
  )
  return z, query_rows
