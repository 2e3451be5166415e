"""Released models, downloaded once into a cache.

folder = download_model("uncased_L-12_H-768_A-12")  # bert_config.json, vocab.txt, *.ckpt.*
folder = download_model("roberta-base")  # config.json, vocab.json, model.safetensors ...

Google's are archives. RoBERTa and DistilBERT are the single files of a folder of transformers. The
table of each family is in `bert/families`; `model_names.py` knows other names of them.
"""

import os
import pathlib
import shutil

from bert.families.files import RELEASED
from bert.io import download_cache
from bert.io.http import DownloadError

RELEASED_MODELS: dict[str, str] = {name: model.path for name, model in RELEASED.items()}
"""Name of a released model -> its archive, or the folder of its files, relative to the base URL."""


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
