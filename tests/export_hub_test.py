"""export_hub.py from its command line, and both SavedModels together as the Hub's users do it.

Alone: python -m pytest tests/export_hub_test.py (about half a minute)
"""

import contextlib
import io
import json
import os
import shutil

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_hub as hub
import tensorflow_text  # noqa: F401  its ops have to be there to load a preprocess model
import tf_keras as keras

from bert import export_hub, tokenization
from bert.checkpoints import finding, loading, reading, released_models
from bert.exporting import hub_encoder, hub_preprocess
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.scripts import command_line, flag_groups, model_exports, resolution
from tests.kit import exports

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "film", "was", "good", "##s", "½"]
CONFIG = exports.config(
  len(VOCAB), num_hidden_layers=1, intermediate_size=16, initializer_range=0.5
)
TEXTS = ["The films", "was GOOD?", ""]


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
  """What a released model's folder holds."""
  folder = tmp_path_factory.mktemp("model")
  with use_store(VariableStore(seed=3)) as store:
    BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
  exports.write_model(folder, CONFIG, VOCAB, store.variables)
  return folder


def run(**values):
  """Runs the script in this process; returns exit code and standard error."""
  argv = ["export_hub.py", *(f"--{name}={value}" for name, value in values.items())]
  err = io.StringIO()
  with contextlib.redirect_stderr(err), pytest.raises(SystemExit) as left:
    command_line.run(export_hub.main, export_hub.define_flags, argv)
  return left.value.code, err.getvalue()


@pytest.fixture(scope="module")
def exported(model_dir, tmp_path_factory):
  folder = tmp_path_factory.mktemp("export") / "bert"
  code, err = run(init_checkpoint=model_dir, export_dir=folder, max_seq_length=12)
  assert code is None, err
  return folder


def own_outputs(folder, inputs):
  """What the training-side model says to the same tokens."""
  with use_store(VariableStore()) as store:
    BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
    loading.restore(finding.find_checkpoint(str(folder)), store.variables)
    return BertModel(CONFIG, False, *inputs).get_pooled_output()


def features_of(text, tokenizer, length):
  pieces = ["[CLS]", *tokenizer.tokenize(text), "[SEP]"]
  ids = tokenizer.convert_tokens_to_ids(pieces)
  padding = [0] * (length - len(ids))
  return ids + padding, [1] * len(ids) + padding


@pytest.mark.ci
def test_text_to_vectors_without_a_cast(exported, model_dir):
  preprocess = hub.load(str(exported / "preprocess"))
  encoder = hub.load(str(exported / "encoder"))
  inputs = preprocess(TEXTS)
  tokenizer = tokenization.FullTokenizer(str(model_dir / "vocab.txt"))
  ids, mask = zip(*(features_of(text, tokenizer, 12) for text in TEXTS), strict=True)
  np.testing.assert_array_equal(inputs["input_word_ids"], ids)
  np.testing.assert_array_equal(inputs["input_mask"], mask)
  expected = own_outputs(model_dir, (tf.constant(ids), tf.constant(mask)))
  np.testing.assert_allclose(encoder(inputs)["pooled_output"], expected, rtol=0, atol=1e-5)


@pytest.mark.ci
def test_a_keras_classifier_of_strings(exported, tmp_path):
  shutil.copytree(exported, tmp_path / "export")
  text = keras.Input([], dtype=tf.string)
  inputs = hub.KerasLayer(str(tmp_path / "export" / "preprocess"))(text)
  outputs = hub.KerasLayer(str(tmp_path / "export" / "encoder"), trainable=True)(inputs)
  model = keras.Model(text, keras.layers.Dense(1)(outputs["pooled_output"]))
  model.compile(keras.optimizers.Adam(1e-2), keras.losses.MeanSquaredError())
  before = model.predict(tf.constant(TEXTS), verbose=0)
  model.fit(tf.constant(TEXTS), np.ones([3, 1]), epochs=3, verbose=0)
  tuned = model.predict(tf.constant(TEXTS), verbose=0)
  assert np.abs(tuned - before).max() > 1e-2
  model.save(tmp_path / "keras")
  shutil.rmtree(tmp_path / "export")
  again = keras.models.load_model(tmp_path / "keras")
  np.testing.assert_allclose(again.predict(tf.constant(TEXTS), verbose=0), tuned, atol=1e-6)


@pytest.fixture
def encoder_only(monkeypatch):
  """Leaves the preprocess model out, which takes seconds and is the same each time."""
  monkeypatch.setattr(hub_preprocess, "export_preprocess", lambda path, *_: os.makedirs(path))


@pytest.mark.parametrize(("trained_with", "length"), [(None, 32), (20, 20), (400, 32)])
def test_the_default_length_is_the_runs_or_what_the_model_reads(
  model_dir, tmp_path, monkeypatch, trained_with, length
):
  state = {"informative": {"max_seq_length": trained_with}} if trained_with else {}
  monkeypatch.setattr(reading, "read_state", lambda prefix: state)
  monkeypatch.setattr(hub_encoder, "export_encoder", lambda *_: None)
  lengths = []
  monkeypatch.setattr(hub_preprocess, "export_preprocess", lambda *args: lengths.append(args[3]))
  code, err = run(init_checkpoint=model_dir, export_dir=tmp_path / "out")
  assert (code, lengths) == (None, [length]), err


