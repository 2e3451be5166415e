"""Reads the configuration of a model from whatever file holds it.

  read("uncased_L-12_H-768_A-12/bert_config.json")["hidden_size"]     # 768
  read("model.keras")["hidden_size"]

That is the original's `bert_config.json`, the `config.json` of transformers, or weights: a `.keras`
file describes its model, and of some checkpoints the index alone gives the sizes. No TensorFlow is
needed here.
"""

import importlib
import os
from collections.abc import Iterable
from typing import Any

from bert.checkpoints import transformers_config
from bert.checkpoints.bundle_files import INDEX_SUFFIX, KERAS_SUFFIX
from bert.io import json_files

# By name: few need them.
_IN_WEIGHTS = {
  KERAS_SUFFIX: "bert.checkpoints.keras_file",
  INDEX_SUFFIX: "bert.checkpoints.index_config",
}
_RELEASED = "bert.checkpoints.families"


def is_in_weights(path: str | os.PathLike) -> bool:
  """Whether a file holds weights, too, by its name."""
  return os.path.splitext(path)[1] in _IN_WEIGHTS


def read(path: str | os.PathLike) -> dict[str, Any]:
  """The content of the `bert_config.json` that a file is or stands for.

  Raises:
    ValueError: it is not a JSON object, has a value that the original does not support, or is of
      weights from which no configuration follows.
    OSError: it cannot be read.
  """
  if is_in_weights(path):
    return importlib.import_module(_IN_WEIGHTS[os.path.splitext(path)[1]]).read_config(path)
  content = json_files.read_object(path)
  if not transformers_config.is_transformers_config(content):
    return content
  try:
    return transformers_config.to_original(content)
  except ValueError as error:
    raise ValueError(f"{os.fspath(path)}: {error}") from None


def of_released(name: str, others: Iterable[str] = ()) -> dict[str, Any]:
  """Finds the content of the configuration of a released model of another family than BERT.

  Args:
    name: of the model.
    others: released BERTs, for the message.

  Raises:
    ValueError: no model of that name was released.
  """
  released = importlib.import_module(_RELEASED).RELEASED
  sizes = {each: model.sizes for each, model in released.items() if model.sizes}
  if name not in sizes:
    known = ", ".join([*others, *sizes])
    raise ValueError(f"No released model is called {name!r}; known: {known}.")
  return dict(sizes[name])
