"""The examples of Keras 3 and of BERT's pieces, run as users run them.

Run alone: python -m pytest tests/system/keras_examples_test.py (minutes; needs 4 GB with `slow`)
"""

import functools
import importlib.util

import pytest

from tests.kit import example_runs

pytestmark = pytest.mark.ci


@pytest.fixture
def output_of(forked_python):
  """Runs an example and returns what it prints."""
  return functools.partial(example_runs.output_of, forked_python)


@pytest.fixture
def minilm(data_dir):
  """A folder with real weights."""
  return data_dir / "weights" / "minilm_L-6_H-384_A-12"


def test_a_small_quick_start(output_of):
  output = output_of("keras_quick_start.py", "--variant=tiny", "--num_layers=1")
  assert "Output predictions shape: (4, 3)" in output


@pytest.mark.slow
def test_a_short_training_with_the_kit(output_of):
  output = output_of("train_bert_classification.py", "--max_train_examples=64", "--epochs=1")
  assert "Epoch 1: loss 0." in output
  assert 0 <= float(output.split("accuracy: ")[1].split()[0]) <= 1


@pytest.mark.slow
def test_the_training_with_the_kit_learns(output_of):
  output = output_of("train_bert_classification.py")
  assert float(output.split("accuracy: ")[1].split()[0]) > 0.8  # 0.57: nothing was learnt.


@pytest.mark.slow
def test_quick_start_prints_its_shape(output_of):
  assert "Output predictions shape: (4, 3)" in output_of("keras_quick_start.py")


@pytest.mark.slow
def test_patterns(output_of):
  output = output_of("keras_patterns.py")
  assert "Multi-task losses: " in output
  first, second = output.split("Multi-task losses: ")[1].splitlines()[0].split(", ")
  assert float(second) < float(first)
  assert "Tags: (4, 32, 9) equal: True" in output
  assert "Half precision: float16 finite: True" in output


def test_where_weights_come_from(output_of):
  output = output_of("keras_pretrained.py")
  assert "Custom encoder: 45,041,152 parameters" in output
  assert "Larger table: (50000, 64)" in output
  assert "Layers equal: True" in output
  assert "Tables equal: False" in output
  assert "Cased vocabulary: 28996" in output
  assert "From a file, equal: True" in output
  assert "Computes in float16 and keeps float32" in output


@pytest.mark.slow
def test_every_variant(output_of):
  output = output_of("keras_model_checks.py")
  for text in ("base created", "large created", "335,141,888", "All tests passed!"):
    assert text in output


def check_transformers_style(output, shape):
  tokens = ["[CLS]", "the", "cat", "sat", "on", "the", "mat", ".", "[SEP]"]
  assert f"tokens: {tokens}" in output
  assert f"last_hidden_state: {shape((1, 9, 384))}" in output
  assert f"pooler_output ([CLS]): {shape((1, 384))}" in output
  assert "22.7M parameters" in output
  assert f"Custom classifier output: {shape((1, 3))}" in output
  assert "Prediction: " in output
  assert "Fine-tuning setup complete!" in output


@pytest.mark.slow
def test_transformers_style(output_of, minilm):
  check_transformers_style(output_of("keras_transformers_style.py", minilm), str)


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_transformers_style_on_pytorch(output_of, minilm):
  output = output_of("keras_on_pytorch.py", minilm, KERAS_BACKEND="torch")
  check_transformers_style(output, lambda shape: f"torch.Size({list(shape)})")
  assert "Rates: 0.0e+00, 1.0e-05, 2.0e-05, 1.0e-05, 0.0e+00" in output
  losses = list(map(float, output.split("Losses: ")[1].splitlines()[0].split(", ")))
  assert losses[-1] < losses[0]


@pytest.mark.slow
def test_piece_by_piece(output_of):
  output = output_of("annotated_bert.py")
  assert "The same at once: True" in output
  assert "[MASK]" in output.split("Masked: ")[1].splitlines()[0]
  assert "Pooled output: (2, 128)" in output
  assert "GELU of 1: 0.841192" in output, "the tanh form"
  first, last = output.split("Loss: ")[1].splitlines()[0].split(", later ")
  assert float(last) < float(first)
  for name in ("masked_lm_accuracy", "masked_lm_loss", "next_sentence_accuracy"):
    assert f"{name} " in output.split("Pre-training: ")[1].splitlines()[0]
  assert "Fine-tuned: (2, 2)" in output


@pytest.mark.slow
def test_the_kit(output_of):
  output = output_of("bert_kit.py")
  before, after = (
    float(output.split(f"Loss {word}: ")[1].split()[0]) for word in ("before", "after")
  )
  assert after < before
  assert "Accuracy: 1.0000" in output
  assert "F1 Score: 1.0000" in output


@pytest.mark.slow
def test_mrpc_starts(output_of, data_dir, minilm):
  """A few steps; the accuracy after three epochs is in the README."""
  output = output_of(
    "keras_mrpc.py",
    f"--init_checkpoint={minilm}",
    f"--data_dir={data_dir / 'glue' / 'MRPC'}",
    "--max_train_examples=64",
    "--max_seq_length=64",
    "--epochs=1",
  )
  assert float(output.split("eval_accuracy = ")[1]) > 0.3
