"""Names of variables and of settings on both sides.

Alone: python -m pytest tests/checkpoints/transformers_names_test.py (seconds)
"""

import doctest
import json
import re

import pytest

from bert.checkpoints import transformers_names
from bert.checkpoints.transformers_names import (
  Place,
  config_from_original,
  config_to_original,
  is_transformers_config,
  key_of,
  variable_of,
  variables_of,
)
from bert.model.configuration import BertConfig

# Of a one-layer BertForPreTraining as transformers 5.23 saves it, and the heads of other classes.
NAMES = {
  "bert.embeddings.word_embeddings.weight": "bert/embeddings/word_embeddings",
  "bert.embeddings.position_embeddings.weight": "bert/embeddings/position_embeddings",
  "bert.embeddings.token_type_embeddings.weight": "bert/embeddings/token_type_embeddings",
  "bert.embeddings.LayerNorm.weight": "bert/embeddings/LayerNorm/gamma",
  "bert.embeddings.LayerNorm.bias": "bert/embeddings/LayerNorm/beta",
  "bert.encoder.layer.0.attention.self.query.weight": (
    "bert/encoder/layer_0/attention/self/query/kernel"
  ),
  "bert.encoder.layer.0.attention.self.query.bias": (
    "bert/encoder/layer_0/attention/self/query/bias"
  ),
  "bert.encoder.layer.0.attention.self.key.weight": (
    "bert/encoder/layer_0/attention/self/key/kernel"
  ),
  "bert.encoder.layer.0.attention.self.key.bias": "bert/encoder/layer_0/attention/self/key/bias",
  "bert.encoder.layer.0.attention.self.value.weight": (
    "bert/encoder/layer_0/attention/self/value/kernel"
  ),
  "bert.encoder.layer.0.attention.self.value.bias": (
    "bert/encoder/layer_0/attention/self/value/bias"
  ),
  "bert.encoder.layer.0.attention.output.dense.weight": (
    "bert/encoder/layer_0/attention/output/dense/kernel"
  ),
  "bert.encoder.layer.0.attention.output.dense.bias": (
    "bert/encoder/layer_0/attention/output/dense/bias"
  ),
  "bert.encoder.layer.0.attention.output.LayerNorm.weight": (
    "bert/encoder/layer_0/attention/output/LayerNorm/gamma"
  ),
  "bert.encoder.layer.0.attention.output.LayerNorm.bias": (
    "bert/encoder/layer_0/attention/output/LayerNorm/beta"
  ),
  "bert.encoder.layer.0.intermediate.dense.weight": (
    "bert/encoder/layer_0/intermediate/dense/kernel"
  ),
  "bert.encoder.layer.0.intermediate.dense.bias": "bert/encoder/layer_0/intermediate/dense/bias",
  "bert.encoder.layer.0.output.dense.weight": "bert/encoder/layer_0/output/dense/kernel",
  "bert.encoder.layer.0.output.dense.bias": "bert/encoder/layer_0/output/dense/bias",
  "bert.encoder.layer.0.output.LayerNorm.weight": "bert/encoder/layer_0/output/LayerNorm/gamma",
  "bert.encoder.layer.0.output.LayerNorm.bias": "bert/encoder/layer_0/output/LayerNorm/beta",
  "bert.pooler.dense.weight": "bert/pooler/dense/kernel",
  "bert.pooler.dense.bias": "bert/pooler/dense/bias",
  "cls.predictions.bias": "cls/predictions/output_bias",
  "cls.predictions.transform.dense.weight": "cls/predictions/transform/dense/kernel",
  "cls.predictions.transform.dense.bias": "cls/predictions/transform/dense/bias",
  "cls.predictions.transform.LayerNorm.weight": "cls/predictions/transform/LayerNorm/gamma",
  "cls.predictions.transform.LayerNorm.bias": "cls/predictions/transform/LayerNorm/beta",
  "cls.seq_relationship.weight": "cls/seq_relationship/output_weights",
  "cls.seq_relationship.bias": "cls/seq_relationship/output_bias",
  "classifier.weight": "output_weights",
  "classifier.bias": "output_bias",
  "qa_outputs.weight": "cls/squad/output_weights",
  "qa_outputs.bias": "cls/squad/output_bias",
}
# Nothing else changes its layout: tables, biases, and heads whose weights are [out, in] already.
TRANSPOSED = {key for key, name in NAMES.items() if name.endswith("/kernel")}
STRANGE = [
  "my/own/variable",
  "global_step",
  "bert/encoder/layer_0/output/LayerNorm/kernel",
  "bert/encoder/layer_0/output/dense/gamma",
  "bert/encoder/layer_x/output/dense/kernel",
  "bert/encoder/layer.0/output/dense/kernel",
  "bert/embeddings/word_embeddings/adam_m",
  "cls.predictions.decoder.weight",
  "roberta.encoder.layer.0.output.dense.weight",
  "",
]


