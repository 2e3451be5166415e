"""Checkpoints by variable name: the original's files, written so that a crash cannot spoil them.

A checkpoint is a *prefix*, such as `out/model.ckpt-20`, and the files whose names it begins:

  model.ckpt-20.data-00000-of-00001   the values, one tensor after the other
  model.ckpt-20.index                 name -> type, shape, place in the data file, CRC-32C
  model.ckpt-20.state.json            what is not a variable: data position, random state, ...
  checkpoint                          text file naming the newest prefix and those kept

The first two and the last are what TensorFlow 1's `Saver` writes and reads, and tensors carry the
original's names (`bert/embeddings/word_embeddings`, its slots `.../adam_m` and `.../adam_v`,
`global_step`), so either side continues what the other began. The sidecar `state.json` is this
project's own; the original's checkpoints have none.

How `save` survives being killed at any moment:

  1. everything is written into a sub-folder `.tmp-model.ckpt-20`, and forced to disk;
  2. the files are renamed into place, the index last: files without an index do not exist for any
     reader, so this one rename makes the checkpoint visible;
  3. the `checkpoint` file is replaced, by a rename too;
  4. only then are checkpoints beyond `keep` removed, their index first.

How a reader tells a whole checkpoint from a damaged one, without reading gigabytes: the index
verifies its own blocks, the sizes it declares must add up to the size of the data files, and the
sidecar holds the size of each file and the CRC-32 of the index. The values themselves are checked
against the index's CRC-32C when they are read.
"""

import contextlib
import dataclasses
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from absl import logging

from bert.checkpoints import transformers_folder
from bert.checkpoints.safetensors_file import SafetensorsError
from bert.io.atomic_files import force_to_disk, write_text

SIDECAR_VERSION = 1

_DATA_SUFFIX = ".data-00000-of-00001"
_SIDECAR_SUFFIX = ".state.json"
_FILE_SUFFIX = re.compile(r"\.(index|meta|state\.json|data-(\d{5})-of-(\d{5}))$")
_STEP_NAME = re.compile(r"model\.ckpt-(\d+)$")
_TEMPORARY = ".tmp-"  # folder of a checkpoint that is being written
_REPLACED = ".old-"  # folder of a complete checkpoint whose step is being written again
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
_IN_SAVED_MODEL = os.path.join("variables", "variables")  # prefix of the checkpoint in a SavedModel

# What TensorFlow's readers raise on damaged files; seen by flipping every byte of an index.
_READ_ERRORS = (tf.errors.OpError, IndexError, RuntimeError, ValueError)


class CheckpointError(ValueError):
  """A checkpoint is missing, damaged, of another kind, or does not fit the model."""


# ---------------------------------------------------------------------------------------------
# Reading


def names_and_shapes(prefix: str) -> dict[str, tuple[list[int], tf.DType]]:
  """Name, shape and type of each tensor of a checkpoint, after checking that its files are whole.

  The values are not read: that costs milliseconds whatever the size of the checkpoint. A SavedModel
  lists its variables by their own names, not by the keys they are stored under.

  Args:
    prefix: the checkpoint's prefix, for instance `out/model.ckpt-20`; or a file of transformers'
      weights, `model.safetensors` or `model.safetensors.index.json`.

  Returns:
    name -> (shape, dtype), sorted by name.

  Raises:
    CheckpointError: a file is missing, damaged, or does not belong to the others.
  """
  if transformers_folder.is_weights_file(prefix):
    contents = _open_transformers(prefix).contents
    return {name: (list(shape), tf.as_dtype(dtype)) for name, (shape, dtype) in contents.items()}
  shards = _data_files(prefix)
  index_path = prefix + ".index"
  try:
    reader = tf.compat.v1.train.NewCheckpointReader(prefix)
    shapes, dtypes = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
  except _READ_ERRORS as error:
    raise CheckpointError(f"{index_path} is damaged: {first_line(error)}") from None
  contents = {name: (shapes[name], dtypes[name]) for name in sorted(shapes)}
  _check_data_size(prefix, contents, shards)
  _check_sidecar(prefix)
  if keys := _keys_in_saved_model(prefix):
    contents = {name: contents[key] for name, key in sorted(keys.items())}
    # What is not a weight, `do_lower_case` and the like, is of no use to a model.
    contents = {name: found for name, found in contents.items() if found[1].is_floating}
  return contents


def _open_transformers(path: str) -> transformers_folder.Weights:
  """Weights that transformers saved, under the original's names."""
  try:
    return transformers_folder.open_weights(path)
  except SafetensorsError as error:
    raise CheckpointError(str(error)) from None


