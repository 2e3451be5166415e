"""The alternative names: configurations by name, layers (models: models_test.py)."""

import keras
import numpy as np
import pytest

from bert import tokenization
from bert.keras3 import (
  GELU,
  BertPreTrainingModel,
  FeedForward,
  LayerNorm,
  MultiHeadAttention,
  TransformerEncoderBlock,
  create_model_config,
  get_tokenizer,
)
from bert.model.configuration import BertConfig
from tests.kit.keras_models import numpy_of
from tests.kit.paths import SAMPLES


@pytest.mark.parametrize(
  ("name", "vocab_size", "num_layers"),
  [
    ("bert-base-uncased (110M)", 30522, 12),
    ("bert-large-uncased (340M)", 30522, 24),
    ("bert-base-cased (110M)", 28996, 12),
    ("bert-large-cased (340M)", 28996, 24),
    ("uncased_L-2_H-128_A-2", 30522, 2),
  ],
)
def test_configurations_by_name(name, vocab_size, num_layers):
  config = create_model_config(name)
  assert config.to_dict() == create_model_config(name.split(" ")[0]).to_dict()
  assert (config.vocab_size, config.num_hidden_layers) == (vocab_size, num_layers)


def test_a_tokenizer_by_the_name_of_its_model():
  special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  full = tokenization.FullTokenizer(SAMPLES / "vocab.txt", special_tokens=special)
  texts = ["The Company said [MASK]!", "Profits, rose."]
  expected = full.encode_batch(texts, texts[::-1], pad_to_longest=True)
  found = get_tokenizer(SAMPLES)(texts, texts[::-1], padding=True, return_tensors="np")
  for name, here in (("input_ids", "input_ids"), ("token_type_ids", "segment_ids")):
    np.testing.assert_array_equal(found[name], expected[here])


def test_names_that_are_wrong():
  with pytest.raises(ValueError, match="No released model is called 'bert-huge'; known: uncased_L"):
    create_model_config("bert-huge")
  with pytest.raises(ValueError, match="attributes n_layers; known: vocab_size, hidden_size"):
    create_model_config("bert-base-cased", n_layers=2)
  with pytest.raises(ValueError, match="hidden_size 100 is not a multiple"):
    create_model_config("bert-base-cased", hidden_size=100)


def test_layers():
  x = np.array([[1e-4, -1e-4, 3e-4, 1e-4]], "float32")  # so small that the epsilon matters
  expected = (x - x.mean()) / np.sqrt(x.var() + 1e-12)
  np.testing.assert_allclose(numpy_of(LayerNorm()(x)), expected, rtol=1e-4, atol=1e-6)
  x = np.array([-2.0, 0.0, 0.5, 3.0])
  expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
  np.testing.assert_allclose(numpy_of(GELU()(x.astype("float32"))), expected, atol=1e-6)


def test_layers_take_a_configuration(tmp_path):
  config = BertConfig(40, 8, 1, 2, 16, max_position_embeddings=24, hidden_act="relu")
  vectors = np.random.default_rng(0).normal(size=(2, 3, 8)).astype("float32")
  for cls, arguments in (
    (FeedForward, {"hidden_size": 8, "intermediate_size": 16, "activation": "relu"}),
    (MultiHeadAttention, {"hidden_size": 8, "num_heads": 2}),
    (TransformerEncoderBlock, {"hidden_size": 8, "num_heads": 2, "intermediate_size": 16}),
  ):
    spec = vars(cls(config).spec)
    assert {name: spec[name] for name in arguments} == arguments
    inputs = keras.Input((3, 8))
    model = keras.Model(inputs, cls(config, initializer_range=0.3)(inputs))
    model.save(tmp_path / "layer.keras")
    again = keras.models.load_model(tmp_path / "layer.keras")
    np.testing.assert_array_equal(numpy_of(again(vectors)), numpy_of(model(vectors)))
  assert LayerNorm(config).epsilon == 1e-12
  with pytest.raises(ValueError, match="epsilon is 768; the width comes from the input"):
    LayerNorm(768)


def test_a_model_of_pre_training_is_one_of_keras():
  assert issubclass(BertPreTrainingModel, keras.Model)
