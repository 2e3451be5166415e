"""ELECTRA's records: the original's, and those of any number of processes.

Alone: python -m pytest tests/pretraining/electra_examples_test.py
"""

import random

import numpy as np
import pytest

from bert.pretraining import electra_examples
from tests.kit.paths import SAMPLE_TEXT
from tests.kit.pretraining_records import SCRIPT, create, flags_for, manifest_of, recorded, sha256
from tests.kit.script_runs import values_in

FEATURES = {"input_ids", "input_mask", "segment_ids"}


def lines(path, first, last):
  """Lines `first` to `last` of a text, counted from 1."""
  return "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[first - 1 : last])


# Name -> vocabulary, flags. The texts: `corpus_of`.
GOLDEN = {
  "sample_128": ("released", {"max_seq_length": 128, "random_seed": 12345}),
  "sample_32": ("released", {"max_seq_length": 32, "random_seed": 1}),
  "sample_32_cased": ("released", {"max_seq_length": 32, "random_seed": 1, "do_lower_case": False}),
  "sample_32_accents": (
    "released",
    {"max_seq_length": 32, "random_seed": 1, "strip_accents": False},
  ),
  "three_files_64": ("released", {"max_seq_length": 64, "random_seed": 7}),
  "wiki_64": ("released", {"max_seq_length": 64, "random_seed": 12345}),
  "tiny_48": ("tiny", {"max_seq_length": 48, "random_seed": 3}),
}


@pytest.fixture
def corpus_of(data_dir, tmp_path):
  """A folder with the text of a recording."""
  sample, wiki = (data_dir / "corpus" / name for name in ("sample_text.txt", "wikitext2_valid.txt"))

  def write(name):
    texts = {"a.txt": sample.read_text(encoding="utf-8")}
    if name == "three_files_64":
      texts = {"a.txt": lines(wiki, 1, 40), "b.txt": texts["a.txt"], "c.txt": lines(wiki, 900, 930)}
    elif name in ("wiki_64", "tiny_48"):
      texts = {"a.txt": lines(wiki, 1, 800)}
    folder = tmp_path / "text"
    folder.mkdir()
    for file, text in texts.items():
      (folder / file).write_text(text, encoding="utf-8")
    return folder / "*"

  return write


@pytest.mark.parametrize("name", GOLDEN)
def test_records_of_the_original(name, golden_dir, corpus_of, released_vocab_file, tmp_path):
  vocabulary, flags = GOLDEN[name]
  vocab_file = released_vocab_file
  if vocabulary == "tiny":
    vocab_file = golden_dir / "electra" / "tiny_vocab.txt"
  create(tmp_path / "out", corpus_of(name), format="electra", vocab_file=vocab_file, **flags)
  expected = recorded(golden_dir / "electra" / "pretraining_data" / f"{name}.jsonl.gz")
  found = values_in(tmp_path / "out")
  assert len(found) == len(expected)
  for ours, original in zip(found, expected, strict=True):
    assert ours == original
