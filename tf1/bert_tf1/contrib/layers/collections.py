"""What the layers share: graph collections, aliases of outputs, variables under a layer's names.

1.15 has these in `tf.contrib.layers.python.layers.utils`, which scripts import.
"""

from collections import OrderedDict
from collections.abc import Callable

from tensorflow.python.framework import tensor_util

from bert_tf1.contrib import framework
from bert_tf1.real import tf


def get_variable_collections(variables_collections, name: str):
  """Returns the collections of one of a layer's variables; a dict names them by variable."""
  if isinstance(variables_collections, dict):
    return variables_collections.get(name)
  return variables_collections


def collect_named_outputs(collections, alias: str, outputs):
  """Adds `outputs`, under `alias` too, to the collections, if there are any; returns `outputs`."""
  if collections:
    append_tensor_alias(outputs, alias)
    tf.add_to_collections(collections, outputs)
  return outputs


def append_tensor_alias(tensor, alias: str):
  """Appends `alias`, less a slash at its end, to `tensor.aliases`; returns `tensor`."""
  tensor.aliases = [*getattr(tensor, "aliases", []), alias.removesuffix("/")]
  return tensor


def get_tensor_aliases(tensor) -> list[str]:
  """Returns the tensor's aliases, or else its name (without `:0`)."""
  return getattr(tensor, "aliases", None) or [tensor.name.removesuffix(":0")]


def gather_tensors_aliases(tensors) -> list[str]:
  """Returns the aliases of all the tensors."""
  return [alias for tensor in tensors for alias in get_tensor_aliases(tensor)]


def convert_collection_to_dict(collection, clear_collection=False) -> OrderedDict:
  """Returns the tensors of a collection by their aliases."""
  tensors = tf.get_collection(collection)
  if clear_collection:
    tf.get_default_graph().clear_collection(collection)
  return OrderedDict((alias, tensor) for tensor in tensors for alias in get_tensor_aliases(tensor))


def constant_value(value_or_tensor_or_var, dtype=None):
  """Returns the value, if known before the graph runs, else None; ValueError for other dtypes."""
  value = value_or_tensor_or_var
  if value is None:
    raise ValueError("value_or_tensor_or_var cannot be None")
  if not isinstance(value, tf.Tensor | tf.Variable):
    return value
  if dtype and value.dtype != dtype:
    raise ValueError(f"It has the wrong type {value.dtype} instead of {dtype}")
  return None if isinstance(value, tf.Variable) else tensor_util.constant_value(value)


def smart_cond(pred, fn1: Callable, fn2: Callable, name=None):
  """Calls one of the functions if `pred` is known before the graph runs, else builds a cond."""
  known = constant_value(pred)
  if known is None:
    return tf.cond(pred, fn1, fn2, name=name)
  return fn1() if known else fn2()


def last_dimension(shape, min_rank=1) -> int:
  """Returns the last dimension of a `tf.TensorShape` of `min_rank` or more, or a ValueError."""
  dims = shape.dims
  if dims is None:
    raise ValueError("dims of shape must be known but is None")
  if len(dims) < min_rank:
    raise ValueError(f"rank of shape must be at least {min_rank} not: {len(dims)}")
  if dims[-1].value is None:
    raise ValueError(f"dimension -1 of shape must be known but is None: {shape}")
  return dims[-1].value


def n_positive_integers(n: int, value) -> tuple[int, ...]:
  """Returns `n` integers of at least 1 (else a ValueError) of `value`; one integer is repeated."""
  values = tf.TensorShape(value).as_list() if isinstance(value, tf.TensorShape) else value
  values = tuple(values) if isinstance(values, list | tuple) else (values,) * n
  if len(values) != n or any(int(size) < 1 for size in values):
    raise ValueError(f"Expected {n} positive integers, got {value}.")
  return tuple(int(size) for size in values)


def variable_getter(rename: dict[str, str] | None = None) -> Callable:
  """Returns a `custom_getter` for a scope in which `tf.layers` make model variables.

  Names are those of contrib by those of `tf.layers`, such as kernel: weights.
  """

  def getter_of_model_variables(getter, name, **settings):
    scope, slash, short_name = name.rpartition("/")
    known = {key: value for key, value in settings.items() if key in _SETTINGS}
    name = scope + slash + (rename or {}).get(short_name, short_name)
    return framework.model_variable(name, custom_getter=getter, **known)

  return getter_of_model_variables


# What `model_variable` takes of the settings that a getter is called with.
_SETTINGS = {
  "shape",
  "dtype",
  "initializer",
  "regularizer",
  "trainable",
  "collections",
  "caching_device",
  "partitioner",
  "use_resource",
  "synchronization",
  "aggregation",
}


def add_variable_to_collections(variable, variables_collections, name: str) -> None:
  """Adds a layer's variable to those collections of its own in which it is not yet."""
  for collection in get_variable_collections(variables_collections, name) or []:
    if not any(variable is known for known in tf.get_collection(collection)):
      tf.add_to_collection(collection, variable)


def add_layer_to_collections(layer, variables_collections) -> None:
  """Adds the kernel and bias of one of `tf.layers` to the collections of weights and biases."""
  add_variable_to_collections(layer.kernel, variables_collections, "weights")
  if layer.use_bias:
    add_variable_to_collections(layer.bias, variables_collections, "biases")


def finish_layer(
  outputs, normalizer_fn, normalizer_params, activation_fn, outputs_collections, scope
):
  """Normalizes and activates a layer's outputs, and adds them to their collections."""
  if normalizer_fn is not None:
    outputs = normalizer_fn(outputs, **(normalizer_params or {}))
  if activation_fn is not None:
    outputs = activation_fn(outputs)
  return collect_named_outputs(outputs_collections, scope.name, outputs)
