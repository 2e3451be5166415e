"""BERT as graph functions: embeddings, transformer, pooler (arXiv:1810.04805).

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

Mixed precision: with `dtype` bfloat16 or float16 the matrix products are computed in it, and what
they read and write has that type. Variables, the residual stream and all arithmetic between
products (LayerNorm, softmax, activations) stay float32.
"""

import collections
import contextlib
import copy
import math

import numpy as np
import tensorflow as tf

from bert.model import kernels
from bert.model.configuration import RELEASED_SIZES, BertConfig
from bert.model.variables import (
  get_variable,
  next_random_seed,
  ones_initializer,
  truncated_normal_initializer,
  variable_scope,
  zeros_initializer,
)

__all__ = [
  "RELEASED_SIZES",
  "BertConfig",
  "BertModel",
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
  "matmul",
  "reshape_from_matrix",
  "reshape_to_matrix",
  "transformer_model",
]

LAYER_NORM_EPSILON = 1e-12

# Training a model of at least this width earns back what compiling its blocks costs.
_MIN_WIDTH_TO_COMPILE = 256

# ---------------------------------------------------------------------------------------------
# The model.


class BertModel:
  """Embeddings, transformer and pooler; all outputs are there once it is constructed.

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
    only_pooled_output: bool = False,
    position_ids=None,
    sequence_ids=None,
    first_positions=None,
  ):
    """Builds the model.

    Args:
      config: sizes and rates.
      is_training: whether to drop out.
      input_ids: int `[B, S]`, word pieces.
      input_mask: int `[B, S]`, 1 where there is a piece, 0 for padding; ones by default.
      token_type_ids: int `[B, S]`, segment of each piece; zeros by default.
      use_one_hot_embeddings: look words up by a matrix product instead of a gather (for TPUs).
      scope: name before all variables; `bert` by default.
      dtype: of the matrix products: float32, bfloat16 or float16.
      skip_padding: compute no more than the tokens that `input_mask` shows. The outputs are 0 at
        padding, where the original has values that nothing should read; all others are the same.
      only_pooled_output: compute the last layer for the first token alone, which is all that
        `get_pooled_output` needs. There are no sequence outputs then.
      position_ids: int `[B, S]`, position of each piece; 0, 1, ... by default.
      sequence_ids: int `[B, S]`, for rows that hold several sequences
      (`bert/training/sequence_packing.py`):
        pieces see each other only if they have the same number.
      first_positions: int `[N]`, where in the `B * S` positions such sequences begin. The pooled
        output has one vector for each of them.

    Raises:
      ValueError: the config does not make a model, an input has the wrong rank, or arguments
        exclude each other.
    """
    if only_pooled_output and first_positions is not None:
      raise ValueError("only_pooled_output cannot be had for packed rows (first_positions).")
    config = copy.deepcopy(config)
    config.validate()
    if not is_training:
      config.hidden_dropout_prob = 0.0
      config.attention_probs_dropout_prob = 0.0

    input_ids = tf.convert_to_tensor(input_ids)
    batch_size, seq_length = get_shape_list(input_ids, expected_rank=2)
    if input_mask is None:
      input_mask = tf.ones([batch_size, seq_length], tf.int32)
    if token_type_ids is None:
      token_type_ids = tf.zeros([batch_size, seq_length], tf.int32)

    input_mask = tf.convert_to_tensor(input_mask)
    unpadding = kernels.Unpadding(input_mask) if skip_padding else None
    self.is_compiled = is_training and config.hidden_size >= _MIN_WIDTH_TO_COMPILE
    blocks = kernels.compile_blocks(self.is_compiled) if is_training else kernels.portable_blocks()
    with variable_scope(scope or "bert"), blocks:
      with variable_scope("embeddings"):
        # [B, S, W], [V, W]
        embedding_output, self.embedding_table = embedding_lookup(
          input_ids=input_ids,
          vocab_size=config.vocab_size,
          embedding_size=config.hidden_size,
          initializer_range=config.initializer_range,
          word_embedding_name="word_embeddings",
          use_one_hot_embeddings=use_one_hot_embeddings,
        )
        self.embedding_output = embedding_postprocessor(
          input_tensor=embedding_output,
          use_token_type=True,
          token_type_ids=token_type_ids,
          token_type_vocab_size=config.type_vocab_size,
          token_type_embedding_name="token_type_embeddings",
          use_position_embeddings=True,
          position_embedding_name="position_embeddings",
          initializer_range=config.initializer_range,
          max_position_embeddings=config.max_position_embeddings,
          dropout_prob=config.hidden_dropout_prob,
          position_ids=position_ids,
          unpadding=unpadding,
        )

      with variable_scope("encoder"):
        attention_mask = _attention_mask(input_mask, sequence_ids)
        self.all_encoder_layers = transformer_model(
          input_tensor=self.embedding_output,
          attention_mask=attention_mask,
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
          unpadding=unpadding,
          only_first_token=only_pooled_output,
        )
      self.sequence_output = self.all_encoder_layers[-1]  # [B, S, W], or [B, 1, W]
      self._has_sequence_output = not only_pooled_output

      # The first piece, [CLS], stands for the whole sequence.
      with variable_scope("pooler"):
        first_token = self.sequence_output[:, 0, :]  # [B, W]
        if first_positions is not None:
          first_token = tf.gather(
            reshape_to_matrix(self.sequence_output), first_positions
          )  # [N, W]
        self.pooled_output = tf.tanh(
          dense(first_token, config.hidden_size, "dense", config.initializer_range)
        )

  def get_pooled_output(self) -> tf.Tensor:
    """float32 `[B, W]` or, of packed rows, `[N, W]`: one vector for each sequence."""
    return self.pooled_output

  def get_sequence_output(self) -> tf.Tensor:
    """float32 `[B, S, W]`: the last layer."""
    self._check_sequence_output()
    return self.sequence_output

  def get_all_encoder_layers(self) -> list[tf.Tensor]:
    """float32 `[B, S, W]` for each layer, first to last."""
    self._check_sequence_output()
    return self.all_encoder_layers

  def _check_sequence_output(self):
    if not self._has_sequence_output:
      raise ValueError("The model was built with only_pooled_output: it has no sequence output.")

  def get_embedding_output(self) -> tf.Tensor:
    """float32 `[B, S, W]`: what the first layer reads; normalised, and dropped out in training."""
    return self.embedding_output

  def get_embedding_table(self) -> tf.Variable:
    """float32 `[V, W]`: the word embeddings."""
    return self.embedding_table


# ---------------------------------------------------------------------------------------------
# Small building blocks.


def gelu(x: tf.Tensor) -> tf.Tensor:
  """Gaussian error linear unit, tanh form (arXiv:1606.08415); any shape."""
  return kernels.gelu(tf.convert_to_tensor(x))


def gelu_erf(x: tf.Tensor) -> tf.Tensor:
  """Gaussian error linear unit, exact form: what transformers calls `gelu`; any shape."""
  return tf.nn.gelu(x, approximate=False)


_ACTIVATIONS = {
  "linear": None,
  "relu": tf.nn.relu,
  "gelu": gelu,
  "gelu_erf": gelu_erf,
  "tanh": tf.tanh,
}


def get_activation(activation_string):
  """The function of a name in `_ACTIVATIONS`; None for `linear`; a function stands for itself.

  Raises:
    ValueError: the name is unknown.
  """
  if activation_string is None or callable(activation_string):
    return activation_string
  name = str(activation_string).lower()
  if name in ("", "none"):
    return None
  if name not in _ACTIVATIONS:
    raise ValueError(f"Unsupported activation: {name}; known: {', '.join(_ACTIVATIONS)}.")
  return _ACTIVATIONS[name]


def get_assignment_map_from_checkpoint(tvars, init_checkpoint: str):
  """The variables that a checkpoint can initialise, by equal names.

  Args:
    tvars: the model's variables.
    init_checkpoint: prefix of a checkpoint.

  Returns:
    `(assignment_map, initialized_variable_names)`: an ordered dictionary from names in the
    checkpoint to names here, and a dictionary with the names here, as `name` and as `name:0`.
  """
  names = [variable.name.split(":")[0] for variable in tvars]
  in_checkpoint = {name for name, _ in tf.train.list_variables(init_checkpoint)}
  assignment_map = collections.OrderedDict((n, n) for n in names if n in in_checkpoint)
  initialized = {alias: 1 for n in assignment_map for alias in (n, f"{n}:0")}
  return assignment_map, initialized


def dropout(input_tensor: tf.Tensor, dropout_prob: float | None) -> tf.Tensor:
  """Drops entries with `dropout_prob`; None or 0 drops nothing. Shape and dtype stay."""
  if not dropout_prob:
    return input_tensor
  return kernels.dropout(input_tensor, dropout_prob, next_random_seed())


def layer_norm(input_tensor: tf.Tensor, name: str | None = None) -> tf.Tensor:
  """Normalises the last axis; variables `<name or LayerNorm>/{beta,gamma}`. float32 `[..., W]`."""
  return layer_norm_and_dropout(input_tensor, None, name)


def _layer_norm_variables(name, width):
  with variable_scope(name):
    beta = get_variable("beta", [width], zeros_initializer)
    gamma = get_variable("gamma", [width], ones_initializer)
  return beta, gamma


def layer_norm_and_dropout(input_tensor, dropout_prob, name=None) -> tf.Tensor:
  """`layer_norm`, then `dropout`."""
  beta, gamma = _layer_norm_variables(name or "LayerNorm", input_tensor.shape[-1])
  seed = next_random_seed() if dropout_prob else None
  return kernels.layer_norm(
    input_tensor, gamma, beta, LAYER_NORM_EPSILON, dropout_prob or 0.0, seed
  )


def create_initializer(initializer_range: float = 0.02):
  """The initialiser of all weights: a truncated normal of that standard deviation."""
  return truncated_normal_initializer(initializer_range)


def dense(
  input_tensor: tf.Tensor,
  units: int,
  name: str,
  initializer_range: float = 0.02,
  activation=None,
  dtype: tf.DType = tf.float32,
  output_dtype: tf.DType = tf.float32,
) -> tf.Tensor:
  """A linear layer: `activation(input kernel + bias)`, variables `<name>/{kernel,bias}`.

  Args:
    input_tensor: float `[..., W]`.
    units: size of the output's last axis.
    name: scope of the variables.
    initializer_range: standard deviation of the initial kernel.
    activation: a function, or None.
    dtype: of the matrix product.
    output_dtype: of the result.

  Returns:
    `[..., units]`.
  """
  with variable_scope(name):
    kernel, bias = _dense_variables(input_tensor.shape[-1], units, initializer_range)
  output = _product(input_tensor, kernel, dtype)
  if activation is gelu:
    return kernels.bias_gelu(output, bias, output_dtype)
  output = tf.cast(output, tf.float32) + bias
  return tf.cast(activation(output) if activation else output, output_dtype)


def _dense_variables(width, units, initializer_range):
  kernel = get_variable("kernel", [width, units], create_initializer(initializer_range))
  bias = get_variable("bias", [units], zeros_initializer)
  return kernel, bias


def matmul(a, b, dtype: tf.DType = tf.float32, **kwargs) -> tf.Tensor:
  """`tf.matmul` computed in `dtype`, float32 on both sides of it."""
  return tf.cast(_product(a, b, dtype, **kwargs), tf.float32)


def _product(a, b, dtype, **kwargs):
  """`tf.matmul` in `dtype`."""
  return tf.matmul(tf.cast(a, dtype), tf.cast(b, dtype), **kwargs)


# ---------------------------------------------------------------------------------------------
# Embeddings.


def embedding_lookup(
  input_ids: tf.Tensor,
  vocab_size: int,
  embedding_size: int = 128,
  initializer_range: float = 0.02,
  word_embedding_name: str = "word_embeddings",
  use_one_hot_embeddings: bool = False,
):
  """Looks word pieces up.

  Args:
    input_ids: int `[B, S]` or `[B, S, I]`, I inputs for each position.
    vocab_size: V, rows of the table.
    embedding_size: E, columns of the table.
    initializer_range: standard deviation of the initial table.
    word_embedding_name: name of the table.
    use_one_hot_embeddings: by a matrix product instead of a gather.

  Returns:
    float32 `[B, S, E * I]`, and the table, float32 `[V, E]`.
  """
  if input_ids.shape.rank == 2:
    input_ids = input_ids[:, :, tf.newaxis]
  table = get_variable(
    word_embedding_name, [vocab_size, embedding_size], create_initializer(initializer_range)
  )
  flat_ids = tf.reshape(input_ids, [-1])
  if use_one_hot_embeddings:
    output = tf.matmul(tf.one_hot(flat_ids, depth=vocab_size), table)
  else:
    # The variable itself, not a copy of its value, so that the gradient stays sparse.
    output = tf.gather(table, flat_ids)
  batch_size, seq_length, num_inputs = get_shape_list(input_ids)
  return tf.reshape(output, [batch_size, seq_length, num_inputs * embedding_size]), table


def embedding_postprocessor(
  input_tensor: tf.Tensor,
  use_token_type: bool = False,
  token_type_ids: tf.Tensor | None = None,
  token_type_vocab_size: int = 16,
  token_type_embedding_name: str = "token_type_embeddings",
  use_position_embeddings: bool = True,
  position_embedding_name: str = "position_embeddings",
  initializer_range: float = 0.02,
  max_position_embeddings: int = 512,
  dropout_prob: float = 0.1,
  *,
  position_ids: tf.Tensor | None = None,
  unpadding: kernels.Unpadding | None = None,
) -> tf.Tensor:
  """Adds segment and position embeddings to word embeddings, normalises, drops out.

  Args:
    input_tensor: float32 `[B, S, W]`.
    use_token_type: whether to add segment embeddings.
    token_type_ids: int `[B, S]`; an id past the table adds nothing, as in the original.
    token_type_vocab_size: rows of the segment table.
    token_type_embedding_name: its name.
    use_position_embeddings: whether to add position embeddings.
    position_embedding_name: name of their table.
    initializer_range: standard deviation of initial weights.
    max_position_embeddings: rows of the position table; the longest possible S.
    dropout_prob: of the sum.
    position_ids: int `[B, S]`, rows of the position table; the first S for every sequence by
      default.
    unpadding: if given, nothing is normalised at padding; the result is 0 there.

  Returns:
    float32 `[B, S, W]`.

  Raises:
    ValueError: `token_type_ids` are wanted and missing, or S is too long.
    tf.errors.InvalidArgumentError: S is only known when it runs, and too long.
  """
  shape = get_shape_list(input_tensor, expected_rank=3)
  _, seq_length, width = shape
  output = input_tensor

  if use_token_type:
    if token_type_ids is None:
      raise ValueError("`token_type_ids` must be given if `use_token_type` is True.")
    token_type_table = get_variable(
      token_type_embedding_name,
      [token_type_vocab_size, width],
      create_initializer(initializer_range),
    )
    # A product with one-hot rows: faster than a gather for the few rows there are.
    one_hot_ids = tf.one_hot(token_type_ids, depth=token_type_vocab_size)  # [B, S, types]
    output += tf.matmul(one_hot_ids, token_type_table)

  if use_position_embeddings:
    too_long = (
      f"The sequence is longer than the {max_position_embeddings} positions of the model "
      f"(max_position_embeddings)."
    )
    if position_ids is not None:
      pass  # Whoever numbers positions starts anew in each sequence.
    elif isinstance(seq_length, int):
      if seq_length > max_position_embeddings:
        raise ValueError(f"{too_long} It has {seq_length}.")
    else:
      tf.debugging.assert_less_equal(seq_length, max_position_embeddings, message=too_long)
    position_table = get_variable(
      position_embedding_name,
      [max_position_embeddings, width],
      create_initializer(initializer_range),
    )
    if position_ids is None:
      output += position_table[:seq_length]  # [S, W] for every sequence
    else:
      output += kernels.gather_rows(tf.convert_to_tensor(position_table), position_ids)

  if unpadding is None:
    return layer_norm_and_dropout(output, dropout_prob)
  rows = layer_norm_and_dropout(unpadding.remove(reshape_to_matrix(output)), dropout_prob)
  return tf.reshape(unpadding.restore(rows), shape)


# ---------------------------------------------------------------------------------------------
# The transformer.


def create_attention_mask_from_input_mask(from_tensor, to_mask) -> tf.Tensor:
  """What each position may look at: all that `to_mask` shows, whatever itself is.

  Args:
    from_tensor: any tensor `[B, F, ...]`.
    to_mask: int `[B, T]`, 1 where there is a piece.

  Returns:
    float32 `[B, F, T]`.
  """
  batch_size, from_seq_length = get_shape_list(tf.convert_to_tensor(from_tensor))[:2]
  to_mask = tf.cast(tf.convert_to_tensor(to_mask), tf.float32)
  to_seq_length = get_shape_list(to_mask, expected_rank=2)[1]
  return tf.broadcast_to(to_mask[:, tf.newaxis, :], [batch_size, from_seq_length, to_seq_length])


def _attention_mask(input_mask, sequence_ids):
  """float32 `[B, 1, S]`, or `[B, S, S]` where rows hold several sequences.

  Every query of an unpacked row sees the same keys, so one row of the mask serves all of them,
  where `create_attention_mask_from_input_mask` repeats it.
  """
  mask = tf.cast(input_mask, tf.float32)[:, tf.newaxis, :]
  if sequence_ids is None:
    return mask
  same_sequence = sequence_ids[:, :, tf.newaxis] == sequence_ids[:, tf.newaxis, :]
  return mask * tf.cast(same_sequence, tf.float32)


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
  unpadding: kernels.Unpadding | None = None,
) -> tf.Tensor:
  """Multi-headed scaled dot-product attention (arXiv:1706.03762, section 3.2).

  Args:
    from_tensor: float `[B, F, W]` or `[B * F, W]`: the queries.
    to_tensor: float `[B, T, W]` or `[B * T, W]`: keys and values; `from_tensor` itself for
      self-attention.
    attention_mask: `[B, F, T]` or `[B, 1, T]`; 1 where a query may look, 0 where not.
    num_attention_heads: N.
    size_per_head: H.
    query_act: activation of the query projection, or None.
    key_act: the same for keys.
    value_act: the same for values.
    attention_probs_dropout_prob: dropout of the probabilities: whole tokens become invisible.
    initializer_range: standard deviation of initial weights.
    do_return_2d_tensor: return `[B * F, N * H]` instead.
    batch_size: B, needed with two-dimensional inputs.
    from_seq_length: F, likewise.
    to_seq_length: T, likewise.
    dtype: of the matrix products.
    unpadding: if given, `to_tensor` is a matrix without padding, `[M, W]`; so are `from_tensor` and
      the result in self-attention.

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
  width = num_attention_heads * size_per_head
  projections = {"query": query_act, "key": key_act, "value": value_act}
  weights = {}
  for name in projections:
    with variable_scope(name):
      source = from_tensor if name == "query" else to_tensor
      weights[name] = _dense_variables(source.shape[-1], width, initializer_range)

  is_self_attention = from_tensor is to_tensor
  to_2d = reshape_to_matrix(to_tensor)  # [B*T, W], or [M, W] without padding

  def project(x_2d, *names):
    """`[names, B, N, S, H]`: one wide product keeps the processor busier than several."""
    kernel = tf.concat([weights[name][0] for name in names], axis=1)  # [W, names*N*H]
    bias = tf.concat([weights[name][1] for name in names], axis=0)
    # Scaling the query instead of the scores touches H numbers for each position, not T.
    factors = [1.0 / math.sqrt(size_per_head) if name == "query" else 1.0 for name in names]
    product = _product(x_2d, kernel, dtype)
    if any(projections[name] for name in names):
      projected = tf.split(tf.cast(product, tf.float32) + bias, len(names), axis=1)
      acts = [projections[name] or tf.identity for name in names]
      projected = [act(x) * f for act, x, f in zip(acts, projected, factors, strict=True)]
      projected = tf.cast(tf.concat(projected, axis=1), dtype)
    else:
      projected = kernels.bias_scale(product, bias, np.repeat(np.float32(factors), width), dtype)
    if unpadding and x_2d is to_2d:
      return tf.unstack(unpadding.to_heads(projected, len(names), num_attention_heads))
    seq_length = to_seq_length if x_2d is to_2d else from_seq_length
    shape = [batch_size, seq_length, len(names), num_attention_heads, size_per_head]
    return tf.unstack(tf.transpose(tf.reshape(projected, shape), [2, 0, 3, 1, 4]))

  if is_self_attention:
    query, key, value = project(to_2d, "query", "key", "value")
  else:
    [query] = project(reshape_to_matrix(from_tensor), "query")  # [B, N, F, H]
    key, value = project(to_2d, "key", "value")  # [B, N, T, H] each

  scores = _product(query, key, dtype, transpose_b=True)  # [B, N, F, T]
  adder = None
  if attention_mask is not None:
    # Added before the softmax, -10000 hides a position as good as surely; minus infinity would
    # turn a sequence that is all padding into NaN.
    adder = (1.0 - tf.cast(attention_mask, tf.float32)) * -10000.0
    adder = adder[:, tf.newaxis, :, :]  # [B, 1, F, T]
  seed = next_random_seed() if attention_probs_dropout_prob else None
  probs = kernels.softmax_dropout(scores, adder, attention_probs_dropout_prob, seed, dtype)

  context = _product(probs, value, dtype)  # [B, N, F, H]
  if unpadding and is_self_attention:
    return unpadding.from_heads(context)
  context = tf.transpose(context, [0, 2, 1, 3])  # [B, F, N, H]
  if do_return_2d_tensor:
    return tf.reshape(context, [batch_size * from_seq_length, width])
  return tf.reshape(context, [batch_size, from_seq_length, width])


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
  unpadding: kernels.Unpadding | None = None,
  only_first_token: bool = False,
):
  """The encoder of "Attention is all you need" (arXiv:1706.03762), LayerNorm after each sub-layer.

  Args:
    input_tensor: float32 `[B, S, W]`.
    attention_mask: `[B, S, S]` or `[B, 1, S]`, 1 where a position may look.
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
    unpadding: of the batch, to compute nothing for padding; outputs are 0 there.
    only_first_token: compute the last layer for the first token alone: `[B, 1, W]`.

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
  input_shape = get_shape_list(input_tensor, expected_rank=3)
  batch_size, seq_length, input_width = input_shape
  if input_width != hidden_size:  # the residual sums need it
    raise ValueError(
      f"The width of the input tensor ({input_width}) is not the hidden size ({hidden_size})."
    )

  # All layers work on a matrix, [B*S, W], or [M, W] without padding.
  prev_output = reshape_to_matrix(input_tensor)
  if unpadding:
    prev_output = unpadding.remove(prev_output)
  # Each value comes twice: float32 for residual sums, and as matrix products read it.
  prev_low = tf.cast(prev_output, dtype)
  all_layer_outputs = []

  def first_tokens(x):  # to [B, W]
    if unpadding:
      return unpadding.first_tokens(x)
    return tf.reshape(x, [batch_size, seq_length, hidden_size])[:, 0]

  for layer in range(num_hidden_layers):
    with variable_scope(f"layer_{layer}"):
      residual, layer_input = prev_output, prev_low
      queries = layer_input
      from_seq_length = seq_length
      attention_blocks = contextlib.nullcontext()
      if only_first_token and layer == num_hidden_layers - 1:
        # The first tokens still look at all others, but the others need not be computed: [B, W].
        residual = first_tokens(residual)
        queries = tf.cast(residual, dtype)
        from_seq_length = 1
        attention_blocks = kernels.compile_blocks(False)  # too small to earn it back
        attention_mask = None if attention_mask is None else attention_mask[:, :1]
      with variable_scope("attention"):
        with variable_scope("self"), attention_blocks:
          attention_output = attention_layer(
            from_tensor=queries,
            to_tensor=layer_input,
            attention_mask=attention_mask,
            num_attention_heads=num_attention_heads,
            size_per_head=hidden_size // num_attention_heads,
            attention_probs_dropout_prob=attention_probs_dropout_prob,
            initializer_range=initializer_range,
            do_return_2d_tensor=True,
            batch_size=batch_size,
            from_seq_length=from_seq_length,
            to_seq_length=seq_length,
            dtype=dtype,
            unpadding=unpadding,
          )
        with variable_scope("output"):
          attention_output, attention_low = _end_of_sub_layer(
            attention_output, residual, hidden_dropout_prob, initializer_range, dtype
          )

      with variable_scope("intermediate"):
        intermediate_output = dense(
          attention_low,
          intermediate_size,
          "dense",
          initializer_range,
          intermediate_act_fn,
          dtype,
          output_dtype=dtype,
        )
      with variable_scope("output"):
        prev_output, prev_low = _end_of_sub_layer(
          intermediate_output, attention_output, hidden_dropout_prob, initializer_range, dtype
        )
    all_layer_outputs.append(prev_output)

  def final(output):
    is_first_token = only_first_token and output is prev_output
    if unpadding and not is_first_token:
      output = unpadding.restore(output)
    return tf.reshape(output, [batch_size, 1 if is_first_token else seq_length, hidden_size])

  if do_return_all_layers:
    return [final(output) for output in all_layer_outputs]
  return final(prev_output)


def _end_of_sub_layer(input_tensor, residual, dropout_prob, initializer_range, dtype):
  """`layer_norm(dropout(dense(input)) + residual)`: `[M, any]` to `[M, W]` twice, see `kernels`."""
  width = residual.shape[-1]
  with variable_scope("dense"):
    kernel, bias = _dense_variables(input_tensor.shape[-1], width, initializer_range)
  beta, gamma = _layer_norm_variables("LayerNorm", width)
  seed = next_random_seed() if dropout_prob else None
  product = _product(input_tensor, kernel, dtype)
  return kernels.dropout_add_layer_norm(
    product, bias, residual, gamma, beta, LAYER_NORM_EPSILON, dropout_prob, seed, dtype
  )


# ---------------------------------------------------------------------------------------------
# Shapes.


def get_shape_list(tensor, expected_rank=None, name=None) -> list:
  """The shape: ints where it is known, scalar int32 tensors where it is not.

  Args:
    tensor: the tensor.
    expected_rank: if given, an int or several, checked.
    name: for the error message.

  Raises:
    ValueError: the rank is not as expected.
  """
  if expected_rank is not None:
    assert_rank(tensor, expected_rank, name)
  static = tensor.shape.as_list()
  if None not in static:
    return static
  dynamic = tf.shape(tensor)
  return [dynamic[axis] if size is None else size for axis, size in enumerate(static)]


def reshape_to_matrix(input_tensor: tf.Tensor) -> tf.Tensor:
  """`[..., W]` to `[M, W]`; a matrix stays as it is.

  Raises:
    ValueError: the tensor has less than two axes.
  """
  if input_tensor.shape.rank < 2:
    raise ValueError(f"A tensor of at least rank 2 is needed; its shape is {input_tensor.shape}.")
  if input_tensor.shape.rank == 2:
    return input_tensor
  return tf.reshape(input_tensor, [-1, input_tensor.shape[-1]])


def reshape_from_matrix(output_tensor: tf.Tensor, orig_shape_list) -> tf.Tensor:
  """`[M, W]` back to the axes of `orig_shape_list`, the last one excepted."""
  if len(orig_shape_list) == 2:
    return output_tensor
  return tf.reshape(output_tensor, [*orig_shape_list[:-1], output_tensor.shape[-1]])


def assert_rank(tensor, expected_rank, name=None) -> None:
  """Raises a ValueError unless the rank is `expected_rank`, or one of several."""
  expected = [expected_rank] if isinstance(expected_rank, int) else list(expected_rank)
  if tensor.shape.rank not in expected:
    raise ValueError(
      f"Tensor {name or getattr(tensor, 'name', '')!r} has rank {tensor.shape.rank} (shape "
      f"{tensor.shape}); rank {' or '.join(map(str, expected))} is needed."
    )
