"""Reads the weights in a `.keras` file by the original's names, without Keras.

  file = KerasFile("model.keras")
  file.contents["bert/pooler/dense/bias"]      # ((768,), dtype('float32'))
  file.read("bert/pooler/dense/bias")
  file.model.config                            # content of a bert_config.json
  file.facts                                   # the task, and names for its labels

Such a file is an archive of a description (`config.json`) and of arrays (`model.weights.h5`). Keras
names them by Python's attributes: `bert/encoder_layers/transformer_layer_3/attention/key/vars/0`.
The classes of `bert.keras3` are found wherever in the model they are, so models of a user's own
classes can be read too. No code in the file is run, and nothing but the asked values is read.
"""

import functools
import io
import json
import os
import re
import weakref
import zipfile
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from absl import logging

from bert.checkpoints import keras_model, tensor_files, transformers_folder
from bert.checkpoints.bundle_files import CheckpointError
from bert.io import filesystem
from bert.model.families import Family, LayerNames

_CONFIG = "config.json"
_WEIGHTS = "model.weights.h5"
_MAX_CONFIG_BYTES = 100_000_000

# Part of the encoder: the scope of its variables in the original.
_PARTS = {
  "embeddings/layer_norm": "embeddings/LayerNorm",
  "pooler": "pooler/dense",
  "final_norm": "encoder/LayerNorm",
}
_PROJECTION = "embedding_projection"
_TABLES = ("word_embeddings", "token_type_embeddings", "position_embeddings")
_NORMS = {
  "layer_norm": ("gamma", "beta"),
  "rms_norm": ("scale",),
  "batch_norm": ("gamma", "beta", "moving_mean", "moving_variance"),
  "dynamic_tanh": ("alpha", "gamma", "beta"),
}


