"""Building blocks of the Keras layers: initializers, activations, dropout, normalizations.

Letters in shapes: W = width.
"""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import ClassVar

import keras
import numpy as np
from keras import ops

from bert.keras3.torch_modules import TorchModule, on_torch, register_parameters

LAYER_NORM_EPSILON = 1e-12

NORMALIZATION_TYPES = ("layer_norm", "rms_norm")

PACKAGE = "bert"
"""The Keras registration package; registered classes load without `custom_objects`."""

register = keras.saving.register_keras_serializable(package=PACKAGE)


class SpecLayer(TorchModule, keras.layers.Layer):
  """Base of the layers that keep their constructor's arguments in `spec`.

  Attributes:
    spec: the arguments.
    retired: arguments that files written before may have, see `without_retired`.
  """

  retired: ClassVar[Mapping] = {}

  def __init__(self, **kwargs):
    super().__init__(**kwargs)
    self.spec = SimpleNamespace()

  def keep(self, values: Mapping) -> None:
    """Adds a constructor's arguments to `spec`; `values` are its `locals()` after Keras's own."""
    vars(self.spec).update(own_arguments(values))

  def get_config(self):
    """Returns the constructor's arguments."""
    return {**super().get_config(), **vars(self.spec)}

  @classmethod
  def from_config(cls, config):
    """Creates the layer of a config, perhaps one that was written before."""
    return cls(**without_retired(config, cls.retired))


class Composite(TorchModule, keras.layers.Layer):
  """Base of layers made of others, which all read vectors of the input's width."""

  def build(self, input_shape):
    """Creates the variables."""
    for layer in self._flatten_layers(include_self=False, recursive=False):
      if not layer.built:
        layer.build((None, input_shape[-1]))
    self.built = True


def own_arguments(values: Mapping) -> dict:
  """Returns what belongs to a constructor's own arguments by name, without those of Keras."""
  return {n: v for n, v in values.items() if n not in ("self", "__class__", "name", "kwargs")}


def without_retired(config: Mapping, retired: Mapping) -> dict:
  """Leaves arguments out of a config that existed once.

  Args:
    config: arguments by name.
    retired: those arguments, and their values where they have no effect.

  Raises:
    ValueError: a value has one.
  """
  for name, default in retired.items():
    if config.get(name, default) != default:
      raise ValueError(
        f"{config.get('name')} was saved with {name}={config[name]!r}, which bert.keras3 no longer "
        "has. Load the file with the version of this package that wrote it."
      )
  return {name: value for name, value in config.items() if name not in retired}


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
  if on_torch():
    for registered in (layer._modules, layer._parameters):  # under the same name
      registered.pop(name, None)
  setattr(layer, name, new)
  layer._tracker.lock()
  register_parameters(layer)
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


class Transposed:
  """A matrix `[in, out]` as checkpoints of the original have it: `[out, in]`.

  It has what loading and saving need of a `keras.Variable`.
  """

  def __init__(self, variable: keras.Variable):
    self.variable = variable
    self.dtype = variable.dtype
    self.path = variable.path

  @property
  def shape(self) -> tuple[int, ...]:
    """That of the checkpoint's matrix."""
    return tuple(self.variable.shape)[::-1]

  def assign(self, value) -> None:
    """Sets the values, `[out, in]`."""
    self.variable.assign(np.transpose(value))

  def numpy(self) -> np.ndarray:
    """Returns the values, `[out, in]`."""
    return np.transpose(ops.convert_to_numpy(self.variable))

  def __array__(self, dtype=None, copy=None):
    del copy
    return np.asarray(self.numpy(), dtype)


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

  def __init__(self, rate: float, **kwargs):
    """Creates the layer.

    Args:
      rate: at least 0 and at most 1.
      **kwargs: arguments of `keras.layers.Layer`.

    Raises:
      ValueError: the dropout rate is out of range.
    """
    super().__init__(**kwargs)
    if not 0 <= rate <= 1:
      raise ValueError(f"A dropout rate is {rate}; it must be between 0 and 1.")
    self.rate = rate
    # Created on PyTorch, too, so that one seed gives the same initial weights on every backend; but
    # not kept there, where it would count as a parameter.
    generator = keras.random.SeedGenerator() if rate > 0 else None
    self.seed_generator = None if on_torch() else generator
    self.built = True

  def call(self, inputs, training=None):
    """Drops values in training: float `[...]` to the same shape."""
    if training is None and on_torch():
      training = self.training
    if not training or not self.rate:
      return inputs
    on_tensorflow = keras.backend.backend() == "tensorflow" and self.seed_generator is not None
    if on_tensorflow and self.rate < 1:
      return self._multiplied(inputs)
    return keras.random.dropout(inputs, self.rate, seed=self.seed_generator)

  def _multiplied(self, inputs):
    """Drops values by factors of our own, which take TensorFlow far less time than its own."""
    import tensorflow as tf

    from bert.model import kernels

    seed = tf.cast(self.seed_generator.next(), tf.int64)
    factors = kernels.dropout_factors(tf.size(inputs), self.rate, inputs.dtype, seed)
    return inputs * tf.reshape(factors, tf.shape(inputs))


# ---------------------------------------------------------------------------------------------
# Normalizations.


def create_normalization(
  normalization_type: str, epsilon: float, dtype, name: str = "LayerNorm"
) -> keras.layers.Layer:
  """Creates a layer that normalizes the last axis.

  All types are named `LayerNorm`, because that name excludes them from weight decay.

  Args:
    normalization_type: one of `NORMALIZATION_TYPES`.
    epsilon: added to the variance.
    dtype: a Keras dtype policy.
    name: of the layer.

  Raises:
    ValueError: the type is unknown.
  """
  require_one_of("normalization_type", normalization_type, NORMALIZATION_TYPES)
  if normalization_type == "rms_norm":
    return keras.layers.RMSNormalization(epsilon=epsilon, dtype=dtype, name=name)
  return keras.layers.LayerNormalization(epsilon=epsilon, dtype=dtype, name=name)
