"""Parts of a transformer: rows without padding, linear layers, LayerNorm, dropout.

Letters in shapes: B = batch size, S = sequence length, W = width, N = heads, H = size of one head,
M = rows: all B * S positions of a batch, or fewer without padding.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert.model import kernels
from bert.model.families import LAYER_NORM_EPSILON
from bert.model.variables import (
  get_variable,
  glorot_uniform_initializer,
  next_random_seed,
  ones_initializer,
  truncated_normal_initializer,
  variable_scope,
  zeros_initializer,
)

# ---------------------------------------------------------------------------------------------
# Rows: except for attention, a transformer computes each position independently.


class TokenRows:
  """All positions of a batch, padding included."""

  def __init__(self, batch_size, seq_length):
    """Ints or scalar tensors."""
    self.batch_size = batch_size
    self.seq_length = seq_length

  def remove(self, x: tf.Tensor) -> tf.Tensor:
    """Reshapes `[B * S, W]` or `[B, S, W]` to rows; here all rows, unchanged."""
    return x

  def restore(self, x: tf.Tensor) -> tf.Tensor:
    """Rows to `[B, S, W]`; a tensor of that shape is returned unchanged."""
    if x.shape.rank == 3:
      return x
    return tf.reshape(x, [self.batch_size, self.seq_length, x.shape[-1]])

  def first_tokens(self, x: tf.Tensor) -> tf.Tensor:
    """Gathers `[B, W]` of `[M, W]`: the first token of each sequence, which is never padding."""
    return self.restore(x)[:, 0]

  def to_heads(self, x: tf.Tensor, parts: int, heads: int) -> tf.Tensor:
    """Reshapes `[M, parts * N * H]` to `[parts, B, N, S, H]`: what attention reads."""
    size = x.shape[-1] // (parts * heads)
    shape = [self.batch_size, self.seq_length, parts, heads, size]
    return tf.transpose(tf.reshape(x, shape), [2, 0, 3, 1, 4])

  def from_heads(self, x: tf.Tensor) -> tf.Tensor:
    """Reshapes `[B, N, S, H]` to `[M, N * H]`: what attention gives."""
    heads, size = x.shape[1], x.shape[3]
    x = tf.transpose(x, [0, 2, 1, 3])  # [B, S, N, H]
    return tf.reshape(x, [self.batch_size * self.seq_length, heads * size])


class Unpadding(TokenRows):
  """The positions of a batch that hold tokens; outputs at padding are zeros.

  The number of rows is rounded up, so that compiled blocks see few shapes; the additional rows
  are padding, and no output of this class depends on them.

  Example:
    >>> unpadding = Unpadding(tf.constant([[1, 1, 0], [1, 0, 0]]), multiple=4)
    >>> tokens = tf.reshape(tf.range(6.0), [6, 1])
    >>> unpadding.remove(tokens)[:, 0].numpy().tolist()
    [0.0, 1.0, 3.0, 2.0]
    >>> unpadding.restore(unpadding.remove(tokens))[:, :, 0].numpy().tolist()
    [[0.0, 1.0, 0.0], [3.0, 0.0, 0.0]]
  """

  def __init__(self, mask: tf.Tensor, multiple: int = 128):
    """Finds the positions of the tokens by a mask, `[B, S]`, 0 for padding.

    The number of rows without padding is rounded up to a multiple of `multiple`.
    """
    super().__init__(*get_shape_list(mask, expected_rank=2))
    is_token = tf.reshape(mask != 0, [-1])  # [B * S]
    tokens, padding = (tf.cast(tf.where(x)[:, 0], tf.int32) for x in (is_token, ~is_token))
    count = tf.size(tokens)
    rows = tf.maximum(tf.minimum(-(-count // multiple) * multiple, tf.size(is_token)), 1)
    self._positions = tf.concat([tokens, padding], 0)[:rows]  # [M]
    self._is_row = tf.cast(tf.range(rows) < count, tf.float32)[:, tf.newaxis]  # [M, 1]
    # Positions of padding that have no row read the last row.
    is_token = tf.cast(is_token, tf.int32)
    rank = tf.where(is_token > 0, tf.cumsum(is_token), count + tf.cumsum(1 - is_token)) - 1
    self._rows = tf.minimum(rank, rows - 1)  # [B * S]
    self._is_token = tf.cast(is_token, tf.float32)[:, tf.newaxis]  # [B * S, 1]
    self._indices: dict[tuple[int, int], tuple[tf.Tensor, tf.Tensor]] = {}

  def remove(self, x: tf.Tensor) -> tf.Tensor:
    """Gathers `[M, W]` of `[B * S, W]` or `[B, S, W]`: the tokens, then rows of padding."""

    @kernels.with_gradient
    def remove(x):
      return tf.gather(x, self._positions), self._zeros_at_padding

    return remove(reshape_to_matrix(x))

  def restore(self, x: tf.Tensor) -> tf.Tensor:
    """Scatters `[M, W]` to `[B, S, W]`: zeros where there is padding."""

    @kernels.with_gradient
    def restore(x):
      # The additional rows do not affect the result, so they get no gradient.
      def gradient(dy):
        return tf.gather(dy, self._positions) * tf.cast(self._is_row, dy.dtype)

      return self._zeros_at_padding(x), gradient

    return super().restore(restore(x))

  def _zeros_at_padding(self, x):
    return tf.gather(x, self._rows) * tf.cast(self._is_token, x.dtype)

  def first_tokens(self, x: tf.Tensor) -> tf.Tensor:
    """Gathers `[B, W]` of `[M, W]`: the first token of each sequence, which is never padding."""
    return tf.gather(x, tf.reshape(self._rows, [self.batch_size, self.seq_length])[:, 0])

  def to_heads(self, x: tf.Tensor, parts: int, heads: int) -> tf.Tensor:
    """Gathers `[parts, B, N, S, H]` of `[M, parts * N * H]`: what attention reads.

    Padding gets the values of some row. Attention must mask those positions as keys, and
    `from_heads` drops them as queries, so they contribute no gradient.
    """
    there, back = self._head_indices(parts, heads)
    size = x.shape[-1] // (parts * heads)

    @kernels.with_gradient
    def to_heads(x):
      def gradient(dy):
        rows = tf.gather(tf.reshape(dy, [-1, size]), back)
        return tf.reshape(rows, [-1, parts * heads * size])

      return tf.gather(tf.reshape(x, [-1, size]), there), gradient

    return to_heads(x)

  def from_heads(self, x: tf.Tensor) -> tf.Tensor:
    """Reshapes `[B, N, S, H]` to `[M, N * H]`: what attention gives."""
    heads, size = x.shape[1], x.shape[3]
    there, back = self._head_indices(1, heads)

    @kernels.with_gradient
    def from_heads(x):
      def gradient(dy):
        dx = tf.gather(tf.reshape(dy, [-1, size]), there[0])  # [B, N, S, H]
        is_token = tf.reshape(self._is_token, [self.batch_size, 1, self.seq_length, 1])
        return dx * tf.cast(is_token, dx.dtype)

      rows = tf.gather(tf.reshape(x, [-1, size]), back)
      return tf.reshape(rows, [-1, heads * size]), gradient

    return from_heads(x)

  def _head_indices(self, parts: int, heads: int):
    """Indices of vectors of size H: `[parts, B, N, S]` for rows to heads, `[M, parts, N]` back."""
    if (parts, heads) not in self._indices:
      batch_size, length = self.batch_size, self.seq_length
      part, head = tf.range(parts), tf.range(heads)
      rows = tf.reshape(self._rows, [1, batch_size, 1, length])
      there = (rows * parts + part[:, None, None, None]) * heads + head[:, None]
      sequence, place = self._positions // length, self._positions % length
      back = (part[:, None] * batch_size + sequence[:, None, None]) * heads + head
      self._indices[parts, heads] = there, back * length + place[:, None, None]
    return self._indices[parts, heads]


# ---------------------------------------------------------------------------------------------
# Attention masks.


def create_attention_mask_from_input_mask(from_tensor, to_mask) -> tf.Tensor:
  """Makes the mask, float32 `[B, F, T]`: each query, padding too, sees what `to_mask` marks.

  Args:
    from_tensor: any tensor `[B, F, ...]`.
    to_mask: int `[B, T]`, 1 for a token, 0 for padding.
  """
  batch_size, from_seq_length = get_shape_list(tf.convert_to_tensor(from_tensor))[:2]
  to_mask = tf.cast(tf.convert_to_tensor(to_mask), tf.float32)
  to_seq_length = get_shape_list(to_mask, expected_rank=2)[1]
  return tf.broadcast_to(to_mask[:, tf.newaxis, :], [batch_size, from_seq_length, to_seq_length])


def mask_of_batch(
  input_mask: tf.Tensor, sequence_ids: tf.Tensor | None, attention_direction: str | None = None
) -> tf.Tensor:
  """Makes the mask float32 `[B, 1, S]`, or `[B, S, S]` where queries of a row differ.

  They do where a row of the batch holds several sequences, and where a token sees only what stands
  `before` or `after` it, and itself. Otherwise one row of the mask serves all of them, where
  `create_attention_mask_from_input_mask` repeats it.
  """
  mask = tf.expand_dims(tf.cast(input_mask, tf.float32), 1)
  if attention_direction is not None:
    places = tf.range(tf.shape(input_mask)[1])
    before = places[tf.newaxis, :] <= places[:, tf.newaxis]  # [S, S] of query, key
    mask *= tf.cast(before if attention_direction == "before" else tf.transpose(before), tf.float32)
  if sequence_ids is None:
    return mask
  same_sequence = sequence_ids[:, :, tf.newaxis] == sequence_ids[:, tf.newaxis, :]
  return mask * tf.cast(same_sequence, tf.float32)


# ---------------------------------------------------------------------------------------------
# Activations and dropout.


def gelu(x: tf.Tensor) -> tf.Tensor:
  """Computes the Gaussian error linear unit, tanh form (arXiv:1606.08415); any shape."""
  return kernels.gelu(tf.convert_to_tensor(x))


def gelu_erf(x: tf.Tensor) -> tf.Tensor:
  """Computes the exact form of GELU, which transformers calls `gelu`; any shape."""
  return tf.nn.gelu(x, approximate=False)


_ACTIVATIONS = {
  "linear": None,
  "relu": tf.nn.relu,
  "gelu": gelu,
  "gelu_erf": gelu_erf,
  "tanh": tf.tanh,
}


def get_activation(activation_string):
  """Finds the function for a name in `_ACTIVATIONS`; None for `linear`; functions stay.

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


