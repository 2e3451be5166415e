"""Which output of a model means what, in runs that do not train; nothing is computed here.

Alone: python -m pytest tests/scripts/model_labels_test.py (seconds)
"""

import json

import pytest

from bert import run_classifier, run_ner
from bert.checkpoints.transformers_heads import Head
from bert.fine_tuning import task
from bert.scripts import model_labels
from bert.scripts.model_labels import ModelLabels
from bert.scripts.run_settings import SplitSettings
from tests.kit import exports
from tests.kit.script_runs import Script, table, values_in

pytestmark = pytest.mark.usefixtures("fake_estimator")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
  """A folder of transformers with three outputs."""
  folder = tmp_path_factory.mktemp("saved")
  head = Head("ForSequenceClassification", exports.LABELS, "classification")
  exports.write_transformers(exports.classifier(tmp_path_factory), folder, head)
  return folder


def name_outputs(folder, labels, head="SequenceClassification", problem="single_label"):
  changes = {
    "id2label": {str(number): label for number, label in enumerate(labels)},
    "architectures": [f"BertFor{head}"],
    "problem_type": f"{problem}_classification",
  }
  path = folder / "config.json"
  path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def write_table(folder, labels):
  for split in ("train", "dev", "test"):
    lines = ["text_a,label", *(f"the film was good,{label}" for label in labels)]
    (folder / f"{split}.csv").write_text("\n".join(lines) + "\n")


def evaluated(saved, tmp_path, **values):
  """The labels of the outputs, of the examples, and the warnings that name the labels."""
  values = {"task_name": "csv", "max_seq_length": 16, **values}
  flags = {"data_dir": tmp_path, "init_checkpoint": saved, "output_dir": tmp_path / "out"}
  done = Script(run_classifier).run_well(**flags, **values, do_eval=True)
  label_map = json.loads((tmp_path / "out" / "label_map.json").read_text())
  names = sorted(label_map, key=label_map.get)
  examples = [
    names[record["label_ids"][0]] for record in values_in(tmp_path / "out/eval.tf_record")
  ]
  warnings = [line for line in done.err.splitlines() if "They are taken in this order" in line]
  return names, examples, warnings


@pytest.mark.parametrize(
  ("outputs", "data", "expected", "warns"),
  [
    (["c", "a", "b"], ["a", "b", "c"], ["c", "a", "b"], False),
    (["C ", "A", "B"], ["a", "b", "c"], ["c", "a", "b"], False),
    (["LABEL_0", "LABEL_1", "LABEL_2"], ["b", "c", "a"], ["a", "b", "c"], True),
    (["LABEL_0", "LABEL_1", "LABEL_2"], ["2", "1", "0"], ["0", "1", "2"], False),
    (["x", "y", "z"], ["b", "c", "a"], ["a", "b", "c"], True),
    (["c", "a", "b"], ["a"], ["c", "a", "b"], False),
  ],
)
def test_tables(saved, tmp_path, outputs, data, expected, warns):
  name_outputs(saved, outputs)
  write_table(tmp_path, data)
  for _ in range(2):  # the second time there is the label_map.json of the first
    names, examples, warnings = evaluated(saved, tmp_path)
    assert (names, examples, len(warnings)) == (expected, data, warns)
  for label in [*outputs, *expected] if warns else []:
    assert label in warnings[0]
  name_outputs(saved, sorted(set(expected))[::-1])
  assert evaluated(saved, tmp_path)[0] == sorted(set(expected))[::-1]


def test_predictions_have_the_labels_of_the_training_file(saved, tmp_path):
  name_outputs(saved, ["LABEL_0", "LABEL_1", "LABEL_2"])
  write_table(tmp_path, ["c", "b", "a"])
  (tmp_path / "dev.csv").unlink()
  flags = {"task_name": "csv", "max_seq_length": 16, "data_dir": tmp_path, "do_predict": True}
  done = Script(run_classifier).run_well(
    **flags, init_checkpoint=saved, output_dir=tmp_path / "out"
  )
  assert "order: LABEL_0 is a, LABEL_1 is b, LABEL_2 is c. If that" in done.err
  (tmp_path / "train.csv").unlink()
  Script(run_classifier).run_well(**flags, init_checkpoint=saved, output_dir=tmp_path / "out2")
  header, *_ = table(tmp_path / "out2" / "predictions.tsv")
  assert header[2:5] == [f"probability_LABEL_{number}" for number in range(3)]


@pytest.mark.parametrize(
  ("outputs", "given", "expected", "warns"),
  [
    (["c", "a", "b"], "a,b,c", ["c", "a", "b"], False),
    (["LABEL_0", "LABEL_1", "LABEL_2"], "c,a,b", ["c", "a", "b"], False),
    (["x", "y", "z"], "c,a,b", ["c", "a", "b"], True),
  ],
)
def test_labels_that_are_given(saved, tmp_path, outputs, given, expected, warns):
  name_outputs(saved, outputs)
  write_table(tmp_path, ["a", "b", "c"])
  names, examples, warnings = evaluated(saved, tmp_path, labels=given)
  assert (names, examples, len(warnings)) == (expected, ["a", "b", "c"], warns)


