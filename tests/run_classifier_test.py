"""Tests of run_classifier.py: whole runs on tiny data and a tiny model, as a user starts them.

Alone: python -m pytest tests/run_classifier_test.py (about a minute, most of it compiling graphs)

Runs happen in this process, through `command_line.run`, so they start fast; a few start Python.
"""

import collections
import csv
import functools
import gzip
import http.server
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import threading
import zipfile
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert import modeling, run_classifier, tokenization
from bert.checkpoints import checkpoint
from bert.io import download_cache
from bert.io import http as fetch
from bert.model.variables import VariableStore, use_store
from bert.run_classifier import DataProcessor, InputExample
from bert.scripts import command_line, flag_groups
from bert.training import hardware
from bert.training.estimator import ModeKeys
from tests.kit.paths import ROOT
from tests.kit.script_runs import Done, Script, results_in, tensors

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
WORDS = ["good", "bad", "film", "the", "was"]
VOCAB = [
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, '"', ",", "."),
  *("##" + letter for letter in LETTERS),
  *WORDS,
]
CONFIG = {
  "vocab_size": len(VOCAB),
  "hidden_size": 16,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "intermediate_size": 16,
  "max_position_embeddings": 32,
  "initializer_range": 0.2,  # As small as this model is, 0.02 would take it long to learn.
  "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1,
}


script = Script(run_classifier)
run, run_well, error_of = script.run, script.run_well, script.error_of


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> dict:
  """The flags of a tiny model, the same for every run."""
  folder = tmp_path_factory.mktemp("model")
  write(folder, "vocab.txt", *VOCAB)
  write(folder, "bert_config.json", json.dumps(CONFIG))
  return {
    "vocab_file": folder / "vocab.txt",
    "bert_config_file": folder / "bert_config.json",
    "max_seq_length": 16,
    "train_batch_size": 8,
    "learning_rate": 0.01,
  }


def write(folder, name, *lines) -> None:
  path = folder / name
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")


def write_rows(folder, name, *rows) -> None:
  write(folder, name, *("\t".join(map(str, row)) for row in rows))


def texts(count: int):
  """(good?, text, text of another length) of each example; the first text decides."""
  return [
    (i % 2, f"the film was {'good' if i % 2 else 'bad'}", "the film " * (i % 3) + LETTERS[i])
    for i in range(count)
  ]


SIZES = {"train": 20, "dev": 10, "test": 6}


def write_mrpc(folder, sizes=None) -> None:
  header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
  for split, size in (sizes or SIZES).items():
    rows = [(label, i, i, a, b) for i, (label, a, b) in enumerate(texts(size))]
    write_rows(folder, f"{split}.tsv", header, *rows)


class Trained(NamedTuple):
  flags: dict  # of the run, without do_*
  out: pathlib.Path
  done: Done


@pytest.fixture(scope="module")
def mrpc(model, tmp_path_factory) -> Trained:
  """One run of 20 steps that trains, evaluates and predicts. Tests only read its folder."""
  data, out = tmp_path_factory.mktemp("MRPC"), tmp_path_factory.mktemp("out") / "mrpc"
  write_mrpc(data)
  values = {**model, "task_name": "MRPC", "data_dir": data, "output_dir": out}
  values["num_train_epochs"] = 8.0
  return Trained(values, out, run_well(**values, do_train=True, do_eval=True, do_predict=True))


def copy_of(trained: Trained, folder) -> dict:
  """The flags of a run that goes on in a copy of `trained`'s folder."""
  shutil.copytree(trained.out, folder / "out")
  return {**trained.flags, "output_dir": folder / "out"}


def table(path) -> list[list[str]]:
  return [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]


def numbers(path) -> np.ndarray:
  return np.array(table(path), np.float32)


def records(path) -> list[dict]:
  """Name -> (kind, values) of each record."""
  found = []
  for record in tf.data.TFRecordDataset(str(path)):
    feature = tf.train.Example.FromString(record.numpy()).features.feature
    kinds = {name: feature[name].WhichOneof("kind") for name in sorted(feature)}
    found.append({n: (k, list(getattr(feature[n], k).value)) for n, k in kinds.items()})
  return found


# ---------------------------------------------------------------------------------------------
# One run, and every file it leaves.


def test_it_learns(mrpc):
  results = results_in(mrpc.out / "eval_results.txt")
  assert results["eval_accuracy"] == 1.0
  assert results["eval_f1"] == 1.0
  assert results["eval_loss"] < 0.3
  assert results["global_step"] == 20
  labels = [row[1] for row in table(mrpc.out / "predictions.tsv")[1:]]
  assert labels == [str(label) for label, _, _ in texts(SIZES["test"])]


def test_files_of_a_run(mrpc):
  names = {path.name for path in mrpc.out.iterdir() if "tfevents" not in path.name}
  checkpoints = {
    f"model.ckpt-{step}.{suffix}"
    for step in (0, 20)
    for suffix in ("index", "data-00000-of-00001", "state.json")
  }
  record_files = {"train.tf_record", "eval.tf_record", "predict.tf_record"}
  manifests = {f".{name}.manifest.json" for name in record_files}
  results = {"eval_results.txt", "test_results.tsv", "predictions.tsv", "label_map.json"}
  assert names == {*checkpoints, *record_files, *manifests, *results, "checkpoint", "eval"}


def test_log_lines_of_the_original(mrpc):
  for line in (
    "***** Running training *****",
    "  Num examples = 20",
    "  Batch size = 8",
    "  Num steps = 20",
    "***** Running evaluation *****",
    "  Num examples = 10 (10 actual, 0 padding)",
    "***** Eval results *****",
    "  eval_accuracy = 1.0",
    "  global_step = 20",
    "***** Running prediction*****",
  ):
    assert f"INFO:tensorflow:{line}\n" in mrpc.done.err
  assert "WARNING:tensorflow:NO CHECKPOINT in" in mrpc.done.err, "random weights are said loudly"
  assert "true \\ predicted    0    1\n" in mrpc.done.err
  assert mrpc.done.out == ""


def test_eval_results_begin_with_the_originals_keys(mrpc):
  lines = (mrpc.out / "eval_results.txt").read_text().splitlines()
  keys = [line.split(" = ")[0] for line in lines]
  assert keys == [
    *("eval_accuracy", "eval_loss", "global_step", "loss"),
    *("eval_f1", "eval_precision", "eval_recall"),
  ]
  for line in lines:
    value = line.split(" = ")[1]
    assert value in (str(np.float32(value)), "20"), "not as float32 prints"


def test_test_results_are_the_originals(mrpc):
  """One line for each example, its probabilities as float32 prints them, and nothing else."""
  text = (mrpc.out / "test_results.tsv").read_bytes().decode()
  assert text.endswith("\n")
  lines = text[:-1].split("\n")
  assert len(lines) == SIZES["test"]
  for line in lines:
    fields = line.split("\t")
    assert len(fields) == 2
    assert fields == [str(np.float32(field)) for field in fields]
    assert sum(map(float, fields)) == pytest.approx(1.0, abs=1e-6)


