"""What is meant by "this model": every script, class and check asks here.

  identify("uncased_L-12_H-768_A-12")  # ModelSource(Kind.RELEASED, "uncased_L-12_H-768_A-12")
  identify("/tmp/mrpc_output").kind    # Kind.RUN
  local_path("bert-base-uncased")      # its folder in the cache, downloaded if necessary

A model is given by a path or by a name. What exists on disk comes first; a name or an address of a
released model (model_names.py) comes next; anything else is an error that says what was near.
Nothing is opened but folders, so no TensorFlow is needed for local paths. Which checkpoint of a
folder is meant, and whether it is whole, is the next question: `finding.find_checkpoint`; which
configuration and vocabulary belong to it: `model_files.find`.
"""

import enum
import os
from typing import NamedTuple

from absl import logging

from bert.checkpoints import model_names, released_models
from bert.checkpoints.bundle_files import (
  FILE_SUFFIX,
  KERAS_SUFFIX,
  STEP_NAME,
  CheckpointError,
  is_saved_model,
)
from bert.checkpoints.load_report import abbreviate
from bert.checkpoints.safetensors_file import INDEX_SUFFIX
from bert.io import filesystem

_ARCHIVES = (".zip", ".tar.gz", ".tgz")
_EXPORTS = (".onnx", ".tflite", ".pb", ".mlmodel")
_SAVE_AGAIN = (
  "It is not read. Load it with the program that wrote it, and save it as .keras, or with "
  "transformers' save_pretrained as safetensors."
)
_MANY_FILES = 100  # of a folder that is searched for what was meant


class Kind(enum.Enum):
  """The kinds of models."""

  RELEASED = "a released model, which is not on this disk under the name that was given"
  CHECKPOINT = "a checkpoint, by its prefix"
  SAFETENSORS = "weights that transformers saved, or the index of several files"
  KERAS = "a .keras file"
  SAVED_MODEL = "a folder with a SavedModel, such as an exported encoder"
  RUN = "a folder with checkpoints model.ckpt-STEP, in which a run trains or trained"
  EXPORT = "a folder with exported SavedModels in its folders encoder, preprocess and task"
  CHECKPOINT_FOLDER = "a folder with other checkpoints, such as that of a released model"
  TRANSFORMERS = "a folder that transformers saved"
  FOLDER = "any other folder; it may still hold a vocabulary or a configuration"


class ModelSource(NamedTuple):
  """Where a model comes from.

  Attributes:
    kind: see `Kind`.
    path: of a checkpoint its prefix, also where one of its files was given; of a released model its
      name; else the path of the file or folder. `~` is replaced by the user's own folder.
  """

  kind: Kind
  path: str


def identify(model: str | os.PathLike) -> ModelSource:
  """What a path or a name stands for; nothing is downloaded.

  Args:
    model: the prefix of a checkpoint or one of its files; a safetensors file; a `.keras` file; a
      folder with one of these, with a run or with a SavedModel; the name of a released model, its
      name in transformers, or its address on TensorFlow Hub or Kaggle. Paths may be remote.

  Raises:
    CheckpointError: there is no such file or folder, and no model of this name; or it is a file of
      another kind. The message says what was near.
    OSError: a remote file system cannot be reached.
  """
  path = os.path.expanduser(os.fspath(model))
  if not path:
    raise CheckpointError(
      "The path or name of the model is empty. If it came from a variable such as "
      "$BERT_BASE_DIR, set that."
    )
  return _on_disk(path) or _released(path) or _explain_absence(path)


def located(model: str | os.PathLike, cache_dir: str | os.PathLike | None = None) -> ModelSource:
  """As `identify`, but a released model is downloaded to the cache, and its folder returned.

  Args:
    model: see `identify`.
    cache_dir: see `bert/io/download_cache.py`.

  Raises:
    CheckpointError, OSError: see `identify`.
    DownloadError: see `released_models.download_model`.
  """
  source = identify(model)
  if source.kind is not Kind.RELEASED:
    return source
  folder = released_models.download_model(source.path, cache_dir)
  is_theirs = released_models.is_of_transformers(source.path)
  return ModelSource(Kind.TRANSFORMERS if is_theirs else Kind.CHECKPOINT_FOLDER, folder)


def local_path(model: str | os.PathLike, cache_dir: str | os.PathLike | None = None) -> str:
  """The path of a model: a prefix, a file, or a folder; see `located`."""
  return located(model, cache_dir).path


def is_released(model: str | os.PathLike | None) -> bool:
  """Whether a model, if one is given, is a released one that `local_path` would download.

  Raises:
    CheckpointError, OSError: see `identify`.
  """
  return bool(model) and identify(model).kind is Kind.RELEASED


def _on_disk(path: str) -> ModelSource | None:
  if model_names.is_address(path):  # of the web, which no file system of TensorFlow reads
    return None
  prefix = FILE_SUFFIX.sub("", path)
  if filesystem.exists(prefix + ".index"):
    return ModelSource(Kind.CHECKPOINT, prefix)
  if filesystem.is_folder(path):
    return ModelSource(_kind_of_folder(path), path)
  for kind, endings in (
    (Kind.SAFETENSORS, (".safetensors", INDEX_SUFFIX)),
    (Kind.KERAS, (KERAS_SUFFIX,)),
  ):
    if path.endswith(endings) and filesystem.exists(path):
      return ModelSource(kind, path)
  return None


