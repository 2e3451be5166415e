"""Attention maps: the attention of each word piece to every other, per layer and head.

  attend = Predictor.load("uncased_L-12_H-768_A-12", task="attention_maps")
  [(tokens, maps)] = attend("The cat sat on the mat.")      # float32 [L, N, S, S]

The encoder does not store its maps, to save time and memory. They are computed again here from
the input of each layer, with its queries and keys.

Letters in shapes: B = batch size, L = layers, N = heads, S = sequence length, H = size of one head,
W = hidden size.
"""

import math
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from absl import logging

from bert.predicting import sentence_vectors
from bert.predicting.processors import ItemRows, Processor

DEFAULT_LENGTH = 64
"""Of a text whose maps are drawn: word pieces."""
SERVED_LENGTH = 128
"""The most word pieces of a map in a server: memory grows with the square, for all heads."""


def attention_maps(bert_config, model, input_mask, scope: str | None = None):
  """Returns the attention probabilities of a model that is built for inference.

  Args:
    bert_config: its `BertConfig`.
    model: a `modeling.BertModel`; call this under its variable store.
    input_mask: int `[B, S]`, 1 for a word piece.
    scope: that of the model, as in `modeling.BertModel`.

  Returns:
    float32 `[B, L, N, S, S]`: from each piece to each other; the last axis sums to 1.
  """
  import tensorflow as tf

  hidden = (1.0 - tf.cast(input_mask, tf.float32))[:, tf.newaxis, tf.newaxis, :] * -10000.0
  inputs = [model.encoder_input, *model.get_all_encoder_layers()[:-1]]
  maps = []
  family = bert_config.family
  for layer_scope, states in zip(family.layer_scopes(bert_config), inputs, strict=True):
    place = f"{scope or family.scope}/encoder/{layer_scope}/{family.layer.attention}"
    query, key = (_heads(bert_config, states, f"{place}/{name}") for name in ("query", "key"))
    scores = tf.matmul(query, key, transpose_b=True)  # [B, N, S, S]
    size_per_head = bert_config.hidden_size // bert_config.num_attention_heads
    maps.append(tf.nn.softmax(scores / math.sqrt(size_per_head) + hidden))
  return tf.stack(maps, axis=1)


def _heads(bert_config, states, scope: str):
  """Returns a projection of `[B, S, W]`, split into heads: `[B, N, S, H]`."""
  import tensorflow as tf

  from bert.model.variables import get_variable

  projected = tf.matmul(states, get_variable(f"{scope}/kernel")) + get_variable(f"{scope}/bias")
  shape = tf.shape(states)
  heads = bert_config.num_attention_heads
  split = tf.reshape(projected, [shape[0], shape[1], heads, bert_config.hidden_size // heads])
  return tf.transpose(split, [0, 2, 1, 3])


def graph(config):
  """Returns a graph function for `engines.tensorflow.load_graph`: `maps`, `[B, L, N, S, S]`."""

  def build(features):
    from bert.modeling import BertModel

    model = BertModel(config, False, *(features[name] for name in sentence_vectors.INPUTS))
    return {"maps": attention_maps(config, model, features["input_mask"])}

  return build


class MapsProcessor(Processor):
  """A text or a pair to its S word pieces, and float32 `[L, N, S, S]`."""

  def __init__(self, tokenizer, max_seq_length: int):
    """Takes a tokenizer, and the most tokens of a text; of longer ones, a warning says so."""
    self.max_seq_length = max_seq_length
    self._tokenizer = tokenizer

  def featurize(self, item):
    """See `Processor`."""
    row = sentence_vectors.text_features(self._tokenizer, item, self.max_seq_length)
    if len(row["tokens"]) == self.max_seq_length:
      whole = len(sentence_vectors.text_features(self._tokenizer, item, sys.maxsize)["tokens"])
      if whole > self.max_seq_length:
        logging.warning(
          "The text has %d word pieces; the first max_seq_length = %d are read.",
          *(whole, self.max_seq_length),
        )
    return ItemRows(item, [row])

  def finish(self, rows, outputs):
    """See `Processor`."""
    tokens = rows[0]["tokens"]
    return tokens, np.array(outputs[0]["maps"][..., : len(tokens), : len(tokens)])


# ---------------------------------------------------------------------------------------------
# One map of a text, as a server is asked for it.


class OneMap:
  """An engine of maps that returns the one that each row names."""

  inputs = (*sentence_vectors.INPUTS, "place")

  def __init__(self, engine: Any):
    """Takes an engine of `maps`."""
    self.name = engine.name
    self._engine = engine

  def __call__(self, batch):
    """Computes `map`, float32 `[B, S, S]`; `place` of the batch is int `[B, 2]`, layer and head."""
    maps = self._engine(batch)["maps"]
    layers, heads = np.asarray(batch["place"]).T
    return {"map": maps[np.arange(len(maps)), layers, heads]}


class MapProcessor(Processor):
  """A text or a pair, with `layer` and `head` from 0, to `tokens` and `map`, float32 `[S, S]`."""

  def __init__(self, tokenizer, max_seq_length: int, num_layers: int, num_heads: int):
    """Takes a tokenizer, the most tokens of a text, and the numbers of layers and heads."""
    self.max_seq_length = max_seq_length
    self._tokenizer = tokenizer
    self._numbers = {"layer": num_layers, "head": num_heads}

  def featurize(self, item):
    """See `Processor`; an item is a text, a pair, or a dict of texts, `layer` and `head`."""
    place, texts = [0, 0], item
    if isinstance(item, Mapping):
      place = [self._checked(name, item.get(name, 0)) for name in self._numbers]
      texts = {name: value for name, value in item.items() if name not in self._numbers}
    row = sentence_vectors.text_features(self._tokenizer, texts, self.max_seq_length)
    return ItemRows(texts, [{**row, "place": place}])

  def finish(self, rows, outputs):
    """See `Processor`."""
    tokens = rows[0]["tokens"]
    return {"tokens": tokens, "map": np.array(outputs[0]["map"][: len(tokens), : len(tokens)])}

  def _checked(self, name: str, value: Any) -> int:
    if type(value) is not int or not 0 <= value < self._numbers[name]:
      raise ValueError(f"{name} is {value!r:.40}, but must be from 0 to {self._numbers[name] - 1}.")
    return value
