"""`tf.contrib.framework`: argument scopes, variables by name, values from checkpoints.

`with arg_scope([f], rate=0.1): f(x)` calls `f(x, rate=0.1)` wherever `f` is decorated with
`add_arg_scope`; what the call says itself wins.
"""

import contextlib
import functools
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.python.framework import smart_cond as _conditions
from tensorflow.python.ops import check_ops, confusion_matrix
from tensorflow.python.util import deprecation

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf
from bert_tf1.signatures import nest  # noqa: F401 (a name of this module)

TensorSpec = tf.TensorSpec
argsort = tf.argsort
assert_global_step = tf.train.assert_global_step
assert_same_float_dtype = check_ops.assert_same_float_dtype
assert_scalar = check_ops.assert_scalar
convert_to_tensor_or_sparse_tensor = tf.convert_to_tensor_or_sparse_tensor
create_global_step = tf.train.create_global_step
deprecated = deprecation.deprecated
deprecated_arg_values = deprecation.deprecated_arg_values
deprecated_args = deprecation.deprecated_args
get_global_step = tf.train.get_global_step
get_or_create_global_step = tf.train.get_or_create_global_step
init_from_checkpoint = tf.train.init_from_checkpoint
is_tensor = tf.is_tensor
list_variables = tf.train.list_variables
load_checkpoint = tf.train.load_checkpoint
load_variable = tf.train.load_variable
smart_cond = _conditions.smart_cond
smart_constant_value = _conditions.smart_constant_value
sort = tf.sort

_Scope = dict[str, dict[str, Any]]
_scopes: list[_Scope] = [{}]  # The last one holds.


@contextlib.contextmanager
def arg_scope(list_ops_or_scope, **kwargs) -> Iterator[_Scope]:
  """Gives decorated functions arguments, within the scope.

  Args:
    list_ops_or_scope: the functions, or a scope that an earlier `arg_scope` gave.
    **kwargs: the arguments, for all of the functions.

  Yields:
    The scope: the arguments of all functions, by function.

  Raises:
    TypeError: neither a list or tuple of functions nor a scope.
    ValueError: a function that is not decorated, or arguments beside an earlier scope.
  """
  if isinstance(list_ops_or_scope, dict):
    if kwargs:
      raise ValueError("An arg_scope that is used again takes no arguments.")
    scope = dict(list_ops_or_scope)
  elif isinstance(list_ops_or_scope, list | tuple):
    scope = dict(_scopes[-1])
    for function in list_ops_or_scope:
      if not has_arg_scope(function):
        raise ValueError(f"{function.__qualname__} is not decorated with @add_arg_scope")
      scope[function._key_op] = {**scope.get(function._key_op, {}), **kwargs}
  else:
    raise TypeError("list_ops_or_scope must either be a list/tuple or reused scope (i.e. dict)")
  _scopes.append(scope)
  try:
    yield scope
  finally:
    _scopes.pop()


def add_arg_scope(func: Callable) -> Callable:
  """Decorates a function so that `arg_scope` can give it arguments."""
  key = f"{func.__module__}.{func.__qualname__} at {id(func)}"

  @functools.wraps(func)
  def in_scope(*args, **kwargs):
    return func(*args, **{**_scopes[-1].get(key, {}), **kwargs})

  decorated: Any = in_scope
  decorated._key_op = key
  return decorated


def has_arg_scope(func: Callable) -> bool:
  """Returns whether the function is decorated with `add_arg_scope`."""
  return hasattr(func, "_key_op")


def current_arg_scope() -> _Scope:
  """Returns the scope that holds here."""
  return _scopes[-1]


def arg_scoped_arguments(func: Callable) -> tuple[str, ...]:
  """Returns the names of the arguments that a scope can give: those with defaults."""
  parameters = inspect.signature(func).parameters.values()
  return tuple(p.name for p in parameters if p.default is not inspect.Parameter.empty)


@add_arg_scope
def variable(
  name,
  shape=None,
  dtype=tf.float32,
  initializer=None,
  regularizer=None,
  trainable=True,
  collections=None,
  caching_device=None,
  device=None,
  partitioner=None,
  custom_getter=None,
  use_resource=None,
  synchronization=tf.VariableSynchronization.AUTO,
  aggregation=tf.VariableAggregation.NONE,
):
  """Returns `tf.get_variable(name, ...)`, made on `device`.

  A `custom_getter` is called in its stead, and not, as in `tf.get_variable`, around it.
  """
  getter = tf.get_variable
  if custom_getter is not None:
    getter = functools.partial(custom_getter, reuse=tf.get_variable_scope().reuse)
  with tf.device(device or ""):
    return getter(
      name,
      shape=shape,
      dtype=dtype,
      initializer=initializer,
      regularizer=regularizer,
      trainable=trainable,
      collections=list(dict.fromkeys(collections or [tf.GraphKeys.GLOBAL_VARIABLES])),
      caching_device=caching_device,
      partitioner=partitioner,
      use_resource=use_resource,
      synchronization=synchronization,
      aggregation=aggregation,
    )


