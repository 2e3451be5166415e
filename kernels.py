"""The elementwise blocks of a transformer, each computed in one pass, with its gradient by hand.

Automatic differentiation keeps and revisits many intermediate tensors that a gradient worked out on
paper does not need, and every TensorFlow operation reads and writes all of its memory again. So a
block here is a pair of plain functions, forward and backward, over whole tensors. Inside
`compile_blocks` XLA fuses each of them into one loop; elsewhere they run operation by operation.
Compiling takes about 0.1 s for every new shape, so that training earns it back and evaluation does
not. Random bits are drawn outside: XLA's own generator is many times slower on CPUs.

`tests/kernels_test.py` compares values and gradients with the textbook formulas.
"""

import contextlib
import functools
import math
import threading

import tensorflow as tf

_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_GELU_CUBIC = 0.044715


class _Mode(threading.local):
  compiled = False
  portable = False


_mode = _Mode()


@contextlib.contextmanager
def compile_blocks(compiled: bool):
  """Within the block, the functions of this module are compiled, or not."""
  outer, _mode.compiled = _mode.compiled, compiled and not _mode.portable
  try:
    yield
  finally:
    _mode.compiled = outer


@contextlib.contextmanager
def portable_blocks():
  """Within the block, nothing is compiled, and gradients are left to TensorFlow. Same values.

  A graph that leaves this project in a SavedModel then needs neither XLA nor gradient functions
  registered in the process that loads it.
  """
  outer, _mode.portable = _mode.portable, True
  try:
    yield
  finally:
    _mode.portable = outer


def _with_gradient(function):
  """Decorates a function that returns `(y, gradient of y)`."""
  return (lambda *args: function(*args)[0]) if _mode.portable else tf.custom_gradient(function)


def block(function):
  """Decorates a pure function of tensors; a last argument says whether to run it compiled.

  The caller decides while it traces (`compile_blocks`), and hands the decision on to its gradient,
  which is built later. Python numbers among the arguments become constants.
  """
  compiled_function = tf.function(function, jit_compile=True, autograph=False)

  @functools.wraps(function)
  def call(*args):
    *args, compiled = args
    return (compiled_function if compiled else function)(*args)

  return call


# ---------------------------------------------------------------------------------------------
# Dropout.


def random_bits(shape, seed) -> tf.Tensor:
  """uint16 of that shape, uniform, the same for the same seed (int64 `[2]`).

  Four entries share one 64-bit word: a quarter of the generator's work.
  """
  size = tf.reduce_prod(shape)
  words = tf.random.stateless_uniform(
    [(size + 3) // 4], seed, minval=None, maxval=None, dtype=tf.uint64
  )
  return tf.reshape(tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:size], shape)


def _drop(x, bits, rate):
  """Zero with probability `rate` (exact to 2^-17), else scaled by `1 / (1 - rate)`."""
  if bits is None:
    return x
  threshold = tf.constant(round(rate * 65536), tf.uint16)
  return x * tf.where(bits >= threshold, tf.constant(1.0 / (1.0 - rate), x.dtype), 0.0)


def _bits_for(x, rate, seed):
  return random_bits(tf.shape(x), seed) if rate else None


def dropout(x: tf.Tensor, rate: float, seed) -> tf.Tensor:
  """Sets entries to zero with probability `rate` and scales the others by `1 / (1 - rate)`.

  Args:
    x: float tensor of any shape.
    rate: probability of zero, in `[0, 1)`.
    seed: int64 `[2]`; equal seeds and shapes drop the same entries. Unused at rate 0.

  Returns:
    Tensor of the same shape and dtype.
  """
  return _drop(x, _bits_for(x, rate, seed), rate)


# ---------------------------------------------------------------------------------------------
# GELU.


@block
def _bias_gelu_forward(x, bias):
  x = x + bias
  inner = _SQRT_2_OVER_PI * (x + _GELU_CUBIC * x * x * x)
  return 0.5 * x * (1.0 + tf.tanh(inner))


@block
def _bias_gelu_backward(x, bias, dy):
  x = x + bias
  square = x * x
  tanh = tf.tanh(_SQRT_2_OVER_PI * x * (1.0 + _GELU_CUBIC * square))
  # d/dx = (1 + t) / 2 + x / 2 (1 - t^2) u', with t = tanh(u), u' = sqrt(2/pi) (1 + 3 c x^2).
  d_inner = _SQRT_2_OVER_PI * (1.0 + 3.0 * _GELU_CUBIC * square)
  dx = dy * 0.5 * (1.0 + tanh + x * (1.0 - tanh * tanh) * d_inner)
  return dx, tf.reduce_sum(dx, axis=list(range(x.shape.rank - bias.shape.rank)))


