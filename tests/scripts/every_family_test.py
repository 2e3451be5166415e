"""Every script with a model of every other family: nothing but `--init_checkpoint` changes.

The model comes out of the family's own way from a text: its records, its pre-training. The table
"What each has" in docs/families.md promises what is run here. Continuous integration runs each task
with each family and each other script with two; the rest is slow.
Alone: python -m pytest -m "" tests/scripts/every_family_test.py
"""

import functools
import json

import numpy as np
import pytest

from bert.model.configuration import BertConfig
from bert.predicting.predictor import Predictor
from tests.kit import byte_pairs, conversions, every_script, healthy_run
from tests.kit.every_script import RUNS, flags, script, without_model_files

pytestmark = pytest.mark.ci

FAMILIES = {
  "electra": {"embedding_size": 4},
  "albert": {"embedding_size": 4},
  "roberta": {"type_vocab_size": 1, "layer_norm_eps": 1e-5, "max_position_embeddings": 66},
  "distilbert": {},
}
# DistilBERT's own records have no masks; those are drawn by distill.py.
RECORDS = {"distilbert": "bert"}
SCRIPTS = [name for name in RUNS if "init_checkpoint" in RUNS[name]]
TASKS = ["run_classifier", "run_ner", "run_squad", "run_swag", "run_similarity"]
LONGER = {"max_seq_length": 32}  # as many letters need more pieces in some families


def of_families(number: int):
  """Runs a test with each family; with all but that of the number it is slow."""
  params = [
    pytest.param(name, marks=() if place == number else pytest.mark.slow)
    for place, name in enumerate(FAMILIES)
  ]
  return pytest.mark.parametrize("files", params, indirect=True)


def of_scripts():
  """Runs a test with each family and script."""
  others = [name for name in SCRIPTS if name not in TASKS]
  params = [
    pytest.param(family, name, marks=pytest.mark.slow if is_slow else ())
    for place, family in enumerate(FAMILIES)
    for name in SCRIPTS
    for is_slow in [name not in TASKS and (place - others.index(name)) % len(FAMILIES) > 1]
  ]
  return pytest.mark.parametrize(("files", "name"), params, indirect=["files"])


@pytest.fixture(scope="module")
def files_of(tmp_path_factory):
  """Family -> `pretrained` of it, made once: pytest forgets a parameter at each other place."""
  return functools.cache(lambda family: pretrained(family, tmp_path_factory.mktemp(family)))


@pytest.fixture
def files(request, files_of):
  """`pretrained` of a family."""
  return files_of(request.param)


def pretrained(family, folder):
  """Writes the files of every script, with a pre-trained model of the family in `one`."""
  every_script.write_files(folder)
  if family == "roberta":
    (folder / "vocab.txt").unlink()
    vocabulary = byte_pairs.write(folder)
    size = len(byte_pairs.vocabulary())
    (folder / "masked.txt").write_text("ada <mask> cat.\n")
  else:
    vocabulary, size = str(folder / "vocab.txt"), len(healthy_run.VOCAB)
  config = {**healthy_run.CONFIG, **FAMILIES[family], "model_type": family, "vocab_size": size}
  healthy_run.write_json(folder / "bert_config.json", config)
  records = str(folder / "records.tfrecord")
  script("create_pretraining_data").run_well(
    **{"format": RECORDS.get(family, family), "input_file": folder / "corpus.txt"},
    **{"vocab_file": vocabulary, "output_file": records, "max_seq_length": 16},
  )
  given = of_pretraining(folder, vocab_file=vocabulary, output_dir=folder / "one")
  del given["init_checkpoint"]
  script("run_pretraining").run_well(**given)
  return folder


def of_pretraining(files, **changed):
  """Flags of a step on the records of the family."""
  records = str(files / "records.tfrecord")
  given = flags("run_pretraining", files, files, input_file=records, eval_input_file=records)
  del given["max_predictions_per_seq"]  # as in the records
  return {**given, **changed}


@pytest.fixture
def classifier(files):
  """A run of run_classifier.py."""
  folder = files / "classifier"
  if not folder.exists():
    folder.mkdir()
    run_well("run_classifier", files, folder, do_export=True)
  return folder / "out"


def run_well(name, files, folder, **changed):
  """Runs a script with the pre-trained model, and without any file of it given by name."""
  given = flags(name, files, folder, init_checkpoint=files / "one")
  given = without_model_files(given)
  if "max_seq_length" in given:
    given |= LONGER
  done = script(name).run(**{**given, **changed})
  assert done.code in (None, 0), done.err + done.out


def family_of(files):
  return BertConfig.from_json_file(str(files / "bert_config.json")).family


@of_scripts()
def test_a_script(name, files, tmp_path):
  if name == "run_pretraining":
    given = of_pretraining(files, init_checkpoint=files / "one", output_dir=tmp_path / "out")
    script(name).run_well(**without_model_files(given))
  else:
    run_well(name, files, tmp_path)
  if name in (*TASKS, "run_pretraining"):
    assert list((tmp_path / "out").glob("model.ckpt-*.index"))
  elif (output := RUNS[name].get("output_file", "")).startswith("{}/"):
    assert (files / output.removeprefix("{}/")).stat().st_size
  elif name != "doctor":
    assert any(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())


@of_families(0)
def test_a_run_answers_exports_and_teaches(files, classifier, tmp_path):
  given = {"init_checkpoint": classifier, "input_file": files / "corpus.txt"}
  script("predict").run_well(**given, output_file=tmp_path / "answers.jsonl")
  [first, *_] = (tmp_path / "answers.jsonl").read_text().splitlines()
  assert json.loads(first)
  assert (classifier / "export" / "task" / "saved_model.pb").exists()
  given = flags("distill", files, tmp_path, teacher=classifier)
  script("distill").run_well(**given)
  student = BertConfig.from_json_file(str(tmp_path / "out" / "bert_config.json"))
  assert student.num_hidden_layers == 1
  assert student.family is family_of(files)


@of_families(1)
def test_exports_for_other_engines_answer_alike(files, classifier, tmp_path):
  texts = ["ada has a cat.", "a dog"]
  for head, task in (("task", "answers"), ("none", "vectors")):
    folder = tmp_path / head
    given = {"init_checkpoint": classifier, "export_dir": folder, "format": "onnx,litert"}
    script("export_hub").run_well(**given, head=head, max_seq_length=16)
    expected = Predictor.load(str(classifier), task=task, max_seq_length=16)(texts)
    for engine in ("onnxruntime", "openvino", "litert"):
      found = Predictor.load(str(folder), engine, task=task, max_seq_length=16)(texts)
      for one, other in zip(found, expected, strict=True):
        values = (one, other) if head == "none" else (one["probabilities"], other["probabilities"])
        np.testing.assert_allclose(*values, atol=1e-4)


@of_families(2)
def test_folders_of_transformers_there_and_back(files, classifier, tmp_path):
  theirs, ours = tmp_path / "theirs", tmp_path / "ours"
  # transformers computes ELECTRA's head for sentences otherwise.
  head = "none" if family_of(files).name == "electra" else "sentences"
  conversions.run_well("to_transformers", init_checkpoint=classifier, output_dir=theirs, head=head)
  conversions.run_well("from_transformers", init_checkpoint=theirs, output_dir=ours)
  run_well("run_classifier", files, tmp_path, init_checkpoint=ours)
