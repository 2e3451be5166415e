"""Calling an input_fn or a model_fn, and the tensors that come of an input_fn."""

import inspect
from collections.abc import Callable
from typing import Any

from bert_tf1.real import tf


def accepted_arguments(function: Callable) -> set[str]:
  """Returns the names of the arguments of a function, method, partial or callable object."""
  return {
    name
    for name, parameter in inspect.signature(function).parameters.items()
    if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
  }


def call_input_fn(input_fn: Callable, **offered: Any) -> Any:
  """Calls `input_fn` with those of the offered arguments that it names, on the CPU."""
  names = accepted_arguments(input_fn)
  with tf.device("/cpu:0"):
    return input_fn(**{name: value for name, value in offered.items() if name in names})


class _InitializeIterator(tf.train.SessionRunHook):
  """Starts a Dataset's iterator when a session is made, and again when it is made anew."""

  def __init__(self, iterator):
    self._iterator = iterator

  def begin(self):
    self._initializer = self._iterator.initializer

  def after_create_session(self, session, coord):
    del coord
    session.run(self._initializer)


def features_and_labels(result: Any) -> tuple[Any, Any, list]:
  """Reads an input_fn's result, a Dataset or tensors: features, labels (or None), and its hooks."""
  hooks = []
  if isinstance(result, (tf.data.Dataset, tf.compat.v2.data.Dataset)):
    iterator = tf.data.make_initializable_iterator(result)
    hooks.append(_InitializeIterator(iterator))
    result = iterator.get_next()
  if isinstance(result, (list, tuple)):
    if len(result) != 2:
      raise ValueError(f"input_fn should return (features, labels) as a len 2 tuple, gave {result}")
    return result[0], result[1], hooks
  return result, None, hooks
