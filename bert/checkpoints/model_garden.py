"""Encoders of the TensorFlow Model Garden, BERT's and ALBERT's, under the original's names.

  encoder = open_encoder("bert_en_uncased_L-12_H-768_A-12/variables/variables")
  encoder.places["bert/encoder/layer_0/attention/self/query/kernel"].shape    # (768, 768)

They were published as SavedModels on TensorFlow Hub and as checkpoints of TensorFlow 2
(tensorflow/models, `official/nlp`). Both are object-based, so what counts is the names of variables
in their graph of objects. Modules are called otherwise than in the original, and attention keeps
its heads apart: a kernel of query, key or value is `[width, heads, size]`, that of the output
`[heads, size, width]`. All sizes follow from the shapes, except ALBERT's number of layers.

No TensorFlow is needed here.
"""

import dataclasses
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bert import families
from bert.checkpoints.bundle_files import IN_SAVED_MODEL, CheckpointError
from bert.checkpoints.load_report import abbreviate
from bert.checkpoints.numpy_reader import VALUE, CheckpointReader
from bert.families import Family
from bert.io import filesystem

DO_LOWER_CASE = f"do_lower_case/{VALUE}"  # in a SavedModel from TensorFlow Hub
READ_HERE = "the Model Garden's BertEncoder and AlbertEncoder are read"

Shape = tuple[int, ...]


class Place(NamedTuple):
  """Where a variable of the original is."""

  key: str  # of the tensor
  shape: Shape  # the original's
  is_transposed: bool = False  # whether rows and columns are exchanged


@dataclasses.dataclass(frozen=True)
class Encoder:
  """An encoder that was found in a checkpoint."""

  family: Family  # of the model
  # Name in the original -> its place, of the encoder and its heads of pre-training.
  places: dict[str, Place]
  sizes: dict[str, Any]  # content of a `bert_config.json`, without ALBERT's number of layers
  left_out: list[str]  # names of other variables, such as those of other heads


# ---------------------------------------------------------------------------------------------
# Names.


@dataclasses.dataclass(frozen=True)
class _Names:
  """The garden's names of modules; the default are today's."""

  layers: str = "transformer"
  positions: str = "position_embedding/embeddings"
  segments: str = "type_embeddings/embeddings"
  embeddings_norm: str = "embeddings/layer_norm"
  attention_output: str = "self_attention/attention_output"


_TODAY = _Names()
_NAMES = {
  "transformer": _TODAY,
  "encoder": _Names(  # of the first two versions on TensorFlow Hub
    layers="encoder",
    positions="embedding_postprocessor/position_embeddings",
    segments="embedding_postprocessor/type_embeddings",
    embeddings_norm="embedding_postprocessor/layer_norm",
    attention_output="self_attention_output",
  ),
}
# Its two encoders: whether layers share their weights -> family.
FAMILIES = {each.shares_layers: each for each in families.FAMILIES.values() if each.scope == "bert"}
_QUERY = "self_attention/query/kernel"
_FIRST_QUERY = re.compile(rf"(|.*/)({'|'.join(_NAMES)})/(layer_\d+/)?{_QUERY}")
_SHARED = "transformer/group_0/inner_group_0"  # ALBERT's only layer
_POOLER = "bert/pooler/dense"
_NEXT_SENTENCE = "cls/seq_relationship/output_"

# Heads of pre-training: the end of a name there -> the original's.
HEADS = {
  f"cls/predictions/transform/{name}": f"cls/predictions/transform/{name}"
  for name in ("dense/kernel", "dense/bias", "LayerNorm/gamma", "LayerNorm/beta")
} | {
  "cls/predictions/output_bias/bias": "cls/predictions/output_bias",
  # A model with this head leaves its encoder's own pooler as it was drawn.
  "next_sentence/pooler_dense/kernel": f"{_POOLER}/kernel",
  "next_sentence/pooler_dense/bias": f"{_POOLER}/bias",
  "next_sentence/logits/kernel": f"{_NEXT_SENTENCE}weights",
  "next_sentence/logits/bias": f"{_NEXT_SENTENCE}bias",
}


