"""The table of released models, and where their folders are kept.

Alone: python -m pytest tests/checkpoints/released_models_test.py (a second, no TensorFlow)
"""

import os
import pathlib

import pytest

from bert.checkpoints import model_files, model_source, released_models
from bert.checkpoints.released_models import RELEASED_MODELS, download_model
from bert.families.files import RELEASED
from bert.io.http import DownloadError
from tests.kit.web_server import web_server, zip_of

MODEL = "uncased_L-2_H-128_A-2"
ARCHIVE = RELEASED_MODELS[MODEL]


def test_every_released_model_has_its_archive():
  google = {name: path for name, path in RELEASED_MODELS.items() if path.startswith("20")}
  assert len(google) == 33  # 7 of 2018, 2 with whole-word masking, 24 small ones
  assert len(RELEASED_MODELS) == 33 + 3 + 4 * 3 + 3 + 3
  dates = [path.split("/")[0] for path in google.values()]
  assert [dates.count(date) for date in sorted(set(dates))] == [4, 2, 1, 2, 24]
  assert google["uncased_L-12_H-768_A-12"] == "2018_10_18/uncased_L-12_H-768_A-12.zip"
  assert google["2020_02_20/uncased_L-12_H-768_A-12"] == "2020_02_20/uncased_L-12_H-768_A-12.zip"


def test_archives_of_other_families_come_from_their_own_places(monkeypatch, tmp_path):
  asked = []

  def provide(place, urls, unpack, needs, cache_dir):
    asked.append((place, *urls, needs[0]))
    return place

  monkeypatch.delenv("BERT_DOWNLOAD_BASE_URL", raising=False)
  monkeypatch.setattr(released_models.download_cache, "provide", provide)
  for name in ("electra_small", "albert_base_v2"):
    download_model(name, tmp_path)
  google = "https://storage.googleapis.com"
  assert asked == [
    ("models/electra_small", f"{google}/electra-data/electra_small.zip", "vocab.txt"),
    (
      "models/albert_base_v2",
      f"{google}/albert_models/albert_base_v2.tar.gz",
      "albert_config.json",
    ),
  ]


@pytest.mark.parametrize(
  ("name", "folder", "tokens"),
  [
    ("roberta-base", "FacebookAI", ["merges.txt", "tokenizer.json", "vocab.json"]),
    ("distilbert-base-uncased", "distilbert", ["tokenizer_config.json", "vocab.txt"]),
  ],
)
def test_folders_of_transformers_are_fetched_file_by_file(
  monkeypatch, tmp_path, name, folder, tokens
):
  monkeypatch.setenv("no_proxy", "127.0.0.1")
  files = ["config.json", "model.safetensors", *tokens]
  with web_server() as server:
    for file in files:
      server.files[f"/{folder}/{name}/resolve/main/{file}"] = file.encode()
    found = download_model(name, tmp_path, base_url=server.url)
    assert os.path.basename(found) == name
    contents = {path.name: path.read_text() for path in pathlib.Path(found).iterdir()}
    assert contents == {file: file for file in files}
    requests = len(server.requests)
    assert download_model(name, tmp_path, base_url=server.url) == found
    assert len(server.requests) == requests  # the cache has it
    assert set(os.listdir(os.path.dirname(found))) == {name, f"{name}.lock"}


def test_unknown_names_list_the_known_ones(tmp_path):
  with pytest.raises(DownloadError, match=r"'\.\./x'.*uncased_L-12_H-768_A-12"):
    download_model("../x", tmp_path)


def test_the_cache_is_found_by_argument_then_environment(monkeypatch, tmp_path):
  monkeypatch.setenv("no_proxy", "127.0.0.1")
  with web_server() as server:
    files = dict.fromkeys(RELEASED[MODEL].files, b"content")
    server.files["/models/" + ARCHIVE] = zip_of(files, f"{MODEL}/")
    monkeypatch.setenv("BERT_DOWNLOAD_BASE_URL", server.url + "/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("BERT_CACHE_DIR", raising=False)
    place = "models/" + ARCHIVE.removesuffix(".zip")
    assert download_model(MODEL) == str(tmp_path / "xdg" / "bert" / place)
    monkeypatch.setenv("BERT_CACHE_DIR", str(tmp_path / "own"))
    assert download_model(MODEL) == str(tmp_path / "own" / place)
    assert download_model(MODEL, tmp_path / "arg") == str(tmp_path / "arg" / place)


def test_a_folder_of_transformers_is_found_by_its_names_elsewhere(monkeypatch, tmp_path):
  """As `--init_checkpoint=FacebookAI/roberta-base` and `from_pretrained` find it."""
  monkeypatch.setenv("no_proxy", "127.0.0.1")
  with web_server() as server:
    monkeypatch.setenv("BERT_DOWNLOAD_BASE_URL", server.url)
    for file in ("config.json", "model.safetensors", "vocab.json", "merges.txt", "tokenizer.json"):
      server.files[f"/models/FacebookAI/roberta-base/resolve/main/{file}"] = b"{}"
    source = model_source.located("FacebookAI/roberta-base", tmp_path)
  assert source.kind is model_source.Kind.FOLDER
  found = model_files.find(source.path)
  names = [os.path.basename(path) for path in (found.config, found.vocabulary)]
  assert names == ["config.json", "vocab.json"]  # an empty tokenizer.json is none
