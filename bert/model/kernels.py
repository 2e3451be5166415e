"""The elementwise blocks of a transformer, each computed in one pass, with an explicit gradient.

Automatic differentiation stores and rereads many intermediate tensors that an explicit gradient
does not need, and every TensorFlow operation reads and writes all of its memory again. So a
block here is a pair of plain functions, forward and backward, over whole tensors. Inside
`compile_blocks` XLA fuses each of them into one loop; elsewhere they run operation by operation.
Compiling takes about 0.1 s for every new shape, which pays off in training, but not in
evaluation.

All arithmetic is float32. Where matrix products are computed in another type, blocks read and
write that type directly, so that casts need no separate pass.

`tests/model/kernels_test.py` compares values and gradients with the textbook formulas.
"""

import contextlib
import functools
import math
import threading

import tensorflow as tf

from bert.model.block_notes import noted

_SQRT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_GELU_CUBIC = 0.044715


class _Mode(threading.local):
  compiled = False
  portable = False


_mode = _Mode()


@contextlib.contextmanager
def compile_blocks(compiled: bool):
  """Sets whether the functions of this module are compiled within the block."""
  outer, _mode.compiled = _mode.compiled, compiled and not _mode.portable
  try:
    yield
  finally:
    _mode.compiled = outer


@contextlib.contextmanager
def portable_blocks():
  """Within the block, nothing is compiled, and TensorFlow derives gradients. Values are equal.

  For models that are not trained here. A graph that leaves this project in a SavedModel then needs
  neither XLA nor gradient functions registered in the process that loads it.
  """
  outer, _mode.portable = _mode.portable, True
  try:
    yield
  finally:
    _mode.portable = outer


def with_gradient(function):
  """Decorates a function that returns `(y, gradient function)`; the result returns y."""
  return (lambda *args: function(*args)[0]) if _mode.portable else tf.custom_gradient(function)


def block(function):
  """Decorates a pure function of tensors, which gets an additional keyword: `compiled`.

  The caller reads the setting while tracing (`compile_blocks`), and passes it on to its gradient,
  which is built later. Python numbers among the arguments become constants.
  """
  compiled_function = tf.function(function, jit_compile=True, autograph=False)

  @functools.wraps(function)
  def call(*args, compiled: bool):
    return (compiled_function if compiled else function)(*args)

  return call


def _float32(x):
  return tf.cast(x, tf.float32)


# ---------------------------------------------------------------------------------------------
# Dropout.


# Multipliers of MurmurHash3's finaliser, and 2^32 over the golden ratio.
_MULTIPLIERS = (0x85EBCA6B, 0xC2B2AE35)
_GOLDEN = 0x9E3779B9


def dropout_keys(seed) -> tf.Tensor:
  """Draws the keys of `random_bits`, uint32 `[2]`: int64 `[2]` seeds nearby give unrelated keys."""
  return tf.random.stateless_uniform([2], seed, minval=None, maxval=None, dtype=tf.uint32)


def random_bits(shape, keys) -> tf.Tensor:
  """Computes uint32 of that shape, uniform, the same for the same keys (uint32 `[2]`).

  A hash of the keys and each entry's index. Forward and backward pass compute it inside their
  loops; the numbers of a generator would be written to memory once and read twice.
  """
  places = tf.cast(tf.reshape(tf.range(tf.reduce_prod(shape)), shape), tf.uint32)
  return _mix(places * _unsigned(_GOLDEN) + keys[0], keys[1])


def _mix(bits, key):
  """MurmurHash3's finaliser, elementwise; the key prevents streams that are shifts of another."""
  first, second = (_unsigned(multiplier) for multiplier in _MULTIPLIERS)
  bits = (bits ^ tf.bitwise.right_shift(bits, _unsigned(16))) * first ^ key
  bits = (bits ^ tf.bitwise.right_shift(bits, _unsigned(13))) * second
  return bits ^ tf.bitwise.right_shift(bits, _unsigned(16))


