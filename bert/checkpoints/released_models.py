"""Released models: their names, and their folders, downloaded once into a cache.

folder = download_model("uncased_L-12_H-768_A-12")  # bert_config.json, vocab.txt, *.ckpt.*
folder = download_model("roberta-base")  # config.json, vocab.json, model.safetensors ...

Google's are archives. RoBERTa and DistilBERT are the single files of a folder of transformers.
"""

import os
import pathlib
import shutil

from bert.io import download_cache
from bert.io.http import DownloadError

BASE_URL = "https://storage.googleapis.com/bert_models/"
_BASES_OF_FAMILIES = {
  "electra_": "https://storage.googleapis.com/electra-data/",
  "albert_": "https://storage.googleapis.com/albert_models/",
}
_HUB_URL = "https://huggingface.co/"
_BYTE_PAIRS = ("tokenizer.json", "vocab.json", "merges.txt")
_WORD_PIECES = ("vocab.txt", "tokenizer_config.json")
# Name -> folder on the Hub, and the files of its tokenizer.
_TRANSFORMERS = {
  "roberta-base": ("FacebookAI/roberta-base", _BYTE_PAIRS),
  "roberta-large": ("FacebookAI/roberta-large", _BYTE_PAIRS),
  "distilroberta-base": ("distilbert/distilroberta-base", _BYTE_PAIRS),
  **{
    name: (f"distilbert/{name}", _WORD_PIECES)
    for name in (
      *("distilbert-base-uncased", "distilbert-base-cased"),
      "distilbert-base-multilingual-cased",
    )
  },
}


def _released_models() -> dict[str, str]:
  by_date = {
    "2018_10_18": [
      f"{case}_{size}"
      for case in ("uncased", "cased")
      for size in ("L-12_H-768_A-12", "L-24_H-1024_A-16")
    ],
    "2018_11_03": ["chinese_L-12_H-768_A-12", "multilingual_L-12_H-768_A-12"],
    "2018_11_23": ["multi_cased_L-12_H-768_A-12"],
    "2019_05_30": ["wwm_uncased_L-24_H-1024_A-16", "wwm_cased_L-24_H-1024_A-16"],
    "2020_02_20": [
      f"uncased_L-{layers}_H-{hidden}_A-{hidden // 64}"
      for layers in (2, 4, 6, 8, 10, 12)
      for hidden in (128, 256, 512, 768)
    ],
  }
  models: dict[str, str] = {}
  for date, names in by_date.items():
    for name in names:
      # BERT-Base uncased was released in 2018 and, trained again, among the small models of 2020:
      # the plain name stays the older one, as in every published result.
      models[name if name not in models else f"{date}/{name}"] = f"{date}/{name}.zip"
  # google-research/electra and google-research/albert, README.md.
  models |= {f"electra_{size}": f"electra_{size}.zip" for size in ("small", "base", "large")}
  for version in ("v2", "v1", "zh"):
    for size in ("base", "large", "xlarge", "xxlarge"):
      models[f"albert_{size}_{version}"] = f"albert_{size}_{version}.tar.gz"
  return models | {name: f"{folder}/resolve/main" for name, (folder, _) in _TRANSFORMERS.items()}


RELEASED_MODELS: dict[str, str] = _released_models()
"""Name of a released model -> its archive, or the folder of its files, relative to the base URL."""

MODEL_FILES = (  # of a BERT
  "bert_config.json",
  "vocab.txt",
  "bert_model.ckpt.index",
  "bert_model.ckpt.data-00000-of-00001",
)


def is_released_name(text: str | os.PathLike | None) -> bool:
  """Whether `text` names a released model, so that `download_model(text)` can fetch it.

  Example:
    >>> is_released_name("uncased_L-12_H-768_A-12"), is_released_name("/data/my_model")
    (True, False)
  """
  return text in RELEASED_MODELS


def is_of_transformers(name: str) -> bool:
  """Whether a released model is a folder of transformers."""
  return name in _TRANSFORMERS


def download_model(
  name: str, cache_dir: str | os.PathLike | None = None, base_url: str | None = None
) -> str:
  """The folder of a released model, downloaded if the cache does not have it.

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
  if name in _TRANSFORMERS:
    return _download_files(name, cache_dir, base_url)
  archive = RELEASED_MODELS[name]
  base = next(
    (url for start, url in _BASES_OF_FAMILIES.items() if name.startswith(start)), BASE_URL
  )
  url = download_cache.url_of(archive, "models", base, base_url)
  place = f"models/{archive.removesuffix('.zip').removesuffix('.tar.gz')}"
  return download_cache.provide(place, [url], download_cache.unpack_all, _needs(name), cache_dir)


def _download_files(name: str, cache_dir, base_url: str | None) -> str:
  needs = ("config.json", *_TRANSFORMERS[name][1], "model.safetensors")
  urls = [
    download_cache.url_of(f"{RELEASED_MODELS[name]}/{file}", "models", _HUB_URL, base_url)
    for file in needs
  ]

  def put(files: list[pathlib.Path], folder: pathlib.Path) -> None:
    for file, own_name in zip(files, needs, strict=True):
      shutil.copyfile(file, folder / own_name)

  # In a folder of its own, because the files of all models have the same names.
  return download_cache.provide(f"models/{name}/{name}", urls, put, needs, cache_dir)


def _needs(name: str) -> tuple[str, ...]:
  """The files without which an archive is not that of the model."""
  if name.startswith("electra_"):
    return ("vocab.txt",)  # its checkpoint has the model's name, which `finding.py` needs not know
  if name.startswith("albert_"):
    return ("albert_config.json", "model.ckpt-best.index", "model.ckpt-best.data-00000-of-00001")
  return MODEL_FILES
