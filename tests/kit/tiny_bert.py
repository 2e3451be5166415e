"""A BERT as small as it gets: its configuration, and the files that a script reads it from.

flags = tiny_bert.write(folder, ["good", "bad", "film"])
script.run_well(**flags, do_train=True, ...)
"""

import json
import pathlib
from collections.abc import Sequence
from typing import Any

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}

# A `bert_config.json` with all keys that transformers' configurations are made from.
ORIGINAL = {
  "vocab_size": 11,
  "hidden_size": 8,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 12,
  "hidden_act": "gelu",
  "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1,
  "max_position_embeddings": 6,
  "type_vocab_size": 2,
  "initializer_range": 0.02,
  "directionality": "bidi",
}

_SIZES = {
  "hidden_size": 16,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "intermediate_size": 16,
  "max_position_embeddings": 32,
  "initializer_range": 0.2,  # with the usual 0.02 so small a model takes long to learn
}


def sizes(
  vocab_size: int, width: int, layers: int, inner: int, length: int, **others
) -> dict[str, Any]:
  """Returns the sizes of a `bert_config.json` with two attention heads, and other keys of it."""
  return {
    "vocab_size": vocab_size,
    "hidden_size": width,
    "num_hidden_layers": layers,
    "num_attention_heads": 2,
    "intermediate_size": inner,
    "max_position_embeddings": length,
    **others,
  }


def config(vocab_size: int, **changes) -> dict[str, Any]:
  """The content of a `bert_config.json`."""
  return {"vocab_size": vocab_size, **_SIZES, **changes}


def write_config(path: pathlib.Path, vocab_size: int, **changes) -> pathlib.Path:
  """Writes a `bert_config.json`."""
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(json.dumps(config(vocab_size, **changes)))
  return path


def write(folder: pathlib.Path, vocabulary: Sequence[str], **changes) -> dict[str, pathlib.Path]:
  """Writes `vocab.txt` and `bert_config.json`; returns the flags that name them."""
  config_file = write_config(folder / "bert_config.json", len(vocabulary), **changes)
  vocab_file = folder / "vocab.txt"
  vocab_file.write_text("".join(f"{token}\n" for token in vocabulary), encoding="utf-8")
  return {"vocab_file": vocab_file, "bert_config_file": config_file}
