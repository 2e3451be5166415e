"""Tests of `samples/`: the files are what their script writes, in MRPC's layout, without leaks.

Alone: `python -m pytest tests/system/samples_test.py -q` (a second, no TensorFlow).
"""

import json
import shutil
import subprocess
import sys

import pytest

from tests.kit.paths import SAMPLES


def read_rows(name):
  lines = (SAMPLES / "MRPC" / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
  return [line.split("\t") for line in lines]


def test_the_script_writes_these_very_files(tmp_path):
  for name in ("make_samples.py", "sample_text.txt"):
    shutil.copy(SAMPLES / name, tmp_path)
  subprocess.run([sys.executable, str(tmp_path / "make_samples.py")], check=True)
  for name in ("vocab.txt", "MRPC/train.tsv", "MRPC/dev.tsv", "MRPC/test.tsv"):
    assert (tmp_path / name).read_bytes() == (SAMPLES / name).read_bytes(), name


@pytest.mark.parametrize(("name", "size"), [("train", 4000), ("dev", 500), ("test", 200)])
def test_layout_is_that_of_glue(name, size):
  header, *rows = read_rows(name)
  first = "index" if name == "test" else "Quality"
  assert header == [first, "#1 ID", "#2 ID", "#1 String", "#2 String"]
  assert len(rows) == size
  assert all(len(row) == 5 for row in rows)
  if name == "test":
    assert [row[0] for row in rows] == [str(i) for i in range(size)]
  else:
    share = sum(row[0] == "1" for row in rows) / size
    assert {row[0] for row in rows} == {"0", "1"}
    assert 0.53 < share < 0.6


def test_no_sentence_and_no_id_occurs_twice():
  rows = [row for name in ("train", "dev", "test") for row in read_rows(name)[1:]]
  sentences = [sentence for row in rows for sentence in row[3:]]
  ids = [number for row in rows for number in row[1:3]]
  assert len(set(sentences)) == len(sentences)
  assert len(set(ids)) == len(ids)


def test_vocabulary_covers_the_samples_and_fits_the_model(tokenizer):
  config = json.loads((SAMPLES / "bert_config.json").read_text(encoding="utf-8"))
  lines = (SAMPLES / "vocab.txt").read_text(encoding="utf-8").splitlines()
  assert lines[0] == "[PAD]"
  assert config["vocab_size"] == len(lines) == len(set(lines))
  assert config["hidden_size"] % config["num_attention_heads"] == 0
  texts = [sentence for row in read_rows("train")[1:200] for sentence in row[3:]]
  texts += (SAMPLES / "sample_text.txt").read_text(encoding="utf-8").split("\n")
  assert not [text for text in texts if "[UNK]" in tokenizer.tokenize(text)]
  assert tokenizer.tokenize("Zyx qwv!") == ["z", "##y", "##x", "q", "##w", "##v", "!"]


def test_pairs_fit_the_demonstration(tokenizer):
  longest = max(
    len(tokenizer.tokenize(row[3])) + len(tokenizer.tokenize(row[4])) + 3
    for name in ("train", "dev", "test")
    for row in read_rows(name)[1:]
  )
  assert longest <= 64


def test_text_has_documents_and_traps():
  text = (SAMPLES / "sample_text.txt").read_text(encoding="utf-8")
  documents = text.strip("\n").split("\n\n")
  assert len(documents) == 7
  assert all(len(document.split("\n")) >= 7 for document in documents)
  for trap in "\u0301\u00a0\u3000\u00ad\u200b\u2028茶":
    assert trap in text


def test_all_is_small():
  assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) < 1 << 20
