"""The configuration of an ELECTRA checkpoint, which has no file for it: from its tensors' shapes.

  content = read_config("electra_small/electra_small.index")
  content["hidden_size"]     # 256

The number of heads is not in any shape: all released models have heads of 64 (google-research/
electra, `util/training_utils.py`). No TensorFlow is needed here.
"""

import os
import re
from typing import Any

from bert.checkpoints import numpy_reader
from bert.checkpoints.bundle_files import CheckpointError

INDEX = ".index"
_WORDS = "electra/embeddings/word_embeddings"
_QUERY = "encoder/layer_0/attention/self/query/kernel"
_INNER = "encoder/layer_0/intermediate/dense/kernel"


def index_of(weights: str | os.PathLike) -> str | None:
  """The index of an ELECTRA checkpoint, which stands for its configuration; None for other models.

  Args:
    weights: a prefix, or a folder with one checkpoint.
  """
  try:
    prefix = numpy_reader.find_prefix(weights)
    shapes = numpy_reader.CheckpointReader(prefix).shapes
  except (ValueError, OSError, CheckpointError):  # whoever reads the weights says what is wrong
    return None
  return prefix + INDEX if _WORDS in shapes else None


def is_index(path: str | os.PathLike) -> bool:
  """Whether a path is that of an index, by its name."""
  return os.fspath(path).endswith(INDEX)


def read_config(path: str | os.PathLike) -> dict[str, Any]:
  """The content of a configuration.

  Args:
    path: of an index.

  Raises:
    ValueError: the checkpoint is not ELECTRA's, or is damaged.
  """
  shapes = numpy_reader.CheckpointReader(os.fspath(path).removesuffix(INDEX)).shapes
  if _WORDS not in shapes or f"electra/{_QUERY}" not in shapes:
    raise ValueError(
      f"{path} has no encoder of ELECTRA (electra/...), whose sizes are known from its shapes. "
      "Give a bert_config.json."
    )
  vocab_size, embedding_size = shapes[_WORDS]
  hidden_size, layers = shapes[f"electra/{_QUERY}"][0], _count_layers(shapes, "electra")
  content = {
    "model_type": "electra",
    "vocab_size": vocab_size,
    "embedding_size": embedding_size,
    "hidden_size": hidden_size,
    "num_hidden_layers": layers,
    "num_attention_heads": max(1, hidden_size // 64),
    "intermediate_size": shapes[f"electra/{_INNER}"][1],
    "hidden_act": "gelu_erf",
    "max_position_embeddings": shapes["electra/embeddings/position_embeddings"][0],
    "type_vocab_size": shapes["electra/embeddings/token_type_embeddings"][0],
  }
  if f"generator/{_QUERY}" in shapes:
    content["generator_hidden_size"] = shapes[f"generator/{_QUERY}"][0] / hidden_size
    content["generator_layers"] = _count_layers(shapes, "generator") / layers
  return content


def _count_layers(shapes, scope: str) -> int:
  layer = re.compile(rf"{scope}/encoder/layer_(\d+)/")
  return len({match[1] for match in map(layer.match, shapes) if match})
