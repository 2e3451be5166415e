"""Tests of bert/checks/at_start/cheap_checks.py: what runs check when they start."""

from bert import run_classifier
from bert.checkpoints import reading
from bert.checks import data_checks
from bert.checks.at_start import cheap_checks
from bert.checks.findings import RunUnderCheck, to_text
from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups
from bert.training import hardware
from tests.kit.healthy_run import CONFIG, VOCAB, bad, subject_of


def test_the_cheap_part_reads_no_data_and_no_values(good_set, monkeypatch):
  def refuse(*args):
    raise AssertionError("This is not cheap.")

  monkeypatch.setattr(data_checks, "check_data", refuse)
  monkeypatch.setattr(reading.CheckpointReader, "read", refuse)
  findings = cheap_checks.cheap_findings(subject_of(good_set))
  assert not bad(findings), to_text(findings)
  assert len(findings) > 4


def test_the_cheap_part_takes_what_is_loaded(good_set):
  vocab = {token: number for number, token in enumerate(VOCAB)}
  config = BertConfig(**{**CONFIG, "hidden_size": 16})
  subject = RunUnderCheck(config=config, vocab=vocab, init_checkpoint=str(good_set / "model"))
  told = to_text(bad(cheap_checks.cheap_findings(subject)))
  assert "bert/embeddings/word_embeddings is [59, 8], but [59, 16] by the configuration" in told


def test_a_run_logs_only_what_is_bad(good_set, caplog, monkeypatch):
  monkeypatch.setattr(hardware, "memory", lambda: hardware.Memory(1 << 36, 1 << 20))
  vocab = {token: number for number, token in enumerate(VOCAB)}

  def logged(**values):
    caplog.clear()
    values = {"vocab_file": good_set / "vocab.txt", "init_checkpoint": good_set / "model", **values}
    with flag_groups.defined_flags(run_classifier.define_flags) as flag_values:
      command_line.parse(["a.py", *(f"--{name}={value}" for name, value in values.items())])
      given = flag_values.flag_values_dict()
    cheap_checks.model_is_read(given, BertConfig(**CONFIG), vocab)
    assert {record.levelname for record in caplog.records} <= {"WARNING"}
    return [record.getMessage() for record in caplog.records]

  assert logged(max_seq_length=16) == []  # nothing is trained, so memory does not matter
  [memory] = logged(do_train=True, max_seq_length=16)
  assert memory.startswith("warning  Training at batch 32")
  [memory] = logged(do_train=True, max_seq_length=16, gradient_accumulation_steps=4)
  assert memory.startswith("warning  Training at batch 8")
  [case] = logged(do_lower_case=False, max_seq_length=16)
  assert "Give --do_lower_case=True" in case
