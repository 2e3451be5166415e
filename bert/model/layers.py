"""Parts of a transformer: linear layers, LayerNorm, dropout.

Letters in shapes: B = batch size, S = sequence length, W = width, N = heads, H = size of one head,
M = rows: all B * S positions of a batch, or fewer without padding.
"""

import functools
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert.families import LAYER_NORM_EPSILON
from bert.model import kernels
from bert.model.block_notes import noted
from bert.model.token_rows import get_shape_list
from bert.model.variables import (
  current_store,
  get_variable,
  glorot_uniform_initializer,
  next_random_seed,
  ones_initializer,
  truncated_normal_initializer,
  variable_scope,
  zeros_initializer,
)

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


def mask_of_batch(input_mask: tf.Tensor) -> tf.Tensor:
  """Makes the mask float32 `[B, 1, S]`: one row of it serves all queries of a sequence."""
  return tf.expand_dims(tf.cast(input_mask, tf.float32), 1)


# ---------------------------------------------------------------------------------------------
# Activations and dropout.


def gelu(x: tf.Tensor) -> tf.Tensor:
  """Computes the Gaussian error linear unit, tanh form (arXiv:1606.08415); any shape."""
  return kernels.gelu(tf.convert_to_tensor(x))


def gelu_erf(x: tf.Tensor) -> tf.Tensor:
  """Computes the exact form of GELU, which transformers calls `gelu`; any shape."""
  return noted("gelu_erf", tf.nn.gelu(x, approximate=False), x=x)


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

  PARTS = ("kernel", "bias")  # its variables

  def __init__(self, name, x, width, initializer_range, activation=None, scale=1.0):
    """Finds or creates the variables `<name>/{kernel,bias}` for `x`, `[M, any]`."""
    self.kernel, self.bias = _dense_variables(name, x.shape[-1], width, initializer_range)
    self.width, self.activation, self.scale = width, activation, scale


def project(x: tf.Tensor, projections: list[Projection], dtype: tf.DType) -> tf.Tensor:
  """Maps `[M, any]` to `[M, len(projections) * width]` of type `dtype`.

  One wide product uses the processor better than several.
  """
  kernel = current_store().derived(_side_by_side, *(p.kernel for p in projections))
  bias = current_store().derived(_side_by_side, *(p.bias for p in projections))
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


def _side_by_side(*tensors) -> tf.Tensor:
  return tf.concat(tensors, axis=-1)


def product(a, b, dtype: tf.DType, **kwargs) -> tf.Tensor:
  """Computes `tf.matmul` in `dtype`, which is also the type of the result."""
  if isinstance(b, tf.Variable) and b.dtype != dtype:
    b = current_store().derived(functools.partial(tf.cast, dtype=dtype), b)
  return tf.matmul(tf.cast(a, dtype), tf.cast(b, dtype), **kwargs)
