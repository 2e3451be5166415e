"""Names, shapes and values in a checkpoint, whatever its format.

  checkpoint = open_checkpoint("out/model.ckpt-20")
  checkpoint.contents["bert/pooler/dense/bias"]  # ([768], tf.float32)
  checkpoint.read("bert/pooler/dense/bias")

There are five formats: checkpoints of the original and of this project (`bundle_files.py`), the
variables of an encoder that was exported as a SavedModel, encoders of the TensorFlow Model Garden,
weights that transformers saved, and `.keras` files.
Opening one checks that its files are whole; values are read and checked one tensor at a time.
"""

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from bert.checkpoints import (
  bundle_files,
  keras_file,
  model_garden,
  object_graph,
  transformers_folder,
)
from bert.checkpoints.bundle_files import IN_SAVED_MODEL, CheckpointError, is_saved_model
from bert.checkpoints.load_report import ENCODER_SCOPES
from bert.checkpoints.object_graph import OBJECT_GRAPH
from bert.checkpoints.safetensors_file import SafetensorsError

# The errors of TensorFlow's readers for damaged files, found by flipping every byte of an index.
_READ_ERRORS = (tf.errors.OpError, IndexError, RuntimeError, ValueError)

Contents = dict[str, tuple[list[int], tf.DType]]  # name -> (shape, dtype), sorted by name


def open_checkpoint(prefix: str) -> "Bundle | ForeignWeights":
  """Opens a checkpoint, after checking that its files are whole.

  The values are not read: this takes milliseconds for a checkpoint of any size.

  Args:
    prefix: the checkpoint's prefix, for instance `out/model.ckpt-20`; a file of transformers'
      weights, `model.safetensors` or `model.safetensors.index.json`; or a `.keras` file.

  Raises:
    CheckpointError: a file is missing, damaged, or does not belong to the others.
  """
  is_foreign = transformers_folder.is_weights_file(prefix) or keras_file.is_keras_file(prefix)
  return ForeignWeights(prefix) if is_foreign else Bundle(prefix)


def names_and_shapes(prefix: str) -> Contents:
  """Name, shape and type of each tensor of a checkpoint, see `open_checkpoint`.

  A SavedModel lists its variables by their own names, not by the keys under which they are stored.
  """
  return open_checkpoint(prefix).contents


def read_tensors(prefix: str, names: Iterable[str]) -> dict[str, np.ndarray]:
  """Reads values of any model.

  Args:
    prefix: the checkpoint's prefix.
    names: a subset of those returned by `names_and_shapes`.

  Raises:
    CheckpointError: a file is damaged.
  """
  checkpoint = open_checkpoint(prefix)
  return {name: checkpoint.read(name).numpy() for name in names}


def read_do_lower_case(prefix: str) -> bool | None:
  """Whether the model of a run, of an export or of transformers is uncased; None if unknown.

  Raises:
    CheckpointError: a file is damaged.
  """
  return open_checkpoint(prefix).do_lower_case


def read_state(prefix: str) -> dict[str, Any]:
  """The `state` given to `save`; empty for a checkpoint without a sidecar, as the original's.

  Raises:
    CheckpointError: the sidecar is damaged, or of a newer version of this project.
  """
  return bundle_files.read_sidecar(prefix).get("state", {})


def read_facts(prefix: str) -> dict[str, Any]:
  """What is known of the task of a model: the fingerprint of its run, or of transformers' folders
  and `.keras` files what their configuration says; empty for other checkpoints.

  Raises:
    ValueError: the sidecar or the configuration is damaged.
  """
  if transformers_folder.is_weights_file(prefix):
    return transformers_folder.read_facts(prefix)
  if keras_file.is_keras_file(prefix):
    return keras_file.KerasFile(prefix).facts
  return read_state(prefix).get("fingerprint", {})


class ForeignWeights:
  """Weights that transformers or Keras saved, under the original's names.

  Attributes:
    prefix: path of the file, or of the index of several.
    contents: see `Contents`.
    do_lower_case: see `read_do_lower_case`.
  """

  def __init__(self, path: str):
    """See `open_checkpoint`."""
    self.prefix = path
    self._weights: transformers_folder.Weights | keras_file.KerasFile
    if keras_file.is_keras_file(path):
      self._weights = keras_file.KerasFile(path)
      keras_file.warn_of_unread_heads(path, tuple(self._weights.model.left_out))
    else:
      try:
        self._weights = transformers_folder.open_weights(path)
      except SafetensorsError as error:
        raise CheckpointError(str(error)) from None
    self.contents: Contents = {
      name: (list(shape), tf.as_dtype(dtype))
      for name, (shape, dtype) in self._weights.contents.items()
    }

  @property
  def do_lower_case(self) -> bool | None:
    """See class; a tokenizer that was saved beside the weights says it."""
    return transformers_folder.read_do_lower_case(self.prefix)

  def read(self, name: str) -> tf.Tensor:
    """One tensor; the format has no checksums.

    Raises:
      CheckpointError: the file has changed since it was opened.
    """
    try:
      return tf.convert_to_tensor(self._weights.read(name))
    except SafetensorsError as error:
      raise CheckpointError(str(error)) from None


