"""Heads and tasks in Keras 3: shapes, losses, training, saving."""

import keras
import numpy as np
import pytest
from keras import ops

from bert import keras3
from bert.keras3 import (
  BERT,
  MultipleChoiceHead,
  NLPTaskConfig,
  NLPTaskType,
  QuestionAnsweringHead,
  SparseCrossentropy,
  TextClassificationHead,
  TextSimilarityHead,
  create_bert_with_head,
)
from bert.keras3.tasks import LabelledAccuracy
from tests.kit.keras_models import TINY, numpy_of

B, S = 4, 10


def make_inputs(*leading):
  generator = np.random.default_rng(2)
  shape = (*(leading or (B,)), S)
  mask = np.ones(shape, "int32")
  mask[..., S - 3 :] = 0
  return {
    "input_ids": generator.integers(0, 40, shape).astype("int32"),
    "attention_mask": mask,
    "token_type_ids": generator.integers(0, 2, shape).astype("int32"),
  }


def make_model(task_type, num_classes=None, head=None, **config):
  task = NLPTaskConfig("task", task_type, num_classes, **config)
  return create_bert_with_head("tiny", task, bert_config_overrides=TINY, head_config_overrides=head)


@pytest.fixture(scope="module")
def encoded():
  """The outputs of an encoder, for heads by themselves."""
  keras.utils.set_random_seed(1)
  return BERT(**TINY, initializer_range=0.5)(make_inputs())


# ---------------------------------------------------------------------------------------------
# Tasks.


def test_types_of_tasks():
  assert all(task.value == task.name.lower() for task in NLPTaskType)
  assert NLPTaskType("span_extraction").kind is NLPTaskType.QUESTION_ANSWERING
  assert NLPTaskConfig("x", "readability_scoring").num_classes == 1
  with pytest.raises(ValueError, match="Unknown task 'cooking'; known: text_classification, "):
    NLPTaskConfig("x", "cooking")


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"task_type": "sentiment_analysis"}, "num_classes of at least 2"),
    ({"task_type": "spam_detection", "num_classes": 2, "dropout_rate": 1.5}, "dropout_rate is 1.5"),
  ],
)
def test_wrong_tasks_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    NLPTaskConfig("x", **arguments)


def test_cross_entropy_of_integer_labels():
  generator = np.random.default_rng(0)
  logits = generator.normal(size=(2, 5, 3)).astype("float32")
  labels = np.array([[0, 2, -100, 1, -1], [1, -100, -100, 2, 0]])
  log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
  seen = labels >= 0
  picked = np.take_along_axis(log_probs, np.maximum(labels, 0)[..., None], -1)[..., 0]
  plain = -picked[seen].mean()
  assert float(SparseCrossentropy(from_logits=True)(labels, logits)) == pytest.approx(plain, 1e-5)
  probabilities = np.exp(log_probs)
  assert float(SparseCrossentropy()(labels, probabilities)) == pytest.approx(plain, 1e-4)
  loss = SparseCrossentropy(from_logits=True)
  assert float(loss(np.full((2, 5), -100), logits)) == 0.0
  assert SparseCrossentropy.from_config(loss.get_config()).from_logits


def test_accuracy_of_what_has_a_label():
  metric = LabelledAccuracy()
  metric.update_state(np.array([[0, -100], [1, 1]]), np.eye(2)[[[0, 0], [1, 0]]])
  assert float(metric.result()) == pytest.approx(2 / 3)


# ---------------------------------------------------------------------------------------------
# Heads by themselves.


@pytest.mark.parametrize("pooling_type", ["pooler", "cls", "mean", "max"])
def test_pooling_sees_no_padding(encoded, pooling_type):
  head = TextClassificationHead(3, pooling_type=pooling_type)
  probabilities = numpy_of(head(encoded))
  np.testing.assert_allclose(probabilities.sum(-1), np.ones(B), atol=1e-5)
  states = numpy_of(encoded["last_hidden_state"]).copy()
  states[:, S - 3 :] += 9.0
  changed = numpy_of(head({**encoded, "last_hidden_state": states}))
  np.testing.assert_allclose(changed, probabilities, atol=1e-5)
  if pooling_type != "pooler":
    states[:, 0] += 2.0
    changed = numpy_of(head({**encoded, "last_hidden_state": states}))
    assert abs(changed - probabilities).max() > 1e-4


def test_mean_pooling_is_the_mean(encoded):
  head = TextSimilarityHead(pooling_type="mean", similarity_function="dot")
  expected = numpy_of(encoded["last_hidden_state"])[:, : S - 3].mean(1)
  np.testing.assert_allclose(numpy_of(head(encoded)), expected, atol=1e-5)


def test_scores_probabilities_or_both(encoded):
  head = TextClassificationHead(3, output="dict")
  both = {name: numpy_of(value) for name, value in head(encoded).items()}
  softmax = np.exp(both["logits"])
  softmax /= softmax.sum(-1, keepdims=True)
  np.testing.assert_allclose(both["probabilities"], softmax, atol=1e-6)
  assert both["logits"].std() > 0
  many = TextClassificationHead(3, activation="sigmoid")
  assert not np.allclose(numpy_of(many(encoded)).sum(-1), 1.0)
  with pytest.raises(ValueError, match="output is 'both'"):
    TextClassificationHead(3, output="both")