def dropout(input_tensor: tf.Tensor, dropout_prob: float | None) -> tf.Tensor:
  """Drops entries with `dropout_prob`; None or 0 drops nothing. Shape and dtype stay."""
  if not dropout_prob:
    return input_tensor
  return kernels.dropout(input_tensor, dropout_prob, next_random_seed())


# ---------------------------------------------------------------------------------------------
# Layers with variables.


def create_initializer(initializer_range: float = 0.02):
  """Makes the initialiser of all weights: a truncated normal of this standard deviation."""
  return truncated_normal_initializer(initializer_range)


def layer_norm(
  input_tensor: tf.Tensor, name: str | None = None, *, epsilon: float = LAYER_NORM_EPSILON
) -> tf.Tensor:
  """Normalises the last axis; variables `<name or LayerNorm>/{beta,gamma}`. float32 `[..., W]`."""
  return layer_norm_and_dropout(input_tensor, None, name, epsilon=epsilon)


def layer_norm_and_dropout(
  input_tensor, dropout_prob, name=None, *, epsilon: float = LAYER_NORM_EPSILON
) -> tf.Tensor:
  """Applies `layer_norm`, then `dropout`."""
  beta, gamma = _layer_norm_variables(name or "LayerNorm", input_tensor.shape[-1])
  seed = next_random_seed() if dropout_prob else None
  return kernels.layer_norm(input_tensor, gamma, beta, epsilon, dropout_prob or 0.0, seed)


