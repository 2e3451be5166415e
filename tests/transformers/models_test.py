"""The classes of transformers 4: what they compute, train, save and refuse.

What transformers itself computed is in `classes.json`, in sums, which
`conformance/transformers_classes.py` wrote.
"""

import json
import pathlib

import keras
import numpy as np
import pytest
import tensorflow as tf
import transformers
from transformers import BatchEncoding

from bert import keras3
from bert import transformers as room
from bert.transformers import (
  AutoConfig,
  BertConfig,
  DistilBertConfig,
  KerasMetricCallback,
  TFAutoModelForSequenceClassification,
  TFBertForMaskedLM,
  TFBertForQuestionAnswering,
  TFBertForSequenceClassification,
  TFBertModel,
  create_optimizer,
  losses,
  outputs,
)
from conformance import transformers_classes as oracle
from tests.kit.tiny_bert import SPECIAL_TOKENS

EXPECTED = json.loads((pathlib.Path(__file__).parent / "classes.json").read_text("utf-8"))
SIZES = {
  "vocab_size": 60,
  "hidden_size": 16,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 24,
  "max_position_embeddings": 40,
  "initializer_range": 0.2,
}
IDS = np.random.default_rng(0).integers(4, 60, (8, 7))
MASK = np.ones_like(IDS)
LABELS = np.arange(8) % 3
GPT2 = AutoConfig.for_model("gpt2")
OTHER_SUMMARY = room.ElectraConfig(**SIZES, summary_type="mean")
OF_KERAS_2 = type("Adam", (), {"__module__": "tf_keras.optimizers"})()


@pytest.fixture(scope="module")
def model():
  keras.utils.set_random_seed(1)
  return TFBertForSequenceClassification(BertConfig(**SIZES, num_labels=3))


# ---------------------------------------------------------------------------------------------
# What they compute.


