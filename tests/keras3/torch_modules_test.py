"""On PyTorch the layers and models are modules as PyTorch's users expect.

Run alone: KERAS_BACKEND=torch python -m pytest tests/keras3/torch_modules_test.py
"""

import keras
import numpy as np
import pytest

from bert.keras3 import (
  BERT,
  BertForMaskedLM,
  BertForSequenceClassification,
  NLPTaskConfig,
  TransformerLayer,
  create_bert_with_head,
)
from bert.keras3.torch_modules import parameter_name
from tests.kit.keras_models import TINY, numpy_of, random_inputs

on_pytorch = pytest.mark.skipif(
  keras.backend.backend() != "torch", reason="needs Keras's PyTorch backend"
)
DROPOUT = {**TINY, "hidden_dropout_prob": 0.5}
NO_DECAY = ["bias", "LayerNorm.weight"]  # as in transformers' own scripts


def functional_model():
  task = NLPTaskConfig("topic", "topic_classification", num_classes=3)
  return create_bert_with_head("tiny", task, bert_config_overrides=DROPOUT)


def pretrained_model():
  return BertForSequenceClassification(BERT(**DROPOUT), num_labels=3)


MODELS = [functional_model, pretrained_model]


def logits(model, inputs) -> np.ndarray:
  outputs = model(inputs)
  return numpy_of(getattr(outputs, "logits", outputs))


def differ(model, inputs) -> bool:
  return not np.array_equal(logits(model, inputs), logits(model, inputs))


@on_pytorch
@pytest.mark.parametrize("create", MODELS)
def test_dropout_follows_the_mode(create, tmp_path):
  model, inputs = create(), random_inputs(2, 6)
  assert not model.training, "calls of Keras are for inference"
  assert not differ(model, inputs)
  assert model.train() is model
  assert differ(model, inputs)
  calm = [numpy_of(model(inputs, training=False)[0]) for _ in range(2)]
  np.testing.assert_array_equal(*calm)
  model.eval()
  assert not differ(model, inputs)
  model.train().save(tmp_path / "model.keras")
  assert not differ(keras.models.load_model(tmp_path / "model.keras"), inputs)


@on_pytorch
def test_a_module_of_pytorch_sets_the_mode_of_the_encoder_in_it():
  import torch

  class Classifier(torch.nn.Module):
    def __init__(self):
      super().__init__()
      self.bert = BERT(**DROPOUT)
      self.fc = torch.nn.Linear(16, 3)

    def forward(self, inputs):
      return self.fc(self.bert(inputs)["pooler_output"])

  model, inputs = Classifier(), random_inputs(2, 6)
  model.train()
  assert differ(model, inputs)
  torch.manual_seed(3)
  first = logits(model, inputs)
  torch.manual_seed(3)
  np.testing.assert_array_equal(logits(model, inputs), first)
  model.bert.eval()
  assert not differ(model, inputs), "an encoder that is left as it is"
  other = Classifier()
  other.load_state_dict(model.state_dict())
  np.testing.assert_array_equal(logits(other, inputs), logits(model, inputs))


@on_pytorch
@pytest.mark.parametrize("create", MODELS)
def test_the_weights_of_one_model_load_into_another(create):
  one, other, inputs = create(), create(), random_inputs(2, 6)
  assert differ_from(one, other, inputs)
  assert list(one.state_dict()) == list(other.state_dict())
  other.load_state_dict(one.state_dict())
  assert not differ_from(one, other, inputs)


def differ_from(one, other, inputs) -> bool:
  return not np.array_equal(logits(one, inputs), logits(other, inputs))


@on_pytorch
@pytest.mark.parametrize("create", MODELS)
def test_parameters_are_the_weights_and_nothing_else(create):
  model = create()
  model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
  model.fit(random_inputs(2, 6), np.array([0, 1]), verbose=0)
  named = dict(model.named_parameters())
  assert len(named) == len(model.state_dict()) == len(model.weights)
  assert sum(p.numel() for p in named.values()) == model.count_params()
  assert "bert.encoder.layer.0.attention.output.LayerNorm.weight" in named
  assert {p.data_ptr() for p in named.values()} == {v.value.data_ptr() for v in model.weights}
  decayed = [name for name in named if not any(part in name for part in NO_DECAY)]
  assert len(decayed) == 3 + 6 + 1 + 1  # tables, matrices of the layer, pooler, head
  assert not any("LayerNorm" in name for name in decayed)


@on_pytorch
def test_weights_that_are_replaced_are_parameters():
  import torch

  class Words(torch.nn.Module):
    def __init__(self):
      super().__init__()
      self.model = BertForMaskedLM(BERT(**TINY))

  for change in (
    lambda model: model.set_input_embeddings(np.ones((50, 16), "float32")),
    lambda model: model.quantize("int8"),
  ):
    outer = Words()
    change(outer.model)
    weights = {variable.value.data_ptr() for variable in outer.model.weights}
    assert {parameter.data_ptr() for parameter in outer.parameters()} == weights
    assert {tensor.data_ptr() for tensor in outer.state_dict().values()} == weights


@pytest.mark.parametrize("rate", [-0.1, 1.5])
def test_a_rate_that_cannot_be(rate):
  with pytest.raises(ValueError, match=r"dropout rate is .* between 0 and 1"):
    TransformerLayer(16, 2, 24, dropout_rate=rate)


def test_names_of_parameters():
  names = [variable.path for variable in BERT(**TINY).weights]
  assert parameter_name(names[0], "bert") == "embeddings.word_embeddings.weight"
  assert "encoder.layer.0.output.dense.kernel" in {parameter_name(name, "bert") for name in names}
