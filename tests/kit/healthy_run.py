"""A small run in which nothing is wrong, to plant faults in and see them found.

good = healthy_run.write(folder)  # configuration, vocabulary, checkpoint, and data of each kind
healthy_run.assert_found(Fault(plant, said, where), copy_of_good)
"""

import json
import pathlib
import shutil
import types
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from bert import doctor, tokenization
from bert.checkpoints import saving
from bert.checks import findings as examination
from bert.checks.findings import RunUnderCheck, to_text
from bert.io import installation, record_files
from bert.model import variable_shapes
from bert.model.configuration import BertConfig
from bert.pretraining import record_output
from bert.training import hardware
from tests.kit import tiny_bert

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCAB = [*SPECIAL, ".", ",", *LETTERS, *(f"##{letter}" for letter in LETTERS)]
CONFIG = tiny_bert.sizes(len(VOCAB), 8, 2, 16, 64, type_vocab_size=2)
SHAPES = variable_shapes.encoder_shapes(BertConfig(**CONFIG))
DATA_FILE = "model/model.ckpt-0.data-00000-of-00001"
WORDS = ["ada", "bob", "cat", "dog", "elk", "fig", "gnu", "hen"]
TEXTS = [f"{a} {b} {a}{b}." for a in WORDS for b in WORDS]  # 64 of 9 to 11 pieces
LENGTH, PREDICTIONS = 16, 3


def write(folder: pathlib.Path) -> pathlib.Path:
  """Writes the files of a run without faults, and data of each kind; returns the folder."""
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
  saving.save(str(folder / "model"), 0, tensors, {"fingerprint": fingerprint})


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
  with record_output.RecordFiles([path], facts) as files:
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


def pretend_large_machine(monkeypatch) -> None:
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


def subject_of(folder, data="tables", **changed) -> RunUnderCheck:
  values = {
    "bert_config_file": "bert_config.json",
    "vocab_file": "vocab.txt",
    "init_checkpoint": "model",
    "output_dir": str(folder / "out"),
    **DATA[data],
    **changed,
  }
  values = {k: str(folder / v) if k in PATHS and v else v for k, v in values.items()}
  return RunUnderCheck(**values)


def diagnose(folder, data="tables", **changed) -> list[examination.Finding]:
  # Other distributions are looked for by `machine_checks_test.py`; it takes half a second.
  with mock.patch.object(installation, "namesakes", list):
    return list(doctor.diagnose(subject_of(folder, data, **changed)))


def bad(findings) -> list[examination.Finding]:
  return [finding for finding in findings if finding.level in ("warning", "error")]


class Fault(NamedTuple):
  """What is planted, and what has to be said about it."""

  plant: Callable[[pathlib.Path], Any]  # spoils the folder
  said: str  # in the finding
  where: str  # the end of its place
  level: str = "error"  # of the finding
  flags: Mapping[str, Any] = types.MappingProxyType({})  # of the run


def assert_found(fault: Fault, folder: pathlib.Path) -> None:
  """Plants a fault, and checks that it is reported as it should be."""
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


def bytes_changed(name, change):
  def plant(folder):
    path = folder / name
    path.write_bytes(change(path.read_bytes()))

  return plant


def flipped(data: bytes) -> bytes:
  middle = len(data) // 2
  return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]


def spoil_nothing(folder):
  del folder


def config_with(**changed):
  return lambda folder: write_json(folder / "bert_config.json", {**CONFIG, **changed})