@add_arg_scope
def model_variable(
  name,
  shape=None,
  dtype=tf.float32,
  initializer=None,
  regularizer=None,
  trainable=True,
  collections=None,
  caching_device=None,
  device=None,
  partitioner=None,
  custom_getter=None,
  use_resource=None,
  synchronization=tf.VariableSynchronization.AUTO,
  aggregation=tf.VariableAggregation.NONE,
):
  """Returns `variable(name, ...)`, in the collection of model variables too."""
  model = [tf.GraphKeys.GLOBAL_VARIABLES, tf.GraphKeys.MODEL_VARIABLES]
  return variable(
    name,
    shape=shape,
    dtype=dtype,
    initializer=initializer,
    regularizer=regularizer,
    trainable=trainable,
    collections=[*(collections or []), *model],
    caching_device=caching_device,
    device=device,
    partitioner=partitioner,
    custom_getter=custom_getter,
    use_resource=use_resource,
    synchronization=synchronization,
    aggregation=aggregation,
  )


def local_variable(initial_value, validate_shape=True, name=None, use_resource=None):
  """Returns a variable that no checkpoint holds."""
  return _plain_variable(
    tf.GraphKeys.LOCAL_VARIABLES, initial_value, validate_shape, name, use_resource
  )


def global_variable(initial_value, validate_shape=True, name=None, use_resource=None):
  """Returns a variable that checkpoints hold and training leaves as it is."""
  return _plain_variable(
    tf.GraphKeys.GLOBAL_VARIABLES, initial_value, validate_shape, name, use_resource
  )


def _plain_variable(collection, initial_value, validate_shape, name, use_resource):
  return tf.Variable(
    initial_value,
    trainable=False,
    collections=[collection],
    validate_shape=validate_shape,
    use_resource=use_resource,
    name=name,
  )


def add_model_variable(var) -> None:
  """Adds a variable to the collection of model variables."""
  if var not in tf.get_collection(tf.GraphKeys.MODEL_VARIABLES):
    tf.add_to_collection(tf.GraphKeys.MODEL_VARIABLES, var)


def get_variables(scope=None, suffix=None, collection=tf.GraphKeys.GLOBAL_VARIABLES) -> list:
  """Returns a collection's variables whose names begin with `scope` and have `suffix` after it."""
  name = getattr(scope, "name", scope)
  if suffix is not None:
    name = f"{name or ''}.*{suffix}"
  return tf.get_collection(collection, name)


def get_model_variables(scope=None, suffix=None) -> list:
  """Returns the model variables; see `get_variables`."""
  return get_variables(scope, suffix, tf.GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope=None, suffix=None) -> list:
  """Returns the local variables; see `get_variables`."""
  return get_variables(scope, suffix, tf.GraphKeys.LOCAL_VARIABLES)


def get_trainable_variables(scope=None, suffix=None) -> list:
  """Returns the trainable variables; see `get_variables`."""
  return get_variables(scope, suffix, tf.GraphKeys.TRAINABLE_VARIABLES)


def get_variables_by_suffix(suffix, scope=None) -> list:
  """Returns the variables with that suffix."""
  return get_variables(scope, suffix)


def get_variables_by_name(given_name, scope=None) -> list:
  """Returns the variables of that name, at the top or in any scope."""
  return get_variables(scope, f"/{given_name}:|^{given_name}:")


def get_unique_variable(var_op_name):
  """Returns the one variable of that name; a ValueError if there is none, or more than one."""
  candidates = get_variables(scope=var_op_name)
  exact = [candidate for candidate in candidates if candidate.op.name == var_op_name]
  if not exact:
    raise ValueError(f"Couldn't find variable {var_op_name}")
  return exact[0]


def get_variables_to_restore(include=None, exclude=None) -> list:
  """Returns the variables of the scopes `include` (None for all) without those of `exclude`."""
  included = [v for scope in include or [None] for v in get_variables(scope)]
  excluded = {v.name for scope in exclude or [] for v in get_variables(scope)}
  return [v for v in included if v.name not in excluded]


def get_variable_full_name(var) -> str:
  """Returns a variable's name in a checkpoint; of a part of a variable, the whole one's."""
  return var._save_slice_info.full_name if var._save_slice_info else var.op.name


def filter_variables(var_list, include_patterns=None, exclude_patterns=None, reg_search=True):
  """Returns the variables whose names match one of the patterns (None for all) to include and none
  of those to exclude. Patterns are regular expressions, looked for anywhere in a name, or with
  `reg_search=False` at its begin alone.
  """
  found = re.search if reg_search else re.match

  def matches(patterns, var) -> bool:
    return any(found(pattern, var.name) for pattern in patterns)

  included = [v for v in var_list if include_patterns is None or matches(include_patterns, v)]
  return [v for v in included if not matches(exclude_patterns or (), v)]


