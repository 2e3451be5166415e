"""Losses, attention maps and hidden states in the outputs of models, as in transformers."""

import numpy as np
import pytest

from bert.keras3 import (
  BertForMaskedLM,
  BertForMultipleChoice,
  BertForPreTraining,
  BertForQuestionAnswering,
  BertForSequenceClassification,
  BertForTokenClassification,
  BERTModel,
  BertModel,
)
from bert.model.configuration import BertConfig
from tests.kit.keras_models import numpy_of, random_inputs

CONFIG = BertConfig(40, 16, 2, 2, 24, max_position_embeddings=24, type_vocab_size=2)


def cross_entropy(logits, labels) -> float:
  """Of the rows with a label, in float64."""
  logits, labels = numpy_of(logits).astype("float64"), np.asarray(labels)
  logits, labels = logits[labels >= 0], labels[labels >= 0]
  log_sums = np.log(np.exp(logits).sum(axis=-1))
  return float((log_sums - np.take_along_axis(logits, labels[:, None], -1)[:, 0]).mean())


@pytest.mark.parametrize(
  ("cls", "labels"),
  [
    (BertForSequenceClassification, np.array([1, -100])),
    (BertForTokenClassification, np.array([[0, 1, -100, 1, 0, -100], [1, 1, 1, -100, 0, 0]])),
    (BertForMaskedLM, np.array([[7, -100, 9, -100, 0, -100], [-100] * 6])),
  ],
)
def test_labels_give_a_loss(cls, labels):
  model, inputs = cls(CONFIG), random_inputs(2, 6)
  outputs = model(**inputs, labels=labels)
  assert outputs.keys() == ("logits", "loss")
  np.testing.assert_allclose(float(outputs.loss), cross_entropy(outputs.logits, labels), atol=1e-5)
  inside = model({**inputs, "labels": labels})
  assert float(inside["loss"]) == float(outputs.loss)
  assert model(**inputs).loss is None


def test_labels_of_other_kinds():
  inputs, halves = random_inputs(2, 6), np.array([0.5, 2.0], "float32")
  outputs = BertForSequenceClassification(CONFIG, num_labels=1)(**inputs, labels=halves)
  error = np.mean((numpy_of(outputs.logits)[:, 0] - halves) ** 2)
  np.testing.assert_allclose(float(outputs.loss), error, rtol=1e-5)
  several = np.array([[1, 0, 1], [0, -100, 0]], "float32")
  outputs = BertForSequenceClassification(CONFIG, num_labels=3)(**inputs, labels=several)
  logits = numpy_of(outputs.logits)
  losses = np.log1p(np.exp(-np.where(several > 0, logits, -logits)))
  np.testing.assert_allclose(float(outputs.loss), losses[several >= 0].mean(), rtol=1e-5)


def test_two_losses_at_once():
  inputs = random_inputs(2, 6)
  starts, ends = np.array([0, 3]), np.array([5, 9])  # 9 is behind the text
  outputs = BertForQuestionAnswering(CONFIG)(**inputs, start_positions=starts, end_positions=ends)
  losses = [cross_entropy(outputs.start_logits, starts), cross_entropy(outputs.end_logits, [5, -1])]
  np.testing.assert_allclose(float(outputs.loss), np.mean(losses), atol=1e-5)
  words, sentences = np.where(inputs["input_ids"] % 3, -100, inputs["input_ids"]), np.array([0, 1])
  model = BertForPreTraining(CONFIG)
  outputs = model(**inputs, labels=words, next_sentence_label=sentences)
  losses = [cross_entropy(outputs[0], words), cross_entropy(outputs[1], sentences)]
  np.testing.assert_allclose(float(outputs.loss), sum(losses), atol=1e-5)
  with pytest.raises(ValueError, match="needs labels and next_sentence_label; got labels"):
    model(**inputs, labels=words)


def test_choices_have_a_loss_and_maps():
  inputs = random_inputs(2, 3, 6)
  outputs = BertForMultipleChoice(CONFIG)(**inputs, labels=np.array([2, 0]), output_attentions=True)
  np.testing.assert_allclose(float(outputs.loss), cross_entropy(outputs.logits, [2, 0]), atol=1e-5)
  assert outputs.attentions[0].shape == (6, 2, 6, 6)


def test_attention_maps_and_states_on_request():
  model, inputs = BertModel(CONFIG), random_inputs(2, 6)
  outputs = model(**inputs, output_attentions=True, output_hidden_states=True)
  assert len(outputs.attentions) == 2
  assert len(outputs["hidden_states"]) == 3
  for maps in outputs.attentions:
    np.testing.assert_allclose(numpy_of(maps).sum(axis=-1), np.ones((2, 2, 6)), atol=1e-5)
  assert model(**inputs).attentions is None
  with pytest.raises(KeyError, match="this output has last_hidden_state, pooler_output"):
    model(**inputs)["logits"]
  with pytest.raises(AttributeError, match="this output has"):
    _ = model(**inputs).logits


def test_a_tensor_has_no_room_for_more():
  with pytest.raises(ValueError, match="returns one tensor, without attentions"):
    BERTModel(CONFIG)(**random_inputs(2, 6), output_attentions=True)
  with pytest.raises(ValueError, match="BertModel has no loss"):
    BertModel(CONFIG)(**random_inputs(2, 6), labels=np.array([0, 1]))


def test_the_config_of_a_model():
  model = BertForSequenceClassification(CONFIG, num_labels=3)
  assert (model.config.hidden_size, model.config.num_labels) == (16, 3)
  assert BertForSequenceClassification(model.config).num_labels == 3
  model.config.hidden_size = 1
  assert model.config.hidden_size == 16
