"""Names of variables on both sides."""

import pytest

from bert.checkpoints.transformers_names import Counterpart, key_of, variable_of, variables_of

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
  "bert/encoder/layer_x/output/dense/kernel",
  "cls.predictions.decoder.weight",
  "roberta.encoder.layer.0.output.dense.weight",
  "",
]


@pytest.mark.parametrize(("key", "name"), NAMES.items(), ids=list(NAMES))
def test_both_ways(key, name):
  assert key_of(name) == Counterpart(key, key in TRANSPOSED)
  assert variable_of(key) == Counterpart(name, key in TRANSPOSED)


def test_layers_of_two_digits():
  for layer in (9, 10, 23):
    name = f"bert/encoder/layer_{layer}/intermediate/dense/kernel"
    key = f"bert.encoder.layer.{layer}.intermediate.dense.weight"
    assert (key_of(name).name, variable_of(key).name) == (key, name)


def test_an_encoder_saved_by_itself():
  for key, name in NAMES.items():
    if key.startswith("bert."):
      assert variable_of(key.removeprefix("bert.")) == Counterpart(name, key in TRANSPOSED)


def test_the_oldest_files():
  assert variable_of("bert.embeddings.LayerNorm.gamma").name == "bert/embeddings/LayerNorm/gamma"
  key = "cls.predictions.transform.LayerNorm.beta"
  assert variable_of(key).name == "cls/predictions/transform/LayerNorm/beta"


@pytest.mark.parametrize("name", STRANGE)
def test_what_nobody_knows_keeps_its_name(name):
  assert key_of(name) == variable_of(name) == Counterpart(name, False)


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
  assert found == {"cls/predictions/output_bias": Counterpart("cls.predictions.bias", False)}


def test_a_bias_of_the_decoder_alone():
  found = variables_of(["cls.predictions.decoder.bias"])
  assert found == {
    "cls/predictions/output_bias": Counterpart("cls.predictions.decoder.bias", False)
  }


def test_two_keys_for_one_variable():
  with pytest.raises(ValueError, match=r"LayerNorm\.gamma and bert\.embeddings\.LayerNorm\.weight"):
    variables_of(["bert.embeddings.LayerNorm.gamma", "bert.embeddings.LayerNorm.weight"])
