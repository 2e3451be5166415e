r"""Folders of transformers' models: what is in them, and that outputs and bits stay the same.

Alone: python -m pytest tests/checkpoints/transformers_folder_test.py (half a minute)

With transformers itself, in an interpreter that has it and PyTorch (a minute more):

  BERT_PEER_PYTHON=/path/to/python \
    python -m pytest tests/checkpoints/transformers_folder_test.py -m slow
"""

import json
import os

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import (
  finding,
  loading,
  reading,
  safetensors_file,
  saving,
  transformers_folder,
  transformers_heads,
  transformers_names,
)
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.transformers_heads import HEADS as ENDINGS
from bert.model import heads
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig, BertModel
from bert.predicting.predictor import Predictor
from tests.kit.conversions import error_of, run_well
from tests.kit.peer_runs import largest_difference, run_peer, save_inputs
from tests.kit.script_runs import assert_same_values
from tests.kit.tiny_bert import ORIGINAL as CONFIG

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdef"]
IDS = np.array([[2, 5, 3, 0], [2, 7, 8, 3]], np.int32)
MASK = np.array([[1, 1, 1, 0], [1, 1, 1, 1]], np.int32)
TYPES = np.array([[0, 0, 1, 0], [0, 1, 1, 1]], np.int32)
# What PyTorch computes of `tensors_by_formula` with a classifier of 3 classes, for either GELU.
LOGITS = {
  "gelu": [[-1.0064735, -1.2986944, 0.6076909], [-1.0032258, -1.2944553, 0.6030994]],
  "gelu_new": [[-1.0064785, -1.2986999, 0.6077079], [-1.0032320, -1.2944617, 0.6031172]],
}
HEADS = {
  "none": {},
  "sentences": {"output_weights": [3, 8], "output_bias": [3]},
  "squad": {"cls/squad/output_weights": [2, 8], "cls/squad/output_bias": [2]},
  "swag": {"output_weights": [1, 8]},
  "next_sentence": {
    "cls/seq_relationship/output_weights": [2, 8],
    "cls/seq_relationship/output_bias": [2],
  },
  "masked_words": {
    "cls/predictions/transform/dense/kernel": [8, 8],
    "cls/predictions/transform/dense/bias": [8],
    "cls/predictions/transform/LayerNorm/gamma": [8],
    "cls/predictions/transform/LayerNorm/beta": [8],
    "cls/predictions/output_bias": [11],
  },
}
HEADS["pretraining"] = {**HEADS["masked_words"], **HEADS["next_sentence"]}
HEADS["ner"] = HEADS["sentences"]


def random_tensors(config, head):
  """A model by the original's names, with no value as in an untrained one."""
  shapes = {}
  with use_store(VariableStore()) as store:
    BertModel(BertConfig.from_dict(config), False, IDS[:, :1])
    shapes = {name: v.shape.as_list() for name, v in store.variables.items()} | HEADS[head]
  shapes.pop("global_step", None)
  rng = np.random.default_rng(len(head))
  return {
    name: (rng.normal(size=shape) * 0.3 + name.endswith("gamma")).astype(np.float32)
    for name, shape in shapes.items()
  }


def save_model(folder, head, state=None, config=CONFIG):
  """A checkpoint with its config and vocabulary; returns its tensors."""
  tensors = random_tensors(config, head)
  slots = {f"{name}/adam_m": value for name, value in tensors.items()}
  saving.save(folder, 5, {**tensors, **slots, "global_step": np.int64(5)}, state or {})
  (folder / "bert_config.json").write_text(json.dumps(config))
  (folder / "vocab.txt").write_text("\n".join(VOCABULARY[: config["vocab_size"]]) + "\n")
  return tensors


def read_all(path):
  prefix = finding.find_checkpoint(path)
  return reading.read_tensors(prefix, reading.names_and_shapes(prefix))