def _keys_in_saved_model(prefix: str) -> dict[str, str]:
  """Variable's name -> key of its tensor, in an exported encoder; empty for other checkpoints.

  TensorFlow 2 stores values under paths of Python attributes, such as
  `variables/0/.ATTRIBUTES/VARIABLE_VALUE`, and beside them the graph of objects with their names.
  """
  folder = prefix.removesuffix(_IN_SAVED_MODEL)
  if folder == prefix or not _is_saved_model(folder):
    return {}
  from tensorflow.core.protobuf import trackable_object_graph_pb2

  graph = trackable_object_graph_pb2.TrackableObjectGraph()
  try:
    graph.ParseFromString(tf.train.load_checkpoint(prefix).get_tensor(_OBJECT_GRAPH))
  except _READ_ERRORS as error:
    raise CheckpointError(f"{prefix}: {_OBJECT_GRAPH} is damaged: {first_line(error)}") from None
  attributes = [attribute for node in graph.nodes for attribute in node.attributes]
  keys = {a.full_name: a.checkpoint_key for a in attributes if a.name == "VARIABLE_VALUE"}
  return keys if any(name.startswith("bert/") for name in keys) else {}


def _is_saved_model(folder: str) -> bool:
  return bool({"saved_model.pb", "saved_model.pbtxt"} & set(_list_folder(folder)))


def read_state(prefix: str) -> dict[str, Any]:
  """The `state` given to `save`; empty for a checkpoint without a sidecar, as the original's.

  Raises:
    CheckpointError: the sidecar is damaged, or of a newer version of this project.
  """
  return _read_sidecar(prefix).get("state", {})


def read_tensors(prefix: str, names: Iterable[str]) -> dict[str, np.ndarray]:
  """Reads values, whatever model they belong to.

  Args:
    prefix: the checkpoint's prefix.
    names: some of those that `names_and_shapes` gives.

  Raises:
    CheckpointError: a file is damaged.
  """
  contents, keys = names_and_shapes(prefix), _keys_in_saved_model(prefix)
  return {
    name: _read_tensor(prefix, keys.get(name, name), contents[name][1]).numpy() for name in names
  }


def read_do_lower_case(prefix: str) -> bool | None:
  """Whether an exported model, or transformers', is an uncased one; None if nothing says."""
  if transformers_folder.is_weights_file(prefix):
    return transformers_folder.read_do_lower_case(prefix)
  key = _keys_in_saved_model(prefix).get("do_lower_case")
  return None if key is None else bool(tf.train.load_checkpoint(prefix).get_tensor(key))


def restore(prefix: str, variables: Mapping[str, tf.Variable]) -> None:
  """Assigns every variable its value in the checkpoint; nothing may be missing or differ.

  All names, shapes and types are compared before the first value is read. Values are read and
  assigned one at a time. If one of them proves damaged, those before it are already assigned.

  Args:
    prefix: the checkpoint's prefix.
    variables: name in the checkpoint -> variable. `global_step` may be int32 or int64.

  Raises:
    CheckpointError: a variable is missing or differs in shape or type; or a file is damaged.
  """
  contents = names_and_shapes(prefix)
  missing = [name for name in variables if name not in contents]
  mismatched = [
    _Mismatch.of(name, contents[name], variable)
    for name, variable in variables.items()
    if name in contents and not _fits_exactly(name, contents[name], variable)
  ]
  if missing or mismatched:
    lines = [f"{prefix} does not fit this model:"]
    lines += [f"{name}: not in the checkpoint" for name in missing]
    lines += map(str, mismatched)
    raise CheckpointError("\n  ".join(lines))
  # Evaluation has no slots: that it leaves those of the checkpoint alone goes without saying.
  trains = any(map(is_training_state, variables))
  unused = [n for n in contents if n not in variables and (trains or not is_training_state(n))]
  if unused:
    logging.info("%s: %d tensors not used: %s", prefix, len(unused), abbreviate(unused))
  keys = _keys_in_saved_model(prefix)
  for name, variable in variables.items():
    _assign(variable, prefix, keys.get(name, name), contents[name][1])


class _Mismatch(NamedTuple):
  """A variable that differs in shape or type; the texts read like `float32 [2, 768]`."""

  name: str
  in_checkpoint: str
  in_model: str

  @classmethod
  def of(cls, name, found, variable):
    shape, dtype = found
    return cls(
      name,
      f"{tf.as_dtype(dtype).name} {list(shape)}",
      f"{variable.dtype.name} {variable.shape.as_list()}",
    )

  def __str__(self):
    return f"{self.name}: {self.in_checkpoint} in the checkpoint, {self.in_model} in the model"


