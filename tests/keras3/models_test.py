"""Models that are called like those of the transformers library."""

import keras
import numpy as np
import pytest
from keras import ops

from bert import keras3
from bert.checkpoints import loading
from bert.keras3 import BERT, BertTokenizer
from bert.keras3.models import (
  BertForMaskedLM,
  BertForMultipleChoice,
  BertForNextSentencePrediction,
  BertForPreTraining,
  BertForQuestionAnswering,
  BertForSequenceClassification,
  BertForTokenClassification,
  BertModel,
)
from bert.model.configuration import BertConfig
from tests.kit.keras_models import TINY, arrays, numpy_of, random_inputs
from tests.kit.tiny_bert import SPECIAL_TOKENS, sizes

WORDS = [*SPECIAL_TOKENS, "the", "cat", "sat", "on", "mat", "."]
WORDS += ["great", "movie", "##s", "!", "a"]
CONFIG = BertConfig(**sizes(len(WORDS), 16, 1, 32, 32, type_vocab_size=2))


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
  path = tmp_path_factory.mktemp("vocab") / "vocab.txt"
  path.write_text("\n".join(WORDS) + "\n")
  return path


@pytest.fixture(scope="module")
def tokenizer(vocab_file):
  return BertTokenizer(str(vocab_file))


def test_names_of_models():
  with pytest.raises(ValueError, match="xlnet-base-cased is neither"):
    BertForMaskedLM.from_pretrained("xlnet-base-cased")


# ---------------------------------------------------------------------------------------------
# The models.

CLASSES = [
  (BertForSequenceClassification, {"logits": (2, 3)}),
  (BertForTokenClassification, {"logits": (2, 5, 3)}),
  (BertForMaskedLM, {"logits": (2, 5, len(WORDS))}),
  (BertForNextSentencePrediction, {"logits": (2, 2)}),
  (BertForQuestionAnswering, {"start_logits": (2, 5), "end_logits": (2, 5)}),
  (
    BertForPreTraining,
    {"prediction_logits": (2, 5, len(WORDS)), "seq_relationship_logits": (2, 2)},
  ),
  (BertModel, {"last_hidden_state": (2, 5, 16), "pooler_output": (2, 16)}),
  (keras3.BERTModel, {"output": (2, 5, 16)}),
  (keras3.BERTForMaskedLM, {"output": (2, 5, len(WORDS))}),
  (keras3.BERTForSequenceClassification, {"output": (2, 3)}),
]


@pytest.mark.parametrize(
  ("cls", "shapes"), CLASSES, ids=lambda value: getattr(value, "__name__", "")
)
def test_outputs_and_saving(cls, shapes, tokenizer, tmp_path):
  model = cls(CONFIG, num_labels=3)
  inputs = dict(tokenizer(["the cat sat", "a mat"], padding=True, return_tensors="np"))
  outputs = arrays(model(**inputs))
  assert {name: array.shape for name, array in outputs.items()} == shapes
  model.save(tmp_path / "model.keras")
  again = keras.models.load_model(tmp_path / "model.keras")
  assert type(again) is cls
  for name, array in arrays(again(inputs)).items():  # a dictionary does, too
    np.testing.assert_array_equal(array, outputs[name])


def test_a_model_of_keys():
  assert BertModel(CONFIG.to_dict()).num_parameters() == CONFIG.count_parameters()


def test_fit_of_spans_is_given_both_scores_by_name(tokenizer):
  model = BertForQuestionAnswering(CONFIG)
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile(optimizer="adam", loss={"start_logits": loss, "end_logits": loss}, run_eagerly=True)
  inputs = dict(tokenizer(["great movie !", "the mat ."], padding=True, return_tensors="np"))
  labels = {"end_logits": np.array([3, 2]), "start_logits": np.array([1, 1])}
  logits = model.predict(inputs, verbose=0)
  expected = sum(
    float(loss(labels[name], getattr(logits, name))) for name in ("start_logits", "end_logits")
  )
  actual = model.test_on_batch(inputs, labels, return_dict=True)["loss"]
  assert float(actual) == pytest.approx(expected, rel=1e-4)


