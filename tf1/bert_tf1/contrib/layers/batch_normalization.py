"""Batch normalization: by the fused kernel, by `tf.layers` or, for the rest, op by op."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorflow.python.training import moving_averages

from bert_tf1.contrib import framework
from bert_tf1.contrib.layers import collections
from bert_tf1.contrib.layers.normalization import (
  NormVariables,
  check_data_format,
  known_channels,
  known_rank,
  reshaped,
)
from bert_tf1.real import tf


@framework.add_arg_scope
def batch_norm(
  inputs,
  decay=0.999,
  center=True,
  scale=False,
  epsilon=0.001,
  activation_fn=None,
  param_initializers=None,
  param_regularizers=None,
  updates_collections=tf.GraphKeys.UPDATE_OPS,
  is_training=True,
  reuse=None,
  variables_collections=None,
  outputs_collections=None,
  trainable=True,
  batch_weights=None,
  fused=None,
  data_format="NHWC",
  zero_debias_moving_mean=False,
  scope=None,
  renorm=False,
  renorm_clipping=None,
  renorm_decay=0.99,
  adjustment=None,
):
  """Normalizes each channel over the batch; outside training, by moving averages.

  Source: S. Ioffe, C. Szegedy, "Batch Normalization", https://arxiv.org/abs/1502.03167. The other
  arguments are those of `fully_connected`.

  Args:
    inputs: float [B, ..., C], or [B, C, ...] with the data format NCHW.
    decay: of the moving averages.
    center: add the variable `beta`.
    scale: multiply by the variable `gamma`.
    epsilon: added to the variance.
    activation_fn: a function of the result, or None.
    param_initializers: a dict by variable: beta, gamma, moving_mean, moving_variance.
    param_regularizers: a dict by variable: beta, gamma.
    updates_collections: where the updates of the averages go; the training op has to depend on
      them. None updates before the outputs are computed.
    is_training: a bool or scalar bool tensor.
    trainable: add beta and gamma to TRAINABLE_VARIABLES.
    batch_weights: float [B], the examples' weights in mean and variance, or None.
    fused: use the fused kernel where it can do it (rank 2 or 4); None is True. Its moving
      variance is that of a sample, with B - 1 below the line.
    data_format: "NHWC" or "NCHW".
    zero_debias_moving_mean: correct the moving mean for its start at 0.
    scope: of the variables; "BatchNorm" if None.
    renorm: batch renormalization, https://arxiv.org/abs/1702.03275.
    renorm_clipping: a dict of rmax, rmin, dmax.
    renorm_decay: of the averages of renormalization.
    adjustment: a function of the shape that returns a scale and an offset for training, or None.

  Raises:
    ValueError: if the data format, the rank or the number of channels is not known, or `renorm`
      is asked for with something it cannot be had with.
  """
  inputs = tf.convert_to_tensor(inputs)
  check_data_format(data_format)
  fused = fused is None or fused
  updates_of_a_layer = (
    updates_collections == tf.GraphKeys.UPDATE_OPS and not zero_debias_moving_mean
  )
  rank = inputs.shape.ndims
  fits_the_kernel = batch_weights is None and not renorm and adjustment is None and rank in (2, 4)
  initializers, regularizers = param_initializers or {}, param_regularizers or {}
  averages = _Averages(is_training, decay, zero_debias_moving_mean, updates_collections)

  by_kernel = fused and fits_the_kernel and (rank == 2 or not updates_of_a_layer)
  getter = None if by_kernel else collections.variable_getter()
  with tf.variable_scope(
    scope, "BatchNorm", [inputs], reuse=reuse, custom_getter=getter
  ) as layer_scope:
    if by_kernel:
      variables = NormVariables(
        _channels(inputs, data_format),
        tf.float32,  # beside float16 inputs too
        variables_collections,
        trainable,
        initializers,
        regularizers,
      )
      outputs = _by_kernel(inputs, variables, center, scale, epsilon, data_format, averages)
    elif batch_weights is None and updates_of_a_layer:
      layer = tf.layers.BatchNormalization(
        axis=1 if data_format == "NCHW" else -1,
        momentum=decay,
        epsilon=epsilon,
        center=center,
        scale=scale,
        beta_initializer=initializers.get("beta", tf.zeros_initializer()),
        gamma_initializer=initializers.get("gamma", tf.ones_initializer()),
        moving_mean_initializer=initializers.get("moving_mean", tf.zeros_initializer()),
        moving_variance_initializer=initializers.get("moving_variance", tf.ones_initializer()),
        beta_regularizer=regularizers.get("beta"),
        gamma_regularizer=regularizers.get("gamma"),
        trainable=trainable,
        renorm=renorm,
        renorm_clipping=renorm_clipping,
        renorm_momentum=renorm_decay,
        adjustment=adjustment,
        name=layer_scope.name,
        _scope=layer_scope,
        _reuse=reuse,
        fused=fused,
      )
      outputs = layer(inputs, training=is_training)
      for name in ("moving_mean", "moving_variance", "beta", "gamma"):
        if getattr(layer, name) is not None:
          collections.add_variable_to_collections(getattr(layer, name), variables_collections, name)
    else:
      if renorm:
        raise ValueError(
          "renorm is not supported with batch_weights, updates_collections or "
          "zero_debias_moving_mean"
        )
      variables = NormVariables(  # Without regularizers, as in 1.15.
        _channels(inputs, data_format),
        inputs.dtype.base_dtype,
        variables_collections,
        trainable,
        initializers,
      )
      outputs = _op_by_op(
        inputs, variables, center, scale, epsilon, data_format, averages, batch_weights
      )
    return collections.finish_layer(
      outputs, None, None, activation_fn, outputs_collections, layer_scope
    )


@dataclass(frozen=True)
class _Averages:
  """How and when the moving averages are updated."""

  is_training: Any  # a bool or scalar bool tensor
  decay: float
  zero_debias_mean: bool
  updates_collections: Any  # None: before the outputs

  def maybe_training(self) -> bool:
    """False if it is known that this graph does not train."""
    known = collections.constant_value(self.is_training)
    return known is None or bool(known)

  def if_training(self, training: Callable, otherwise: Callable):
    return collections.smart_cond(self.is_training, training, otherwise)

  def update(self, moving: tuple, mean, variance) -> tuple:
    """Returns the updates of the moving mean and variance by the batch's."""
    return (
      moving_averages.assign_moving_average(
        moving[0], mean, self.decay, zero_debias=self.zero_debias_mean
      ),
      moving_averages.assign_moving_average(moving[1], variance, self.decay, zero_debias=False),
    )

  def update_later(self, moving: tuple, mean, variance) -> None:
    """Adds the updates to their collections; outside training they are the variables."""
    updates = self.if_training(lambda: self.update(moving, mean, variance), lambda: moving)
    for update in updates:
      tf.add_to_collections(self.updates_collections, update)

  def update_first(self, moving: tuple, mean, variance, results: Callable):
    """Returns what `results` returns, computed behind the updates."""
    with tf.control_dependencies(self.update(moving, mean, variance)):
      return results()