def test_a_batch_without_labels_has_the_loss_zero():
  logits = tf.Variable(np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32"))
  tokens, texts = np.full((2, 3), -100), np.full(2, -100)
  with tf.GradientTape() as tape:
    found = [
      losses.of_tokens(tokens, logits),
      losses.of_masked_words(tokens, logits),
      losses.of_words_and_sentences((tokens, texts), (logits, logits[:, 0])),
      losses.of_sentences(texts, logits[:, 0]),
      losses.of_texts(texts, logits[:, 0]),
      losses.of_spans((texts, np.array([3, 9])), (logits[..., 0], logits[..., 1])),
    ]
    gradient = tape.gradient(tf.add_n([tf.reduce_sum(loss) for loss in found]), logits)
  assert [loss.numpy().tolist() for loss in found] == [[0.0]] * 3 + [[0.0, 0.0]] * 3
  np.testing.assert_array_equal(gradient, np.zeros((2, 3, 4)))


@pytest.mark.parametrize("model_class", oracle.all_classes(), ids=lambda each: each.__name__)
def test_a_class_computes_what_transformers_computes(model_class):
  model = oracle.model_of(model_class)
  found = oracle.sums_of(oracle.computed(model, oracle.inputs_of(model), oracle.labels_of(model)))
  expected = EXPECTED[model_class.__name__]
  missing = oracle.NOT_THERE.get(model_class.__name__, ())
  found = {name: sums for name, sums in found.items() if name.partition(".")[0] not in missing}
  assert sorted(found) == sorted(expected)
  for name, sums in expected.items():
    np.testing.assert_allclose(found[name], sums, rtol=2e-5, atol=2e-5, err_msg=name)


@pytest.mark.parametrize(
  ("name", "keys", "rate"),
  [
    ("AlbertForPreTraining", {"classifier_dropout_prob": 0.3}, 0.3),
    ("AlbertForMultipleChoice", {"classifier_dropout_prob": 0.3, "hidden_dropout_prob": 0.2}, 0.2),
    ("BertForNextSentencePrediction", {"classifier_dropout": 0.3}, 0.0),
    ("ElectraForMultipleChoice", {"summary_last_dropout": 0.3}, 0.3),
    ("RobertaForSequenceClassification", {"classifier_dropout": 0.3}, 0.3),
  ],
)
def test_dropout_of_a_head_is_what_its_key_says(name, keys, rate):
  config = getattr(room, f"{name.partition('For')[0]}Config")(**SIZES, **keys)
  model = getattr(room, f"TF{name}")(config)
  parts = ("sequence_summary", "sop_classifier", "nsp")
  head = next((getattr(model, each) for each in parts if hasattr(model, each)), model)
  head = model.classifier if name.startswith("Roberta") else head
  assert getattr(head, "last_dropout" if name.startswith("Electra") else "dropout").rate == rate


def test_albert_scores_as_many_orders_as_there_are_labels():
  model = room.TFAlbertForPreTraining(room.AlbertConfig(**SIZES, num_labels=3))
  assert model(IDS).sop_logits.shape == (8, 3)


def test_all_forms_of_inputs_and_outputs(model):
  output = model({"input_ids": IDS, "attention_mask": MASK})
  for same in (
    model(IDS, MASK),
    model([IDS, MASK]),
    model(input_ids=IDS, attention_mask=tf.constant(MASK)),
    model(IDS.tolist()),
  ):
    np.testing.assert_allclose(output.logits, same["logits"], atol=1e-6)
  labelled = model(IDS, labels=LABELS, output_attentions=True, output_hidden_states=True)
  assert labelled.loss.shape == (8,)
  assert labelled[0] is labelled.loss
  assert list(labelled) == ["loss", "logits", "hidden_states", "attentions"]
  assert len(labelled.hidden_states) == 3
  assert labelled.attentions[0].shape == (8, 2, 7, 7)
  assert output.loss is None
  assert isinstance(output, outputs.ModelOutput)
  as_tuple = model(IDS, return_dict=False)
  np.testing.assert_allclose(as_tuple[0], output.to_tuple()[0], atol=1e-6)
  in_graph = tf.function(model)({"input_ids": IDS, "attention_mask": MASK})
  np.testing.assert_allclose(in_graph.logits, output.logits, atol=1e-5)
  assert type(in_graph) is type(output)


def test_vectors_and_masks_of_heads(model):
  vectors = tf.gather(tf.convert_to_tensor(model.get_input_embeddings().word_embeddings), IDS)
  logits = model(IDS).logits
  np.testing.assert_allclose(model(inputs_embeds=vectors).logits, logits, atol=1e-6)
  np.testing.assert_allclose(model(IDS, head_mask=np.ones([2, 2])).logits, logits, atol=1e-6)
  off = model(IDS, head_mask=np.array([0.0, 1.0]), output_attentions=True)
  assert np.all(np.asarray(off.attentions[1])[:, 0] == 0)
  assert np.abs(off.logits - logits).max() > 1e-4


# ---------------------------------------------------------------------------------------------
# Training.


def test_fit_with_a_loss_of_keras_or_the_models_own_as_a_method():
  keras.utils.set_random_seed(1)
  model = TFBertForSequenceClassification(BertConfig(**SIZES, num_labels=3))
  expected = float(tf.reduce_mean(model(IDS, labels=LABELS).loss))
  inputs = {"input_ids": IDS, "attention_mask": MASK}
  pairs = tf.data.Dataset.from_tensor_slices((inputs, LABELS)).batch(4)
  for loss in (model.hf_compute_loss, SPARSE):
    model.compile(keras.optimizers.Adam(0.01), loss, metrics=["accuracy"], run_eagerly=True)
    assert model.evaluate(pairs, verbose=0)[0] == pytest.approx(expected, rel=1e-5)
  history = model.fit(inputs, LABELS, epochs=4, batch_size=8, verbose=0).history
  assert history["loss"][-1] < expected * 0.9
  assert not hasattr(TFBertModel(BertConfig(**SIZES)), "hf_compute_loss")


def text_model(family, bases=None, **keys):
  """Makes a tiny classifier of texts, of a class derived from that of the family if asked for."""
  model_class = getattr(room, f"TF{family}ForSequenceClassification")
  model_class = model_class if bases is None else bases(model_class)
  config = model_class.config_class(num_labels=3, **keys)
  for name, value in SIZES.items():
    name = "hidden_dim" if name == "intermediate_size" and family == "DistilBert" else name
    setattr(config, name, value)
  for name in config.to_dict():
    if "dropout" in name:
      setattr(config, name, 0.0)
  keras.utils.set_random_seed(2)
  return model_class(config)


FAMILIES = ("Bert", "DistilBert")  # with and without segments
SPARSE = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_call_of_ones_own_receives_what_was_given(family):
  class OfFloats:
    def call(self, x):
      return tf.reduce_sum(x, -1)

  class OfFurtherEntries:
    def call(self, inputs, training=False):
      numbers = inputs["numbers"]
      ids = {name: value for name, value in inputs.items() if name != "numbers"}
      return super().call(ids, training=training).logits + numbers

  class OfNames:
    def call(self, input_ids=None, numbers=None):
      return tf.cast(input_ids, "float32") + numbers

  def derived(mixin):
    return lambda base: type("Derived", (mixin, base), {})

  floats = np.random.default_rng(3).normal(size=(2, 3, 40)).astype("float32")
  np.testing.assert_allclose(
    text_model(family, derived(OfFloats))(floats), floats.sum(-1), rtol=1e-3, atol=1e-5
  )
  numbers = np.full([8, 1], 5.0, "float32")
  named = text_model(family, derived(OfNames))
  np.testing.assert_array_equal(named(input_ids=IDS, numbers=numbers), IDS + 5)
  np.testing.assert_array_equal(named(IDS, numbers), IDS + 5)
  inputs = {"input_ids": IDS, "attention_mask": MASK, "numbers": numbers}
  model = text_model(family, derived(OfFurtherEntries))
  expected = text_model(family)(IDS).logits + 5
  np.testing.assert_allclose(model(inputs), expected, atol=1e-5)
  model.compile(keras.optimizers.SGD(0.0), SPARSE, run_eagerly=True)
  loss = model.train_on_batch(inputs, LABELS)
  assert loss == pytest.approx(float(SPARSE(LABELS, expected)), rel=1e-4)
  np.testing.assert_allclose(model.predict(inputs, verbose=0), expected, atol=1e-5)


def test_a_call_of_ones_own_may_return_the_loss():
  class Doubled:
    def call(self, inputs, training=False):
      output = super().call(inputs, training=training)
      output.loss = 2.0 * output.loss
      return output

  class WithoutLoss:
    def call(self, inputs, training=False):
      return super().call(inputs).logits

  inputs = {"input_ids": IDS}
  expected = float(tf.reduce_mean(text_model("Bert")(IDS, labels=LABELS).loss))
  model = text_model("Bert", lambda base: type("Derived", (Doubled, base), {}))
  model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
  assert model.test_on_batch(inputs, LABELS) == pytest.approx(2 * expected, rel=1e-5)
  model = text_model("Bert", lambda base: type("Derived", (WithoutLoss, base), {}))
  model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
  with pytest.raises(ValueError, match="call returned no loss"):
    model.test_on_batch(inputs, LABELS)


@pytest.mark.parametrize("family", FAMILIES)
def test_data_of_transformers_and_weights_of_the_models_own_loss(family):
  model = text_model(family)
  each = np.asarray(model(IDS, labels=LABELS).loss)
  model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
  encoded = BatchEncoding({"input_ids": IDS, "attention_mask": MASK})
  mean = pytest.approx(each.mean(), rel=1e-4)
  assert model.evaluate(encoded, LABELS, verbose=0) == mean
  assert model.evaluate(encoded.data, LABELS.tolist(), verbose=0) == mean
  assert model.evaluate(BatchEncoding({**encoded, "labels": LABELS}), verbose=0) == mean
  assert model.test_on_batch(encoded, LABELS) == mean
  assert model.train_on_batch(encoded, LABELS) == mean
  assert model.predict(encoded, verbose=0).logits.shape == (8, 3)
  assert model.predict_on_batch(encoded).logits.shape == (8, 3)
  assert model.evaluate(encoded, np.full(8, -100), verbose=0) == 0.0
  weights = np.arange(8) / 8
  weighted = model.evaluate(encoded, LABELS, sample_weight=weights, verbose=0)
  named = model.evaluate(encoded, {"labels": LABELS}, sample_weight=weights, verbose=0)
  assert weighted == named == pytest.approx((each * weights).mean(), rel=1e-4)
  model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
  labelled, valid = BatchEncoding({**encoded, "labels": LABELS}), (encoded, LABELS)
  history = model.fit(
    labelled, class_weight={0: 0.0, 1: 0.0, 2: 0.0}, validation_data=valid, verbose=0
  ).history
  assert history == {"loss": [0.0], "val_loss": [mean]}


@pytest.mark.parametrize(
  ("data", "words"),
  [
    (({"input_ids": [[5, 6], [5]]}, [0, 1]), "padding=True"),
    (({"input_ids": IDS}, np.eye(3)[LABELS]), r"labels are \[8, 3\], one-hot"),
    ((IDS[0], LABELS[:7]), r"input_ids is \[7\]; it must be \[texts, tokens\]"),
  ],
)
def test_data_that_cannot_be_are_refused_in_one_line(model, data, words):
  model.compile("sgd")
  with pytest.raises(ValueError, match=words) as caught:
    model.fit(*data, verbose=0)
  assert "\n" not in str(caught.value)


def test_weights_of_tokens_and_of_both_positions():
  generator = np.random.default_rng(4)
  logits = generator.normal(size=(2, 3, 4)).astype("float32")
  labels = np.array([[1, -100, 2], [0, 3, -100]])
  right = np.take_along_axis(logits, labels.clip(0)[..., None], -1)[..., 0]
  each = (np.log(np.exp(logits).sum(-1)) - right) * (labels >= 0)
  of_texts, of_tokens = np.array([2.0, 0.5]), generator.random((2, 3))
  for weights, per_token in ((of_texts, of_texts[:, None]), (of_tokens, of_tokens)):
    found = losses.of_tokens(labels, logits, weights)
    np.testing.assert_allclose(found, [(each * per_token).sum() / 4], rtol=1e-5)
  both = (logits[..., 0], logits[..., 1])
  positions = (np.array([0, 1]), np.array([2, 2]))
  start, end = (2 * losses.of_spans(positions, both, w) for w in ((1.0, 0.0), (0.0, 1.0)))
  found = losses.of_spans(positions, both, (of_texts, None))
  np.testing.assert_allclose(found, (start * of_texts + end) / 2, rtol=1e-5)


def scorer(family):
  """Makes a class of texts' scores as people wrote them, on a family's encoder."""
  base, layer = (getattr(room, f"TF{family}{end}") for end in ("PreTrainedModel", "MainLayer"))
  name = family.lower()

  class Scorer(base):
    def __init__(self, config, *inputs, **kwargs):
      super().__init__(config, *inputs, **kwargs)
      setattr(self, name, layer(config, name=name))
      self.dropout = keras.layers.Dropout(0.1)
      self.classifier = keras.layers.Dense(config.num_labels, name="classifier")

    @room.unpack_inputs
    def call(self, input_ids=None, attention_mask=None, labels=None, training=False):
      states = getattr(self, name)(input_ids, attention_mask=attention_mask, training=training)[0]
      logits = self.classifier(self.dropout(states[:, 0], training=training))
      loss = None if labels is None else losses.of_texts(labels, logits)
      return outputs.TFSequenceClassifierOutput(loss=loss, logits=logits)

  return Scorer


@pytest.mark.parametrize("family", FAMILIES)
def test_a_class_with_layers_of_its_own(family, tmp_path):
  name, source, model_class = family.lower(), text_model(family), scorer(family)
  source.save_pretrained(tmp_path / "encoder")
  model = model_class.from_pretrained(tmp_path / "encoder")
  expected = getattr(source, name)(IDS)[0]
  np.testing.assert_allclose(getattr(model, name)(IDS)[0], expected, atol=1e-6)
  assert model_class.label_names == ("labels",)
  getattr(model, name).trainable = False
  assert len(model.trainable_variables) == 2
  model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
  inputs = {"input_ids": IDS, "attention_mask": MASK}
  losses_before = model.evaluate(inputs, LABELS, verbose=0)
  model.fit(inputs, LABELS, epochs=3, verbose=0)
  assert model.evaluate({**inputs, "labels": LABELS}, verbose=0) < losses_before
  np.testing.assert_allclose(getattr(model, name)(IDS)[0], expected, atol=1e-6)
  model.save_pretrained(tmp_path / "scorer")
  again = model_class.from_pretrained(tmp_path / "scorer")
  np.testing.assert_array_equal(again(IDS).logits, model(IDS).logits)


def test_a_derived_class_may_add_layers():
  class WithLayer:
    def __init__(self, config, *inputs, **kwargs):
      super().__init__(config, *inputs, **kwargs)
      self.extra = keras.layers.Dense(2)

    def call(self, inputs, training=False):
      return self.extra(super().call(inputs, training=training).logits)

  model = text_model("Bert", lambda base: type("Derived", (WithLayer, base), {}))
  model.compile("adam", "mse", run_eagerly=True)
  model.fit({"input_ids": IDS}, np.zeros((8, 2)), verbose=0)
  assert np.shape(model.predict({"input_ids": IDS}, verbose=0)) == (8, 2)


def test_questions_train_on_both_positions():
  model = TFBertForQuestionAnswering(BertConfig(**SIZES))
  positions = {"end_positions": LABELS + 1, "start_positions": LABELS}
  expected = model(IDS, **positions).loss
  model.compile(optimizer=keras.optimizers.SGD(0.0))
  found = model.evaluate({"input_ids": IDS}, positions, verbose=0)
  assert found == pytest.approx(float(tf.reduce_mean(expected)), rel=1e-5)
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile(optimizer=keras.optimizers.SGD(0.0), loss=loss)
  found = model.evaluate({"input_ids": IDS}, positions, verbose=0)[0]
  assert found == pytest.approx(2 * float(tf.reduce_mean(expected)), rel=1e-5)


def test_each_segment_counts_by_itself_in_the_norm_of_gradients():
  # As in transformers: the tables of words and segments are gathered from.
  model = TFBertForSequenceClassification(BertConfig(**SIZES, num_labels=3))
  model.compile(optimizer=create_optimizer(1e-3, num_train_steps=2, num_warmup_steps=0)[0])
  with tf.GradientTape() as tape:
    loss = tf.reduce_sum(model(IDS, labels=LABELS).loss)
  embeddings = model.get_input_embeddings()
  table, segments = embeddings.weight, embeddings.token_type_embeddings.value
  assert table.shape == (60, 16)
  assert all(isinstance(each, tf.IndexedSlices) for each in tape.gradient(loss, [table, segments]))


def test_an_optimizer_of_an_earlier_file_makes_the_same_steps():
  inner = {"initial_learning_rate": 0.1, "decay_steps": 8, "end_learning_rate": 0.0, "power": 1.0}
  decay = {"module": "keras.optimizers.schedules", "class_name": "PolynomialDecay"}
  written = {"learning_rate": {**decay, "config": inner, "registered_name": None}}
  written |= {"name": "AdamWeightDecay", "weight_decay_rate": 0.5, "epsilon": 1e-8}
  written |= {"exclude_from_weight_decay": ["bias"], "include_in_weight_decay": ["kernel"]}
  optimizer = keras.saving.deserialize_keras_object(
    {
      "module": "bert.transformers.optimization",
      "class_name": "AdamWeightDecay",
      "registered_name": "bert.transformers>AdamWeightDecay",
      "config": written,
    }
  )
  assert type(optimizer) is keras3.AdamWeightDecay
  variable = keras.Variable([2.0, 2.0], name="kernel")
  optimizer.apply([tf.constant([3.0, -1.0])], [variable])
  # The corrected moments make the first step as long as the rate; then the decay.
  np.testing.assert_allclose(variable, [2 - 0.1 - 0.1, 2 + 0.1 - 0.1], rtol=1e-4)


@pytest.mark.ci
def test_a_model_in_a_functional_one_and_frozen_layers():
  encoder = TFBertModel(BertConfig(**SIZES))
  ids = keras.Input((7,), dtype="int32")
  mask = keras.Input((7,), dtype="int32")
  scores = keras.layers.Dense(1, activation="sigmoid")(encoder(ids, attention_mask=mask)[1])
  model = keras.Model([ids, mask], scores)
  encoder.bert.encoder.layer[0].trainable = False
  before = [np.array(v) for v in encoder.bert.encoder.layer[0].weights]
  model.compile("adam", "binary_crossentropy")
  model.fit([IDS, MASK], LABELS % 2, verbose=0)
  for was, variable in zip(before, encoder.bert.encoder.layer[0].weights, strict=True):
    np.testing.assert_array_equal(was, variable)
  encoder.layers[0].trainable = False
  assert len(model.trainable_variables) == 2


def test_rows_to_batches_and_a_metric_of_all_predictions(model):
  rows = [{"input_ids": [5] * (3 + n % 2), "text": "x", "label": int(LABELS[n])} for n in range(8)]

  def pad(rows):
    longest = max(len(row["input_ids"]) for row in rows)
    ids = [row["input_ids"] + [0] * (longest - len(row["input_ids"])) for row in rows]
    return {"input_ids": np.array(ids), "labels": np.array([row["labels"] for row in rows])}

  dataset = model.prepare_tf_dataset(rows, batch_size=3, shuffle=False, collate_fn=pad)
  assert len(dataset) == 3
  assert len(model.prepare_tf_dataset(rows, batch_size=3, collate_fn=pad)) == 2
  inputs, labels = next(iter(dataset))
  assert inputs["input_ids"].shape == (3, 4)
  assert labels.numpy().tolist() == [0, 1, 2]
  seen = []

  def metric(predictions_and_labels):
    predictions, right = predictions_and_labels
    seen.append((predictions.shape, right.tolist()))
    return {"accuracy": (predictions.argmax(-1) == right).mean()}

  model.compile(optimizer=keras.optimizers.SGD(0.0))
  callback = KerasMetricCallback(metric, dataset)
  history = model.fit(dataset, epochs=1, verbose=0, callbacks=[callback]).history
  assert seen == [((8, 3), LABELS.tolist())]
  assert 0.0 <= history["accuracy"][0] <= 1.0


@pytest.mark.parametrize("family", FAMILIES)
def test_loaders_take_tokenizers_that_return_no_segments(family):
  vocab = {word: number for number, word in enumerate([*SPECIAL_TOKENS, "good", "bad"])}
  tokenizer = transformers.DistilBertTokenizer(vocab=vocab)
  rows = [{**tokenizer(text), "label": 1} for text in ("good", "good bad", "bad")]
  model = text_model(family)
  dataset = model.prepare_tf_dataset(rows, batch_size=3, shuffle=False, tokenizer=tokenizer)
  [(inputs, labels)] = list(dataset)
  assert sorted(inputs) == ["attention_mask", "input_ids"]
  assert inputs["input_ids"][0].numpy().tolist() == [2, 5, 3, 0]
  expected = tf.reduce_mean(model(inputs, labels=labels).loss)
  model.compile(keras.optimizers.SGD(0.0), run_eagerly=True)
  assert model.evaluate(dataset, verbose=0) == pytest.approx(float(expected), rel=1e-4)


# ---------------------------------------------------------------------------------------------
# Files.


def test_what_is_saved_loads_in_all_ways(model, tmp_path):
  expected = model(IDS).logits
  model.config.id2label = {0: "bad", 1: "good", 2: "so so"}
  model.save_pretrained(tmp_path / "folder", saved_model=True)
  again, info = TFBertForSequenceClassification.from_pretrained(
    tmp_path / "folder", output_loading_info=True, from_pt=True
  )
  np.testing.assert_allclose(again(IDS).logits, expected, atol=1e-6)
  assert info["missing_keys"] == info["mismatched_keys"] == []
  assert again.config.id2label[2] == "so so"
  assert AutoConfig.from_pretrained(tmp_path / "folder").num_labels == 3
  same = keras3.BertForSequenceClassification.from_pretrained(tmp_path / "folder", num_labels=3)
  np.testing.assert_allclose(same(IDS).logits, expected, atol=1e-6)
  served = tf.saved_model.load(str(tmp_path / "folder" / "saved_model" / "1"))
  ids = {name: tf.constant(IDS, tf.int32) for name in ("input_ids",)}
  ids |= {"attention_mask": tf.constant(MASK, tf.int32)}
  ids |= {"token_type_ids": tf.zeros_like(ids["input_ids"])}
  logits = served.signatures["serving_default"](**ids)["logits"]
  np.testing.assert_allclose(logits, expected, atol=1e-5)
  model.save(tmp_path / "model.keras")
  loaded = keras.models.load_model(tmp_path / "model.keras")
  np.testing.assert_allclose(loaded(IDS).logits, expected, atol=1e-6)
  model.save_checkpoint(tmp_path / "checkpoint")
  of_original = TFBertForSequenceClassification.from_pretrained(
    tmp_path / "checkpoint", num_labels=3
  )
  np.testing.assert_allclose(of_original(IDS).logits, expected, atol=1e-6)


@pytest.mark.ci
def test_a_saved_model_has_the_vectors_of_all_layers(tmp_path):
  TFBertModel(BertConfig(**SIZES, output_hidden_states=True)).save_pretrained(
    tmp_path, saved_model=True
  )
  served = tf.saved_model.load(str(tmp_path / "saved_model" / "1")).signatures["serving_default"]
  inputs = dict.fromkeys(
    ("input_ids", "attention_mask", "token_type_ids"), tf.ones((2, 7), "int32")
  )
  assert served(**inputs)["hidden_states"].shape == (3, 2, 7, 16)


@pytest.mark.ci
def test_a_list_of_metrics_is_for_each_output():
  model = room.TFBertForPreTraining(BertConfig(**SIZES))
  model.build_in_name_scope()
  model.compile(optimizer="sgd", metrics=[keras.metrics.SparseCategoricalAccuracy("accuracy")])
  labels = {"next_sentence_label": LABELS % 2, "labels": IDS}
  found = model.fit({"input_ids": IDS}, labels, sample_weight=np.ones(8), verbose=0).history
  inputs = {"input_ids": IDS, "next_sentence_label": labels.pop("next_sentence_label")}
  model.fit(inputs, labels, sample_weight=np.ones(8), verbose=0)  # one of them among the inputs
  for name in ("prediction_logits", "seq_relationship_logits"):
    assert 0 <= found[f"{name}_accuracy"][0] <= 1


def test_another_number_of_labels_is_refused_unless_it_is_meant(model, tmp_path, caplog):
  model.save_pretrained(tmp_path)
  with pytest.raises(ValueError, match="ignore_mismatched_sizes"):
    TFAutoModelForSequenceClassification.from_pretrained(tmp_path, num_labels=5)
  caplog.clear()
  with caplog.at_level("WARNING", "transformers.modeling_tf_utils"):
    other = TFAutoModelForSequenceClassification.from_pretrained(
      tmp_path, num_labels=5, ignore_mismatched_sizes=True
    )
  [message] = [each.message for each in caplog.records if each.name.startswith("transformers.")]
  assert "the shapes did not match" in message
  assert other(IDS).logits.shape == (8, 5)


@pytest.mark.ci
def test_a_vocabulary_of_another_size(tmp_path):
  model = TFBertForMaskedLM(BertConfig(**SIZES))
  expected, paths = model(IDS).logits, [variable.path for variable in model.variables]
  model.resize_token_embeddings(64)
  assert sorted(variable.path for variable in model.variables) == sorted(paths)
  np.testing.assert_allclose(model(IDS).logits[..., :60], expected, atol=1e-5)
  model.compile(optimizer="adam")
  model.fit({"input_ids": IDS + 4, "labels": IDS + 4}, epochs=1, verbose=0)
  model.save_pretrained(tmp_path)
  assert TFBertForMaskedLM.from_pretrained(tmp_path).config.vocab_size == 64


# ---------------------------------------------------------------------------------------------
# Configurations.


# ---------------------------------------------------------------------------------------------
# What is refused.


@pytest.mark.parametrize(
  ("call", "words"),
  [
    (lambda model: model(), "input_ids or inputs_embeds"),
    (lambda model: model(IDS, bogus=1), "bogus"),
    (lambda model: model(IDS + 100), "out of range"),
    (lambda model: model({"input_ids": "hello"}), "hello"),
    (lambda model: model(np.ones([2, 50], int)), "longer than max_position_embeddings"),
    (lambda model: model(IDS, head_mask=np.ones([3, 2])), "head_mask has 3 rows"),
    (lambda model: model(IDS, IDS, attention_mask=MASK), "given twice"),
    (lambda model: type(model)("bert-base-uncased"), "from_pretrained"),
    (lambda model: type(model)(DistilBertConfig()), "needs a BertConfig"),
    (lambda model: type(model)(BertConfig(**SIZES, is_decoder=True)), "decoder"),
    (lambda model: type(model)(BertConfig(**(SIZES | {"hidden_act": "swish"}))), "swish"),
    (lambda model: room.TFElectraForMultipleChoice(OTHER_SUMMARY), "summary_type is 'mean'"),
    (lambda model: type(model).from_pretrained("/nowhere/x"), "/nowhere"),
    (lambda model: model.save_pretrained("x", push_to_hub=True), "push_to_hub"),
    (lambda model: model.compile(OF_KERAS_2), "Keras 2"),
    (lambda model: model.prepare_tf_dataset([{"text": "x"}]), "none of the columns text"),
    (lambda model: TFAutoModelForSequenceClassification.from_config(GPT2), "gpt2"),
    (lambda model: room.create_optimizer(1e-3, 5, -1), "num_warmup_steps is -1"),
  ],
)
def test_what_cannot_be_is_refused_in_plain_words(model, call, words):
  with pytest.raises((ValueError, TypeError, OSError, ImportError), match=words):
    call(model)