def _kind_of_folder(folder: str) -> Kind:
  names = filesystem.list_folder(folder)
  stems = [name.removesuffix(".index") for name in names if name.endswith(".index")]
  if is_saved_model(folder):
    return Kind.SAVED_MODEL
  if any(map(STEP_NAME.match, stems)):
    return Kind.RUN
  if is_saved_model(os.path.join(folder, "encoder")):
    return Kind.EXPORT
  if stems:
    return Kind.CHECKPOINT_FOLDER
  if any(name.endswith((".safetensors", INDEX_SUFFIX)) for name in names):
    return Kind.TRANSFORMERS
  if any(name.startswith("pytorch_model") for name in names):
    return Kind.TRANSFORMERS
  return Kind.FOLDER


def _released(path: str) -> ModelSource | None:
  name = model_names.released_name_of(path)
  if name is None:
    return None
  if name != path:
    logging.info("%s is the released model %s.", path, name)
  return ModelSource(Kind.RELEASED, name)


# ---------------------------------------------------------------------------------------------
# What to say when there is nothing.


def _explain_absence(path: str) -> ModelSource:
  """Raises the error about a path or a name that means nothing."""
  if model_names.is_address(path):
    what = f"{path} is an address, and not that of a released model."
    raise CheckpointError(f"{what} {_ADVICE} {model_names.question(path)}")
  if filesystem.exists(path):
    raise CheckpointError(_about_file(path))
  if path.endswith(_ARCHIVES):
    raise CheckpointError(f"There is no {path}; and if it is an archive: unpack it, {_GIVE_FOLDER}")
  if "/" not in path.rstrip("/") and os.sep not in path.rstrip(os.sep) and ".ckpt" not in path:
    what = f"{path} is neither a file or folder here nor the name of a released model."
    raise CheckpointError(f"{what} {model_names.question(path)}")
  raise CheckpointError(f"No checkpoint {path}: {_about_path(path)}")


_GIVE_FOLDER = "and give the folder it makes."
_ADVICE = "Download the model by other means, and give its folder."


def _about_file(path: str) -> str:
  if path.endswith(_ARCHIVES):
    return f"{path} is an archive: unpack it, {_GIVE_FOLDER}"
  if path.endswith(_EXPORTS):
    return f"{path} is an exported graph. Give the checkpoint that it was made from."
  if path.endswith((".h5", ".msgpack")):
    return f"{path} is a file of another format of Keras, JAX or transformers. {_SAVE_AGAIN}"
  if path.endswith((".bin", ".pt", ".pth")):
    return (
      f"{path} is not a TensorFlow checkpoint. If PyTorch wrote it: such a file can run any code "
      "when it is read. Load it with transformers and give the folder that save_pretrained writes."
    )
  return f"{path} is not a TensorFlow checkpoint, which has a file {path}.index beside it."


def _about_path(path: str) -> str:
  """Why a path leads nowhere, and what may have been meant."""
  folder, name = os.path.split(path.rstrip("/"))
  folder = folder or "."
  if folder == "/":
    return f"{path}.index does not exist. Is the variable before it, such as BERT_BASE_DIR, set?"
  if filesystem.is_folder(folder):
    index = f"{path}.index does not exist"
    if ".ckpt" in name:
      return f"{index}.{nearby(folder)}"
    similar = _similar_folder(path)
    return f"{index}, nor a folder of this name.{_meant(similar) if similar else nearby(folder)}"
  reason = f"the folder {folder} does not exist."
  if "$" in path:
    return f"{reason} The shell replaces a variable outside single quotes only."
  if released := next(filter(None, map(model_names.released_name_of, path.split("/"))), None):
    return f"{reason} {released} alone is the name of a released model, which is downloaded."
  if remote := filesystem.meant_as_remote(path):
    return reason + _meant(remote)
  if similar := _similar_folder(folder):
    return reason + _meant(os.path.join(similar, name))
  if path.count("/") == 1 and ".ckpt" not in name:
    if model_names.family_of(name):
      return f"{reason} {model_names.question(name)}"
    reason += (
      f" If it is a name on the Hugging Face Hub, download that model "
      f"(`hf download {path} --local-dir {name}`) and give its folder."
    )
  return reason


def _meant(path: str) -> str:
  return f" Did you mean {path}?"


def _similar_folder(folder: str) -> str | None:
  """The folder that was probably meant: the first part that does not exist, spelt otherwise."""
  import difflib  # Rarely needed, and not free to import.

  parent, name = os.path.split(folder.rstrip("/"))
  rest: list[str] = []
  while parent and parent != "/" and not filesystem.is_folder(parent):
    rest.insert(0, name)
    parent, name = os.path.split(parent)
  near = difflib.get_close_matches(name, filesystem.list_folder(parent or "."), n=1, cutoff=0.75)
  meant = os.path.join(parent, near[0], *rest) if near else None
  return meant if meant and filesystem.is_folder(meant) else None


def nearby(folder: str) -> str:
  """What was perhaps meant in a folder without the checkpoint, as sentences; empty without any."""
  names = filesystem.list_folder(folder)[:_MANY_FILES]
  weights = [name for name in names if name.endswith((".safetensors", KERAS_SUFFIX))]
  if weights:
    return f" Name a file in it: {abbreviate(weights, 5)}."
  if others := [name for name in names if name.endswith((".h5", ".msgpack"))]:
    return f" It has {abbreviate(others, 5)}, a file of another format. {_SAVE_AGAIN}"
  subfolders = [os.path.join(folder, name) for name in names]
  prefixes = [
    os.path.join(place, name.removesuffix(".index"))
    for place in [folder, *filter(filesystem.is_folder, subfolders)]
    for name in filesystem.list_folder(place)
    if name.endswith(".index")
  ]
  return f" Nearby: {abbreviate(prefixes, 5)}" if prefixes else ""
