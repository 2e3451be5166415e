"""`tf.contrib.training`: the hyperparameters `HParams`, and what evaluation loops use."""

import json
import numbers
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tensorflow.python.training import checkpoint_utils, evaluation

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

StopAfterNEvalsHook = evaluation._StopAfterNEvalsHook
checkpoints_iterator = tf.train.checkpoints_iterator
evaluate_once = evaluation._evaluate_once
get_or_create_eval_step = evaluation._get_or_create_eval_step
wait_for_new_checkpoint = checkpoint_utils.wait_for_new_checkpoint

_ASSIGNMENT = re.compile(
  r"(?P<name>[a-zA-Z][\w.]*)\s*(?:\[\s*(?P<index>\d+)\s*\])?\s*=\s*"
  r"(?:(?P<value>[^,\[]*)|\[(?P<values>[^\]]*)\])\s*(?:$|,\s*)"
)


class HParams:
  """Hyperparameters with names, types and values: `hparams.learning_rate`.

  A name's type is its first value's: later values are held against it. A list holds values of its
  first element's type.

  Example:
    >>> hparams = HParams(rate=0.1, layers=[4, 4], name="a")
    >>> hparams.parse("rate=1e-3,layers=[8,8,8]").values()
    {'rate': 0.001, 'layers': [8, 8, 8], 'name': 'a'}
  """

  def __init__(self, hparam_def=None, model_structure=None, **kwargs):
    """Takes the names and values as keywords.

    Raises:
      ValueError: a name of this class's own, an empty list, or an `hparam_def` (the protocol
        buffer of 1.15, which is not available).
    """
    if hparam_def is not None:
      raise ValueError("HParams from a protocol buffer are not available: pass names and values.")
    self._hparam_types: dict[str, tuple[type, bool]] = {}
    self._model_structure = model_structure
    for name, value in kwargs.items():
      self.add_hparam(name, value)

  if TYPE_CHECKING:

    def __getattr__(self, name: str) -> Any: ...

  def add_hparam(self, name: str, value) -> None:
    """Adds a name with its first value, which sets its type."""
    if getattr(self, name, None) is not None:
      raise ValueError(f"Hyperparameter name is reserved: {name}")
    multiple = isinstance(value, list | tuple)
    if multiple and not value:
      raise ValueError(f"Multi-valued hyperparameters cannot be empty: {name}")
    self._hparam_types[name] = (type(value[0]) if multiple else type(value), multiple)
    setattr(self, name, value)

  def set_hparam(self, name: str, value) -> None:
    """Sets the value of a known name, as its type.

    Raises:
      KeyError: an unknown name.
      ValueError: a value of another type, a list for one value or one value for a list.
    """
    kind, multiple = self._hparam_types[name]
    if isinstance(value, list):
      if not multiple:
        raise ValueError(f"Must not pass a list for single-valued parameter: {name}")
      setattr(self, name, [_as_type(name, kind, element) for element in value])
    elif multiple:
      raise ValueError(f"Must pass a list for multi-valued parameter: {name}.")
    else:
      setattr(self, name, _as_type(name, kind, value))

  def del_hparam(self, name: str) -> None:
    """Removes a name; an unknown one is no error."""
    if hasattr(self, name):
      delattr(self, name)
      del self._hparam_types[name]

  def parse(self, values: str) -> "HParams":
    """Sets the values of a text such as `rate=0.1,layers=[4,8]`; see `parse_values`."""
    kinds = {name: kind for name, (kind, _) in self._hparam_types.items()}
    return self.override_from_dict(parse_values(values, kinds))

  def override_from_dict(self, values_dict: Mapping[str, Any]) -> "HParams":
    """Sets the values of a dict of known names."""
    for name, value in values_dict.items():
      self.set_hparam(name, value)
    return self

  def parse_json(self, values_json: str) -> "HParams":
    """Sets the values of a JSON object of known names."""
    return self.override_from_dict(json.loads(values_json))

  def to_json(self, indent=None, separators=None, sort_keys=False) -> str:
    """Returns the values as a JSON object."""
    return json.dumps(self.values(), indent=indent, separators=separators, sort_keys=sort_keys)

  def values(self) -> dict[str, Any]:
    """Returns the values by name."""
    return {name: getattr(self, name) for name in self._hparam_types}

  def get(self, key: str, default=None):
    """Returns a name's value, or `default` where the name is unknown.

    Raises:
      ValueError: a `default` that is not of the name's type.
    """
    if key not in self._hparam_types:
      return default
    if default is not None:
      self._check_default(key, default)
    return getattr(self, key)

  def _check_default(self, key: str, default) -> None:
    kind, multiple = self._hparam_types[key]
    shown = f"list<{kind}>" if multiple else str(kind)
    fault = f"Hparam '{key}' of type '{shown}' is incompatible with default={default}"
    if isinstance(default, list) != multiple:
      raise ValueError(fault)
    try:
      for value in default if multiple else [default]:
        _as_type(key, kind, value)
    except ValueError as error:
      raise ValueError(f"{fault}. {error}") from error

  def set_model_structure(self, model_structure) -> None:
    """Keeps an object beside the values."""
    self._model_structure = model_structure

  def get_model_structure(self):
    """Returns the object that is kept beside the values."""
    return self._model_structure

  def __contains__(self, key: str) -> bool:
    return key in self._hparam_types

  def __str__(self) -> str:
    return ",".join(f"{name}={value}" for name, value in sorted(self.values().items()))

  def __repr__(self) -> str:
    return f"HParams({sorted(self.values().items())})"


