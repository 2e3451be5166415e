"""Paths of files and models in every script: remote ones are read, or refused in a line.

The remote file system is TensorFlow's in memory, `ram://`; `nosuch://` is one it does not have.
Which flags are paths at all, and which refuse remote ones: tests/scripts/path_flags_test.py.
Alone: python -m pytest tests/system/remote_paths_test.py (a minute)
"""

import importlib
import json
import os

import numpy as np
import pytest

from bert import __main__ as bert_command
from bert.io import filesystem
from bert.scripts import flag_groups, path_flags
from tests.kit import healthy_run, teachers
from tests.kit.script_runs import Script

pytestmark = pytest.mark.ci

REMOTE = "ram://remote_paths"
_MODEL = {"bert_config_file": "{}/bert_config.json", "vocab_file": "{}/vocab.txt"}
_WEIGHTS = {"init_checkpoint": "{}/model"}
_RUN = {**_MODEL, **_WEIGHTS, "output_dir": "<>/out", "max_seq_length": 16}
_ONE_STEP = {"train_batch_size": 40, "num_train_epochs": 1}

# Script -> its words and flags: `{}` is where the files are, `<>` a local folder to write to.
RUNS = {
  "run_classifier": {
    **_RUN,
    **_ONE_STEP,
    **{"task_name": "csv", "data_dir": "{}/tables", "do_train": True, "do_eval": True},
  },
  "run_ner": {
    **_RUN,
    **_ONE_STEP,
    **{"train_file": "{}/conll/train.conll", "dev_file": "{}/conll/dev.conll"},
    **{"test_file": "{}/conll/dev.conll"},
    **{"do_train": True, "do_eval": True, "do_predict": True},
  },
  "run_swag": {
    **_RUN,
    **_ONE_STEP,
    **{"train_file": "{}/swag.csv", "dev_file": "{}/swag.csv", "test_file": "{}/swag.csv"},
    **{"do_train": True, "do_eval": True, "do_predict": True},
  },
  "run_similarity": {
    **_RUN,
    **_ONE_STEP,
    **{"train_file": "{}/swag.csv", "dev_file": "{}/swag.csv", "test_file": "{}/swag.csv"},
    **{"text_a_column": "sent1", "text_b_column": "sent2", "label_column": "label", "max_score": 3},
    **{"do_train": True, "do_eval": True, "do_predict": True},
  },
  "run_squad": {
    **_RUN,
    **_ONE_STEP,
    **{"train_file": "{}/squad/train.json", "predict_file": "{}/squad/train.json"},
    **{"do_train": True, "do_predict": True, "max_query_length": 8, "doc_stride": 4},
  },
  "run_pretraining": {
    **_RUN,
    **{"input_file": "{}/records/*.tfrecord", "eval_input_file": "{}/records/a.tfrecord"},
    **{"max_predictions_per_seq": 3, "do_train": True, "do_eval": True},
    **{"num_train_steps": 1, "num_warmup_steps": 1, "max_eval_steps": 1, "train_batch_size": 4},
  },
  "distill": {
    **_ONE_STEP,
    **{"teacher": "{}/teacher", "data_dir": "{}/tables", "unlabelled_file": "{}/corpus.txt"},
    **{"num_hidden_layers": 1, "do_train": True, "do_eval": True, "output_dir": "<>/out"},
  },
  "extract_features": {
    **_MODEL,
    **_WEIGHTS,
    **{"input_file": "{}/corpus.txt", "output_file": "{}/vectors.jsonl", "layers": "-1"},
    "max_seq_length": 16,
  },
  "predict": {
    **_MODEL,
    **_WEIGHTS,
    **{"task": "vectors", "input_file": "{}/corpus.txt", "output_file": "{}/predicted.jsonl"},
    "max_seq_length": 16,
  },
  "predict_masked": {
    **_MODEL,
    **_WEIGHTS,
    **{"input_file": "{}/masked.txt", "output_file": "{}/masked.jsonl", "max_seq_length": 16},
  },
  "augment_data": {
    **_MODEL,
    **_WEIGHTS,
    **{"task_name": "CoLA", "data_dir": "{}/CoLA", "glove_file": "{}/glove.txt"},
    **{"candidates": 2, "variants": 2, "output_file": "<>/train.tsv"},
  },
  "attention_maps": {**_MODEL, **_WEIGHTS, "text": "ada bob.", "output_file": "<>/a.png"},
  "export_hub": {**_MODEL, **_WEIGHTS, "export_dir": "<>/export", "max_seq_length": 16},
  "convert_checkpoint": {"command": "strip", **_MODEL, **_WEIGHTS, "output_dir": "<>/small"},
  "doctor": {
    **_MODEL,
    **_WEIGHTS,
    **{"data_dir": "{}/tables", "task_name": "csv", "max_seq_length": 16},
  },
  "create_pretraining_data": {
    **{"input_file": "{}/corpus.txt,{}/c*.txt", "vocab_file": "{}/vocab.txt"},
    "output_file": "<>/a.tfrecord",
  },
  "create_vocab": {
    **{"input_file": "{}/corpus.txt", "extend": "{}/vocab.txt", "output_file": "<>/vocab.txt"},
    **{"extend_by": "append", "num_new": 2},
  },
}


