"""Reads the configuration of a model from whatever file holds it.

  read("uncased_L-12_H-768_A-12/bert_config.json")["hidden_size"]     # 768

That is the original's `bert_config.json`, the `config.json` of transformers, or weights: of some
checkpoints the index alone gives the sizes. No TensorFlow is needed here.
"""

import os
from collections.abc import Iterable, Mapping
from typing import Any

from bert.checkpoints import formats
from bert.io import downloads, json_files

# Keys of which every `config.json` of transformers has one, and some of our own files, too.
_MARKS = ("model_type", "architectures", "transformers_version", "layer_norm_eps")


def read(path: str | os.PathLike) -> dict[str, Any]:
  """Reads the `bert_config.json` that a file is or stands for.

  Raises:
    ValueError: it is not a JSON object, has a value that the original does not support, or is of
      weights from which no configuration follows.
    OSError: it cannot be read.
  """
  if formats.describes_model(path):
    return formats.with_mark(os.path.splitext(path)[1]).read_config(path)
  content = json_files.read_object(path)
  if is_original(content):
    return content
  try:
    return formats.with_mark(formats.CONFIG).to_original(content)
  except ValueError as error:
    raise ValueError(f"{os.fsdecode(path)}: {error}") from None


def of_released(name: str, others: Iterable[str] = ()) -> dict[str, Any]:
  """Finds the configuration of a released model; the message of another name lists `others`, too.

  Raises:
    ValueError: no model of that name was released.
  """
  sizes = downloads.source("model").released_sizes()
  if name not in sizes:
    known = ", ".join([*others, *sizes])
    raise ValueError(f"No released model is called {name!r}; known: {known}.")
  return dict(sizes[name])


def is_original(content: Mapping[str, Any]) -> bool:
  """Tells a configuration in the original's form from the `config.json` of transformers."""
  if not any(mark in content for mark in _MARKS):
    return True
  return not formats.with_mark(formats.CONFIG).is_transformers_config(content)
