"""Rows without padding, and shapes.

Except for attention, a transformer computes each position independently.

Letters in shapes: B = batch size, S = sequence length, W = width, N = heads, H = size of one head,
M = rows: all B * S positions of a batch, or fewer without padding.
"""

import tensorflow as tf

from bert.model import kernels


class TokenRows:
  """All positions of a batch, padding included.

  Attributes:
    has_padding: whether there is a row for each position.
  """

  has_padding = True

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

  has_padding = False

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