class KerasFile:
  """A `.keras` file with a BERT of `bert.keras3`, alone or inside another model.

  Attributes:
    path: of the file.
    contents: the original's name -> (shape, dtype of NumPy), sorted by name; of heads only those
      that the original has, see `keras_model.describe`.
  """

  def __init__(self, path: str | os.PathLike):
    """Reads the description and the names of the arrays.

    Raises:
      CheckpointError: it is not a whole `.keras` file, or contains no BERT or several.
    """
    self.path = os.fspath(path)
    config, self._h5 = _open(self.path)
    # HDF5 closes what is open when the process ends. That file is one of Python's, which is gone by
    # then: a model that is still held would end a finished program in a segmentation fault.
    weakref.finalize(self, self._h5.close)
    self._layers = list(keras_model.layers_of(config))
    self._datasets = self._find_datasets()
    self.contents = {n: _described(self._datasets[n]) for n in sorted(self._datasets)}
    for name, (_, dtype) in self.contents.items():
      if dtype.kind != "f" and dtype.name != "bfloat16":
        raise CheckpointError(
          f"{self.path}: {name} is {dtype.name}: quantized models are not read."
        )

  @property
  def model(self) -> keras_model.KerasModel:
    """What the model is.

    Raises:
      CheckpointError: it computes something that the original does not have.
    """
    try:
      return keras_model.describe(self._layers)
    except CheckpointError as error:
      raise CheckpointError(f"{self.path}: {error}") from None

  @property
  def facts(self) -> dict[str, Any]:
    """What is known of the task, see `reading.read_facts`; a Keras model has no names of labels."""
    model = self.model
    bias = keras_model.bias_of_labels(model)
    if bias is None:
      return model.facts
    [count] = self.contents[bias][0]
    return {**model.facts, "labels": [f"LABEL_{index}" for index in range(count)]}

  @property
  def do_lower_case(self) -> bool | None:
    """What the configuration of a tokenizer beside the file says; None without one."""
    return transformers_folder.read_do_lower_case(self.path)

  def read(self, name: str) -> np.ndarray:
    """One array.

    Raises:
      CheckpointError: no array has this name, or the file is damaged.
    """
    if name not in self._datasets:
      raise CheckpointError(f"{self.path} has nothing for {name}.")
    try:
      values = self._datasets[name][()]
    except (OSError, RuntimeError, ValueError) as error:
      raise CheckpointError(f"{self.path}: {name} is damaged: {error}") from None
    dtype = self.contents[name][1]
    return values if values.dtype == dtype else values.view(dtype)

  # -------------------------------------------------------------------------------------------
  # Where the variables are.

  def _find_datasets(self) -> dict[str, Any]:
    """The original's name -> the array."""
    groups = _groups(self._h5)
    encoders = [p for p in groups if {"embeddings", "encoder_layers"} <= set(groups[p])]
    keras_model.check_one_encoder(len(encoders), self.path)
    found = self._encoder_datasets(groups[encoders[0]])
    try:
      heads = keras_model.describe(self._layers).heads
    except CheckpointError:
      heads = {}  # whoever needs them asks for `model`
    for layer_name, head in heads.items():
      group = _head_group(groups, encoders[0], layer_name)
      for part, names in keras_model.variable_names(head, self._family).items():
        found |= _named(group, part, names)
    if "MultipleChoiceHead" in heads.values() and not np.any(found.get("output_bias", [True])):
      del found["output_bias"]  # all choices would share it, so the original has none
    return found

  def _encoder_datasets(self, encoder) -> dict[str, Any]:
    norm = _NORMS.get(self._arguments.get("normalization_type", "layer_norm"), ())
    family = self._family

    def variables_of(part: str, scope: str) -> tuple[str, ...]:
      leaves: tuple[str, ...] = ("kernel", "bias")
      if part.endswith("norm"):
        leaves = ("scale",) if part.endswith("head_norm") else norm
      elif part == "attention":
        leaves = ("lambda",)
      return tuple(f"{family.scope}/{scope}/{leaf}" for leaf in leaves)

    has_rows = self._arguments.get("type_vocab_size") != 0
    tables = [name for name in _TABLES if has_rows or name != "token_type_embeddings"]
    found = _named(encoder, "embeddings", tuple(f"{family.scope}/embeddings/{t}" for t in tables))
    projection = {_PROJECTION: family.projection} if family.projection else {}
    for part, scope in (_PARTS | projection).items():
      found |= _named(encoder, part, variables_of(part, scope))
    # Keras comes to the pooler by the list of all layers, before it comes to the attribute.
    for rest in encoder.get("layers", {}):
      found |= _named(encoder, f"layers/{rest}", variables_of("pooler", "pooler/dense"))
    scopes = self._layer_scopes(len(encoder["encoder_layers"]))
    for key in encoder["encoder_layers"]:
      number = int(re.search(r"\d*$", key)[0] or 0)  # transformer_layer, transformer_layer_1, ...
      for part, scope in _parts_of_layer(family.layer).items():
        names = variables_of(part, f"encoder/{scopes[number]}/{scope}")
        found |= _named(encoder, f"encoder_layers/{key}/{part}", names)
    return found

  def _layer_scopes(self, count: int) -> list[str]:
    """The scopes of the layers with weights of their own, in Keras' order."""
    family = self._family
    sizes = {**family.keys, **keras_model.keys_of(self._arguments)}
    if not family.shares_layers:
      sizes["num_hidden_layers"] = count
    scopes = list(dict.fromkeys(family.layer_scopes(SimpleNamespace(**sizes))))
    if len(scopes) != count:
      raise CheckpointError(
        f"{self.path} has {count} layers, but its {_CONFIG} describes {len(scopes)}."
      )
    return scopes

  @functools.cached_property
  def _arguments(self) -> Mapping[str, Any]:
    """Those of the encoder; empty in a file of a user's own class that does not describe it."""
    [arguments] = [each.config for each in self._layers if each.kind == "BERT"] or [{}]
    return arguments

  @property
  def _family(self) -> Family:
    try:
      return keras_model.family_of(self._arguments)
    except CheckpointError as error:
      raise CheckpointError(f"{self.path}: {error}") from None


def _parts_of_layer(names: LayerNames) -> dict[str, str]:
  """Part of a layer: the scope of its variables below that of the layer."""
  return {
    "attention": names.attention,
    **{f"attention/{part}": f"{names.attention}/{part}" for part in ("query", "key", "value")},
    "attention/head_norm": f"{names.attention}/head_layer_norm",
    "attention/output_dense": names.attention_output,
    "attention_norm": names.attention_norm,
    "feed_forward/intermediate": names.intermediate,
    "feed_forward/gate": f"{names.intermediate.rpartition('/')[0]}/gate",
    "feed_forward/output_dense": names.output,
    "output_norm": names.output_norm,
  }


