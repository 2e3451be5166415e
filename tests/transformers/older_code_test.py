"""What notebooks and scripts written for transformers' TensorFlow classes use beside the models.

docs/results/transformers.md names those that were tried.
"""

import math
import shutil

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert import transformers as room
from bert.transformers import (
  BertConfig,
  BertTokenizerFast,
  DistilBertConfig,
  InputExample,
  RobertaConfig,
  TextClassificationPipeline,
  TFBertForSequenceClassification,
  TFBertModel,
  TFDistilBertModel,
  TFRobertaModel,
  get_initializer,
  glue_convert_examples_to_features,
  glue_processors,
  shape_list,
)

SIZES = {
  "vocab_size": 60,
  "hidden_size": 16,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 24,
  "max_position_embeddings": 40,
}
IDS = np.random.default_rng(0).integers(4, 60, (8, 7))
MASK = np.ones_like(IDS)
LABELS = np.arange(8) % 2
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "film", "was", "good", "bad"]


@pytest.fixture(scope="module")
def model():
  keras.utils.set_random_seed(1)
  return TFBertForSequenceClassification(BertConfig(**SIZES))


@pytest.fixture
def tokenizer(tmp_path):
  path = tmp_path / "vocab.txt"
  path.write_text("\n".join(WORDS), "utf-8")
  return BertTokenizerFast(str(path))


# ---------------------------------------------------------------------------------------------
# Import lines.


def test_a_star_imports_classes_and_functions():
  names: dict = {}
  exec(f"from {room.__name__} import *", names)
  assert {"TFBertModel", "RobertaConfig", "pipeline", "glue_processors"} <= set(names)
  assert "keras" not in names


def test_shapes_and_initializers():
  assert shape_list(tf.zeros([2, 3])) == [2, 3]
  assert shape_list(keras.Input((4,))) == [None, 4]
  sizes = tf.function(lambda x: shape_list(x)[0] + shape_list(x)[1])
  assert sizes.get_concrete_function(tf.TensorSpec([None, 3]))(tf.zeros([2, 3])) == 5
  assert get_initializer(0.5).stddev == 0.5


def test_activations_by_name():
  x = np.linspace(-3, 3, 7).astype(np.float32)
  exact = x * (1 + np.vectorize(math.erf)(x / np.sqrt(2))) / 2
  np.testing.assert_allclose(room.get_tf_activation("gelu")(x), exact, atol=1e-6)
  assert np.abs(room.ACT2FN["gelu_new"](x) - exact).max() > 1e-4
  with pytest.raises(KeyError, match="no activation 'mish'"):
    room.get_tf_activation("mish")


class Head(room.TFSequenceClassificationLoss):
  """As people wrote them."""

  @room.unpack_inputs
  def call(self, input_ids=None, attention_mask=None, training=False):
    return input_ids, attention_mask, training


def test_a_dictionary_or_a_list_becomes_arguments():
  for given in ({"input_ids": 1, "attention_mask": 2, "other": 3}, [np.array(1), np.array(2)]):
    assert Head().call(given, training=True) == (1, 2, True)
  assert Head().call(1, 2) == Head().call(1, attention_mask=2) == (1, 2, False)
  logits = np.array([[2.0, 0.0], [0.0, 1.0]], np.float32)
  expected = -np.log(np.exp([2.0, 1.0]) / np.exp(logits).sum(axis=1))
  np.testing.assert_allclose(Head().hf_compute_loss(np.array([0, 1]), logits), expected, rtol=1e-5)


@room.keras_serializable
class Encoder(keras.layers.Layer):
  """As people wrote them."""

  def __init__(self, config, **kwargs):
    super().__init__(**kwargs)
    self.dense = keras.layers.Dense(config.hidden_size)

  def call(self, inputs):
    return self.dense(inputs)


def test_a_layer_of_a_configuration_is_saved_with_it(tmp_path):
  model = keras.Sequential([keras.Input((4,)), Encoder(BertConfig(**SIZES))])
  model.save(tmp_path / "model.keras")
  found = keras.saving.load_model(tmp_path / "model.keras")
  np.testing.assert_array_equal(found(np.ones([2, 4])), model(np.ones([2, 4])))


# ---------------------------------------------------------------------------------------------
# Models.


