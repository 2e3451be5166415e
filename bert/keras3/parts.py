"""Keeps what was set of the parts of a model in `.keras` files.

  bert.encoder.layer[0].trainable = False
  bert.save("model.keras")           # the loaded layer is frozen, too

Keras makes a model of its constructor's arguments, so that the layers that the constructor creates
would have no other state than their variables: frozen layers would train again, the state of the
optimizer would not fit, and layers of another precision or quantized ones would not load.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import keras


def described(model: keras.layers.Layer) -> dict[str, dict]:
  """Describes the parts that differ from what contains them.

  Returns:
    Path of a part by attributes -> `trainable` and `dtype`, those that differ; the model itself has
    the path "".
  """
  found: dict[str, dict] = {}
  for path, part, owner in _walk(model):
    state: dict = {}
    if part.trainable != (owner is None or owner.trainable):
      state["trainable"] = part.trainable
    if owner is not None and _policy(part) != _policy(owner):
      state["dtype"] = _policy(part)
    if state:
      found[path] = state
  return found


def restore(model: keras.layers.Layer, parts: Mapping[str, Mapping]) -> None:
  """Sets what `described` found."""
  for path, part, _ in list(_walk(model)):
    state = parts.get(path, {})
    if "dtype" in state and state["dtype"] != _policy(part):
      policy = keras.dtype_policies.deserialize(state["dtype"])
      mode = getattr(policy, "quantization_mode", None)
      if mode is None:
        part.dtype_policy = policy
      elif getattr(part.dtype_policy, "quantization_mode", None) is None:  # else a `BERT` did it
        part.quantize(mode)
    if "trainable" in state:
      part.trainable = state["trainable"]


def _policy(part: keras.layers.Layer) -> Any:
  return keras.dtype_policies.serialize(part.dtype_policy)


def _walk(model: keras.layers.Layer) -> Iterator[tuple[str, Any, Any]]:
  """Yields path, layer and what contains it, for the model and all layers in it, each once."""
  seen = {id(model)}
  todo: list[tuple[str, Any, Any]] = [("", model, None)]
  while todo:
    path, layer, owner = todo.pop()
    yield path, layer, owner
    for name, value in _attributes(layer):
      if isinstance(value, keras.layers.Layer) and id(value) not in seen:
        seen.add(id(value))
        todo.append((f"{path}.{name}".strip("."), value, layer))


def _attributes(layer) -> Iterator[tuple[str, Any]]:
  """Yields the attributes of a layer, and the elements of those that are lists."""
  for name, value in sorted({**vars(layer).get("_modules", {}), **vars(layer)}.items()):
    if name.startswith("_"):
      continue
    yield name, value
    if isinstance(value, list):
      yield from ((f"{name}.{index}", each) for index, each in enumerate(value))
