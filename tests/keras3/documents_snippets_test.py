"""What five published texts on BERT show, line by line, on the backend of this process.

Those are: a Keras 3 BERT with task heads, a notebook on TensorFlow Hub, an annotated BERT, a
training kit, and a course on encoders with transformers. Names and calls are theirs; sizes are
tiny, and a folder stands for `bert-base-uncased`. What they show of TensorFlow Hub and of the
original's modules is tested in tests/system (examples_of_use_test.py, keras_examples_test.py).

Run alone: KERAS_BACKEND=jax python -m pytest tests/keras3/documents_snippets_test.py
"""

import keras
import numpy as np
import pytest

import bert.keras3 as keras3
from bert.keras3 import (
  BERT,
  BertForSequenceClassification,
  BertModel,
  BertTokenizer,
  NLPTaskConfig,
  NLPTaskType,
  TextClassificationHead,
  TokenClassificationHead,
  create_bert_with_head,
  create_model_config,
)
from tests.kit.keras_models import TINY_KEYS, numpy_of

pytestmark = pytest.mark.ci

BACKEND = keras.backend.backend()
on_pytorch = pytest.mark.skipif(BACKEND != "torch", reason="code of PyTorch")
on_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="code of TensorFlow")

SMALL = {"hidden_size": 16, "num_layers": 2, "num_heads": 2, "intermediate_size": 24}
BATCH, LENGTH = 4, 12


@pytest.fixture(scope="module")
def name(tmp_path_factory, tokenizer):
  """Stands for the name of a released model."""
  keras.utils.set_random_seed(7)
  folder = tmp_path_factory.mktemp("model")
  BertModel(BERT(vocab_size=tokenizer.vocab_size, **SMALL)).save_pretrained(folder, tokenizer)
  return str(folder)


@pytest.fixture
def dummy_inputs():
  generator = np.random.default_rng(1)
  return {
    "input_ids": generator.integers(0, 104, size=(BATCH, LENGTH)),
    "attention_mask": np.ones((BATCH, LENGTH), dtype="int32"),
    "token_type_ids": np.zeros((BATCH, LENGTH), dtype="int32"),
  }


def small_encoder(**arguments) -> BERT:
  return BERT.from_variant("tiny", vocab_size=104, **SMALL, **arguments)


# ---------------------------------------------------------------------------------------------
# A Keras 3 BERT with task heads.


def test_quick_start(dummy_inputs, capsys):
  sentiment_config = NLPTaskConfig(
    name="sentiment_analysis", task_type=NLPTaskType.SENTIMENT_ANALYSIS, num_classes=3
  )
  model = create_bert_with_head(
    bert_variant="base",
    task_config=sentiment_config,
    pretrained=False,
    bert_config_overrides={**SMALL, "vocab_size": 104},
  )
  model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=2e-5),
    loss="sparse_categorical_crossentropy",
    metrics=["accuracy"],
  )
  model.summary()
  assert "bert_sentiment_analysis" in capsys.readouterr().out
  dummy_labels = np.random.default_rng(2).integers(0, 3, size=(BATCH,))
  history = model.fit(dummy_inputs, dummy_labels, epochs=1, verbose=0)
  assert np.isfinite(history.history["loss"][0])
  assert model.predict(dummy_inputs, verbose=0).shape == (4, 3)


def test_weights_from_elsewhere(tmp_path, name, dummy_inputs):
  one = BERT.from_variant("tiny", pretrained=name, **SMALL)
  one.save(tmp_path / "bert_weights.keras")
  other = BERT.from_variant("tiny", pretrained=str(tmp_path / "bert_weights.keras"), **SMALL)
  found = [numpy_of(bert(dummy_inputs)["last_hidden_state"]) for bert in (one, other)]
  np.testing.assert_array_equal(*found)
  larger = BERT.from_variant("tiny", pretrained=name, **{**SMALL, "vocab_size": 500})
  kernels = [bert.encoder_layers[0].attention.self.query.kernel for bert in (one, larger)]
  np.testing.assert_array_equal(*map(numpy_of, kernels))
  assert larger.embeddings.word_embeddings.shape == (500, 16)


def test_named_entities(tmp_path, dummy_inputs):
  ner_config = NLPTaskConfig("ner", NLPTaskType.NAMED_ENTITY_RECOGNITION, num_classes=9)
  overrides = {**SMALL, "vocab_size": 104}
  model = create_bert_with_head("base", ner_config, bert_config_overrides=overrides)
  assert model.predict(dummy_inputs, verbose=0).shape == (BATCH, LENGTH, 9)
  model.save(tmp_path / "my_bert_ner_model.keras")
  loaded = keras.models.load_model(tmp_path / "my_bert_ner_model.keras")
  expected = model.predict(dummy_inputs, verbose=0)
  np.testing.assert_array_equal(loaded.predict(dummy_inputs, verbose=0), expected)


