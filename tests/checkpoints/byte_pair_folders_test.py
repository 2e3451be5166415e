"""RoBERTa's vocabulary beside its weights."""

import json
import os
import re

import pytest

from bert.checkpoints import model_files, transformers_folder
from bert.text.byte_pairs import BytePairTokenizer
from tests.kit import byte_pairs


def test_a_folder_of_transformers_has_all_files(tmp_path):
  """Of a vocab.json, too: a tokenizer.json that is one, and the files that older versions read."""
  vocab_file = byte_pairs.write(tmp_path)
  folder = tmp_path / "written"
  folder.mkdir()
  transformers_folder.write_tokenizer(folder, vocab_file, True, 512)
  written = {"merges.txt", "tokenizer.json", "tokenizer_config.json", "vocab.json"}
  assert set(os.listdir(folder)) == written
  texts = ["Hello the <mask>", "and"]
  ids = BytePairTokenizer(vocab_file).texts_to_ids(texts)
  for name in ("tokenizer.json", "vocab.json"):
    assert BytePairTokenizer(folder / name).texts_to_ids(texts) == ids
  assert "do_lower_case" not in json.loads((folder / "tokenizer_config.json").read_text())


def test_the_vocabulary_beside_weights(tmp_path):
  def found():
    return os.path.relpath(model_files.find(tmp_path).vocabulary or "", tmp_path)

  byte_pairs.write(tmp_path)
  assert found() == "vocab.json"
  transformers_folder.write_tokenizer(tmp_path, str(tmp_path / "vocab.json"), True, 512)
  assert found() == "tokenizer.json"
  # Of another kind: not the tokenizer that the weights need.
  (tmp_path / "tokenizer.json").write_text('{"model": {"type": "WordLevel", "vocab": {}}}')
  assert found() == "vocab.json"
  (tmp_path / "vocab.txt").write_text("[PAD]\n")
  assert found() == "vocab.txt"


@pytest.mark.parametrize(
  ("family", "size", "message"),
  [
    ("bert", 999, "a byte-level BPE of 282 tokens, but config.json is of BERT with vocab_size 999"),
    ("roberta", 100, "numbers its tokens up to 281, but config.json has vocab_size 100"),
  ],
)
def test_a_vocabulary_of_another_model(family, size, message):
  vocab = byte_pairs.vocabulary()
  model_files.check_vocabulary_size(vocab, "vocab.json", 282, "config.json", "roberta")
  with pytest.raises(ValueError, match=re.escape(message)):
    model_files.check_vocabulary_size(vocab, "vocab.json", size, "config.json", family)
