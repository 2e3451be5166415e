"""How the vectors of a text's tokens become one, as a model of sentence vectors was trained.

pooling_of("/tmp/sts_output")        # "mean", as run_similarity.py has noted there
pooling_of("all-MiniLM-L6-v2")       # "mean", from the folder of sentence-transformers
pooling_of("uncased_L-12_H-768_A-12")  # None
"""

import json
import os
from typing import Any

from absl import logging

from bert.checkpoints import model_files
from bert.io import atomic_files, filesystem, json_files

POOLINGS = ("cls", "mean", "max")

# sentence-transformers lists the steps from a text to its vector in `modules.json`.
_MODULES = "modules.json"
_POOLING_CONFIG = os.path.join("1_Pooling", "config.json")
_KEYS = {
  "mean": "pooling_mode_mean_tokens",
  "cls": "pooling_mode_cls_token",
  "max": "pooling_mode_max_tokens",
}


def pooling_of(weights: str | os.PathLike | None) -> str | None:
  """Finds the pooling that a model was trained with; None if it was not trained for one.

  Weights are the prefix or the folder of a checkpoint, or a folder of sentence-transformers.
  """
  if not weights:
    return None
  from bert.checkpoints import finding, reading

  prefix = finding.find_checkpoint(weights)
  pooling = reading.read_state(prefix).get("fingerprint", {}).get("pooling")
  return pooling or _of_sentence_transformers(model_files.folder_of(prefix))


def choose(given: str | None, weights: str | os.PathLike | None, default: str) -> str:
  """Chooses the pooling: `given` (of `POOLINGS`, or `none`), the training's, or else `default`."""
  trained = pooling_of(weights)
  if given and trained and given not in (trained, "none"):
    logging.warning("Pooling is %s, but %s was trained with %s.", given, weights, trained)
  return given or trained or default


def _of_sentence_transformers(folder: str) -> str | None:
  path = os.path.join(folder, _POOLING_CONFIG)
  if not filesystem.is_file(path):
    return None
  content = json_files.read_object(path)
  # Version 6 names the pooling; those before have a switch for each.
  is_used = {name: content.get(key) for name, key in _KEYS.items()}
  is_used[str(content.get("pooling_mode"))] = True
  return next(filter(is_used.get, POOLINGS), None)


def write_sentence_transformers(
  folder: str | os.PathLike, pooling: str, hidden_size: int, max_seq_length: int
) -> None:
  """Writes what a folder of transformers needs to be one of sentence-transformers.

  The folder must exist; the model and its tokenizer may come later. Longer texts are cut.

  Raises:
    OSError: a file cannot be written.
  """
  names = (("", "Transformer"), (os.path.dirname(_POOLING_CONFIG), "Pooling"))
  modules = [
    {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{name}"}
    for i, (path, name) in enumerate(names)
  ]
  flags = {key: name == pooling for name, key in _KEYS.items()}
  _write_json(folder, _POOLING_CONFIG, {"word_embedding_dimension": hidden_size, **flags})
  # Lower-casing is the tokenizer's.
  settings = {"max_seq_length": max_seq_length, "do_lower_case": False}
  _write_json(folder, "sentence_bert_config.json", settings)
  _write_json(folder, _MODULES, modules)


def _write_json(folder: str | os.PathLike, name: str, content: Any) -> None:
  path = os.path.join(folder, name)
  os.makedirs(os.path.dirname(path), exist_ok=True)
  atomic_files.write_text(path, json.dumps(content, indent=2) + "\n")
