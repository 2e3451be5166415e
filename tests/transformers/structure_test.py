"""The parts of the models: where they are, freezing and calling them, files with their state.

Names and values are those of transformers 4's TensorFlow classes, for all families.
"""

import keras
import numpy as np
import pytest

from bert import keras3
from bert import transformers as room

pytestmark = pytest.mark.ci

SIZES = {
  "vocab_size": 60,
  "hidden_size": 8,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 12,
  "max_position_embeddings": 40,
  "initializer_range": 0.4,
}
IDS = np.random.default_rng(0).integers(4, 60, (4, 6))
FAMILIES = {
  "Bert": "bert",
  "Roberta": "roberta",
  "DistilBert": "distilbert",
  "Albert": "albert",
  "Electra": "electra",
}
EMBEDDINGS = {"Albert": 5, "Electra": 5}
IN_A_LAYER = {
  "Bert": "attention.self_attention.query",
  "Roberta": "attention.self.key",
  "DistilBert": "attention.q_lin",
  "Albert": "attention.query",
  "Electra": "attention.dense_output.dense",
}


def make(family: str, head: str = "ForSequenceClassification", **keys):
  """A tiny model."""
  if family in EMBEDDINGS:
    keys["embedding_size"] = EMBEDDINGS[family]
  config = getattr(room, f"{family}Config")(**SIZES, num_labels=3, **keys)
  return getattr(room, f"TF{family}{head}")(config)


def at(model, path: str):
  """The part at a path of attributes."""
  for name in path.split("."):
    model = model[int(name)] if name.isdigit() else getattr(model, name)
  return model


def encoder_paths(family: str) -> list[str]:
  """Parts of a model's encoder that users freeze."""
  main = FAMILIES[family]
  encoder = "transformer" if family == "DistilBert" else "encoder"
  layer = f"{main}.{encoder}.layer.0"
  if family == "Albert":
    layer = f"{main}.encoder.albert_layer_groups.0.albert_layers.0"
  return [main, f"{main}.{encoder}", f"{main}.embeddings", layer, f"{layer}.{IN_A_LAYER[family]}"]


def count_inside(part) -> int:
  return len(part.variables) - sum("seed" in variable.path for variable in part.variables)


@pytest.mark.parametrize("family", FAMILIES)
def test_frozen_parts_stay_frozen_with_the_state_of_the_optimizer(family, tmp_path):
  for index, path in enumerate(encoder_paths(family)):
    model = make(family)
    every = len(model.trainable_variables)
    part = at(model, path)
    part.trainable = False
    assert len(model.trainable_variables) == every - count_inside(part) < every, path
    if index in (1, 3):  # one training step is enough of a whole encoder and of a layer
      model.compile(keras.optimizers.Adam(0.01))
      before = [np.array(variable) for variable in part.weights]
      model.fit(IDS, np.arange(4) % 3, verbose=0)
      for was, variable in zip(before, part.weights, strict=True):
        np.testing.assert_array_equal(was, variable)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    frozen = [variable.trainable for variable in model.weights]
    assert [variable.trainable for variable in again.weights] == frozen, path
    if index in (1, 3):
      for one, two in zip(model.optimizer.variables, again.optimizer.variables, strict=True):
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
  ("family", "head", "part"),
  [
    ("DistilBert", "ForSequenceClassification", "pre_classifier"),
    ("Electra", "ForMultipleChoice", "sequence_summary"),
  ],
)
def test_a_summary_lists_the_parts(family, head, part):
  lines = []
  make(family, head).summary(print_fn=lambda text, **_: lines.append(text))
  rows = "".join(lines)
  assert all(f"│ {name} " in rows for name in (FAMILIES[family], part, "classifier"))


def test_a_frozen_layer_in_a_functional_model(tmp_path):
  bert = keras3.BERT(40, 8, 2, 2, 12)
  bert.encoder.layer[1].intermediate.trainable = False
  inputs = keras3.create_inputs()
  model = keras.Model(inputs, keras.layers.Dense(2)(bert(inputs)["pooler_output"]))
  model.save(tmp_path / "model.keras")
  again = keras.models.load_model(tmp_path / "model.keras")
  assert len(again.trainable_variables) == len(model.trainable_variables)
  assert not again.get_layer("bert").encoder.layer[1].intermediate.dense.trainable
  assert again.get_layer("bert").encoder.layer[1].attention.trainable


def test_the_precision_of_parts_survives(tmp_path):
  model = make("Bert")
  model.bert.encoder.layer[1].intermediate.dense.dtype_policy = "mixed_bfloat16"
  model.save(tmp_path / "model.keras")
  again = keras.models.load_model(tmp_path / "model.keras")
  policies = [each.dtype_policy.name for each in again._flatten_layers()]
  assert policies.count("mixed_bfloat16") == 1
  assert again.bert.encoder.layer[1].intermediate.dense.compute_dtype == "bfloat16"


