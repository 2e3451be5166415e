"""Normalization over features, instances and groups, with the variables beta and gamma."""

from collections.abc import Callable

from bert_tf1.contrib import framework
from bert_tf1.contrib.layers import collections
from bert_tf1.real import tf


@framework.add_arg_scope
def layer_norm(
  inputs,
  center=True,
  scale=True,
  activation_fn=None,
  reuse=None,
  variables_collections=None,
  outputs_collections=None,
  trainable=True,
  begin_norm_axis=1,
  begin_params_axis=-1,
  scope=None,
):
  """Normalizes over the axes from `begin_norm_axis` on; epsilon is 1e-12, 1e-3 for float16.

  Source: J. Ba et al., "Layer Normalization", https://arxiv.org/abs/1607.06450. The other arguments
  are those of `fully_connected`.

  Args:
    inputs: float, of known rank.
    center: add the variable `beta`, of the shape of `inputs` from `begin_params_axis` on.
    scale: multiply by the variable `gamma`, of that shape.
    activation_fn: a function of the result, or None.
    begin_norm_axis: the first axis to normalize over.
    begin_params_axis: the first axis of the variables; these axes are of known size.
    scope: of the variables; "LayerNorm" if None.

  Raises:
    ValueError: if the rank or the variables' shape is not known or an axis is out of range.
  """
  with tf.variable_scope(scope, "LayerNorm", [inputs], reuse=reuse) as layer_scope:
    inputs = tf.convert_to_tensor(inputs)
    rank = known_rank(inputs)
    begin_norm_axis += rank if begin_norm_axis < 0 else 0
    if begin_params_axis >= rank or begin_norm_axis >= rank:
      raise ValueError(
        f"begin_params_axis ({begin_params_axis}) and begin_norm_axis ({begin_norm_axis}) "
        f"must be < rank(inputs) ({rank})"
      )
    params_shape = inputs.shape[begin_params_axis:]
    if not params_shape.is_fully_defined():
      raise ValueError(
        f"Inputs {inputs.name}: shape(inputs)[{begin_params_axis}:] is not fully defined: "
        f"{inputs.shape}"
      )
    dtype = inputs.dtype.base_dtype
    variables = NormVariables(params_shape, dtype, variables_collections, trainable)
    beta, gamma = variables.beta(center), variables.gamma(scale)
    mean, variance = tf.nn.moments(inputs, list(range(begin_norm_axis, rank)), keep_dims=True)
    epsilon = 1e-3 if dtype == tf.float16 else 1e-12  # 1e-12 is 0 in float16.
    outputs = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
    outputs.set_shape(inputs.shape)
    return collections.finish_layer(
      outputs, None, None, activation_fn, outputs_collections, layer_scope
    )


@framework.add_arg_scope
def instance_norm(
  inputs,
  center=True,
  scale=True,
  epsilon=1e-6,
  activation_fn=None,
  param_initializers=None,
  reuse=None,
  variables_collections=None,
  outputs_collections=None,
  trainable=True,
  data_format="NHWC",
  scope=None,
):
  """Normalizes each channel of each example over all other axes.

  Source: D. Ulyanov et al., "Instance Normalization", https://arxiv.org/abs/1607.08022.

  Arguments are those of `layer_norm` and `batch_norm`; the scope is "InstanceNorm" if None.

  Raises:
    ValueError: if the data format, the rank or the number of channels is not known.
  """
  inputs = tf.convert_to_tensor(inputs)
  rank = known_rank(inputs)
  check_data_format(data_format)
  with tf.variable_scope(scope, "InstanceNorm", [inputs], reuse=reuse) as layer_scope:
    channels_axis = 1 if data_format == "NCHW" else rank - 1
    params_shape = known_channels(inputs, channels_axis)
    broadcast = [1, *params_shape.as_list(), *[1] * (rank - 2)] if data_format == "NCHW" else None
    variables = NormVariables(
      params_shape, inputs.dtype.base_dtype, variables_collections, trainable, param_initializers
    )
    beta = reshaped(variables.beta(center), broadcast)
    gamma = reshaped(variables.gamma(scale), broadcast)
    axes = [axis for axis in range(1, rank) if axis != channels_axis]
    mean, variance = tf.nn.moments(inputs, axes, keep_dims=True)
    outputs = tf.nn.batch_normalization(
      inputs, mean, variance, beta, gamma, epsilon, name="instancenorm"
    )
    return collections.finish_layer(
      outputs, None, None, activation_fn, outputs_collections, layer_scope
    )


