"""The files of a checkpoint: their names, their sizes, and the sidecar with the state of a run.

A checkpoint is a *prefix*, such as `out/model.ckpt-20`, and the files whose names begin with it:

  model.ckpt-20.data-00000-of-00001   the values, one tensor after the other
  model.ckpt-20.index                 name -> type, shape, place in the data file, CRC-32C
  model.ckpt-20.state.json            what is not a variable: data position, random state, ...
  checkpoint                          text file naming the newest prefix and those kept

The first two and the last are what TensorFlow 1's `Saver` writes and reads, and tensors carry the
original's names (`bert/embeddings/word_embeddings`, its slots `.../adam_m` and `.../adam_v`,
`global_step`), so either program can continue a run of the other. The sidecar `state.json` is this
project's own; the original's checkpoints have none.

Damage is found without reading gigabytes: the index verifies its own
blocks, the sizes it declares must add up to the size of the data files, and the sidecar holds the
size of each file and the CRC-32 of the index. The values themselves are checked against the index's
CRC-32C when they are read.
"""

import json
import os
import re
import zlib
from collections.abc import Mapping
from typing import Any

from bert.io import filesystem
from bert.io.atomic_files import write_text

SIDECAR_VERSION = 1

INDEX_SUFFIX = ".index"
DATA_SUFFIX = ".data-00000-of-00001"
SIDECAR_SUFFIX = ".state.json"
KERAS_SUFFIX = ".keras"  # of a whole model of Keras, one file
FILE_SUFFIX = re.compile(r"\.(index|meta|state\.json|data-(\d{5})-of-(\d{5}))$")
STEP_NAME = re.compile(r"model\.ckpt-(\d+)$")
IN_SAVED_MODEL = os.path.join("variables", "variables")  # prefix of the checkpoint in a SavedModel
RELEASED = "bert_model.ckpt"  # the checkpoint of a released model, in its folder
BEST = "best"  # folder, in that of a run, of its best weights
OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"  # a tensor of object-based checkpoints
TEMPORARY = ".tmp-"  # folder of a checkpoint that is being written
REPLACED = ".old-"  # folder of a complete checkpoint whose step is being written again


class CheckpointError(ValueError):
  """A checkpoint is missing, damaged, of another format, or does not match the model."""


def is_saved_model(folder: str | os.PathLike) -> bool:
  """Tells whether a folder holds a SavedModel; OSError if its file system cannot be reached."""
  return bool({"saved_model.pb", "saved_model.pbtxt"} & set(filesystem.list_folder(folder)))


def files_of(prefix: str) -> list[str]:
  """Returns the files of a checkpoint, its index first."""
  folder, stem = os.path.split(prefix)
  suffixes = [
    name[len(stem) :] for name in filesystem.list_folder(folder or ".") if name.startswith(stem)
  ]
  suffixes = [suffix for suffix in suffixes if FILE_SUFFIX.fullmatch(suffix)]
  return [prefix + suffix for suffix in sorted(suffixes, key=lambda s: (s != ".index", s))]


def data_files(prefix: str) -> list[str]:
  """Lists a checkpoint's data files; CheckpointError without an index, or if one is missing."""
  if not filesystem.exists(prefix + ".index"):
    raise CheckpointError(f"{prefix}.index does not exist.")
  present = files_of(prefix)
  for path in present:
    count = FILE_SUFFIX.search(path).group(3)
    shards = [f"{prefix}.data-{i:05}-of-{count}" for i in range(int(count or 0))]
    if shards and set(shards) <= set(present):
      return shards
  raise CheckpointError(f"{prefix}: data files are missing, found only {', '.join(present)}.")


def named_in(folder: str) -> list[str]:
  """Lists the checkpoints in a folder by name; of a released model's folder that model alone."""
  names = filesystem.list_folder(folder)
  found = [name.removesuffix(INDEX_SUFFIX) for name in names if name.endswith(INDEX_SUFFIX)]
  return [RELEASED] if RELEASED in found else found


