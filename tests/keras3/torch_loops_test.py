"""Optimizers in training loops of PyTorch.

Run alone: KERAS_BACKEND=torch python -m pytest tests/keras3/torch_loops_test.py
"""

import keras
import numpy as np
import pytest

from bert.keras3 import (
  BERT,
  AdamW,
  BertForSequenceClassification,
  create_optimizer,
  get_linear_schedule_with_warmup,
)
from tests.kit.keras_models import TINY, numpy_of, random_inputs

pytestmark = pytest.mark.skipif(
  keras.backend.backend() != "torch", reason="needs Keras's PyTorch backend"
)
NO_DECAY = ["bias", "LayerNorm.weight"]


def create_model():
  keras.utils.set_random_seed(3)
  return BertForSequenceClassification(BERT(**TINY), num_labels=2)


def train(model, optimizer, steps=3, scheduler=None):
  losses = []
  for _ in range(steps):
    loss = model(**random_inputs(2, 6), labels=np.array([0, 1])).loss
    loss.backward()
    optimizer.step()
    if scheduler is not None:
      scheduler.step()
    optimizer.zero_grad()
    losses.append(float(loss.detach()))
  return losses


def differences(one, other) -> float:
  pairs = zip(one.weights, other.weights, strict=True)
  return max(float(np.abs(numpy_of(a) - numpy_of(b)).max()) for a, b in pairs)


def groups(model):
  named = list(model.named_parameters())
  spared = [p for n, p in named if any(part in n for part in NO_DECAY)]
  others = [p for n, p in named if not any(part in n for part in NO_DECAY)]
  assert spared
  return [{"params": others, "weight_decay": 0.1}, {"params": spared, "weight_decay": 0.0}]


def test_steps_are_those_of_pytorchs_own_adamw():
  import torch

  ours, theirs = create_model(), create_model()
  settings = {"lr": 1e-2, "eps": 1e-6, "weight_decay": 0.1}
  losses = train(ours, AdamW(groups(ours), **settings))
  assert losses == pytest.approx(
    train(theirs, torch.optim.AdamW(groups(theirs), **settings)), rel=1e-4
  )
  assert losses[-1] < losses[0]
  assert differences(ours, theirs) < 1e-4


def test_the_originals_optimizer_is_that_of_fit():
  ours, theirs = create_model(), create_model()
  train(ours, create_optimizer(ours.parameters(), 1e-2, 10, 1), steps=3)
  theirs.compile(
    create_optimizer(1e-2, 10, 1), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  )
  for layer in theirs._flatten_layers():
    if hasattr(layer, "rate"):
      layer.rate = 0.0  # a loop in evaluation mode has no dropout
  for _ in range(3):
    theirs.train_on_batch(random_inputs(2, 6), np.array([0, 1]))
  assert differences(ours, theirs) < 1e-6


def test_the_schedule_counts_the_optimizers_steps():
  model = create_model()
  optimizer = AdamW(model.parameters(), lr=1e-2)
  scheduler = get_linear_schedule_with_warmup(optimizer, 2, 4)
  rates = []
  for _ in range(4):
    rates.append(scheduler.get_last_lr()[0])
    assert optimizer.param_groups[0]["lr"] == pytest.approx(rates[-1])
    train(model, optimizer, 1, scheduler)
  assert rates == pytest.approx([0.0, 0.005, 0.01, 0.005])


def test_the_state_continues():
  one, other = create_model(), create_model()
  optimizer = AdamW(one.parameters(), lr=1e-2)
  train(one, optimizer)
  continued = AdamW(other.parameters(), lr=1e-2)
  other.load_state_dict(one.state_dict())
  continued.load_state_dict(optimizer.state_dict())
  train(one, optimizer)
  train(other, continued)
  assert differences(one, other) == 0.0
  with pytest.raises(ValueError, match="optimizer with other parameters"):
    AdamW(one.bert.parameters()).load_state_dict(optimizer.state_dict())


def test_parameters_that_are_frozen_stay():
  model = create_model()
  before = numpy_of(model.bert.embeddings.word_embeddings).copy()
  for parameter in model.bert.parameters():
    parameter.requires_grad = False
  train(model, AdamW(model.parameters(), lr=1e-2))
  np.testing.assert_array_equal(numpy_of(model.bert.embeddings.word_embeddings), before)


@pytest.mark.parametrize(
  ("parameters", "message"),
  [
    ([], "There is no parameter to train"),
    ([{"weight_decay": 0.1}], "A group of parameters has params"),
    ([{"params": [], "momentum": 1}], "got params, momentum"),
  ],
)
def test_parameters_that_cannot_be(parameters, message):
  with pytest.raises(ValueError, match=message):
    AdamW(parameters)