def names_of(
  family: Family, layers: int, is_projected: bool = False, names: _Names = _TODAY
) -> dict[str, str]:
  """Returns the garden's name of each variable of an encoder, without its scope there.

  There are `layers` of them with weights of their own; `names` are of the version.

  Example:
    >>> names = names_of(families.BERT, 1)
    >>> names["bert/encoder/layer_0/attention/output/LayerNorm/beta"]
    'transformer/layer_0/self_attention_layer_norm/beta'
  """
  tables = {
    "bert/embeddings/word_embeddings": "word_embeddings/embeddings",
    "bert/embeddings/position_embeddings": names.positions,
    "bert/embeddings/token_type_embeddings": names.segments,
  }
  modules = {"bert/embeddings/LayerNorm": names.embeddings_norm, _POOLER: "pooler_transform"}
  if is_projected:
    modules[f"bert/{family.projection}"] = "embedding_projection"
  here = family.layer
  for number in range(layers):
    scope, there = f"bert/encoder/layer_{number}", f"{names.layers}/layer_{number}"
    if family.shares_layers:
      scope, there = f"bert/encoder/{_SHARED}", names.layers
    for part in ("query", "key", "value"):
      modules[f"{scope}/{here.attention}/{part}"] = f"{there}/self_attention/{part}"
    modules |= {
      f"{scope}/{here.attention_output}": f"{there}/{names.attention_output}",
      f"{scope}/{here.attention_norm}": f"{there}/self_attention_layer_norm",
      f"{scope}/{here.intermediate}": f"{there}/intermediate",
      f"{scope}/{here.output}": f"{there}/output",
      f"{scope}/{here.output_norm}": f"{there}/output_layer_norm",
    }
  for module, there in modules.items():
    leaves = ("gamma", "beta") if there.endswith("layer_norm") else ("kernel", "bias")
    tables |= {f"{module}/{leaf}": f"{there}/{leaf}" for leaf in leaves}
  return tables


# ---------------------------------------------------------------------------------------------
# Finding an encoder.


def find_encoder(reader: CheckpointReader) -> Encoder | None:
  """Finds the encoder in an object-based checkpoint; None for models of other origin.

  Files beside the checkpoint may tell what its shapes do not.

  Raises:
    CheckpointError: it is another encoder of the garden, there are several, or it is damaged.
  """
  try:
    keys = _without_optimizer(reader)
    scope, version, is_numbered = _scope_of(keys)
    if version is None:
      return None
    shapes = {name: tuple(reader.contents[every[0]][0]) for name, every in keys.items()}
    encoder = _take(scope, _NAMES[version], bool(is_numbered), keys, shapes)
    if _settings_beside(reader.prefix).get("norm_first") == "true":
      raise ValueError(
        f"{_OTHER} it normalizes before attention and feed-forward layers (norm_first); "
        f"{READ_HERE}."
      )
  except ValueError as error:
    raise CheckpointError(f"{reader.prefix}: {error}") from None
  return encoder


def _without_optimizer(reader: CheckpointReader) -> dict[str, list[str]]:
  is_slot = re.compile(r"optimizer/|.*\.OPTIMIZER_SLOT/").match
  kept = {
    name: [key for key in every if key in reader.contents and not is_slot(key)]
    for name, every in reader.variable_keys().items()
  }
  return {name: every for name, every in kept.items() if every}


def _scope_of(names) -> tuple[str, str | None, str | None]:
  """The scope of the encoder, the version of its names, and whether its layers have numbers."""
  matches = sorted(filter(None, map(_FIRST_QUERY.fullmatch, names)), key=lambda match: match[0])
  scopes = {match[1] for match in matches}
  if len(scopes) > 1:
    raise ValueError(f"it has several encoders, in {abbreviate(sorted(scopes), 5)}; one is needed.")
  if not matches:
    return "", None, None
  scope, version, number = matches[0].groups()
  return scope, version, number


