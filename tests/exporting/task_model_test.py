"""The fine-tuned model as a SavedModel: from strings to the very answers of its run."""

import numpy as np
import pytest
import tensorflow as tf

from bert import tokenization
from bert.checkpoints import bundle_files, finding, loading, saving
from bert.exporting.sentence_model import SentenceModel
from bert.model import heads
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.tasks.classification import InputExample, convert_single_example
from tests.kit import exports

pytestmark = pytest.mark.usefixtures("one_tokenizer")

WORDS = ["the", "film", "was", "good", "bad", "½", "##s", ",", "."]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
CONFIG = exports.config(len(VOCAB), intermediate_size=16)


# ---------------------------------------------------------------------------------------------
# Answers.

TEXTS_A = ["The films, was GOOD.", "bad", "", "the " * 40]
TEXTS_B = ["½ films", "", "good", "film " * 3]
LABELS = ["no", "yes", "päť"]
MAX_SEQ_LENGTH = 12


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
  """A folder with vocabulary and checkpoints of heads for 1 and 3 labels."""
  folder = tmp_path_factory.mktemp("trained")
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n", encoding="utf-8")
  for num_labels in (1, 3):
    with use_store(VariableStore(seed=5)) as store:
      model = BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
      heads.get_classifier_logits(model.get_pooled_output(), num_labels, False)
    store.variables["output_weights"].assign_add(tf.ones([num_labels, 16]) * 0.1)
    store.variables["output_bias"].assign(tf.range(num_labels, dtype=tf.float32) * 0.3 - 0.2)
    saving.save(str(folder / str(num_labels)), 1, store.variables, {})
  return folder


def own_logits(trained, num_labels, texts_b):
  """What training's model says to training's features."""
  tokenizer = tokenization.FullTokenizer(str(trained / "vocab.txt"))
  features = [
    convert_single_example(9, InputExample("x", a, b, LABELS[0]), LABELS, MAX_SEQ_LENGTH, tokenizer)
    for a, b in zip(TEXTS_A, texts_b, strict=True)
  ]
  inputs = [
    tf.constant([getattr(f, n) for f in features])
    for n in ("input_ids", "input_mask", "segment_ids")
  ]
  with use_store(VariableStore()) as store:

    def forward():
      model = BertModel(CONFIG, False, *inputs, only_pooled_output=True)
      return heads.get_classifier_logits(model.get_pooled_output(), num_labels, False)

    forward()
    prefix = finding.find_checkpoint(str(trained / str(num_labels)))
    loading.restore(prefix, store.variables)
    return forward().numpy()


def sentence_model(trained, labels, problem_type, **options):
  model = SentenceModel(
    CONFIG, str(trained / "vocab.txt"), True, MAX_SEQ_LENGTH, labels, problem_type, **options
  )
  model.load(finding.find_checkpoint(str(trained / str(len(labels)))))
  return model


def export(folder, trained, labels):
  model = SentenceModel(CONFIG, str(trained / "vocab.txt"), True, MAX_SEQ_LENGTH, labels)
  model.export(str(folder / "task"), str(trained / str(len(labels))))
  return tf.saved_model.load(str(folder / "task"))


def decoded(tensor):
  return [text.decode() for text in tensor.numpy().reshape(-1)]


@pytest.mark.ci
def test_classification(trained, tmp_path):
  model = export(tmp_path, trained, LABELS)
  logits = own_logits(trained, 3, TEXTS_B)
  outputs = model(tf.constant(TEXTS_A), tf.constant(TEXTS_B))
  assert sorted(outputs) == ["label", "label_names", "probabilities"]
  np.testing.assert_allclose(outputs["probabilities"], tf.nn.softmax(logits), atol=1e-6)
  assert decoded(outputs["label"]) == [LABELS[i] for i in logits.argmax(axis=1)]
  assert decoded(outputs["label_names"]) == decoded(model.label_names) == LABELS
  names = [variable.name.split(":")[0] for variable in model.trainable_variables]
  assert names[-2:] == ["output_weights", "output_bias"]
  assert len(names) == 5 + 16 * 2 + 2 + 2

  served = model.signatures["serving_default"](
    text_a=tf.constant(TEXTS_A), text_b=tf.constant(TEXTS_B)
  )
  np.testing.assert_array_equal(served["probabilities"], outputs["probabilities"])
  assert served["label_names"].shape == [4, 3]
  assert decoded(served["label_names"][2]) == LABELS


@pytest.mark.ci
def test_single_texts(trained):
  model = sentence_model(trained, LABELS, "classification", is_pair=False)
  expected = tf.nn.softmax(own_logits(trained, 3, [None] * 4))
  found = model(tf.constant(TEXTS_A))["probabilities"]
  np.testing.assert_allclose(found, expected, atol=1e-6)
  served = model.signature()(text_a=tf.constant(TEXTS_A))
  np.testing.assert_array_equal(served["probabilities"], found)
  assert model(tf.constant([], tf.string))["probabilities"].shape == [0, 3]


@pytest.mark.ci
def test_regression(trained):
  model = sentence_model(trained, ["score"], "regression")
  outputs = model(tf.constant(TEXTS_A), tf.constant(TEXTS_B))
  assert list(outputs) == ["score"]
  np.testing.assert_allclose(outputs["score"], own_logits(trained, 1, TEXTS_B)[:, 0], atol=1e-6)


@pytest.mark.ci
def test_multi_label(trained):
  model = sentence_model(trained, LABELS, "multi_label")
  probabilities = tf.sigmoid(own_logits(trained, 3, TEXTS_B)).numpy()
  outputs = model(tf.constant(TEXTS_A), tf.constant(TEXTS_B))
  assert sorted(outputs) == ["label", "label_names", "labels", "probabilities"]
  np.testing.assert_allclose(outputs["probabilities"], probabilities, atol=1e-6)
  given = probabilities >= 0.5
  assert given.any()
  assert not given.all()
  np.testing.assert_array_equal(outputs["labels"], given)
  names = [",".join(n for n, g in zip(LABELS, row, strict=True) if g) for row in given]
  assert decoded(outputs["label"]) == names


@pytest.mark.ci
def test_a_checkpoint_without_the_head_is_refused(trained, tmp_path):
  with use_store(VariableStore()) as store:
    BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
  saving.save(str(tmp_path / "3"), 1, store.variables, {})
  (tmp_path / "vocab.txt").write_bytes((trained / "vocab.txt").read_bytes())
  with pytest.raises(bundle_files.CheckpointError, match="output_weights, output_bias"):
    export(tmp_path, tmp_path, LABELS)
  assert not (tmp_path / "task").exists()