class Bundle:
  """A checkpoint of TensorFlow's format, also that of an exported encoder, and the Model Garden's.

  Attributes:
    prefix: of its files.
    contents: see `Contents`.
    do_lower_case: see `read_do_lower_case`.
  """

  def __init__(self, prefix: str):
    """See `open_checkpoint`."""
    self.prefix = prefix
    shards = bundle_files.data_files(prefix)
    try:
      self._reader = tf.compat.v1.train.NewCheckpointReader(prefix)
      shapes = self._reader.get_variable_to_shape_map()
      dtypes = self._reader.get_variable_to_dtype_map()
    except _READ_ERRORS as error:
      raise CheckpointError(f"{prefix}.index is damaged: {first_line(error)}") from None
    contents: Contents = {name: (shapes[name], dtypes[name]) for name in sorted(shapes)}
    _check_data_size(prefix, contents, shards)
    bundle_files.check_sidecar(prefix)
    self._keys: dict[str, str] = {}  # name -> key, where they differ
    self._places: dict[str, model_garden.Place] = {}
    if OBJECT_GRAPH in contents:
      contents = self._renamed(contents)
    self.contents = contents

  @property
  def do_lower_case(self) -> bool | None:
    """See class."""
    key = self._keys.get("do_lower_case")
    if key is not None:
      return bool(self._reader.get_tensor(key))
    stored = read_facts(self.prefix).get("do_lower_case")
    return stored if isinstance(stored, bool) else None

  def read(self, name: str) -> tf.Tensor:
    """One tensor, checked against its CRC-32C.

    Raises:
      CheckpointError: it is damaged.
    """
    key, dtype = self._keys.get(name, name), self.contents[name][1]
    try:
      with tf.device("CPU:0"):
        [value] = tf.raw_ops.RestoreV2(
          prefix=self.prefix, tensor_names=[key], shape_and_slices=[""], dtypes=[dtype]
        )
    except _READ_ERRORS as error:
      files = ", ".join(bundle_files.data_files(self.prefix))
      raise CheckpointError(f"{files}: {key} is damaged: {first_line(error)}") from None
    if name in self._places:
      return tf.convert_to_tensor(model_garden.arranged(value.numpy(), self._places[name]))
    return value

  def _renamed(self, contents: Contents) -> Contents:
    """What an object-based checkpoint contains, by names; unchanged if they are not BERT's.

    TensorFlow 2 stores values under paths of Python attributes, such as
    `variables/0/.ATTRIBUTES/VARIABLE_VALUE`, and beside them the graph of objects with their names.
    """
    try:
      graph = self._reader.get_tensor(OBJECT_GRAPH)
      keys = {name: every[0] for name, every in object_graph.keys_of(graph).items()}
    except _READ_ERRORS as error:
      raise CheckpointError(
        f"{self.prefix}: {OBJECT_GRAPH} is damaged: {first_line(error)}"
      ) from None
    shapes = {key: tuple(shape) for key, (shape, _) in contents.items()}
    encoder = model_garden.find_encoder(self.prefix, graph, shapes)
    if encoder is None:
      if not (self._is_export() and any(name.startswith(ENCODER_SCOPES) for name in keys)):
        return contents
      self._keys = keys
      # Other variables, such as `do_lower_case`, are not weights.
      named = {name: contents[key] for name, key in sorted(keys.items())}
      return {name: found for name, found in named.items() if found[1].is_floating}
    self._places = encoder.places
    self._keys = {name: place.key for name, place in encoder.places.items()}
    if model_garden.DO_LOWER_CASE in contents:
      self._keys["do_lower_case"] = model_garden.DO_LOWER_CASE
    return {
      name: (list(place.shape), contents[place.key][1]) for name, place in encoder.places.items()
    }

  def _is_export(self) -> bool:
    folder = self.prefix.removesuffix(IN_SAVED_MODEL)
    return folder != self.prefix and is_saved_model(folder)


def _check_data_size(prefix, contents, shards):
  """Raises an error if data files are shorter or longer than the index declares.

  This comes before any tensor is read, and in Python's integers: an index that declares terabytes
  is refused, not allocated.
  """
  declared_bytes = sum(
    int(np.prod(shape, dtype=object)) * dtype.size
    for shape, dtype in contents.values()
    if dtype != tf.string
  )
  stored_bytes = sum(bundle_files.describe(path)["bytes"] for path in shards)
  # Only the length of a string tensor is unknown here; object-based checkpoints have one.
  exact = all(dtype != tf.string for _, dtype in contents.values())
  if stored_bytes < declared_bytes or (exact and stored_bytes != declared_bytes):
    raise CheckpointError(
      f"{', '.join(shards)}: {stored_bytes:,} bytes, but {prefix}.index declares tensors of "
      f"{declared_bytes:,} bytes. The file is truncated or belongs to another checkpoint."
    )


def first_line(error: BaseException) -> str:
  """The message of an error in one line, without the names of TensorFlow's operations."""
  text = getattr(error, "message", None) or str(error)
  text = re.sub(r"\{\{.*?\}\} ?| ?\[Op:\w+\]", "", text).strip()
  return text.splitlines()[0] if text else type(error).__name__


def check_named(prefix: str, names) -> None:
  """Checks that tensors have variables' names.

  Raises:
    CheckpointError: they are named after Python attributes.
  """
  if OBJECT_GRAPH in names:
    raise CheckpointError(
      f"{prefix} is an object-based checkpoint of Keras or TensorFlow 2 (it has a tensor "
      f"{OBJECT_GRAPH}): its tensors are named after Python attributes, not after BERT's "
      f"variables. Of such checkpoints {model_garden.READ_HERE}. Load it with the code that wrote "
      "it, and write its values under BERT's names with `saving.save`; or use the model's "
      "TensorFlow 1 release."
    )
