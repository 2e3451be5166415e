"""Fully connected layers, dropout and what only reshapes."""

import functools

from bert_tf1.contrib import framework
from bert_tf1.contrib.layers import collections
from bert_tf1.contrib.layers.initializers import XAVIER, ZEROS
from bert_tf1.real import tf


@framework.add_arg_scope
def fully_connected(
  inputs,
  num_outputs,
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
  """Returns `activation_fn(inputs @ weights + biases)`, [..., num_outputs].

  The activation is ReLU unless another, or None, is given. With a `normalizer_fn` there are no
  biases; it is called with `normalizer_params` before the activation.

  Args:
    inputs: float [..., D], D known.
    num_outputs: the number of units.
    activation_fn: a function of the sums, or None.
    normalizer_fn: a function such as `batch_norm`, or None.
    normalizer_params: a dict of its arguments.
    weights_initializer: of the variable `weights`, [D, num_outputs].
    weights_regularizer: a function such as `l2_regularizer(0.1)`.
    biases_initializer: of the variable `biases`, [num_outputs]; None leaves them out.
    biases_regularizer: a function, or None.
    reuse: use the variables there are in `scope`.
    variables_collections: a list of collections, or a dict of such lists by variable.
    outputs_collections: the collections that get the output.
    trainable: add the variables to TRAINABLE_VARIABLES.
    scope: of the variables; "fully_connected" if None.

  Raises:
    ValueError: if `num_outputs` is not an integer or `inputs` is of a rank below 2.
  """
  if not isinstance(num_outputs, int):
    raise ValueError(f"num_outputs type should be one of {[int]}, got {type(num_outputs)}.")
  getter = collections.variable_getter({"kernel": "weights", "bias": "biases"})
  with tf.variable_scope(
    scope, "fully_connected", [inputs], reuse=reuse, custom_getter=getter
  ) as layer_scope:
    inputs = tf.convert_to_tensor(inputs)
    layer = tf.layers.Dense(
      units=num_outputs,
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


relu = functools.partial(fully_connected, activation_fn=tf.nn.relu)
relu6 = functools.partial(fully_connected, activation_fn=tf.nn.relu6)
elu = functools.partial(fully_connected, activation_fn=tf.nn.elu)
linear = functools.partial(fully_connected, activation_fn=None)


@framework.add_arg_scope
def bias_add(
  inputs,
  activation_fn=None,
  initializer=ZEROS,
  regularizer=None,
  reuse=None,
  variables_collections=None,
  outputs_collections=None,
  trainable=True,
  data_format="NHWC",
  scope=None,
):
  """Returns `activation_fn(inputs + biases)`; `biases` is a variable of the channels.

  The other arguments are as in `fully_connected`.

  Args:
    inputs: float [..., C], or [B, C, H, W] with the data format NCHW.
    initializer: of `biases`.
    data_format: "NHWC" or "NCHW".
    scope: of the variables; "BiasAdd" if None.

  Raises:
    ValueError: if the data format, or the number of channels, is not known.
  """
  if data_format not in ("NCHW", "NHWC"):
    raise ValueError("data_format has to be either NCHW or NHWC.")
  with tf.variable_scope(scope, "BiasAdd", [inputs], reuse=reuse) as layer_scope:
    inputs = tf.convert_to_tensor(inputs)
    if inputs.shape.ndims is None:
      raise ValueError("Dims of shape must be known but is None")
    if inputs.shape.ndims != 4 and data_format == "NCHW":
      raise ValueError("Data format NCHW only supports 4D Tensor")
    channels = inputs.shape.dims[1 if data_format == "NCHW" else -1].value
    if channels is None:
      raise ValueError("`C` dimension must be known but is None")
    biases = framework.model_variable(
      "biases",
      shape=[channels],
      dtype=inputs.dtype.base_dtype,
      initializer=initializer,
      regularizer=regularizer,
      collections=collections.get_variable_collections(variables_collections, "biases"),
      trainable=trainable,
    )
    outputs = tf.nn.bias_add(inputs, biases, data_format=data_format)
    return collections.finish_layer(
      outputs, None, None, activation_fn, outputs_collections, layer_scope
    )


@framework.add_arg_scope
def dropout(
  inputs,
  keep_prob=0.5,
  noise_shape=None,
  is_training=True,
  outputs_collections=None,
  scope=None,
  seed=None,
):
  """Returns `inputs` with each element kept with `keep_prob`, and then divided by it.

  Args:
    inputs: a float tensor.
    keep_prob: the probability of keeping an element, a float or scalar tensor.
    noise_shape: the shape of the random draws; that of `inputs` if None.
    is_training: a bool or scalar bool tensor; False returns `inputs`.
    outputs_collections: the collections that get the output.
    scope: "Dropout" if None.
    seed: the op's seed.
  """
  with tf.variable_scope(
    scope, "Dropout", [inputs], custom_getter=collections.variable_getter()
  ) as layer_scope:
    layer = tf.layers.Dropout(
      rate=1 - keep_prob,
      noise_shape=noise_shape,
      seed=seed,
      name=layer_scope.name,
      _scope=layer_scope,
    )
    outputs = layer(tf.convert_to_tensor(inputs), training=is_training)
    return collections.collect_named_outputs(outputs_collections, layer_scope.name, outputs)


@framework.add_arg_scope
def flatten(inputs, outputs_collections=None, scope=None):
  """Returns [B, ...] as [B, K]."""
  with tf.name_scope(scope, "Flatten", [inputs]) as name:
    outputs = tf.layers.flatten(tf.convert_to_tensor(inputs))
    return collections.collect_named_outputs(outputs_collections, name, outputs)


@framework.add_arg_scope
def one_hot_encoding(
  labels, num_classes, on_value=1.0, off_value=0.0, outputs_collections=None, scope=None
):
  """Returns integer labels [B] as float [B, num_classes]."""
  with tf.name_scope(scope, "OneHotEncoding", [labels, num_classes]) as name:
    labels = tf.convert_to_tensor(labels)
    if labels.dtype == tf.int32:
      labels = tf.to_int64(labels)
    outputs = tf.one_hot(labels, num_classes, on_value=on_value, off_value=off_value)
    return collections.collect_named_outputs(outputs_collections, name, outputs)


@framework.add_arg_scope
def softmax(logits, scope=None):
  """Returns the softmax over the last dimension of float [..., N], N known."""
  with tf.variable_scope(scope, "softmax", [logits]):
    num_logits = collections.last_dimension(logits.shape, min_rank=2)
    predictions = tf.nn.softmax(tf.reshape(logits, [-1, num_logits]))
    predictions = tf.reshape(predictions, tf.shape(logits))
    predictions.set_shape(logits.shape)
    return predictions


@framework.add_arg_scope
def maxout(inputs, num_units, axis=-1, scope=None):
  """Returns the largest of each group of channels, `num_units` groups.

  Source: I. Goodfellow et al., "Maxout Networks", https://arxiv.org/abs/1302.4389.

  Raises:
    ValueError: if the number of channels is not a multiple of `num_units`.
  """
  with tf.variable_scope(scope, "MaxOut", [inputs]):
    inputs = tf.convert_to_tensor(inputs)
    shape = inputs.shape.as_list()
    channels = shape[axis]
    if channels % num_units:
      raise ValueError(
        f"number of features({channels}) is not a multiple of num_units({num_units})"
      )
    shape[axis] = num_units
    shape = [tf.shape(inputs)[i] if size is None else size for i, size in enumerate(shape)]
    return tf.reduce_max(tf.reshape(inputs, [*shape, channels // num_units]), -1)


def stack(inputs, layer, stack_args, **kwargs):
  """Calls `layer` once for each of `stack_args`, on the output of the call before.

  The scopes are `NAME_1`, `NAME_2` ... in the scope `Stack` or, with `scope`, in that.

  Args:
    inputs: the first call's inputs.
    layer: a function of (inputs, *one of stack_args, **kwargs, scope).
    stack_args: a list of lists of arguments, or of single arguments.
    **kwargs: for every call; `scope` names them all.

  Raises:
    ValueError: if `stack_args` is not a list.
  """
  if not isinstance(stack_args, list | tuple):
    raise ValueError("stack_args need to be a list or tuple")
  calls = [args if isinstance(args, list | tuple) else [args] for args in stack_args]
  return _call_in_turn(inputs, layer, calls, kwargs, "Stack", "stack")


def repeat(inputs, repetitions, layer, *args, **kwargs):
  """Calls `layer` `repetitions` times with the same arguments; see `stack`."""
  return _call_in_turn(inputs, layer, [args] * repetitions, kwargs, "Repeat", "repeat")


def _call_in_turn(inputs, layer, calls, kwargs, default_scope: str, default_name: str):
  scope = kwargs.pop("scope", None)
  with tf.variable_scope(scope, default_scope, [inputs]):
    name = scope or getattr(getattr(layer, "func", layer), "__name__", default_name)
    outputs = tf.convert_to_tensor(inputs)
    for i, args in enumerate(calls, start=1):
      outputs = layer(outputs, *args, scope=f"{name}_{i}", **kwargs)
    return outputs
