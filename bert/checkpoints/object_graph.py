"""Names of the variables in an object-based checkpoint, the format of TensorFlow 2 and Keras.

  keys_of(graph)["pooler_transform/kernel"]  # ["model/layer_with_weights-6/kernel/.ATTRIBUTES/..."]

Such a checkpoint stores values under paths of Python attributes. One more tensor, a string, holds
the graph of all objects (`TrackableObjectGraph`, a protocol buffer), with the names of variables.
No TensorFlow is needed here.
"""

from bert.checkpoints.bundle_files import OBJECT_GRAPH, CheckpointError
from bert.checkpoints.numpy_reader import each_field

VALUE = ".ATTRIBUTES/VARIABLE_VALUE"  # the last part of a variable's key

# Numbers of fields: of the graph its nodes, of a node its attributes, and of an attribute these.
_NODES, _ATTRIBUTES = 1, 2
_ATTRIBUTE, _NAME, _KEY = 1, 2, 3


def keys_of(graph: bytes) -> dict[str, list[str]]:
  """Maps each variable's name to the keys of its values, from the content of `OBJECT_GRAPH`.

  There are several where variables have the same name. It raises a ValueError if damaged.
  """
  found: dict[str, list[str]] = {}
  try:
    for node in _messages(graph, _NODES):
      for attribute in _messages(node, _ATTRIBUTES):
        fields = dict(each_field(attribute))
        name, key = _text(fields.get(_NAME)), _text(fields.get(_KEY))
        if _text(fields.get(_ATTRIBUTE)) == "VARIABLE_VALUE" and key not in found.get(name, []):
          found.setdefault(name, []).append(key)
  except (CheckpointError, IndexError, UnicodeDecodeError, TypeError) as error:
    raise ValueError(f"{OBJECT_GRAPH} is damaged: {error}") from None
  return found


def _messages(content, number: int) -> list[bytes]:
  """Returns the embedded messages of a field."""
  every = (value for field, value in each_field(content) if field == number)
  return [value for value in every if isinstance(value, bytes)]


def _text(value) -> str:
  return value.decode() if isinstance(value, bytes) else ""