def _add_heads(tensors) -> None:
  """Those of pre-training, so that masked words can be predicted."""
  width, words = healthy_run.CONFIG["hidden_size"], healthy_run.CONFIG["vocab_size"]
  rng = np.random.default_rng(2)
  shapes = {
    "cls/predictions/output_bias": [words],
    "cls/predictions/transform/dense/kernel": [width, width],
    "cls/predictions/transform/dense/bias": [width],
    "cls/predictions/transform/LayerNorm/beta": [width],
    "cls/predictions/transform/LayerNorm/gamma": [width],
    "cls/seq_relationship/output_weights": [2, width],
    "cls/seq_relationship/output_bias": [2],
  }
  tensors |= {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.fixture(scope="module")
def local(tmp_path_factory):
  """The files of a healthy run, with more for some scripts."""
  folder = healthy_run.write(tmp_path_factory.mktemp("files"))
  healthy_run.save_checkpoint(folder, _add_heads)
  task = {"task_name": "csv", "labels": ["0", "1"], "problem_type": "classification"}
  heads = {"output_weights": (2, 16), "output_bias": (2,)}
  teachers.write(folder / "teacher", healthy_run.VOCAB, task, heads, {"max_seq_length": 16})
  (folder / "masked.txt").write_text("ada [MASK] cat.\n")
  (folder / "CoLA").mkdir()
  healthy_run.write_lines(folder / "CoLA/train.tsv", ["a\t1\t\tada bob", "b\t0\t*\tcat dog"])
  healthy_run.write_lines(folder / "glove.txt", ["ada 0.5 1", "bob 1 0.5", "cat 0 1"])
  header = "sent1,sent2,ending0,ending1,ending2,ending3,label"
  rows = [f"{text},ada,bob,cat,dog,elk,{i % 4}" for i, text in enumerate(healthy_run.TEXTS[:8])]
  healthy_run.write_lines(folder / "swag.csv", [header, *rows])
  return folder


@pytest.fixture(scope="module")
def remote(local):
  """The same on a remote file system."""
  for path in local.rglob("*"):
    if path.is_file():
      with filesystem.open_to_write(f"{REMOTE}/{path.relative_to(local)}") as writer:
        writer.write(path.read_bytes())
  return REMOTE


def _flags(name, files, folder, **changed):
  filled = {
    flag: value.replace("{}", str(files)).replace("<>", str(folder))
    if isinstance(value, str)
    else value
    for flag, value in RUNS[name].items()
  }
  return {**filled, **changed}


def _module(name):
  return importlib.import_module(bert_command.words()[name].module)


def _script(name) -> Script:
  return Script(_module(name))


@pytest.mark.parametrize("name", RUNS)
def test_a_script_reads_its_files_from_a_remote_file_system(name, remote, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  done = _script(name).run(**_flags(name, remote, tmp_path))
  assert done.code in (None, 0), done.err + done.out
  assert not list(tmp_path.glob("ram:*"))
  if "{}" in (output := RUNS[name].get("output_file", "")):
    first = filesystem.read_bytes(output.replace("{}", remote)).splitlines()[0]
    assert json.loads(first)


def _remote_flags():
  """(script, flag) of each path that may be remote and that the run above reads or writes."""
  for name, values in RUNS.items():
    with flag_groups.defined_flags(_module(name).define_flags):
      for flag in filter(path_flags.is_path, flag_groups.script_flags()):
        if not flag.parser.local and flag.name in values:
          yield name, flag.name


@pytest.mark.parametrize(("name", "flag"), list(_remote_flags()))
def test_a_file_system_that_tensorflow_does_not_have(name, flag, local, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  done = _script(name).run(**_flags(name, local, tmp_path, **{flag: "nosuch://bucket/x"}))
  assert done.code == 1
  said = [line for line in (done.out + done.err).splitlines() if "nosuch://bucket/x" in line]
  assert len(said) == 1, done.err
  is_output_of_records = (name, flag) == ("create_pretraining_data", "output_file")
  why = "is remote" if is_output_of_records else "TensorFlow has no file system for nosuch:// here"
  assert why in said[0]
  assert "Traceback" not in done.err
  assert not [path for path in os.listdir(tmp_path) if path.startswith("nosuch")]


def test_every_script_is_in_the_table():
  others = {"run_glue", "plots", "download", "tf1"}  # all data of these are local
  assert set(RUNS) | others >= set(bert_command.words())


@pytest.mark.parametrize("name", [name for name in RUNS if "init_checkpoint" in RUNS[name]])
def test_a_wrong_name_of_a_model_is_answered_with_the_nearest(name, local, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  flags = _flags(name, local, tmp_path, init_checkpoint="uncased_L2_H-128_A-2")
  for flag in _MODEL:
    del flags[flag]  # as with the name of a released model, which brings them
  done = _script(name).run(**flags)
  assert done.code == 1
  said = [line for line in (done.out + done.err).splitlines() if "Did you mean" in line]
  assert len(said) == 1, done.err
  assert "neither a file or folder here nor the name of a released model" in said[0]
  assert "mean uncased_L-2_H-128_A-2?" in said[0]
  assert not list(tmp_path.rglob("*.index"))
