"""What a SavedModel that takes texts reads, from its file alone: neither weights nor TensorFlow.

  signature("mrpc_output/export/task").inputs         # ("text_a", "text_b")

A `saved_model.pb` is a protocol buffer, whose fields are read by their numbers.
"""

import os
from collections.abc import Iterable
from typing import NamedTuple

from bert.checkpoints import bundle_files
from bert.io import filesystem
from bert.io.protobuf_fields import fields, messages

_FILE = "saved_model.pb"
_NAME = b"serving_default"
# Numbers of fields: of the file its graphs, of a graph its signatures, of a signature both lists,
# of an entry of these name and value, and of a tensor's description its type.
_GRAPHS, _SIGNATURES = 2, 5
_INPUTS, _OUTPUTS = 1, 2
_KEY, _VALUE = 1, 2
_TYPE = 2
_STRING = 7  # the type of texts


class Signature(NamedTuple):
  """What a model takes and gives, by name."""

  inputs: tuple[str, ...]
  outputs: tuple[str, ...]

  @property
  def needs_pairs(self) -> bool:
    """Whether the model compares two texts."""
    return compares(self.outputs)


def compares(outputs: Iterable[str]) -> bool:
  """Tells from the names of a model's outputs whether it compares two texts."""
  return "similarity" in outputs


def folder_of(saved_model: str) -> str | None:
  """Finds the folder of a task's SavedModel: this one, or `task` in an export; None without any."""
  folders = (os.path.join(saved_model, "task"), saved_model)
  return next(filter(bundle_files.is_saved_model, folders), None)


def signature(folder: str) -> Signature | None:
  """Reads the signature of a SavedModel; None where it does not take texts alone.

  Raises:
    ValueError: the file is damaged.
    OSError: it cannot be read.
  """
  path = os.path.join(folder, _FILE)
  try:
    found = _signature(filesystem.read_bytes(path))
  except (ValueError, LookupError, TypeError, AttributeError) as error:
    raise ValueError(f"{path} is damaged: {error}") from None
  if found is None:
    return None
  inputs, outputs = found
  if not inputs or any(kind != _STRING for kind in inputs.values()):
    return None
  return Signature(tuple(sorted(inputs)), tuple(sorted(outputs)))


def check_is_current(folder: str, signature: Signature) -> None:
  """Raises a ValueError for a model of spans, tags or choices that an earlier version exported.

  Its graph reads strings; today these models read token ids.
  """
  is_of_pairs = set(signature.inputs) in ({"question", "context"}, {"context", "choices"})
  if is_of_pairs or {"tags", "num_words"} <= set(signature.outputs):
    raise ValueError(
      f"{folder} is an export of an earlier version, whose graph reads the strings of questions, "
      "tags or choices. Export its run again with --do_export."
    )


def _signature(content: bytes) -> tuple[dict, dict] | None:
  """Returns name -> type of inputs, and of outputs."""
  for graph in messages(content, _GRAPHS):
    for entry in messages(graph, _SIGNATURES):
      signature = dict(fields(entry))
      if signature.get(_KEY) == _NAME:
        return _tensors(signature[_VALUE], _INPUTS), _tensors(signature[_VALUE], _OUTPUTS)
  return None


def _tensors(message: bytes, number: int) -> dict[str, int]:
  found = {}
  for entry in messages(message, number):
    tensor = dict(fields(entry))
    found[tensor[_KEY].decode()] = dict(fields(tensor[_VALUE]))[_TYPE]
  return found
