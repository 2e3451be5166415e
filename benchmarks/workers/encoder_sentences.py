"""sentence-transformers' encoder for `encoder_inference.py`: its modules, called on tokens.

The folder is one of transformers that this project wrote. `torch` is its default backend, `onnx`
the same modules on onnxruntime.
"""

import sys

import numpy as np
import torch
from encoder_inputs import make_inputs
from sentence_transformers import SentenceTransformer
from serving import milliseconds, serve

NAMES = ["input_ids", "attention_mask", "token_type_ids"]


class Encoders:
  """Answers requests."""

  def __init__(self, folder, vocab_size):
    self._model = SentenceTransformer(folder, device="cpu", local_files_only=True)
    self._vocab_size = int(vocab_size)

  def _features(self, batch, length, padded=False):
    arrays = make_inputs(batch, length, self._vocab_size, padded)
    return dict(zip(NAMES, map(torch.from_numpy, arrays), strict=True))

  @torch.inference_mode()
  def time(self, way, batch, length, seconds):
    """Median milliseconds of a call, pooling included."""
    del way
    features = self._features(batch, length)
    self._model(dict(features))
    return milliseconds(lambda: self._model(dict(features))["sentence_embedding"].numpy(), seconds)

  @torch.inference_mode()
  def outputs(self, way, batch, length, path):
    """Writes the vectors of the first tokens for inputs with padding."""
    del way
    outputs = self._model(self._features(batch, length, True))
    np.save(path, outputs["token_embeddings"][:, 0].numpy())


if __name__ == "__main__":
  encoders = Encoders(*sys.argv[1:])
  serve({"time": encoders.time, "outputs": encoders.outputs})