@dataclasses.dataclass(frozen=True)
class LoadReport:
  """What `init_from_checkpoint` did, by variable name.

  Attributes:
    prefix: the checkpoint.
    loaded: variables that took their value from it.
    missing: variables it does not have; they keep their random values.
    unexpected: its tensors that are not in the model (training state, never read, not counted).
    mismatched: (name, in_checkpoint, in_model) of variables left out because shapes differ.
    required_scope: the part of the model that should have come from the checkpoint.
  """

  prefix: str
  loaded: list[str]
  missing: list[str]
  unexpected: list[str]
  mismatched: list[_Mismatch]
  required_scope: str = "bert/"

  def summary(self) -> str:
    """A few lines for people: counts and names, long lists cut short."""
    wanted = len(self.loaded) + len(self.missing) + len(self.mismatched)
    lines = [f"Initialised from {self.prefix}: {len(self.loaded)} of {wanted} variables loaded."]
    random_body = [name for name in self.missing if name.startswith(self.required_scope)]
    random_rest = [name for name in self.missing if not name.startswith(self.required_scope)]
    if random_body:
      lines.append(
        f"  WARNING: {len(random_body)} variables of {self.required_scope} are not in the "
        f"checkpoint and start from random values: {abbreviate(random_body)}"
      )
    if random_rest:
      lines.append(f"  missing, start fresh ({len(random_rest)}): {abbreviate(random_rest)}")
    lines += [
      f"  other shape, so the head starts fresh: {mismatch}" for mismatch in self.mismatched
    ]
    if self.unexpected:
      lines.append(
        f"  unexpected, not used ({len(self.unexpected)}): {abbreviate(self.unexpected)}"
      )
    return "\n".join(lines)


def init_from_checkpoint(
  prefix: str, variables: Mapping[str, tf.Variable], required_scope: str = "bert/"
) -> LoadReport:
  """Gives the variables that the checkpoint has, by name, their value; the others keep theirs.

  The state of a training run (Adam slots, `global_step`) is neither read nor missed. A variable
  outside `required_scope`, that is of a head, whose shape differs is skipped and reported, where
  the original stopped: a classifier for three classes may start from one for two.

  Args:
    prefix: the checkpoint's prefix, see `find_checkpoint`.
    variables: name in the checkpoint -> variable.
    required_scope: variables whose name starts so must have the checkpoint's shape if it has them.

  Returns:
    What was loaded and what was not. Print its `summary()`.

  Raises:
    CheckpointError: a shape differs under `required_scope`, no variable there (or none at all) is
      in the checkpoint, or a file is damaged. Nothing is assigned, except in the last case.
  """
  contents = names_and_shapes(prefix)
  _refuse_object_based(prefix, contents)
  wanted = {name: v for name, v in variables.items() if not is_training_state(name)}
  common = [name for name in wanted if name in contents]
  mismatched = [
    _Mismatch.of(name, contents[name], wanted[name])
    for name in common
    if not _fits_after_cast(contents[name], wanted[name])
  ]
  _check_required(prefix, list(wanted), list(contents), mismatched, required_scope)
  skipped = {mismatch.name for mismatch in mismatched}
  loaded = [name for name in common if name not in skipped]
  keys = _keys_in_saved_model(prefix)
  for name in loaded:
    _assign(wanted[name], prefix, keys.get(name, name), contents[name][1])
  return LoadReport(
    prefix=prefix,
    loaded=loaded,
    missing=[name for name in wanted if name not in contents],
    unexpected=[n for n in contents if n not in variables and not is_training_state(n)],
    mismatched=mismatched,
    required_scope=required_scope,
  )


def is_training_state(name: str) -> bool:
  """Whether a name belongs to a run (Adam slots, step, loss scale) rather than to the model.

  Example:
    >>> is_training_state("bert/pooler/dense/kernel/adam_m"), is_training_state("global_step")
    (True, True)
    >>> is_training_state("loss_scale/scale"), is_training_state("bert/pooler/dense/kernel")
    (True, False)
  """
  return name == "global_step" or name.startswith("loss_scale/") or is_slot(name)


def is_slot(name: str) -> bool:
  """Whether a name belongs to the optimizer's memory of a variable."""
  return name.endswith(("/adam_m", "/adam_v"))


def abbreviate(names: list[str], limit: int = 4) -> str:
  """Joins names, at most `limit` of them.

  Example:
    >>> abbreviate(["a", "b", "c", "d"], limit=3)
    'a, b, c and 1 more'
  """
  rest = len(names) - limit
  return ", ".join(names[:limit]) + (f" and {rest} more" if rest > 0 else "")


