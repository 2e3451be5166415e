"""Runs transformers in an interpreter of its own, and compares its outputs with ours.

The interpreter is that of BERT_PEER_PYTHON; the program is `transformers_peer.py`.
"""

import os
import subprocess

import numpy as np
import pytest

from tests.kit.paths import ROOT

_PROGRAM = ROOT / "tests/kit/transformers_peer.py"


def run_peer(*arguments) -> None:
  """Runs the program; skips without the interpreter."""
  python = os.environ.get("BERT_PEER_PYTHON")
  if not python:
    pytest.skip("BERT_PEER_PYTHON is not set: an interpreter with PyTorch and transformers")
  command = [python, _PROGRAM, *map(str, arguments)]
  # Its imports are its own: nothing of this project is to stand before transformers.
  done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
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
