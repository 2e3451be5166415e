"""The configuration of a checkpoint that has no file for it, from its index.

  read_config("electra_small/electra_small.index")["hidden_size"]     # 256

ELECTRA's released checkpoints have no configuration, nor have the SavedModels of the TensorFlow
Model Garden. Their index stands for it: in paths, and in `--bert_config_file`. No TensorFlow is
needed here.
"""

import os
from typing import Any

from bert.checkpoints import finding, model_garden, model_source
from bert.checkpoints.bundle_files import INDEX_SUFFIX
from bert.checkpoints.families import FILES
from bert.checkpoints.numpy_reader import CheckpointReader


def index_of(weights: str | os.PathLike) -> str | None:
  """Finds the index that stands for the configuration of weights; None for other models.

  Weights are a prefix, a folder with a checkpoint, or that of a SavedModel.
  """
  try:
    if not model_source.on_disk(os.fsdecode(weights)):
      return None
    prefix = finding.find_checkpoint(weights)
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
  if encoder := model_garden.open_encoder(prefix):
    return model_garden.config_of(prefix, encoder)
  raise ValueError(
    f"{path} has no encoder of ELECTRA (electra/...) or of the Model Garden, whose sizes are known "
    "from its shapes. Give a bert_config.json."
  )


def _sizes_of(prefix: str) -> dict[str, Any] | None:
  """Makes the configuration of a checkpoint whose family publishes none."""
  contents = CheckpointReader(prefix).contents
  shapes = {name: tuple(shape) for name, (shape, _) in contents.items()}
  return next(filter(None, (files.sizes_of(shapes) for files in FILES.values())), None)
