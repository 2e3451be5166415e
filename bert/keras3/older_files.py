"""Reads `.keras` files that were written when layers had other places.

Keras finds the variables of a layer in a file by the attributes that lead to it. A layer that finds
attributes of before in a file reads them for all of its sublayers, which then read nothing.
"""

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import keras
import numpy as np
from absl import logging

from bert.checkpoints import keras_model

LAYER = {
  **{role: f"attention/{role}" for role in ("query", "key", "value")},
  "attention_output": "attention/output_dense",
  "attention_norm": "attention_norm",
  "intermediate": "feed_forward/intermediate",
  "gate": "feed_forward/gate",
  "output": "feed_forward/output_dense",
  "output_norm": "output_norm",
}
"""Role in a `TransformerLayer` -> place in a file."""


def group(store: Any, mark: str) -> Mapping | None:
  """Returns what a file has of a layer, if that includes an attribute that it no longer has.

  Args:
    store: what `load_own_variables` was given.
    mark: the attribute.
  """
  file, path = getattr(store, "h5_file", {}), getattr(store, "_h5_entry_path", "")
  return file[path or "/"] if f"{path}/{mark}".strip("/") in file else None


def read_layer(layer, found: Mapping) -> None:
  """Reads a `TransformerLayer`."""
  for role in layer.scopes():
    assign(layer.part(role).weights, found[LAYER[role]])
  skip(layer)


def read_encoder(bert, found: Mapping) -> None:
  """Reads a `BERT`."""
  embeddings = bert.embeddings
  names = ("word_embeddings", "token_type_embeddings", "position_embeddings")
  tables = [getattr(embeddings, name) for name in names]
  assign([table for table in tables if table is not None], found["embeddings"])
  assign(embeddings.LayerNorm.weights, found["embeddings/layer_norm"])
  for index, layer in enumerate(bert.encoder.layer):
    name = f"transformer_layer_{index}" if index else "transformer_layer"
    read_layer(layer, found["encoder_layers"][name])
  if bert.projection is not None:
    assign(bert.projection.weights, found["embedding_projection"])
  if bert.encoder.LayerNorm is not None:
    assign(bert.encoder.LayerNorm.weights, found["final_norm"])
  if bert.pooler is not None and "layers" in found:  # not where it was part of a head
    pooler = max(name for name in found["layers"] if name.startswith("dense"))
    assign(bert.pooler.weights, found["layers"][pooler])
  skip(bert)


def read_masked_lm_head(head, found: Mapping) -> None:
  """Reads a `MaskedLMHead`."""
  assign([head.output_bias], found)
  assign(head.part("dense").weights, found["dense"])
  assign(head.part("norm").weights, found["layer_norm"])
  skip(head)


def read_model(model, store: Any) -> bool:
  """Reads a `PretrainedModel`: its encoder and its heads, wherever the file has them.

  Returns:
    Whether the file was written before.
  """
  encoder = "albert" if group(store, "albert") else "bert"
  found = group(store, f"{encoder}/encoder_layers")
  if not found:
    return False
  read_encoder(model.bert, found[encoder])
  places = {**found, **found.get("layers", {})}
  for layer, names, transposed in _heads(model):
    [name] = [name for name in names if name.split("/")[0] in places]
    head = places[name.split("/")[0]]
    if hasattr(layer, "output_bias"):
      read_masked_lm_head(layer, head)
    else:
      assign(layer.weights, head["/".join(name.split("/")[1:]) or "."], transposed)
  skip(model)
  if optimizer := getattr(model, "optimizer", None):  # absent before `compile`
    optimizer.load_own_variables = functools.partial(_read_optimizer, optimizer)
  return True


def _heads(model):
  """Yields layers behind an encoder, their places in a file, and whether it has the transpose."""
  if hasattr(model, "words"):
    yield model.words, ("masked_lm_head",), False
  if hasattr(model, "sentences"):
    yield model.sentences.part("scores"), ("next_sentence_head", "sentence_order_head"), True
  if hasattr(model, "discriminator_predictions"):
    yield model.discriminator_predictions.dense, ("discriminator/dense",), False
    yield model.discriminator_predictions.dense_prediction, ("discriminator/output_dense",), False
  if model.original:
    scores, hidden = model.dense_layers()
    name = "question_answering_head" if hasattr(model, "qa_outputs") else "classifier"
    yield scores, (name,), not keras_model.is_dense(model.original, model.bert.family)
    if hidden is not None:
      yield hidden, (f"{name}/hidden",), False


def _read_optimizer(optimizer: Any, store: Mapping) -> None:
  """Reads the state of an optimizer; that of transposed matrices is transposed, too."""
  vars(optimizer).pop("load_own_variables")
  values = [np.asarray(store[str(index)]) for index in range(len(store.keys()))]
  shapes = [tuple(variable.shape) for variable in optimizer.variables]
  if [value.size for value in values] != [int(np.prod(shape)) for shape in shapes]:
    logging.warning("The state of the optimizer in the file is of another model: not read.")
    return
  for variable, value, shape in zip(optimizer.variables, values, shapes, strict=True):
    variable.assign(value if value.shape == shape else value.T)


def assign(variables: Iterable[keras.Variable], found: Mapping, transposed: bool = False) -> None:
  """Reads variables; `transposed` are the matrices of scores in files."""
  for index, variable in enumerate(variables):
    value = np.asarray(found["vars"][str(index)])
    variable.assign(value.T if transposed else value)


def skip(layer: keras.layers.Layer) -> None:
  """Lets the sublayers of a layer read nothing from the file that is being read."""
  for each in layer._flatten_layers(include_self=False):
    for saveable in filter(None, (each, getattr(each, "seed_generator", None))):
      saveable.load_own_variables = functools.partial(_skip, saveable)


def _skip(saveable, store) -> None:
  del store
  vars(saveable).pop("load_own_variables", None)
