"""The Keras 3 examples, run as users run them.

Run alone: python -m pytest tests/keras_examples_test.py -m slow (some minutes, 3 GB)
"""

import os
import pathlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(script, *arguments):
  """Runs a script of examples/; returns what it printed."""
  environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_CPP_MIN_LOG_LEVEL": "3"}
  done = subprocess.run(
    [sys.executable, str(ROOT / "examples" / script), *map(str, arguments)],
    capture_output=True,
    text=True,
    env=environment,
  )
  assert done.returncode == 0, done.stderr
  return done.stdout


def test_quick_start_prints_its_shape():
  assert "Output predictions shape: (4, 3)" in run("keras_quick_start.py")


def test_patterns():
  output = run("keras_patterns.py")
  assert "Multi-task losses: " in output
  first, second = output.split("Multi-task losses: ")[1].splitlines()[0].split(", ")
  assert float(second) < float(first)
  assert "Tags: (4, 32, 9) equal: True" in output
  assert "Half precision: float16 finite: True" in output


def test_transformers_style(data_dir):
  output = run("keras_transformers_style.py", data_dir / "weights" / "minilm_L-6_H-384_A-12")
  tokens = ["[CLS]", "the", "cat", "sat", "on", "the", "mat", ".", "[SEP]"]
  assert f"tokens: {tokens}" in output
  assert "last_hidden_state: (1, 9, 384)" in output
  assert "pooler_output ([CLS]): (1, 384)" in output
  assert "22.7M parameters" in output
  assert "Custom classifier output: (1, 3)" in output


def test_mrpc_starts(data_dir):
  """A few steps; the accuracy after three epochs is in the README."""
  output = run(
    "keras_mrpc.py",
    f"--init_checkpoint={data_dir / 'weights' / 'minilm_L-6_H-384_A-12'}",
    f"--data_dir={data_dir / 'glue' / 'MRPC'}",
    "--max_train_examples=64",
    "--max_seq_length=64",
    "--epochs=1",
  )
  assert float(output.split("eval_accuracy = ")[1]) > 0.3