def save_as_transformers(folder, tensors, **settings):
  """What transformers would save of a model, by our own names map."""
  folder.mkdir(exist_ok=True)
  renamed = {}
  for name, value in tensors.items():
    key, is_transposed = transformers_names.key_of(name)
    renamed[key] = value.T if is_transposed else value
  safetensors_file.write(folder / "model.safetensors", renamed, {"format": "pt"})
  config = {key: value for key, value in CONFIG.items() if key != "directionality"}
  config |= {"model_type": "bert", "layer_norm_eps": 1e-12, **settings}
  (folder / "config.json").write_text(json.dumps(config))
  return renamed


# ---------------------------------------------------------------------------------------------
# Outputs.


def tensors_by_formula():
  """The values of which PyTorch computed `LOGITS`: one wave through all tensors, by their keys."""
  names = random_tensors(CONFIG, "sentences")
  keys = {transformers_names.key_of(name).name: name for name in names}
  tensors, start = {}, 0
  for key in sorted(keys):
    value = names[keys[key]]
    shape = value.T.shape if transformers_names.key_of(keys[key]).is_transposed else value.shape
    wave = 0.6 * np.sin(0.37 * np.arange(start, start + value.size) ** 2)
    tensors[key] = wave.astype(np.float32).reshape(shape)
    start += value.size
  return tensors


@pytest.mark.parametrize("activation", LOGITS)
def test_logits_of_pytorch(tmp_path, activation):
  """Either GELU: the tolerance is a quarter of what they differ by."""
  save_as_transformers(tmp_path, {}, hidden_act=activation)
  safetensors_file.write(tmp_path / "model.safetensors", tensors_by_formula())
  outputs = compute(tmp_path, "BertForSequenceClassification", IDS, MASK, TYPES)
  np.testing.assert_allclose(outputs["logits"], LOGITS[activation], atol=4e-6)


def compute(folder, class_name, ids, mask, types):
  """What this project computes with the model in a folder, by transformers' names of outputs."""
  name = "config.json" if os.path.exists(folder / "config.json") else "bert_config.json"
  config = BertConfig.from_json_file(folder / name)
  inputs = [tf.constant(array, tf.int32) for array in (ids, mask, types)]
  store = VariableStore()
  with use_store(store):
    _outputs(config, class_name, *inputs)  # creates the variables
    report = loading.init_from_checkpoint(finding.find_checkpoint(folder), store.variables)
    assert not report.mismatched
    assert {name for name in report.missing if "/pooler/" not in name} == set()
    return {name: value.numpy() for name, value in _outputs(config, class_name, *inputs).items()}


