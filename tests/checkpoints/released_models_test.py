"""The table of released models, and where their folders are kept.

Alone: python -m pytest tests/checkpoints/released_models_test.py (a second, no TensorFlow)
"""

import pytest

from bert.checkpoints import released_models
from bert.checkpoints.released_models import RELEASED_MODELS, download_model
from bert.io.http import DownloadError
from tests.kit.web_server import web_server, zip_of

MODEL = "uncased_L-2_H-128_A-2"
ARCHIVE = RELEASED_MODELS[MODEL]


def test_every_released_model_has_its_archive():
  archives = RELEASED_MODELS
  assert len(archives) == 33  # 7 of 2018, 2 with whole-word masking, 24 small ones
  assert len(set(archives.values())) == 33
  dates = [path.split("/")[0] for path in archives.values()]
  assert [dates.count(date) for date in sorted(set(dates))] == [4, 2, 1, 2, 24]
  assert archives["uncased_L-12_H-768_A-12"] == "2018_10_18/uncased_L-12_H-768_A-12.zip"
  assert archives["2020_02_20/uncased_L-12_H-768_A-12"] == "2020_02_20/uncased_L-12_H-768_A-12.zip"
  assert archives["cased_L-24_H-1024_A-16"] == "2018_10_18/cased_L-24_H-1024_A-16.zip"
  assert archives["chinese_L-12_H-768_A-12"] == "2018_11_03/chinese_L-12_H-768_A-12.zip"
  assert archives["multi_cased_L-12_H-768_A-12"].startswith("2018_11_23/")
  assert archives["wwm_cased_L-24_H-1024_A-16"].startswith("2019_05_30/")
  assert archives["uncased_L-10_H-512_A-8"] == "2020_02_20/uncased_L-10_H-512_A-8.zip"


def test_released_names_are_known_and_paths_are_not():
  assert released_models.is_released_name("uncased_L-4_H-256_A-4")
  for text in ("uncased_L-3_H-256_A-4", "/models/uncased_L-4_H-256_A-4", "", None):
    assert not released_models.is_released_name(text)


def test_unknown_names_list_the_known_ones(tmp_path):
  with pytest.raises(DownloadError, match=r"'\.\./x'.*uncased_L-12_H-768_A-12"):
    download_model("../x", tmp_path)


def test_the_cache_is_found_by_argument_then_environment(monkeypatch, tmp_path):
  monkeypatch.setenv("no_proxy", "127.0.0.1")
  with web_server() as server:
    files = dict.fromkeys(released_models.MODEL_FILES, b"content")
    server.files["/models/" + ARCHIVE] = zip_of(files, f"{MODEL}/")
    monkeypatch.setenv("BERT_DOWNLOAD_BASE_URL", server.url + "/")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("BERT_CACHE_DIR", raising=False)
    place = "models/" + ARCHIVE.removesuffix(".zip")
    assert download_model(MODEL) == str(tmp_path / "xdg" / "bert" / place)
    monkeypatch.setenv("BERT_CACHE_DIR", str(tmp_path / "own"))
    assert download_model(MODEL) == str(tmp_path / "own" / place)
    assert download_model(MODEL, tmp_path / "arg") == str(tmp_path / "arg" / place)
