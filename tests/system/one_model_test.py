"""One model in folders of each kind: whoever reads them finds the same labels, ids and answers.

Alone: python -m pytest tests/system/one_model_test.py (half a minute)

`one_task_model_test.py` does this for tags, spans and choices.
"""

import csv
import json
import os
import pathlib
import shutil

import numpy as np
import pytest

from bert import export_hub, predict, run_classifier
from bert.checkpoints import finding, reading, saving
from bert.checkpoints.transformers_heads import Head
from bert.predicting import servable
from bert.predicting.predictor import Predictor
from tests.kit import exports, other_forms, server_here
from tests.kit.script_runs import Script, json_in, json_lines, results_in, table, values_in

pytestmark = pytest.mark.ci

TEXTS = ["good film", "the film was bad.", "bad bad good", "the", "was good , good", "film ."]
SCALE = np.float32(30)
FACTS = {
  "task_name": "csv",
  "problem_type": "classification",
  "labels": exports.LABELS,
  "do_lower_case": True,
}


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> tuple[list[str], np.ndarray]:
  """Labels and probabilities, from those of another head by its SavedModel."""
  logits = _logits(tmp_path_factory)
  logits = SCALE * (logits - logits.mean(axis=0))
  shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
  labels = [exports.LABELS[number] for number in shares.argmax(axis=1)]
  assert len(set(labels)) > 1
  return labels, shares


def _logits(tmp_path_factory) -> np.ndarray:
  answers = Predictor.load(exports.classifier(tmp_path_factory).exported)(TEXTS)
  return np.log([each["probabilities"] for each in answers])


@pytest.fixture(scope="module")
def folders(tmp_path_factory, expected) -> dict[str, pathlib.Path]:
  """Kind -> folder. Of the run, the newest weights are others than the best."""
  model = exports.classifier(tmp_path_factory)
  root = tmp_path_factory.mktemp("folders")
  kinds = ("run", "transformers", "original", "converted", "stripped", "converted back", "onnx")
  found = {name: root / name for name in (*kinds, "transformers 5")}
  for name in kinds[:3]:
    found[name].mkdir()
  prefix = finding.find_checkpoint(model.trained)
  tensors = reading.read_tensors(prefix, reading.names_and_shapes(prefix))
  # With this head no class is always the most probable one.
  bias = SCALE * (tensors["output_bias"] - _logits(tmp_path_factory).mean(axis=0))
  tensors["output_bias"] = bias.astype(np.float32)
  tensors["output_weights"] = SCALE * tensors["output_weights"]
  state = {"fingerprint": FACTS, "informative": {"max_seq_length": 16}}
  worse = {name: -value for name, value in tensors.items()}
  saving.save(str(found["run"]), 2, {**worse, "global_step": np.int64(2)}, state)
  saving.save(str(found["run"] / "best"), 1, {**tensors, "global_step": np.int64(1)}, state)
  saving.save(str(found["original"]), 1, tensors, {})
  for name in ("run", "original"):
    for file in ("bert_config.json", "vocab.txt"):
      shutil.copy(os.path.join(model.trained, file), found[name])
  numbered = {label: number for number, label in enumerate(exports.LABELS)}
  (found["original"] / "label_map.json").write_text(json.dumps(numbered))
  head = Head("ForSequenceClassification", exports.LABELS, "classification")
  exports.write_transformers(exports.Model(str(found["run"]), ""), found["transformers"], head)
  other_forms.write(found, stripped="original")
  for split in ("train", "dev", "test"):
    with (root / f"{split}.csv").open("w", encoding="utf-8", newline="") as writer:
      rows = zip(TEXTS, expected[0], strict=True)
      csv.writer(writer).writerows([["text_a", "label"], *rows])
  flags = {"format": "onnx", "eval_file": root / "dev.csv", "max_seq_length": 16}
  Script(export_hub).run_well(**flags, init_checkpoint=found["run"], export_dir=found["onnx"])
  return {**found, "data": root}


