"""Writes a model of random weights, for what needs none that have learned: FOLDER CONFIG VOCAB.

FOLDER gets `bert_config.json`, `vocab.txt`, a checkpoint, and `weights.npz` for transformers. It
computes nothing, on no device.
"""

import os
import pathlib
import shutil
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))

import numpy as np

from bert.checkpoints import saving
from bert.model import variable_shapes
from bert.model.configuration import BertConfig


def main(folder: str, config_file: str, vocab_file: str):
  shutil.copy(config_file, f"{folder}/bert_config.json")
  shutil.copy(vocab_file, f"{folder}/vocab.txt")
  config = BertConfig.from_json_file(config_file)
  shapes = variable_shapes.encoder_shapes(config)
  random = np.random.default_rng(1)
  tensors = {name: _value(random, name, shape) for name, shape in shapes.items()}
  saving.save(folder, 0, tensors, {})
  np.savez(f"{folder}/weights.npz", **tensors)


def _value(random, name, shape):
  """As the original starts: biases of 0, scales of 1, all else with a deviation of 0.02."""
  if name.endswith(("bias", "beta")):
    return np.zeros(shape, np.float32)
  if name.endswith("gamma"):
    return np.ones(shape, np.float32)
  return random.normal(0, 0.02, shape).astype(np.float32)


if __name__ == "__main__":
  main(*sys.argv[1:])
