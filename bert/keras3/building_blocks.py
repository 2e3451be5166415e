"""Building blocks of the Keras layers: initializer, activations, normalizations, feed-forward.

The feed-forward networks, with x the input, W0, W1, W2 kernels (biases omitted) and act the
chosen activation:

| type | output |
|---|---|
| `mlp` | act(x W1) W2, the original |
| `glu` | (sigmoid(x W0) * x W1) W2 (arXiv:1612.08083) |
| `geglu`, `swiglu` | the same with GELU or SiLU instead of the sigmoid (arXiv:2002.05202) |
| `differential` | (act(x W1) - act(x W0)) W2 |
| `residual` | act(x W1) W2 + x W0 |

Letters in shapes: W = width.
"""

from collections.abc import Callable, Sequence
from types import SimpleNamespace

import keras
import numpy as np
from keras import ops

from bert.keras3.torch_modules import TorchModule, on_torch
from bert.model import families

LAYER_NORM_EPSILON = 1e-12

NORMALIZATION_TYPES = ("layer_norm", "rms_norm", "batch_norm", "dynamic_tanh")

PACKAGE = "bert"
"""The Keras registration package; registered classes load without `custom_objects`."""

register = keras.saving.register_keras_serializable(package=PACKAGE)


class SpecLayer(TorchModule, keras.layers.Layer):
  """Base of the layers that keep their constructor's arguments in `spec`."""

  spec: SimpleNamespace

  def get_config(self):
    """Returns the constructor's arguments."""
    return {**super().get_config(), **vars(self.spec)}


def require_one_of(argument: str, value, known: Sequence[str]) -> None:
  """Raises a ValueError that names the argument and the known values."""
  if value not in known:
    raise ValueError(f"{argument} is {value!r}; known: {', '.join(known)}.")


@register
class TruncatedNormal(keras.initializers.TruncatedNormal):
  """A normal distribution cut off at two standard deviations, drawn by NumPy.

  One seed (`keras.utils.set_random_seed`) gives the same weights on every backend, and JAX does not
  compile a generator for every shape, which takes longer than a small model's first epoch.
  """

  def __call__(self, shape, dtype=None):
    """Draws values: float `shape`."""
    generator = np.random.default_rng(self.seed)
    values = generator.standard_normal(int(np.prod(shape)), dtype=np.float32)
    outside = np.flatnonzero(np.abs(values) > 2.0)
    while outside.size:
      values[outside] = generator.standard_normal(outside.size, dtype=np.float32)
      outside = outside[np.abs(values[outside]) > 2.0]
    return ops.convert_to_tensor(values.reshape(shape) * self.stddev + self.mean, dtype=dtype)


@register
class GlorotUniform(keras.initializers.GlorotUniform):
  """A uniform distribution that suits the sizes of a matrix, drawn by NumPy for these reasons."""

  def __call__(self, shape, dtype=None):
    """Draws values: float `shape`, of two axes."""
    limit = np.sqrt(6.0 / sum(shape))
    values = np.random.default_rng(self.seed).uniform(-limit, limit, shape)
    return ops.convert_to_tensor(values.astype(np.float32), dtype=dtype)


def create_initializer(initializer_range: float | None = 0.02) -> keras.initializers.Initializer:
  """Creates a truncated normal with this standard deviation, or else Glorot's uniform."""
  return GlorotUniform() if initializer_range is None else TruncatedNormal(stddev=initializer_range)


def scope_below(path: str, scope: str) -> keras.name_scope:
  """Creates the scope `path/scope` for variables; Keras's own takes no name with a slash."""
  parent, _, name = f"{path}/{scope}".strip("/").rpartition("/")
  return keras.name_scope(name, override_parent=parent)