def _layer_norm_variables(name, width):
  with variable_scope(name):
    beta = get_variable("beta", [width], zeros_initializer)
    gamma = get_variable("gamma", [width], ones_initializer)
  return beta, gamma


def dense(
  input_tensor: tf.Tensor,
  units: int,
  name: str,
  initializer_range: float | None = 0.02,
  activation=None,
  dtype: tf.DType = tf.float32,
  output_dtype: tf.DType = tf.float32,
) -> tf.Tensor:
  """Computes `activation(input kernel + bias)`, `[..., units]`: variables `<name>/{kernel,bias}`.

  Args:
    input_tensor: float `[..., W]`.
    units: size of the output's last axis.
    name: scope of the variables.
    initializer_range: standard deviation of the initial kernel; None for Glorot's uniform
      distribution, the default of TensorFlow 1.
    activation: a function, or None.
    dtype: of the matrix product.
    output_dtype: of the result.
  """
  kernel, bias = _dense_variables(name, input_tensor.shape[-1], units, initializer_range)
  output = product(input_tensor, kernel, dtype)
  if activation is gelu:
    return kernels.bias_gelu(output, bias, output_dtype)
  output = tf.cast(output, tf.float32) + bias
  return tf.cast(activation(output) if activation else output, output_dtype)


def _dense_variables(name, width, units, initializer_range):
  initializer = glorot_uniform_initializer
  if initializer_range is not None:
    initializer = create_initializer(initializer_range)
  with variable_scope(name):
    kernel = get_variable("kernel", [width, units], initializer)
    bias = get_variable("bias", [units], zeros_initializer)
  return kernel, bias