def open_weights(path: str | os.PathLike) -> KerasFile:
  """Opens a file whose model the original has; heads of the Keras side alone are named, not read.

  Raises:
    CheckpointError: see `KerasFile`, and `KerasFile.model`.
  """
  file = KerasFile(path)
  _warn_of_unread_heads(file.path, tuple(file.model.left_out))
  return file


@functools.cache  # logs once per file
def _warn_of_unread_heads(path: str, left_out: tuple[str, ...]) -> None:
  """Names the heads that only the Keras side has, see `KerasModel.left_out`."""
  if left_out:
    logging.warning("%s: not read are the heads %s.", path, "; ".join(left_out))


def read_facts(path: str | os.PathLike) -> dict[str, Any]:
  """See `KerasFile.facts`."""
  return KerasFile(path).facts


def read_config(path: str | os.PathLike) -> dict[str, Any]:
  """The content of the `bert_config.json` of the model in a `.keras` file.

  Raises:
    CheckpointError: see `KerasFile`, and `KerasFile.model`.
  """
  return KerasFile(path).model.config


def _named(group, part: str, names: tuple[str, ...]) -> dict[str, Any]:
  """The arrays of a part of a layer by these names, as many as there are."""
  variables = group.get(f"{part}/vars" if part else "vars", {})
  return {name: variables[str(i)] for i, name in enumerate(names) if str(i) in variables}


def _groups(h5) -> dict[str, Any]:
  """Path -> group, of all groups in a file."""
  import h5py

  groups = {"": h5}

  def note(path, item):
    if isinstance(item, h5py.Group):
      groups[path] = item

  h5.visititems(note)
  return groups


def _head_group(groups, encoder: str, layer_name: str):
  """The group of a head, by the layer's name."""
  inside = f"{encoder}/" if encoder else "embeddings/"
  outside = [p for p in groups if f"{p}/vars" in groups and not f"{p}/".startswith(inside)]
  for path in outside:
    if groups[f"{path}/vars"].attrs.get("name") == layer_name:
      return groups[path]
  return next((groups[path] for path in outside if os.path.basename(path) == layer_name), {})


def _described(dataset) -> tuple[tuple[int, ...], np.dtype]:
  if dataset.attrs.get("dtype") == "bfloat16":
    return dataset.shape, tensor_files.bfloat16()
  return dataset.shape, dataset.dtype


# ---------------------------------------------------------------------------------------------
# The archive.


def _open(path: str):
  """The content of `config.json`, and the open file of arrays."""
  import h5py  # installed with Keras and with TensorFlow

  try:
    file = filesystem.open_to_read(path)
    with zipfile.ZipFile(file) as archive:
      info = archive.getinfo(_CONFIG)
      if info.file_size > _MAX_CONFIG_BYTES:
        raise ValueError(f"its {_CONFIG} has {info.file_size:,} bytes")
      config = json.loads(archive.read(_CONFIG))
      h5 = h5py.File(_member(archive, file, archive.getinfo(_WEIGHTS)), "r")
  except zipfile.BadZipFile:
    raise CheckpointError(f"{path} is not a whole .keras file: model.save writes one.") from None
  except KeyError as error:
    raise CheckpointError(f"{path} is not a whole .keras file: {error.args[0]}.") from None
  except FileNotFoundError:
    raise CheckpointError(f"{path} does not exist.") from None
  except (OSError, ValueError, RecursionError, RuntimeError) as error:
    raise CheckpointError(f"{path} is not a whole .keras file: {error}") from None
  return config, h5


def _member(archive, file, info: zipfile.ZipInfo) -> io.IOBase:
  """A member as a file that can be read at any place."""
  if info.compress_type != zipfile.ZIP_STORED:  # not by Keras
    return io.BytesIO(archive.read(info))
  return _Section(file, tensor_files.start_of_member(file, info), info.file_size)


class _Section(io.RawIOBase):
  """A part of a file as a file: going back in an archive's member would read it from its start."""

  def __init__(self, file, start: int, size: int):
    super().__init__()
    self._file, self._start, self._size, self._place = file, start, size, 0

  def readable(self) -> bool:
    """See base class."""
    return True

  def seekable(self) -> bool:
    """See base class."""
    return True

  def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
    """See base class."""
    base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._size}[whence]
    self._place = base + offset
    return self._place

  def readinto(self, buffer) -> int:
    """See base class."""
    self._file.seek(self._start + self._place)
    data = self._file.read(max(min(len(buffer), self._size - self._place), 0))
    buffer[: len(data)] = data
    self._place += len(data)
    return len(data)
