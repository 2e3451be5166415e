"""Folders of runs that nobody trained: weights that differ, and all that a run knows of itself.

teachers.write(folder, VOCAB, {"task_name": "swag"}, {"output_weights": (1, 16)})
"""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bert import tokenization
from bert.checkpoints import saving
from bert.model import variable_shapes
from bert.model.configuration import BertConfig
from tests.kit import tiny_bert


def write(
  folder: pathlib.Path,
  vocabulary: Sequence[str],
  facts: Mapping[str, Any],
  heads: Mapping[str, tuple[int, ...]],
  settings: Mapping[str, Any] | None = None,
  seed: int = 5,
  **sizes,
) -> pathlib.Path:
  """Writes a run of a tiny model of two layers, and returns its folder.

  Facts are of its task, see `Run.facts`; settings its `informative` ones; sizes of its
  configuration; heads have the shapes of their variables.
  """
  folder.mkdir(parents=True)
  files = tiny_bert.write(folder, vocabulary, **{"num_hidden_layers": 2, **sizes})
  config = BertConfig.from_json_file(files["bert_config_file"])
  rng = np.random.default_rng(seed)
  shapes = {**variable_shapes.encoder_shapes(config), **heads}
  tensors = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}
  tensors |= {name: 1 + value for name, value in tensors.items() if name.endswith("gamma")}
  vocab = tokenization.load_vocab(str(files["vocab_file"]))
  fingerprint = {
    **{"vocabulary": tokenization.vocabulary_hash(vocab), "do_lower_case": True},
    **facts,
  }
  state = {"fingerprint": fingerprint, "informative": dict(settings or {})}
  saving.save(str(folder), 1, {**tensors, "global_step": np.array(1, np.int64)}, state)
  return folder