def test_features_for_another_model(dummy_inputs):
  inputs = {
    "input_ids": keras.Input(shape=(None,), dtype="int32", name="input_ids"),
    "attention_mask": keras.Input(shape=(None,), dtype="int32", name="attention_mask"),
    "token_type_ids": keras.Input(shape=(None,), dtype="int32", name="token_type_ids"),
  }
  sequence_output = small_encoder()(inputs)["last_hidden_state"]
  layer = keras.layers.Bidirectional(keras.layers.LSTM(8, return_sequences=True))
  outputs = keras.layers.Dense(9, activation="softmax")(layer(sequence_output))
  model = keras.Model(inputs, outputs)
  model.compile("adam", "sparse_categorical_crossentropy")
  model.fit(dummy_inputs, np.zeros((BATCH, LENGTH)), verbose=0)
  assert model.predict(dummy_inputs, verbose=0).shape == (BATCH, LENGTH, 9)


def test_two_tasks_at_once(dummy_inputs):
  bert_encoder = small_encoder()
  bert_encoder.trainable = True
  inputs = keras3.create_inputs()
  bert_outputs = bert_encoder(inputs)
  model = keras.Model(
    inputs=inputs,
    outputs={
      "sentiment": TextClassificationHead(num_classes=2, name="sentiment")(bert_outputs),
      "ner": TokenClassificationHead(num_classes=9, name="ner")(bert_outputs),
    },
  )
  model.compile("adam", dict.fromkeys(("sentiment", "ner"), "sparse_categorical_crossentropy"))
  labels = {"sentiment": np.zeros(BATCH), "ner": np.zeros((BATCH, LENGTH))}
  assert np.isfinite(model.fit(dummy_inputs, labels, verbose=0).history["loss"][0])


@pytest.mark.slow
def test_mixed_precision_and_xla(dummy_inputs):
  policy = keras.mixed_precision.dtype_policy()
  try:
    keras.mixed_precision.set_global_policy("mixed_float16")
    outputs = small_encoder()(dummy_inputs)
  finally:
    keras.mixed_precision.set_global_policy(policy)
  assert keras.backend.standardize_dtype(outputs["last_hidden_state"].dtype) == "float16"
  if BACKEND == "torch":
    return  # Keras compiles nothing with XLA there
  config = NLPTaskConfig("spam", NLPTaskType.SPAM_DETECTION, num_classes=2)
  overrides = {**SMALL, "vocab_size": 104}
  model = create_bert_with_head("tiny", config, bert_config_overrides=overrides)
  model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", jit_compile=True)
  assert np.isfinite(model.train_on_batch(dummy_inputs, np.zeros(BATCH)))


def test_its_own_tests(dummy_inputs):
  assert set(BERT.MODEL_VARIANTS.keys()) == {"base", "large", "small", "tiny"}
  model = small_encoder()
  only = {"input_ids": dummy_inputs["input_ids"], "attention_mask": dummy_inputs["attention_mask"]}
  assert model(only)["last_hidden_state"].shape == (BATCH, LENGTH, model.hidden_size)


# ---------------------------------------------------------------------------------------------
# An annotated BERT: its Keras part.


@on_tensorflow
def test_pre_training_and_classification_models_of_layers(dummy_inputs):
  import tensorflow as tf

  from bert.transformers import BertConfig, TFBertMainLayer, TFBertMLMHead, TFBertNSPHead

  config = BertConfig(**TINY_KEYS, num_labels=3)

  class BertPreTrainingModel(tf.keras.Model):
    def __init__(self, config, *inputs, **kwargs):
      super().__init__(*inputs, **kwargs)
      self.bert = TFBertMainLayer(config, name="bert")
      self.mlm = TFBertMLMHead(config, self.bert.embeddings, name="mlm___cls")
      self.nsp = TFBertNSPHead(config, name="nsp___cls")

    def call(self, inputs, **kwargs):
      outputs = self.bert(inputs, **kwargs)
      return self.mlm(outputs.last_hidden_state), self.nsp(outputs.pooler_output)

  words, sentences = BertPreTrainingModel(config)(dummy_inputs)
  assert (tuple(words.shape), tuple(sentences.shape)) == ((BATCH, LENGTH, 104), (BATCH, 2))


def test_an_optimizer_for_a_model(dummy_inputs):
  bert_config = create_model_config("bert-base-uncased", **TINY_KEYS)
  model = BertForSequenceClassification(config=bert_config, num_labels=2)
  num_train_steps = int(64 / 32 * 3.0)
  optimizer = keras3.create_optimizer(
    model.parameters(), 5e-5, num_train_steps, int(num_train_steps * 0.1)
  )
  model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  assert np.isfinite(model.train_on_batch(dummy_inputs, np.array([0, 1, 0, 1])))