def read_pointer(directory: str) -> list[str]:
  """Reads the `checkpoint` file: the current name, then all, oldest first; [] without a file.

  A CheckpointError says that it names no checkpoint.
  """
  path = os.path.join(directory, "checkpoint")
  try:
    text = filesystem.read_bytes(path).decode("utf-8") if filesystem.exists(path) else None
  except (OSError, ValueError) as error:
    raise CheckpointError(f"{path} is damaged: {error}") from None
  if text is None:
    return []
  pattern = r'^\s*{}:\s*"([^"\n]+)"'
  current = re.findall(pattern.format("model_checkpoint_path"), text, re.MULTILINE)
  every = re.findall(pattern.format("all_model_checkpoint_paths"), text, re.MULTILINE)
  if not current:
    raise CheckpointError(f"{path} is damaged: no model_checkpoint_path in it")
  return [_relocated(name) for name in current[:1] + every]


def _relocated(name: str) -> str:
  """A name; of a path that no longer exists, because the folder was moved, its last part."""
  gone = os.path.isabs(name) and not filesystem.exists(name + ".index")
  return os.path.basename(name) if gone else name


def describe(path: str) -> dict[str, int]:
  """Size, and of an index the CRC-32; the index holds a checksum of each tensor of a data file."""
  try:
    description = {"bytes": filesystem.size_bytes(path)}
    if path.endswith(".index"):
      description["crc32"] = zlib.crc32(filesystem.read_bytes(path))
  except OSError as error:
    raise CheckpointError(f"{path} cannot be read: {error.strerror}") from None
  return description


# ---------------------------------------------------------------------------------------------
# The sidecar.


def read_sidecar(prefix: str) -> dict[str, Any]:
  """Returns the content of the sidecar; empty for a checkpoint without one.

  Raises:
    CheckpointError: it is damaged, or of a newer version of this project.
  """
  path = prefix + SIDECAR_SUFFIX
  if not filesystem.exists(path):
    return {}
  try:
    sidecar = json.loads(filesystem.read_bytes(path))
    if sidecar.pop("crc32") != _checksum(sidecar):
      raise ValueError("its checksum is wrong")
  except (OSError, ValueError, AttributeError, LookupError, TypeError, RecursionError) as error:
    raise CheckpointError(f"{path} is damaged: {error}") from None
  if sidecar["format_version"] != SIDECAR_VERSION:
    raise CheckpointError(
      f"{path} has format_version {sidecar['format_version']!r}, this program reads "
      f"{SIDECAR_VERSION}: use the version of the project that wrote it."
    )
  return sidecar


def has_left_best(newest: str) -> bool:
  """Tells whether a run went on to its newest checkpoint without the evaluation that made `best/`.

  Its best weights are then those of an earlier, shorter run. Without a sound sidecar, False.
  """
  try:
    return bool(read_sidecar(newest).get("state", {}).get("run", {}).get("left_best"))
  except (CheckpointError, AttributeError):
    return False


def check_sidecar(prefix: str) -> None:
  """Checks that the files are those of the sidecar; the CheckpointError names one that differs."""
  for suffix, expected in read_sidecar(prefix).get("files", {}).items():
    found = describe(prefix + suffix)
    if found != expected:
      raise CheckpointError(
        f"{prefix}{suffix} is not the file that {prefix}{SIDECAR_SUFFIX} describes "
        f"(found {found}, expected {expected}). If another program wrote it over ours, delete "
        f"{prefix}{SIDECAR_SUFFIX} to use it without its state."
      )


def write_sidecar(prefix: str, state: Mapping[str, Any]) -> None:
  """Writes the sidecar of finished files: any JSON-serializable value."""
  sidecar = {
    "format_version": SIDECAR_VERSION,
    "files": {suffix: describe(prefix + suffix) for suffix in (DATA_SUFFIX, ".index")},
    "state": state,
  }
  sidecar["crc32"] = _checksum(sidecar)
  write_text(prefix + SIDECAR_SUFFIX, json.dumps(sidecar, indent=2) + "\n")


def _checksum(content: Mapping[str, Any]) -> int:
  return zlib.crc32(json.dumps(content, sort_keys=True).encode())
