"""Tests of `bert download`. Alone: python -m pytest tests/scripts/download_test.py (no network)"""

import pytest

from bert.checkpoints import released_models
from bert.scripts import download
from bert.tasks import public_data
from tests.kit.script_runs import Script


@pytest.fixture
def script():
  return Script(download, takes_arguments=True)


def test_the_list_has_every_name(script):
  lines = [line.strip() for line in script.run_well(list=True).out.splitlines()]
  assert set(lines) >= {*released_models.RELEASED_MODELS, *public_data.TASK_NAMES}
  assert "bert-base-uncased = uncased_L-12_H-768_A-12" in lines
  assert {"uncased_L-12_H-768_A-12", "MRPC", "IMDB", "SST-2"} <= set(lines)


def test_named_ones_are_downloaded_and_their_folders_printed(script, monkeypatch):
  monkeypatch.setattr(released_models, "download_model", lambda name, cache: f"{cache}/m/{name}")
  monkeypatch.setattr(public_data, "download_task_data", lambda name, cache: f"{cache}/t/{name}")
  done = script.run_well("uncased_L-2_H-128_A-2", "mrpc", cache_dir="cache")
  assert done.out.splitlines() == ["cache/m/uncased_L-2_H-128_A-2", "cache/t/mrpc"]
  assert "WARNING" not in done.err
  done = script.run_well("google-bert/bert-base-chinese", cache_dir="cache")
  assert done.out == "cache/m/chinese_L-12_H-768_A-12\n"


@pytest.mark.parametrize(
  ("name", "nearest"), [("uncased_L-12_H-768", "uncased_L-12_H-768_A-12"), ("MRCP", "MRPC")]
)
def test_an_unknown_name_is_refused_with_the_nearest_before_any_download(
  script, monkeypatch, name, nearest
):
  monkeypatch.setattr(public_data, "download_task_data", lambda *_: pytest.fail("downloads"))
  error = script.error_of("MRPC", name)
  assert f"called {name!r}. Did you mean {nearest}?" in error
  assert "--list" in error


def test_no_name_is_an_error(script):
  assert "--list" in script.error_of()