def parse_values(values: str, type_map: Mapping[str, Any], ignore_unknown=False) -> dict[str, Any]:
  """Returns the values of a text such as `rate=0.1,layers=[4,8],sizes[2]=3`.

  Args:
    values: assignments with commas between them. List elements are separated by commas or blanks.
    type_map: the type by name.
    ignore_unknown: leave out names that `type_map` lacks.

  Returns:
    A value, a list or (`name[index]=value`) a dict of index and value, by name.

  Raises:
    ValueError: a text that does not read so, an unknown name, a value of another type or a name
      that is set twice.
  """
  results: dict[str, Any] = {}
  at = 0
  while at < len(values):
    match = _ASSIGNMENT.match(values, at)
    if not match:
      raise ValueError(f"Malformed hyperparameter value: {values[at:]}")
    at = match.end()
    name, index = match["name"], match["index"]
    if name not in type_map:
      if ignore_unknown:
        continue
      raise ValueError(f"Unknown hyperparameter type for {name}")
    _check_first(results, name, index, values)
    if match["value"] is None:
      elements = [element for element in re.split("[ ,]", match["values"]) if element]
      results[name] = [_read(name, type_map[name], text, values) for text in elements]
    elif index is None:
      results[name] = _read(name, type_map[name], match["value"], values)
    else:
      value = _read(name, type_map[name], match["value"], values)
      results.setdefault(name, {})[int(index)] = value
  return results


_THE_GLOBAL_STEP: Any = 0  # What `create_train_op` takes for "the graph's own".


