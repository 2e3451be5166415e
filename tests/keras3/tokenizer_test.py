"""The tokenizer of an ALBERT, called as in transformers.

Alone: python -m pytest tests/keras3/tokenizer_test.py
"""

import json
import pickle
import shutil

import pytest

from bert.keras3.tokenizer import BertTokenizer


@pytest.fixture
def tokenizer(golden_dir):
  return BertTokenizer(golden_dir / "albert" / "tiny_spm.model", model_max_length=64)


def test_texts_to_ids_and_back(tokenizer):
  encoded = tokenizer(["The game of the [MASK].", "of"], ["and", "the"], padding=True)
  assert encoded["input_ids"][1][:5] == [2, 17, 3, 14, 3]
  assert 4 in encoded["input_ids"][0]
  text = tokenizer.decode(encoded["input_ids"][0])
  assert text == "[CLS] the game of the [MASK] . [SEP] and [SEP]"
  assert tokenizer.decode(encoded["input_ids"][1], skip_special_tokens=True) == "of the"


def test_special_tokens(tokenizer):
  assert (tokenizer.unk_token, tokenizer.unk_token_id) == ("<unk>", 1)
  assert (tokenizer.pad_token, tokenizer.pad_token_id) == ("<pad>", 0)
  assert (tokenizer.mask_token, tokenizer.mask_token_id) == ("[MASK]", 4)
  assert tokenizer.convert_tokens_to_ids("no such piece") == 1
  assert pickle.loads(pickle.dumps(tokenizer)).cls_token_id == 2


def test_a_folder_as_transformers_has_it(tokenizer, golden_dir, tmp_path):
  tokenizer.save_pretrained(tmp_path)
  assert sorted(path.name for path in tmp_path.iterdir()) == [
    "spiece.model",
    "tokenizer_config.json",
  ]
  config = json.loads((tmp_path / "tokenizer_config.json").read_text())
  assert config["tokenizer_class"] == "AlbertTokenizer"
  assert config["model_max_length"] == 64
  config["do_lower_case"] = False
  (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
  cased = BertTokenizer.from_pretrained(tmp_path)
  assert cased.tokenize("The of") != tokenizer.tokenize("The of")
  shutil.rmtree(tmp_path)
