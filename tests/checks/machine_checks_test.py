"""Tests of bert/checks/machine_checks.py: versions, memory, disk, devices."""

import shutil

import pytest

from bert.checks import machine_checks
from bert.checks.findings import RunUnderCheck, to_text
from bert.io import installation
from bert.model.configuration import BertConfig
from bert.training import hardware
from tests.kit import healthy_run as run
from tests.kit.healthy_run import CONFIG, VOCAB, Fault, bad


def test_versions_that_clash_are_found(monkeypatch):
  installed = machine_checks._version
  changed = {"tensorflow-text": "2.19.0", "setuptools": "82.0.0", "tf-keras": None}
  monkeypatch.setattr(machine_checks, "_version", lambda name: changed.get(name, installed(name)))
  monkeypatch.setattr(machine_checks.platform, "python_version", lambda: "3.9.1")
  told = to_text(bad(machine_checks.check_versions(RunUnderCheck())))
  assert "This is Python 3.9.1, but >=3.10" in told
  assert "setuptools 82.0.0 is installed, but this project needs <82" in told
  assert "tf-keras is not installed" in told
  assert "tensorflow-text 2.19.0, tf-keras None belong to different releases" in told


def test_what_a_library_asks_for_is_checked_too(monkeypatch):
  installed = machine_checks._version
  changed = {"numpy": "1.0.0"}
  monkeypatch.setattr(installation, "requirements", lambda: (">=3.10", []))
  monkeypatch.setattr(machine_checks, "_version", lambda name: changed.get(name, installed(name)))
  told = to_text(bad(machine_checks.check_versions(RunUnderCheck())))
  assert "numpy 1.0.0 is installed, but tensorflow needs" in told


def test_another_distribution_with_a_package_bert_is_named(monkeypatch):
  monkeypatch.setattr(installation, "namesakes", lambda: ["bert-for-tf2"])
  [finding] = machine_checks.check_namesakes(RunUnderCheck())
  assert finding.level == "error"
  assert "bert-for-tf2 also installs" in finding.what
  assert "pip uninstall bert-for-tf2" in finding.remedy


def test_too_little_memory_is_found(monkeypatch):
  base = BertConfig.from_name("uncased_L-12_H-768_A-12")

  def told(total, available, **changed):
    monkeypatch.setattr(hardware, "memory", lambda: hardware.Memory(total << 30, available << 30))
    subject = RunUnderCheck(config=base, max_seq_length=512, train_batch_size=32, **changed)
    [finding] = machine_checks.check_memory(subject)
    return finding

  assert told(64, 32).level == "ok"
  assert told(64, 8).level == "warning"
  assert told(64, 8).remedy.startswith("Lower --train_batch_size")
  assert told(1, 1).level == "error"
  monkeypatch.setattr(hardware, "memory", lambda: None)
  [finding] = machine_checks.check_memory(RunUnderCheck(config=base))
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
    [finding] = machine_checks.check_disk(
      RunUnderCheck(config=base, output_dir=str(tmp_path / "a/b"))
    )
    return finding.level

  assert [level(100), level(4), level(1)] == ["ok", "warning", "error"]


def test_an_output_folder_that_is_a_file_is_found(folder):
  fault = Fault(
    lambda folder: (folder / "out").write_text(""),
    "Nothing can be written here (Not a directory)",
    "out",
  )
  run.assert_found(fault, folder)


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
  told = to_text(bad(machine_checks.check_devices(RunUnderCheck())))
  assert "1 GPU(s) that TensorFlow does not see" in told


@pytest.mark.parametrize("place", ["out", "out/deeper"])
def test_a_folder_that_cannot_be_written_is_one_finding(tmp_path, place):
  """Not also a count of the space in it, which is 0 MiB in places such as /proc."""
  (tmp_path / "out").touch()
  subject = RunUnderCheck(output_dir=str(tmp_path / place), config=BertConfig(vocab_size=10))
  [finding] = machine_checks.check_disk(subject)
  assert (finding.level, finding.where) == ("error", str(tmp_path / "out"))
  assert finding.what == "Nothing can be written here (Not a directory)."