def _check_required(prefix, wanted, found, mismatched, required_scope):
  """Refuses a checkpoint of another model: other shapes in the body, or no name in common."""
  wrong = [str(m) for m in mismatched if m.name.startswith(required_scope)]
  if wrong:
    raise CheckpointError(
      f"{prefix} is of a model with other sizes (compare its bert_config.json):\n  "
      + "\n  ".join(wrong[:10])
      + (f"\n  and {len(wrong) - 10} more" if len(wrong) > 10 else "")
    )
  body = [name for name in wanted if name.startswith(required_scope)] or wanted
  if not set(body) & set(found):
    raise CheckpointError(
      f"{prefix} has none of the variables that this model would take from it.\n"
      f"  The model asks for: {abbreviate(body)}\n"
      f"  The checkpoint has: {abbreviate(found)}"
    )


def _fits_exactly(name, found, variable) -> bool:
  shape, dtype = found
  same_type = dtype == variable.dtype
  if name == "global_step":
    same_type = dtype.is_integer and variable.dtype.is_integer
  return same_type and list(shape) == variable.shape.as_list()


def _fits_after_cast(found, variable) -> bool:
  shape, dtype = found
  same_type = dtype == variable.dtype or (dtype.is_floating and variable.dtype.is_floating)
  return same_type and list(shape) == variable.shape.as_list()


def _assign(variable, prefix, name, dtype):
  """Reads one tensor and assigns it."""
  # Lifted out of any traced function: a value read while tracing is assigned once, not each step.
  with tf.init_scope():
    variable.assign(tf.cast(_read_tensor(prefix, name, dtype), variable.dtype))


def _read_tensor(prefix, name, dtype):
  """Reads one tensor, checked against its CRC-32C; transformers' files have none."""
  if transformers_folder.is_weights_file(prefix):
    return tf.convert_to_tensor(_open_transformers(prefix).read(name))
  try:
    with tf.device("CPU:0"):
      [value] = tf.raw_ops.RestoreV2(
        prefix=prefix, tensor_names=[name], shape_and_slices=[""], dtypes=[dtype]
      )
  except _READ_ERRORS as error:
    files = ", ".join(_data_files(prefix))
    raise CheckpointError(f"{files}: {name} is damaged: {first_line(error)}") from None
  return value


def _data_files(prefix: str) -> list[str]:
  """The data files of a checkpoint.

  Raises:
    CheckpointError: there is no index, or not all the data files.
  """
  if not tf.io.gfile.exists(prefix + ".index"):
    raise CheckpointError(f"{prefix}.index does not exist.")
  present = _files(prefix)
  for path in present:
    count = _FILE_SUFFIX.search(path).group(3)
    shards = [f"{prefix}.data-{i:05}-of-{count}" for i in range(int(count or 0))]
    if shards and set(shards) <= set(present):
      return shards
  raise CheckpointError(f"{prefix}: data files are missing, found only {', '.join(present)}.")


def _check_data_size(prefix, contents, shards):
  """Refuses data files that are shorter or longer than what the index declares.

  This comes before any tensor is read, and in Python's integers: an index that declares terabytes
  is refused, not allocated.
  """
  declared_bytes = sum(
    int(np.prod(shape, dtype=object)) * dtype.size
    for shape, dtype in contents.values()
    if dtype != tf.string
  )
  stored_bytes = sum(_describe(path)["bytes"] for path in shards)
  # Only the length of a string is unknown here. Object-based checkpoints have one.
  exact = all(dtype != tf.string for _, dtype in contents.values())
  if stored_bytes < declared_bytes or (exact and stored_bytes != declared_bytes):
    raise CheckpointError(
      f"{', '.join(shards)}: {stored_bytes:,} bytes, but {prefix}.index declares tensors of "
      f"{declared_bytes:,} bytes. The file is truncated or belongs to another checkpoint."
    )


def _read_sidecar(prefix: str) -> dict[str, Any]:
  """The sidecar's content, or an empty dict if there is none."""
  path = prefix + _SIDECAR_SUFFIX
  if not tf.io.gfile.exists(path):
    return {}
  try:
    sidecar = json.loads(_read_bytes(path))
    if sidecar.pop("crc32") != _checksum(sidecar):
      raise ValueError("its checksum is wrong")
  except (*_READ_ERRORS, AttributeError, KeyError, TypeError, RecursionError) as error:
    raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None
  if sidecar["format_version"] != SIDECAR_VERSION:
    raise CheckpointError(
      f"{path} has format_version {sidecar['format_version']!r}, this program reads "
      f"{SIDECAR_VERSION}: use the version of the project that wrote it."
    )
  return sidecar


