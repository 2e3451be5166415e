"""Writes checkpoints for the TensorFlow Model Garden, see `model_garden.py`.

  write("garden/bert_model.ckpt", tensors, config.family, layers=12, heads=12)

The Model Garden finds values by the paths of Python attributes, so the checkpoint holds a tree of
objects with the attributes of its `BertEncoder`, `BertEncoderV2` and `AlbertEncoder`, and of its
heads for pre-training. Its own code restores it:

  tf.train.Checkpoint(encoder=encoder).read("garden/bert_model.ckpt")
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.load_report import abbreviate
from bert.checkpoints.model_garden import FAMILIES, HEADS, axis_of_heads, is_output, names_of
from bert.model.families import Family

# Attribute of a layer -> the scope of its variables below that of the layer.
_ATTENTION = {
  "_query_dense": "self_attention/query",
  "_key_dense": "self_attention/key",
  "_value_dense": "self_attention/value",
  "_output_dense": "self_attention/attention_output",
}
_LAYER = {
  "_attention_layer_norm": "self_attention_layer_norm",
  "_intermediate_dense": "intermediate",
  "_output_dense": "output",
  "_output_layer_norm": "output_layer_norm",
}
# Of an encoder, in the order in which Keras numbers them; layers come before the pooler.
_ENCODER = {
  "_embedding_layer": "word_embeddings",
  "_position_embedding_layer": "position_embedding",
  "_type_embedding_layer": "type_embeddings",
  "_embedding_norm_layer": "embeddings/layer_norm",
  "_embedding_projection": "embedding_projection",
}
_POOLER = "pooler_transform"
# Trained with next sentences there, while the encoder's own stays as it was drawn: classifiers of
# the garden look for this one. Here they are the same, but one object restores only one.
_POOLER_OF_TASKS = "next_sentence/pooler_dense"


def write(
  prefix: str, tensors: Mapping[str, np.ndarray], family: Family, layers: int, heads: int
) -> list[str]:
  """Writes a checkpoint; returns names of tensors without a place there, such as those of a head.

  Args:
    prefix: its folder must exist.
    tensors: name in the original -> array.
    family: BERT or ALBERT.
    layers: number of layers with weights of their own.
    heads: number of attention heads.

  Raises:
    CheckpointError: the garden has no encoder of this family, or a variable of it is missing.
  """
  if family not in FAMILIES.values() or (layers != 1 and family.shares_layers):
    raise CheckpointError(
      f"The Model Garden has no encoder with these layers of {family.title}. BERTs can be written "
      "for it, and ALBERTs whose layers are all the same."
    )
  is_projected = f"bert/{family.projection}/kernel" in tensors
  names = names_of(family, layers, is_projected)
  if missing := [name for name in names if name not in tensors]:
    raise CheckpointError(
      f"The Model Garden's encoder needs what this model does not have: {abbreviate(missing)}."
    )
  here = {name: end for end, name in HEADS.items() if name in tensors and name not in names}
  variables = {
    there: tf.Variable(_as_there(name, tensors[name], heads), name=there)
    for name, there in {**here, **names}.items()
  }
  for leaf in ("kernel", "bias"):
    own = variables[f"{_POOLER}/{leaf}"]
    variables[f"{_POOLER_OF_TASKS}/{leaf}"] = tf.Variable(own, name=f"{_POOLER_OF_TASKS}/{leaf}")
  tf.train.Checkpoint(_module(_objects(variables, layers, family))).write(prefix)
  return [name for name in tensors if name not in names and name not in here]


def _as_there(name: str, values: np.ndarray, heads: int) -> np.ndarray:
  axis = axis_of_heads(name)
  if axis is None:
    return values.T if is_output(name) else values
  shape = values.shape
  return values.reshape(*shape[:axis], heads, shape[axis] // heads, *shape[axis + 1 :])


def _objects(variables: Mapping[str, tf.Variable], layers: int, family: Family) -> dict[str, Any]:
  """Returns the objects that a checkpoint of pre-training has at its root."""

  def parts(attributes: Mapping[str, str], below: str = "") -> dict[str, tf.Module]:
    found = {name: _leaves(variables, below + scope) for name, scope in attributes.items()}
    return {name: leaves for name, leaves in found.items() if leaves is not None}

  embeddings = parts(_ENCODER)
  stack = []
  for number in range(layers):
    scope = "transformer/" if family.shares_layers else f"transformer/layer_{number}/"
    attention = _module(parts(_ATTENTION, scope))
    stack.append(_module({"_attention_layer": attention, **parts(_LAYER, scope)}))
  pooler = _leaves(variables, _POOLER)
  numbered = [*embeddings.values(), *stack, pooler]
  encoder = _module(
    {
      **embeddings,
      "_transformer_layers": _module({str(number): layer for number, layer in enumerate(stack)}),
      "_pooler_layer": pooler,
      **{f"layer_with_weights-{number}": part for number, part in enumerate(numbered)},
    }
  )
  of_tasks = _leaves(variables, _POOLER_OF_TASKS)
  found = {
    "model": encoder,  # the name in released checkpoints
    "encoder": encoder,
    "next_sentence.pooler_dense": of_tasks,
    "save_counter": tf.Variable(1, dtype=tf.int64, name="save_counter"),  # `restore` wants one
  }
  words = parts(
    {"dense": "transform/dense", "layer_norm": "transform/LayerNorm"}, "cls/predictions/"
  )
  if words:
    bias = variables["cls/predictions/output_bias/bias"]
    table = variables["word_embeddings/embeddings"]
    found["masked_lm"] = _module(
      {**words, "bias": bias, "output_bias/bias": bias, "embedding_table": table}
    )
  if logits := _leaves(variables, "next_sentence/logits"):
    found["next_sentence"] = _module({"dense": of_tasks, "out_proj": logits})
  return found


def _leaves(variables: Mapping[str, tf.Variable], scope: str) -> tf.Module | None:
  """Returns an object with the variables of a scope as its attributes; None if there are none."""
  found = {name.removeprefix(f"{scope}/"): variable for name, variable in variables.items()}
  found = {leaf: variable for leaf, variable in found.items() if "/" not in leaf}
  return _module(found) if found else None


def _module(attributes: Mapping[str, Any]) -> tf.Module:
  module = tf.Module()
  for name, value in attributes.items():
    setattr(module, name, value)
  return module
