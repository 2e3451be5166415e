"""Losses of the Keras side, training steps in half precision, scores."""

import keras
import numpy as np
import pytest
import sklearn.metrics
from keras import ops

from bert.keras3 import (
  AMPTrainer,
  BERTForMaskedLM,
  BERTForSequenceClassification,
  NLPTaskConfig,
  compute_classification_loss,
  compute_confusion_matrix,
  compute_mlm_loader_loss,
  compute_mlm_loss,
  compute_precision_recall_f1,
  create_bert_with_head,
  create_classification_dataloader,
  create_mlm_dataloader,
  create_model_config,
  evaluate_classification_metrics,
  training,
)
from bert.keras3.models import LogitsOutput
from tests.kit.keras_models import TINY_KEYS, numpy_of
from tests.kit.tiny_bert import NO_DROPOUT

CONFIG = create_model_config(
  "bert-base-uncased",
  initializer_range=0.2,  # so large that ten steps teach something
  **TINY_KEYS,
  **NO_DROPOUT,
)
SPREAD = create_model_config(  # untrained models give different texts different classes
  "bert-base-uncased", initializer_range=0.5, **TINY_KEYS
)
TEXTS = [f"w{i} w{i + 1} w{i + 2} w{i + 3}" for i in range(30)]


def cross_entropy(logits, label):
  logits = np.asarray(logits, "float64")
  return np.log(np.exp(logits).sum()) - logits[label]


# ---------------------------------------------------------------------------------------------
# Losses.


def test_loss_of_masked_words():
  logits = np.random.default_rng(1).normal(size=(2, 3, 5)).astype("float32")
  labels = np.array([[-100, 4, 0], [2, -100, 1]])
  expected = [cross_entropy(logits[0, 1], 4), cross_entropy(logits[0, 2], 0)]
  expected += [cross_entropy(logits[1, 0], 2), cross_entropy(logits[1, 2], 1)]
  assert float(compute_mlm_loss(logits, labels)) == pytest.approx(np.mean(expected), rel=1e-5)
  mask = np.array([[1, 1, 1], [1, 0, 0]])
  found = float(compute_mlm_loss(LogitsOutput(logits), labels, mask))
  assert found == pytest.approx(np.mean(expected[:3]), rel=1e-5)
  zeros = np.where(labels == -100, 0, labels)  # here 0 means no label
  found = float(compute_mlm_loss({"logits": logits}, zeros, ignore_index=0))
  assert found == pytest.approx(np.mean([expected[0], *expected[2:]]), rel=1e-5)
  assert float(compute_mlm_loss(logits, np.full((2, 3), -100))) == 0


def test_loss_of_classes():
  logits = np.random.default_rng(2).normal(size=(3, 4)).astype("float32")
  expected = [cross_entropy(row, label) for row, label in zip(logits, [3, 0, 1], strict=True)]
  mask = np.zeros((3, 7))  # concerns tokens, and not the label of a text
  found = float(compute_classification_loss(logits, np.array([3, -100, 1]), mask))
  assert found == pytest.approx(np.mean([expected[0], expected[2]]), rel=1e-5)
  tokens, labels = logits[None], np.array([[3, 0, 1]])
  found = float(compute_classification_loss(tokens, labels, np.array([[1, 1, 0]])))
  assert found == pytest.approx(np.mean(expected[:2]), rel=1e-5)