def _check_sidecar(prefix: str) -> None:
  """Refuses files that are not those the sidecar was written for."""
  for suffix, expected in _read_sidecar(prefix).get("files", {}).items():
    found = _describe(prefix + suffix)
    if found != expected:
      raise CheckpointError(
        f"{prefix}{suffix} is not the file that {prefix}{_SIDECAR_SUFFIX} describes "
        f"(found {found}, expected {expected}). If another program wrote it over ours, delete "
        f"{prefix}{_SIDECAR_SUFFIX} to use it without its state."
      )


def _describe(path: str) -> dict[str, int]:
  """Size, and of an index the CRC-32; the index holds a checksum of each tensor of a data file."""
  try:
    description = {"bytes": tf.io.gfile.stat(path).length}
    if path.endswith(".index"):
      description["crc32"] = zlib.crc32(_read_bytes(path))
  except tf.errors.OpError as error:
    raise CheckpointError(f"{path} cannot be read: {first_line(error)}") from None
  return description


def _checksum(content: Mapping[str, Any]) -> int:
  return zlib.crc32(json.dumps(content, sort_keys=True).encode())


# ---------------------------------------------------------------------------------------------
# Finding


def latest(directory: str) -> str | None:
  """The checkpoint to resume from: the one `directory/checkpoint` names, if it is whole.

  Otherwise the newest whole one, with a warning that names what was skipped and why.

  Returns:
    A prefix, or None if there is no whole checkpoint.
  """
  directory = os.fspath(directory)
  candidates = [prefix for _, prefix in reversed(_numbered_prefixes(directory))]
  skipped = []
  try:
    pointed = [os.path.join(directory, name) for name in _read_pointer(directory)[:1]]
  except CheckpointError as error:
    pointed, skipped = [], [str(error)]
  for prefix in dict.fromkeys(pointed + candidates):
    problem = _problem(prefix)
    if problem is None:
      break
    skipped.append(problem)
  else:
    prefix = None
  if skipped:
    logging.warning("Resuming from %s. Skipped: %s", prefix or "nothing", " | ".join(skipped))
  return prefix


def list_checkpoints(directory: str) -> list[tuple[int, str]]:
  """(step, prefix) of the whole checkpoints `model.ckpt-STEP` of a directory, by ascending step."""
  whole = {}
  for step, prefix in _numbered_prefixes(os.fspath(directory)):
    if _problem(prefix) is None:
      whole[step] = prefix
  return sorted(whole.items())


def find_checkpoint(path: str) -> str:
  """The prefix that a user means by `--init_checkpoint=path`.

  Args:
    path: a prefix; one of its files; a directory that this project or the original trained in; the
      folder of a released model, with its `bert_model.ckpt`; an exported encoder's folder, or the
      one around it; or a folder that transformers saved, with its `model.safetensors`.

  Returns:
    The prefix of a whole checkpoint whose variables have BERT's names; of transformers' weights,
    which have none, their file.

  Raises:
    CheckpointError: there is none; the message says what is there, and what to do.
  """
  path = os.fspath(path)
  prefix = _FILE_SUFFIX.sub("", path)
  is_whole = tf.io.gfile.exists(prefix + ".index")
  if not is_whole and not (transformers_folder.is_weights_file(path) and os.path.isfile(path)):
    prefix = _find_in_folder(path) if tf.io.gfile.isdir(path) else _explain_absence(path)
  _refuse_object_based(prefix, names_and_shapes(prefix))
  return prefix


def _find_in_folder(folder: str) -> str:
  names = _list_folder(folder)
  if _is_saved_model(folder):
    return _find_in_saved_model(folder)
  newest = latest(folder)
  if newest:
    return newest
  encoder = os.path.join(folder, "encoder")
  if _is_saved_model(encoder):
    return _find_in_saved_model(encoder)
  prefixes = [name.removesuffix(".index") for name in names if name.endswith(".index")]
  if "bert_model.ckpt" in prefixes:
    prefixes = ["bert_model.ckpt"]
  if len(prefixes) == 1:
    return os.path.join(folder, prefixes[0])
  if prefixes:
    raise CheckpointError(f"{folder} has several checkpoints, name one: {abbreviate(prefixes, 10)}")
  try:
    weights = transformers_folder.find_weights(folder)
  except SafetensorsError as error:
    raise CheckpointError(str(error)) from None
  if weights:
    return weights
  raise CheckpointError(f"{folder} has no checkpoint (no *.index file).{_nearby(folder)}")