@pytest.mark.parametrize("similarity_function", ["cosine", "dot"])
def test_similarity_of_pairs(encoded, similarity_function):
  head = TextSimilarityHead(similarity_function=similarity_function)
  other = {**encoded, "last_hidden_state": ops.flip(encoded["last_hidden_state"], 0)}
  scores = numpy_of(head([encoded, other]))
  assert scores.shape == (B,)
  one, two = numpy_of(head(encoded)), numpy_of(head(other))
  np.testing.assert_allclose(scores, (one * two).sum(-1), rtol=1e-5, atol=1e-5)
  if similarity_function == "cosine":
    np.testing.assert_allclose(numpy_of(head([encoded, encoded])), np.ones(B), atol=1e-5)


def test_nothing_begins_in_padding(encoded):
  scores = QuestionAnsweringHead()(encoded)
  for part in ("start_logits", "end_logits"):
    logits = numpy_of(scores[part])
    assert logits.shape == (B, S)
    assert (logits[:, S - 3 :] == -10000.0).all()
    assert (abs(logits[:, : S - 3]) < 100).all()
  open_scores = QuestionAnsweringHead(mask_padding=False)(encoded)
  assert (abs(numpy_of(open_scores["start_logits"])) < 100).all()


def test_choices_compete_within_their_question(encoded):
  head = MultipleChoiceHead(num_choices=2)
  probabilities = numpy_of(head(encoded))
  assert probabilities.shape == (2, 2)
  np.testing.assert_allclose(probabilities.sum(-1), [1, 1], atol=1e-6)
  assert set(head.checkpoint_variables()) == {"output_weights"}


# ---------------------------------------------------------------------------------------------
# Encoder and head as one model.


@pytest.mark.parametrize(
  ("task_type", "num_classes", "shape"),
  [
    ("named_entity_recognition", 9, (B, S, 9)),
    ("natural_language_inference", 3, (B, 3)),
    ("text_regression", None, (B, 1)),
    ("question_answering", None, {"start_logits": (B, S), "end_logits": (B, S)}),
    ("text_similarity", None, (B, 16)),
    ("masked_language_modeling", None, (B, S, 40)),
  ],
)
def test_outputs_and_saving_of_every_kind(task_type, num_classes, shape, tmp_path):
  model = make_model(task_type, num_classes)
  inputs = make_inputs()
  outputs = model(inputs)
  assert keras.tree.map_structure(lambda tensor: tuple(tensor.shape), outputs) == shape
  model.save(tmp_path / "model.keras")
  again = keras.models.load_model(tmp_path / "model.keras")(inputs)
  for one, two in zip(keras.tree.flatten(outputs), keras.tree.flatten(again), strict=True):
    np.testing.assert_array_equal(numpy_of(one), numpy_of(two))


def test_multiple_choice_model():
  model = make_model(NLPTaskType.MULTIPLE_CHOICE, 3)
  inputs = make_inputs(2, 3)
  probabilities = numpy_of(model(inputs))
  assert probabilities.shape == (2, 3)
  turned = {name: value[:, [1, 2, 0]] for name, value in inputs.items()}
  np.testing.assert_allclose(numpy_of(model(turned)), probabilities[:, [1, 2, 0]], atol=1e-6)


def test_similarity_model_of_pairs():
  model = make_model(NLPTaskType.DUPLICATE_DETECTION, head={"pair": True})
  inputs = make_inputs()
  pair = {**inputs, **{f"second_{name}": value for name, value in inputs.items()}}
  np.testing.assert_allclose(numpy_of(model(pair)), np.ones(B), atol=1e-5)
  assert NLPTaskType.DUPLICATE_DETECTION.kind is NLPTaskType.TEXT_SIMILARITY


def test_only_the_ids_must_be_given():
  config = NLPTaskConfig("spam", "spam_detection", num_classes=2)
  model = create_bert_with_head("tiny", config, bert_config_overrides=TINY)
  ids = make_inputs()["input_ids"]
  full = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": ids * 0}
  expected = numpy_of(model(full))
  for inputs in (ids, {"input_ids": ids}, {"input_ids": ids, "token_type_ids": None}):
    np.testing.assert_array_equal(numpy_of(model(inputs)), expected)
  np.testing.assert_allclose(model.predict({"input_ids": ids}, verbose=0), expected, atol=1e-6)
  for inputs in ({"ids": ids}, {"input_ids": ids, "label": ids}, {}):
    with pytest.raises(ValueError, match=r"input_ids .* attention_mask"):
      model(inputs)


def test_masked_words_and_the_original(golden_dir):
  golden = np.load(golden_dir / "tiny_forward.npz")
  model = keras3.MaskedLanguageModel(BERT.from_checkpoint(golden_dir / "tiny"))
  report = model.load_pretrained_weights(golden_dir / "tiny", skip_mismatch=False)
  assert set(report.unexpected) == {
    "cls/seq_relationship/output_weights",
    "cls/seq_relationship/output_bias",
  }
  inputs = {
    "input_ids": golden["in_input_ids"],
    "attention_mask": golden["in_input_mask"],
    "token_type_ids": golden["in_segment_ids"],
    "masked_lm_positions": golden["in_masked_lm_positions"],
  }
  log_probs = numpy_of(ops.log_softmax(model(inputs), axis=-1)).reshape(20, -1)
  np.testing.assert_allclose(
    log_probs[:, :8], golden["masked_lm_log_probs_first8"], rtol=0, atol=1e-4
  )
  picked = log_probs[np.arange(20), golden["in_masked_lm_ids"].ravel()]
  np.testing.assert_allclose(-picked, golden["masked_lm_example_loss"], rtol=0, atol=1e-4)