def resize_rows(layer: keras.layers.Layer, name: str, rows: int) -> None:
  """Replaces a variable of a layer by one of another number of rows; those that stay are kept.

  Args:
    layer: with a variable `[V, ...]` as the attribute `name`, which ends the variable's path.
    name: of the attribute.
    rows: the new V. New rows are truncated normals (0.02), those of a bias zeros.

  Raises:
    ValueError: `rows` is below 1.
  """
  if rows < 1:
    raise ValueError(f"A table of {rows} rows is empty; give at least 1.")
  old = getattr(layer, name)
  shape = (rows, *old.shape[1:])
  initializer = "zeros" if len(shape) == 1 else create_initializer()
  parent, _, scope = old.path.rpartition("/")[0].rpartition("/")
  # As Keras's own layers do to be quantized: a built layer takes no variables else.
  layer._tracker.unlock()
  layer._untrack_variable(old)
  with keras.name_scope(scope, override_parent=parent):
    new = keras.Variable(initializer, shape, old.dtype, name=name)
  setattr(layer, name, new)
  layer._tracker.lock()
  values = keras.ops.convert_to_numpy(new).copy()
  kept = min(rows, old.shape[0])
  values[:kept] = keras.ops.convert_to_numpy(old)[:kept]
  new.assign(values)


def create_dense(
  width: int,
  name: str,
  dtype,
  initializer_range: float | None = 0.02,
  activation: str | None = None,
  use_bias: bool = True,
) -> keras.layers.Dense:
  """Creates a dense layer of `width` outputs; see `create_initializer` and `get_activation`."""
  return keras.layers.Dense(
    width,
    activation=get_activation(activation) if activation else None,
    use_bias=use_bias,
    kernel_initializer=create_initializer(initializer_range),
    dtype=dtype,
    name=name,
  )


# ---------------------------------------------------------------------------------------------
# Activations.


def gelu(x):
  """Computes the original's Gaussian error linear unit, the tanh form (arXiv:1606.08415)."""
  return ops.gelu(x, approximate=True)


def gelu_erf(x):
  """Computes the exact Gaussian error linear unit, `hidden_act="gelu"` in transformers."""
  return ops.gelu(x, approximate=False)


ACTIVATIONS: dict[str, Callable | None] = {
  "gelu": gelu,
  "gelu_new": gelu,
  "gelu_tanh": gelu,
  "gelu_pytorch_tanh": gelu,
  "gelu_erf": gelu_erf,
  "relu": ops.relu,
  "silu": ops.silu,
  "swish": ops.silu,
  "tanh": ops.tanh,
  "linear": lambda x: x,
}


def get_activation(name: str) -> Callable:
  """Finds the activation with this name, in any case; `none` and nothing are `linear`.

  Raises:
    ValueError: the name is unknown.
  """
  plain = str(name or "linear").lower()
  plain = "linear" if plain == "none" else plain
  if plain not in ACTIVATIONS:
    require_one_of("activation", name, tuple(ACTIVATIONS))
  return ACTIVATIONS[plain]


# ---------------------------------------------------------------------------------------------
# Dropout.


class Dropout(TorchModule, keras.layers.Layer):
  """Sets a share `rate` of the inputs to 0 in training, and scales the others by 1 / (1 - rate).

  On PyTorch the random numbers are PyTorch's own (`torch.manual_seed`), and a call without
  `training` follows the module's mode; elsewhere it drops nothing.
  """

  def __init__(self, rate: float, noise_shape: tuple | None = None, **kwargs):
    """Creates the layer.

    Args:
      rate: at least 0 and at most 1.
      noise_shape: shape of the random numbers, None for the inputs' size along an axis.
      **kwargs: arguments of `keras.layers.Layer`.

    Raises:
      ValueError: the dropout rate is out of range.
    """
    super().__init__(**kwargs)
    if not 0 <= rate <= 1:
      raise ValueError(f"A dropout rate is {rate}; it must be between 0 and 1.")
    self.rate = rate
    self.noise_shape = noise_shape
    # Created on PyTorch, too, so that one seed gives the same initial weights on every backend; but
    # not kept there, where it would count as a parameter.
    generator = keras.random.SeedGenerator() if rate > 0 else None
    self.seed_generator = None if on_torch() else generator

  def call(self, inputs, training=None):
    """Drops values in training: float `[...]` to the same shape."""
    if training is None and on_torch():
      training = self.training
    if not training or not self.rate:
      return inputs
    on_tensorflow = keras.backend.backend() == "tensorflow" and self.seed_generator is not None
    if on_tensorflow and self.noise_shape is None and self.rate < 1:
      return self._multiplied(inputs)
    return keras.random.dropout(inputs, self.rate, self.noise_shape, self.seed_generator)

  def _multiplied(self, inputs):
    """Drops values by factors of our own, which take TensorFlow far less time than its own."""
    import tensorflow as tf

    from bert.model import kernels

    seed = tf.cast(self.seed_generator.next(), tf.int64)
    factors = kernels.dropout_factors(tf.size(inputs), self.rate, inputs.dtype, seed)
    return inputs * tf.reshape(factors, tf.shape(inputs))

  def compute_output_spec(self, inputs, training=None):
    """Returns the shape and type of the output."""
    return keras.KerasTensor(inputs.shape, inputs.dtype)


