"""Models that are named, and what to say of a path or a name that leads to nothing.

  identify("bert-base-uncased")     # ModelSource(Kind.RELEASED, "uncased_L-12_H-768_A-12")
  download("uncased_L-12_H-768_A-12").path

`model_source.py` asks here where there is nothing at a path; `model_names.py` knows the names,
`released_models.py` where the models lie.
"""

import os
from collections.abc import Mapping
from typing import Any, NoReturn

from absl import logging

from bert.checkpoints import model_names, released_models
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.families import RELEASED
from bert.checkpoints.model_source import SAVE_AGAIN, Kind, ModelSource, nearby
from bert.io import filesystem

_ARCHIVES = (".zip", ".tar.gz", ".tgz")
_EXPORTS = (".onnx", ".tflite", ".pb", ".mlmodel")


def released_sizes() -> dict[str, Mapping[str, Any]]:
  """Returns name -> content of the configuration, of models of other families than BERT."""
  return {name: model.sizes for name, model in RELEASED.items() if model.sizes}


def identify(name: str) -> ModelSource:
  """Identifies a released model by a name or an address; the CheckpointError says what was near."""
  released = model_names.released_name_of(name)
  if released is None:
    _explain_absence(name)
  elif released != name:
    logging.info("%s is the released model %s.", name, released)
  return ModelSource(Kind.RELEASED, released)


def download(name: str, cache_dir: str | os.PathLike | None = None) -> ModelSource:
  """Downloads a released model, see `released_models.download_model`, and returns its folder."""
  folder = released_models.download_model(name, cache_dir)
  is_theirs = released_models.is_of_transformers(name)
  return ModelSource(Kind.TRANSFORMERS if is_theirs else Kind.CHECKPOINT_FOLDER, folder)


# ---------------------------------------------------------------------------------------------
# What to say when there is nothing.


def _explain_absence(path: str) -> NoReturn:
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
  if path.endswith(".msgpack"):
    return f"{path} is a file of another format, that of Flax. {SAVE_AGAIN}"
  if os.path.basename(path) == "checkpoint":
    return f"{path} only names the newest checkpoint of its folder. Give the folder."
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
    meant = _meant(similar) if similar else nearby(folder)
    return f"{index}, nor a folder of this name.{meant}"
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
