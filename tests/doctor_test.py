"""Tests of doctor.py and its checks: each planted fault is found, and a good set is silent.

Alone: python -m pytest tests/doctor_test.py (seconds)
"""

import doctest
import json
import pathlib
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest

from bert import doctor, run_classifier, tokenization
from bert.checkpoints import checkpoint
from bert.checks import data_checks, machine_checks, model_checks, start_checks
from bert.checks import findings as examination
from bert.checks.findings import Subject, to_text
from bert.io import installation, record_files
from bert.model.configuration import BertConfig
from bert.pretraining import instances
from bert.scripts import command_line, flag_groups
from bert.training import hardware
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCAB = [*SPECIAL, ".", ",", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
CONFIG = {
  "vocab_size": len(VOCAB),
  "hidden_size": 8,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 16,
  "max_position_embeddings": 64,
  "type_vocab_size": 2,
}
SHAPES = model_checks.expected_shapes(BertConfig(**CONFIG))
LENGTH, PREDICTIONS = 16, 3
DATA_FILE = "model/model.ckpt-0.data-00000-of-00001"
WORDS = ["ada", "bob", "cat", "dog", "elk", "fig", "gnu", "hen"]
TEXTS = [f"{a} {b} {a}{b}." for a in WORDS for b in WORDS]  # 64 of 9 to 11 pieces


# ---------------------------------------------------------------------------------------------
# The good set.


@pytest.fixture(scope="module")
def good_set(tmp_path_factory) -> pathlib.Path:
  folder = tmp_path_factory.mktemp("good")
  write_lines(folder / "vocab.txt", VOCAB)
  write_json(folder / "bert_config.json", CONFIG)
  save_checkpoint(folder)
  for name in ("tables", "records", "squad", "conll"):
    (folder / name).mkdir()
  write_table(folder / "tables/train.csv", TEXTS[:40])
  write_table(folder / "tables/dev.csv", TEXTS[40:56])
  write_records(folder / "records/a.tfrecord")
  write_json(folder / "squad/train.json", squad_file())
  write_lines(folder / "conll/train.conll", conll_lines(TEXTS[:20]))
  write_lines(folder / "conll/dev.conll", conll_lines(TEXTS[20:30]))
  documents = [TEXTS[start : start + 8] for start in range(0, 64, 8)]
  write_lines(folder / "corpus.txt", [line for lines in documents for line in [*lines, ""]])
  return folder


def write_lines(path, lines):
  path.write_text("".join(f"{line}\n" for line in lines))


def write_json(path, content):
  path.write_text(json.dumps(content))


def save_checkpoint(folder, change: Callable[[dict], Any] = lambda tensors: None, **fingerprint):
  rng = np.random.default_rng(1)
  tensors = {name: rng.normal(size=shape).astype(np.float32) for name, shape in SHAPES.items()}
  change(tensors)
  checkpoint.save(str(folder / "model"), 0, tensors, {"fingerprint": fingerprint})


def write_table(path, texts, label_of: Callable[[int], Any] = lambda row: row % 2):
  write_lines(path, ["text_a,label", *(f"{text},{label_of(i)}" for i, text in enumerate(texts))])


def features(number: int, **changed) -> dict:
  """A record that no other number gives."""
  first = 7 + number % 26
  ids = [2, first, 33 + number // 26, 40, 3, 8, 9, 10, 11, 3]
  ids += [0] * (LENGTH - len(ids))
  return {
    "input_ids": ids,
    "input_mask": [int(each > 0) for each in ids],
    "segment_ids": [0] * 5 + [1] * 5 + [0] * 6,
    "masked_lm_positions": [1, 2, 0],
    "masked_lm_ids": [first, 34, 0],
    "masked_lm_weights": [1.0, 1.0, 0.0],
    "next_sentence_labels": [number % 2],
    **changed,
  }


def write_records(path, change: Callable[[list], Any] = lambda records: None, **facts):
  records = [features(number) for number in range(20)]
  change(records)
  vocabulary = tokenization.vocabulary_hash({token: i for i, token in enumerate(VOCAB)})
  facts = {"max_seq_length": LENGTH, "vocabulary": vocabulary, **facts}
  with instances.RecordFiles([path], facts) as files:
    for record in records:
      files.write(record_files.serialize_example(record), 10)


def write_classifier_records(labels, name="train"):
  """Records as of run_classifier.py."""

  def write(folder):
    wanted = ("input_ids", "input_mask", "segment_ids")
    records = [
      {**{key: features(number)[key] for key in wanted}, "label_ids": [label]}
      for number, label in enumerate(labels)
    ]
    record_files.write_records(
      folder / f"records/{name}.tf_record",
      [{**record, "is_real_example": [1]} for record in records],
    )

  return write


def squad_file() -> dict:
  paragraphs = [
    {
      "context": f"{text} and more",
      "qas": [
        {
          "id": str(number),
          "question": f"who is {text}",
          "answers": [{"text": text.split()[1], "answer_start": text.index(" ") + 1}],
        }
      ],
    }
    for number, text in enumerate(TEXTS[:10])
  ]
  return {"version": "1.1", "data": [{"title": "a", "paragraphs": paragraphs}]}


def conll_lines(texts) -> list[str]:
  lines = []
  for text in texts:
    first, *others = text.split()
    lines += [f"{first} B-PER", *(f"{word} O" for word in others), ""]
  return lines


# ---------------------------------------------------------------------------------------------
# Examining.


@pytest.fixture
def folder(good_set, tmp_path) -> pathlib.Path:
  """A copy of the good set, to be spoilt."""
  return pathlib.Path(shutil.copytree(good_set, tmp_path / "set"))


@pytest.fixture(autouse=True)
def large_machine(monkeypatch):
  """What this machine has free at the moment is not what is tested."""
  monkeypatch.setattr(hardware, "memory", lambda: hardware.Memory(1 << 36, 1 << 35))
  monkeypatch.setattr(hardware, "gpu_memory", list)
  monkeypatch.setattr(hardware, "gpu_capabilities", list)
  monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(0, 0, 1 << 40))


DATA = {
  "tables": {"data_dir": "tables", "task_name": "csv", "max_seq_length": 16},
  "records": {"input_file": "records/*.tfrecord"},
  "squad": {"data_dir": "squad"},
  "conll": {"data_dir": "conll"},
  "corpus": {"input_file": "corpus.txt"},
}
PATHS = ("bert_config_file", "vocab_file", "init_checkpoint", "data_dir", "input_file")


def subject_of(folder, data="tables", **changed) -> Subject:
  values = {
    "bert_config_file": "bert_config.json",
    "vocab_file": "vocab.txt",
    "init_checkpoint": "model",
    "output_dir": str(folder / "out"),
    **DATA[data],
    **changed,
  }
  values = {k: str(folder / v) if k in PATHS and v else v for k, v in values.items()}
  return Subject(**values)


def diagnose(folder, data="tables", **changed) -> list[examination.Finding]:
  return list(doctor.diagnose(subject_of(folder, data, **changed)))


def bad(findings) -> list[examination.Finding]:
  return [finding for finding in findings if finding.level in ("warning", "error")]


@pytest.mark.parametrize("data", DATA)
def test_a_good_set_is_silent(good_set, data):
  findings = diagnose(good_set, data)
  assert not bad(findings), to_text(findings)
  # Silence means something only if the data were looked at.
  assert any(data in finding.where for finding in findings)


class Fault(NamedTuple):
  """What is planted, and what has to be said about it.

  Attributes:
    plant: spoils the folder.
    said: in the finding.
    where: the end of its place.
    level: of the finding.
    flags: of the run.
  """

  plant: Callable[[pathlib.Path], Any]
  said: str
  where: str
  level: str = "error"
  flags: Mapping[str, Any] = types.MappingProxyType({})


def config_with(**changed):
  return lambda folder: write_json(folder / "bert_config.json", {**CONFIG, **changed})


def vocab_of(tokens):
  return lambda folder: write_lines(folder / "vocab.txt", tokens)


def checkpoint_with(change=lambda tensors: None, **fingerprint):
  return lambda folder: save_checkpoint(folder, change, **fingerprint)


def table_of(name, texts, label_of=lambda row: row % 2):
  return lambda folder: write_table(folder / f"tables/{name}.csv", texts, label_of)


def records_with(change=lambda records: None, **facts):
  return lambda folder: write_records(folder / "records/a.tfrecord", change, **facts)


def bytes_changed(name, change):
  def plant(folder):
    path = folder / name
    path.write_bytes(change(path.read_bytes()))

  return plant


def flipped(data: bytes) -> bytes:
  middle = len(data) // 2
  return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]


