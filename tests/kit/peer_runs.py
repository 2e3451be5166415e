"""Runs transformers in an interpreter of its own, and compares its outputs with ours.

The interpreter is that of BERT_PEER_PYTHON; the program is `transformers_peer.py`. The TensorFlow
classes of version 4 run on this interpreter's TensorFlow, from the folder BERT_TF_CLASSES, which
`pip install --target FOLDER --no-deps transformers==4.57.6` and so on for what it imports fills.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.kit.paths import ROOT

_PROGRAM = ROOT / "tools/transformers_peer.py"


def run_peer(*arguments) -> None:
  """Runs the program; skips without the interpreter."""
  python = os.environ.get("BERT_PEER_PYTHON")
  if not python:
    pytest.skip("BERT_PEER_PYTHON is not set: an interpreter with PyTorch and transformers")
  command = [python, _PROGRAM, *map(str, arguments)]
  # Its imports are its own: nothing of this project is to stand before transformers.
  done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
  assert done.returncode == 0, done.stderr


def run_tensorflow_classes(folder) -> None:
  """Runs `tensorflow_classes_peer.py`; skips without the packages."""
  packages = os.environ.get("BERT_TF_CLASSES")
  if not packages:
    pytest.skip("BERT_TF_CLASSES is not set: a folder with transformers 4 and safetensors")
  own = {"PYTHONPATH": packages, "TF_USE_LEGACY_KERAS": "1"}
  done = subprocess.run(
    [sys.executable, ROOT / "tools/tensorflow_classes_peer.py", str(folder)],
    **dict(capture_output=True, text=True, check=False, cwd="/", env={**os.environ, **own}),
  )
  assert done.returncode == 0, done.stderr


def save_inputs(folder, vocab_size=23, length=6):
  """Six sequences, some with padding; returns them as this project takes them."""
  rng = np.random.default_rng(1)
  ids = rng.integers(1, vocab_size, [6, length])
  mask = (np.arange(length) < rng.integers(2, length + 1, [6, 1])).astype(np.int64)
  types = rng.integers(0, 2, [6, length])
  np.savez(folder / "inputs.npz", input_ids=ids, attention_mask=mask, token_type_ids=types)
  return ids, mask, types


def largest_difference(folder, ours):
  """Between the logits that transformers wrote into a folder, and ours; by output."""
  with np.load(folder / "logits.npz") as file:
    theirs = dict(file)
  differences = {}
  for name, value in ours.items():
    difference = value - theirs[name]
    if value.shape[-1] == 2:
      # Ours are log-probabilities of the next sentence, or choices without a bias: but for a sum
      # that both have in common, they are the same.
      difference -= difference.mean(axis=-1, keepdims=True)
    differences[name] = float(np.abs(difference).max())
  return max(differences.values())
