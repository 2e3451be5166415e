"""Scripts with a folder of RoBERTa or DistilBERT: trained, evaluated, and back to transformers.

Alone: python -m pytest -m ci tests/scripts/folder_families_test.py
"""

import json

import numpy as np
import pytest

from bert import run_classifier, run_ner
from bert.checkpoints import transformers_heads
from bert.predicting.load_run import load_run
from bert.predicting.predictor import Predictor
from tests.kit import byte_pairs, tiny_entities, tiny_sentences
from tests.kit.conversions import run_well
from tests.kit.script_runs import Script, results_in

SIZES = {
  **dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16),
  **dict(initializer_range=0.2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
}
FAMILIES = {
  "roberta": dict(model_type="roberta", max_position_embeddings=66),
  "distilbert": dict(
    model_type="distilbert", max_position_embeddings=64, qa_dropout=0.0, seq_classif_dropout=0.0
  ),
}
RUN = {"max_seq_length": 32, "train_batch_size": 8, "learning_rate": 0.01, "do_train": True}


@pytest.fixture
def folder(request, tmp_path):
  """A folder of transformers with random weights, which our own run of one step has made."""
  family = request.param
  source = tmp_path / "source"
  source.mkdir()
  if family == "roberta":
    words = byte_pairs.vocabulary()
    files = {"vocab_file": byte_pairs.write(source)}
  else:
    words = {word: index for index, word in enumerate(tiny_sentences.VOCAB)}
    files = {"vocab_file": source / "vocab.txt"}
    files["vocab_file"].write_text("\n".join(words) + "\n")
  config = source / "bert_config.json"
  config.write_text(json.dumps({**SIZES, **FAMILIES[family], "vocab_size": len(words)}))
  tiny_sentences.write_mrpc(source)
  Script(run_classifier).run_well(
    **{**RUN, **files, "bert_config_file": config, "data_dir": source, "task_name": "MRPC"},
    **{"num_train_epochs": 0.1, "output_dir": source / "out"},
  )
  to_transformers(source / "out", tmp_path / "folder", "none")
  return tmp_path / "folder"


def to_transformers(source, target, head):
  run_well("to_transformers", init_checkpoint=source, output_dir=target, head=head)
  return target


def families(test):
  return pytest.mark.ci(pytest.mark.parametrize("folder", list(FAMILIES), indirect=True)(test))


def class_in(folder):
  return json.loads((folder / "config.json").read_text())["architectures"][0]


def family_of(folder):
  return json.loads((folder / "config.json").read_text())["model_type"]


@families
def test_sentences(folder, tmp_path):
  """A run learns; its folder, its export and its folder of transformers answer alike."""
  tiny_sentences.write_mrpc(tmp_path)
  flags = {"task_name": "MRPC", "data_dir": tmp_path, "init_checkpoint": folder}
  Script(run_classifier).run_well(
    **{**RUN, **flags, "output_dir": tmp_path / "out", "num_train_epochs": 12.0},
    **{"do_eval": True, "do_predict": True, "do_export": True},
  )
  assert results_in(tmp_path / "out" / "eval_results.txt")["eval_accuracy"] == 1.0
  there = to_transformers(tmp_path / "out", tmp_path / "there", "sentences")
  assert class_in(there) == transformers_heads.class_of("sentences", family_of(folder))
  texts = {"text_a": ["the film was good", "the film was bad"], "text_b": ["film", "the film b"]}
  expected = load_run(tmp_path / "out")(texts)["probabilities"].numpy()
  np.testing.assert_allclose(load_run(there)(texts)["probabilities"], expected, atol=1e-6)
  predictor = Predictor.from_saved_model(str(tmp_path / "out" / "export" / "task"))
  exported = predictor(list(zip(*texts.values(), strict=True)))
  np.testing.assert_allclose([each["probabilities"] for each in exported], expected, atol=1e-5)


@families
def test_tags(folder, tmp_path):
  for name, count, seed in (("train", 32, 1), ("valid", 8, 2), ("test", 8, 3)):
    tiny_entities.write_conll(tmp_path / f"{name}.conll", tiny_entities.sentences(count, seed))
  Script(run_ner).run_well(
    **{**RUN, "data_dir": tmp_path, "init_checkpoint": folder, "output_dir": tmp_path / "out"},
    **{"num_train_epochs": 2.0, "do_eval": True, "do_predict": True},
  )
  there = to_transformers(tmp_path / "out", tmp_path / "there", "ner")
  text = {"text": ["the film was good"]}
  answers = [load_run(each)(text) for each in (tmp_path / "out", there)]
  assert answers[0]["tags"].numpy().tolist() == answers[1]["tags"].numpy().tolist()