def _take(scope: str, names: _Names, is_numbered: bool, keys, shapes) -> Encoder:
  """Returns the encoder, after checking that it has all variables of the original and no others."""
  family = FAMILIES[not is_numbered]
  layer = re.compile(rf"{re.escape(scope + names.layers)}/layer_(\d+)/")
  numbers = {int(match[1]) for match in map(layer.match, keys) if match}
  is_projected = bool(family.projection) and f"{scope}embedding_projection/kernel" in keys
  wanted = names_of(family, len(numbers) if is_numbered else 1, is_projected, names)
  wanted = {here: scope + there for here, there in wanted.items()}
  theirs = set(wanted.values())
  layers = f"{scope}{names.layers}/"
  others = [name for name in keys if name.startswith(layers) and name not in theirs]
  others += [name for name in keys if name.startswith(f"{scope}embedding_") and name not in theirs]
  if missing := [name for name in wanted.values() if name not in keys]:
    raise ValueError(f"{_OTHER} {abbreviate(missing)} is missing; {READ_HERE}.")
  if others:
    raise ValueError(f"{_OTHER} {family.title} has no {abbreviate(others)}; {READ_HERE}.")
  ends = tuple(HEADS)
  heads = [name for name in keys if name.endswith(ends)]
  wanted |= {HEADS[next(end for end in ends if name.endswith(end))]: name for name in heads}
  places = {here: _place(here, there, keys, shapes) for here, there in wanted.items()}
  sizes = _sizes(family, wanted, shapes)
  sizes |= {"num_hidden_layers": len(numbers)} if is_numbered else {}
  used = {*theirs, *heads, "save_counter"}
  left_out = [name for name in keys if name not in used and shapes[name]]
  return Encoder(family, dict(sorted(places.items())), sizes, left_out)


_OTHER = "it has an encoder of another kind:"