def _find_in_saved_model(folder: str) -> str:
  prefix = os.path.join(folder, _IN_SAVED_MODEL)
  if not tf.io.gfile.exists(prefix + ".index") or _OBJECT_GRAPH in names_and_shapes(prefix):
    raise CheckpointError(
      f"{folder} is a SavedModel whose variables do not have BERT's names (bert/...). Give an "
      "encoder that this project exported; or a checkpoint: a prefix such as out/model.ckpt-1000, "
      "or the folder of a released model."
    )
  return prefix


def _explain_absence(path: str) -> str:
  if path.endswith((".zip", ".tar.gz", ".tgz")):
    raise CheckpointError(f"{path} is an archive: unpack it, and give the folder it makes.")
  if tf.io.gfile.exists(path):
    raise CheckpointError(
      f"{path} is not a TensorFlow checkpoint, which has a file {path}.index beside it."
    )
  folder = os.path.dirname(path) or "."
  if not tf.io.gfile.isdir(folder):
    raise CheckpointError(f"No checkpoint {path}: the folder {folder} does not exist.")
  raise CheckpointError(f"No checkpoint {path}: {path}.index does not exist.{_nearby(folder)}")


def _nearby(folder: str) -> str:
  """Names the checkpoints in a folder and directly below it, in a sentence."""
  subfolders = [os.path.join(folder, name) for name in _list_folder(folder)][:100]
  prefixes = [
    os.path.join(place, name.removesuffix(".index"))
    for place in [folder, *filter(tf.io.gfile.isdir, subfolders)]
    for name in _list_folder(place)
    if name.endswith(".index")
  ]
  return f" Nearby: {abbreviate(prefixes, 5)}" if prefixes else ""


def _refuse_object_based(prefix, names):
  if _OBJECT_GRAPH in names:
    raise CheckpointError(
      f"{prefix} is an object-based checkpoint of Keras or TensorFlow 2 (it has a tensor "
      f"{_OBJECT_GRAPH}): its tensors are named after Python attributes, not after BERT's "
      "variables. Load it with the code that wrote it, and write its values under BERT's names "
      "with checkpoint.save; or use the model's TensorFlow 1 release."
    )


def _problem(prefix: str) -> str | None:
  """Why a checkpoint cannot be used; None if it is whole."""
  try:
    names_and_shapes(prefix)
  except CheckpointError as error:
    return str(error)
  return None


def _numbered_prefixes(directory: str) -> list[tuple[int, str]]:
  """(step, prefix) of everything with an index, whole or not, by ascending step.

  Of two with the same step, the later in the list is the one in its regular place.
  """
  prefixes = []
  for entry in _list_folder(directory):
    name = entry.removeprefix(_REPLACED).removesuffix(".index")
    match = _STEP_NAME.match(name)
    if match and entry == _REPLACED + name:
      prefixes.append((int(match.group(1)), os.path.join(directory, entry, name)))
    elif match and entry == name + ".index":
      prefixes.append((int(match.group(1)), os.path.join(directory, name)))
  regular_last = sorted(prefixes, key=lambda item: (item[0], _REPLACED not in item[1]))
  return [item for item in regular_last if tf.io.gfile.exists(item[1] + ".index")]


def _read_pointer(directory: str) -> list[str]:
  """What the `checkpoint` file names: the current one, then all, oldest first; [] without a file.

  Raises:
    CheckpointError: there is a file, but it names nothing.
  """
  path = os.path.join(directory, "checkpoint")
  try:
    text = _read_bytes(path).decode("utf-8") if tf.io.gfile.exists(path) else None
  except _READ_ERRORS as error:
    raise CheckpointError(f"{path} is damaged: {first_line(error)}") from None
  if text is None:
    return []
  pattern = r'^\s*{}:\s*"([^"\n]+)"'
  current = re.findall(pattern.format("model_checkpoint_path"), text, re.MULTILINE)
  every = re.findall(pattern.format("all_model_checkpoint_paths"), text, re.MULTILINE)
  if not current:
    raise CheckpointError(f"{path} is damaged: no model_checkpoint_path in it")
  return [_relocated(name) for name in current[:1] + every]


def _relocated(name: str) -> str:
  """An absolute path that is gone was written before the directory moved: look beside us."""
  gone = os.path.isabs(name) and not tf.io.gfile.exists(name + ".index")
  return os.path.basename(name) if gone else name


# ---------------------------------------------------------------------------------------------
# Writing


