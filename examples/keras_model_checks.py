"""Creates every variant of the Keras 3 BERT and checks the shape of its output.

python examples/keras_model_checks.py      # needs 2 GB of memory
pytest examples/keras_model_checks.py
"""

import numpy as np

from bert.keras3 import BERT


def test_model_creation_all_variants():
  for variant in BERT.MODEL_VARIANTS.keys():  # noqa: SIM118
    model = BERT.from_variant(variant)
    assert model is not None
    print(f"BERT-{variant} created successfully: {model.count_params():,} parameters")


def test_forward_pass_shape():
  model = BERT.from_variant("tiny")
  dummy_input = {
    "input_ids": np.random.randint(0, 30522, (4, 64)),
    "attention_mask": np.ones((4, 64), dtype="int32"),
  }
  output = model(dummy_input)
  hidden_state = output["last_hidden_state"]
  assert hidden_state.shape == (4, 64, model.hidden_size)
  print("Forward pass has correct shape")


if __name__ == "__main__":
  test_model_creation_all_variants()
  test_forward_pass_shape()
  print("\nAll tests passed!")
