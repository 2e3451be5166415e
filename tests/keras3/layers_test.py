"""Every kind of normalisation, attention and feed-forward network of the Keras layers."""

import functools

import keras
import numpy as np
import pytest

from bert.keras3 import BERT, FeedForward, MultiHeadAttention, TransformerLayer
from bert.keras3.attention import ATTENTION_TYPES
from bert.keras3.building_blocks import (
  NORMALIZATION_TYPES,
  Dropout,
  TruncatedNormal,
  get_activation,
)
from bert.keras3.layers import FFN_TYPES
from tests.kit.keras_models import TINY, numpy_of

W, S = 16, 11  # longer than the default window reaches
VARIANTS = [
  *({"normalization_type": kind} for kind in NORMALIZATION_TYPES),
  *({"ffn_type": kind} for kind in FFN_TYPES),
  *({"attention_type": kind} for kind in ATTENTION_TYPES),
  {"normalization_position": "pre"},
  {"position_embedding_type": "sinusoidal"},
]


def random_states(batch_size=3):
  return np.random.default_rng(1).normal(size=(batch_size, S, W)).astype("float32")


def identity(variant):
  return ",".join(f"{key}={value}" for key, value in variant.items())


@functools.cache
def model_and_states(index):
  """A model of `VARIANTS[index]`, its inputs and its output."""
  keras.utils.set_random_seed(5)
  model = BERT(**TINY, initializer_range=0.5, **VARIANTS[index])
  mask = np.ones((3, S), "int32")
  mask[1, 5:] = 0
  ids = np.random.default_rng(0).integers(0, TINY["vocab_size"], (3, S))
  inputs = {"input_ids": ids, "attention_mask": mask}
  return model, inputs, numpy_of(model(inputs)["last_hidden_state"])


@pytest.mark.ci
@pytest.mark.parametrize("index", range(len(VARIANTS)), ids=map(identity, VARIANTS))
def test_every_variant_computes_and_survives_saving(index, tmp_path):
  model, inputs, states = model_and_states(index)
  assert states.shape == (3, S, W)
  assert np.isfinite(states).all()
  mask = inputs["attention_mask"]
  changed = {**inputs, "input_ids": np.where(mask == 1, inputs["input_ids"], 3)}
  others = numpy_of(model(changed)["last_hidden_state"])
  np.testing.assert_allclose(others * mask[..., None], states * mask[..., None], atol=1e-5)
  model.save(tmp_path / "model.keras")
  loaded = keras.models.load_model(tmp_path / "model.keras")
  np.testing.assert_array_equal(numpy_of(loaded(inputs)["last_hidden_state"]), states)


def test_the_variants_are_different_functions():
  outputs = {
    identity(variant): model_and_states(index)[2] for index, variant in enumerate(VARIANTS)
  }
  default = outputs.pop("normalization_type=layer_norm")
  for name, states in outputs.items():
    same = name.endswith(("mlp", "multi_head"))
    assert np.allclose(states, default, atol=1e-6) == same, name


# ---------------------------------------------------------------------------------------------
# Attention.


def numpy_attention(layer, states, hidden=None):
  """The formula, in NumPy: `[B, S, W]`."""

  def project(name):
    dense = getattr(layer, name)
    return states @ numpy_of(dense.kernel) + numpy_of(dense.bias)

  def split(x):
    return x.reshape(*x.shape[:2], -1, layer.head_size)

  query, key, value = (split(project(name)) for name in ("query", "key", "value"))
  groups = query.shape[2] // key.shape[2]
  key, value = np.repeat(key, groups, 2), np.repeat(value, groups, 2)
  scores = np.einsum("bfnh,btnh->bnft", query, key) / np.sqrt(layer.head_size)
  if hidden is not None:
    scores = np.where(hidden, -1e9, scores)
  probs = np.exp(scores - scores.max(-1, keepdims=True))
  probs /= probs.sum(-1, keepdims=True)
  context = np.einsum("bnft,btnh->bfnh", probs, value).reshape(states.shape)
  return context @ numpy_of(layer.output_dense.kernel) + numpy_of(layer.output_dense.bias)