def save(
  directory: str,
  step: int,
  tensors: Mapping[str, Any],
  state: Mapping[str, Any],
  keep: int | None = 5,
) -> str:
  """Writes a checkpoint `directory/model.ckpt-STEP`, completely or not at all.

  Args:
    directory: local folder, created if it does not exist.
    step: number of finished training steps.
    tensors: name -> tensor, variable or array. On an accelerator they are all copied to the host.
    state: what is not a variable, for `read_state`; anything JSON can hold.
    keep: how many checkpoints to keep, this one included; None or 0 keeps all.

  Returns:
    The prefix.

  Raises:
    CheckpointError: it cannot be written. Earlier checkpoints are as they were.
    TypeError: `state` is not JSON-able.
  """
  directory = os.fspath(directory)
  if "://" in directory:
    raise CheckpointError(f"Checkpoints are written to local folders only, not to {directory}.")
  name = f"model.ckpt-{int(step)}"
  temporary = os.path.join(directory, _TEMPORARY + name)
  state = json.loads(json.dumps(dict(state)))  # fails here, before the heavy work, or never
  tensors = {name: tf.convert_to_tensor(tensor) for name, tensor in tensors.items()}
  try:
    os.makedirs(directory, exist_ok=True)
    _remove_leftovers(directory)
    _write_aside(os.path.join(temporary, name), tensors, state)
    _move_into_place(temporary, directory, name)
    kept, superseded = _retention(directory, name, keep)
    _write_pointer(directory, kept)
  except (OSError, tf.errors.OpError, CheckpointError) as error:
    shutil.rmtree(temporary, ignore_errors=True)
    raise CheckpointError(_explain_failure(directory, name, tensors, error)) from None
  _purge(directory, superseded)
  return os.path.join(directory, name)


def clean(newest: str, keep: int | None = 5) -> None:
  """Removes what a killed `save` has left beside the checkpoint that it wrote.

  The next `save` would do so, too, but after the last step of a run there is none.

  Args:
    newest: what `latest` finds in a folder where nobody is saving.
    keep: as of `save`.
  """
  directory, name = os.path.split(newest)
  match = _STEP_NAME.match(name)
  if not match or _REPLACED in directory:
    return  # Another program's; or its successor is still to be written, which is up to `save`.
  _, superseded = _retention(directory, name, keep)
  # A later one, which the `checkpoint` file does not know of, may have been put there by hand.
  earlier = [n for n in superseded if int(_STEP_NAME.match(n).group(1)) < int(match.group(1))]
  _remove_leftovers(directory)
  _purge(directory, earlier)


def _write_aside(prefix, tensors, state):
  """Writes the files of a checkpoint, forces them to disk, and reads the index back."""
  os.makedirs(os.path.dirname(prefix))
  with tf.device("CPU:0"):
    tf.raw_ops.SaveV2(
      prefix=prefix,
      tensor_names=list(tensors),
      shape_and_slices=[""] * len(tensors),
      tensors=list(tensors.values()),
    )
  sidecar = {
    "format_version": SIDECAR_VERSION,
    "files": {suffix: _describe(prefix + suffix) for suffix in (_DATA_SUFFIX, ".index")},
    "state": state,
  }
  sidecar["crc32"] = _checksum(sidecar)
  write_text(prefix + _SIDECAR_SUFFIX, json.dumps(sidecar, indent=2) + "\n")
  for suffix in (_DATA_SUFFIX, ".index"):
    force_to_disk(prefix + suffix)
  names_and_shapes(prefix)  # a file that came out short never replaces anything


def _move_into_place(temporary, directory, name):
  """Renames the files of a checkpoint to their final names, the index last."""
  prefix = os.path.join(directory, name)
  if tf.io.gfile.exists(prefix + ".index") and _problem(prefix) is None:
    _keep_replaced(directory, name)
  _delete(prefix)
  for suffix in (_DATA_SUFFIX, _SIDECAR_SUFFIX):
    os.replace(os.path.join(temporary, name + suffix), prefix + suffix)
  force_to_disk(directory)  # or a power cut may keep the next rename and lose these
  os.replace(os.path.join(temporary, name + ".index"), prefix + ".index")
  force_to_disk(directory)
  shutil.rmtree(temporary, ignore_errors=True)