def _by_kernel(inputs, variables, center, scale, epsilon, data_format, averages):
  """Normalizes [B, C], or four dimensions, by `tf.nn.fused_batch_norm`."""
  given = inputs
  channels = _channels(inputs, data_format)
  if inputs.shape.ndims == 2:
    sizes = [-1, 1, 1, *channels.as_list()]
    inputs = tf.reshape(given, sizes if data_format == "NHWC" else [-1, sizes[-1], 1, 1])
  beta, gamma = variables.beta(center), variables.gamma(scale)
  beta = tf.constant(0.0, tf.float32, channels) if beta is None else beta
  gamma = tf.constant(1.0, tf.float32, channels) if gamma is None else gamma
  moving = variables.moving()
  settings = {"epsilon": epsilon, "data_format": data_format}
  outputs, mean, variance = averages.if_training(
    lambda: tf.nn.fused_batch_norm(inputs, gamma, beta, **settings),
    lambda: tf.nn.fused_batch_norm(
      inputs, gamma, beta, moving[0], moving[1], is_training=False, **settings
    ),
  )
  if averages.maybe_training():
    if averages.updates_collections is None:
      normalized = outputs
      outputs = averages.if_training(
        lambda: averages.update_first(moving, mean, variance, lambda: tf.identity(normalized)),
        lambda: normalized,
      )
    else:
      averages.update_later(moving, mean, variance)
  outputs.set_shape(inputs.shape)
  return tf.reshape(outputs, tf.shape(given)) if given.shape.ndims == 2 else outputs


def _op_by_op(inputs, variables, center, scale, epsilon, data_format, averages, batch_weights):
  """Normalizes by mean and variance, weighted ones with `batch_weights` [B]."""
  rank = known_rank(inputs)
  weights = None
  if batch_weights is not None:
    weights = tf.convert_to_tensor(batch_weights)
    inputs.shape[0:1].assert_is_compatible_with(weights.shape)
    weights = tf.reshape(weights, [-1] + [1] * (rank - 1))
  axes, broadcast = list(range(rank - 1)), None
  if data_format == "NCHW":
    axes = [0, *range(2, rank)]
    broadcast = [1, *_channels(inputs, data_format).as_list(), *[1] * (rank - 2)]
  beta, gamma = variables.beta(center), variables.gamma(scale)
  moving = mean, variance = variables.moving()
  if averages.maybe_training():
    batch = _moments(inputs, axes, weights, flat=data_format == "NCHW")
    if averages.updates_collections is None:
      mean, variance = averages.if_training(
        lambda: averages.update_first(
          moving, *batch, lambda: (tf.identity(batch[0]), tf.identity(batch[1]))
        ),
        lambda: moving,
      )
    else:
      averages.update_later(moving, *batch)
      mean, variance = averages.if_training(lambda: batch, lambda: moving)
  mean, variance, beta, gamma = (reshaped(v, broadcast) for v in (mean, variance, beta, gamma))
  outputs = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
  outputs.set_shape(inputs.shape)
  return outputs


def _moments(inputs, axes: list[int], weights, flat: bool) -> tuple:
  """Returns mean and variance, [C]."""
  if weights is None:
    moments = tf.nn.moments(inputs, axes, keep_dims=flat)
  else:
    moments = tf.nn.weighted_moments(inputs, axes, weights, keep_dims=flat)
  return tuple(tf.reshape(moment, [-1]) for moment in moments) if flat else moments


def _channels(inputs, data_format: str):
  rank = known_rank(inputs)
  return known_channels(inputs, 1 if data_format == "NCHW" else rank - 1)
