"""The losses on a teacher's outputs, against NumPy in float64."""

import math

import numpy as np
import pytest
import tensorflow as tf

from bert import run_ner
from bert.distillation import logits
from bert.distillation.methods import Step
from bert.fine_tuning.task import Task
from bert.model.task_head import Head
from bert.scripts.run_settings import SplitSettings
from bert.tasks.classification import InputExample, label_id


def softmax(x):
  e = np.exp(x - x.max(-1, keepdims=True))
  return e / e.sum(-1, keepdims=True)


def sigmoid(x):
  return 1.0 / (1.0 + np.exp(-x))


def divergence(student, teacher, temperature):
  """T^2 KL(teacher || student) of each row."""
  p, q = softmax(teacher / temperature), softmax(student / temperature)
  return temperature**2 * (p * np.log(p / q)).sum(-1)


@pytest.fixture
def rows():
  rng = np.random.default_rng(3)
  return rng.normal(0, 3, [2, 4, 5]), rng.normal(0, 3, [2, 4, 5])


@pytest.mark.parametrize("temperature", [1.0, 2.0, 4.5])
def test_classes_at_a_temperature(rows, temperature):
  student, teacher = rows
  found = logits.soft_losses(*map(tf.constant, (student, teacher)), temperature)
  np.testing.assert_allclose(found, divergence(student, teacher, temperature), rtol=1e-10)
  same = logits.soft_losses(*map(tf.constant, (teacher, teacher)), temperature)
  np.testing.assert_allclose(same, 0.0, atol=1e-12)


def test_numbers_and_several_labels(rows):
  student, teacher = rows[0][0], rows[1][0]
  found = logits.soft_losses(
    tf.constant(student[:, :1]), tf.constant(teacher[:, :1]), 9, "regression"
  )
  np.testing.assert_allclose(found, (student[:, :1] - teacher[:, :1]) ** 2, rtol=1e-12)
  found = logits.soft_losses(tf.constant(student), tf.constant(teacher), 2.0, "multi_label")
  p, q = sigmoid(teacher / 2), sigmoid(student / 2)
  expected = 4 * (p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q)))
  np.testing.assert_allclose(found, expected.mean(-1), rtol=1e-9)


def test_scores_that_stand_for_padding_are_finite():
  """Of choices and of positions that are padding; they are so in both models."""
  student = tf.constant([[1.0, -10000.0, 2.0]])
  taught = tf.constant([[0.5, -10000.0, 0.1]])
  found = logits.soft_losses(student, taught, 2.0)
  without = logits.soft_losses(student[:, ::2], taught[:, ::2], 2.0)
  np.testing.assert_allclose(found, without, rtol=1e-5)


@pytest.mark.parametrize("shape", [(2,), (2, 1), (2, 4), (2, 4, 5)])
def test_numbers_of_each_text_or_token_without_padding(rows, shape):
  """The mean over them, whatever the batch, the length and the axes of the outputs."""

  class NumbersHead(Head):
    per_token = len(shape) > 1 and shape[1] == 4

  class Numbers(Task):
    name, problem_type, head_class = "numbers", "regression", NumbersHead

  student, teacher = (np.float32(each).ravel()[: np.prod(shape)].reshape(shape) for each in rows)
  mask = np.array([[1, 1, 1, 0], [1, 0, 0, 0]])
  step = Step({"input_mask": tf.constant(mask)}, {"x": tf.constant(student)}, None, None)
  loss = Numbers(SplitSettings()).distillation_loss(logits.Comparison(step, {"x": teacher}, 2.0))
  expected = (student - teacher) ** 2
  if Numbers.head_class.per_token:
    expected = expected[mask == 1]
  np.testing.assert_allclose(loss, expected.mean(), rtol=1e-5)


def learned(outputs, taught, features, label_losses, **settings):
  method = logits.LogitsMethod(lambda step: taught, **settings)
  return method(Step(features, outputs, tf.constant(label_losses), lambda config: {}))


def test_tags_are_learned_of_words_alone(rows):
  student, teacher = (x.astype(np.float32) for x in rows)
  mask = np.array([[0, 1, 1, 0], [0, 1, 0, 0]])
  task = run_ner.Tagging(run_ner.NerSettings())
  found = learned(
    {"logits": student},
    {"logits": teacher},
    {"word_mask": tf.constant(mask)},
    0.7,
    soft_loss=task.distillation_loss,
  )
  soft = divergence(*rows, 2.0)[mask > 0].mean()
  np.testing.assert_allclose(found.parts["soft_loss"], soft, rtol=1e-5)
  np.testing.assert_allclose(found.loss, 0.5 * soft + 0.5 * 0.7, rtol=1e-5)


def test_spans_have_a_beginning_and_an_end(rows):
  student = dict(zip(("start_logits", "end_logits"), rows[0].astype(np.float32), strict=True))
  teacher = dict(zip(("start_logits", "end_logits"), rows[1].astype(np.float32), strict=True))
  found = learned(student, teacher, {}, 2.0, temperature=1.0, label_weight=0.25)
  soft = divergence(*rows, 1.0).mean()
  np.testing.assert_allclose(found.loss, 0.75 * soft + 0.25 * 2.0, rtol=1e-5)


def test_examples_without_a_label_learn_from_the_teacher_alone(rows):
  student, teacher = (x[0].astype(np.float32) for x in rows)
  features = logits.with_places_for_labels({"label_ids": tf.constant([1, -1, 0, -1])})
  assert features["label_ids"].numpy().tolist() == [1, 0, 0, 0]
  losses = np.array([4.0, 100.0, 2.0, 100.0], np.float32)
  found = learned({"logits": student}, {"logits": teacher}, features, losses)
  assert found.parts["label_loss"].numpy() == 6.0 / 4
  np.testing.assert_allclose(
    found.parts["soft_loss"], divergence(rows[0][0], rows[1][0], 2.0).mean(), rtol=1e-5
  )


@pytest.mark.parametrize(
  ("problem_type", "label"), [("regression", 0.5), ("multi_label", [1, 0]), ("classification", 1)]
)
def test_a_place_for_each_label_that_is_missing(problem_type, label):
  example = InputExample("1", "text", is_labelled=False)
  missing = label_id(example, ["a", "b"], problem_type)
  features = logits.with_places_for_labels({"label_ids": tf.constant([label, missing])})
  assert features["has_label"].numpy().tolist() == [1.0, 0.0]
  expected = np.array([label, np.zeros_like(label)])
  np.testing.assert_array_equal(features["label_ids"], expected)
  assert not math.isnan(np.sum(features["label_ids"]))


def test_labels_in_another_order():
  assert logits.columns_of(["B", "O", "I"], ["O", "I", "B"]) == [1, 2, 0]
  assert logits.columns_of(["LABEL_0", "LABEL_1"], ["no", "yes"]) == [0, 1]
  assert logits.columns_of(["LABEL_0", "LABEL_1"], ["1", "0"]) == [1, 0]
  with pytest.raises(ValueError, match=r"labels a, b, .* a, c"):
    logits.columns_of(["a", "b"], ["a", "c"])