@pytest.mark.parametrize("family", FAMILIES)
def test_parts_compute_what_the_model_does(family):
  model = make(family)
  encoder = getattr(model, FAMILIES[family])
  outputs = encoder(IDS)
  states = outputs.last_hidden_state
  logits = model(IDS).logits
  if family in ("Roberta", "Electra"):
    found = model.classifier(states)
    hidden = model.classifier.dense(states[:, 0])
    expected = np.asarray(hidden) @ np.asarray(model.classifier.out_proj.kernel)
  else:
    pooled = states[:, 0] if family == "DistilBert" else encoder.pooler(states)
    if family == "DistilBert":
      kernel, bias = model.pre_classifier.get_weights()
      pooled = np.maximum(np.asarray(pooled) @ kernel + bias, 0.0)
      np.testing.assert_allclose(model.pre_classifier(states[:, 0]), pooled, atol=1e-5)
    else:
      kernel, bias = encoder.pooler.dense.get_weights()
      expected = np.tanh(np.asarray(states)[:, 0] @ kernel + bias)
      np.testing.assert_allclose(pooled, expected, atol=1e-5)
    found = model.classifier(model.dropout(pooled))
    expected = np.asarray(pooled) @ np.asarray(model.classifier.kernel)
  np.testing.assert_allclose(found, logits, atol=1e-5)
  np.testing.assert_allclose(expected, logits, atol=1e-5)  # the biases are zero


@pytest.mark.parametrize("family", FAMILIES)
def test_words_and_spans_by_their_layers(family):
  model = make(family, "ForMaskedLM")
  name = {"Bert": "mlm", "Roberta": "lm_head", "Albert": "predictions"}.get(family)
  states = getattr(model, FAMILIES[family])(IDS).last_hidden_state
  if name is not None:
    np.testing.assert_allclose(getattr(model, name)(states), model(IDS).logits, atol=1e-5)
  model = make(family, "ForQuestionAnswering")
  states = getattr(model, FAMILIES[family])(IDS).last_hidden_state
  both, outputs = np.asarray(model.qa_outputs(states)), model(IDS)
  np.testing.assert_allclose(both[..., 0], outputs.start_logits, atol=1e-5)
  np.testing.assert_allclose(both[..., 1], outputs.end_logits, atol=1e-5)


def test_another_activation_takes_effect():
  model = make("Bert")
  before = np.asarray(model(IDS).logits)
  model.classifier.activation = keras.activations.sigmoid
  np.testing.assert_allclose(model(IDS).logits, 1 / (1 + np.exp(-before)), atol=1e-5)
  np.testing.assert_allclose(model.predict(IDS, verbose=0).logits, model(IDS).logits, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_other_word_embeddings(family):
  model = make(family, "ForMaskedLM")
  width = EMBEDDINGS.get(family, 8)
  table = np.random.default_rng(1).normal(size=(70, width)).astype("float32")
  model.set_input_embeddings(table)
  np.testing.assert_array_equal(model.get_input_embeddings().weight, table)
  assert model(IDS + 8).logits.shape == (4, 6, 70)


def test_a_quantized_model_is_saved_by_keras_alone(tmp_path):
  model = make("Bert")
  exact = np.asarray(model(IDS).logits)
  model.quantize("int8")
  expected = np.asarray(model(IDS).logits)
  assert 0 < np.abs(expected - exact).max() < 0.2
  model.save(tmp_path / "model.keras")
  again = keras.models.load_model(tmp_path / "model.keras")
  assert again.bert.encoder.layer[0].intermediate.dense.kernel.dtype == "int8"
  np.testing.assert_allclose(again(IDS).logits, expected, atol=1e-6)
  with pytest.raises(ValueError, match=r"is int8: save the model before model\.quantize"):
    model.save_pretrained(tmp_path / "folder")


def test_three_layers_of_pre_training():
  config = room.BertConfig(**SIZES)
  bert = room.TFBertMainLayer(config, name="bert")
  words = room.TFBertMLMHead(config, bert.embeddings, name="mlm___cls")
  sentences = room.TFBertNSPHead(config, name="nsp___cls")
  outputs = bert({"input_ids": IDS})
  assert tuple(words(outputs.last_hidden_state).shape) == (4, 6, 60)
  assert tuple(sentences(outputs.pooler_output).shape) == (4, 2)
  assert len(words.weights) == 5  # the word embeddings are the encoder's