def _outputs(config, class_name, ids, mask, types):
  model = BertModel(config, False, ids, mask, types)
  sequence, pooled = model.get_sequence_output(), model.get_pooled_output()
  labels = tf.zeros([len(ids)], tf.int32)
  outputs = {}
  if class_name == "BertModel":
    outputs = {"last_hidden_state": sequence, "pooler_output": pooled}
  if class_name in ("BertForPreTraining", "BertForMaskedLM"):
    vectors = tf.reshape(sequence, [-1, config.hidden_size])
    words = heads.masked_lm_logits(config, vectors, model.get_embedding_table())
    name = "logits" if class_name == "BertForMaskedLM" else "prediction_logits"
    outputs[name] = tf.reshape(words, [*ids.shape, -1])
  if class_name in ("BertForPreTraining", "BertForNextSentencePrediction"):
    name = "seq_relationship_logits" if class_name == "BertForPreTraining" else "logits"
    outputs[name] = heads.get_next_sentence_output(config, pooled, labels)[2]
  if class_name == "BertForSequenceClassification":
    outputs["logits"] = heads.get_classifier_logits(pooled, 3, False)
  if class_name == "BertForTokenClassification":
    outputs["logits"] = heads.get_token_logits(sequence, 3, False)
  if class_name == "BertForQuestionAnswering":
    outputs["start_logits"], outputs["end_logits"] = heads.get_span_logits(sequence)
  if class_name == "BertForMultipleChoice":
    choices = tf.ones([len(ids) // 2, 2], tf.int32)
    outputs["logits"] = heads.get_choice_logits(pooled, choices, False)
  return outputs


# ---------------------------------------------------------------------------------------------
# Conversion.


@pytest.mark.parametrize("head", HEADS)
def test_there_and_back_again(tmp_path, head):
  state = {"fingerprint": {"task_name": "ner", "labels": ["O", "B", "I"]}} if head == "ner" else {}
  (tmp_path / "model").mkdir()
  tensors = save_model(tmp_path / "model", head, state)
  log = run_well(
    "to_transformers", init_checkpoint=tmp_path / "model", output_dir=tmp_path / "there"
  )
  assert f"a {transformers_heads.class_of(ENDINGS[head], 'bert')}." in log
  assert sorted(os.listdir(tmp_path / "there")) == [
    "config.json",
    "model.safetensors",
    "tokenizer_config.json",
    "vocab.txt",
  ]
  config = json.loads((tmp_path / "there/config.json").read_text())
  assert config["architectures"] == [transformers_heads.class_of(ENDINGS[head], "bert")]
  if head == "ner":
    assert config["id2label"] == {"0": "O", "1": "B", "2": "I"}
  run_well("from_transformers", init_checkpoint=tmp_path / "there", output_dir=tmp_path / "back")
  assert_same_values(read_all(tmp_path / "back"), tensors)
  assert json.loads((tmp_path / "back/bert_config.json").read_text()) == CONFIG
  vocabulary = (tmp_path / "model/vocab.txt").read_bytes()
  assert (tmp_path / "back/vocab.txt").read_bytes() == vocabulary


def test_a_bias_for_choices(tmp_path):
  """transformers' class has one, which is written as zero; another than zero is kept."""
  tensors = random_tensors(CONFIG, "swag")
  config = {"architectures": ["BertForMultipleChoice"]}
  for value, is_kept in ((0.0, False), (0.5, True)):
    bias = {"output_bias": np.array([value], np.float32)}
    save_as_transformers(tmp_path, {**tensors, **bias}, **config)
    found = transformers_folder.tensors_of(transformers_folder.open_weights(tmp_path))
    assert_same_values(found, {**tensors, **bias} if is_kept else tensors)


def test_names_of_nobody_are_kept_and_named(tmp_path):
  tensors = {**random_tensors(CONFIG, "none"), "my/own": np.zeros(3, np.float32)}
  save_as_transformers(tmp_path / "there", tensors)
  log = run_well(
    "from_transformers", init_checkpoint=tmp_path / "there", output_dir=tmp_path / "back"
  )
  assert "Names unchanged: 1 tensor: my/own." in log
  assert_same_values(read_all(tmp_path / "back"), tensors)


def test_a_run_that_began_with_a_model_of_transformers(tmp_path):
  """Its checkpoint has no config of its own: the one it began with is given, of either kind."""
  (tmp_path / "model").mkdir()
  save_model(tmp_path / "model", "sentences")
  path = tmp_path / "config.json"
  for content, expected in (({**CONFIG, "model_type": "bert"}, "gelu"), (CONFIG, "gelu_new")):
    path.write_text(json.dumps(content))
    flags = {"init_checkpoint": tmp_path / "model", "bert_config_file": path}
    run_well("to_transformers", **flags, output_dir=tmp_path / expected)
    config = json.loads((tmp_path / expected / "config.json").read_text())
    assert config["hidden_act"] == expected


def test_which_head_can_be_said(tmp_path):
  (tmp_path / "model").mkdir()
  save_model(tmp_path / "model", "sentences")
  flags = {"init_checkpoint": tmp_path / "model", "head": "ner", "do_lower_case": False}
  run_well("to_transformers", **flags, output_dir=tmp_path / "there")
  config = json.loads((tmp_path / "there/config.json").read_text())
  assert config["architectures"] == ["BertForTokenClassification"]
  assert config["label2id"] == {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}
  assert finding.find(tmp_path / "there").do_lower_case is False


# ---------------------------------------------------------------------------------------------
# Finding and loading.


def test_a_run_takes_the_folder(tmp_path):
  """--init_checkpoint alone: config, vocabulary and case are found in the folder."""
  tensors = random_tensors(CONFIG, "pretraining")
  renamed = save_as_transformers(tmp_path, tensors)
  # As older versions save it: with what is double, and what is not a weight.
  renamed["cls.predictions.decoder.weight"] = renamed["bert.embeddings.word_embeddings.weight"]
  renamed["bert.embeddings.position_ids"] = np.arange(6)[None]
  safetensors_file.write(tmp_path / "model.safetensors", renamed)
  (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")
  predictor = Predictor.load(str(tmp_path), task="masked_words", top_k=11, max_seq_length=6)
  [found] = predictor(["a [MASK] c"])
  ids = np.array([[2, 5, 4, 7, 3]])
  outputs = compute(tmp_path, "BertForPreTraining", ids, np.ones_like(ids), np.zeros_like(ids))
  expected = tf.nn.softmax(outputs["prediction_logits"][0, 2]).numpy()
  probabilities = {guess["token"]: guess["probability"] for guess in found["masks"][0]}
  for token, probability in zip(VOCABULARY, expected.tolist(), strict=True):
    assert probabilities[token] == pytest.approx(probability, abs=1e-5)


def test_an_untied_decoder_leaves_no_head_for_words(tmp_path, caplog):
  tensors = {**random_tensors(CONFIG, "pretraining")}
  renamed = save_as_transformers(tmp_path, tensors, tie_word_embeddings=False)
  renamed["cls.predictions.decoder.weight"] = np.ones([11, 8], np.float32)
  safetensors_file.write(tmp_path / "model.safetensors", renamed)
  names = reading.names_and_shapes(finding.find_checkpoint(tmp_path))
  assert "cls/seq_relationship/output_bias" in names
  assert not any(name.startswith("cls/predictions/") for name in names)
  assert caplog.text.count("decoder of its own") == 1  # though the file was opened twice


def test_a_config_beside_the_weights_that_is_none(tmp_path):
  save_as_transformers(tmp_path, random_tensors(CONFIG, "none"))
  for text, message in (("{", "is not valid JSON"), ("[]", "a JSON object is needed, not list")):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(CheckpointError, match=message):
      transformers_folder.open_weights(tmp_path)


def test_commands_that_need_something_else(tmp_path):
  save_as_transformers(tmp_path / "there", random_tensors(CONFIG, "none"))
  flags = {"init_checkpoint": tmp_path / "there", "output_dir": tmp_path / "out"}
  assert "was saved by transformers. First make a checkpoint" in error_of("strip", **flags)
  os.remove(tmp_path / "there/config.json")
  assert "has no config.json beside it" in error_of("from_transformers", **flags)
  (tmp_path / "model").mkdir()
  save_model(tmp_path / "model", "none")
  flags["init_checkpoint"] = tmp_path / "model"
  assert "was not saved by transformers" in error_of("from_transformers", **flags)
  flags["output_dir"] = tmp_path / "there"
  assert "holds a model already" in error_of("to_transformers", **flags)


# ---------------------------------------------------------------------------------------------
# transformers itself.


@pytest.mark.slow
def test_models_that_transformers_saved(tmp_path):
  inputs = save_inputs(tmp_path)
  run_peer("make", tmp_path)
  folders = sorted(path.parent for path in tmp_path.glob("*/config.json"))
  assert len(folders) == 13
  assert len(list((tmp_path / "sharded").glob("*.safetensors"))) > 1
  for folder in folders:
    [class_name] = json.loads((folder / "config.json").read_text())["architectures"]
    difference = largest_difference(folder, compute(folder, class_name, *inputs))
    print(f"{folder.name}: {difference:.1e}")
    assert difference < 1e-5, folder.name


@pytest.mark.slow
def test_models_that_we_saved(tmp_path):
  inputs = save_inputs(tmp_path)
  for head in HEADS:
    source = tmp_path / "sources" / head
    source.mkdir(parents=True)
    save_model(source, head)
    run_well("to_transformers", init_checkpoint=source, output_dir=tmp_path / head, head=head)
  run_peer("compute", tmp_path)
  for head in HEADS:
    source = tmp_path / "sources" / head
    ours = compute(source, transformers_heads.class_of(ENDINGS[head], "bert"), *inputs)
    difference = largest_difference(tmp_path / head, ours)
    print(f"{head}: {difference:.1e}")
    assert difference < 1e-5, head
