"""Conversions of checkpoints: what they change, and that they change nothing else.

Alone: python -m pytest tests/convert_checkpoint_test.py (half a minute)
"""

import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import finding, load_report, reading, saving
from bert.exporting import hub_encoder
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig, BertModel
from bert.tokenization import load_vocab, vocabulary_hash
from tests.kit import teachers, tiny_bert
from tests.kit.conversions import error_of, run, run_well
from tests.kit.script_runs import assert_same_values

EMBEDDINGS, BIAS = "bert/embeddings/word_embeddings", "cls/predictions/output_bias"
OLD = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##a", "##b", "ab"]
# Moved, gone (b), new with pieces (abba, ##bab), new without (cat, [NEW], [unused1]).
NEW = ["[PAD]", "ab", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##a", "##b", "abba", "##bab"]
NEW += ["cat", "[NEW]", "[unused1]"]
CONFIG = {
  **tiny_bert.sizes(len(OLD), 16, 2, 16, 32, type_vocab_size=2),
  "initializer_range": 0.02,
  "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1,
  "directionality": "bidi",
}


def tensors_of(path):
  """name -> array; TensorFlow's own reader, not ours, reads it."""
  reader = tf.train.load_checkpoint(finding.find_checkpoint(str(path)))
  return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  """A folder as a pre-training run leaves it: weights, slots, step, config and vocabulary."""
  folder = tmp_path_factory.mktemp("model")
  store, ids = VariableStore(), tf.ones([1, 4], tf.int32)
  with use_store(store):
    BertModel(BertConfig.from_dict(CONFIG), False, ids, ids, ids)
  tensors = {name: variable.numpy() for name, variable in store.variables.items()}
  rng = np.random.default_rng(3)
  for name, shape in {
    BIAS: [len(OLD)],
    "cls/predictions/transform/dense/kernel": [16, 16],
    "cls/predictions/transform/dense/bias": [16],
    "cls/predictions/transform/LayerNorm/beta": [16],
    "cls/predictions/transform/LayerNorm/gamma": [16],
    "cls/seq_relationship/output_weights": [2, 16],
    "cls/seq_relationship/output_bias": [2],
  }.items():
    tensors[name] = rng.normal(size=shape).astype(np.float32)
  tensors |= {
    f"{name}/{slot}": rng.normal(size=value.shape).astype(np.float32) ** 2
    for name, value in tensors.items()
    for slot in ("adam_m", "adam_v")
    if name != "global_step"
  }
  tensors["global_step"] = np.int64(7)
  saving.save(folder, 7, tensors, {"fingerprint": {"vocab_size": len(OLD)}})
  (folder / "bert_config.json").write_text(json.dumps(CONFIG))
  (folder / "vocab.txt").write_text("\n".join(OLD) + "\n")
  return folder


@pytest.fixture(scope="module")
def new_vocab(tmp_path_factory):
  path = tmp_path_factory.mktemp("vocab") / "new.txt"
  path.write_text("\n".join(NEW) + "\n")
  return path


@pytest.fixture(scope="module")
def resized(model, new_vocab, tmp_path_factory):
  folder = tmp_path_factory.mktemp("resized")
  log = run_well("resize_vocab", init_checkpoint=model, vocab_file=new_vocab, output_dir=folder)
  return folder, log


# ---------------------------------------------------------------------------------------------
# inspect


def test_inspect(model):
  table = run("inspect", init_checkpoint=model)[1]
  lines = table.splitlines()
  assert lines[0] == str(model / "model.ckpt-7")
  [line] = [line for line in lines if line.startswith(EMBEDDINGS + " ")]
  assert line.split() == [EMBEDDINGS, "[11,", "16]", "float32", "176", "adam_m,", "adam_v"]
  tensors = tensors_of(model)
  weights = {n: v for n, v in tensors.items() if not load_report.is_training_state(n)}
  count = sum(value.size for value in weights.values())
  assert f"Model: {len(weights)} tensors, {count:,} parameters, {count * 4e-6:.1f} MB" in lines
  total = sum(value.size for value in tensors.values())
  assert f"In all: {len(tensors)} tensors, {total:,} parameters, {total * 4e-6:.1f} MB" in lines
  assert lines[-1] == "global_step: 7"


# ---------------------------------------------------------------------------------------------
# strip


def test_strip(model, tmp_path):
  run_well("strip", init_checkpoint=model, output_dir=tmp_path / "out")
  tensors = tensors_of(model)
  expected = {
    name: value
    for name, value in tensors.items()
    if not name.endswith(("/adam_m", "/adam_v")) and name != "global_step"
  }
  assert len(expected) < len(tensors) / 2.9
  assert_same_values(tensors_of(tmp_path / "out"), expected)
  for name in ("bert_config.json", "vocab.txt"):
    assert (tmp_path / "out" / name).read_bytes() == (model / name).read_bytes()


# ---------------------------------------------------------------------------------------------
# resize_vocab


def test_known_tokens_keep_their_rows(model, resized):
  old, new = tensors_of(model), tensors_of(resized[0])
  for name in (EMBEDDINGS, BIAS):
    for full_name in (name, f"{name}/adam_m", f"{name}/adam_v"):
      assert new[full_name].dtype == old[full_name].dtype
      assert len(new[full_name]) == len(NEW)
      for token in set(OLD) & set(NEW):
        before, after = old[full_name][OLD.index(token)], new[full_name][NEW.index(token)]
        assert before.tobytes() == after.tobytes(), (full_name, token)
      if full_name != name:  # the optimizer's memory
        assert not new[full_name][[NEW.index(token) for token in NEW if token not in OLD]].any()
  assert sorted(old) == sorted(new)


def test_new_tokens_start_as_the_mean_of_their_pieces(model, resized):
  old, new = tensors_of(model), tensors_of(resized[0])
  pieces = {"abba": ["ab", "##b", "##a"], "##bab": ["##b", "##a", "##b"]}
  for name in (EMBEDDINGS, BIAS):
    for token, parts in pieces.items():
      expected = np.mean([old[name][OLD.index(part)] for part in parts], axis=0)
      np.testing.assert_allclose(new[name][NEW.index(token)], expected, rtol=1e-6, atol=1e-7)


def test_other_new_tokens_are_drawn(model, resized):
  old, new = tensors_of(model), tensors_of(resized[0])
  drawn = [NEW.index(token) for token in ("cat", "[NEW]", "[unused1]")]
  rows = new[EMBEDDINGS][drawn]
  assert (np.abs(rows) <= 2 * 0.02).all()  # a truncated normal of that deviation
  assert len(np.unique(rows)) == rows.size
  assert rows.std() > 0.01
  assert (new[BIAS][drawn] == old[BIAS].min()).all()
  assert "9 tokens keep their rows" in resized[1]
  assert "2 start as the mean of their pieces, 3 at random (cat, [NEW], [unused1])" in resized[1]
  assert "2 tokens are not in the new vocabulary: [unused0], b" in resized[1]


def test_folder_of_a_resized_model(resized, new_vocab):
  folder = resized[0]
  assert json.loads((folder / "bert_config.json").read_text()) == {**CONFIG, "vocab_size": 14}
  assert (folder / "vocab.txt").read_bytes() == new_vocab.read_bytes()
  assert finding.latest(folder) == str(folder / "model.ckpt-7")
  facts = {"vocab_size": 14, "vocabulary": vocabulary_hash(load_vocab(str(new_vocab)))}
  state = {"fingerprint": facts, "informative": {}}
  assert reading.read_state(str(folder / "model.ckpt-7")) == state


def test_there_and_back_again(model, resized, tmp_path):
  """What the new vocabulary has of the old one survives two conversions, bit for bit."""
  run_well(
    "resize_vocab", init_checkpoint=resized[0], vocab_file=model / "vocab.txt", output_dir=tmp_path
  )
  old, back = tensors_of(model), tensors_of(tmp_path)
  kept = [index for index, token in enumerate(OLD) if token in NEW]
  assert len(kept) == 9
  for name in old:
    rows = kept if name.startswith((EMBEDDINGS, BIAS)) else ...
    assert old[name][rows].tobytes() == back[name][rows].tobytes()


# ---------------------------------------------------------------------------------------------
# SavedModels


@pytest.fixture
def encoder(model, tmp_path):
  """The encoder of the model, exported."""
  config = BertConfig.from_json_file(model / "bert_config.json")
  folder = str(tmp_path / "encoder")
  hub_encoder.export_encoder(folder, config, str(model), str(model / "vocab.txt"), True)
  return folder


@pytest.mark.ci
def test_from_a_saved_model(model, encoder, tmp_path):
  run_well("from_saved_model", init_checkpoint=encoder, output_dir=tmp_path / "back")
  old = tensors_of(model)
  back = tensors_of(tmp_path / "back")
  assert {EMBEDDINGS, BIAS, "bert/pooler/dense/kernel"} <= set(back)
  assert not any(load_report.is_training_state(name) for name in back)
  assert_same_values(back, {name: old[name] for name in back})
  unused = {n for n in old if not load_report.is_training_state(n)} - set(back)
  assert all(name.startswith("cls/seq_relationship/") for name in unused)
  assert (tmp_path / "back/vocab.txt").read_bytes() == (model / "vocab.txt").read_bytes()
  config = json.loads((tmp_path / "back/bert_config.json").read_text())
  assert config["vocab_size"] == len(OLD)
  table = run("inspect", init_checkpoint=encoder)[1]
  assert EMBEDDINGS in table


def test_a_checkpoint_is_no_saved_model(model, tmp_path):
  error = error_of("from_saved_model", init_checkpoint=model, output_dir=tmp_path)
  assert "is a checkpoint already. Without its training state: strip" in error


def test_another_saved_model_is_refused(tmp_path):
  root = tf.train.Checkpoint(variable=tf.Variable(1.0, name="kernel"))
  tf.saved_model.save(root, str(tmp_path / "other"))
  error = error_of(
    "from_saved_model", init_checkpoint=tmp_path / "other", output_dir=tmp_path / "o"
  )
  assert "is a SavedModel whose variables do not have BERT's names" in error


# ---------------------------------------------------------------------------------------------
# Wrong input


def test_command_line(model, tmp_path):
  assert "Give a command as the first word: inspect, strip," in error_of()
  assert "Flag --command takes one of inspect, strip, resize_vocab" in error_of("squeeze")
  assert "strip needs --init_checkpoint" in error_of("strip")
  assert "strip needs --output_dir" in error_of("strip", init_checkpoint=model)
  flags = {"init_checkpoint": model, "output_dir": tmp_path}
  assert "resize_vocab needs --vocab_file" in error_of("resize_vocab", **flags)
  assert "global_step: 7" in run("--command=inspect", init_checkpoint=model)[1]


def test_what_is_not_beside_the_checkpoint_has_to_be_named(model, new_vocab, tmp_path):
  prefix = saving.save(tmp_path / "bare", 1, tensors_of(model), {})
  flags = {"init_checkpoint": prefix, "output_dir": tmp_path / "out"}
  error = error_of("resize_vocab", **flags, vocab_file=new_vocab)
  assert "resize_vocab needs --bert_config_file: it was not found beside" in error
  flags["bert_config_file"] = model / "bert_config.json"
  error = error_of("resize_vocab", **flags, vocab_file=new_vocab)
  assert "resize_vocab needs --old_vocab_file: it was not found beside" in error
  assert "to_transformers needs --vocab_file: it was not" in error_of("to_transformers", **flags)
  error = error_of("resize_vocab", **flags, vocab_file=new_vocab, old_vocab_file=tmp_path / "no")
  assert "no: No such file" in error


def test_vocabulary_of_another_model(model, new_vocab, tmp_path):
  (tmp_path / "large.txt").write_text("\n".join([*OLD, "c"]) + "\n")
  error = error_of(
    "resize_vocab",
    init_checkpoint=model,
    vocab_file=new_vocab,
    old_vocab_file=tmp_path / "large.txt",
    output_dir=tmp_path / "out",
  )
  assert f"{EMBEDDINGS} has 11 rows, the old vocabulary 12 tokens" in error
  assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("head", ["squad", "sentences", "swag"])
def test_a_head_that_the_model_lacks(model, tmp_path, head):
  flags = {"init_checkpoint": model, "output_dir": tmp_path / "a" / "b", "head": head}
  error = error_of("to_transformers", **flags)
  assert f"--head={head}: the checkpoint has no such head (no variable " in error
  assert not (tmp_path / "a").exists()


def test_the_activation_of_tinybert_has_no_class_in_transformers(tmp_path):
  facts = {"task_name": "mrpc", "labels": ["0", "1"], "problem_type": "classification"}
  head = {"output_weights": (2, 16), "output_bias": (2,)}
  model = teachers.write(tmp_path / "run", OLD, facts, head, classifier_activation="relu")
  values = {"init_checkpoint": model, "output_dir": tmp_path / "out"}
  assert "has no activation between pooler and classifier" in error_of("to_transformers", **values)
  run_well("to_transformers", **values, head="none")
  run_well("from_transformers", init_checkpoint=tmp_path / "out", output_dir=tmp_path / "back")
  back = json.loads((tmp_path / "back" / "bert_config.json").read_text())
  assert back["classifier_activation"] == "relu"


@pytest.mark.parametrize("command", ["strip", "resize_vocab", "to_transformers"])
def test_no_model_is_overwritten(model, new_vocab, command):
  before = {path.name: path.read_bytes() for path in model.iterdir()}
  error = error_of(command, init_checkpoint=model, output_dir=model, vocab_file=new_vocab)
  assert "holds a model already. Give a new folder" in error
  assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_output_that_cannot_be_written(model, tmp_path):
  (tmp_path / "file").write_text("")
  for folder in ("file", "file/out"):
    error = error_of("strip", init_checkpoint=model, output_dir=tmp_path / folder)
    assert str(tmp_path / "file") in error
  assert "is remote" in error_of("strip", init_checkpoint=model, output_dir="gs://bucket/out")


def test_damaged_checkpoint(model, tmp_path):
  prefix = saving.save(tmp_path / "bad", 7, tensors_of(model), {})
  data = pathlib.Path(prefix + ".data-00000-of-00001")
  content = bytearray(data.read_bytes())
  content[content.index(tensors_of(model)[EMBEDDINGS].tobytes())] ^= 1
  data.write_bytes(content)
  error = error_of("strip", init_checkpoint=prefix, output_dir=tmp_path / "out")
  assert "is damaged" in error
  assert not (tmp_path / "out").exists()


# ---------------------------------------------------------------------------------------------
# .keras files


@pytest.mark.ci
def test_a_file_of_keras(tmp_path):
  from bert import keras3

  sizes = {"vocab_size": len(OLD), "hidden_size": 16, "num_layers": 1, "num_heads": 2}
  bert = keras3.BERT(**sizes, intermediate_size=16, max_position_embeddings=32)
  model = keras3.BertForTokenClassification(bert, num_labels=3)
  path = tmp_path / "model.keras"
  model.save(path)
  (tmp_path / "vocab.txt").write_text("\n".join(OLD) + "\n")
  expected = {name: variable.numpy() for name, variable in model.checkpoint_variables().items()}
  run_well("from_keras", init_checkpoint=path, output_dir=tmp_path / "from_keras")
  assert_same_values(tensors_of(tmp_path / "from_keras"), expected)
  config = json.loads((tmp_path / "from_keras" / "bert_config.json").read_text())
  assert config["num_hidden_layers"] == 1
  labels = json.loads((tmp_path / "from_keras" / "label_map.json").read_text())
  assert labels == {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}
  transformers = tmp_path / "transformers"
  run_well("to_transformers", init_checkpoint=tmp_path / "from_keras", output_dir=transformers)
  config = json.loads((transformers / "config.json").read_text())
  assert config["architectures"] == ["BertForTokenClassification"]
  message = error_of("strip", init_checkpoint=path, output_dir=tmp_path / "c")
  assert f"convert_checkpoint.py from_keras --init_checkpoint={path}" in message
  message = error_of("from_keras", init_checkpoint=transformers, output_dir=tmp_path / "c")
  assert f"{transformers} is not a .keras file" in message