def assign_from_values(var_names_to_values: Mapping[str, Any]):
  """Returns an op that sets variables to values, and the dict to feed with it."""
  feeds, assigns = {}, []
  for name, value in var_names_to_values.items():
    var = get_unique_variable(name)
    value = np.asarray(value)
    placeholder = tf.placeholder(var.dtype.base_dtype, value.shape, name=f"{var.op.name}/value")
    assigns.append(var.assign(placeholder))
    feeds[placeholder] = value.reshape(placeholder.get_shape().as_list())
  return tf.group(*assigns), feeds


def assign_from_values_fn(var_names_to_values: Mapping[str, Any]) -> Callable:
  """Returns a function of a session that sets variables to values."""
  op, feeds = assign_from_values(var_names_to_values)
  return lambda session: session.run(op, feeds)


def assign_from_checkpoint(model_path, var_list, ignore_missing_vars=False):
  """Returns an op that sets variables to a checkpoint's values, and the dict to feed with it.

  Args:
    model_path: the checkpoint.
    var_list: variables, or a dict of variables (or of the list of one's parts) by their names in
      the checkpoint.
    ignore_missing_vars: leave variables as they are that the checkpoint lacks.

  Raises:
    ValueError: a variable that the checkpoint lacks, or of another number of values.
  """
  reader = tf.train.load_checkpoint(model_path)
  feeds, assigns = {}, []
  for name, variables in _grouped(var_list).items():
    if not reader.has_tensor(name):
      fault = f"Checkpoint is missing variable [{name}]"
      if not ignore_missing_vars:
        raise ValueError(fault)
      tf.logging.warning(fault)
      continue
    whole = reader.get_tensor(name)
    for var in variables:
      value = _part_of(whole, name, var)
      placeholder = tf.placeholder(var.dtype.base_dtype, var.get_shape(), name=f"{name}/value")
      assigns.append(var.assign(placeholder))
      feeds[placeholder] = value
  return tf.group(*assigns), feeds


def assign_from_checkpoint_fn(
  model_path, var_list, ignore_missing_vars=False, reshape_variables=False
) -> Callable | None:
  """Returns a function of a session that sets variables to a checkpoint's values.

  The other arguments are those of `assign_from_checkpoint`.

  Args:
    ignore_missing_vars: leave variables as they are that the checkpoint lacks; None is returned
      where it lacks them all.
    reshape_variables: take values of another shape with the same number of values.
  """
  if not var_list:
    raise ValueError("var_list cannot be empty")
  if ignore_missing_vars:
    there = tf.train.load_checkpoint(model_path)
    by_name = var_list if isinstance(var_list, Mapping) else {v.op.name: v for v in var_list}
    var_list = {name: var for name, var in by_name.items() if there.has_tensor(name)}
    for name in sorted(set(by_name) - set(var_list)):
      tf.logging.warning("Variable %s missing in checkpoint %s", name, model_path)
  if not var_list:
    tf.logging.warning("No Variables to restore")
    return None
  saver = tf.train.Saver(var_list, reshape=reshape_variables, write_version=tf.train.SaverDef.V1)
  return lambda session: saver.restore(session, model_path)


def _grouped(var_list) -> Mapping[str, Sequence]:
  """Returns the lists of variables (a variable, or its parts) by their names in a checkpoint."""
  if isinstance(var_list, Mapping):
    return {n: v if isinstance(v, list | tuple) else [v] for n, v in var_list.items()}
  grouped: dict[str, list] = {}
  for var in var_list:
    grouped.setdefault(get_variable_full_name(var), []).append(var)
  return grouped


def _part_of(whole: np.ndarray, name: str, var) -> np.ndarray:
  """Returns a checkpoint's value for a variable, which may be a part of what was saved."""
  info = var._save_slice_info
  if info:
    begins = zip(info.var_offset, info.var_shape, strict=True)
    whole = whole[tuple(slice(begin, begin + size) for begin, size in begins)]
  shape = var.get_shape().as_list()
  if whole.size != np.prod(shape, dtype=int):
    raise ValueError(
      f"Total size of new array must be unchanged for {name} "
      f"lh_shape: [{whole.shape}], rh_shape: [{tuple(shape)}]"
    )
  return whole.reshape(shape)


def remove_squeezable_dimensions(predictions, labels, name=None):
  """Returns both, the last dimension of 1 removed from the one that has a dimension more."""
  labels, predictions = confusion_matrix.remove_squeezable_dimensions(
    labels, predictions, name=name
  )
  return predictions, labels


__getattr__ = unknown_name(__name__)
