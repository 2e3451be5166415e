"""The configuration of an ELECTRA checkpoint, which has no file for it: from its tensors' shapes.

  content = config_of(CheckpointReader("electra_small/electra_small").shapes)
  content["hidden_size"]     # 256

The number of heads is not in any shape: all released models have heads of 64 (google-research/
electra, `util/training_utils.py`). No TensorFlow is needed here.
"""

import re
from collections.abc import Mapping
from typing import Any

_WORDS = "electra/embeddings/word_embeddings"
_QUERY = "encoder/layer_0/attention/self/query/kernel"
_INNER = "encoder/layer_0/intermediate/dense/kernel"


def is_electra(shapes: Mapping[str, tuple[int, ...]]) -> bool:
  """Whether a checkpoint has an encoder of ELECTRA."""
  return _WORDS in shapes and f"electra/{_QUERY}" in shapes


def config_of(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
  """The content of a configuration.

  Args:
    shapes: name -> shape, of a checkpoint with an encoder of ELECTRA.
  """
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