@pytest.mark.parametrize(
  ("outputs", "expected", "warns"),
  [
    (["contradiction", "neutral", "entailment"], ["contradiction", "neutral", "entailment"], False),
    (["NEUTRAL", "ENTAILMENT", "CONTRADICTION"], ["neutral", "entailment", "contradiction"], False),
    (["LABEL_0", "LABEL_1", "LABEL_2"], ["contradiction", "entailment", "neutral"], True),
  ],
)
def test_public_tasks(saved, tmp_path, outputs, expected, warns):
  name_outputs(saved, outputs)
  rows = [["x"] * 8 + ["the film", "was good", label] for label in ("neutral", "entailment")]
  lines = ["\t".join(row) for row in (["x"] * 11, *rows)]
  (tmp_path / "dev_matched.tsv").write_text("\n".join(lines) + "\n")
  found = evaluated(saved, tmp_path, task_name="MNLI")
  assert (*found[:2], len(found[2])) == (expected, ["neutral", "entailment"], warns)


def test_several_labels_as_the_model_has_them(saved, tmp_path):
  name_outputs(saved, ["c", "a", "b"], problem="multi_label")
  write_table(tmp_path, ['"b,c"', "a"])
  flags = {"task_name": "csv", "max_seq_length": 16, "data_dir": tmp_path}
  flags |= {"init_checkpoint": saved, "output_dir": tmp_path / "out"}
  Script(run_classifier).run_well(**flags, do_eval=True)
  found = [record["label_ids"] for record in values_in(tmp_path / "out" / "eval.tf_record")]
  assert found == [[1, 0, 1], [0, 1, 0]]


@pytest.mark.parametrize(
  ("changes", "flags", "said"),
  [
    ({}, {"labels": "bad,good"}, ["has the labels c, a, b, this run bad, good", "does not fit"]),
    ({}, {"task_name": "RTE"}, ["has the labels c, a, b, this run entailment, not_entailment"]),
    (
      {"head": "TokenClassification"},
      {},
      ["is a model of run_ner.py, not of run_classifier.py"],
    ),
  ],
)
def test_a_model_that_cannot_be_evaluated(saved, tmp_path, changes, flags, said):
  name_outputs(saved, ["c", "a", "b"], **changes)
  write_table(tmp_path, ["bad", "good"])
  values = {"task_name": "csv", "max_seq_length": 16, "data_dir": tmp_path, **flags}
  values |= {"init_checkpoint": saved, "output_dir": tmp_path / "out", "do_predict": True}
  message = Script(run_classifier).error_of(**values)
  assert all(each in message for each in said), message


def test_training_keeps_the_order_of_its_data(saved, tmp_path):
  name_outputs(saved, ["c", "a", "b"])
  write_table(tmp_path, ["a", "b", "c"])
  assert evaluated(saved, tmp_path, do_train=True, train_batch_size=2)[0] == ["a", "b", "c"]


@pytest.mark.parametrize(
  ("labels", "flags", "said"),
  [
    (["I-LOC", "O", "B-LOC"], {}, None),
    (["I-LOC", "O", "B-LOC"], {"labels": "O,B-LOC,I-LOC"}, None),
    (["LABEL_0", "LABEL_1", "LABEL_2"], {"labels": "I-LOC,O,B-LOC"}, None),
    (["LABEL_0", "LABEL_1", "LABEL_2"], {}, "name them: --labels=O,B-PER,I-PER."),
    (["O", "B-PER"], {"labels": "O,B-LOC,I-LOC"}, "has the labels O, B-PER, this run O, B-LOC"),
  ],
)
def test_tags(saved, tmp_path, labels, flags, said):
  name_outputs(saved, labels, "TokenClassification")
  (tmp_path / "dev.txt").write_text("the O\nfilm B-LOC\nfilm I-LOC\n\n")
  values = {"max_seq_length": 16, "data_dir": tmp_path, "init_checkpoint": saved, **flags}
  values |= {"output_dir": tmp_path / "out", "do_eval": True}
  if said:
    assert said in Script(run_ner).error_of(**values)
  else:
    Script(run_ner).run_well(**values)
    label_map = json.loads((tmp_path / "out" / "label_map.json").read_text())
    assert list(label_map) == ["I-LOC", "O", "B-LOC"]
    [record] = values_in(tmp_path / "out" / "eval.tf_record")
    assert record["label_ids"][1:4] == [1, 2, 0]


def test_a_custom_task(monkeypatch):
  class Custom(task.Task):
    name = "custom"
    has_labels = True

  model = ModelLabels("folder", ["b", "a"], {})
  monkeypatch.setattr(model_labels, "of_settings", lambda settings, kind: model)
  custom = Custom(SplitSettings())
  custom.prepare(None)
  assert custom.labels == ["b", "a"]