def bias_gelu(x: tf.Tensor, bias: tf.Tensor) -> tf.Tensor:
  """`gelu(x + bias)`, tanh form as the original (arXiv:1606.08415).

  Args:
    x: float32 `[..., W]`.
    bias: float32 `[W]`, or a scalar for none.

  Returns:
    float32 `[..., W]`: `0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))` of `z = x + bias`.
  """
  compiled = _mode.compiled

  @_with_gradient
  def with_gradient(x, bias):
    return (
      _bias_gelu_forward(x, bias, compiled),
      lambda dy: _bias_gelu_backward(x, bias, dy, compiled),
    )

  return with_gradient(x, tf.convert_to_tensor(bias))


def gelu(x: tf.Tensor) -> tf.Tensor:
  """`bias_gelu` without a bias: any shape."""
  return bias_gelu(x, 0.0)


# ---------------------------------------------------------------------------------------------
# LayerNorm, alone and at the end of a sub-layer.


@block
def _layer_norm_forward(x, bias, bits, residual, gamma, beta, rate, epsilon):
  if bias is not None:
    x = _drop(x + bias, bits, rate) + residual
  centered = x - tf.reduce_mean(x, axis=-1, keepdims=True)
  variance = tf.reduce_mean(centered * centered, axis=-1, keepdims=True)
  inverse_std = tf.math.rsqrt(variance + epsilon)
  unit = centered * inverse_std
  return unit * gamma + beta, unit, inverse_std


@block
def _layer_norm_backward(unit, inverse_std, bits, gamma, rate, dy):
  """Gradients of (x, bias, residual, gamma, beta)."""
  rows = list(range(unit.shape.rank - 1))
  d_unit = dy * gamma
  mean_d = tf.reduce_mean(d_unit, axis=-1, keepdims=True)
  mean_d_unit = tf.reduce_mean(d_unit * unit, axis=-1, keepdims=True)
  d_sum = inverse_std * (d_unit - mean_d - unit * mean_d_unit)
  dx = _drop(d_sum, bits, rate)
  return (
    dx,
    tf.reduce_sum(dx, rows),
    d_sum,
    tf.reduce_sum(dy * unit, rows),
    tf.reduce_sum(dy, rows),
  )


def layer_norm(x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float) -> tf.Tensor:
  """Normalises the last axis to mean 0 and variance 1, scales and shifts (arXiv:1607.06450).

  Args:
    x: float32 `[..., W]`.
    gamma: float32 `[W]`, scale.
    beta: float32 `[W]`, shift.
    epsilon: added to the variance.

  Returns:
    float32 `[..., W]`.
  """
  compiled = _mode.compiled

  @_with_gradient
  def with_gradient(x, gamma, beta):
    y, unit, inverse_std = _layer_norm_forward(
      x, None, None, None, gamma, beta, 0.0, epsilon, compiled
    )

    def backward(dy):
      _, _, dx, d_gamma, d_beta = _layer_norm_backward(
        unit, inverse_std, None, gamma, 0.0, dy, compiled
      )
      return dx, d_gamma, d_beta

    return y, backward

  return with_gradient(x, tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta))


def dropout_add_layer_norm(
  x: tf.Tensor,
  bias: tf.Tensor,
  residual: tf.Tensor,
  gamma: tf.Tensor,
  beta: tf.Tensor,
  epsilon: float,
  rate: float = 0.0,
  seed=None,
) -> tf.Tensor:
  """`layer_norm(dropout(x + bias) + residual)`: how both sub-layers of a transformer layer end.

  Args:
    x: float32 `[..., W]`, a matrix product.
    bias: float32 `[W]`.
    residual: float32 `[..., W]`, the input of the sub-layer.
    gamma: float32 `[W]`, scale.
    beta: float32 `[W]`, shift.
    epsilon: added to the variance.
    rate: of the dropout.
    seed: int64 `[2]`, of the dropout; unused at rate 0.

  Returns:
    float32 `[..., W]`.
  """
  compiled = _mode.compiled
  bits = _bits_for(x, rate, seed)

  @_with_gradient
  def with_gradient(x, bias, residual, gamma, beta):
    y, unit, inverse_std = _layer_norm_forward(
      x, bias, bits, residual, gamma, beta, rate, epsilon, compiled
    )
    return y, lambda dy: _layer_norm_backward(unit, inverse_std, bits, gamma, rate, dy, compiled)

  return with_gradient(x, *(tf.convert_to_tensor(v) for v in (bias, residual, gamma, beta)))