def test_the_main_layer_returns_what_a_model_without_a_head_returns(model):
  encoder = TFBertModel(BertConfig(**SIZES))
  expected = encoder(IDS, MASK)
  output = encoder.bert(IDS, attention_mask=MASK)
  for name in ("last_hidden_state", "pooler_output"):
    np.testing.assert_array_equal(output[name], expected[name])
  assert len(output) == 2
  assert isinstance(encoder.bert([IDS, MASK], return_dict=False), tuple)
  attending = room.TFBertMainLayer(BertConfig(**SIZES, output_attentions=True))
  assert len(attending(IDS).attentions) == SIZES["num_hidden_layers"]
  small = DistilBertConfig(vocab_size=60, dim=16, n_layers=1, n_heads=2, hidden_dim=24)
  assert list(TFDistilBertModel(small).distilbert(IDS)) == ["last_hidden_state"]
  ids = keras.Input((7,), dtype="int32")
  states, pooled = model.bert(ids, return_dict=False)
  scores = keras.layers.Dense(1)(keras.layers.GlobalMaxPool1D()(states))
  functional = keras.Model(ids, [scores, pooled])
  assert functional.predict(IDS, verbose=0)[1].shape == (8, 16)


def test_a_file_of_weights_is_of_the_family_of_the_given_configuration(tmp_path):
  config = RobertaConfig(**SIZES)
  saved = TFRobertaModel(config)
  saved.save_pretrained(tmp_path / "folder")
  shutil.copy(tmp_path / "folder" / "model.safetensors", tmp_path / "roberta.safetensors")
  model = TFRobertaModel.from_pretrained(tmp_path / "roberta.safetensors", config=config)
  np.testing.assert_array_equal(model(IDS)[0], saved(IDS)[0])


def test_the_rate_only_rises_in_a_warm_up_that_is_longer_than_training():
  _, schedule = room.create_optimizer(1e-3, num_train_steps=5, num_warmup_steps=10)
  np.testing.assert_allclose([schedule(step) for step in range(6)], 1e-4 * np.arange(6))


@pytest.mark.slow
def test_rows_of_tables_that_are_looked_up_often_take_no_longer_steps():
  model = TFBertForSequenceClassification(BertConfig(**SIZES))
  tables = model.bert.embeddings
  before = np.array(tables.word_embeddings)
  model.compile(keras.optimizers.Adam(0.01))
  ids = np.full((8, 7), 5)
  model.fit({"input_ids": ids, "labels": LABELS}, epochs=1, batch_size=8, verbose=0)
  steps = np.abs(np.array(tables.word_embeddings) - before)
  assert 0.009 < steps[5].max() < 0.0101
  assert np.all(np.delete(steps, 5, 0) == 0)


def test_a_batch_of_inputs_and_labels_is_predicted(model):
  batch = ({"input_ids": tf.constant(IDS)}, tf.constant(LABELS))
  for outputs in (
    model.predict_on_batch(batch),
    model.predict_on_batch({"input_ids": IDS, "labels": LABELS}),
    model.predict({"input_ids": IDS, "labels": LABELS}, verbose=0),
  ):
    np.testing.assert_allclose(outputs.logits, model(IDS).logits, atol=1e-6)


# ---------------------------------------------------------------------------------------------
# Texts.


def test_pad_to_max_length_cuts_as_well(tokenizer):
  text = "the film was good the film was bad"
  assert len(tokenizer.encode(text, max_length=6, pad_to_max_length=True)) == 6
  assert len(tokenizer.encode("good", max_length=6, pad_to_max_length=True)) == 6
  uncut = tokenizer.encode(text, max_length=6, pad_to_max_length=True, truncation=False)
  assert len(uncut) == 10


def test_a_pipeline_is_made_of_its_class(model, tokenizer):
  answer = TextClassificationPipeline(
    model=model, tokenizer=tokenizer, framework="tf", device=-1, return_all_scores=True
  )
  assert len(answer("the film")[0]) == 2


def test_examples_of_glue_become_features(tokenizer):
  rows = {"idx": [0, 1], "label": np.array([1, 0]), "sentence1": ["good", "bad film"]}
  rows["sentence2"] = ["the film was good", "good"]
  data = tf.data.Dataset.from_tensor_slices(rows)
  made = glue_convert_examples_to_features(data, tokenizer, max_length=9, task="mrpc")
  [(inputs, labels)] = list(made.batch(2))
  assert inputs["input_ids"].numpy().tolist()[1] == [2, 9, 6, 3, 8, 3, 0, 0, 0]
  assert inputs["token_type_ids"].numpy().tolist()[1] == [0] * 4 + [1] * 2 + [0] * 3
  assert labels.numpy().tolist() == [1, 0]
  examples = [InputExample("a", "good", label="not_entailment")]
  [features] = glue_convert_examples_to_features(examples, tokenizer, 4, task="rte")
  assert (features.input_ids, features.label) == ([2, 8, 3, 0], 1)
  assert glue_processors["mnli"]().get_labels()[1] == "entailment"
  with pytest.raises(ValueError, match="no task 'nli'"):
    glue_convert_examples_to_features(data, tokenizer, task="nli")