def _place(here: str, there: str, keys, shapes) -> Place:
  """Returns the place of a variable, after checking its number of dimensions."""
  if len(keys[there]) > 1:
    raise ValueError(f"it has several variables {there}, of several models; one is needed.")
  shape, axis = shapes[there], axis_of_heads(here)
  is_matrix = here.endswith(("/kernel", "_embeddings", "output_weights"))
  rank = (2 if is_matrix else 1) + (axis is not None)
  if len(shape) != rank:
    raise ValueError(
      f"{there} has the shape {list(shape)}, not one of {rank} dimensions; {READ_HERE}."
    )
  if axis is not None:
    shape = (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
  return Place(keys[there][0], shape[::-1] if is_output(here) else shape, is_output(here))


def is_output(name: str) -> bool:
  """Tells whether a variable is an output kernel, which the original has transposed."""
  return name.endswith("output_weights")


def axis_of_heads(name: str) -> int | None:
  """Finds which dimension of a variable of the original is two there, heads and their size.

  Example:
    >>> axis_of_heads("bert/encoder/layer_0/attention/self/query/kernel")
    1
    >>> axis_of_heads("bert/encoder/layer_0/attention/output/dense/kernel")
    0
  """
  if re.search(r"/self/(query|key|value)/(kernel|bias)$", name):
    return 1 if name.endswith("/kernel") else 0
  return 0 if re.search(r"/attention(_1)?/output/dense/kernel$", name) else None


def _sizes(family: Family, names: Mapping[str, str], shapes) -> dict[str, Any]:
  """Returns the configuration, from the shapes there."""

  def shape(name: str) -> Shape:
    return shapes[names[name]]

  attention = family.layer.attention
  layer = f"bert/encoder/{_SHARED if family.shares_layers else 'layer_0'}"
  query = names[f"{layer}/{attention}/query/kernel"]
  width, heads, size = shape(f"{layer}/{attention}/query/kernel")
  if heads * size != width:
    raise ValueError(
      f"{query} has {heads} heads of {size} at a width of {width}; here heads must divide the "
      "width among themselves."
    )
  words, narrow = shape("bert/embeddings/word_embeddings")
  return {
    **({} if family is families.BERT else {"model_type": family.name, "embedding_size": narrow}),
    "vocab_size": words,
    "hidden_size": width,
    "num_attention_heads": heads,
    "intermediate_size": shape(f"{layer}/{family.layer.intermediate}/kernel")[1],
    "max_position_embeddings": shape("bert/embeddings/position_embeddings")[0],
    "type_vocab_size": shape("bert/embeddings/token_type_embeddings")[0],
  }


# ---------------------------------------------------------------------------------------------
# What is not in the shapes: settings beside a checkpoint.

# Keras' own gelu is the erf form, the garden's the tanh form, which is also its default.
_ACTIVATIONS = {"Text>gelu": "gelu", "gelu": "gelu_erf", "relu": "relu", "tanh": "tanh"}
_SETTINGS = {  # as JSON in a graph, as YAML in `params.yaml`
  name: re.compile(rb'(?m)(?:"|^\s*)%s"?: *"?(?!null)([\w>]+)' % key)
  for name, key in {
    "norm_first": b"norm_first",
    "num_layers": b"num_layers",
    "activation": b"(?:inner|intermediate|hidden)_activation",
  }.items()
}


def _settings_beside(prefix: str) -> dict[str, str]:
  """`norm_first`, `num_layers` and `activation` of an encoder, as far as files tell."""
  folder, is_saved_model = os.path.dirname(prefix), prefix.endswith(IN_SAVED_MODEL)
  # With the layers' settings; the first since 2021.
  names = ["keras_metadata.pb", "saved_model.pb"] if is_saved_model else ["params.yaml"]
  folder = os.path.dirname(folder) if is_saved_model else folder
  files = filter(filesystem.is_file, (os.path.join(folder, name) for name in names))
  content = next(map(filesystem.read_bytes, files), b"")
  found = {name: pattern.search(content) for name, pattern in _SETTINGS.items()}
  settings = {name: match[1].decode("utf-8", "replace") for name, match in found.items() if match}
  if not is_saved_model and settings.get("activation") == "gelu":
    settings["activation"] = "Text>gelu"  # which this name stands for there
  return settings


def open_encoder(prefix: str) -> Encoder | None:
  """Finds the encoder in the files of a checkpoint; see `find_encoder`."""
  return find_encoder(CheckpointReader(prefix))


def holds_encoder(prefix: str) -> bool:
  """Tells whether a checkpoint has an encoder of the garden."""
  try:
    return open_encoder(prefix) is not None
  except ValueError:
    return False


def arranged(values: np.ndarray, place: Place) -> np.ndarray:
  """Returns the values of a tensor in the shape of the original's variable."""
  return np.ascontiguousarray(values.T if place.is_transposed else values).reshape(place.shape)


def config_of(prefix: str, encoder: Encoder) -> dict[str, Any]:
  """Returns the content of a configuration, from shapes and the settings beside them.

  Raises:
    ValueError: the number of layers is unknown, or the activation is one that BERT does not have.
  """
  settings = _settings_beside(prefix)
  name = settings.get("activation", "Text>gelu")
  if name not in _ACTIVATIONS:
    raise CheckpointError(f"{prefix}: {_OTHER} its activation is {name}; {READ_HERE}.")
  content = {**encoder.sizes, "hidden_act": _ACTIVATIONS[name]}
  if "num_hidden_layers" not in content:
    layers = settings.get("num_layers", "")
    if not layers.isdecimal():
      raise CheckpointError(
        f"{prefix}: its layers share their weights, so their number is not in it. Give the "
        "model's albert_config.json as --bert_config_file."
      )
    content["num_hidden_layers"] = int(layers)
  return content
