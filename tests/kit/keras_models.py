"""What the tests of the Keras side share: tiny sizes, random inputs, a vocabulary, NumPy arrays.

Nothing here needs TensorFlow: the tests also run on JAX and PyTorch.
"""

import keras
import numpy as np
import pytest

TINY = {
  "vocab_size": 40,
  "hidden_size": 16,
  "num_layers": 1,
  "num_heads": 2,
  "intermediate_size": 32,
  "max_position_embeddings": 24,
}
"""Arguments of a `BERT` that is created fast."""

TINY_KEYS = {
  "vocab_size": 104,  # of the fixture `tokenizer`
  "hidden_size": 16,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "intermediate_size": 32,
}
"""Keys of the configuration of such a model."""

WORDS = [f"w{i}" for i in range(90)] + [f"doc{i}" for i in range(9)]
"""The words of the fixture `tokenizer`, after the special tokens."""

on_tensorflow = pytest.mark.skipif(
  keras.backend.backend() != "tensorflow", reason="needs Keras's TensorFlow backend"
)


def random_inputs(*shape: int, vocab_size: int = 40) -> dict[str, np.ndarray]:
  """The inputs of a `BERT`, int32 `shape`; the last third of the last row is padding."""
  generator = np.random.default_rng(5)
  mask = np.ones(shape, "int32")
  mask[-1, ..., shape[-1] - shape[-1] // 3 :] = 0
  return {
    "input_ids": generator.integers(0, vocab_size, shape).astype("int32"),
    "attention_mask": mask,
    "token_type_ids": generator.integers(0, 2, shape).astype("int32"),
  }


def numpy_of(tensor) -> np.ndarray:
  """Returns the values of a tensor or variable of any backend."""
  return keras.ops.convert_to_numpy(tensor)


def arrays(outputs) -> dict[str, np.ndarray]:
  """Returns a model's outputs by name; a tensor alone is `output`."""
  outputs = outputs._asdict() if hasattr(outputs, "_asdict") else outputs
  outputs = outputs if isinstance(outputs, dict) else {"output": outputs}
  return {name: numpy_of(value) for name, value in outputs.items() if value is not None}


def randomized(model):
  """Returns the model with random values everywhere, so that no LayerNorm or bias can hide."""
  generator = np.random.default_rng(1)
  for variable in model.trainable_variables:
    variable.assign(generator.normal(0.1, 0.3, variable.shape))
  if type(model).__name__ == "BertForMultipleChoice":
    model.classifier.bias.assign([0.0])  # all choices share it: its gradient is zero
  return model
