"""Models that clients are tried with: one of each kind, tiny, as they are exported and served.

folders = client_models.write(tmp_path)
Program(tmp_path, *client_models.flags(folders))

Their vocabulary has all letters, so they read any text; fewer than 128 tokens of it, and no flag
says so.
"""

import pathlib
from collections.abc import Mapping

import numpy as np

from bert import export_hub
from tests.kit import every_script, healthy_run, teachers
from tests.kit.paths import SHARED
from tests.kit.script_runs import Script

MINILM = SHARED / "data" / "weights" / "minilm_L-6_H-384_A-12"

TEXTS = [
  "ada bob.",
  "The storm closed both runways.\nNo aircraft could land.",
  'Größer als "groß" 😀 中文',
  "elk",
  "cat dog, " * 100,
]
PAIRS = [(TEXTS[0], TEXTS[1]), (TEXTS[1], TEXTS[0]), (TEXTS[4], TEXTS[3])]
SENTENCE = "ada met bob in elk, fig."
QUESTION = {"question": "who met bob?", "context": "cat saw dog. ada met bob."}
MASKED = "ada [MASK] cat."

_TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
_RUNS = {
  "pairs": (
    {"task_name": "mrpc", "labels": ["0", "1"], "problem_type": "classification"},
    {"output_weights": (2, 16), "output_bias": (2,)},
  ),
  "entities": (
    {"task_name": "ner", "labels": _TAGS},
    {"output_weights": (len(_TAGS), 16), "output_bias": (len(_TAGS),)},
  ),
  "questions": (
    {"task_name": "squad"},
    {"cls/squad/output_weights": (2, 16), "cls/squad/output_bias": (2,)},
  ),
}


def write(folder: pathlib.Path, *names: str) -> dict[str, pathlib.Path]:
  """Writes models, by default all; returns their folders by name.

  `words` is a checkpoint with the head of masked words, `encoder` its vectors as ONNX, `minilm`
  real vectors, where the weights are beside the checkout; the others are of these tasks.
  """
  (folder / "files").mkdir(parents=True)
  pretrained = every_script.write_files(folder / "files") / "model"
  found = {"words": _with_files(pretrained)}
  for name in names or ("words", "encoder", "minilm", *_RUNS):
    if name in _RUNS:
      run = teachers.write(folder / "runs" / name, healthy_run.VOCAB, *_RUNS[name])
      found[name] = _exported(run, folder / name)
    elif name == "encoder":
      found[name] = _exported(pretrained, folder / name)
    elif name == "minilm" and MINILM.is_dir():
      found[name] = _exported(MINILM, folder / name)
  return {name: path for name, path in found.items() if not names or name in names}


def flags(folders: Mapping[str, pathlib.Path]) -> list[str]:
  """The flags of serve.py."""
  return [f"--model={name}={folder}" for name, folder in folders.items()]


def units(vectors) -> np.ndarray:
  """Vectors of length 1."""
  vectors = np.stack(vectors)
  return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _with_files(model: pathlib.Path) -> pathlib.Path:
  """Puts configuration and vocabulary beside a checkpoint."""
  for name in ("bert_config.json", "vocab.txt"):
    (model / name).write_bytes((model.parent / name).read_bytes())
  return model


def _exported(model: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
  Script(export_hub).run_well(init_checkpoint=model, export_dir=folder, format="onnx")
  return folder