def create_train_op(
  total_loss,
  optimizer,
  global_step=_THE_GLOBAL_STEP,
  update_ops=None,
  variables_to_train=None,
  transform_grads_fn=None,
  summarize_gradients=False,
  gate_gradients=tf.train.Optimizer.GATE_OP,
  aggregation_method=None,
  colocate_gradients_with_ops=False,
  check_numerics=True,
):
  """Returns a tensor that trains one step and is the loss before it.

  Args:
    total_loss: the loss.
    optimizer: a `tf.train.Optimizer`.
    global_step: the variable to count; None counts nothing. The graph's own by default.
    update_ops: what runs before the loss; None for the collection UPDATE_OPS.
    variables_to_train: None for the trainable ones.
    transform_grads_fn: makes other pairs of the pairs of gradient and variable.
    summarize_gradients: write each gradient's histogram and norm.
    gate_gradients: see `tf.train.Optimizer.compute_gradients`.
    aggregation_method: see `tf.train.Optimizer.compute_gradients`.
    colocate_gradients_with_ops: see `tf.train.Optimizer.compute_gradients`.
    check_numerics: end training where the loss is not finite.

  Raises:
    ValueError: there is nothing to train.
  """
  if global_step is _THE_GLOBAL_STEP:
    global_step = tf.train.get_or_create_global_step()
  if update_ops is None:
    update_ops = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
  with tf.control_dependencies(list(update_ops)):
    total_loss = tf.identity(total_loss)
  variables = tf.trainable_variables() if variables_to_train is None else variables_to_train
  if not variables:
    raise ValueError("variables_to_train is empty: there is nothing to train.")
  grads = optimizer.compute_gradients(
    total_loss,
    variables,
    gate_gradients=gate_gradients,
    aggregation_method=aggregation_method,
    colocate_gradients_with_ops=colocate_gradients_with_ops,
  )
  if transform_grads_fn:
    grads = transform_grads_fn(grads)
  if summarize_gradients:
    with tf.name_scope("summarize_grads"):
      add_gradients_summaries(grads)
  if check_numerics:
    total_loss = tf.check_numerics(total_loss, "LossTensor is inf or nan")
  with tf.control_dependencies([total_loss]):
    step = optimizer.apply_gradients(grads, global_step=global_step)
  with tf.control_dependencies([step]):
    train_op = tf.identity(total_loss, name="train_op")
  tf.add_to_collection(tf.GraphKeys.TRAIN_OP, train_op)
  return train_op


def add_gradients_summaries(grads_and_vars) -> list:
  """Returns the summaries of the histogram and the norm of each gradient."""
  summaries = []
  for grad, var in grads_and_vars:
    if grad is not None:
      values = grad.values if isinstance(grad, tf.IndexedSlices) else grad
      norm = tf.global_norm([values])
      summaries.append(tf.summary.histogram(f"{var.op.name}_gradient", values))
      summaries.append(tf.summary.scalar(f"{var.op.name}_gradient_norm", norm))
  return summaries


def clip_gradient_norms(gradients_to_variables, max_norm):
  """Returns the pairs of gradient and variable, each gradient clipped to the norm `max_norm`."""
  clipped = []
  for gradient, variable in gradients_to_variables:
    if isinstance(gradient, tf.IndexedSlices):
      values = tf.clip_by_norm(gradient.values, max_norm)
      gradient = tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    elif gradient is not None:
      gradient = tf.clip_by_norm(gradient, max_norm)
    clipped.append((gradient, variable))
  return clipped


def _check_first(results: Mapping[str, Any], name: str, index: str | None, values: str) -> None:
  """Raises ValueError where the text sets a name, or an index of it, for the second time."""
  earlier = results.get(name)
  if isinstance(earlier, dict) and index is not None:
    if int(index) in earlier:
      raise ValueError(f"Multiple assignments to variable '{name}[{int(index)}]' in {values}")
  elif name in results:
    raise ValueError(f"Multiple assignments to variable '{name}' in {values}")


def _read(name: str, kind, text: str, values: str):
  """Returns a value's text as its type."""
  try:
    if kind is not bool:
      return kind(text)
    if text in ("true", "True", "false", "False"):
      return text in ("true", "True")
    return bool(int(text))
  except ValueError as error:
    raise ValueError(
      f"Could not parse hparam '{name}' of type '{kind.__name__}' with value '{text}' in {values}"
    ) from error


def _as_type(name: str, kind: type, value):
  """Returns the value as its name's type; no number is cut and no text read to make it fit."""
  if kind is type(None):
    return value
  fits = (
    value is not None
    and (not issubclass(kind, str) or isinstance(value, str | bytes))
    and issubclass(kind, bool) == isinstance(value, bool)
    and (not issubclass(kind, numbers.Integral) or isinstance(value, numbers.Integral))
    and (not issubclass(kind, numbers.Number) or isinstance(value, numbers.Number))
  )
  if not fits:
    raise ValueError(f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}")
  return kind(value)


__getattr__ = unknown_name(__name__)
