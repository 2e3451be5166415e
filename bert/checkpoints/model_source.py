"""What is meant by "this model": every script, class and check asks here.

  identify("uncased_L-12_H-768_A-12")  # ModelSource(Kind.RELEASED, "uncased_L-12_H-768_A-12")
  identify("/tmp/mrpc_output").kind    # Kind.RUN
  local_path("bert-base-uncased")      # its folder in the cache, downloaded if necessary

A model is given by a path or by a name. What exists on disk comes first; a name or an address of a
released model (released_models.py) comes next; anything else is an error that says what was near.
Nothing is opened but folders, so no TensorFlow is needed for local paths. Which checkpoint of a
folder is meant, and whether it is whole, is the next question: `finding.find_checkpoint`; which
configuration and vocabulary belong to it: `model_files.find`.
"""

import enum
import os
import re
from typing import NamedTuple, NoReturn

from absl import logging

from bert.checkpoints import formats
from bert.checkpoints.bundle_files import FILE_SUFFIX, STEP_NAME, CheckpointError
from bert.checkpoints.load_report import abbreviate
from bert.io import filesystem

# Addresses of the web, which no file system of TensorFlow reads, and of Google's archives.
_ADDRESSES = re.compile(r"https?://.*|gs://bert_models/.+\.zip")
_ARCHIVES = (".zip", ".tar.gz", ".tgz")
_EXPORTS = (".onnx", ".tflite", ".pb", ".mlmodel")
_MANY_FILES = 100  # of a folder that is searched for what was meant


class Kind(enum.Enum):
  """The kinds of models."""

  RELEASED = "a released model, which is not on this disk under the name that was given"
  CHECKPOINT = "a checkpoint, by its prefix"
  FILE = "a file of weights in the format of another program, or the index of several"
  RUN = "a folder with checkpoints model.ckpt-STEP, in which a run trains or trained"
  FOLDER = "any other folder, with weights, a vocabulary or a configuration"


class ModelSource(NamedTuple):
  """Where a model comes from."""

  kind: Kind  # see `Kind`
  # Of a checkpoint its prefix, also where one of its files was given; of a released model its name;
  # else the path of the file or folder. `~` is replaced by the user's own folder.
  path: str


def identify(model: str | os.PathLike) -> ModelSource:
  """Returns what a path or a name stands for; nothing is downloaded.

  Args:
    model: the prefix of a checkpoint or one of its files; a file of transformers' weights
      (safetensors, `tf_model.h5`, `pytorch_model.bin`); a `.keras` file; a folder with one of
      these, with a run or with a SavedModel; the name of a released model, its name in
      transformers, or its address on TensorFlow Hub or Kaggle. Paths may be remote.

  Raises:
    CheckpointError: there is no such file or folder, and no model of this name; or it is a file of
      another kind. The message says what was near.
    OSError: a remote file system cannot be reached.
  """
  path = os.path.expanduser(os.fsdecode(model))
  if not path:
    raise CheckpointError(
      "The path or name of the model is empty. If it came from a variable such as "
      "$BERT_BASE_DIR, set that."
    )
  return on_disk(path) or _released(path)


def located(model: str | os.PathLike, cache_dir: str | os.PathLike | None = None) -> ModelSource:
  """As `identify`, but a released model is downloaded to the cache, and its folder returned.

  The arguments, and the errors, are those of `identify` and `released_models.download_model`.

  Raises:
    CheckpointError, OSError: see `identify`.
    DownloadError: see `released_models.download_model`.
  """
  source = identify(model)
  if source.kind is not Kind.RELEASED:
    return source
  from bert.checkpoints import released_models  # which talks to the network

  return ModelSource(Kind.FOLDER, released_models.download_model(source.path, cache_dir))


def local_path(model: str | os.PathLike, cache_dir: str | os.PathLike | None = None) -> str:
  """Returns the path of a model: a prefix, a file, or a folder; see `located`."""
  return located(model, cache_dir).path


def on_disk(path: str) -> ModelSource | None:
  """Returns what is at a path, local or remote; None if there is nothing."""
  if is_address(path):
    return None
  prefix = FILE_SUFFIX.sub("", path)
  if filesystem.exists(prefix + ".index"):
    return ModelSource(Kind.CHECKPOINT, prefix)
  if filesystem.is_folder(path):
    return ModelSource(_kind_of_folder(path), path)
  if formats.is_file_of_others(path) and filesystem.exists(path):
    return ModelSource(Kind.FILE, path)
  return None


def _kind_of_folder(folder: str) -> Kind:
  stems = (name.removesuffix(".index") for name in filesystem.list_folder(folder))
  return Kind.RUN if any(map(STEP_NAME.match, stems)) else Kind.FOLDER


def _released(name: str) -> ModelSource:
  """Returns the released model of a name or an address; the CheckpointError says what was near."""
  from bert.checkpoints import model_names

  released = model_names.released_name_of(name)
  if released is None:
    _explain_absence(name)
  elif released != name:
    logging.info("%s is the released model %s.", name, released)
  return ModelSource(Kind.RELEASED, released)


def is_address(path: str) -> bool:
  """Tells whether a path is an address on the web."""
  return _ADDRESSES.fullmatch(path) is not None


# ---------------------------------------------------------------------------------------------
# What to say when there is nothing.


def _explain_absence(path: str) -> NoReturn:
  """Raises the error about a path or a name that means nothing."""
  from bert.checkpoints import model_names

  if is_address(path):
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
  if os.path.basename(path) == "checkpoint":
    return f"{path} only names the newest checkpoint of its folder. Give the folder."
  return f"{path} is not a TensorFlow checkpoint, which has a file {path}.index beside it."


def _about_path(path: str) -> str:
  """Why a path leads nowhere, and what may have been meant."""
  from bert.checkpoints import model_names

  folder, name = os.path.split(path.rstrip("/"))
  folder = folder or "."
  if folder == "/":
    return f"{path}.index does not exist. Is the variable before it, such as BERT_BASE_DIR, set?"
  if filesystem.is_folder(folder):
    index = f"{path}.index does not exist"
    if ".ckpt" in name:
      return f"{index}.{nearby(folder)}"
    return f"{index}, nor a folder of this name.{nearby(folder)}"
  reason = f"the folder {folder} does not exist."
  if "$" in path:
    return f"{reason} The shell replaces a variable outside single quotes only."
  if released := next(filter(None, map(model_names.released_name_of, path.split("/"))), None):
    return f"{reason} {released} alone is the name of a released model, which is downloaded."
  if remote := filesystem.meant_as_remote(path):
    return f"{reason} Did you mean {remote}?"
  if path.count("/") == 1 and ".ckpt" not in name:
    if model_names.family_of(name):
      return f"{reason} {model_names.question(name)}"
    reason += (
      f" If it is a name on the Hugging Face Hub, download that model "
      f"(`hf download {path} --local-dir {name}`) and give its folder."
    )
  return reason


def nearby(folder: str) -> str:
  """What was perhaps meant in a folder without the checkpoint, as sentences; empty without any."""
  names = filesystem.list_folder(folder)[:_MANY_FILES]
  weights = [name for name in names if formats.is_file_of_others(name)]
  if weights:
    return f" Name a file in it: {abbreviate(weights, 5)}."
  subfolders = [os.path.join(folder, name) for name in names]
  prefixes = [
    os.path.join(place, name.removesuffix(".index"))
    for place in [folder, *filter(filesystem.is_folder, subfolders)]
    for name in filesystem.list_folder(place)
    if name.endswith(".index")
  ]
  return f" Nearby: {abbreviate(prefixes, 5)}" if prefixes else ""