# ---------------------------------------------------------------------------------------------
# Attention probabilities.


@block
def _softmax_backward(probs, bits, rate, dy):
  d_probs = _drop(dy, bits, rate)
  return probs * (d_probs - tf.reduce_sum(d_probs * probs, axis=-1, keepdims=True))


@block
def _softmax_forward(scores, adder, bits, rate):
  if adder is not None:
    scores = scores + adder
  probs = tf.nn.softmax(scores)
  return probs, _drop(probs, bits, rate)


def softmax_dropout(scores: tf.Tensor, adder=None, rate: float = 0.0, seed=None) -> tf.Tensor:
  """`dropout(softmax(scores + adder))` over the last axis.

  Args:
    scores: float32 `[B, N, F, T]`.
    adder: float32 that broadcasts to it, a constant for the gradient; or None.
    rate: of the dropout.
    seed: int64 `[2]`, of the dropout; unused at rate 0.

  Returns:
    float32 `[B, N, F, T]`.
  """
  compiled = _mode.compiled
  bits = _bits_for(scores, rate, seed)

  @_with_gradient
  def with_gradient(scores):
    probs, dropped = _softmax_forward(scores, adder, bits, rate, compiled)
    return dropped, lambda dy: _softmax_backward(probs, bits, rate, dy, compiled)

  return with_gradient(scores)


# ---------------------------------------------------------------------------------------------
# Computing without padding.


class Unpadding:
  """Takes the padding of a batch out of a matrix of tokens, and puts it back as zeros.

  All of a transformer but its attention works token by token, so it can leave padding out. The
  number of rows that remain is rounded up, so that compiled blocks see few shapes; the rows that
  fill up are copies of some token, and nothing that leaves `restore` depends on them.

  Example:
    >>> unpadding = Unpadding(tf.constant([[1, 1, 0], [1, 0, 0]]), multiple=4)
    >>> tokens = tf.reshape(tf.range(6.0), [6, 1])
    >>> unpadding.remove(tokens)[:3, 0].numpy().tolist()
    [0.0, 1.0, 3.0]
    >>> unpadding.restore(unpadding.remove(tokens))[:, 0].numpy().tolist()
    [0.0, 1.0, 0.0, 3.0, 0.0, 0.0]
  """

  def __init__(self, mask: tf.Tensor, multiple: int = 128):
    """Notes where the tokens are.

    Args:
      mask: `[B, S]`, 0 for padding.
      multiple: the number of rows without padding is rounded up to a multiple of this.
    """
    is_token = tf.reshape(tf.convert_to_tensor(mask) != 0, [-1])  # [B * S]
    positions = tf.cast(tf.where(is_token)[:, 0], tf.int32)
    fill = [[0, -tf.size(positions) % multiple]]
    self._positions = tf.pad(positions, fill)  # [M]
    self._is_row = tf.pad(tf.ones_like(positions), fill)[:, tf.newaxis]  # [M, 1]
    self._rows = tf.maximum(tf.cumsum(tf.cast(is_token, tf.int32)) - 1, 0)  # [B * S]
    self._is_token = is_token[:, tf.newaxis]  # [B * S, 1]
    self._first_rows = tf.reshape(self._rows, tf.shape(mask))[:, 0]  # [B]

  def remove(self, x: tf.Tensor) -> tf.Tensor:
    """`[B * S, W]` to `[M, W]`: the tokens, then rows that fill up."""

    return tf.custom_gradient(lambda x: (tf.gather(x, self._positions), self._restore))(x)

  def restore(self, x: tf.Tensor) -> tf.Tensor:
    """`[M, W]` to `[B * S, W]`: zeros where there is padding."""

    def gradient(dy):
      # Rows that fill up do not reach the result, so nothing comes back to them.
      return tf.gather(dy, self._positions) * tf.cast(self._is_row, dy.dtype)

    return tf.custom_gradient(lambda x: (self._restore(x), gradient))(x)

  def first_tokens(self, x: tf.Tensor) -> tf.Tensor:
    """`[M, W]` to `[B, W]`: the first token of each sequence, which is never padding."""
    return tf.gather(x, self._first_rows)

  def _restore(self, x):
    return tf.gather(x, self._rows) * tf.cast(self._is_token, x.dtype)
