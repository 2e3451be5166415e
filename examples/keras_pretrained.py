"""Sources of the weights of a Keras 3 BERT, and the handling of weights that do not fit.

python examples/keras_pretrained.py               # small random models, no download
python examples/keras_pretrained.py --released    # released models, a download of 2 GB
"""

import argparse
import os
import tempfile

import keras
import numpy as np

from bert.keras3 import BERT

SMALL = {"hidden_size": 64, "num_layers": 2, "num_heads": 2, "intermediate_size": 128}


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--released", action="store_true")
  if parser.parse_args().released:
    run({"base": True, "large": True}, {})
    return
  with tempfile.TemporaryDirectory() as folder:
    weights = {name: os.path.join(folder, f"{name}.keras") for name in ("base", "large")}
    BERT.from_variant("base", **SMALL).save(weights["base"])
    BERT.from_variant("large", weights_dataset="cased", **SMALL).save(weights["large"])
    run(weights, SMALL)


def run(weights: dict, sizes: dict) -> None:
  """Loads `weights`: True for released ones, or a path; `sizes` are their sizes."""
  # An encoder with weights, and one with custom sizes and random weights.
  bert_encoder = BERT.from_variant("base", pretrained=weights["base"], **sizes)
  custom_encoder = BERT.from_variant("small", vocab_size=50000)
  print(f"Custom encoder: {custom_encoder.count_params():,} parameters")

  # Another vocabulary: the word embeddings stay random, with a warning.
  model = BERT.from_variant("base", pretrained=weights["base"], vocab_size=50000, **sizes)
  print("Larger table:", tuple(model.embeddings.word_embeddings.shape))
  print("Layers equal:", equal(model.encoder_layers[0], bert_encoder.encoder_layers[0]))
  print("Tables equal:", equal(model.embeddings, bert_encoder.embeddings))

  # Cased weights of another size.
  model = BERT.from_variant("large", pretrained=weights["large"], weights_dataset="cased", **sizes)
  print("Cased vocabulary:", model.vocab_size)

  # A saved model.
  with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "bert_weights.keras")
    bert_encoder.save(path)
    model = BERT.from_variant("base", pretrained=path, **sizes)
  print("From a file, equal:", equal(model, bert_encoder))

  # Mixed precision: models created under this policy compute in float16.
  keras.mixed_precision.set_global_policy("mixed_float16")
  model = BERT.from_variant("large", pretrained=weights["large"], weights_dataset="cased", **sizes)
  keras.mixed_precision.set_global_policy("float32")
  print("Computes in", model.compute_dtype, "and keeps", model.variable_dtype)


def equal(a, b) -> bool:
  """Whether all weights of two layers are equal."""
  pairs = zip(a.get_weights(), b.get_weights(), strict=True)
  return all(np.array_equal(x, y) for x, y in pairs)


if __name__ == "__main__":
  main()
