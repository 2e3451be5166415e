"""Tests of bert/checks/model_checks.py: planted faults of configuration, vocabulary and weights."""

import shutil

import numpy as np
import pytest

from bert import tokenization
from bert.checkpoints import saving
from bert.checks.findings import to_text
from tests.kit import healthy_run as run
from tests.kit.healthy_run import (
  DATA_FILE,
  LETTERS,
  VOCAB,
  Fault,
  bad,
  bytes_changed,
  config_with,
  diagnose,
  flipped,
  save_checkpoint,
  spoil_nothing,
  write_lines,
)


def vocab_of(tokens):
  return lambda folder: write_lines(folder / "vocab.txt", tokens)


def checkpoint_with(change=lambda tensors: None, **fingerprint):
  return lambda folder: save_checkpoint(folder, change, **fingerprint)


def checkpoint_of(**fingerprint):
  """What a run with this fingerprint leaves."""
  state = {"fingerprint": fingerprint}
  return lambda folder: saving.save(str(folder / "out"), 3, {"a": np.zeros(1)}, state)


def set_nan(tensors):
  tensors["bert/pooler/dense/bias"][3] = np.nan


FAULTS = {
  # Configuration.
  "config is no JSON": Fault(
    bytes_changed("bert_config.json", lambda data: data[:-5]), "not valid JSON", ""
  ),
  "config with a misspelt key": Fault(
    config_with(num_layers=2), "Did you mean num_hidden_layers", "bert_config.json", "warning"
  ),
  "sequences longer than positions": Fault(
    spoil_nothing, "max_position_embeddings is 64", "json", flags={"max_seq_length": 65}
  ),
  # Vocabulary.
  "no vocabulary": Fault(lambda folder: (folder / "vocab.txt").unlink(), "Cannot read voc", ""),
  "a tokenizer that is not supported": Fault(
    lambda folder: (folder / "tokenizer_config.json").write_text(
      '{"tokenizer_class": "BertJapaneseTokenizer"}'
    ),
    "tokenizer_class is BertJapaneseTokenizer; this tokenizer is not supported",
    "",
  ),
  "more tokens than embeddings": Fault(
    vocab_of([*VOCAB, "one", "two"]), "no embedding", "vocab.txt"
  ),
  "far fewer tokens": Fault(
    config_with(vocab_size=len(VOCAB) + 128), "it may be another model's", "vocab.txt"
  ),
  "far fewer tokens, of a model without weights": Fault(
    config_with(vocab_size=len(VOCAB) + 128),
    "it may be another model's",
    "vocab.txt",
    "warning",
    {"init_checkpoint": None},
  ),
  "a token twice": Fault(
    vocab_of([*VOCAB[:30], "a", *VOCAB[31:]]), "is already in line 8", "vocab.txt:31", "warning"
  ),
  "a blank line": Fault(
    vocab_of([*VOCAB[:30], "", *VOCAB[31:]]), "The line is blank", "vocab.txt:31", "warning"
  ),
  "no [SEP]": Fault(vocab_of([*VOCAB[:3], "[sep]", *VOCAB[4:]]), "[SEP] is missing", "vocab.txt"),
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
    config_with(num_hidden_layers=1), "1 layer more", "model.ckpt-0"
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
  # What lies in the output folder.
  "another model is there": Fault(
    checkpoint_of(hidden_size=16),
    "was trained with other settings than this run: hidden_size was 16, now 8. Choose another",
    "model.ckpt-3",
  ),
  "another task is there": Fault(
    checkpoint_of(task_name="mrpc", problem_type="classification"),
    "task_name was 'mrpc', now 'csv'",
    "model.ckpt-3",
  ),
  "another task is there, and its data cannot be read": Fault(
    lambda folder: (
      checkpoint_of(task_name="mrpc")(folder),
      write_lines(folder / "tables/train.csv", ["quality,text", "1,ada"]),
    ),
    "task_name was 'mrpc', now 'csv'",
    "model.ckpt-3",
  ),
  "other labels are there": Fault(
    checkpoint_of(task_name="csv", labels=["no", "yes"]),
    "labels was ['no', 'yes'], now ['0', '1']",
    "model.ckpt-3",
  ),
  "a run of another script is there": Fault(
    checkpoint_of(task_name="mrpc", labels=["0", "1"]),
    "task_name was 'mrpc', now 'squad'",
    "model.ckpt-3",
    flags={"data": "squad"},
  ),
  "other entities are there": Fault(
    checkpoint_of(task_name="ner", labels=["O"]),
    "labels was ['O'], now ['O', 'B-PER', 'I-PER']",
    "model.ckpt-3",
    flags={"data": "conll"},
  ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(folder, name):
  run.assert_found(FAULTS[name], folder)


def test_a_run_that_would_go_on_is_told(folder):
  vocabulary = tokenization.vocabulary_hash({token: i for i, token in enumerate(VOCAB)})
  fingerprint = {"hidden_size": 8, "vocabulary": vocabulary, "do_lower_case": True}
  fingerprint |= {"task_name": "csv", "labels": ["0", "1"]}
  saving.save(str(folder / "out"), 3, {"a": np.zeros(1)}, {"fingerprint": fingerprint})
  findings = diagnose(folder)
  assert not bad(findings), to_text(findings)
  assert "would resume this checkpoint" in to_text(findings)
