"""Tests of `samples/`: the files are what their script writes, in MRPC's layout, without leaks.

Alone: `python -m pytest tests/system/samples_test.py -q` (a second, no TensorFlow).
"""

import json
import shutil
import subprocess
import sys

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


def test_all_is_small():
  assert sum(path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()) < 1 << 20