# ---------------------------------------------------------------------------------------------
# Normalizations.


@register
class DynamicTanh(TorchModule, keras.layers.Layer):
  """`gamma tanh(alpha x) + beta`: replaces LayerNorm without statistics (arXiv:2503.10622).

  Attributes:
    alpha: one learned number.
    gamma: `[W]`.
    beta: `[W]`.
  """

  def __init__(self, alpha_init: float = 0.5, **kwargs):
    super().__init__(**kwargs)
    self.alpha_init = alpha_init

  def build(self, input_shape):
    """Creates the variables."""
    constant = keras.initializers.Constant(self.alpha_init)
    self.alpha = self.add_weight(shape=(1,), initializer=constant, name="alpha")
    self.gamma = self.add_weight(shape=input_shape[-1:], initializer="ones", name="gamma")
    self.beta = self.add_weight(shape=input_shape[-1:], initializer="zeros", name="beta")
    self.built = True

  def call(self, inputs):
    """Normalizes vectors: float `[..., W]` to the same shape."""
    return self.gamma * ops.tanh(self.alpha * inputs) + self.beta

  def get_config(self):
    """Returns the constructor's arguments."""
    return {**super().get_config(), "alpha_init": self.alpha_init}


@register
class BatchNorm(TorchModule, keras.layers.BatchNormalization):
  """Batch normalization of the last axis; its statistics include padding."""

  def call(self, inputs, training=None, mask=None):
    """Normalizes vectors: float `[..., W]` to the same shape."""
    if training is None and on_torch():
      training = self.training
    return super().call(inputs, training=training, mask=mask)


def create_normalization(
  normalization_type: str, epsilon: float, dtype, name: str = "LayerNorm"
) -> keras.layers.Layer:
  """Creates a layer that normalizes the last axis.

  All types are named `LayerNorm`, because that name excludes them from weight decay.

  Args:
    normalization_type: one of `NORMALIZATION_TYPES`.
    epsilon: added to the variance; `dynamic_tanh` ignores it.
    dtype: a Keras dtype policy.
    name: of the layer.

  Raises:
    ValueError: the type is unknown.
  """
  require_one_of("normalization_type", normalization_type, NORMALIZATION_TYPES)
  if normalization_type == "rms_norm":
    return keras.layers.RMSNormalization(epsilon=epsilon, dtype=dtype, name=name)
  if normalization_type == "batch_norm":
    # Variances near 0 are common over a batch, unlike over a vector: dividing by 1e-12 explodes.
    return BatchNorm(epsilon=max(epsilon, 1e-3), dtype=dtype, name=name)
  if normalization_type == "dynamic_tanh":
    return DynamicTanh(dtype=dtype, name=name)
  return keras.layers.LayerNormalization(epsilon=epsilon, dtype=dtype, name=name)


# ---------------------------------------------------------------------------------------------
# Feed-forward networks.

FFN_TYPES = ("mlp", "swiglu", "geglu", "glu", "differential", "residual")

_GATES = {"swiglu": ops.silu, "geglu": gelu, "glu": ops.sigmoid}