@pytest.mark.parametrize("n_kv_head", [4, 2, 1])
def test_attention_is_the_formula(n_kv_head):
  layer = MultiHeadAttention(W, 4, initializer_range=0.5, n_kv_head=n_kv_head)
  states = random_states()
  mask = np.ones((3, S), "int32")
  mask[0, 4:] = 0
  hidden = np.broadcast_to((mask == 0)[:, None, None, :], (3, 4, S, S))
  expected = numpy_attention_of(layer, states, mask, hidden)
  np.testing.assert_allclose(*expected, atol=1e-5)


def numpy_attention_of(layer, states, mask, hidden):
  actual = numpy_of(layer(states, attention_mask=mask))
  return actual, numpy_attention(layer, states, hidden)


def test_a_window_hides_what_is_far():
  layer = MultiHeadAttention(W, 2, initializer_range=0.5, window_size=2)
  states = random_states()
  distance = abs(np.arange(S)[:, None] - np.arange(S)[None])
  actual, expected = numpy_attention_of(layer, states, None, (distance > 2)[None, None])
  np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_a_mask_may_differ_from_row_to_row():
  layer = MultiHeadAttention(W, 2, initializer_range=0.5)
  states = random_states()
  mask = np.tril(np.ones((S, S), "int32"))[None].repeat(3, 0)
  hidden = (mask == 0)[:, None]
  np.testing.assert_allclose(*numpy_attention_of(layer, states, mask, hidden), atol=1e-5)


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"hidden_size": 15, "num_heads": 2}, "hidden_size 15 must be a multiple"),
    ({"hidden_size": 16, "num_heads": 4, "n_kv_head": 3}, "n_kv_head 3"),
    ({"hidden_size": 16, "num_heads": 2, "window_size": 0}, "window_size is 0"),
  ],
)
def test_sizes_that_do_not_fit(arguments, message):
  with pytest.raises(ValueError, match=message):
    MultiHeadAttention(**arguments)


# ---------------------------------------------------------------------------------------------
# Feed-forward networks, normalisations, the layer.


def sigmoid(x):
  return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize(
  ("ffn_type", "inner"),
  [
    ("mlp", lambda one, gate: np.maximum(one, 0)),
    ("swiglu", lambda one, gate: gate * sigmoid(gate) * one),
    ("glu", lambda one, gate: sigmoid(gate) * one),
  ],
)
def test_feed_forward_is_the_formula(ffn_type, inner):
  layer = FeedForward(W, 24, ffn_type, activation="relu", initializer_range=0.5)
  states = random_states()
  actual = numpy_of(layer(states))
  one = states @ numpy_of(layer.intermediate.kernel)
  gate = 0 if ffn_type == "mlp" else states @ numpy_of(layer.gate.kernel)
  expected = inner(one, gate) @ numpy_of(layer.output_dense.kernel)
  np.testing.assert_allclose(actual, expected, atol=1e-4)


def test_activations_are_those_of_a_configuration_in_any_case():
  for name in ("GELU", "Tanh", "relu"):
    assert get_activation(name) is get_activation(name.lower())
  for name in ("", "none", None):
    assert get_activation(name) is get_activation("linear")
  with pytest.raises(ValueError, match="activation is 'Mish'; known: gelu, gelu_new, "):
    get_activation("Mish")
  assert BERT(**TINY, hidden_act="GELU").hidden_act == "GELU"


def test_pre_and_post_normalisation():
  states = random_states()
  post = numpy_of(TransformerLayer(W, 2, 24)(states))
  np.testing.assert_allclose(post.mean(-1), np.zeros((3, S)), atol=1e-5)
  np.testing.assert_allclose(post.std(-1), np.ones((3, S)), atol=1e-4)
  pre = TransformerLayer(W, 2, 24, normalization_position="pre", initializer_range=1e-6)
  np.testing.assert_allclose(numpy_of(pre(states)), states, atol=1e-3)


def test_truncated_normal_never_exceeds_two_deviations():
  values = numpy_of(TruncatedNormal(stddev=0.1, seed=1)((200, 300)))
  assert abs(values).max() <= 0.2
  assert values.std() == pytest.approx(0.0880, abs=0.001)
  np.testing.assert_array_equal(values, numpy_of(TruncatedNormal(stddev=0.1, seed=1)((200, 300))))


def test_dropout_whose_rate_is_set_later():
  dropout = Dropout(0.0)
  dropout.rate = 0.5
  values = numpy_of(dropout(np.ones((20, 50), np.float32), training=True))
  assert set(np.unique(values)) == {0.0, 2.0}
  assert 0.4 < np.mean(values == 0.0) < 0.6