def squad_with(change):
  def plant(folder):
    content = squad_file()
    change(content["data"][0]["paragraphs"])
    write_json(folder / "squad/train.json", content)

  return plant


def spoil_nothing(folder):
  del folder


def set_nan(tensors):
  tensors["bert/pooler/dense/bias"][3] = np.nan


def other_order(folder):
  """Records that are sound each, but not those that the manifest was written for."""
  manifest = folder / "records/.a.tfrecord.manifest.json"
  facts = manifest.read_text()
  write_records(folder / "records/a.tfrecord", lambda records: records.reverse())
  manifest.write_text(facts)


def cut_behind_a_record(data: bytes) -> bytes:
  from bert.io.tfrecord_bytes import framed_size

  return data[: framed_size(data)]


LONG = [f"{text} {' '.join(WORDS)}" for text in TEXTS[:40]]
FOREIGN = [f"{text} при вет мир да" for text in TEXTS[:40]]
RECORDS = {"data": "records"}
SQUAD = {"data": "squad"}
CONLL = {"data": "conll"}
CORPUS = {"data": "corpus"}

FAULTS = {
  # Configuration.
  "config is no JSON": Fault(
    bytes_changed("bert_config.json", lambda data: data[:-5]), "not valid JSON", ""
  ),
  "config with a misspelt key": Fault(
    config_with(num_layers=2), "Is num_hidden_layers meant", "bert_config.json", "warning"
  ),
  "sequences longer than positions": Fault(
    spoil_nothing, "max_position_embeddings is 64", "json", flags={"max_seq_length": 65}
  ),
  # Vocabulary.
  "no vocabulary": Fault(lambda folder: (folder / "vocab.txt").unlink(), "Cannot read voc", ""),
  "more tokens than embeddings": Fault(
    vocab_of([*VOCAB, "one", "two"]), "no embedding", "vocab.txt"
  ),
  "far fewer tokens": Fault(
    config_with(vocab_size=len(VOCAB) + 128), "is it the model's own?", "vocab.txt", "warning"
  ),
  "a token twice": Fault(
    vocab_of([*VOCAB[:30], "a", *VOCAB[31:]]), "stands in line 8", "vocab.txt:31", "warning"
  ),
  "a blank line": Fault(
    vocab_of([*VOCAB[:30], "", *VOCAB[31:]]), "The line is blank", "vocab.txt:31", "warning"
  ),
  "no [SEP]": Fault(vocab_of([*VOCAB[:3], "[sep]", *VOCAB[4:]]), "no [SEP]", "vocab.txt"),
  "[PAD] is not first": Fault(
    vocab_of([VOCAB[1], VOCAB[0], *VOCAB[2:]]), "[PAD] is token 1", "vocab.txt", "warning"
  ),
  "cased vocabulary": Fault(
    vocab_of([*VOCAB[:-10], *LETTERS[:10].upper()]),
    "Give --do_lower_case=False",
    "vocab.txt",
    "warning",
  ),
  "uncased vocabulary": Fault(
    spoil_nothing, "Give --do_lower_case=True", "vocab.txt", "warning", {"do_lower_case": False}
  ),
  # Checkpoint.
  "no checkpoint": Fault(lambda folder: shutil.rmtree(folder / "model"), "No checkpoint", ""),
  "config of another model": Fault(
    config_with(hidden_size=16), "[59, 8], but [59, 16] by", "model.ckpt-0"
  ),
  "fewer layers than the checkpoint": Fault(
    config_with(num_hidden_layers=1), "1 layers more", "model.ckpt-0"
  ),
  "a variable is missing": Fault(
    checkpoint_with(lambda tensors: tensors.pop("bert/pooler/dense/bias")),
    "1 of 39 variables of the encoder are missing: bert/pooler/dense/bias",
    "model.ckpt-0",
    "warning",
  ),
  "truncated checkpoint": Fault(bytes_changed(DATA_FILE, lambda data: data[:-7]), "truncated", ""),
  "a flipped bit in the checkpoint": Fault(
    bytes_changed(DATA_FILE, flipped), "is damaged", "model.ckpt-0"
  ),
  "NaN in the checkpoint": Fault(
    checkpoint_with(set_nan), "bert/pooler/dense/bias: 1 of 8 values", "model.ckpt-0"
  ),
  "checkpoint of another vocabulary": Fault(
    checkpoint_with(vocabulary="0123456789abcdef"), "begins with 0123456789ab", "model.ckpt-0"
  ),
  "uncased model, cased text": Fault(
    lambda folder: shutil.copytree(folder / "model", folder / "uncased_L-12_H-768_A-12"),
    "contradicts --init_checkpoint",
    "",
    flags={"init_checkpoint": "uncased_L-12_H-768_A-12", "do_lower_case": False},
  ),
  # Tables.
  "unknown label": Fault(
    table_of("dev", TEXTS[40:56], lambda row: "maybe" if row == 3 else row % 2),
    "the label 'maybe' is unknown",
    "dev.csv:5",
  ),
  "a short row": Fault(
    lambda folder: write_lines(folder / "tables/train.csv", ["text_a,label", "ada,0", "bob"]),
    "column 1",
    "train.csv:3",
  ),
  "a header and nothing else": Fault(
    lambda folder: write_table(folder / "tables/train.csv", []), "no train examples", "train.csv"
  ),
  "one label hardly occurs": Fault(
    table_of("train", TEXTS[:40], lambda row: int(row == 0)), "98% of the", "train.csv", "warning"
  ),
  "one label never occurs": Fault(
    spoil_nothing,
    "has the label '2'",
    "train.csv",
    "warning",
    {"table_options": {"labels": ["0", "1", "2"]}},
  ),
  "repeated examples": Fault(
    table_of("train", [*TEXTS[:20], *TEXTS[:20]]),
    "20 example(s) of train repeat",
    "train.csv:22",
    "warning",
  ),
  "dev in train": Fault(
    table_of("dev", [*TEXTS[40:50], *TEXTS[:5]]), "5 of 15 examples of dev", "dev.csv:12", "warning"
  ),
  "empty texts": Fault(
    table_of("train", [*TEXTS[:40], " "]), "1 examples of train have no", "train.csv:42", "warning"
  ),
  "long texts": Fault(table_of("train", LONG), "longer than --max_seq", "train.csv", "warning"),
  "texts of another language": Fault(
    table_of("train", FOREIGN), "Words such as при, вет, мир", "train.csv:2", "warning"
  ),
  "a folder without tables": Fault(
    spoil_nothing, "there is no train.tsv", "squad", flags={"data_dir": "squad"}
  ),
  # Records.
  "an id beyond the vocabulary": Fault(
    records_with(lambda records: records[7]["input_ids"].__setitem__(4, len(VOCAB))),
    "Record 8: input_ids holds 59",
    "a.tfrecord",
    flags=RECORDS,
  ),
  "a third segment": Fault(
    records_with(lambda records: records[7]["segment_ids"].__setitem__(4, 2)),
    "Record 8: segment_ids holds 2",
    "a.tfrecord",
    flags=RECORDS,
  ),
  "records of another length": Fault(
    spoil_nothing, "Give --max_seq_length=16", "a.tfrecord", flags={**RECORDS, "max_seq_length": 32}
  ),
  "records of other masks": Fault(
    spoil_nothing,
    "Give --max_predictions_per_seq=3",
    "",
    flags={**RECORDS, "max_predictions_per_seq": 5},
  ),
  "records cut behind a record": Fault(
    bytes_changed("records/a.tfrecord", cut_behind_a_record), "was cut short", "", flags=RECORDS
  ),
  "a flipped bit in records": Fault(
    bytes_changed("records/a.tfrecord", flipped), "sha256", "a.tfrecord", flags=RECORDS
  ),
  "records that were changed": Fault(other_order, "sha256", "a.tfrecord", flags=RECORDS),
  "records of another vocabulary": Fault(
    records_with(vocabulary="0123456789abcdef"), "begins with 0123456789ab", "", flags=RECORDS
  ),
  "records that begin otherwise": Fault(
    records_with(lambda records: [r["input_ids"].__setitem__(0, 9) for r in records]),
    "begin with token 9, but [CLS] is 2",
    "a.tfrecord",
    flags=RECORDS,
  ),
  "records that repeat": Fault(
    records_with(lambda records: records.extend(records)),
    "50% of its records",
    "a.tfrecord",
    "warning",
    RECORDS,
  ),
  "an empty file of records": Fault(
    bytes_changed("records/a.tfrecord", lambda data: b""), "there is no text", "", flags=RECORDS
  ),
  "records of one label": Fault(
    write_classifier_records([1] * 20),
    "every record is 1",
    "train.tf_record",
    "warning",
    {**RECORDS, "input_file": "records/train.tf_record"},
  ),
  # SQuAD.
  "an answer elsewhere": Fault(
    squad_with(lambda paragraphs: paragraphs[0]["qas"][0]["answers"][0].update(answer_start=999)),
    "The answers of 1 of 10",
    "train.json",
    "warning",
    SQUAD,
  ),
  "a question without answer": Fault(
    squad_with(lambda paragraphs: paragraphs[1]["qas"][0].update(answers=[])),
    "each question needs an answer",
    "train.json",
    flags=SQUAD,
  ),
  "broken JSON": Fault(
    bytes_changed("squad/train.json", lambda data: data[:-1]), "not JSON", "json:1", flags=SQUAD
  ),
  # CoNLL.
  "a word without a label": Fault(
    lambda folder: write_lines(folder / "conll/train.conll", ["ada B-PER", "bob O", "cat", ""] * 3),
    "",
    "train.conll:3",
    flags=CONLL,
  ),
  "only one label": Fault(
    lambda folder: write_lines(folder / "conll/train.conll", ["ada O", "bob O", ""]),
    "Every label is 'O'",
    "train.conll",
    "warning",
    CONLL,
  ),
  # Text.
  "a text without documents": Fault(
    bytes_changed("corpus.txt", lambda data: data.replace(b"\n\n", b"\n")),
    "one document",
    "corpus.txt",
    "warning",
    CORPUS,
  ),
  "a text full of repetitions": Fault(
    bytes_changed("corpus.txt", lambda data: data * 2), "repeat", "corpus.txt", "warning", CORPUS
  ),
  # What lies in the output folder.
  "another model is there": Fault(
    lambda folder: checkpoint.save(
      str(folder / "out"), 3, {"a": np.zeros(1)}, {"fingerprint": {"hidden_size": 16}}
    ),
    "It was trained with hidden_size 16; it would be 8 now",
    "model.ckpt-3",
  ),
  # Disk.
  "the output folder is a file": Fault(
    lambda folder: (folder / "out").write_text(""), "--output_dir is a file", "out"
  ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(folder, name):
  fault = FAULTS[name]
  fault.plant(folder)
  findings = diagnose(folder, **fault.flags)
  found = [
    finding
    for finding in findings
    if finding.level == fault.level
    and fault.said in f"{finding.what} {finding.remedy}"
    and finding.where.endswith(fault.where)
  ]
  assert found, to_text(findings)
  assert not any(" ended in " in finding.what for finding in findings), to_text(findings)


def test_records_of_a_classifier_are_good(folder):
  write_classifier_records([0, 1] * 10)(folder)
  write_classifier_records([0] * 20, "predict")(folder)  # placeholders
  findings = diagnose(folder, "records", input_file="records/*.tf_record")
  assert not bad(findings), to_text(findings)
  assert "Labels: 0: 50%, 1: 50%" in to_text(findings)


def test_records_without_a_manifest_are_a_note(folder):
  (folder / "records/.a.tfrecord.manifest.json").unlink()
  findings = diagnose(folder, "records")
  assert not bad(findings)
  assert "There is no manifest" in to_text(findings)


def test_only_so_many_examples_are_looked_at(folder):
  write_records(folder / "records/a.tfrecord", lambda rs: rs[9]["input_ids"].__setitem__(4, 99))
  assert bad(diagnose(folder, "records"))
  findings = diagnose(folder, "records", max_examples=9)
  assert not bad(findings), to_text(findings)
  assert "The first 9 records" in to_text(findings)


def test_a_run_that_would_go_on_is_told(folder):
  vocabulary = tokenization.vocabulary_hash({token: i for i, token in enumerate(VOCAB)})
  fingerprint = {"hidden_size": 8, "vocabulary": vocabulary, "do_lower_case": True, "labels": []}
  checkpoint.save(str(folder / "out"), 3, {"a": np.zeros(1)}, {"fingerprint": fingerprint})
  findings = diagnose(folder)
  assert not bad(findings), to_text(findings)
  assert "would go on from this checkpoint" in to_text(findings)


def test_tables_are_looked_at_by_folder(good_set):
  findings = diagnose(good_set, data_dir=None, task_name=None, input_file="tables/train.csv")
  assert "give the folder of train, dev and test" in to_text(bad(findings))


def test_data_to_be_downloaded_are_a_note(good_set):
  subject = subject_of(good_set)
  subject.data_dir = "download"
  findings = list(data_checks.check_data(subject))
  assert [finding.level for finding in findings] == ["note"]


# ---------------------------------------------------------------------------------------------
# The machine.


def test_versions_that_clash_are_found(monkeypatch):
  installed = machine_checks._version
  changed = {"tensorflow-text": "2.19.0", "setuptools": "82.0.0", "tf-keras": None}
  monkeypatch.setattr(machine_checks, "_version", lambda name: changed.get(name, installed(name)))
  monkeypatch.setattr(machine_checks.platform, "python_version", lambda: "3.9.1")
  told = to_text(bad(machine_checks.check_versions(Subject())))
  assert "This is Python 3.9.1, but >=3.10" in told
  assert "setuptools 82.0.0 is installed, but this project needs <82" in told
  assert "tf-keras is not installed" in told
  assert "tensorflow-text 2.19.0, tf-keras None belong to different releases" in told


def test_what_a_library_asks_for_is_checked_too(monkeypatch):
  installed = machine_checks._version
  changed = {"numpy": "1.0.0"}
  monkeypatch.setattr(installation, "requirements", lambda: (">=3.10", []))
  monkeypatch.setattr(machine_checks, "_version", lambda name: changed.get(name, installed(name)))
  told = to_text(bad(machine_checks.check_versions(Subject())))
  assert "numpy 1.0.0 is installed, but tensorflow needs" in told


def test_requirements_are_read_from_the_project_file():
  supported, requirements = installation.requirements()
  assert supported.startswith(">=3.10")
  assert "setuptools<82" in requirements
  assert not [text for text in requirements if "pytest" in text]


def test_too_little_memory_is_found(monkeypatch):
  base = BertConfig.from_name("uncased_L-12_H-768_A-12")

  def told(total, available, **changed):
    monkeypatch.setattr(hardware, "memory", lambda: hardware.Memory(total << 30, available << 30))
    subject = Subject(config=base, max_seq_length=512, train_batch_size=32, **changed)
    [finding] = machine_checks.check_memory(subject)
    return finding

  assert told(64, 32).level == "ok"
  assert told(64, 8).level == "warning"
  assert told(64, 8).remedy.startswith("Lower --train_batch_size")
  assert told(1, 1).level == "error"
  monkeypatch.setattr(hardware, "memory", lambda: None)
  [finding] = machine_checks.check_memory(Subject(config=base))
  assert finding.level == "note"


def test_memory_is_counted_as_its_docstring_says():
  config = BertConfig(**CONFIG)
  need = machine_checks.memory_needed(config, batch_size=2, seq_length=4)
  assert need.slots == 2 * need.weights == 8 * config.count_parameters()
  assert need.activations == 4 * 2 * 2 * 4 * (8 * 8 + 2 * 16 + 2 * 2 * 4)
  assert (need.logits, need.program) == (0, 5 << 28)
  half = machine_checks.memory_needed(config, 2, 4, "bfloat16", predictions=3)
  assert half.activations == need.activations // 2
  assert half.logits == 8 * 2 * 3 * len(VOCAB)
  assert half.total == sum(half)


def test_too_little_disk_is_found(monkeypatch, tmp_path):
  base = BertConfig.from_name("uncased_L-12_H-768_A-12")

  def level(gigabytes):
    usage = shutil._ntuple_diskusage(0, 0, gigabytes << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    [finding] = machine_checks.check_disk(Subject(config=base, output_dir=str(tmp_path / "a/b")))
    return finding.level

  assert [level(100), level(4), level(1)] == ["ok", "warning", "error"]


@pytest.mark.parametrize(
  ("dtype", "preferred", "reason", "level"),
  [
    ("float32", "float32", "the CPU has none", "ok"),
    ("float32", "bfloat16", "amx_bf16", "note"),
    ("bfloat16", "bfloat16", "amx_bf16", "ok"),
    ("bfloat16", "float32", "the CPU has none", "warning"),
    ("float16", "float32", "the CPU has none", "warning"),
    ("float16", "bfloat16", "the GPU multiplies", "ok"),
    ("auto", "bfloat16", "amx_bf16", "ok"),
  ],
)
def test_a_type_that_is_slow_here_is_found(dtype, preferred, reason, level):
  [finding] = machine_checks._dtype(dtype, preferred, reason)
  assert finding.level == level


def test_a_gpu_that_tensorflow_does_not_see_is_found(monkeypatch):
  monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
  monkeypatch.setattr(hardware, "gpu_memory", lambda: [hardware.Memory(1, 1)])
  told = to_text(bad(machine_checks.check_devices(Subject())))
  assert "1 GPU(s) that TensorFlow does not see" in told


# ---------------------------------------------------------------------------------------------
# The script.

script = Script(doctor)


def flags_of(folder, data="tables", **changed) -> dict:
  subject = subject_of(folder, data)
  values = {name: getattr(subject, name) for name in [*PATHS, "task_name", "max_seq_length"]}
  values = {name: value for name, value in values.items() if value is not None}
  return {**values, "output_dir": folder / "out", **changed}


def test_the_script_tells_and_exits_with_0(good_set):
  done = script.run(**flags_of(good_set, do_train=True, learning_rate=2e-5))
  assert done.code == 0, done.out
  assert "40 examples for train" in done.out
  assert done.out.splitlines()[-1].endswith("0 error(s), 0 warning(s).")
  assert "Ignoring" not in done.err


def test_an_error_exits_with_1(folder):
  (folder / DATA_FILE).unlink()
  done = script.run(**flags_of(folder))
  assert done.code == 1
  assert "error    " in done.out
  assert "data files are missing" in done.out


def test_files_may_have_the_names_that_runs_give_them(good_set):
  flags = flags_of(good_set, "conll", train_file=good_set / "conll/train.conll", label_column=-1)
  del flags["data_dir"]
  done = script.run(**flags, dev_file=good_set / "conll/dev.conll", label_scheme="bio")
  assert done.code == 0, done.out
  assert "20 examples for train" in done.out
  assert "10 examples for dev" in done.out


def test_json_holds_the_same(folder):
  write_table(folder / "tables/dev.csv", TEXTS[:10])
  done = script.run(**flags_of(folder, format="json"))
  assert done.code == 0  # a warning is no error
  report = json.loads(done.out)
  assert (report["errors"], report["warnings"]) == (0, 1)
  [finding] = [each for each in report["findings"] if each["level"] == "warning"]
  assert finding["where"] == str(folder / "tables/dev.csv") + ":2"
  assert set(finding) == {"level", "what", "where", "remedy"}


@pytest.mark.parametrize("what", ["missing", "folder", "garbage", "empty"])
@pytest.mark.parametrize(
  "name", ["bert_config_file", "vocab_file", "init_checkpoint", "input_file"]
)
def test_nothing_ends_in_a_traceback(good_set, tmp_path, name, what):
  path = tmp_path / "file"
  if what == "folder":
    path.mkdir()
  elif what != "missing":
    path.write_bytes(b"" if what == "empty" else bytes(range(256)) * 4)
  flags = flags_of(good_set, "corpus", **{name: path})
  if name == "input_file" and what == "garbage":
    del flags["vocab_file"]
  done = script.run(**flags)
  assert "Traceback" not in done.err + done.out
  assert "ended in" not in done.out, done.out
  assert done.code == (0 if "vocab_file" not in flags else 1), done.out


def test_a_released_model_is_not_downloaded():
  done = script.run(init_checkpoint="uncased_L-12_H-768_A-12", max_seq_length=128)
  assert done.code == 0, done.out
  assert "109.5 million parameters" in done.out
  assert "would be downloaded" in done.out


def test_a_check_that_fails_spoils_no_other():
  def check_nothing(subject):
    raise RuntimeError("This is a bug.")
    yield subject

  def check_all(subject):
    yield examination.ok("All is well.")

  findings = list(examination.examine([check_nothing, check_all], Subject()))
  assert [finding.level for finding in findings] == ["error", "ok"]
  assert "check_nothing ended in RuntimeError: This is a bug." in findings[0].what


def test_help_does_not_load_tensorflow():
  code = "import sys; from bert import doctor; from bert.scripts import command_line\n"
  code += "try: command_line.run(doctor.main, doctor.define_flags, ['doctor.py', '--help'])\n"
  code += "finally: assert 'tensorflow' not in sys.modules"
  done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  assert "--init_checkpoint" in done.stdout


# ---------------------------------------------------------------------------------------------
# What runs do at their start.


def test_the_cheap_part_reads_no_data_and_no_values(good_set, monkeypatch):
  def refuse(*args):
    raise AssertionError("This is not cheap.")

  monkeypatch.setattr(data_checks, "check_data", refuse)
  monkeypatch.setattr(checkpoint, "read_tensors", refuse)
  findings = start_checks.cheap_findings(subject_of(good_set))
  assert not bad(findings), to_text(findings)
  assert len(findings) > 4


def test_the_cheap_part_takes_what_is_loaded(good_set):
  vocab = {token: number for number, token in enumerate(VOCAB)}
  config = BertConfig(**{**CONFIG, "hidden_size": 16})
  subject = Subject(config=config, vocab=vocab, init_checkpoint=str(good_set / "model"))
  told = to_text(bad(start_checks.cheap_findings(subject)))
  assert "bert/embeddings/word_embeddings is [59, 8], but [59, 16] by the configuration" in told


def test_a_run_logs_only_what_is_bad(good_set, caplog, monkeypatch):
  monkeypatch.setattr(hardware, "memory", lambda: hardware.Memory(1 << 36, 1 << 20))
  vocab = {token: number for number, token in enumerate(VOCAB)}

  def logged(**values):
    caplog.clear()
    values = {"vocab_file": good_set / "vocab.txt", "init_checkpoint": good_set / "model", **values}
    with flag_groups.defined_flags(run_classifier.define_flags):
      command_line.parse(["a.py", *(f"--{name}={value}" for name, value in values.items())])
      start_checks.log_cheap_findings(BertConfig(**CONFIG), vocab)
    assert {record.levelname for record in caplog.records} <= {"WARNING"}
    return [record.getMessage() for record in caplog.records]

  assert logged(max_seq_length=16) == []  # nothing is trained, so memory does not matter
  [memory] = logged(do_train=True, max_seq_length=16)
  assert memory.startswith("warning  Training at batch 32")
  [memory] = logged(do_train=True, max_seq_length=16, gradient_accumulation_steps=4)
  assert memory.startswith("warning  Training at batch 8")
  [case] = logged(do_lower_case=False, max_seq_length=16)
  assert "Give --do_lower_case=True" in case


# ---------------------------------------------------------------------------------------------
# Pieces.


def test_expected_shapes_are_those_of_the_model():
  import tensorflow as tf

  from bert.model.variables import VariableStore, use_store
  from bert.modeling import BertModel

  store = VariableStore()
  with use_store(store):
    BertModel(BertConfig(**CONFIG), False, tf.ones([1, 4], tf.int32))
  made = {name: tuple(v.shape) for name, v in store.trainable_variables.items()}
  assert made == SHAPES


def test_data_are_recognised(good_set, tmp_path):
  names = {
    "records/a.tfrecord": "records",
    "squad/train.json": "squad",
    "conll/train.conll": "conll",
    "tables/train.csv": "table",
    "corpus.txt": "text",
  }
  for name, kind in names.items():
    assert data_checks.recognise(str(good_set / name)) == kind
    # The content tells, except for what only a delimiter makes a table.
    if kind != "table":
      copied = shutil.copy(good_set / name, tmp_path / "data")
      assert data_checks.recognise(str(copied)) == kind


@pytest.mark.parametrize("module", [examination, data_checks, machine_checks, model_checks])
def test_the_examples_of_docstrings(module):
  results = doctest.testmod(module)
  assert results.attempted
  assert not results.failed
