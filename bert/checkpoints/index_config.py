"""The configuration of a checkpoint that has no file for it, from its index.

  read_config("electra_small/electra_small.index")["hidden_size"]     # 256

ELECTRA's released checkpoints have no configuration, nor have the SavedModels of the TensorFlow
Model Garden. Their index stands for it: in paths, and in `--bert_config_file`. No TensorFlow is
needed here.
"""

import os
from typing import Any

from bert.checkpoints import model_garden, numpy_reader
from bert.checkpoints.bundle_files import IN_SAVED_MODEL, INDEX_SUFFIX, is_saved_model
from bert.checkpoints.families import FILES
from bert.io import filesystem


def index_of(weights: str | os.PathLike) -> str | None:
  """Finds the index that stands for the configuration of weights; None for other models.

  Weights are a prefix, a folder with one checkpoint, or that of a SavedModel.
  """
  try:
    prefix = _prefix_of(os.fsdecode(weights))
    has_sizes = _sizes_of(prefix) is not None or model_garden.holds_encoder(prefix)
  except (ValueError, OSError):  # whoever reads the weights says what is wrong
    return None
  return prefix + INDEX_SUFFIX if has_sizes else None


def read_config(path: str | os.PathLike) -> dict[str, Any]:
  """Reads the content of a configuration from the path of an index.

  Raises:
    ValueError: the sizes of its model are not in it, or it is damaged.
  """
  prefix = os.fsdecode(path).removesuffix(INDEX_SUFFIX)
  if sizes := _sizes_of(prefix):
    return sizes
  if weights := model_garden.open_weights(prefix):
    return model_garden.config_of(weights)
  raise ValueError(
    f"{path} has no encoder of ELECTRA (electra/...) or of the Model Garden, whose sizes are known "
    "from its shapes. Give a bert_config.json."
  )


def _sizes_of(prefix: str) -> dict[str, Any] | None:
  """Makes the configuration of a checkpoint whose family publishes none."""
  shapes = numpy_reader.CheckpointReader(prefix).shapes
  return next(filter(None, (files.sizes_of(shapes) for files in FILES.values())), None)


def _prefix_of(weights: str) -> str:
  if filesystem.is_folder(weights) and is_saved_model(weights):
    return os.path.join(weights, IN_SAVED_MODEL)
  return numpy_reader.find_prefix(weights)