@pytest.mark.ci
def test_an_export_brings_its_config_and_vocabulary(exported, tmp_path, encoder_only):
  for given in (exported, exported / "encoder"):
    with flag_groups.defined_flags(export_hub.define_flags):
      command_line.parse(["x", f"--init_checkpoint={given}"])
      flags = resolution.with_model_files(flag_groups.read(export_hub.ExportSettings))
      assert flags.vocab_file == str(exported / "encoder" / "assets" / "vocab.txt")
      folder = exported / "encoder" / "assets.extra"
      assert flags.bert_config_file == str(folder / "bert_config.json")
  code, err = run(init_checkpoint=exported, export_dir=tmp_path / "again", max_seq_length=12)
  assert code is None, err
  ones = {n: tf.ones([1, 4], tf.int32) for n in ("input_word_ids", "input_mask", "input_type_ids")}
  first, second = (
    hub.load(str(folder / "encoder"))(ones)["default"] for folder in (exported, tmp_path / "again")
  )
  np.testing.assert_array_equal(first, second)


@pytest.mark.ci
def test_an_export_knows_its_case(exported, tmp_path):
  prefix = finding.find_checkpoint(str(exported))
  assert reading.open_checkpoint(prefix).do_lower_case is True
  code, err = run(
    init_checkpoint=exported, export_dir=tmp_path / "x", max_seq_length=12, do_lower_case=False
  )
  assert code == 1
  assert "was exported with do_lower_case True. Give --do_lower_case=True." in err


def test_a_released_name(model_dir, tmp_path, monkeypatch, encoder_only):
  asked = []
  monkeypatch.setattr(
    released_models, "download_model", lambda name, *_: asked.append(name) or str(model_dir)
  )
  monkeypatch.chdir(tmp_path)
  name = "uncased_L-2_H-128_A-2"
  code, err = run(init_checkpoint=name, export_dir="out", max_seq_length=12)
  assert code is None, err
  assert asked == [name]
  assert sorted(os.listdir("out")) == ["encoder", "preprocess"]
  assert "input name" not in err  # nor anything else that TensorFlow reports while it saves
  assert "fingerprint" not in err


def test_the_model_of_a_task_is_not_left_behind(model_dir, tmp_path):
  (tmp_path / "task").mkdir()
  code, err = run(init_checkpoint=model_dir, export_dir=tmp_path, max_seq_length=12)
  assert code == 1
  assert f"--export_dir={tmp_path} holds task/, the model of a fine-tuned task" in err
  assert os.listdir(tmp_path) == ["task"]


def test_another_format_is_written_whole_or_not_at_all(model_dir, tmp_path, monkeypatch):
  folder = tmp_path / "out"
  given = {"init_checkpoint": model_dir, "export_dir": folder, "format": "litert"}
  writers = model_exports._WRITERS
  monkeypatch.setitem(writers, "litert", (lambda: None, write_something))
  code, err = run(**given, max_seq_length=12)
  assert code is None, err
  names = sorted(os.listdir(folder))
  assert {"README.md", "bert_run.json", "config.json", "litert", "tokenizer.json"} <= {*names}
  assert json.loads((folder / "bert_run.json").read_text())["max_seq_length"] == 12

  def fail(graph, folder, *_):
    write_something(graph, folder)
    raise ValueError(f"{folder}/litert: an operation is missing.")

  monkeypatch.setitem(writers, "litert", (lambda: None, fail))
  code, err = run(**given, max_seq_length=16)
  assert code == 1
  assert f"{folder}/litert: an operation is missing." in err
  assert sorted(os.listdir(folder)) == names
  assert json.loads((folder / "bert_run.json").read_text())["max_seq_length"] == 12
  assert os.listdir(tmp_path) == ["out"]


def write_something(graph, folder, *_):
  """Stands for the writer of a model."""
  with open(os.path.join(folder, "litert", "model.tflite"), "w") as file:
    file.write(",".join(graph.outputs))


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"export_dir": None}, "--export_dir must have a value"),
    ({"init_checkpoint": None}, "--init_checkpoint must have a value"),
    ({"init_checkpoint": "nowhere"}, "nowhere"),
    ({"max_seq_length": 2}, "--max_seq_length=2: must be at least 3"),
    ({"max_seq_length": 33}, "sequence length 33"),
  ],
)
def test_mistakes_are_told_before_anything_is_written(model_dir, tmp_path, values, message):
  values = {"init_checkpoint": model_dir, "export_dir": tmp_path / "out", **values}
  code, err = run(**{name: value for name, value in values.items() if value is not None})
  assert code == 1
  assert message in err
  assert "Traceback" not in err
  assert not (tmp_path / "out").exists()


def test_a_config_of_another_model(model_dir, tmp_path):
  other = {**json.loads(CONFIG.to_json_string()), "num_hidden_layers": 2}
  (tmp_path / "bert_config.json").write_text(json.dumps(other))
  code, err = run(
    init_checkpoint=model_dir,
    export_dir=tmp_path / "out",
    max_seq_length=12,
    bert_config_file=tmp_path / "bert_config.json",
  )
  assert code == 1
  assert "bert/encoder/layer_1" in err
  assert not (tmp_path / "out" / "encoder").exists()