@framework.add_arg_scope
def group_norm(
  inputs,
  groups=32,
  channels_axis=-1,
  reduction_axes=(-3, -2),
  center=True,
  scale=True,
  epsilon=1e-6,
  activation_fn=None,
  param_initializers=None,
  reuse=None,
  variables_collections=None,
  outputs_collections=None,
  trainable=True,
  scope=None,
  mean_close_to_zero=False,
):
  """Normalizes each group of channels of each example over the group and `reduction_axes`.

  Source: Y. Wu, K. He, "Group Normalization", https://arxiv.org/abs/1803.08494.

  Args:
    inputs: float, of known rank; all sizes but the batch's are known.
    groups: a divisor of the number of channels.
    channels_axis: the axis of the channels.
    reduction_axes: the other axes to normalize over, without that of the channels.
    mean_close_to_zero: take the variance from the sum of squares, in one pass.

  The other arguments are those of `layer_norm` and `batch_norm`; the scope is "GroupNorm" if
  None.

  Raises:
    ValueError: if a size is not known, an axis is out of range or the groups do not fit.
  """
  inputs = tf.convert_to_tensor(inputs)
  rank = known_rank(inputs)
  if channels_axis > rank - 1:
    raise ValueError("Axis is out of bounds.")
  channels_axis += rank if channels_axis < 0 else 0
  sizes = [
    tf.shape(inputs)[axis] if size is None else size
    for axis, size in enumerate(inputs.shape.as_list())
  ]
  channels = inputs.shape.dims[channels_axis].value
  if channels is None:
    raise ValueError(f"Inputs {inputs.name} has undefined channel dimension: {channels_axis}.")
  axes = [axis + rank if axis < 0 else axis for axis in reduction_axes]
  for axis in axes:
    if axis > rank:
      raise ValueError("Axis is out of bounds.")
    if inputs.shape.dims[axis].value is None:
      raise ValueError(f"Inputs {inputs.name} has undefined dimensions {axis}.")
    if axis == channels_axis:
      raise ValueError("reduction_axis must be mutually exclusive with channels_axis")
  if groups > channels:
    raise ValueError(f"Invalid groups {groups} for {channels} channels.")
  if channels % groups:
    raise ValueError(f"{channels} channels is not commensurate with {groups} groups.")

  grouped = [groups, channels // groups]
  before, after = sizes[:channels_axis], sizes[channels_axis + 1 :]
  inputs = tf.reshape(inputs, [*before, *grouped, *after])
  axes = [channels_axis + 1, *(axis + 1 if axis > channels_axis else axis for axis in axes)]
  with tf.variable_scope(scope, "GroupNorm", [inputs], reuse=reuse) as layer_scope:
    variables = NormVariables(
      [channels], inputs.dtype.base_dtype, variables_collections, trainable, param_initializers
    )
    broadcast = [1] * len(before) + grouped + [1] * len(after)
    beta = reshaped(variables.beta(center), broadcast)
    gamma = reshaped(variables.gamma(scale), broadcast)
    if mean_close_to_zero:
      counts, means, squares, _ = tf.nn.sufficient_statistics(inputs, axes, keep_dims=True)
      mean, variance = tf.nn.normalize_moments(counts, means, squares, shift=None)
    else:
      mean, variance = tf.nn.moments(inputs, axes, keep_dims=True)
    # Not `tf.nn.batch_normalization`: 1.15 rounds in this order.
    gain = tf.rsqrt(variance + epsilon)
    offset = -mean * gain
    if gamma is not None:
      gain *= gamma
      offset *= gamma
    if beta is not None:
      offset += beta
    outputs = tf.reshape(inputs * gain + offset, sizes)
    return collections.finish_layer(
      outputs, None, None, activation_fn, outputs_collections, layer_scope
    )


class NormVariables:
  """Makes the variables of a normalization in the current scope."""

  def __init__(
    self,
    shape,
    dtype,
    variables_collections,
    trainable: bool,
    initializers: dict[str, Callable] | None = None,
    regularizers: dict[str, Callable] | None = None,
  ):
    self._shape = shape
    self._dtype = dtype
    self._collections = variables_collections
    self._trainable = trainable
    self._initializers = initializers or {}
    self._regularizers = regularizers or {}

  def beta(self, center: bool):
    """Returns the variable `beta`, or None."""
    return self._make("beta", tf.zeros_initializer(), self._trainable) if center else None

  def gamma(self, scale: bool):
    """Returns the variable `gamma`, or None."""
    return self._make("gamma", tf.ones_initializer(), self._trainable) if scale else None

  def moving(self) -> tuple:
    """Returns the variables `moving_mean` and `moving_variance`, never partitioned."""
    with tf.variable_scope(tf.get_variable_scope()) as scope:
      scope.set_partitioner(None)  # A moving average cannot be assigned to a partitioned one.
      mean = self._make("moving_mean", tf.zeros_initializer(), False)
      return mean, self._make("moving_variance", tf.ones_initializer(), False)

  def _make(self, name: str, initializer, trainable: bool):
    return framework.model_variable(
      name,
      shape=self._shape,
      dtype=self._dtype,
      initializer=self._initializers.get(name, initializer),
      regularizer=self._regularizers.get(name),
      collections=collections.get_variable_collections(self._collections, name),
      trainable=trainable,
    )


def known_rank(inputs) -> int:
  """Returns the rank; a ValueError if it is not known."""
  if inputs.shape.ndims is None:
    raise ValueError(f"Inputs {inputs.name} has undefined rank.")
  return inputs.shape.ndims


def known_channels(inputs, axis: int):
  """Returns the number of channels as a `tf.TensorShape`; a ValueError if it is not known."""
  shape = inputs.shape[axis : axis + 1]
  if not shape.is_fully_defined():
    raise ValueError(f"Inputs {inputs.name} has undefined channels dimension {shape}.")
  return shape


def check_data_format(data_format: str) -> None:
  """Raises a ValueError if it is neither NCHW nor NHWC."""
  if data_format not in ("NCHW", "NHWC"):
    raise ValueError("data_format has to be either NCHW or NHWC.")


def reshaped(variable, shape):
  """Returns the variable in that shape; None for None, and as it is if the shape is None."""
  return variable if variable is None or shape is None else tf.reshape(variable, shape)