def test_predictions_hold_id_label_and_probabilities(mrpc):
  header, *rows = table(mrpc.out / "predictions.tsv")
  assert header == ["id", "label", "probability_0", "probability_1"]
  assert [row[0] for row in rows] == [f"test-{i}" for i in range(1, SIZES["test"] + 1)]
  assert [row[2:] for row in rows] == table(mrpc.out / "test_results.tsv")
  assert [row[1] for row in rows] == [str(np.argmax(np.float32(row[2:]))) for row in rows]
  assert json.loads((mrpc.out / "label_map.json").read_text()) == {"0": 0, "1": 1}


def test_records_have_the_originals_features(mrpc, model):
  tokenizer = tokenization.FullTokenizer(str(model["vocab_file"]))
  for name, split in (("train", "train"), ("eval", "dev"), ("predict", "test")):
    found = records(mrpc.out / f"{name}.tf_record")
    assert len(found) == SIZES[split]
    for record, (label, a, b) in zip(found, texts(SIZES[split]), strict=True):
      tokens = ["[CLS]", *tokenizer.tokenize(a), "[SEP]", *tokenizer.tokenize(b), "[SEP]"]
      padding = [0] * (16 - len(tokens))
      first = 2 + len(tokenizer.tokenize(a))
      assert record == {
        "input_ids": ("int64_list", tokenizer.convert_tokens_to_ids(tokens) + padding),
        "input_mask": ("int64_list", [1] * len(tokens) + padding),
        "segment_ids": ("int64_list", [0] * first + [1] * (len(tokens) - first) + padding),
        "label_ids": ("int64_list", [label if split != "test" else 0]),
        "is_real_example": ("int64_list", [1]),
      }


@pytest.mark.parametrize("is_training", [False, True])
def test_features_in_memory_give_the_batches_of_the_file(mrpc, model, is_training):
  tokenizer = tokenization.FullTokenizer(model["vocab_file"])
  examples = run_classifier.MrpcProcessor().get_train_examples(mrpc.flags["data_dir"])
  features = run_classifier.convert_examples_to_features(examples, ["0", "1"], 16, tokenizer)
  in_memory = run_classifier.input_fn_builder(features, 16, is_training, drop_remainder=True)
  from_file = run_classifier.file_based_input_fn_builder(
    os.path.join(mrpc.flags["output_dir"], "train.tf_record"),
    16,
    is_training,
    drop_remainder=True,
    pad_to_max_length=True,
  )
  params = {"batch_size": 3, "seed": 5, "skip_examples": 4}
  for one, other in zip(in_memory(params).take(5), from_file(params).take(5), strict=True):
    assert one.keys() == other.keys()
    for name in one:
      assert one[name].dtype == other[name].dtype
      np.testing.assert_array_equal(one[name], other[name])


def test_a_checkpoint_without_the_head_is_not_evaluated_as_if_it_were_trained(mrpc, tmp_path):
  flags = copy_of(mrpc, tmp_path)
  prefix = checkpoint.latest(flags["output_dir"])
  values = {name: v for name, v in tensors(prefix).items() if name != "output_weights"}
  for path in pathlib.Path(flags["output_dir"]).glob("model.ckpt*"):
    path.unlink()
  checkpoint.save(flags["output_dir"], 9, values, {})
  assert "output_weights" in error_of(**flags, do_eval=True)


def test_checkpoint_has_the_originals_names(mrpc):
  names = {name for name, _ in tf.train.list_variables(str(mrpc.out / "model.ckpt-20"))}
  model_names = {name for name in names if not checkpoint.is_training_state(name)}
  assert "bert/encoder/layer_0/attention/self/query/kernel" in model_names
  assert {name for name in model_names if not name.startswith("bert/")} == {
    "output_weights",
    "output_bias",
  }
  slots = {f"{name}/{slot}" for name in model_names for slot in ("adam_m", "adam_v")}
  assert names == model_names | slots | {"global_step"}


# ---------------------------------------------------------------------------------------------
# Every kind of task.


def test_cola_has_no_header_but_in_its_test_file(model, tmp_path):
  for split in ("train", "dev"):
    rows = [("gj04", label, "*" * (1 - label), a) for label, a, _ in texts(SIZES[split])]
    write_rows(tmp_path / "CoLA", f"{split}.tsv", *rows)
  rows = [(i, a) for i, (_, a, _) in enumerate(texts(6))]
  write_rows(tmp_path / "CoLA", "test.tsv", ("index", "sentence"), *rows)
  out = tmp_path / "out"
  run_well(
    **model,
    task_name="CoLA",
    data_dir=tmp_path / "CoLA",
    output_dir=out,
    do_train=True,
    do_eval=True,
    do_predict=True,
  )
  sizes = [len(records(out / f"{name}.tf_record")) for name in ("train", "eval", "predict")]
  assert sizes == [20, 10, 6]
  assert "eval_matthews_corrcoef" in results_in(out / "eval_results.txt")
  assert set(records(out / "train.tf_record")[0]["segment_ids"][1]) == {0}
  assert numbers(out / "test_results.tsv").shape == (6, 2)


def test_stsb_is_a_regression(model, tmp_path):
  header = ("index", "sentence1", "sentence2", "score")
  for split, size in SIZES.items():
    width = 3 if split == "test" else 4
    rows = [(i, a, b, 5.0 * label)[:width] for i, (label, a, b) in enumerate(texts(size))]
    write_rows(tmp_path / "STS-B", f"{split}.tsv", header[:width], *rows)
  out = tmp_path / "out"
  done = run_well(
    **model,
    task_name="STS-B",
    data_dir=tmp_path / "STS-B",
    output_dir=out,
    num_train_epochs=16.0,
    do_train=True,
    do_eval=True,
    do_predict=True,
  )
  results = results_in(out / "eval_results.txt")
  assert list(results) == [
    *("eval_loss", "global_step", "loss"),
    *("eval_pearson", "eval_spearman"),
  ]
  assert results["eval_pearson"] > 0.9
  assert "confusion matrix" not in done.err
  assert records(out / "train.tf_record")[1]["label_ids"] == ("float_list", [5.0])
  header, *rows = table(out / "predictions.tsv")
  assert header == ["id", "score"]
  assert [row[1:] for row in rows] == table(out / "test_results.tsv")
  assert len(rows) == 6


MNLI_LABELS = ("contradiction", "entailment", "neutral")


