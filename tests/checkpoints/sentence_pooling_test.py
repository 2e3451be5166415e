"""Tests of bert/checkpoints/sentence_pooling.py: which pooling a model was trained with."""

import json

import numpy as np
import pytest

from bert.checkpoints import safetensors_file, saving, sentence_pooling


@pytest.fixture
def run(tmp_path):
  """The folder of a run that was trained with `max`."""
  folder = tmp_path / "run"
  folder.mkdir()
  saving.save(str(folder), 3, {"a": np.zeros(1)}, {"fingerprint": {"pooling": "max"}})
  return str(folder)


@pytest.fixture
def other(tmp_path):
  """A checkpoint that no training of vectors left."""
  folder = tmp_path / "other"
  folder.mkdir()
  saving.save(str(folder), 3, {"a": np.zeros(1)}, {})
  return str(folder)


def test_a_run_says_how_it_was_trained(run, other):
  assert sentence_pooling.pooling_of(run) == "max"
  assert sentence_pooling.pooling_of(f"{run}/model.ckpt-3") == "max"
  assert sentence_pooling.pooling_of(other) is None
  assert sentence_pooling.pooling_of(None) is None


@pytest.mark.parametrize("pooling", sentence_pooling.POOLINGS)
def test_so_does_a_folder_of_sentence_transformers(tmp_path, pooling):
  sentence_pooling.write_sentence_transformers(tmp_path, pooling, 16, 64)
  safetensors_file.write(str(tmp_path / "model.safetensors"), {"a": np.zeros(1)}, {})
  assert sentence_pooling.pooling_of(tmp_path) == pooling
  modules = json.loads((tmp_path / "modules.json").read_text())
  assert [(m["path"], m["type"]) for m in modules] == [
    ("", "sentence_transformers.models.Transformer"),
    ("1_Pooling", "sentence_transformers.models.Pooling"),
  ]
  settings = json.loads((tmp_path / "sentence_bert_config.json").read_text())
  assert settings == {"max_seq_length": 64, "do_lower_case": False}


@pytest.mark.parametrize(("mode", "expected"), [("max", "max"), ("lasttoken", None)])
def test_so_does_one_of_its_version_6(tmp_path, mode, expected):
  (tmp_path / "1_Pooling").mkdir()
  content = {"embedding_dimension": 16, "pooling_mode": mode, "include_prompt": True}
  (tmp_path / "1_Pooling" / "config.json").write_text(json.dumps(content))
  safetensors_file.write(str(tmp_path / "model.safetensors"), {"a": np.zeros(1)}, {})
  assert sentence_pooling.pooling_of(tmp_path) == expected


def test_a_damaged_file_is_named(tmp_path):
  sentence_pooling.write_sentence_transformers(tmp_path, "cls", 16, 64)
  safetensors_file.write(str(tmp_path / "model.safetensors"), {"a": np.zeros(1)}, {})
  (tmp_path / "1_Pooling" / "config.json").write_text("[1]")
  with pytest.raises(ValueError, match=r"1_Pooling/config\.json: a JSON object is needed"):
    sentence_pooling.pooling_of(tmp_path)


def test_what_is_given_comes_first_and_a_difference_is_said(run, other, caplog):
  choose = sentence_pooling.choose
  with caplog.at_level("WARNING"):
    assert choose(None, run, "mean") == "max"
    assert choose("max", run, "mean") == "max"
    assert choose("none", run, "mean") == "none"
    assert choose(None, other, "mean") == "mean"
    assert choose("cls", other, "mean") == "cls"
  assert not caplog.records
  assert choose("cls", run, "mean") == "cls"
  assert "Pooling is cls, but" in caplog.text
  assert "was trained with max." in caplog.text
