"""Losses of the kit, and its training steps in half precision.

Run alone: python -m pytest tests/keras3/training_test.py
"""

import keras
import numpy as np
import pytest
from keras import ops

from bert.keras3 import (
  AMPTrainer,
  BERTForMaskedLM,
  BERTForSequenceClassification,
  BertTokenizer,
  NLPTaskConfig,
  compute_classification_loss,
  compute_mlm_loader_loss,
  compute_mlm_loss,
  create_bert_with_head,
  create_classification_dataloader,
  create_mlm_dataloader,
  create_model_config,
)
from bert.keras3.models import LogitsOutput

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(35))]
CONFIG = create_model_config(
  "bert-base-uncased",
  vocab_size=len(WORDS),
  hidden_size=16,
  num_hidden_layers=1,
  num_attention_heads=2,
  intermediate_size=32,
  hidden_dropout_prob=0.0,
  attention_probs_dropout_prob=0.0,
  initializer_range=0.2,  # so large that ten steps teach something
)
TEXTS = [f"w{i} w{i + 1} w{i + 2} w{i + 3}" for i in range(30)]


def numpy_of(tensor):
  return ops.convert_to_numpy(tensor)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  path.write_text("\n".join(WORDS) + "\n")
  return BertTokenizer(path)


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
  zeros = np.where(labels == -100, 0, labels)  # 0 stands for none, so the label 0 is none, too
  found = float(compute_mlm_loss({"logits": logits}, zeros, ignore_index=0))
  assert found == pytest.approx(np.mean([expected[0], *expected[2:]]), rel=1e-5)
  assert float(compute_mlm_loss(logits, np.full((2, 3), -100))) == 0


def test_loss_of_classes():
  logits = np.random.default_rng(2).normal(size=(3, 4)).astype("float32")
  expected = [cross_entropy(row, label) for row, label in zip(logits, [3, 0, 1], strict=True)]
  mask = np.zeros((3, 7))  # concerns tokens, and not the label of a text
  found = float(compute_classification_loss(logits, np.array([3, 0, 1]), mask))
  assert found == pytest.approx(np.mean(expected), rel=1e-5)
  found = float(compute_classification_loss(logits, np.array([3, -100, 1])))
  assert found == pytest.approx(np.mean([expected[0], expected[2]]), rel=1e-5)
  tokens, labels = logits[None], np.array([[3, 0, 1]])
  found = float(compute_classification_loss(tokens, labels, np.array([[1, 1, 0]])))
  assert found == pytest.approx(np.mean(expected[:2]), rel=1e-5)


def test_loss_of_a_loader(tokenizer):
  model = BERTForMaskedLM(CONFIG)
  texts = [*TEXTS, " ".join(TEXTS[:5])]
  loader = create_mlm_dataloader(texts, tokenizer, batch_size=9, fresh_masks=False)
  losses = []
  for batch in loader:
    labels = batch.pop("labels")
    logits = numpy_of(model(batch, training=False))
    losses += [
      cross_entropy(row, label)
      for row, label in zip(logits[labels != -100], labels[labels != -100], strict=True)
    ]
  found = compute_mlm_loader_loss(model, loader)
  assert found == pytest.approx(np.mean(losses), rel=1e-5)
  batch = loader.batch(0)
  one = compute_mlm_loader_loss(model, loader, device="cpu", num_batches=1)
  labels = batch.pop("labels")
  expected = compute_mlm_loss(model.predict_on_batch(batch), labels)
  assert one == pytest.approx(float(expected), rel=1e-5)
  for empty in ([], [{"input_ids": batch["input_ids"], "labels": np.full_like(labels, -100)}]):
    with pytest.raises(ValueError, match="no token to predict"):
      compute_mlm_loader_loss(model, empty)
  with pytest.raises(ValueError, match="no labels, only input_ids"):
    compute_mlm_loader_loss(model, [{"input_ids": batch["input_ids"]}])


# ---------------------------------------------------------------------------------------------
# Fit and steps.


def test_fit_takes_a_loader(tokenizer):
  keras.utils.set_random_seed(3)
  model = BERTForSequenceClassification(CONFIG, num_labels=2)
  model.compile(
    optimizer=keras.optimizers.Adam(1e-2),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
    jit_compile=False,
  )
  labels = np.arange(30) // 15
  loader = create_classification_dataloader(TEXTS, labels, tokenizer, batch_size=8)
  history = model.fit(loader, epochs=6, verbose=0).history
  assert loader.epoch >= 6  # one more where Keras looks at the data first
  assert history["loss"][-1] < 0.7 * history["loss"][0]
  assert model.evaluate(loader, verbose=0, return_dict=True)["accuracy"] > 0.7


