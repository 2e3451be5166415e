"""Checks ids before a model reads them.

With an id beyond the vocabulary JAX computes NaN, PyTorch and TensorFlow fail deep inside a step,
and a GPU may compute anything. Arrays in the computer's memory are checked here instead: those of
NumPy, lists, and JAX's own outside a compiled function. Other tensors are not: looking at them
would wait for the device.
"""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from bert.keras3.data import TextLoader


class CheckedInputs:
  """Base of the models, before Keras's own: `fit`, `predict`, calls and the others check ids."""

  def check_inputs(self, inputs) -> None:
    """Compares ids with the sizes of the encoder.

    Args:
      inputs: a dictionary of inputs, ids alone, or a `TextLoader`; others are not checked.

    Raises:
      ValueError: an id is out of range.
    """
    bert: Any = getattr(self, "bert", self)
    limits = {"input_ids": bert.vocab_size, "position_ids": bert.longest_sequence}
    if bert.family.has_segments:  # otherwise they are not read
      limits["token_type_ids"] = bert.type_vocab_size
    if isinstance(inputs, TextLoader):
      check_range("input_ids", inputs.dataset.rows.ids, bert.vocab_size)
      return
    if not isinstance(inputs, Mapping):
      inputs = {"input_ids": inputs}
    for name, ids in inputs.items():
      for kind, limit in limits.items():
        if str(name).endswith(kind) and _is_on_host(ids):
          check_range(name, ids, limit)
    check_shapes(inputs, bert.longest_sequence)

  def __call__(self, *args, **kwargs):
    """Checks the ids and calls the model."""
    for inputs in (*args[:1], kwargs):
      self.check_inputs(inputs)
    return super().__call__(*map(plain, args[:1]), *args[1:], **kwargs)

  def given(self, arguments: dict, takes_labels: bool) -> dict:
    """Checks the ids in the arguments of `fit` and the like; returns what Keras takes.

    Args:
      arguments: by name.
      takes_labels: whether the method has an argument `y`, unlike `predict`.
    """
    del takes_labels
    self.check_inputs(arguments.get("x"))
    if isinstance(arguments.get("validation_data"), tuple):
      self.check_inputs(arguments["validation_data"][0])
    return {name: plain(value) if name in _DATA else value for name, value in arguments.items()}


_DATA = ("x", "y", "sample_weight", "validation_data")


def _of_given(name: str) -> Callable:
  """Makes a method of Keras whose arguments are those of `CheckedInputs.given`."""
  original = getattr(keras.Model, name)
  signature = inspect.signature(original)

  @functools.wraps(original)
  def method(self, *args, **kwargs):
    arguments = dict(signature.bind(self, *args, **kwargs).arguments)
    del arguments["self"]
    arguments |= arguments.pop("kwargs", {})
    data = self.given(arguments, "y" in signature.parameters)
    return getattr(super(CheckedInputs, self), name)(**data)

  return method


for _name in ("fit", "evaluate", "predict", "train_on_batch", "test_on_batch", "predict_on_batch"):
  setattr(CheckedInputs, _name, _of_given(_name))


def plain(data):
  """Makes dictionaries of mappings, such as a `BatchEncoding`, and arrays of lists of numbers.

  Keras takes other mappings, and lists, for something else than inputs by name.

  Raises:
    ValueError: the rows of a list have different lengths.
  """
  if isinstance(data, Mapping):
    return {name: plain(value) for name, value in data.items()}
  if isinstance(data, tuple) or (isinstance(data, list) and holds_tensors(data)):
    return type(data)(map(plain, data))
  return as_array("a list", data) if isinstance(data, list) else data


def holds_tensors(values) -> bool:
  """Tells a list of inputs from a list of ids."""
  return bool(values) and all(
    each is None or keras.ops.is_tensor(each) or isinstance(each, (np.ndarray, keras.KerasTensor))
    for each in values
  )


def as_array(name: str, rows) -> np.ndarray:
  """Makes an array of rows; a ValueError names those of different lengths."""
  try:
    return np.asarray(rows)
  except ValueError:
    raise ValueError(
      f"The rows of {name} have different lengths: call the tokenizer with padding=True."
    ) from None


def _is_on_host(ids) -> bool:
  if isinstance(ids, (np.ndarray, list, tuple)):
    return True
  if keras.backend.backend() != "jax":
    return False
  import jax

  return isinstance(ids, jax.Array) and not isinstance(ids, jax.core.Tracer)


def check_shapes(inputs: Mapping, longest: int) -> None:
  """Checks that the inputs of a text have one shape `[..., B, S]`, with S not above `longest`.

  Raises:
    ValueError: they have not.
  """
  shapes = {
    str(name): tuple(value.shape)
    for name, value in inputs.items()
    if hasattr(value, "shape") and _is_on_host(value)
  }
  for name, shape in shapes.items():
    if not name.endswith("input_ids"):
      continue
    if len(shape) < 2:
      raise ValueError(f"{name} is {list(shape)}; it must be [texts, tokens], also for one text.")
    check_length(shape[-1], longest)
    prefix = name.removesuffix("input_ids")
    for other in (f"{prefix}attention_mask", f"{prefix}token_type_ids"):
      if len(shapes.get(other, shape)) == len(shape) and shapes.get(other, shape) != shape:
        raise ValueError(f"{other} is {list(shapes[other])}, but {name} is {list(shape)}.")


def check_length(length: int, longest: int) -> None:
  """Raises a ValueError for a sequence that is longer than the position embeddings."""
  if length > longest:
    raise ValueError(
      f"A sequence of {length} tokens is longer than max_position_embeddings, {longest}: "
      "truncate it, or cut it into overlapping windows."
    )


def check_range(name: str, ids, limit: int) -> None:
  """Checks that ids are at least 0 and below the limit.

  Raises:
    ValueError: one is not, the rows have different lengths, or the values are no ids.

  Example:
    >>> check_range("input_ids", [[7, 30521]], 30522)
  """
  ids = as_array(name, ids)
  if ids.dtype.kind in "USO" and ids.size and isinstance(ids.flat[0], (str, bytes)):
    raise ValueError(f"{name} are texts; pass the ids that a tokenizer makes of them.")
  if ids.dtype.kind not in "iuf" or not ids.size:
    return
  if ids.dtype.kind == "f" and (ids != np.floor(ids)).any():
    raise ValueError(f"{name} are not whole numbers; pass the ids that a tokenizer makes.")
  wrong = ids[(ids < 0) | (ids >= limit)]
  if wrong.size:
    raise ValueError(
      f"{name} has {wrong.size} values out of range, such as {wrong[0]}: this model's are 0 to "
      f"{limit - 1}. Is the tokenizer that of the model?"
    )