def _keep_replaced(directory, name):
  """Gives a complete checkpoint a second name until its successor of the same step is complete.

  It happens after going back: resumed from step 10, a run reaches 20 again. Without this, killing
  it between two renames would leave neither the old step 20 nor the new one.
  """
  folder = os.path.join(directory, _REPLACED + name)
  shutil.rmtree(folder, ignore_errors=True)
  os.makedirs(folder)
  for path in reversed(_files(os.path.join(directory, name))):
    twin = os.path.join(folder, os.path.basename(path))
    try:
      os.link(path, twin)
    except OSError:  # a file system without hard links
      shutil.copy2(path, twin)
      force_to_disk(twin)
  force_to_disk(folder)
  force_to_disk(directory)


def _retention(directory, name, keep):
  """Splits the whole checkpoints into those to keep, the newest last, and those to remove.

  The order is that of writing, as in TensorFlow's `Saver`, not that of steps: after going back to
  step 10, the later steps of the abandoned run go first.
  """
  try:
    listed = [os.path.basename(path) for path in _read_pointer(directory)[1:]]
  except CheckpointError:
    listed = []
  whole = [os.path.basename(p) for _, p in list_checkpoints(directory) if _REPLACED not in p]
  rank = {other: position for position, other in enumerate(listed)}
  by_age = sorted((other for other in whole if other != name), key=lambda n: rank.get(n, -1))
  by_age.append(name)
  first_kept = max(0, len(by_age) - keep) if keep else 0
  return by_age[first_kept:], by_age[:first_kept]


def _write_pointer(directory, names):
  """Replaces the `checkpoint` file: a CheckpointState message in protobuf's text format."""
  lines = [f'model_checkpoint_path: "{names[-1]}"']
  lines += [f'all_model_checkpoint_paths: "{name}"' for name in names]
  write_text(os.path.join(directory, "checkpoint"), "\n".join(lines) + "\n")


def _remove_leftovers(directory):
  """Removes what an interrupted `save` left: unfinished folders, and files without an index."""
  names = _list_folder(directory)
  for name in names:
    path = os.path.join(directory, name)
    stem = _FILE_SUFFIX.sub("", name)
    if name.startswith(_TEMPORARY) and _STEP_NAME.match(name.removeprefix(_TEMPORARY)):
      shutil.rmtree(path, ignore_errors=True)
    elif _STEP_NAME.match(stem) and stem != name and stem + ".index" not in names:
      with contextlib.suppress(OSError):
        os.remove(path)


def _purge(directory, names):
  """Removes superseded checkpoints. A failure costs disk space, not the run."""
  for name in names:
    try:
      _delete(os.path.join(directory, name))
    except OSError as error:
      logging.warning("Cannot remove an old checkpoint, going on with it: %s", error)
  for name in _list_folder(directory):
    if name.startswith(_REPLACED) and _STEP_NAME.match(name.removeprefix(_REPLACED)):
      shutil.rmtree(os.path.join(directory, name), ignore_errors=True)


def _delete(prefix):
  """Removes the files of a checkpoint, the index first: the rest is then invisible."""
  for path in _files(prefix):
    os.remove(path)


def _explain_failure(directory, name, tensors, error) -> str:
  size_mib = sum(t.shape.num_elements() * t.dtype.size for t in tensors.values()) / 2**20
  try:
    free = f"{shutil.disk_usage(directory).free / 2**20:,.1f} MiB free there"
  except OSError:
    free = "free space unknown"
  return (
    f"Cannot write {os.path.join(directory, name)} ({size_mib:,.1f} MiB, {free}): "
    f"{first_line(error)}. Earlier checkpoints are untouched."
  )


# ---------------------------------------------------------------------------------------------
# Files


def _files(prefix: str) -> list[str]:
  """The files of a checkpoint, its index first."""
  folder, stem = os.path.split(prefix)
  suffixes = [name[len(stem) :] for name in _list_folder(folder or ".") if name.startswith(stem)]
  suffixes = [suffix for suffix in suffixes if _FILE_SUFFIX.fullmatch(suffix)]
  return [prefix + suffix for suffix in sorted(suffixes, key=lambda s: (s != ".index", s))]


def _list_folder(folder: str) -> list[str]:
  """Sorted names in a folder, empty if it does not exist; works on remote file systems too."""
  try:
    return sorted(name.rstrip("/") for name in tf.io.gfile.listdir(folder))
  except tf.errors.OpError:
    return []


def _read_bytes(path: str) -> bytes:
  with tf.io.gfile.GFile(path, "rb") as file:
    return file.read()


def first_line(error: BaseException) -> str:
  """What an error says, in one line, without the names of TensorFlow's operations."""
  text = getattr(error, "message", None) or str(error)
  text = re.sub(r"\{\{.*?\}\} ?| ?\[Op:\w+\]", "", text).strip()
  return text.splitlines()[0] if text else type(error).__name__