def write_mnli(folder) -> None:
  header = (*"01234567", "sentence1", "sentence2", "gold_label")
  for split, size in (
    *(("train", 12), ("dev_matched", 6), ("dev_mismatched", 9)),
    *(("test_matched", 5), ("test_mismatched", 7)),
  ):
    width = 10 if split.startswith("test") else 11
    rows = [
      (f"{split}/{i}", *"1234567", a, b, MNLI_LABELS[i % 3])[:width]
      for i, (_, a, b) in enumerate(texts(size))
    ]
    write_rows(folder, f"{split}.tsv", header[:width], *rows)


@pytest.fixture(scope="module")
def mnli(model, tmp_path_factory):
  """One run on both pairs of sets, and how often each graph was built in it."""
  data, out = tmp_path_factory.mktemp("MNLI"), tmp_path_factory.mktemp("out") / "mnli"
  write_mnli(data)
  built = collections.Counter()
  create_model = run_classifier.create_model

  def counting(config, is_training, *args, **kwargs):
    built["training" if is_training else "inference"] += 1
    return create_model(config, is_training, *args, **kwargs)

  values = {**model, "task_name": "MNLI", "data_dir": data, "output_dir": out}
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(run_classifier, "create_model", counting)
    done = run_well(**values, do_train=True, do_eval=True, do_predict=True, plots=True)
  return Trained(values, out, done), built


def test_mnli_has_two_results_of_each_kind(mnli):
  out = mnli[0].out
  assert len(records(out / "eval.tf_record")) == 6
  assert len(records(out / "eval_mismatched.tf_record")) == 9
  matched = results_in(out / "eval_results.txt")
  mismatched = results_in(out / "eval_results_mismatched.txt")
  assert list(matched) == list(mismatched)
  assert matched["eval_loss"] != mismatched["eval_loss"]
  for suffix, size in (("", 5), ("_mismatched", 7)):
    assert numbers(out / f"test_results{suffix}.tsv").shape == (size, 3)
    header, *rows = table(out / f"predictions{suffix}.tsv")
    assert header == ["id", "label", *(f"probability_{label}" for label in MNLI_LABELS)]
    assert len(rows) == size
    assert (out / f"plots/eval_results{suffix}_confusion_matrix.png").is_file()
  assert (out / "plots/training.png").is_file()


def test_the_second_evaluation_and_prediction_trace_nothing_new(mnli):
  """Though sizes and lengths of the batches differ between the sets."""
  assert mnli[1] == {"training": 1, "inference": 2}


def test_ax_is_predicted_by_a_model_of_mnli(mnli, tmp_path):
  write_rows(
    tmp_path / "AX",
    "AX.tsv",
    ("index", "sentence1", "sentence2"),
    *((i, a, b) for i, (_, a, b) in enumerate(texts(4))),
  )
  values = {**copy_of(mnli[0], tmp_path), "task_name": "AX", "data_dir": tmp_path / "AX"}
  run_well(**values, do_predict=True)
  assert numbers(tmp_path / "out" / "test_results.tsv").shape == (4, 3)


def test_xnli_in_another_language(model, tmp_path):
  data, out = tmp_path / "XNLI", tmp_path / "out"
  rows = [
    (a, b, ("contradictory", *MNLI_LABELS[1:])[i % 3]) for i, (_, a, b) in enumerate(texts(9))
  ]
  write_rows(data, "multinli/multinli.train.de.tsv", ("premise", "hypo", "label"), *rows)
  header = ("language", "gold_label", "2", "3", "4", "5", "sentence1", "sentence2")
  for split, size in (("dev", 4), ("test", 5)):
    rows = [
      (language, MNLI_LABELS[i % 3], *"2345", a, b)
      for i, (_, a, b) in enumerate(texts(size))
      for language in ("en", "de", "zh")
    ]
    write_rows(data, f"xnli.{split}.tsv", header, *rows)
  values = {**model, "task_name": "XNLI", "data_dir": data, "output_dir": out}
  run_well(**values, xnli_language="de", do_train=True, do_eval=True, do_predict=True)
  sizes = [len(records(out / f"{name}.tf_record")) for name in ("train", "eval", "predict")]
  assert sizes == [9, 4, 5]
  assert numbers(out / "test_results.tsv").shape == (5, 3)
  message = error_of(**values, xnli_language="fr", do_eval=True)
  assert "no row is in language 'fr'; there are de, en, zh." in message


# ---------------------------------------------------------------------------------------------
# Your own data.


def own_rows(size, label_of=lambda good: ("no", "yes")[good]):
  """Texts with what each format has to quote or must not take for a quote."""
  return [(f'{a}, "{b}', label_of(good), f"r{i}") for i, (good, a, b) in enumerate(texts(size))]


