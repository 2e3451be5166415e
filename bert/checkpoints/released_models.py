"""Released models: named, downloaded once into a cache; and what to say of other names.

identify("bert-base-uncased")     # ModelSource(Kind.RELEASED, "uncased_L-12_H-768_A-12")
folder = download_model("uncased_L-12_H-768_A-12")  # bert_config.json, vocab.txt, *.ckpt.*
folder = download_model("roberta-base")  # config.json, vocab.json, model.safetensors ...

Google's are archives. RoBERTa and DistilBERT are the single files of a folder of transformers. The
table of each family is in `bert/families`. `model_source.py` asks here where there is
nothing at a path; `model_names.py` knows the names.
"""

import os
import pathlib
import shutil
from typing import NoReturn

from absl import logging

from bert.checkpoints import model_names, model_source
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.model_source import Kind, ModelSource
from bert.families.files import RELEASED
from bert.io import download_cache, filesystem
from bert.io.http import DownloadError

_ARCHIVES = (".zip", ".tar.gz", ".tgz")
_EXPORTS = (".onnx", ".tflite", ".pb", ".mlmodel")

RELEASED_MODELS: dict[str, str] = {name: model.path for name, model in RELEASED.items()}
"""Name of a released model -> its archive, or the folder of its files, relative to the base URL."""


def identify(name: str) -> ModelSource:
  """Identifies a released model by a name or an address; the CheckpointError says what was near."""
  released = model_names.released_name_of(name)
  if released is None:
    _explain_absence(name)
  elif released != name:
    logging.info("%s is the released model %s.", name, released)
  return ModelSource(Kind.RELEASED, released)


def download_model(
  name: str, cache_dir: str | os.PathLike | None = None, base_url: str | None = None
) -> str:
  """Finds the folder of a released model, and downloads it if the cache does not have it.

  Args:
    name: a key of `RELEASED_MODELS`.
    cache_dir: where to keep it; see `bert/io/download_cache.py` for the default.
    base_url: the path of the archive or file is appended to it, instead of the public address.

  Returns:
    Path of a folder with `bert_config.json`, `vocab.txt` and `bert_model.ckpt.*`, or what the
    archives of ELECTRA and ALBERT hold, or a folder of transformers. Its own name is the model's,
    so `--do_lower_case` can be checked against it.

  Raises:
    DownloadError: unknown name, no network, a file or archive that cannot be used, no space.
  """
  if name not in RELEASED_MODELS:
    known = ", ".join(RELEASED_MODELS)
    raise DownloadError(f"No released model is called {name!r}. Known: {known}.")
  model = RELEASED[name]
  if model.is_folder:
    return _download_files(name, cache_dir, base_url)
  url = download_cache.url_of(model.path, "models", model.base_url, base_url)
  place = f"models/{model.path.removesuffix('.zip').removesuffix('.tar.gz')}"
  return download_cache.provide(place, [url], download_cache.unpack_all, model.files, cache_dir)


def _download_files(name: str, cache_dir, base_url: str | None) -> str:
  model = RELEASED[name]
  urls = [
    download_cache.url_of(f"{model.path}/{file}", "models", model.base_url, base_url)
    for file in model.files
  ]

  def put(files: list[pathlib.Path], folder: pathlib.Path) -> None:
    for file, own_name in zip(files, model.files, strict=True):
      shutil.copyfile(file, folder / own_name)

  # In a folder of its own, because the files of all models have the same names.
  return download_cache.provide(f"models/{name}/{name}", urls, put, model.files, cache_dir)


# ---------------------------------------------------------------------------------------------
# What to say when there is nothing.


def _explain_absence(path: str) -> NoReturn:
  """Raises the error about a path or a name that means nothing."""
  if model_source.is_address(path):
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
  folder, name = os.path.split(path.rstrip("/"))
  folder = folder or "."
  if folder == "/":
    return f"{path}.index does not exist. Is the variable before it, such as BERT_BASE_DIR, set?"
  if filesystem.is_folder(folder):
    index = f"{path}.index does not exist"
    if ".ckpt" in name:
      return f"{index}.{model_source.nearby(folder)}"
    return f"{index}, nor a folder of this name.{model_source.nearby(folder)}"
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
