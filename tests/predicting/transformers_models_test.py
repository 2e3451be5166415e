"""Fine-tuned models of transformers: answers and labels, directly and after a conversion."""

import json
import pathlib

import numpy as np
import pytest

from bert import convert_checkpoint
from bert.checkpoints.transformers_heads import HEADS, Head
from bert.predicting import load_run
from bert.predicting.predictor import Predictor
from tests.kit import exports
from tests.kit.script_runs import Script

TEXTS = ["good film", ("the film was bad", "bad."), ""]
script = Script(convert_checkpoint)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> exports.Model:
  return exports.classifier(tmp_path_factory)


@pytest.fixture(scope="module")
def saved(model, tmp_path_factory) -> pathlib.Path:
  """The classifier as transformers saves it."""
  folder = tmp_path_factory.mktemp("saved")
  exports.write_transformers(
    model, folder, Head("ForSequenceClassification", exports.LABELS, "classification")
  )
  return folder


def assert_same_answers(folder, model) -> None:
  answer = Predictor.load(str(folder), max_seq_length=16)
  expected = Predictor.load(model.exported)(TEXTS)
  for found, wanted in zip(answer(TEXTS), expected, strict=True):
    assert found["label"] == wanted["label"]
    assert found["label_names"] == exports.LABELS
    np.testing.assert_allclose(found["probabilities"], wanted["probabilities"], atol=1e-5)


@pytest.fixture(scope="module")
def converted(saved, tmp_path_factory) -> dict[str, pathlib.Path]:
  """The same model after conversions there and back, and without training state."""
  folder = tmp_path_factory.mktemp("converted")
  folders = {name: folder / name for name in ("own", "stripped", "back")}
  convert("from_transformers", saved, folders["own"])
  convert("strip", folders["own"], folders["stripped"])
  convert("to_transformers", folders["stripped"], folders["back"])
  return folders


def test_a_conversion_keeps_task_and_labels(saved, converted):
  facts = {"labels": exports.LABELS, "problem_type": "classification", "do_lower_case": True}
  for folder in (saved, *converted.values()):
    run = load_run.find_run(folder)
    assert (run.kind.name, run.facts) == ("sentences", facts)
  for name in ("own", "stripped"):
    labels = json.loads((converted[name] / "label_map.json").read_text())
    assert list(labels) == exports.LABELS
  first, second = (
    json.loads((folder / "config.json").read_text()) for folder in (saved, converted["back"])
  )
  assert first == second


@pytest.mark.ci
@pytest.mark.parametrize("name", ["saved", "stripped"])
def test_a_model_of_transformers_answers(saved, converted, model, name):
  assert_same_answers({"saved": saved, **converted}[name], model)


def convert(command, source, folder) -> None:
  command = f"--command={command}"
  script.run_well(command, init_checkpoint=source, output_dir=folder)


@pytest.mark.parametrize(
  ("head", "changes", "task", "facts"),
  [
    ("ner", {}, "ner", {"task_name": "ner", "labels": exports.LABELS, "do_lower_case": True}),
    ("squad", {}, "squad", {"task_name": "squad", "do_lower_case": True}),
    ("swag", {}, "swag", {"task_name": "swag", "do_lower_case": True}),
    (
      "sentences",
      {"problem_type": "multi_label_classification"},
      "sentences",
      {"labels": exports.LABELS, "problem_type": "multi_label", "do_lower_case": True},
    ),
    (
      "sentences",
      {"id2label": {"0": "score"}, "problem_type": None},
      "sentences",
      {"labels": ["score"], "problem_type": "regression", "do_lower_case": True},
    ),
  ],
)
def test_the_task_is_that_of_the_class(model, tmp_path, head, changes, task, facts):
  exports.write_transformers(model, tmp_path, Head(HEADS[head], exports.LABELS), **changes)
  run = load_run.find_run(tmp_path)
  assert run.kind.name == task
  assert run.facts == facts
  assert run.config.hidden_size == 16
  assert run.max_seq_length == 32, "what the model can read"


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"id2label": {"0": "a", "2": "b"}}, "id2label is .* not a label for each of 0, 1, 2"),
    ({"id2label": ["a", "b"]}, "id2label is .* not a label"),
    ({"id2label": {}}, "id2label is"),
    ({"id2label": {"0": 1, "1": 2}}, "id2label is"),
    ({"problem_type": "ranking"}, "problem_type is 'ranking'; known: single_label"),
    ({"architectures": ["BertForMaskedLM"]}, "is not a fine-tuned model"),
  ],
)
def test_a_configuration_without_sense(model, tmp_path, changes, message):
  exports.write_transformers(
    model, tmp_path, Head("ForSequenceClassification", exports.LABELS, "classification"), **changes
  )
  with pytest.raises(ValueError, match=message):
    load_run.find_run(tmp_path)