def test_from_pretrained_has_the_originals_heads(golden_dir):
  golden = np.load(golden_dir / "tiny_forward.npz")
  model = BertForPreTraining.from_pretrained(golden_dir / "tiny")
  report = model.load_pretrained_weights(golden_dir / "tiny", skip_mismatch=False)
  assert not report.unexpected
  outputs = model(
    input_ids=golden["in_input_ids"],
    attention_mask=golden["in_input_mask"],
    token_type_ids=golden["in_segment_ids"],
  )
  log_probs = ops.log_softmax(outputs.seq_relationship_logits, axis=-1)
  np.testing.assert_allclose(numpy_of(log_probs), golden["next_sentence_log_probs"], atol=1e-5)


def test_a_new_head_is_named_in_a_warning(golden_dir, monkeypatch):
  texts = []
  monkeypatch.setattr(loading.logging, "warning", texts.append)
  model = BertForSequenceClassification.from_pretrained(golden_dir / "tiny", num_labels=3)
  assert "2 variables skipped, left random:" in texts[0]
  assert "output_weights: not in the checkpoint" in texts[0]
  assert model(np.ones((1, 4), "int32")).logits.shape == (1, 3)


def choices_of(tokenizer):
  """Two questions with three choices each: inputs int32 `[2, 3, S]`."""
  firsts = ["the cat sat"] * 3 + ["great movie"] * 3
  seconds = ["on the mat .", "a movie !", "the", "the cat", "!", "a mat ."]
  flat = dict(tokenizer(firsts, seconds, padding=True, return_tensors="np"))
  return {name: array.reshape(2, 3, -1) for name, array in flat.items()}, flat


def test_choices_are_scored_one_by_one(tokenizer):
  model = BertForMultipleChoice({**CONFIG.to_dict(), "initializer_range": 0.3})
  inputs, flat = choices_of(tokenizer)
  logits = numpy_of(model(**inputs).logits)
  assert logits.shape == (2, 3)
  pooled = numpy_of(model.bert(flat)["pooler_output"])
  scores = pooled @ numpy_of(model.classifier.kernel)
  np.testing.assert_allclose(logits.reshape(-1), scores[:, 0], atol=1e-5)
  with pytest.raises(ValueError, match=r"\[B, N, S\], N texts for each question, not \[6, "):
    model(**flat)


def test_an_encoder_may_be_given():
  bert = BERT(vocab_size=20, hidden_size=8, num_layers=1, num_heads=2, intermediate_size=8)
  assert BertForTokenClassification(bert).bert is bert


def test_what_is_frozen_stays_so_in_a_file(tmp_path):
  model, inputs = BertForSequenceClassification(BERT(**TINY)), random_inputs(2, 5)
  model.bert.encoder.trainable = False
  loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
  model.compile("adam", loss, run_eagerly=True)
  model.train_on_batch(inputs, np.array([0, 1]))
  model.save(tmp_path / "model.keras")
  again = keras.models.load_model(tmp_path / "model.keras")
  part = again.bert.encoder
  assert len(again.trainable_weights) == len(model.weights) - len(part.weights)
  for one, two in zip(model.optimizer.variables, again.optimizer.variables, strict=True):
    np.testing.assert_allclose(numpy_of(two), numpy_of(one), atol=1e-7)
  before = [numpy_of(variable).copy() for variable in part.weights]
  again.train_on_batch(inputs, np.array([0, 1]))
  for old, variable in zip(before, part.weights, strict=True):
    np.testing.assert_array_equal(numpy_of(variable), old)


def test_a_layer_of_scores_is_replaced():
  model, inputs = BertForSequenceClassification(BERT(**TINY)), random_inputs(2, 5)
  old, layers = model.classifier, len(model.layers)
  model.classifier = keras.layers.Dense(5)
  assert model(inputs).logits.shape == (2, 5)
  assert len(model.layers) == layers
  assert not {id(each) for each in old.variables} & {id(each) for each in model.variables}
  assert {id(each) for each in model.classifier.weights} <= {id(w) for w in model.trainable_weights}
