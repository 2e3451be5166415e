"""What every Keras layer here is made of: initialiser, activations, normalisations.

Letters in shapes: W = width.
"""

from collections.abc import Callable, Sequence

import keras
import numpy as np
from keras import ops

LAYER_NORM_EPSILON = 1e-12

NORMALIZATION_TYPES = ("layer_norm", "rms_norm", "batch_norm", "dynamic_tanh")

PACKAGE = "bert"
"""Under which Keras remembers the classes, so that loading needs no `custom_objects`."""

register = keras.saving.register_keras_serializable(package=PACKAGE)


def require_one_of(argument: str, value, known: Sequence[str]) -> None:
  """Raises a ValueError that names the argument and what is known."""
  if value not in known:
    raise ValueError(f"{argument} is {value!r}; known: {', '.join(known)}.")


@register
class TruncatedNormal(keras.initializers.TruncatedNormal):
  """A normal distribution without what is beyond two standard deviations, drawn by NumPy.

  So one seed (`keras.utils.set_random_seed`) makes the same weights on every backend, and JAX does
  not compile a generator for every shape, which takes longer than a small model's first epoch.
  """

  def __call__(self, shape, dtype=None):
    """float `shape`."""
    generator = np.random.default_rng(self.seed)
    values = generator.standard_normal(int(np.prod(shape)), dtype=np.float32)
    outside = np.flatnonzero(np.abs(values) > 2.0)
    while outside.size:
      values[outside] = generator.standard_normal(outside.size, dtype=np.float32)
      outside = outside[np.abs(values[outside]) > 2.0]
    return ops.convert_to_tensor(values.reshape(shape) * self.stddev + self.mean, dtype=dtype)


def create_initializer(initializer_range: float = 0.02) -> keras.initializers.Initializer:
  """The initialiser of all weights: a truncated normal of that standard deviation."""
  return TruncatedNormal(stddev=initializer_range)


def create_dense(width: int, name: str, spec, dtype_policy) -> keras.layers.Dense:
  """A linear layer to `width`; `use_bias` and `initializer_range` are those of `spec`."""
  return keras.layers.Dense(
    width,
    use_bias=spec.use_bias,
    kernel_initializer=create_initializer(spec.initializer_range),
    dtype=dtype_policy,
    name=name,
  )


# ---------------------------------------------------------------------------------------------
# Activations.


def gelu(x):
  """Gaussian error linear unit, tanh form (arXiv:1606.08415), as the original computes it."""
  return ops.gelu(x, approximate=True)


def gelu_erf(x):
  """Gaussian error linear unit, exact form: what transformers' `hidden_act="gelu"` means."""
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
  """The function called so.

  Raises:
    ValueError: the name is unknown.
  """
  require_one_of("activation", name, tuple(ACTIVATIONS))
  return ACTIVATIONS[name]


# ---------------------------------------------------------------------------------------------
# Normalisations.


@register
class DynamicTanh(keras.layers.Layer):
  """`gamma tanh(alpha x) + beta`: no statistics, yet it stands in for LayerNorm (arXiv:2503.10622).

  Attributes:
    alpha: one number, learnt.
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
    """float `[..., W]` to the same shape."""
    return self.gamma * ops.tanh(self.alpha * inputs) + self.beta

  def get_config(self):
    """The constructor's arguments."""
    return {**super().get_config(), "alpha_init": self.alpha_init}


@register
class BatchNorm(keras.layers.BatchNormalization):
  """Batch normalisation of the last axis; padding counts in its statistics, too."""


def create_normalization(
  normalization_type: str, epsilon: float, dtype, name: str = "LayerNorm"
) -> keras.layers.Layer:
  """A layer that normalises the last axis.

  All are called `LayerNorm`, whatever they do: that is the name that keeps them from weight decay.

  Args:
    normalization_type: one of `NORMALIZATION_TYPES`.
    epsilon: added to the variance; `dynamic_tanh` has none.
    dtype: a Keras dtype policy.
    name: of the layer.

  Raises:
    ValueError: the type is unknown.
  """
  require_one_of("normalization_type", normalization_type, NORMALIZATION_TYPES)
  if normalization_type == "rms_norm":
    return keras.layers.RMSNormalization(epsilon=epsilon, dtype=dtype, name=name)
  if normalization_type == "batch_norm":
    # A variance near 0 over a batch is common where one over a vector is not: 1e-12 would explode.
    return BatchNorm(epsilon=max(epsilon, 1e-3), dtype=dtype, name=name)
  if normalization_type == "dynamic_tanh":
    return DynamicTanh(dtype=dtype, name=name)
  return keras.layers.LayerNormalization(epsilon=epsilon, dtype=dtype, name=name)