@register
class FeedForward(SpecLayer):
  """Applies one of the networks in the table above to each vector.

  Variables, under the scope it is built in: `intermediate/dense` is W1, `output/dense` is W2,
  `intermediate/gate` is W0; with `scopes` given, other names than `intermediate` and `output`.
  """

  def __init__(
    self,
    hidden_size: int,
    intermediate_size: int,
    ffn_type: str = "mlp",
    activation: str = "gelu",
    use_bias: bool = True,
    initializer_range: float = 0.02,
    name: str = "feed_forward",
    scopes: Sequence[str] = ("intermediate", "output"),
    **kwargs,
  ):
    """Creates the projections.

    Args:
      hidden_size: width of input and output.
      intermediate_size: inner width.
      ffn_type: one of `FFN_TYPES`.
      activation: for `mlp`, `differential` and `residual`; the others have their own.
      use_bias: whether the products have a bias.
      initializer_range: standard deviation of the initial kernels.
      name: of the layer.
      scopes: of the first and of the second product.
      **kwargs: of `keras.layers.Layer`.

    Raises:
      ValueError: the type or the activation is unknown.
    """
    super().__init__(name=name, **kwargs)
    require_one_of("ffn_type", ffn_type, FFN_TYPES)
    self.spec = SimpleNamespace(
      hidden_size=hidden_size,
      intermediate_size=intermediate_size,
      ffn_type=ffn_type,
      activation=activation,
      use_bias=use_bias,
      initializer_range=initializer_range,
      scopes=tuple(scopes),
    )
    self.activation = get_activation(activation)
    self.intermediate = self._dense(intermediate_size, "dense")
    self.output_dense = self._dense(hidden_size, "dense")
    self.gate = None
    if ffn_type != "mlp":
      self.gate = self._dense(hidden_size if ffn_type == "residual" else intermediate_size, "gate")

  def _dense(self, width: int, name: str) -> keras.layers.Dense:
    spec = self.spec
    return create_dense(
      width, name, self.dtype_policy, spec.initializer_range, use_bias=spec.use_bias
    )

  def build(self, input_shape):
    """Creates the variables under the original's names: beside this layer's scope, not in it."""
    parent = self.path.rpartition("/")[0]
    inner, outer = self.spec.scopes
    with scope_below(parent, inner):
      self.intermediate.build(input_shape)
      if self.gate is not None:
        self.gate.build(input_shape)
    with scope_below(parent, outer):
      self.output_dense.build((*input_shape[:-1], self.spec.intermediate_size))
    self.built = True

  def call(self, inputs):
    """Transforms vectors: float `[..., hidden_size]` to the same shape."""
    kind = self.spec.ffn_type
    inner = self.intermediate(inputs)
    if kind in _GATES:
      inner = _GATES[kind](self.gate(inputs)) * inner
    elif kind == "differential":
      inner = self.activation(inner) - self.activation(self.gate(inputs))
    else:
      inner = self.activation(inner)
    output = self.output_dense(inner)
    return output + self.gate(inputs) if kind == "residual" else output

  def compute_output_spec(self, inputs):
    """Returns the shape and type of the output."""
    return keras.KerasTensor(inputs.shape, self.compute_dtype)


def create_feed_forward(spec: SimpleNamespace, dtype) -> FeedForward:
  """Creates the feed-forward network of a `TransformerLayer` with the arguments in `spec`.

  The family names its scopes.

  Raises:
    ValueError: `ffn_type` or the activation is unknown.
  """
  names = families.FAMILIES[spec.model_type].layer
  arguments = {
    "scopes": [name.rpartition("/")[0] for name in (names.intermediate, names.output)],
    "hidden_size": spec.hidden_size,
    "intermediate_size": spec.intermediate_size,
    "ffn_type": spec.ffn_type,
    "activation": spec.activation,
    "use_bias": spec.use_bias,
    "initializer_range": spec.initializer_range,
    **(spec.ffn_args or {}),
  }
  return FeedForward(dtype=dtype, **arguments)
