"""Ids out of range are named before a model reads them, on every backend."""

import keras
import numpy as np
import pytest
import transformers

from bert.keras3 import (
  BERT,
  BertForSequenceClassification,
  NLPTaskConfig,
  create_bert_with_head,
  create_classification_dataloader,
  create_optimizer,
  get_linear_schedule_with_warmup,
)
from tests.kit.keras_models import TINY, arrays, random_inputs


def encoder():
  return BERT(**TINY)


def pretrained_model():
  return BertForSequenceClassification(BERT(**TINY))


def functional_model():
  task = NLPTaskConfig("topic", "topic_classification", num_classes=2)
  return create_bert_with_head("tiny", task, bert_config_overrides=TINY)


@pytest.mark.parametrize("create", [encoder, pretrained_model, functional_model])
def test_wrong_ids_are_named(create):
  model, inputs, labels = create(), random_inputs(2, 6), np.array([0, 1])
  model.compile("sgd", "sparse_categorical_crossentropy")
  inputs["input_ids"][1, 2] = 40
  message = "input_ids has 1 values out of range, such as 40: this model's are 0 to 39"
  for method in (model, model.predict, model.predict_on_batch):
    with pytest.raises(ValueError, match=message):
      method(inputs)
  for method in (model.fit, model.evaluate, model.train_on_batch, model.test_on_batch):
    with pytest.raises(ValueError, match=message):
      method(inputs, labels)
  good = random_inputs(2, 6)
  with pytest.raises(ValueError, match=message):
    model.fit(good, labels, validation_data=(inputs, labels))
  with pytest.raises(ValueError, match="token_type_ids has 12 values out of range, such as 2"):
    model({"input_ids": good["input_ids"], "token_type_ids": np.full((2, 6), 2)})


def test_ids_by_keyword():
  with pytest.raises(ValueError, match="such as 50"):
    pretrained_model()(input_ids=np.array([[50]]), attention_mask=np.array([[1]]))
  with pytest.raises(ValueError, match="position_ids has 1 values out of range, such as 24"):
    encoder()(np.array([[3]]), position_ids=np.array([[24]]))


def test_negative_ids_and_ragged_rows():
  model = encoder()
  with pytest.raises(ValueError, match=r"such as -1: .* Is the tokenizer that of the model"):
    model(np.array([[3, -1]]))
  with pytest.raises(ValueError, match=r"input_ids .* different lengths"):
    model({"input_ids": [[1, 2], [3]]})


def test_tensors_of_jax_are_checked_too():
  if keras.backend.backend() != "jax":
    pytest.skip("other tensors would have to be fetched from their device")
  with pytest.raises(ValueError, match="such as 99"):
    encoder()(keras.ops.convert_to_tensor(np.array([[99]], "int32")))


def test_a_loader_with_another_vocabulary(tokenizer):
  loader = create_classification_dataloader(["w80 w1", "w2"], [0, 1], tokenizer)
  model = pretrained_model()
  model.compile("sgd", "mse")
  with pytest.raises(ValueError, match="input_ids has 1 values out of range, such as 85"):
    model.fit(loader)


@pytest.mark.parametrize(
  ("inputs", "message"),
  [
    (["a text"], "input_ids are texts; pass the ids that a tokenizer makes of them"),
    (np.array([["a"]], object), "input_ids are texts"),
    (np.ones(5, "int32"), r"input_ids is \[5\]; it must be \[texts, tokens\], also for one text"),
    (np.full((2, 5), 0.5), "input_ids are not whole numbers"),
    (np.ones((2, 30), "int32"), "sequence of 30 tokens is longer than max_position_emb"),
    (
      {"input_ids": np.ones((2, 5), "int32"), "attention_mask": np.ones((2, 4))},
      r"attention_mask is \[2, 4\], but input_ids is \[2, 5\]",
    ),
  ],
)
def test_inputs_that_are_no_ids(inputs, message):
  with pytest.raises(ValueError, match=message):
    encoder()(inputs)


@pytest.mark.parametrize(
  ("create", "of_arrays"), [(encoder, True), (pretrained_model, False), (functional_model, True)]
)
def test_what_a_tokenizer_returns(create, of_arrays):
  model, inputs = create(), random_inputs(2, 5)
  given = inputs if of_arrays else {name: ids.tolist() for name, ids in inputs.items()}
  encoded = transformers.BatchEncoding(given)
  expected = arrays(model(inputs))
  for outputs in (model(encoded), model.predict(encoded, verbose=0)):
    for name, values in arrays(outputs).items():
      np.testing.assert_allclose(values, expected[name], atol=1e-5)
  if create is not encoder:
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss, run_eagerly=True)
    labels = np.array([0, 1])
    model.fit(encoded, labels, validation_data=(encoded, labels), verbose=0)
    loss = model.evaluate(encoded, labels, verbose=0)
    assert loss == pytest.approx(float(model.test_on_batch(encoded, labels)), abs=1e-5)


@pytest.mark.parametrize(
  ("create", "message"),
  [
    (lambda: BertForSequenceClassification("bert-base-uncased"), "names and folders: from_pretr"),
    (lambda: BertForSequenceClassification(BERT(**TINY), num_labels=-1), "num_labels is -1"),
    (lambda: NLPTaskConfig("t", "text_classification", "3"), "num_classes of at least 2, not '3'"),
    (lambda: create_optimizer("2e-5", 10, 1), "init_lr is '2e-5'; it must be a number"),
    (
      lambda: get_linear_schedule_with_warmup("adam", 1, 2),
      "The optimizer is 'adam'; create one of Keras",
    ),
  ],
)
def test_arguments_that_make_no_model(create, message):
  with pytest.raises(ValueError, match=message):
    create()
