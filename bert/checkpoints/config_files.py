"""Reads the configuration of a model from whatever file holds it.

  read("uncased_L-12_H-768_A-12/bert_config.json")["hidden_size"]     # 768
  read("electra_small/electra_small.index")["hidden_size"]            # 256

That is the original's `bert_config.json`, the `config.json` of transformers, or the index of a
checkpoint: ELECTRA's released ones have no configuration, nor have the SavedModels of the
TensorFlow Model Garden, but their shapes give the sizes. No TensorFlow is needed here.
"""

import os
from collections.abc import Mapping
from typing import Any

from bert.checkpoints import formats
from bert.checkpoints.bundle_files import INDEX_SUFFIX, KERAS_SUFFIX
from bert.io import json_files

# Keys of which every `config.json` of transformers has one, and some of our own files, too.
_MARKS = ("model_type", "architectures", "transformers_version", "layer_norm_eps")


def read(path: str | os.PathLike) -> dict[str, Any]:
  """Reads the `bert_config.json` that a file is or stands for.

  Raises:
    ValueError: it is not a JSON object, has a value that the original does not support, or is of
      weights from which no configuration follows.
    OSError: it cannot be read.
  """
  path = os.fsdecode(path)
  if path.endswith(INDEX_SUFFIX):
    return _read_index(path)
  if path.endswith(KERAS_SUFFIX):
    formats.refuse_keras(path)
  content = json_files.read_object(path)
  if is_original(content):
    return content
  from bert.checkpoints import transformers_config

  try:
    return transformers_config.to_original(content)
  except ValueError as error:
    raise ValueError(f"{path}: {error}") from None


def is_original(content: Mapping[str, Any]) -> bool:
  """Tells a configuration in the original's form from the `config.json` of transformers."""
  if not any(mark in content for mark in _MARKS):
    return True
  from bert.checkpoints import transformers_config

  return not transformers_config.is_transformers_config(content)


# ---------------------------------------------------------------------------------------------
# Checkpoints without a configuration.


def index_of(weights: str | os.PathLike) -> str | None:
  """Finds the index that stands for the configuration of weights; None for other models.

  Weights are a prefix, a folder with a checkpoint, or that of a SavedModel.
  """
  from bert.checkpoints import finding, model_garden, model_source

  try:
    if not model_source.on_disk(os.fsdecode(weights)):
      return None
    prefix = finding.find_checkpoint(weights)
    has_sizes = _sizes_in(prefix) is not None or model_garden.holds_encoder(prefix)
  except (ValueError, OSError):  # whoever reads the weights says what is wrong
    return None
  return prefix + INDEX_SUFFIX if has_sizes else None


def _read_index(path: str) -> dict[str, Any]:
  from bert.checkpoints import model_garden

  prefix = path.removesuffix(INDEX_SUFFIX)
  if sizes := _sizes_in(prefix):
    return sizes
  if encoder := model_garden.open_encoder(prefix):
    return model_garden.config_of(prefix, encoder)
  raise ValueError(
    f"{path} has no encoder of ELECTRA (electra/...) or of the Model Garden, whose sizes are known "
    "from its shapes. Give a bert_config.json."
  )


def _sizes_in(prefix: str) -> dict[str, Any] | None:
  """Makes the configuration of a checkpoint whose family publishes none."""
  from bert.checkpoints.numpy_reader import CheckpointReader
  from bert.families.files import FILES

  shapes = {name: tuple(shape) for name, (shape, _) in CheckpointReader(prefix).contents.items()}
  return next(filter(None, (files.sizes_of(shapes) for files in FILES.values())), None)
