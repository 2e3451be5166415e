"""Every file operation of whole scripts fails once, or is the last: nothing is lost or half there.

Slow: python -m pytest -m slow -rP tests/system/fault_injection_of_scripts_test.py
"""

import functools

import pytest
import tensorflow as tf

from bert import export_hub, extract_features, predict, run_classifier
from bert.io import record_files
from bert.predicting import vector_files
from tests.kit import tiny_bert, tiny_sentences
from tests.kit.fault_trials import (
  Program,
  check,
  checkpoints_are_whole,
  run_script,
  trained_weights,
  visible,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def flags(tmp_path_factory) -> dict:
  """The flags of a tiny classifier."""
  folder = tmp_path_factory.mktemp("model")
  tiny_sentences.write_mrpc(folder / "MRPC", {"train": 20, "dev": 4, "test": 4})
  return {
    "task_name": "MRPC",
    "data_dir": folder / "MRPC",
    **tiny_bert.write(folder, tiny_sentences.VOCAB),
    "max_seq_length": 16,
    "train_batch_size": 8,
    "num_train_epochs": 2.0,
    "save_checkpoints_steps": 2,
    "learning_rate": 0.01,
  }


def classify(folder, flags, **more) -> None:
  run_script(run_classifier, **{**flags, "output_dir": folder, **more})


def check_run(folder) -> None:
  checkpoints_are_whole(folder)
  for path in folder.glob("*.tf_record"):
    list(record_files.records_of(path))
  for path in folder.glob("*.t[sx][vt]"):
    assert path.read_text().endswith("\n")


def run_facts(folder) -> dict:
  """The weights, and the files of results."""
  results = {n: x for n, x in visible(folder).items() if n.endswith((".tsv", ".txt", ".json"))}
  return {**trained_weights(folder), **results}


def test_run_classifier_trains(flags, tmp_path):
  train = functools.partial(classify, flags=flags, do_train=True)
  earlier = functools.partial(train, num_train_epochs=1.0)
  check(Program(train, earlier, check_run, run_facts), tmp_path)


def test_run_classifier_evaluates_and_predicts(flags, tmp_path):
  train = functools.partial(classify, flags=flags, do_train=True)
  answer = functools.partial(classify, flags=flags, do_eval=True, do_predict=True)
  check(Program(answer, train, check_run, run_facts), tmp_path)


def check_export(folder) -> None:
  for path in folder.rglob("saved_model.pb"):
    if not any(part.startswith(".") for part in path.relative_to(folder).parts):
      tf.saved_model.load(str(path.parent))


def names_only(folder) -> dict:
  return dict.fromkeys(visible(folder))


def test_export_hub(flags, tmp_path):
  classify(tmp_path / "trained", flags, do_train=True)

  def export(folder):
    run_script(
      export_hub,
      init_checkpoint=tmp_path / "trained",
      export_dir=folder,
      max_seq_length=16,
      **{name: flags[name] for name in ("vocab_file", "bert_config_file")},
    )

  check(Program(export, export, check_export, names_only), tmp_path, step=3)


@pytest.mark.parametrize("ending", vector_files.WRITERS)
def test_extract_features_and_predict(flags, tmp_path, ending):
  classify(tmp_path / "trained", flags, do_train=True)
  (tmp_path / "texts.txt").write_text("a good film\nthe film was bad\n")
  model = {name: flags[name] for name in ("vocab_file", "bert_config_file", "max_seq_length")}
  common = {"input_file": tmp_path / "texts.txt", "init_checkpoint": tmp_path / "trained", **model}

  def answer(folder):
    out = folder / f"vectors.{ending}"
    run_script(extract_features, layers="-1", output_format=ending, output_file=out, **common)
    run_script(predict, task="vectors", output_file=folder / "vectors.out", **common)

  check(Program(answer, answer), tmp_path)