def test_loss_of_a_loader(tokenizer):
  model = BERTForMaskedLM(CONFIG)
  texts = [*TEXTS, " ".join(TEXTS[:5])]
  loader = create_mlm_dataloader(texts, tokenizer, batch_size=9)
  losses = []
  for batch in loader:
    labels = batch.pop("labels")
    logits = numpy_of(model(batch, training=False))
    losses += [
      cross_entropy(row, label)
      for row, label in zip(logits[labels != -100], labels[labels != -100], strict=True)
    ]
  loader.epoch = 0
  found = compute_mlm_loader_loss(model, loader)
  assert found == pytest.approx(np.mean(losses), rel=1e-5)
  batch = loader.batch(0)
  one = compute_mlm_loader_loss(model, [batch], device="cpu")
  labels = batch.pop("labels")
  expected = compute_mlm_loss(model.predict_on_batch(batch), labels)
  assert one == pytest.approx(float(expected), rel=1e-5)
  for empty in ([], [{"input_ids": batch["input_ids"], "labels": np.full_like(labels, -100)}]):
    with pytest.raises(ValueError, match="no token to predict"):
      compute_mlm_loader_loss(model, empty)
  with pytest.raises(ValueError, match="no 'labels', only input_ids"):
    compute_mlm_loader_loss(model, [{"input_ids": batch["input_ids"]}])


# ---------------------------------------------------------------------------------------------
# Fit and steps.


@pytest.fixture(scope="module")
def trained(tokenizer):
  """A trainer in float16 after ten steps, its model, batch and losses."""
  keras.utils.set_random_seed(4)
  model = BERTForMaskedLM(CONFIG)
  batch = create_mlm_dataloader(TEXTS, tokenizer, batch_size=16).batch(0)
  float32_loss = compute_mlm_loader_loss(model, [batch])
  trainer = AMPTrainer("float16", 1e-2, jit_compile=False)
  losses = [trainer.train_mlm_step(model, batch) for _ in range(10)]
  return trainer, model, batch, losses, float32_loss


@pytest.mark.ci
def test_steps_in_float16(trained):
  trainer, model, batch, losses, float32_loss = trained
  assert losses[0] == pytest.approx(float32_loss, abs=0.01)
  assert losses[0] != float32_loss
  assert losses[-1] < 0.7 * losses[0]
  assert float(trainer.optimizer.dynamic_scale) == 2.0**15  # no step was skipped
  assert int(trainer.optimizer.iterations) == 10
  assert {str(weight.dtype) for weight in model.weights} == {"float32"}
  assert model.bert.encoder_layers[0].intermediate.dense.compute_dtype == "float16"
  assert keras.config.dtype_policy().name == "float32"  # other models stay as they were
  with pytest.raises(ValueError, match="already has a model"):
    trainer.train_mlm_step(BERTForMaskedLM(CONFIG), batch)


@pytest.mark.ci
def test_an_overflow_skips_the_step_and_halves_the_scale(trained):
  trainer, model, batch, _, _ = trained
  before = [numpy_of(weight) for weight in model.weights]
  steps = int(trainer.optimizer.iterations)
  trainer.optimizer.dynamic_scale.assign(2.0**60)
  loss = trainer.train_mlm_step(model, batch)
  assert np.isfinite(loss)
  assert float(trainer.optimizer.dynamic_scale) == 2.0**59
  assert int(trainer.optimizer.iterations) == steps
  for old, new in zip(before, model.weights, strict=True):
    np.testing.assert_array_equal(old, numpy_of(new))
  trainer.optimizer.dynamic_scale.assign(2.0**10)
  trainer.train_mlm_step(model, batch)
  assert int(trainer.optimizer.iterations) == steps + 1
  assert (before[0] != numpy_of(model.weights[0])).any()


def test_steps_in_bfloat16_with_accumulation(tokenizer):
  keras.utils.set_random_seed(5)
  model = BERTForSequenceClassification(CONFIG, num_labels=2)
  loader = create_classification_dataloader(TEXTS, np.arange(30) % 2, tokenizer, batch_size=10)
  trainer = AMPTrainer("bfloat16", 1e-2, gradient_accumulation_steps=3, jit_compile=False)
  start = numpy_of(model.weights[0])
  changed = []
  for batch in loader:
    trainer.train_classification_step(model, batch)
    changed.append(bool((numpy_of(model.weights[0]) != start).any()))
  assert changed == [False, False, True]
  assert model.classifier.compute_dtype == "bfloat16"
  with pytest.raises(ValueError, match="A label is 2, but the model has 2 labels"):
    trainer.train_classification_step(model, {**loader.batch(0), "labels": np.full(10, 2)})