def _unsigned(value):
  return tf.constant(value, tf.uint32)


def _drop(x, keys, rate):
  """Zero with probability `rate` (exact to 2^-32), else scaled by `1 / (1 - rate)`."""
  if not rate:
    return x
  is_kept = random_bits(tf.shape(x), keys) >= _unsigned(round(rate * 2**32))
  return x * tf.where(is_kept, tf.constant(1.0 / (1.0 - rate), x.dtype), 0.0)


@functools.lru_cache
def _factors_of(rate: float, dtype: tf.DType):
  """Compiles the function of size and keys that `dropout_factors` calls."""

  def factors(size, keys):
    return _drop(tf.ones([size], dtype), keys, rate)

  return tf.function(factors, jit_compile=True, autograph=False)


def dropout_factors(size, rate: float, dtype: tf.DType, seed) -> tf.Tensor:
  """Computes what dropout multiplies by: 0 with probability `rate`, else `1 / (1 - rate)`.

  It is compiled by itself, for callers that are not: fifteen times as fast as TensorFlow's
  generator. There is one compilation for each of few sizes, at most eight between a power of two
  and the next.

  Args:
    size: int32 `[]`, M.
    rate: in `(0, 1)`.
    dtype: of the result.
    seed: int64 `[2]`.

  Returns:
    `[M]`.
  """
  bits = tf.math.log(tf.cast(tf.maximum(size, 8), tf.float64)) / math.log(2.0)
  step = tf.bitwise.left_shift(1, tf.cast(tf.floor(bits), tf.int32) - 3)
  rounded = -(-size // step) * step
  return _factors_of(rate, dtype)(rounded, dropout_keys(seed))[:size]


def _keys_for(rate, seed):
  return dropout_keys(seed) if rate else None


def dropout(x: tf.Tensor, rate: float, seed) -> tf.Tensor:
  """Zeroes entries with probability `rate`, scales others by `1 / (1 - rate)`; keeps the type.

  Args:
    x: float tensor of any shape.
    rate: probability of zero, in `[0, 1)`.
    seed: int64 `[2]`; equal seeds and shapes drop the same entries. Unused at rate 0.
  """
  return _drop(x, _keys_for(rate, seed), rate)


# ---------------------------------------------------------------------------------------------
# GELU.


@block
def _bias_gelu_forward(x, bias, dtype):
  x = _float32(x) + bias
  inner = _SQRT_2_OVER_PI * (x + _GELU_CUBIC * x * x * x)
  return tf.cast(0.5 * x * (1.0 + tf.tanh(inner)), dtype)


@block
def _bias_gelu_backward(x, bias, dy):
  product_dtype = x.dtype
  x, dy = _float32(x) + bias, _float32(dy)
  square = x * x
  tanh = tf.tanh(_SQRT_2_OVER_PI * x * (1.0 + _GELU_CUBIC * square))
  # d/dx = (1 + t) / 2 + x / 2 (1 - t^2) u', with t = tanh(u), u' = sqrt(2/pi) (1 + 3 c x^2).
  d_inner = _SQRT_2_OVER_PI * (1.0 + 3.0 * _GELU_CUBIC * square)
  dx = dy * 0.5 * (1.0 + tanh + x * (1.0 - tanh * tanh) * d_inner)
  d_bias = tf.reduce_sum(dx, axis=list(range(x.shape.rank - bias.shape.rank)))
  return tf.cast(dx, product_dtype), d_bias


def bias_gelu(x: tf.Tensor, bias, dtype: tf.DType = tf.float32) -> tf.Tensor:
  """`gelu(x + bias)`, tanh form as the original (arXiv:1606.08415).

  Args:
    x: float `[..., W]`.
    bias: float32 `[W]`, or a scalar for none.
    dtype: of the result.

  Returns:
    `[..., W]`: `0.5 z (1 + tanh(sqrt(2/pi) (z + 0.044715 z^3)))` of `z = x + bias`.
  """
  bias = tf.convert_to_tensor(bias)
  if _mode.portable and bias.shape.rank:
    # On CPUs, TensorFlow fuses this form with the matrix product before it.
    inner = tf.nn.bias_add(x, tf.cast(bias, x.dtype))
    y = tf.cast(tf.nn.gelu(inner, approximate=True), dtype)
    return noted("bias_gelu", y, x=x, bias=bias)
  compiled = _mode.compiled

  @with_gradient
  def fused(x, bias):
    return (
      _bias_gelu_forward(x, bias, dtype, compiled=compiled),
      lambda dy: _bias_gelu_backward(x, bias, dy, compiled=compiled),
    )

  return fused(x, bias)


def gelu(x: tf.Tensor) -> tf.Tensor:
  """`bias_gelu` without a bias: any shape."""
  return bias_gelu(x, 0.0)


# ---------------------------------------------------------------------------------------------
# Bias and scale.


@block
def _bias_scale_forward(x, bias, scale, dtype):
  return tf.cast((_float32(x) + bias) * scale, dtype)


@block
def _bias_scale_backward(dy, scale, product_dtype):
  dx = _float32(dy) * scale
  return tf.cast(dx, product_dtype), tf.reduce_sum(dx, axis=0)


def bias_scale(x: tf.Tensor, bias: tf.Tensor, scale, dtype: tf.DType = tf.float32) -> tf.Tensor:
  """Computes `(x + bias) * scale`, `[M, W]`.

  The bias and the scale, a constant for the gradient, are float32 `[W]`.
  """
  compiled = _mode.compiled

  @with_gradient
  def fused(x, bias):
    return (
      _bias_scale_forward(x, bias, scale, dtype, compiled=compiled),
      lambda dy: _bias_scale_backward(dy, scale, x.dtype, compiled=compiled),
    )

  return fused(x, tf.convert_to_tensor(bias))


# ---------------------------------------------------------------------------------------------
# LayerNorm, alone and at the end of a sub-layer.


@block
def _layer_norm_forward(x, bias, keys, residual, gamma, beta, rate, epsilon, dtype):
  """(y, y in `dtype`, and the inputs of the gradient)."""
  if bias is not None:
    x = _drop(_float32(x) + bias, keys, rate) + residual
  centered = x - tf.reduce_mean(x, axis=-1, keepdims=True)
  variance = tf.reduce_mean(centered * centered, axis=-1, keepdims=True)
  inverse_std = tf.math.rsqrt(variance + epsilon)
  unit = centered * inverse_std
  y = unit * gamma + beta
  if bias is None:
    y = _drop(y, keys, rate)
  return y, tf.cast(y, dtype), unit, inverse_std


@block
def _layer_norm_backward(unit, inverse_std, keys, gamma, rate, product_dtype, dy, dy_low=None):
  """Gradients of (x, bias, residual, gamma, beta).

  `dy_low`, of the copy for products, is given at the end of a sub-layer, which applies dropout to
  its input; LayerNorm alone applies it to its output.
  """
  rows = list(range(unit.shape.rank - 1))
  dy = _drop(dy, keys, rate) if dy_low is None else dy + _float32(dy_low)
  d_unit = dy * gamma
  mean_d = tf.reduce_mean(d_unit, axis=-1, keepdims=True)
  mean_d_unit = tf.reduce_mean(d_unit * unit, axis=-1, keepdims=True)
  d_sum = inverse_std * (d_unit - mean_d - unit * mean_d_unit)
  dx = d_sum if dy_low is None else _drop(d_sum, keys, rate)
  return (
    tf.cast(dx, product_dtype),
    tf.reduce_sum(dx, rows),
    d_sum,
    tf.reduce_sum(dy * unit, rows),
    tf.reduce_sum(dy, rows),
  )


def layer_norm(
  x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float, rate: float = 0.0, seed=None
) -> tf.Tensor:
  """Normalises the last axis to mean 0, variance 1, scales and shifts (arXiv:1607.06450): float32.

  Args:
    x: float32 `[..., W]`.
    gamma: float32 `[W]`, scale.
    beta: float32 `[W]`, shift.
    epsilon: added to the variance.
    rate: of a dropout after it.
    seed: int64 `[2]`, of the dropout; unused at rate 0.
  """
  compiled = _mode.compiled
  keys = _keys_for(rate, seed)

  @with_gradient
  def fused(x, gamma, beta):
    y, _, unit, inverse_std = _layer_norm_forward(
      x, None, keys, None, gamma, beta, rate, epsilon, tf.float32, compiled=compiled
    )

    def backward(dy):
      _, _, dx, d_gamma, d_beta = _layer_norm_backward(
        unit, inverse_std, keys, gamma, rate, tf.float32, dy, compiled=compiled
      )
      return dx, d_gamma, d_beta

    return y, backward

  gamma, beta = tf.convert_to_tensor(gamma), tf.convert_to_tensor(beta)
  y = fused(x, gamma, beta)
  return y if rate else noted("layer_norm", y, {"epsilon": epsilon}, x=x, gamma=gamma, beta=beta)


def dropout_add_layer_norm(
  x: tf.Tensor,
  bias: tf.Tensor,
  residual: tf.Tensor,
  gamma: tf.Tensor,
  beta: tf.Tensor,
  epsilon: float,
  rate: float = 0.0,
  seed=None,
  dtype: tf.DType = tf.float32,
) -> tuple[tf.Tensor, tf.Tensor]:
  """`layer_norm(dropout(x + bias) + residual)`: how both sub-layers of a transformer layer end.

  Args:
    x: float `[..., W]`, a matrix product.
    bias: float32 `[W]`.
    residual: float32 `[..., W]`, the input of the sub-layer.
    gamma: float32 `[W]`, scale.
    beta: float32 `[W]`, shift.
    epsilon: added to the variance.
    rate: of the dropout.
    seed: int64 `[2]`, of the dropout; unused at rate 0.
    dtype: of the copy for the next matrix product.

  Returns:
    `[..., W]`, the same twice: float32 for the next residual, and in `dtype`.
  """
  compiled = _mode.compiled
  keys = _keys_for(rate, seed)

  @with_gradient
  def fused(x, bias, residual, gamma, beta):
    y, y_low, unit, inverse_std = _layer_norm_forward(
      x, bias, keys, residual, gamma, beta, rate, epsilon, dtype, compiled=compiled
    )

    def backward(dy, dy_low):
      # That of a gather is sparse, for which the block would be compiled once more.
      dy, dy_low = tf.convert_to_tensor(dy), tf.convert_to_tensor(dy_low)
      return _layer_norm_backward(
        unit, inverse_std, keys, gamma, rate, x.dtype, dy, dy_low, compiled=compiled
      )

    return (y, y_low), backward

  bias, residual, gamma, beta = map(tf.convert_to_tensor, (bias, residual, gamma, beta))
  y, y_low = fused(x, bias, residual, gamma, beta)
  if not rate:
    inputs = {"x": x, "bias": bias, "residual": residual, "gamma": gamma, "beta": beta}
    noted("add_layer_norm", y, {"epsilon": epsilon}, **inputs)
  return y, y_low


# ---------------------------------------------------------------------------------------------
# Attention probabilities.


@block
def _softmax_backward(probs, keys, rate, product_dtype, dy):
  d_probs = _drop(_float32(dy), keys, rate)
  d_scores = probs * (d_probs - tf.reduce_sum(d_probs * probs, axis=-1, keepdims=True))
  return tf.cast(d_scores, product_dtype)


@block
def _softmax_forward(scores, adder, keys, rate, dtype):
  scores = _float32(scores)
  if adder is not None:
    scores = scores + adder
  probs = tf.nn.softmax(scores)
  return probs, tf.cast(_drop(probs, keys, rate), dtype)


def softmax_dropout(
  scores: tf.Tensor, adder=None, rate: float = 0.0, seed=None, dtype: tf.DType = tf.float32
) -> tf.Tensor:
  """Computes `dropout(softmax(scores + adder))` over the last axis, `[B, N, F, T]`.

  Args:
    scores: float `[B, N, F, T]`.
    adder: float32 that broadcasts to it, a constant for the gradient; or None.
    rate: of the dropout.
    seed: int64 `[2]`, of the dropout; unused at rate 0.
    dtype: of the result.
  """
  compiled = _mode.compiled
  keys = _keys_for(rate, seed)

  @with_gradient
  def fused(scores):
    probs, dropped = _softmax_forward(scores, adder, keys, rate, dtype, compiled=compiled)
    return dropped, lambda dy: _softmax_backward(
      probs, keys, rate, scores.dtype, dy, compiled=compiled
    )

  return fused(scores)


# ---------------------------------------------------------------------------------------------
# The loss over a vocabulary.


def _is_label(labels, vocab_size):
  return tf.range(vocab_size, dtype=labels.dtype) == labels[:, tf.newaxis]  # [M, V]


@block
def _cross_entropy_forward(x, bias, labels):
  logits = _float32(x) + bias
  top = tf.reduce_max(logits, axis=-1, keepdims=True)
  log_sum = top + tf.math.log(tf.reduce_sum(tf.exp(logits - top), axis=-1, keepdims=True))
  is_label = _is_label(labels, x.shape[-1])
  right = tf.reduce_sum(tf.where(is_label, logits, 0.0), axis=-1)
  return log_sum[:, 0] - right, log_sum


@block
def _cross_entropy_backward(x, bias, labels, log_sum, dy):
  probs = tf.exp(_float32(x) + bias - log_sum)
  is_label = tf.cast(_is_label(labels, x.shape[-1]), tf.float32)
  d_logits = (probs - is_label) * dy[:, tf.newaxis]
  return tf.cast(d_logits, x.dtype), tf.reduce_sum(d_logits, axis=0)


def cross_entropy(x: tf.Tensor, bias: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
  """Computes `-log softmax(x + bias)[label]`, float32 `[M]`, without storing the softmax.

  Args:
    x: float `[M, V]`, a matrix product.
    bias: float32 `[V]`.
    labels: int32 `[M]`; the loss of one outside `[0, V)` is NaN.
  """
  compiled = _mode.compiled

  @with_gradient
  def fused(x, bias):
    loss, log_sum = _cross_entropy_forward(x, bias, labels, compiled=compiled)
    return loss, lambda dy: _cross_entropy_backward(x, bias, labels, log_sum, dy, compiled=compiled)

  is_word = (labels >= 0) & (labels < x.shape[-1])
  return tf.where(is_word, fused(x, tf.convert_to_tensor(bias)), math.nan)


# ---------------------------------------------------------------------------------------------
# Table lookup.


def gather_rows(table: tf.Tensor, ids: tf.Tensor, padding_id: int | None = None) -> tf.Tensor:
  """Gathers as `tf.gather(table, ids)`, with a dense gradient instead of a variable's sparse one.

  The norm for gradient clipping counts repeated rows of a sparse gradient separately.

  Args:
    table: float32 `[V, W]`.
    ids: int `[...]`.
    padding_id: a row that gets no gradient.
  """
  ids = tf.convert_to_tensor(ids)

  @with_gradient
  def fused(table):
    def gradient(dy):
      rows = tf.reshape(dy, [-1, table.shape[-1]])
      return tf.math.unsorted_segment_sum(rows, tf.reshape(ids, [-1]), tf.shape(table)[0])

    return tf.gather(table, ids), gradient

  found = fused(table)
  if padding_id is None:
    return found
  is_padding = tf.expand_dims(ids == padding_id, -1)
  return tf.where(is_padding, tf.stop_gradient(found), found)
