"""A configuration, from whatever file holds it."""

import json

import pytest

from bert.checkpoints import config_files, formats
from bert.model.configuration import BertConfig
from tests.kit.small_checkpoints import save

SIZES = {"vocab_size": 40, "hidden_size": 8, "num_attention_heads": 2}


def test_files_of_both_forms(tmp_path):
  theirs = {"model_type": "bert", "layer_norm_eps": 1e-12, "hidden_act": "gelu_new"}
  for content in (SIZES, {**BertConfig(**SIZES).to_dict(), **theirs}):
    (tmp_path / "config.json").write_text(json.dumps(content))
    found = config_files.read(tmp_path / "config.json")
    assert found.items() >= SIZES.items()
    assert "model_type" not in found
  assert found["hidden_act"] == "gelu"


def test_weights_are_known_by_their_names(tmp_path):
  assert formats.describes_model(tmp_path / "model.keras")
  assert formats.describes_model("model.ckpt-20.index")
  assert not formats.describes_model("keras/bert_config.json")
  with pytest.raises(ValueError, match=r"from_keras --init_checkpoint=.*model\.keras"):
    config_files.read(tmp_path / "model.keras")
  with pytest.raises(ValueError, match=r"model\.ckpt-1\.index has no encoder of ELECTRA"):
    config_files.read(f"{save(tmp_path, 1)}.index")
