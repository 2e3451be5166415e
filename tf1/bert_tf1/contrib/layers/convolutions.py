"""Convolutions and poolings."""

import functools
from collections.abc import Callable

from bert_tf1.contrib import framework
from bert_tf1.contrib.layers import collections
from bert_tf1.contrib.layers.initializers import XAVIER, ZEROS
from bert_tf1.contrib.layers.normalization import check_data_format
from bert_tf1.real import tf

_RENAMED = {"kernel": "weights", "bias": "biases"}


@framework.add_arg_scope
def convolution(
  inputs,
  num_outputs,
  kernel_size,
  stride=1,
  padding="SAME",
  data_format=None,
  rate=1,
  activation_fn=tf.nn.relu,
  normalizer_fn=None,
  normalizer_params=None,
  weights_initializer=XAVIER,
  weights_regularizer=None,
  biases_initializer=ZEROS,
  biases_regularizer=None,
  reuse=None,
  variables_collections=None,
  outputs_collections=None,
  trainable=True,
  scope=None,
  conv_dims=None,
):
  """Convolves over one, two or three dimensions, by the rank of the inputs.

  The activation is ReLU unless another, or None, is given. With a `normalizer_fn` there are no
  biases. The other arguments are those of `fully_connected`.

  Args:
    inputs: float [B, ..., C], or [B, C, ...] with a data format that begins with NC.
    num_outputs: the number of filters.
    kernel_size: of the window: an integer, or one per dimension.
    stride: an integer, or one per dimension.
    padding: "SAME" or "VALID".
    data_format: None (channels last), NWC, NCW, NHWC, NCHW, NDHWC or NCDHW.
    rate: the dilation: an integer, or one per dimension.
    weights_initializer: of the variable `weights`, [*kernel_size, C, num_outputs].
    scope: of the variables; "Conv" if None.
    conv_dims: the number of dimensions there has to be.

  Raises:
    ValueError: if the data format or the rank does not fit.
  """
  if data_format not in (None, "NWC", "NCW", "NHWC", "NCHW", "NDHWC", "NCDHW"):
    raise ValueError(f"Invalid data_format: {data_format!r}")
  with tf.variable_scope(
    scope, "Conv", [inputs], reuse=reuse, custom_getter=collections.variable_getter(_RENAMED)
  ) as layer_scope:
    inputs = tf.convert_to_tensor(inputs)
    rank = inputs.shape.ndims
    if conv_dims is not None and conv_dims + 2 != rank:
      raise ValueError(f"Convolution expects input with rank {conv_dims + 2}, got {rank}")
    layers = {3: tf.layers.Conv1D, 4: tf.layers.Conv2D, 5: tf.layers.Conv3D}
    if rank not in layers:
      raise ValueError("Convolution not supported for input with rank", rank)
    layer = layers[rank](
      filters=num_outputs,
      kernel_size=kernel_size,
      strides=stride,
      padding=padding,
      data_format=_channels_place(data_format),
      dilation_rate=rate,
      use_bias=not normalizer_fn and biases_initializer,
      kernel_initializer=weights_initializer,
      bias_initializer=biases_initializer,
      kernel_regularizer=weights_regularizer,
      bias_regularizer=biases_regularizer,
      trainable=trainable,
      name=layer_scope.name,
      dtype=inputs.dtype.base_dtype,
      _scope=layer_scope,
      _reuse=reuse,
    )
    outputs = layer(inputs)
    collections.add_layer_to_collections(layer, variables_collections)
    return collections.finish_layer(
      outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, layer_scope
    )


def _convolution_of(dims: int) -> Callable:
  def of_dims(*args, **settings):
    return convolution(*args, conv_dims=dims, **settings)

  of_dims.__name__ = f"convolution{dims}d"  # `repeat` and `stack` name scopes by it.
  of_dims.__doc__ = f"`convolution` over {dims} dimension{'s' if dims > 1 else ''}."
  return framework.add_arg_scope(of_dims)


conv1d = convolution1d = _convolution_of(1)
conv2d = convolution2d = _convolution_of(2)
conv3d = convolution3d = _convolution_of(3)


@framework.add_arg_scope
def convolution2d_transpose(
  inputs,
  num_outputs,
  kernel_size,
  stride=1,
  padding="SAME",
  data_format="NHWC",
  activation_fn=tf.nn.relu,
  normalizer_fn=None,
  normalizer_params=None,
  weights_initializer=XAVIER,
  weights_regularizer=None,
  biases_initializer=ZEROS,
  biases_regularizer=None,
  reuse=None,
  variables_collections=None,
  outputs_collections=None,
  trainable=True,
  scope=None,
):
  """Convolves [B, H, W, C] transposed; arguments are those of `convolution`.

  The variable `weights` is [*kernel_size, num_outputs, C]; the scope is "Conv2d_transpose" if
  None.

  Raises:
    ValueError: if the data format is neither NHWC nor NCHW.
  """
  getter = collections.variable_getter(_RENAMED)
  with tf.variable_scope(
    scope, "Conv2d_transpose", [inputs], reuse=reuse, custom_getter=getter
  ) as layer_scope:
    check_data_format(data_format)
    inputs = tf.convert_to_tensor(inputs)
    layer = tf.layers.Conv2DTranspose(
      filters=num_outputs,
      kernel_size=kernel_size,
      strides=stride,
      padding=padding,
      data_format=_channels_place(data_format),
      use_bias=not normalizer_fn and biases_initializer,
      kernel_initializer=weights_initializer,
      bias_initializer=biases_initializer,
      kernel_regularizer=weights_regularizer,
      bias_regularizer=biases_regularizer,
      trainable=trainable,
      name=layer_scope.name,
      dtype=inputs.dtype.base_dtype,
      _scope=layer_scope,
      _reuse=reuse,
    )
    outputs = layer(inputs)
    collections.add_layer_to_collections(layer, variables_collections)
    return collections.finish_layer(
      outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, layer_scope
    )


conv2d_transpose = convolution2d_transpose


@framework.add_arg_scope
def avg_pool2d(
  inputs,
  kernel_size,
  stride=2,
  padding="VALID",
  data_format="NHWC",
  outputs_collections=None,
  scope=None,
):
  """Returns the means of windows of [B, H, W, C]; arguments are those of `convolution`.

  Raises:
    ValueError: if the data format is neither NHWC nor NCHW.
  """
  pool = functools.partial(tf.layers.AveragePooling2D, kernel_size, stride, padding)
  return _pool2d(pool, "AvgPool2D", inputs, data_format, outputs_collections, scope)


@framework.add_arg_scope
def max_pool2d(
  inputs,
  kernel_size,
  stride=2,
  padding="VALID",
  data_format="NHWC",
  outputs_collections=None,
  scope=None,
):
  """Returns the largest values of windows of [B, H, W, C]; see `avg_pool2d`."""
  pool = functools.partial(tf.layers.MaxPooling2D, kernel_size, stride, padding)
  return _pool2d(pool, "MaxPool2D", inputs, data_format, outputs_collections, scope)


def _pool2d(pool: Callable, default_name: str, inputs, data_format, outputs_collections, scope):
  check_data_format(data_format)
  with tf.name_scope(scope, default_name, [inputs]) as name:
    layer = pool(data_format=_channels_place(data_format), _scope=name)
    outputs = layer(tf.convert_to_tensor(inputs))
    return collections.collect_named_outputs(outputs_collections, name, outputs)


def _channels_place(data_format: str | None) -> str:
  return "channels_first" if (data_format or "").startswith("NC") else "channels_last"
