"""BERT's encoder in float64 and plain NumPy: the judge where two float32 results differ.

Slow and short on purpose; no code of `bert.model` is used, so it shares no fault with that.

Letters in shapes: S = sequence length, W = hidden size, N = heads, H = W / N.
"""

import json
import pathlib
from collections.abc import Sequence

import numpy as np


class ExactEncoder:
  """The vectors of the last layer for one text at a time."""

  def __init__(self, folder: pathlib.Path):
    """Reads a checkpoint of the original's format and its `bert_config.json`."""
    from bert.checkpoints import finding, numpy_reader

    self._config = json.loads((folder / "bert_config.json").read_text(encoding="utf-8"))
    if self._config["hidden_act"] != "gelu":
      raise ValueError(f"{folder}: hidden_act is {self._config['hidden_act']!r}, not 'gelu'.")
    self._values = numpy_reader.CheckpointReader(finding.find_checkpoint(folder))

  def __call__(self, input_ids: Sequence[int]) -> np.ndarray:
    """The vectors of a text's pieces: float64 `[S, W]`."""
    words, length = list(input_ids), len(input_ids)
    x = self._value("embeddings/word_embeddings")[words]
    x = x + self._value("embeddings/position_embeddings")[:length]
    x = self._layer_norm(x + self._value("embeddings/token_type_embeddings")[0], "embeddings")
    for layer in range(self._config["num_hidden_layers"]):
      x = self._layer(x, f"encoder/layer_{layer}")
    return x

  def _layer(self, x: np.ndarray, name: str) -> np.ndarray:
    attended = self._dense(self._attention(x, f"{name}/attention/self"), f"{name}/attention/output")
    x = self._layer_norm(x + attended, f"{name}/attention/output")
    inner = self._dense(x, f"{name}/intermediate")
    # The tanh form, as in `modeling.py` of 2018.
    inner = 0.5 * inner * (1 + np.tanh(np.sqrt(2 / np.pi) * (inner + 0.044715 * inner**3)))
    return self._layer_norm(x + self._dense(inner, f"{name}/output"), f"{name}/output")

  def _attention(self, x: np.ndarray, name: str) -> np.ndarray:
    heads = self._config["num_attention_heads"]
    query, key, value = (
      self._dense(x, name, part).reshape(len(x), heads, -1).transpose(1, 0, 2)  # [N, S, H]
      for part in ("query", "key", "value")
    )
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])  # [N, S, S]
    shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
    shares /= shares.sum(axis=-1, keepdims=True)
    return (shares @ value).transpose(1, 0, 2).reshape(x.shape)

  def _dense(self, x: np.ndarray, name: str, part: str = "dense") -> np.ndarray:
    return x @ self._value(f"{name}/{part}/kernel") + self._value(f"{name}/{part}/bias")

  def _layer_norm(self, x: np.ndarray, name: str) -> np.ndarray:
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 1e-12)
    return centred / scale * self._value(f"{name}/LayerNorm/gamma") + self._value(
      f"{name}/LayerNorm/beta"
    )

  def _value(self, name: str) -> np.ndarray:
    return self._values.read(f"bert/{name}").astype(np.float64)
