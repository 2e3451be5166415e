"""Padding left out of the layers changes nothing. Alone: pytest tests/keras3/padding_test.py"""

import contextlib

import keras
import numpy as np
import pytest

from bert.keras3 import padding
from bert.keras3.models import (
  BertForMultipleChoice,
  BertForSequenceClassification,
  BertForTokenClassification,
)

pytestmark = pytest.mark.skipif(
  keras.backend.backend() != "tensorflow", reason="padding is left out on TensorFlow alone"
)

SIZES = {
  "vocab_size": 50,
  "hidden_size": 8,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 16,
  "hidden_dropout_prob": 0.0,
  "attention_probs_dropout_prob": 0.0,
}
# Tokens of a text; the fifth has none, the sixth is padded in front.
LENGTHS = np.array([9, 3, 5, 1, 0, 7])
MASK = (np.arange(9) < LENGTHS[:, None]).astype(np.int32)
MASK[5] = MASK[5][::-1]
IDS = np.random.default_rng(1).integers(5, 50, MASK.shape)
INPUTS = {"input_ids": IDS, "attention_mask": MASK}


@pytest.fixture
def masks(monkeypatch):
  """The masks by which rows were left out; `clear` it before a run."""
  seen = []

  class Seen(padding.TokenRows):
    def __init__(self, mask):
      seen.append(mask)
      super().__init__(mask)

  monkeypatch.setattr(padding, "TokenRows", Seen)
  return seen


def model_of(model_class, model_type="bert", **kwargs):
  keras.utils.set_random_seed(1)
  return model_class({**SIZES, "model_type": model_type}, num_labels=3, **kwargs)


@pytest.mark.parametrize("model_type", ["bert", "albert"])
def test_answers_are_the_same_without_padding(model_type, masks):
  model = model_of(BertForSequenceClassification, model_type)
  model.compile(run_eagerly=True)
  np.testing.assert_allclose(
    model.predict(INPUTS, verbose=0).logits, model(INPUTS).logits, atol=1e-6
  )
  assert len(masks) == 1  # by predict alone


def step_of(model, inputs, labels):
  """The change of each variable by a step of gradient descent."""
  before = [variable.numpy() for variable in model.weights]
  model.compile(
    keras.optimizers.SGD(10.0), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  )
  model.train_on_batch(inputs, labels)
  return [new.numpy() - old for new, old in zip(model.weights, before, strict=True)]


@pytest.mark.ci
def test_a_step_is_the_same(masks, monkeypatch):
  changes = []
  for left_out in (padding.left_out_in_step, lambda model: contextlib.nullcontext()):
    monkeypatch.setattr(padding, "left_out_in_step", left_out)
    model = model_of(BertForSequenceClassification)
    changes.append(step_of(model, INPUTS, np.arange(6) % 3))
  assert len(masks) == 1
  assert max(np.abs(change).max() for change in changes[0]) > 1e-3
  for one, other in zip(*changes, strict=True):
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_choices_too(masks):
  model = model_of(BertForMultipleChoice)
  model.compile(run_eagerly=True)
  inputs = {name: array.reshape(2, 3, 9) for name, array in INPUTS.items()}
  np.testing.assert_allclose(
    model.predict(inputs, verbose=0).logits, model(inputs).logits, atol=1e-6
  )
  assert len(masks) == 1


@pytest.mark.parametrize(
  ("model_class", "arguments"),
  [
    (BertForTokenClassification, {}),  # padding has logits
    (BertForSequenceClassification, {"jit_compile": True}),  # XLA needs sizes beforehand
  ],
)
def test_it_is_computed_where_it_can_be_seen(model_class, arguments, masks):
  model = model_of(model_class)
  model.compile(**arguments)
  model.predict(INPUTS, verbose=0)
  assert not masks


def test_so_it_is_where_others_depend_on_it(masks):
  from bert.keras3.encoder import BERT

  sizes = {"num_layers": 1, "num_heads": 2, "intermediate_size": 16}
  encoder = BERT(50, 8, **sizes, attention_type="window", layer_args={"window_size": 2})
  model = BertForSequenceClassification(encoder)
  model.compile(run_eagerly=True)
  model.predict(INPUTS, verbose=0)
  assert not masks
