"""`.keras` files without Keras: values, tasks, damaged files; and scripts that start from them.

Alone: python -m pytest tests/checkpoints/keras_file_test.py (back: tests/keras3/saving_test.py)
"""

import subprocess
import sys
import zipfile

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert import keras3
from bert.checkpoints import finding, loading, model_files, reading
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.keras_file import KerasFile, read_config
from bert.checkpoints.keras_model import ARGUMENTS
from bert.exporting.hub_encoder import INPUTS, export_encoder
from bert.model import heads
from bert.model.configuration import BertConfig
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.predicting.predictor import Predictor
from tests.kit import exports
from tests.kit.keras_models import TINY, on_tensorflow, random_inputs
from tests.kit.paths import ROOT

pytestmark = on_tensorflow
SIZES = {**TINY, "vocab_size": len(exports.VOCAB)}


@pytest.fixture(scope="module")
def classifier(tmp_path_factory):
  """A trained classifier in a `.keras` file, with its vocabulary beside it; and the model."""
  folder = tmp_path_factory.mktemp("keras")
  keras.utils.set_random_seed(4)
  model = keras3.BertForSequenceClassification(
    keras3.BERT(**SIZES, initializer_range=0.3), num_labels=3
  )
  model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
  inputs = random_inputs(4, 8, vocab_size=SIZES["vocab_size"])
  model.fit(inputs, np.array([0, 1, 2, 1]), verbose=0)
  model.save(folder / "model.keras")
  (folder / "vocab.txt").write_text("\n".join(exports.VOCAB) + "\n")
  return str(folder / "model.keras"), model, inputs


@pytest.mark.ci
def test_found_with_its_files(classifier):
  path, model, _ = classifier
  assert finding.find_checkpoint(path) == path
  files = model_files.find(path)
  assert files.config == path
  assert files.vocabulary == path.replace("model.keras", "vocab.txt")
  config = BertConfig.from_json_file(path).to_dict()
  assert config == model.bert.to_bert_config().to_dict()
  assert reading.read_facts(path) == {
    "problem_type": "classification",
    "labels": ["LABEL_0", "LABEL_1", "LABEL_2"],
  }


@pytest.mark.ci
def test_the_graph_functions_compute_the_same(classifier):
  path, model, inputs = classifier
  with use_store(VariableStore()) as store:

    def forward():
      names = ("input_ids", "attention_mask", "token_type_ids")
      bert = BertModel(BertConfig.from_json_file(path), False, *(inputs[name] for name in names))
      return heads.get_classifier_logits(bert.get_pooled_output(), 3, is_training=False)

    forward()
    report = loading.init_from_checkpoint(path, store.variables)
    assert not report.skipped()
    assert not report.unexpected
    np.testing.assert_allclose(forward(), model(inputs).logits, rtol=0, atol=1e-5)


@pytest.mark.ci
def test_predictor_answers_with_a_file_of_keras(classifier, tmp_path):
  path, model, _ = classifier
  texts = ["The film was good.", "bad"]
  found = [row["probabilities"] for row in Predictor.from_run(path)(texts)]
  tokenizer = keras3.BertTokenizer.from_pretrained(path)
  inputs = tokenizer(texts, padding=True, return_tensors="np")
  expected = keras.ops.softmax(model(**inputs).logits)
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.ci
def test_an_exported_encoder_computes_the_same(classifier, tmp_path):
  path, model, inputs = classifier
  vocab_file = model_files.find(path).vocabulary
  config = BertConfig.from_json_file(path)
  export_encoder(str(tmp_path / "encoder"), config, path, vocab_file, do_lower_case=True)
  encoder = tf.saved_model.load(str(tmp_path / "encoder"))
  names = ("input_ids", "attention_mask", "token_type_ids")
  pairs = zip(INPUTS, names, strict=True)
  outputs = encoder({name: tf.constant(inputs[own]) for name, own in pairs})
  expected = model.bert(inputs)
  for name, own in (("sequence_output", "last_hidden_state"), ("pooled_output", "pooler_output")):
    np.testing.assert_allclose(outputs[name], expected[own], rtol=0, atol=1e-5)


# ---------------------------------------------------------------------------------------------
# Other families.

NARROW = {"embedding_size": 8, "type_vocab_size": 2}
FAMILIES = {
  "electra": NARROW,
  "albert": {**NARROW, "num_hidden_groups": 2, "inner_group_num": 2},
  "roberta": {"pad_token_id": 0},  # that of the vocabulary here
  "distilbert": {},
}


def classifier_of(family):
  """A classifier with random weights everywhere."""
  sizes = {key: SIZES[name] for name, key in ARGUMENTS.items() if name in SIZES}
  config = {**sizes, **FAMILIES[family], "num_hidden_layers": 3, "model_type": family}
  model = keras3.BertForSequenceClassification(BertConfig.from_dict(config), num_labels=3)
  generator = np.random.default_rng(1)
  for variable in model.weights:
    variable.assign(generator.normal(0.1, 0.3, variable.shape))
  return model