@pytest.fixture(scope="module")
def trained(tokenizer):
  """A trainer in float16 after ten steps, its model, batch and losses."""
  keras.utils.set_random_seed(4)
  model = BERTForMaskedLM(CONFIG)
  batch = create_mlm_dataloader(TEXTS, tokenizer, batch_size=16).batch(0)
  float32_loss = compute_mlm_loader_loss(model, [batch])
  trainer = AMPTrainer("float16", 1e-2, initial_scale=2.0**10, jit_compile=False)
  losses = [trainer.train_mlm_step(model, batch) for _ in range(10)]
  return trainer, model, batch, losses, float32_loss


def test_steps_in_float16(trained):
  trainer, model, batch, losses, float32_loss = trained
  assert losses[0] == pytest.approx(float32_loss, abs=0.01)
  assert losses[0] != float32_loss
  assert losses[-1] < 0.7 * losses[0]
  assert (trainer.skipped_steps, trainer.loss_scale) == (0, 2.0**10)
  assert {str(weight.dtype) for weight in model.weights} == {"float32"}
  assert model.bert.encoder_layers[0].feed_forward.intermediate.compute_dtype == "float16"
  assert keras.config.dtype_policy().name == "float32"  # other models stay as they were
  with pytest.raises(ValueError, match="has a model already"):
    trainer.train_mlm_step(BERTForMaskedLM(CONFIG), batch)


def test_an_overflow_skips_the_step_and_halves_the_scale(trained):
  trainer, model, batch, _, _ = trained
  before = [numpy_of(weight) for weight in model.weights]
  steps = int(trainer.optimizer.iterations)
  trainer.optimizer.dynamic_scale.assign(2.0**60)
  loss = trainer.train_mlm_step(model, batch)
  assert np.isfinite(loss)
  assert (trainer.skipped_steps, trainer.loss_scale) == (1, 2.0**59)
  assert int(trainer.optimizer.iterations) == steps
  for old, new in zip(before, model.weights, strict=True):
    np.testing.assert_array_equal(old, numpy_of(new))
  trainer.optimizer.dynamic_scale.assign(2.0**10)
  trainer.train_mlm_step(model, batch)
  assert trainer.skipped_steps == 1
  assert (before[0] != numpy_of(model.weights[0])).any()


def test_where_no_scale_helps(trained):
  """Last of those with this trainer: it breaks the weights."""
  trainer, model, batch, _, _ = trained
  trainer.optimizer.dynamic_scale.assign(2.0**-14)
  model.predictions.weights[0].assign(np.full(model.predictions.weights[0].shape, np.nan))
  with pytest.raises(FloatingPointError, match="the loss itself is no number"):
    trainer.train_mlm_step(model, batch)


def test_steps_in_bfloat16_with_accumulation(tokenizer):
  keras.utils.set_random_seed(5)
  model = BERTForSequenceClassification(CONFIG, num_labels=2)
  loader = create_classification_dataloader(TEXTS, np.arange(30) % 2, tokenizer, batch_size=10)
  trainer = AMPTrainer("bfloat16", 1e-2, gradient_accumulation_steps=3, run_eagerly=True)
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
  with pytest.raises(ValueError, match="gradient_accumulation_steps is 0"):
    AMPTrainer(gradient_accumulation_steps=0)
  trainer = AMPTrainer(max_grad_norm=0.5, gradient_accumulation_steps=4, weight_decay_rate=0.1)
  inner = trainer.optimizer.inner_optimizer
  assert (inner.global_clipnorm, inner.gradient_accumulation_steps) == (0.5, 4)
  assert inner.weight_decay_rate == 0.1
  config = NLPTaskConfig("topic", "topic_classification", num_classes=3)
  sizes = {"vocab_size": 9, "hidden_size": 8, "num_layers": 1, "num_heads": 2}
  model = create_bert_with_head("tiny", config, bert_config_overrides=sizes)
  with pytest.raises(ValueError, match="'topic' gives probabilities"):
    trainer.prepare(model)