@pytest.mark.parametrize(("key", "name"), NAMES.items(), ids=list(NAMES))
def test_both_ways(key, name):
  assert key_of(name) == Place(key, key in TRANSPOSED)
  assert variable_of(key) == Place(name, key in TRANSPOSED)


def test_layers_of_two_digits():
  for layer in (9, 10, 23):
    name = f"bert/encoder/layer_{layer}/intermediate/dense/kernel"
    key = f"bert.encoder.layer.{layer}.intermediate.dense.weight"
    assert (key_of(name).name, variable_of(key).name) == (key, name)


def test_an_encoder_saved_by_itself():
  for key, name in NAMES.items():
    if key.startswith("bert."):
      assert variable_of(key.removeprefix("bert.")) == Place(name, key in TRANSPOSED)


def test_the_oldest_files():
  assert variable_of("bert.embeddings.LayerNorm.gamma").name == "bert/embeddings/LayerNorm/gamma"
  key = "cls.predictions.transform.LayerNorm.beta"
  assert variable_of(key).name == "cls/predictions/transform/LayerNorm/beta"


@pytest.mark.parametrize("name", STRANGE)
def test_what_nobody_knows_keeps_its_name(name):
  assert key_of(name) == variable_of(name) == Place(name, False)


def test_what_means_nothing_is_left_out():
  found = variables_of(
    [
      "bert.embeddings.position_ids",
      "embeddings.position_ids",
      "cls.predictions.decoder.weight",
      "cls.predictions.decoder.bias",
      "cls.predictions.bias",
    ]
  )
  assert found == {"cls/predictions/output_bias": Place("cls.predictions.bias", False)}


def test_a_bias_of_the_decoder_alone():
  found = variables_of(["cls.predictions.decoder.bias"])
  assert found == {"cls/predictions/output_bias": Place("cls.predictions.decoder.bias", False)}


def test_two_keys_for_one_variable():
  with pytest.raises(ValueError, match=r"LayerNorm\.gamma and bert\.embeddings\.LayerNorm\.weight"):
    variables_of(["bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"])


# ---------------------------------------------------------------------------------------------
# Configurations.

CONFIG = {
  "vocab_size": 11,
  "hidden_size": 8,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 12,
  "hidden_act": "gelu",
  "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1,
  "max_position_embeddings": 6,
  "type_vocab_size": 2,
  "initializer_range": 0.02,
  "directionality": "bidi",
}


def test_config_there_and_back():
  for activation in ("gelu", "gelu_erf", "relu", "tanh", "linear"):
    config = {**CONFIG, "hidden_act": activation}
    there = config_from_original(config, "BertModel")
    assert is_transformers_config(there)
    assert config_to_original(there) == config
  assert not is_transformers_config(CONFIG)


def test_gelu_means_the_other_form_there():
  names = {"gelu": "gelu_new", "gelu_erf": "gelu", "": "linear", "none": "linear"}
  for ours, theirs in names.items():
    config = config_from_original({"hidden_act": ours}, "BertModel")
    assert config["hidden_act"] == theirs


def test_defaults_differ():
  assert config_from_original({}, "BertModel")["type_vocab_size"] == 16
  config = config_to_original({"model_type": "bert"})
  assert (config["type_vocab_size"], config["hidden_act"]) == (2, "gelu_erf")


@pytest.mark.parametrize(
  ("settings", "message"),
  [
    ({"model_type": "roberta"}, "model_type is 'roberta', but this model computes with 'bert'"),
    ({"layer_norm_eps": 1e-5}, "layer_norm_eps is 1e-05, but this model computes with 1e-12 only"),
    ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
    ({"is_decoder": True}, "is_decoder is True"),
    ({"pruned_heads": {"0": [1]}}, "pruned_heads"),
    ({"hidden_act": "swish"}, "hidden_act is 'swish'; known: gelu_new"),
    ({"hidden_act": ["gelu"]}, "hidden_act is ['gelu']"),
    ({"hidden_size": "8"}, "hidden_size is '8'"),
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


def test_doctests():
  results = doctest.testmod(transformers_names)
  assert results.attempted >= 5
  assert results.failed == 0
