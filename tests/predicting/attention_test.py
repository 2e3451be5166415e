"""Attention maps: those of the graph are those of Keras, and both are what the layers mix by."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from bert.keras3.encoder import BERT
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.predicting import attention
from bert.predicting.predictor import Predictor
from tests.kit import exports

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "mat", "."]
LAYERS, HEADS = 3, 2
# Weights far from zero, so that pieces look at some others more than at the rest.
CONFIG = exports.config(
  len(WORDS), num_hidden_layers=LAYERS, max_position_embeddings=16, initializer_range=0.5
)


@pytest.fixture(scope="module")
def store():
  """The variables of a model."""
  with use_store(VariableStore(seed=1)) as store:
    BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
  return store


@pytest.fixture(scope="module")
def model_dir(store, tmp_path_factory):
  folder = tmp_path_factory.mktemp("model")
  exports.write_model(folder, CONFIG, WORDS, store.variables)
  return folder


@pytest.fixture(scope="module")
def attend(model_dir):
  return Predictor.load(str(model_dir), task="attention_maps", max_seq_length=12)


def test_maps_are_those_of_keras_and_sum_to_one(store, model_dir, attend):
  [(tokens, maps)] = attend([("The cat sat.", "the mat")])
  assert tokens == ["[CLS]", "the", "cat", "sat", ".", "[SEP]", "the", "mat", "[SEP]"]
  assert maps.shape == (LAYERS, HEADS, 9, 9)
  np.testing.assert_allclose(maps.sum(axis=-1), 1, atol=1e-5)
  assert maps.max() > 0.5
  inputs = {
    "input_ids": np.array([[WORDS.index(token) for token in tokens] + [0, 0]]),
    "token_type_ids": np.array([[0] * 6 + [1] * 3 + [0, 0]]),
    "attention_mask": np.array([[1] * 9 + [0, 0]]),
  }
  outputs = BERT.from_checkpoint(model_dir)(inputs, output_attentions=True)
  of_keras = np.stack(list(map(ops.convert_to_numpy, outputs["attentions"])), axis=1)
  assert of_keras.shape == (1, LAYERS, HEADS, 11, 11)
  np.testing.assert_allclose(of_keras[0, :, :, :9, :9], maps, atol=1e-5)
  assert (of_keras[..., 9:] == 0).all(), "nothing looks at padding"
  ids, segments, mask = inputs.values()
  with use_store(store):
    model = BertModel(CONFIG, False, ids.astype("int32"), mask, segments.astype("int32"))
    padded = attention.attention_maps(CONFIG, model, mask)
  np.testing.assert_allclose(padded, of_keras, atol=1e-5)


@pytest.mark.parametrize(
  ("attention_type", "normalization_position"),
  [
    ("multi_head", "post"),
    ("multi_head", "pre"),
    ("window", "post"),
    ("group_query", "post"),
  ],
)
def test_keras_layers_mix_by_their_maps(attention_type, normalization_position):
  keras.utils.set_random_seed(3)
  bert = BERT(
    vocab_size=20,
    hidden_size=16,
    num_layers=1,
    num_heads=4,
    intermediate_size=8,
    initializer_range=0.5,
    attention_type=attention_type,
    normalization_position=normalization_position,
    layer_args={"window_size": 2},
  )
  ids = np.array([[5, 6, 7, 8, 9, 10]])
  layer = bert.encoder_layers[0]
  norm = layer.attention.output.LayerNorm
  for variable in norm.weights:  # or it would change nothing
    variable.assign(np.linspace(-1, 2, 16))
  outputs = bert(ids, output_hidden_states=True, output_attentions=True)
  [maps], states = outputs["attentions"], outputs["hidden_states"][0]  # [B, N, S, S], [B, S, W]
  read = norm(states) if normalization_position == "pre" else states
  values = layer._for_all_heads(layer.attention.self.value(read))
  mixed = ops.einsum("bnft,btnh->bfnh", maps, values)
  expected = layer.attention.output.dense(ops.reshape(mixed, (1, 6, 16)))
  actual = layer.attend(read, attention_mask=ops.ones_like(ids))
  np.testing.assert_allclose(
    ops.convert_to_numpy(actual), ops.convert_to_numpy(expected), atol=1e-5
  )
  if attention_type == "window":
    assert ops.convert_to_numpy(maps)[0, :, 0, 3:].max() == 0
