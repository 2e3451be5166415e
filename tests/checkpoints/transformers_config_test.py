"""Configurations on both sides.

Alone: python -m pytest tests/checkpoints/transformers_config_test.py (a second, no TensorFlow)
"""

import json
import re

import pytest

from bert.checkpoints.transformers_config import from_original, is_transformers_config, to_original
from bert.model.configuration import BertConfig
from tests.kit.tiny_bert import ORIGINAL as CONFIG


def test_config_there_and_back():
  for activation in ("gelu", "gelu_erf", "relu", "tanh", "linear"):
    config = {**CONFIG, "hidden_act": activation}
    there = from_original(config, "BertModel")
    assert is_transformers_config(there)
    assert to_original(there) == config
  assert not is_transformers_config(CONFIG)


def test_gelu_means_the_other_form_there():
  names = {"gelu": "gelu_new", "gelu_erf": "gelu", "": "linear", "none": "linear"}
  for ours, theirs in names.items():
    config = from_original({"hidden_act": ours}, "BertModel")
    assert config["hidden_act"] == theirs


def test_defaults_differ():
  assert from_original({}, "BertModel")["type_vocab_size"] == 16
  config = to_original({"model_type": "bert"})
  assert (config["type_vocab_size"], config["hidden_act"]) == (2, "gelu_erf")


@pytest.mark.parametrize(
  ("settings", "message"),
  [
    (
      {"model_type": "deberta"},
      "model_type is 'deberta', but this project has models of bert, electra, albert, roberta",
    ),
    ({"layer_norm_eps": 1e-5}, "layer_norm_eps is 1e-05, but this model supports 1e-12 only"),
    ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
    ({"is_decoder": True}, "is_decoder is True"),
    ({"pruned_heads": {"0": [1]}}, "pruned_heads"),
    ({"hidden_act": "swish"}, "hidden_act is 'swish'; known: gelu_new"),
    ({"hidden_act": ["gelu"]}, "hidden_act is ['gelu']"),
    ({"hidden_size": "8"}, "hidden_size is '8'"),
    (
      {"model_type": "roberta", "architectures": ["RobertaModel"], "hidden_act": "gelu_new"},
      "hidden_act is 'gelu_new', the tanh form of GELU, but models of RoBERTa have the erf form",
    ),
  ],
)
def test_configs_of_other_models(tmp_path, settings, message):
  path = tmp_path / "config.json"
  path.write_text(json.dumps({**CONFIG, "model_type": "bert", **settings}))
  with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
    BertConfig.from_json_file(path)


def test_a_config_is_read_as_what_it_is(tmp_path):
  path = tmp_path / "config.json"
  path.write_text(json.dumps({**CONFIG, "model_type": "bert"}))
  assert BertConfig.from_json_file(path).hidden_act == "gelu_erf"
  path.write_text(json.dumps(CONFIG))
  assert BertConfig.from_json_file(path).hidden_act == "gelu"