class Float32AndCompute(NamedTuple):
  """A matrix `[M, W]` in float32, for residual sums, and in the type of matrix products."""

  exact: tf.Tensor
  low: tf.Tensor


def dense_add_layer_norm(
  input_tensor: tf.Tensor,
  residual: tf.Tensor,
  dropout_prob: float,
  initializer_range: float = 0.02,
  dtype: tf.DType = tf.float32,
  dense_name: str = "dense",
  norm_name: str = "LayerNorm",
  epsilon: float = LAYER_NORM_EPSILON,
) -> Float32AndCompute:
  """Ends a sub-layer: `LayerNorm(residual + Dropout(input kernel + bias))`, in both types.

  Args:
    input_tensor: float `[M, any]`.
    residual: float32 `[M, W]`, the input of the sub-layer.
    dropout_prob: of the dropout.
    initializer_range: standard deviation of the initial kernel.
    dtype: of the matrix product, and of the one that reads the result.
    dense_name: scope of kernel and bias.
    norm_name: scope of the LayerNorm's variables.
    epsilon: added to the variance.
  """
  width = residual.shape[-1]
  kernel, bias = _dense_variables(dense_name, input_tensor.shape[-1], width, initializer_range)
  beta, gamma = _layer_norm_variables(norm_name, width)
  seed = next_random_seed() if dropout_prob else None
  output = product(input_tensor, kernel, dtype)
  return Float32AndCompute(
    *kernels.dropout_add_layer_norm(
      output, bias, residual, gamma, beta, epsilon, dropout_prob, seed, dtype
    )
  )


class Projection:
  """The projection to queries, keys or values: `activation(x kernel + bias) * scale`."""

  def __init__(self, name, x, width, initializer_range, activation=None, scale=1.0):
    """Finds or creates the variables `<name>/{kernel,bias}` for `x`, `[M, any]`."""
    self.kernel, self.bias = _dense_variables(name, x.shape[-1], width, initializer_range)
    self.width, self.activation, self.scale = width, activation, scale


def project(x: tf.Tensor, projections: list[Projection], dtype: tf.DType) -> tf.Tensor:
  """Maps `[M, any]` to `[M, len(projections) * width]` of type `dtype`.

  One wide product uses the processor better than several.
  """
  kernel = tf.concat([p.kernel for p in projections], axis=1)
  bias = tf.concat([p.bias for p in projections], axis=0)
  output = product(x, kernel, dtype)
  if not any(p.activation for p in projections):
    scales = np.repeat(np.asarray([p.scale for p in projections], np.float32), projections[0].width)
    return kernels.bias_scale(output, bias, scales, dtype)
  parts = tf.split(tf.cast(output, tf.float32) + bias, len(projections), axis=1)
  parts = [
    (p.activation or tf.identity)(part) * p.scale
    for p, part in zip(projections, parts, strict=True)
  ]
  return tf.cast(tf.concat(parts, axis=1), dtype)


def product(a, b, dtype: tf.DType, **kwargs) -> tf.Tensor:
  """Computes `tf.matmul` in `dtype`, which is also the type of the result."""
  return tf.matmul(tf.cast(a, dtype), tf.cast(b, dtype), **kwargs)


# ---------------------------------------------------------------------------------------------
# Shapes.


def get_shape_list(tensor, expected_rank=None, name=None) -> list:
  """Lists the shape: ints for static sizes, scalar int32 tensors for others.

  Args:
    tensor: the tensor.
    expected_rank: an int or several; if given, the rank is checked.
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
  """Reshapes `[..., W]` to `[M, W]`; a matrix is returned unchanged.

  Raises:
    ValueError: the tensor has less than two axes.
  """
  if input_tensor.shape.rank < 2:
    raise ValueError(f"A tensor of at least rank 2 is needed; its shape is {input_tensor.shape}.")
  if input_tensor.shape.rank == 2:
    return input_tensor
  return tf.reshape(input_tensor, [-1, input_tensor.shape[-1]])


def reshape_from_matrix(output_tensor: tf.Tensor, orig_shape_list) -> tf.Tensor:
  """Reshapes `[M, W]` to the axes of `orig_shape_list`, except the last one."""
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