def write_own(folder, ending, rows_of=own_rows, columns=("text", "class", "row")) -> None:
  for split in ("train", "dev", "test"):
    rows = rows_of(SIZES[split])
    if ending == "jsonl":
      lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
      write(folder, f"{split}.jsonl", *lines)
    elif ending == "csv":
      folder.mkdir(parents=True, exist_ok=True)
      with open(folder / f"{split}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    else:
      write_rows(folder, f"{split}.tsv", columns, *rows)


OWN_COLUMNS = {"text_a_column": "text", "label_column": "class", "id_column": "row"}


@pytest.fixture(scope="module")
def own(model, tmp_path_factory) -> dict[str, Trained]:
  """The same data, trained on in three formats."""
  trained = {}
  for ending in ("tsv", "csv", "jsonl"):
    data, out = tmp_path_factory.mktemp(ending), tmp_path_factory.mktemp("out") / ending
    write_own(data, ending)
    values = {**model, **OWN_COLUMNS, "task_name": "csv", "data_dir": data, "output_dir": out}
    trained[ending] = Trained(values, out, run_well(**values, do_train=True, do_predict=True))
  return trained


def test_three_formats_of_the_same_data_give_the_same_run(own):
  for ending, trained in own.items():
    for name in ("train.tf_record", "predict.tf_record", "label_map.json", "predictions.tsv"):
      expected = (own["tsv"].out / name).read_bytes()
      assert (trained.out / name).read_bytes() == expected, (ending, name)
  assert json.loads((own["tsv"].out / "label_map.json").read_text()) == {"no": 0, "yes": 1}
  header, *rows = table(own["tsv"].out / "predictions.tsv")
  assert header == ["id", "label", "probability_no", "probability_yes"]
  assert [row[0] for row in rows] == [f"r{i}" for i in range(6)]


def test_labels_of_the_trained_model_are_used_without_its_training_file(own, model, tmp_path):
  """Later, data with other labels or none are predicted by names, from either folder."""
  lines = [json.dumps({"text": a, "row": f"a\tb\n{i}"}) for i, (_, a, _) in enumerate(texts(3))]
  write(tmp_path / "later", "test.jsonl", *lines)
  values = {**copy_of(own["jsonl"], tmp_path), "data_dir": tmp_path / "later"}
  run_well(**values, do_predict=True)
  header, *rows = table(tmp_path / "out" / "predictions.tsv")
  assert header == ["id", "label", "probability_no", "probability_yes"]
  assert [row[0] for row in rows] == ["a b 0", "a b 1", "a b 2"], "one line for each example"

  fresh = {**values, "init_checkpoint": tmp_path / "out", "output_dir": tmp_path / "fresh"}
  run_well(**fresh, do_predict=True)
  for name in ("predictions.tsv", "label_map.json"):
    assert (tmp_path / "fresh" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_several_labels_for_a_text(model, tmp_path):
  def rows_of(size):
    return own_rows(size, lambda good: "short" if good else "short; long")

  write_own(tmp_path / "data", "csv", rows_of)
  out = tmp_path / "out"
  values = {**model, **OWN_COLUMNS, "task_name": "csv", "data_dir": tmp_path / "data"}
  values.update(problem_type="multi_label", label_separator=";", output_dir=out)
  run_well(**values, num_train_epochs=8.0, do_train=True, do_eval=True, do_predict=True)
  assert json.loads((out / "label_map.json").read_text()) == {"long": 0, "short": 1}
  assert records(out / "train.tf_record")[0]["label_ids"] == ("int64_list", [1, 1])
  assert records(out / "train.tf_record")[1]["label_ids"] == ("int64_list", [0, 1])
  results = results_in(out / "eval_results.txt")
  assert list(results) == [
    *("eval_accuracy", "eval_loss", "global_step", "loss"),
    *("eval_f1_macro", "eval_f1_micro"),
  ]
  assert results["eval_accuracy"] == 1.0
  rows = table(out / "predictions.tsv")[1:]
  assert [row[1] for row in rows] == ["long,short", "short"] * 3


def test_numbers_as_labels(model, tmp_path):
  write_own(tmp_path / "data", "jsonl", lambda size: own_rows(size, lambda good: 3.5 * good))
  values = {**model, **OWN_COLUMNS, "task_name": "csv", "data_dir": tmp_path / "data"}
  values.update(problem_type="regression", output_dir=tmp_path / "out")
  run_well(**values, do_train=True, do_eval=True)
  keys = list(results_in(tmp_path / "out" / "eval_results.txt"))
  assert keys[3:] == ["eval_mse", "eval_pearson", "eval_spearman"]
  assert records(tmp_path / "out" / "train.tf_record")[1]["label_ids"] == ("float_list", [3.5])


class MyProcessor(DataProcessor):
  """Written as the original's README told people to; nothing here is of today."""

  def get_train_examples(self, data_dir):
    return self._create_examples(self._read_tsv(os.path.join(data_dir, "train.tsv")), "train")

  def get_dev_examples(self, data_dir):
    return self._create_examples(self._read_tsv(os.path.join(data_dir, "dev.tsv")), "dev")

  def get_test_examples(self, data_dir):
    return self._create_examples(self._read_tsv(os.path.join(data_dir, "test.tsv")), "test")

  def get_labels(self):
    return ["bad", "fair", "good"]

  def _create_examples(self, lines, set_type):
    examples = []
    for i, line in enumerate(lines):
      if i == 0:
        continue
      guid = "%s-%s" % (set_type, i)  # noqa: UP031
      text_a = tokenization.convert_to_unicode(line[1])
      if set_type == "test":
        label = "bad"
      else:
        label = tokenization.convert_to_unicode(line[0])
      examples.append(InputExample(guid=guid, text_a=text_a, text_b=None, label=label))
    return examples


def test_a_processor_of_2018_works_unchanged(model, tmp_path, monkeypatch):
  from bert.run_classifier import PROCESSORS

  monkeypatch.setitem(PROCESSORS, "mine", MyProcessor)
  for split, size in SIZES.items():
    rows = [(("bad", "good")[label], a) for label, a, _ in texts(size)]
    write_rows(tmp_path / "data", f"{split}.tsv", ("label", "text"), *rows)
  values = {**model, "task_name": "Mine", "data_dir": tmp_path / "data"}
  out = tmp_path / "out"
  run_well(**values, output_dir=out, do_train=True, do_eval=True, do_predict=True)
  assert list(results_in(out / "eval_results.txt"))[:4] == [
    *("eval_accuracy", "eval_loss", "global_step", "loss")
  ]
  header, *rows = table(out / "predictions.tsv")
  assert header[2:] == ["probability_bad", "probability_fair", "probability_good"]
  assert rows[0][0] == "test-1"

  write_rows(tmp_path / "data", "dev.tsv", ("label", "text"), ("excellent", "the film"))
  message = error_of(**values, output_dir=tmp_path / "other", do_eval=True)
  assert "example dev-1: the label 'excellent' is unknown; known labels: 'bad', 'fair'" in message


# ---------------------------------------------------------------------------------------------
# Going on: a second call, a stopped run, another run in the same folder.


def test_prediction_in_a_second_call_and_from_another_folder(mrpc, tmp_path):
  values = copy_of(mrpc, tmp_path)
  (tmp_path / "out" / "test_results.tsv").unlink()
  run_well(**values, do_predict=True)
  expected = (mrpc.out / "test_results.tsv").read_bytes()
  assert (tmp_path / "out" / "test_results.tsv").read_bytes() == expected

  for i, init_checkpoint in enumerate((mrpc.out, mrpc.out / "model.ckpt-20")):
    fresh = {**values, "output_dir": tmp_path / f"fresh{i}", "init_checkpoint": init_checkpoint}
    done = run_well(**fresh, do_predict=True)
    assert (tmp_path / f"fresh{i}" / "test_results.tsv").read_bytes() == expected
    assert "RANDOM" not in done.err


def test_five_and_five_steps_are_ten_bit_for_bit(mrpc, tmp_path, monkeypatch):
  """With dropout and shuffling on, and a second process that knows nothing of the first."""
  values = {**mrpc.flags, "num_train_epochs": 4.0, "save_checkpoints_steps": 5, "do_train": True}
  run_well(**{**values, "output_dir": tmp_path / "straight"})

  save = checkpoint.save

  def save_and_stop(directory, step, *args, **kwargs):
    save(directory, step, *args, **kwargs)
    if step == 5:
      raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(checkpoint, "save", save_and_stop)
    assert run(**{**values, "output_dir": tmp_path / "parts"}).code == 130
  assert not (tmp_path / "parts" / "model.ckpt-10.index").exists()
  done = run_well(**{**values, "output_dir": tmp_path / "parts"})
  assert "Resumed from" in done.err

  straight = tensors(str(tmp_path / "straight" / "model.ckpt-10"))
  parts = tensors(str(tmp_path / "parts" / "model.ckpt-10"))
  assert straight.keys() == parts.keys()
  assert "output_weights/adam_v" in straight
  for name, value in straight.items():
    np.testing.assert_array_equal(value, parts[name], err_msg=name)


def test_a_finished_run_is_skipped_and_more_epochs_only_inform(mrpc, tmp_path):
  values = copy_of(mrpc, tmp_path)
  before = (tmp_path / "out" / "model.ckpt-20.index").read_bytes()
  done = run_well(**values, do_train=True)
  assert "Skipping training since max_steps has already saved." in done.err
  assert (tmp_path / "out" / "model.ckpt-20.index").read_bytes() == before

  changes = {"num_train_epochs": 9.0, "learning_rate": 0.001, "max_seq_length": 24}
  done = run_well(**{**values, **changes}, do_train=True)
  assert "num_train_epochs was 8.0, now 9.0" in done.err
  assert "learning_rate was 0.01, now 0.001" in done.err
  assert "max_seq_length was 16, now 24" in done.err
  assert int(tf.train.load_variable(str(tmp_path / "out"), "global_step")) == 22


def other_vocabulary(folder):
  write(folder, "vocab.txt", *VOCAB[:-2], VOCAB[-1], VOCAB[-2])
  return {"vocab_file": folder / "vocab.txt"}


def other_config(folder):
  write(folder, "bert_config.json", json.dumps({**CONFIG, "hidden_size": 32}))
  return {"bert_config_file": folder / "bert_config.json"}


def other_task(folder):
  header = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")
  row = ("0", "0", "0", "the film", "the film", "1")
  write_rows(folder, "train.tsv", header, *[row] * 10)
  write_rows(folder, "dev.tsv", header, row)
  return {"task_name": "QQP", "data_dir": folder}


def other_labels(folder):
  write_rows(folder, "train.tsv", ("text_a", "label"), *[("the film", c) for c in "abc"] * 3)
  write_rows(folder, "dev.tsv", ("text_a", "label"), ("the film", "a"))
  return {"task_name": "csv", "data_dir": folder, "labels": "a,b,c"}


@pytest.mark.parametrize(
  ("change", "named", "modes"),
  [
    (other_vocabulary, ["vocabulary"], ["do_train", "do_eval"]),
    (other_config, ["hidden_size was 16, now 32"], ["do_train", "do_eval"]),
    (other_task, ["task_name was 'mrpc', now 'qqp'"], ["do_train"]),
    (other_labels, ["labels was ['0', '1'], now ['a', 'b', 'c']"], ["do_train", "do_eval"]),
    (lambda folder: {"do_lower_case": False}, ["do_lower_case was True, now False"], ["do_eval"]),
  ],
)
def test_another_model_or_task_is_refused_and_nothing_is_touched(
  mrpc, tmp_path, change, named, modes
):
  values = {**copy_of(mrpc, tmp_path), **change(tmp_path / "other")}
  before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
  for mode in modes:
    message = error_of(**values, **{mode: True})
    assert "model.ckpt-20 was trained with other settings than this run: " in message
    for text in named:
      assert text in message
  assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


def test_the_best_checkpoint_of_evaluation_in_training_is_used(mrpc, tmp_path):
  """Accuracy is 1 after 10 of the 20 steps, so no later checkpoint is better."""
  out = tmp_path / "out"
  values = {**mrpc.flags, "output_dir": out, "eval_every_steps": 10}
  done = run_well(**values, do_train=True, do_eval=True)
  assert f"Using the best checkpoint, {out}/best/model.ckpt-10." in done.err
  assert results_in(out / "eval_results.txt")["global_step"] == 10
  with_head = {name for name, _ in tf.train.list_variables(str(out / "best"))}
  assert "output_weights" in with_head
  assert "output_weights/adam_m" not in with_head


# ---------------------------------------------------------------------------------------------
# What must not change a result.


def test_padding_and_batch_size_change_no_probability(mrpc, tmp_path):
  """With weights that are not trained: trained ones are so sure that little can move them."""
  start = mrpc.out / "model.ckpt-0"
  values = {**mrpc.flags, "output_dir": tmp_path / "out", "init_checkpoint": start}
  run_well(**values, do_predict=True)
  expected = numbers(tmp_path / "out" / "test_results.tsv")
  assert np.ptp(expected[:, 0]) > 1e-3, "probabilities that are all alike would prove nothing"
  for options in (
    {"pad_to_max_length": True},
    {"predict_batch_size": 1},
    {"max_seq_length": 32, "pad_to_max_length": True, "predict_batch_size": 4},
    {"max_seq_length": 32, "pack_sequences": True, "predict_batch_size": 5},
  ):
    run_well(**{**values, **options}, do_predict=True)
    found = numbers(tmp_path / "out" / "test_results.tsv")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5, err_msg=str(options))


def test_packed_rows_train_as_plain_ones(mrpc, tmp_path):
  """Without dropout, whose bits belong to places in rows."""
  config = tmp_path / "bert_config.json"
  no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
  config.write_text(json.dumps({**CONFIG, **no_dropout}))
  values = {**mrpc.flags, "bert_config_file": config, "init_checkpoint": mrpc.out / "model.ckpt-0"}
  values |= {"num_train_epochs": 2.0, "learning_rate": 1e-3, "do_train": True}
  weights = {}
  for packed in (False, True):
    run_well(**{**values, "output_dir": tmp_path / str(packed)}, pack_sequences=packed)
    weights[packed] = tensors(tmp_path / str(packed) / "model.ckpt-5")
  for name, plain in weights[False].items():
    np.testing.assert_allclose(weights[True][name], plain, rtol=0, atol=2e-5, err_msg=name)


def test_fast_stands_for_other_flags_but_for_those_that_are_given(mrpc, tmp_path, monkeypatch):
  seen = {}
  flags = run_classifier.FLAGS

  def run(self):
    _, steps = self._plan_training()
    seen.update(dtype=flags.dtype, group=flags.group_by_length, steps=steps)

  monkeypatch.setattr(run_classifier.Classification, "run", run)
  monkeypatch.setattr(hardware, "choose_dtype", lambda name, is_tpu: f"best for {name}")
  values = {**mrpc.flags, "output_dir": tmp_path / "out", "do_train": True}
  steps_per_epoch = 2.5
  long = {"num_train_epochs": 500 / steps_per_epoch}
  cases = [
    ({}, "float32", False),
    (long, "float32", False),
    ({"fast": True}, "auto", False),
    ({"fast": True, **long}, "auto", True),
    ({"fast": True, **long, "dtype": "bfloat16", "group_by_length": False}, "bfloat16", False),
    ({"fast": True, "group_by_length": True}, "auto", True),
    ({"fast": True, **long, "pack_sequences": True}, "auto", False),
  ]
  for flags_given, dtype, group in cases:
    run_well(**{**values, **flags_given})
    assert seen == {"dtype": f"best for {dtype}", "group": group, "steps": seen["steps"]}
    assert (seen["steps"] >= 500) == ("num_train_epochs" in flags_given)


@pytest.mark.parametrize(
  "other",
  [{"group_by_length": True}, {"gradient_accumulation_steps": 2}, {"long_text": "windows"}],
)
def test_what_packing_does_not_go_with_is_refused(mrpc, tmp_path, other):
  values = {**mrpc.flags, "output_dir": tmp_path / "out", "do_train": True, "pack_sequences": True}
  assert f"--{next(iter(other))}=" in error_of(**values, **other)


def logits_of(config, store, ids, mask):
  """Logits of `create_model` for ids that are masked as told."""
  with use_store(store):
    labels = tf.zeros([len(ids)], tf.int32)
    segments = tf.zeros_like(ids)
    return run_classifier.create_model(
      config, False, tf.constant(ids), tf.constant(mask), segments, labels, 3, False
    )[2].numpy()


def test_logits_do_not_depend_on_padding_or_on_what_is_padded():
  config = modeling.BertConfig.from_dict({**CONFIG, "initializer_range": 0.5})
  store, rng = VariableStore(1), np.random.default_rng(1)
  ids = rng.integers(5, len(VOCAB), [4, 7]).astype(np.int32)
  mask = np.ones_like(ids)
  alone = logits_of(config, store, ids, mask)
  assert np.ptp(alone) > 0.05, "a model whose logits are all alike would prove nothing"
  for length in (8, 16, 32):
    wide_mask = np.pad(mask, [(0, 0), (0, length - 7)])
    zeros = np.pad(ids, [(0, 0), (0, length - 7)])
    garbage = np.where(wide_mask, zeros, rng.integers(0, len(VOCAB), zeros.shape)).astype(np.int32)
    padded = logits_of(config, store, zeros, wide_mask)
    np.testing.assert_allclose(padded, alone, rtol=0, atol=1e-5)
    np.testing.assert_array_equal(logits_of(config, store, garbage, wide_mask), padded)
  assert np.abs(logits_of(config, store, ids[:, :6], mask[:, :6]) - alone).max() > 1e-3


@pytest.mark.parametrize("problem_type", ["classification", "multi_label", "regression"])
def test_what_the_metrics_see_is_what_is_predicted(problem_type):
  config, store = modeling.BertConfig.from_dict(CONFIG), VariableStore(1)
  model_fn = run_classifier.model_fn_builder(
    config, 3, None, 1e-3, 1, 0, False, False, problem_type=problem_type
  )
  ids = tf.constant([[5, 6, 7], [8, 9, 0]])
  shape = [2, 3] if problem_type == "multi_label" else [2]
  features = {"input_ids": ids, "input_mask": tf.ones_like(ids), "segment_ids": tf.zeros_like(ids)}
  features["label_ids"] = tf.zeros(shape, tf.float32 if problem_type == "regression" else tf.int32)
  features["is_real_example"] = tf.ones([2], tf.int32)
  with use_store(store):
    outputs = model_fn(features, None, ModeKeys.EVAL, {}).eval_metrics[1]["outputs"]
    probabilities = model_fn(features, None, ModeKeys.PREDICT, {}).predictions["probabilities"]
  if problem_type == "classification":
    outputs = tf.nn.softmax(outputs)
  np.testing.assert_allclose(outputs, probabilities, rtol=0, atol=1e-7)
  in_range = (probabilities.numpy() > 0).all() and (probabilities.numpy() < 1).all()
  assert in_range or problem_type == "regression"


# ---------------------------------------------------------------------------------------------
# Against the original.


def test_flags_of_the_original(golden_dir):
  golden = json.loads((golden_dir / "flags.json").read_text())["run_classifier"]
  with flag_groups.defined_flags(run_classifier.define_flags):
    ours = {flag["name"]: flag for flag in flag_groups.describe()}
  assert len(golden) == 25
  for flag in golden:
    assert ours[flag["name"]] == flag


@pytest.mark.parametrize("task", ["MRPC", "CoLA"])
def test_records_of_real_data_hold_the_originals_features(golden_dir, data_dir, tmp_path, task):
  with gzip.open(golden_dir / "classifier" / f"{task}.jsonl.gz", "rt", encoding="utf-8") as file:
    lines = [json.loads(line) for line in file]
  goldens = [golden for golden in lines if golden["max_seq_length"] == 40][::3]
  assert len(goldens) > 40
  processor = run_classifier.create_processor(task)
  folder = str(data_dir / "glue" / task)
  sets = {split: getattr(processor, f"get_{split}_examples")(folder) for split in SIZES}
  tokenizer = tokenization.FullTokenizer(str(data_dir / "vocab" / "uncased_vocab.txt"))
  examples = [sets[golden["split"]][golden["index"]] for golden in goldens]
  path = tmp_path / "golden.tf_record"
  run_classifier.file_based_convert_examples_to_features(
    examples, processor.get_labels(), 40, tokenizer, str(path)
  )
  for record, golden in zip(records(path), goldens, strict=True):
    padding = [0] * (40 - len(golden["input_ids"]))
    assert {name: values for name, (_, values) in record.items()} == {
      "input_ids": golden["input_ids"] + padding,
      "input_mask": [1] * len(golden["input_ids"]) + padding,
      "segment_ids": golden["segment_ids"] + padding,
      "label_ids": [golden["label_id"]],
      "is_real_example": [1],
    }


# ---------------------------------------------------------------------------------------------
# What a user sees when something is wrong.


def test_without_flags_the_required_ones_are_named():
  message = error_of()
  required = ("task_name", "data_dir", "output_dir", "bert_config_file", "vocab_file")
  for name in required:
    assert f"Flag --{name} must have a value other than None." in message
  assert message.count("must have a value") == len(required)
  assert "--help" in message


def write_row_with_an_unknown_label(folder):
  header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
  write_rows(folder, "dev.tsv", header, (1, 0, 0, "a", "b"), (2, 0, 0, "a", "b"))


def write_row_that_is_short(folder):
  header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
  write_rows(folder, "dev.tsv", header, (1, 0, 0, "a", "b"), (1, 0, 0, "a"))


def write_small_vocabulary(folder):
  write(folder, "vocab.txt", *VOCAB, "one-more")


# Changed flags ("{tmp}" is the test's folder), what to write there first, what the message says.
ERRORS = {
  "nothing to do": (
    {"do_train": False, "do_eval": False},
    None,
    "At least one of `do_train`, `do_eval` or `do_predict' must be True.",
  ),
  "too long": (
    {"max_seq_length": 33},
    None,
    "Cannot use sequence length 33 because the BERT model was only trained up to sequence length "
    "32",
  ),
  "too short": ({"max_seq_length": 2}, None, "max_seq_length is 2, but must be at least 3"),
  "unknown task": (
    {"task_name": "MRCP"},
    None,
    "Task not found: MRCP. Did you mean mrpc?",
  ),
  "no such folder": (
    {"data_dir": "{tmp}/nowhere"},
    None,
    "{tmp}/nowhere/train.tsv: there is no such file. There is no folder {tmp}/nowhere either",
  ),
  "another task's folder": (
    {"data_dir": "{tmp}/data", "task_name": "XNLI"},
    None,
    "{tmp}/data/multinli/multinli.train.zh.tsv: there is no such file.",
  ),
  "short row": (
    {"data_dir": "{tmp}/data"},
    write_row_that_is_short,
    "{tmp}/data/dev.tsv, line 3: column 4 (counted from 0) is missing",
  ),
  "unknown label": (
    {"data_dir": "{tmp}/data"},
    write_row_with_an_unknown_label,
    "{tmp}/data/dev.tsv, line 3: the label '2' is unknown; known labels: '0', '1'.",
  ),
  "other vocabulary": (
    {"vocab_file": "{tmp}/data/vocab.txt"},
    write_small_vocabulary,
    f"numbers its tokens up to {len(VOCAB)}, but ",
  ),
  "no vocabulary": ({"vocab_file": "{tmp}/v.txt"}, None, "{tmp}/v.txt"),
  "no config": ({"bert_config_file": "{tmp}/c.json"}, None, "{tmp}/c.json"),
  "no checkpoint": (
    {"init_checkpoint": "{tmp}/model.ckpt-3"},
    None,
    "No checkpoint {tmp}/model.ckpt-3: {tmp}/model.ckpt-3.index does not exist.",
  ),
  "output is a file": (
    {"output_dir": "{tmp}/data/train.tsv"},
    None,
    "--output_dir={tmp}/data/train.tsv cannot be written to",
  ),
  "output below a file": (
    {"output_dir": "{tmp}/data/train.tsv/out"},
    None,
    "--output_dir={tmp}/data/train.tsv/out cannot be written to",
  ),
  "negative batch": ({"train_batch_size": -8}, None, "--train_batch_size=-8: at least 1 is needed"),
  "no epochs": ({"num_train_epochs": 0}, None, "--num_train_epochs=0.0: a positive number"),
  "no number": ({"learning_rate": "fast"}, None, 'Flag --learning_rate takes a number, not "fast"'),
  "flag of another task": (
    {"text_a_column": "text"},
    None,
    "The task MRPC has no option text_a_column",
  ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_one_message_before_any_work(model, tmp_path, name):
  """No record is written, no graph is built: a mistake is told at once."""
  changes, prepare, expected = ERRORS[name]
  write_mrpc(tmp_path / "data")
  if prepare:
    prepare(tmp_path / "data")
  values = {**model, "task_name": "MRPC", "data_dir": tmp_path / "data", "do_train": True}
  values.update(output_dir=tmp_path / "out", do_eval=True)
  values.update(
    {k: v.format(tmp=tmp_path) if isinstance(v, str) else v for k, v in changes.items()}
  )
  message = error_of(**values)
  assert expected.format(tmp=tmp_path) in message
  assert not list(tmp_path.rglob("*.tf_record"))
  assert not list(tmp_path.rglob("label_map.json")) or name == "too short"


def test_a_checkpoint_of_another_size_names_both_shapes(mrpc, tmp_path):
  values = {**mrpc.flags, **other_config(tmp_path), "output_dir": tmp_path / "out"}
  message = error_of(**values, init_checkpoint=mrpc.out, do_eval=True)
  assert "model.ckpt-20 is of a model with other sizes" in message
  name = "bert/embeddings/word_embeddings"
  size = len(VOCAB)
  assert (
    f"{name}: float32 [{size}, 16] in the checkpoint, float32 [{size}, 32] in the model" in message
  )


def test_malformed_rows_can_be_left_out(mrpc, tmp_path):
  values = copy_of(mrpc, tmp_path)
  write_mrpc(tmp_path / "data")
  write_row_that_is_short(tmp_path / "data")
  done = run_well(**{**values, "data_dir": tmp_path / "data"}, skip_bad_rows=True, do_eval=True)
  assert "Left out 1 malformed row(s)." in done.err
  assert len(records(tmp_path / "out" / "eval.tf_record")) == 1


def test_less_than_one_step_of_data_trains_one(model, tmp_path):
  header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
  write_rows(tmp_path / "data", "train.tsv", header, *[(1, 0, 0, "the film", "good")] * 2)
  out = tmp_path / "out"
  values = {**model, "task_name": "MRPC", "data_dir": tmp_path / "data", "output_dir": out}
  done = run_well(**values, do_train=True)
  assert "2 examples, a batch of 8 and 3 epochs make less than one step" in done.err
  assert int(tf.train.load_variable(str(out), "global_step")) == 1


def test_a_misspelt_flag_is_named_with_the_right_one(mrpc, tmp_path):
  values = {**mrpc.flags, "output_dir": tmp_path / "out", "data_dir": tmp_path}
  done = run(**values, do_eval=True, train_batchsize=8, do_lower=True)
  assert "Ignoring the unknown flag --train_batchsize=8. Did you mean --train_batch_size?" in (
    done.err
  )
  assert "--do_lower is read as --do_lower_case" in done.err


# ---------------------------------------------------------------------------------------------
# Downloads, from a web server on this machine.

RELEASED = "uncased_L-2_H-128_A-2"


class Handler(http.server.SimpleHTTPRequestHandler):
  """Serves a folder and notes what is asked for."""

  asked: list[str]

  def do_GET(self):
    self.server.asked.append(self.path)
    super().do_GET()

  def log_message(self, *args):
    pass


@pytest.fixture
def mirror(tmp_path, monkeypatch):
  """A server of an empty folder; its `folder` and what was `asked` for. The cache is empty, too."""
  folder = tmp_path / "mirror"
  folder.mkdir()
  handler = functools.partial(Handler, directory=str(folder))
  with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    server.folder, server.asked = folder, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/"
    monkeypatch.setenv("BERT_DOWNLOAD_BASE_URL", url)
    monkeypatch.setenv("BERT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(fetch, "RETRY_SECONDS", 0)
    yield server
    server.shutdown()


def pack(path, files) -> None:
  path.parent.mkdir(parents=True)
  with zipfile.ZipFile(path, "w") as archive:
    for name, source in files.items():
      archive.write(source, name)


@pytest.fixture
def everything_downloaded(mirror, mrpc, tmp_path) -> dict:
  """The flags of a run for which the mirror has both the weights and the data of CoLA."""
  weights = {
    f"{RELEASED}/bert_model.ckpt{suffix}": mrpc.out / f"model.ckpt-20{suffix}"
    for suffix in (".index", ".data-00000-of-00001")
  }
  for flag, name in (("vocab_file", "vocab.txt"), ("bert_config_file", "bert_config.json")):
    weights[f"{RELEASED}/{name}"] = mrpc.flags[flag]
  pack(mirror.folder / "models" / download_cache.RELEASED_MODELS[RELEASED], weights)
  rows = [("gj04", label, "", a) for label, a, _ in texts(4)]
  for split in ("train", "dev", "test"):
    write_rows(tmp_path / "CoLA", f"{split}.tsv", *rows)
  task = {f"CoLA/{path.name}": path for path in (tmp_path / "CoLA").iterdir()}
  pack(mirror.folder / "glue" / "CoLA.zip", task)
  return {
    "task_name": "cola",
    "data_dir": "download",
    "init_checkpoint": RELEASED,
    "output_dir": tmp_path / "out",
    "max_seq_length": 16,
  }


def test_model_and_data_are_fetched_once(everything_downloaded, mirror, tmp_path):
  done = run_well(**everything_downloaded, do_eval=True)
  assert sorted(mirror.asked) == [
    "/glue/CoLA.zip",
    "/models/" + download_cache.RELEASED_MODELS[RELEASED],
  ]
  assert "25 of 25 variables loaded" in done.err
  results = (tmp_path / "out" / "eval_results.txt").read_bytes()
  run_well(**everything_downloaded, do_eval=True)
  assert len(mirror.asked) == 2
  assert (tmp_path / "out" / "eval_results.txt").read_bytes() == results


def test_nothing_is_fetched_for_a_run_that_cannot_start(everything_downloaded, mirror):
  assert "At least one of `do_train`" in error_of(**everything_downloaded)
  message = error_of(**everything_downloaded, do_train=True, train_batch_size=0)
  assert "--train_batch_size=0" in message
  without_output = {k: v for k, v in everything_downloaded.items() if k != "output_dir"}
  assert "Flag --output_dir must have" in error_of(**without_output, do_eval=True)
  assert mirror.asked == []


def test_no_network_is_one_plain_message(everything_downloaded, tmp_path, monkeypatch):
  with socket.socket() as closed:  # bound, and never listening: nothing answers there
    closed.bind(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{closed.getsockname()[1]}/"
    monkeypatch.setenv("BERT_DOWNLOAD_BASE_URL", url)
    for init_checkpoint in (RELEASED, tmp_path):
      write(tmp_path, "vocab.txt", *VOCAB)
      write(tmp_path, "bert_config.json", json.dumps(CONFIG))
      values = {**everything_downloaded, "init_checkpoint": init_checkpoint}
      message = error_of(**values, do_eval=True)
      assert f"Cannot download {url}" in message
      assert f"put it at {tmp_path}/cache/" in message


def test_data_that_nobody_publishes(everything_downloaded):
  values = {**everything_downloaded, "task_name": "csv"}
  assert "No public data is known for task 'csv'" in error_of(**values, do_eval=True)


# ---------------------------------------------------------------------------------------------
# The sample, and the script as a program.


@pytest.mark.parametrize(
  ("arguments", "is_sample"),
  [
    (["--task_name=MRPC"], True),
    (["--task_name=mrpc", "--num_train_epochs=2", "--output_dir=mine"], True),
    (["--task_name=CoLA"], False),
    ([], False),
    (["--task_name=MRPC", "--data_dir=d"], False),
    (["--task_name=MRPC", "--bert_config_file=c"], False),
    (["--task_name=MRPC", "--vocab_file=v"], False),
    (["--task_name=MRPC", "--init_checkpoint=i"], False),
    (["--task_name=MRPC", "--do_train"], False),
    (["--task_name=MRPC", "--nodo_eval"], False),
    (["--task_name=MRPC", "--do_predict=false"], False),
  ],
)
def test_the_sample_is_for_those_who_give_nothing(arguments, is_sample):
  with flag_groups.defined_flags(run_classifier.define_flags) as values:
    command_line.parse(["run_classifier.py", *arguments])
    before = {name: values[name].value for name in values}
    assert run_classifier.use_samples_if_nothing_is_given() is is_sample
    if not is_sample:
      assert {name: values[name].value for name in values} == before
      return
    assert values.do_train
    assert values.do_eval
    assert pathlib.Path(values.data_dir) == ROOT / "samples" / "MRPC"
    for name in before:
      if any(argument.startswith(f"--{name}=") for argument in arguments):
        assert values[name].value == before[name], "what was given stays"


def test_after_the_sample_comes_the_real_command(capsys):
  with flag_groups.defined_flags(run_classifier.define_flags) as values:
    values.output_dir = "output/here"
    run_classifier.say_what_comes_next()
  text = capsys.readouterr().out
  assert "output/here" in text
  command = text[text.index("python run_classifier.py") :].replace("\\\n", " ").split()
  with flag_groups.defined_flags(run_classifier.define_flags) as values:
    assert command_line.parse(command[1:]) == ["run_classifier.py"]
    assert values.data_dir == "download"
    assert download_cache.is_released_name(values.init_checkpoint)


def python(*arguments, cwd=ROOT) -> subprocess.CompletedProcess:
  return subprocess.run(
    [sys.executable, *arguments],
    env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"},
    capture_output=True,
    text=True,
    cwd=cwd,
    timeout=120,
  )


def test_help_names_every_flag_in_groups_without_tensorflow(tmp_path):
  driver = """
import runpy, sys
sys.argv = ["run_classifier.py", "--help"]
try:
  runpy.run_module("run_classifier", run_name="__main__")
finally:
  print("HEAVY", sorted({"tensorflow", "scipy", "sklearn"} & set(sys.modules)), file=sys.stderr)
"""
  done = python("-c", driver, cwd=tmp_path)
  assert done.returncode == 0, done.stderr
  assert "HEAVY []" in done.stderr
  with flag_groups.defined_flags(run_classifier.define_flags):
    names = [flag["name"] for flag in flag_groups.describe()]
  listed = re.findall(r"^  --(?:\[no\])?(\w+) \(", done.stdout, re.MULTILINE)
  assert set(names) <= set(listed)
  groups = re.findall(r"^(\S.*):$", done.stdout, re.MULTILINE)
  assert {"Task and data", "Model", "Training", "TPU"} <= set(groups)
  assert "Other" not in groups, "a flag stands in no group"
  assert os.listdir(tmp_path) == []


def test_importing_defines_no_flag_and_loads_no_tensorflow(tmp_path):
  program = (
    "import sys; from bert import run_classifier; from absl import flags; "
    "print('tensorflow' in sys.modules, 'data_dir' in flags.FLAGS)"
  )
  done = python("-c", program, cwd=tmp_path)
  assert done.stdout.split() == ["False", "False"], done.stderr


def test_the_program_itself_fails_with_one_message():
  done = python("run_classifier.py", "--task_name=CoLA", "--do_train")
  assert done.returncode == 1
  assert "Traceback" not in done.stderr
  assert "Flag --data_dir must have a value other than None." in done.stderr
