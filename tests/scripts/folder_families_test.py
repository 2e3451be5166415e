"""Scripts with a folder of RoBERTa or DistilBERT: trained, evaluated, and back to transformers.

Alone: python -m pytest -m ci tests/scripts/folder_families_test.py
"""

import json

import numpy as np
import pytest

from bert import extract_features, run_classifier, run_ner, run_squad, run_swag
from bert.checkpoints import finding, numpy_writer, transformers_heads
from bert.model import variable_shapes
from bert.model.configuration import BertConfig
from bert.predicting.predictor import Predictor
from tests.kit import byte_pairs, tiny_choices, tiny_entities, tiny_sentences
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
_TIERS = {"roberta": pytest.mark.ci, "distilbert": pytest.mark.slow}
RUN = {"max_seq_length": 32, "train_batch_size": 8, "learning_rate": 0.01, "do_train": True}


@pytest.fixture(scope="module", params=[pytest.param(f, marks=m) for f, m in _TIERS.items()])
def folder(request, tmp_path_factory):
  """A folder of transformers with random weights. Tests only read it."""
  source = tmp_path_factory.mktemp(request.param)
  if request.param == "roberta":
    words = byte_pairs.vocabulary()
    byte_pairs.write(source)
  else:
    words = tiny_sentences.VOCAB
    (source / "vocab.txt").write_text("\n".join(words) + "\n")
  content = {**SIZES, **FAMILIES[request.param], "vocab_size": len(words)}
  (source / "bert_config.json").write_text(json.dumps(content))
  shapes = variable_shapes.encoder_shapes(BertConfig.from_dict(content))
  rng = np.random.RandomState(1)
  tensors = {name: 0.2 * rng.randn(*shape).astype(np.float32) for name, shape in shapes.items()}
  tensors |= {name: 1 + value for name, value in tensors.items() if name.endswith("gamma")}
  numpy_writer.write(source / "bert_model.ckpt", tensors)
  return to_transformers(source, source / "folder", "none")


def to_transformers(source, target, head):
  run_well("to_transformers", init_checkpoint=source, output_dir=target, head=head)
  return target


def class_in(folder):
  return json.loads((folder / "config.json").read_text())["architectures"][0]


def family_of(folder):
  return json.loads((folder / "config.json").read_text())["model_type"]


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
  assert class_in(there) == transformers_heads.class_of(
    "ForSequenceClassification", family_of(folder)
  )
  items = [("the film was good", "film"), ("the film was bad", "the film b")]
  expected, converted, exported = (
    [answer["probabilities"] for answer in predictor(items)]
    for predictor in (
      Predictor.load(tmp_path / "out"),
      Predictor.load(there),
      Predictor.load(str(tmp_path / "out" / "export" / "task")),
    )
  )
  np.testing.assert_allclose(converted, expected, atol=1e-6)
  np.testing.assert_allclose(exported, expected, atol=1e-5)


def test_tags(folder, tmp_path):
  for name, count, seed in (("train", 32, 1), ("valid", 8, 2), ("test", 8, 3)):
    tiny_entities.write_conll(tmp_path / f"{name}.conll", tiny_entities.sentences(count, seed))
  Script(run_ner).run_well(
    **{**RUN, "data_dir": tmp_path, "init_checkpoint": folder, "output_dir": tmp_path / "out"},
    **{"num_train_epochs": 2.0, "do_eval": True, "do_predict": True},
  )
  there = to_transformers(tmp_path / "out", tmp_path / "there", "ner")
  folders = tmp_path / "out", there
  tags = [Predictor.load(each)("the film was good")[0]["tags"] for each in folders]
  assert tags[0] == tags[1]


def test_choices(folder, tmp_path):
  for name, count, seed in (("train", 16, 1), ("val", 8, 2)):
    tiny_choices.write_csv(tmp_path / f"{name}.csv", tiny_choices.questions(count, seed))
  Script(run_swag).run_well(
    **{**RUN, "data_dir": tmp_path, "init_checkpoint": folder, "output_dir": tmp_path / "out"},
    **{"num_train_epochs": 1.0, "do_eval": True},
  )
  there = to_transformers(tmp_path / "out", tmp_path / "there", "swag")
  question = ("the film", ["was good", "was bad"])
  answers = [Predictor.load(each)([question])[0] for each in (tmp_path / "out", there)]
  np.testing.assert_allclose(*(answer["probabilities"] for answer in answers), atol=1e-6)


def test_questions(folder, tmp_path):
  paragraph = {
    "context": "the film was good and the end was bad",
    "qas": [
      {
        **{"id": str(number), "question": "what was good", "is_impossible": False},
        "answers": [{"text": "film", "answer_start": 4}],
      }
      for number in range(8)
    ],
  }
  data = {"version": "1.1", "data": [{"title": "t", "paragraphs": [paragraph]}]}
  (tmp_path / "train.json").write_text(json.dumps(data))
  Script(run_squad).run_well(
    **{**RUN, "init_checkpoint": folder, "output_dir": tmp_path / "out"},
    **{"train_file": tmp_path / "train.json", "predict_file": tmp_path / "train.json"},
    **{"num_train_epochs": 20.0, "do_predict": True, "doc_stride": 8, "max_query_length": 12},
  )
  there = to_transformers(tmp_path / "out", tmp_path / "there", "squad")
  assert json.loads((tmp_path / "out" / "predictions.json").read_text())["0"] == "film"
  options = {"max_seq_length": 32, "doc_stride": 8, "max_query_length": 12}
  [answer] = Predictor.load(there, **options)([("what was good", paragraph["context"])])
  assert answer["answer"] == "film"


def test_features_and_words(folder, tmp_path):
  (tmp_path / "in.txt").write_text("the film was good ||| the end\n")
  Script(extract_features).run_well(
    **{"input_file": tmp_path / "in.txt", "output_file": tmp_path / "out.jsonl", "layers": "-1"},
    **{"init_checkpoint": folder, "max_seq_length": 32},
  )
  [line] = (tmp_path / "out.jsonl").read_text().splitlines()
  assert len(json.loads(line)["features"][0]["layers"][0]["values"]) == SIZES["hidden_size"]
  with pytest.raises(finding.CheckpointError, match="has no head for masked words"):
    Predictor.load(str(folder), task="masked_words", max_seq_length=32)