def test_the_trainers_arguments():
  with pytest.raises(ValueError, match="dtype is 'float64'; known: float16, bfloat16"):
    AMPTrainer(dtype="float64")
  trainer = AMPTrainer(max_grad_norm=0.5, gradient_accumulation_steps=4, weight_decay_rate=0.1)
  inner = trainer.optimizer.inner_optimizer
  assert (inner.global_clipnorm, inner.gradient_accumulation_steps) == (0.5, 4)
  assert inner.weight_decay_rate == 0.1
  config = NLPTaskConfig("topic", "topic_classification", num_classes=3)
  sizes = {"vocab_size": 9, "hidden_size": 8, "num_layers": 1, "num_heads": 2}
  model = create_bert_with_head("tiny", config, bert_config_overrides=sizes)
  with pytest.raises(ValueError, match="'topic' returns probabilities"):
    trainer.prepare(model)


# ---------------------------------------------------------------------------------------------
# Scores.


def test_scores_of_tokens_and_classes_that_do_not_occur():
  logits = np.eye(3, dtype="float32")[[[0, 1, 2], [1, 1, 0]]]  # [B, S, C]
  labels = np.array([[0, 1, -100], [0, 1, -100]])
  matrix = compute_confusion_matrix(ops.convert_to_tensor(logits), labels, num_classes=3)
  assert matrix.tolist() == [[1, 1, 0], [0, 2, 0], [0, 0, 0]]
  found = compute_precision_recall_f1(logits, labels, 3, "none")
  assert found["recall"] == [0.5, 1.0, 0.0]


def test_scores_that_cannot_be():
  with pytest.raises(ValueError, match="3 predictions, but 2 labels"):
    compute_confusion_matrix([0, 1, 1], [0, 1])
  with pytest.raises(ValueError, match="Nothing to score"):
    compute_precision_recall_f1([1], [-100])
  with pytest.raises(ValueError, match="largest class is 2, but num_classes is 2"):
    compute_precision_recall_f1([0], [2], num_classes=2)
  with pytest.raises(ValueError, match=r"'average' parameter .* Got 'mean'"):
    compute_precision_recall_f1([0], [1], average="mean")


def test_evaluation_of_a_model(tokenizer, monkeypatch):
  texts = [f"w{i} w{i + 1} w{i + 2}" for i in range(21)]
  labels = np.arange(21) % 3
  keras.utils.set_random_seed(2)
  model = BERTForSequenceClassification(SPREAD, num_labels=3)
  inputs = dict(tokenizer(texts, return_tensors="np"))
  logits = numpy_of(model(inputs, training=False))
  loader = create_classification_dataloader(texts, labels, tokenizer, batch_size=4)
  warnings = []
  monkeypatch.setattr(training, "_has_gpu", lambda: False)
  monkeypatch.setattr(training.logging, "warning", lambda *a: warnings.append(a))
  found = evaluate_classification_metrics(model, loader, device="cuda", num_classes=3)
  assert len(warnings) == 1  # of the missing GPU
  predictions = logits.argmax(axis=1)
  assert set(predictions) == {0, 1, 2}
  assert found["accuracy"] == sklearn.metrics.accuracy_score(labels, predictions)
  expected = sklearn.metrics.precision_recall_fscore_support(labels, predictions, average="macro")
  assert [found["precision"], found["recall"], found["f1"]] == pytest.approx(expected[:3])
  assert found["per_class"]["f1"] == pytest.approx(
    sklearn.metrics.f1_score(labels, predictions, average=None).tolist()
  )
  matrix = sklearn.metrics.confusion_matrix(labels, predictions)
  np.testing.assert_array_equal(found["confusion_matrix"], matrix)
  with pytest.raises(ValueError, match="num_classes is 2, but the model has 3"):
    evaluate_classification_metrics(model, loader, num_classes=2)
  empty = create_classification_dataloader([], [], tokenizer)
  with pytest.raises(ValueError, match="Nothing to score"):
    evaluate_classification_metrics(model, empty, device="cpu")