@pytest.mark.ci
@pytest.mark.parametrize("family", list(FAMILIES))
def test_models_of_other_families_answer_alike_in_graphs_and_scripts(family, tmp_path):
  model, path = classifier_of(family), str(tmp_path / "model.keras")
  model.save(path)
  config = BertConfig.from_json_file(path)
  assert config.family.name == family
  inputs = random_inputs(3, 8, vocab_size=SIZES["vocab_size"])
  if family == "roberta":
    inputs["input_ids"] = np.where(inputs["attention_mask"], inputs["input_ids"], 0)
  with use_store(VariableStore()) as store:

    def forward():
      names = ("input_ids", "attention_mask", "token_type_ids")
      bert = BertModel(config, False, *(inputs[name] for name in names))
      options = {
        "scope": heads.task_scope(config, None),
        "hidden": heads.hidden_of(config, "texts"),
      }
      return heads.get_classifier_logits(bert.get_pooled_output(), 3, False, **options)

    forward()
    report = loading.init_from_checkpoint(path, store.variables)
    assert not report.skipped() + report.unexpected
    np.testing.assert_allclose(forward(), model(inputs).logits, rtol=0, atol=1e-5)


@pytest.mark.ci
@pytest.mark.parametrize("family", ["electra", "distilbert"])
def test_predictor_answers_with_other_families(family, tmp_path):
  model = classifier_of(family)
  model.save(tmp_path / "model.keras")
  (tmp_path / "vocab.txt").write_text("\n".join(exports.VOCAB) + "\n")
  texts = ["The film was good.", "bad"]
  found = [row["probabilities"] for row in Predictor.from_run(str(tmp_path / "model.keras"))(texts)]
  tokenizer = keras3.BertTokenizer.from_pretrained(tmp_path)
  inputs = tokenizer(texts, padding=True, return_tensors="np")
  expected = keras.ops.softmax(model(**inputs).logits)
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def test_a_description_of_other_layers(tmp_path):
  path = tmp_path / "model.keras"
  sizes = {**TINY, "num_layers": 2, "embedding_size": 8, "num_hidden_groups": 2}
  keras3.BERT(**sizes, model_type="albert").save(path)
  assert len(KerasFile(path).contents) == 41
  with zipfile.ZipFile(path) as archive:
    content = archive.read("config.json")
  content = content.replace(b'"num_hidden_groups": 2', b'"num_hidden_groups": 1')
  other = changed(path, tmp_path, "config.json", content)
  with pytest.raises(CheckpointError, match=r"has 2 layers, but its config\.json describes 1\.$"):
    KerasFile(other)


# ---------------------------------------------------------------------------------------------
# Files that are not what their name says.


def changed(path, folder, member=None, content=None):
  """A copy of the file with another member, or without it."""
  target = folder / "changed.keras"
  with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as writer:
    for name in source.namelist():
      if name != member:
        writer.writestr(name, source.read(name))
    if content is not None:
      writer.writestr(member, content)
  return target


@pytest.mark.parametrize(
  ("member", "content", "message"),
  [
    ("config.json", None, "is not a whole .keras file: There is no item named 'config.json'"),
    ("config.json", b"{", "is not a whole .keras file: Expecting property name"),
    ("model.weights.h5", None, "There is no item named 'model.weights.h5'"),
    ("model.weights.h5", b"not HDF5", "is not a whole .keras file: "),
    ("config.json", b"[]", r"contains no BERT of bert.keras3\.$"),
  ],
)
def test_damaged_files(classifier, tmp_path, member, content, message):
  path = changed(classifier[0], tmp_path, member, content)
  with pytest.raises(CheckpointError, match=message) as caught:
    read_config(path)
  assert str(path) in str(caught.value)


@pytest.mark.parametrize("size", [0, 10, 3000])
def test_truncated_files(classifier, tmp_path, size):
  path = tmp_path / "short.keras"
  with open(classifier[0], "rb") as file:
    path.write_bytes(file.read(size))
  with pytest.raises(CheckpointError, match=r"is not a whole .keras file: model\.save"):
    finding.find_checkpoint(path)


def test_an_archive_that_was_compressed_again(classifier, tmp_path):
  target = tmp_path / "small.keras"
  with zipfile.ZipFile(classifier[0]) as source:
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as writer:
      for name in source.namelist():
        writer.writestr(name, source.read(name))
  first, second = KerasFile(classifier[0]), KerasFile(target)
  assert first.contents == second.contents
  for name in first.contents:
    np.testing.assert_array_equal(first.read(name), second.read(name))


def test_a_file_that_is_held_until_the_end_does_not_crash_the_program(classifier):
  """As TensorFlow's graphs of an export hold it, whose objects outlive the interpreter."""
  held = """
import ctypes, sys
from bert.checkpoints.keras_file import KerasFile
ctypes.pythonapi.Py_IncRef(ctypes.py_object(KerasFile(sys.argv[1])))
"""
  done = subprocess.run([sys.executable, "-c", held, classifier[0]], cwd=ROOT, check=False)
  assert done.returncode == 0


def test_models_that_only_keras_has(tmp_path):
  path = tmp_path / "model.keras"
  keras3.BERT(**TINY, attention_type="window").save(path)
  with pytest.raises(CheckpointError, match=r"model.keras: attention_type is 'window', which only"):
    finding.find_checkpoint(path)
  keras.Sequential([keras.Input([2]), keras.layers.Dense(2)]).save(path)
  with pytest.raises(CheckpointError, match=r"model.keras contains no BERT of bert.keras3"):
    finding.find_checkpoint(path)


@pytest.mark.ci
def test_a_quantized_model_is_refused(tmp_path):
  model = keras3.BERT(**TINY)
  model(random_inputs(1, 4))
  model.quantize("int8")
  model.save(tmp_path / "model.keras")
  with pytest.raises(CheckpointError, match="is int8: quantized models are not read"):
    finding.find_checkpoint(tmp_path / "model.keras")
