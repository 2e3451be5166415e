"""Models and optimizers in training loops of PyTorch.

Run alone: KERAS_BACKEND=torch python -m pytest tests/keras3/torch_loops_test.py
"""

import keras
import numpy as np
import pytest

from bert.keras3 import (
  BERT,
  AdamW,
  BertForSequenceClassification,
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


def groups(model):
  named = list(model.named_parameters())
  spared = [p for n, p in named if any(part in n for part in NO_DECAY)]
  others = [p for n, p in named if not any(part in n for part in NO_DECAY)]
  assert spared
  return [{"params": others, "weight_decay": 0.1}, {"params": spared, "weight_decay": 0.0}]


def test_a_model_learns():
  model = create_model()
  losses = train(model, AdamW(groups(model), lr=1e-2))
  assert losses[-1] < losses[0]


def test_in_a_warmup_groups_keep_the_ratio_of_their_rates():
  model = create_model()
  body, head = list(model.bert.parameters()), list(model.classifier.parameters())
  optimizer = AdamW([{"params": body}, {"params": head, "lr": 1e-2}], lr=1e-3)
  scheduler = get_linear_schedule_with_warmup(optimizer, 2, 4)
  rates = []
  for _ in range(5):
    rates.append(scheduler.get_last_lr())
    train(model, optimizer, 1, scheduler)
  shares = np.array([0, 0.5, 1, 0.5, 0])
  np.testing.assert_allclose(rates, np.outer(shares, [1e-3, 1e-2]))


def test_a_rate_of_zero_leaves_its_group_alone():
  model = create_model()
  table, kernel = (
    numpy_of(v).copy() for v in (model.bert.embeddings.word_embeddings, model.classifier.weights[0])
  )
  body, head = list(model.bert.parameters()), list(model.classifier.parameters())
  train(model, AdamW([{"params": body}, {"params": head, "lr": 1e-2}], lr=0.0))
  np.testing.assert_array_equal(numpy_of(model.bert.embeddings.word_embeddings), table)
  assert np.abs(numpy_of(model.classifier.weights[0]) - kernel).max() > 1e-3