def assert_same(expected, labels, probabilities):
  assert list(labels) == expected[0]
  np.testing.assert_allclose(np.array(probabilities, np.float32), expected[1], atol=2e-4)


def ids_of(rows) -> list[list[int]]:
  return [[number for number in row["input_ids"] if number] for row in rows]


@pytest.mark.parametrize(
  "name", ["run", "transformers", "transformers 5", "converted back", "converted", "onnx"]
)
def test_predictor_server_and_script(folders, expected, tmp_path, name):
  folder = str(folders[name])
  source, lines = tmp_path / "texts.txt", tmp_path / "answers.jsonl"
  source.write_text("\n".join(TEXTS) + "\n")
  flags = {"input_file": source, "output_file": lines}
  answers = Predictor.load(folder, max_seq_length=16)(TEXTS)
  assert_same(expected, [a["label"] for a in answers], [list(a["probabilities"]) for a in answers])
  assert list(answers[0]["label_names"]) == exports.LABELS
  Script(predict).run_well(**flags, init_checkpoint=folder, max_seq_length=16)
  assert [each["label"] for each in json_lines(lines)] == expected[0]
  with server_here.client({"film": folder}, max_seq_length=16) as client:
    answers = client.post("/answer", json={"items": TEXTS}).json()["answers"]
    assert list(client.get("/info").json()["model_type"]["classifier"]["id2label"].values()) == (
      exports.LABELS
    )
  assert_same(expected, [a["label"] for a in answers], [list(a["probabilities"]) for a in answers])


@pytest.mark.parametrize(
  "name", ["run", "transformers", "transformers 5", "converted", "original", "in its folder"]
)
def test_task_script(folders, expected, tmp_path, name):
  flags = {"task_name": "csv", "data_dir": folders["data"], "max_seq_length": 16}
  if name == "in its folder":
    shutil.copytree(folders["run"], tmp_path / "out")
  else:
    flags["init_checkpoint"] = folders[name]
  done = Script(run_classifier).run_well(
    **flags, output_dir=tmp_path / "out", do_predict=True, do_eval=name == "in its folder"
  )
  header, *rows = table(tmp_path / "out" / "predictions.tsv")
  assert header[2:5] == [f"probability_{label}" for label in exports.LABELS]
  assert_same(expected, [row[1] for row in rows], [row[2:5] for row in rows])
  processor = servable.find(str(folders["run"])).abilities["answers"].processor
  rows = [processor.featurize(text)[0] for text in TEXTS]
  assert ids_of(values_in(tmp_path / "out" / "predict.tf_record")) == ids_of(rows)
  if name == "in its folder":
    assert f"Using the best checkpoint, {tmp_path}/out/best/model.ckpt-1. The newest" in done.err
    results = results_in(tmp_path / "out" / "eval_results.txt")
    assert (results["eval_accuracy"], results["global_step"]) == (1.0, 1)
    flags["init_checkpoint"] = tmp_path / "out" / "model.ckpt-2"
    Script(run_classifier).run_well(**flags, output_dir=tmp_path / "out", do_predict=True)
    _, *rows = table(tmp_path / "out" / "predictions.tsv")
    assert [row[1] for row in rows] != expected[0]


def test_exports_and_classes(folders, expected):
  for name in ("onnx", "transformers", "converted back"):
    config = json_in(folders[name] / "config.json")
    assert list(config["id2label"].values()) == exports.LABELS
  for name in ("onnx", "converted", "stripped"):
    assert list(json_in(folders[name] / "label_map.json")) == exports.LABELS
  for row in json_in(folders["onnx"] / "accuracy.json")["models"]:
    assert row["metrics"]["accuracy"] == 1.0
  from bert.transformers import pipeline

  answers = pipeline("text-classification", model=str(folders["transformers"]))(TEXTS)
  assert [each["label"] for each in answers] == expected[0]