@pytest.mark.slow
def test_fine_tuning_of_texts(name):
  model = BertForSequenceClassification.from_pretrained(name)
  tokenizer = BertTokenizer.from_pretrained(name)
  tensors = {"tensorflow": "tf", "torch": "pt", "jax": "np"}[BACKEND]
  texts, labels = ["w1 w2 w3!", "This was w4."], np.array([1, 0])
  encoded = tokenizer(texts, padding=True, truncation=True, return_tensors=tensors, max_length=512)
  model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=2e-5),
    loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
  )
  history = model.fit(encoded["input_ids"], labels, epochs=2, verbose=0)
  assert len(history.history["accuracy"]) == 2


@pytest.mark.slow
@on_tensorflow
def test_fine_tuning_with_a_dataset_of_tensorflow(name):
  import tensorflow as tf

  from bert.transformers import TFBertForSequenceClassification

  model = TFBertForSequenceClassification.from_pretrained(name)
  encoded = BertTokenizer.from_pretrained(name)(["w1", "w2"], return_tensors="tf")
  train_dataset = tf.data.Dataset.from_tensor_slices((encoded["input_ids"], [1, 0])).batch(2)
  model.compile(
    keras.optimizers.Adam(2e-5), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  )
  model.fit(train_dataset, epochs=2, verbose=0)


# ---------------------------------------------------------------------------------------------
# A training kit.


def test_the_kit(tokenizer):
  config = create_model_config("bert-base-uncased (110M)", **TINY_KEYS)
  loader = keras3.create_mlm_dataloader(
    texts=["w1 w2 w3 w4 w5"] * 4, tokenizer=tokenizer, batch_size=2, mask_probability=0.15
  )
  model = keras3.BERTForMaskedLM(config)
  assert np.isfinite(keras3.compute_mlm_loader_loss(model, loader))
  val_loader = keras3.create_classification_dataloader(
    texts=["w1 w2", "w3"], labels=[1, 0], tokenizer=tokenizer, batch_size=8
  )
  model = keras3.BERTForSequenceClassification(config, num_labels=2)
  metrics = keras3.evaluate_classification_metrics(model, val_loader, device="cpu", num_classes=2)
  assert {"accuracy", "f1"} <= set(metrics)
  vectors = np.ones((2, 3, 16), "float32")
  for layer in (
    keras3.MultiHeadAttention(config),
    keras3.FeedForward(config),
    keras3.TransformerEncoderBlock(config),
    keras3.LayerNorm(config),
    keras3.GELU(),
  ):
    assert tuple(layer(vectors).shape) == (2, 3, 16)


# ---------------------------------------------------------------------------------------------
# A course on encoders with transformers, on PyTorch.


@on_pytorch
def test_code_for_transformers(name):
  import torch
  from torch import nn

  from bert.keras3 import AutoTokenizer
  from bert.keras3.models import AutoModel

  device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
  tokenizer, model = BertTokenizer.from_pretrained(name), BertModel.from_pretrained(name).to(device)
  inputs = tokenizer("w1 w2 w3.", return_tensors="pt").to(device)
  assert tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])[0] == "[CLS]"
  with torch.no_grad():
    outputs = model(**inputs)
  assert outputs.last_hidden_state.shape == (1, *inputs.input_ids.shape[1:], 16)
  assert outputs.pooler_output.shape == (1, 16)

  classifier = BertForSequenceClassification.from_pretrained(name, num_labels=2)
  with torch.no_grad():
    outputs = classifier(**inputs)
  assert outputs.logits.argmax() in (0, 1)

  class BertClassifier(nn.Module):
    def __init__(self, num_classes=2, dropout=0.1):
      super().__init__()
      self.bert = BertModel.from_pretrained(name)
      self.dropout = nn.Dropout(dropout)
      self.fc = nn.Linear(16, num_classes)

    def forward(self, input_ids, attention_mask):
      outputs = self.bert(input_ids=input_ids, attention_mask=attention_mask)
      return self.fc(self.dropout(outputs.pooler_output))

  model = BertClassifier(num_classes=3)
  assert model(inputs["input_ids"], inputs["attention_mask"]).shape == (1, 3)

  optimizer = keras3.AdamW(model.parameters(), lr=2e-5, weight_decay=0.01)
  scheduler = keras3.get_linear_schedule_with_warmup(
    optimizer, num_warmup_steps=500, num_training_steps=1000
  )
  for _ in range(2):
    logits = model(inputs["input_ids"], inputs["attention_mask"])
    nn.functional.cross_entropy(logits, torch.tensor([1])).backward()
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
  assert scheduler.get_last_lr() == pytest.approx([2 * 2e-5 / 500])

  for model_name in [name]:  # of the families that come later, none
    tokenizer = AutoTokenizer.from_pretrained(model_name)
    model = AutoModel.from_pretrained(model_name)
    assert sum(p.numel() for p in model.parameters()) == model.num_parameters()
