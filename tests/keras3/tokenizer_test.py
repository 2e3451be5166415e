"""The tokenizers of an ALBERT and of a RoBERTa, called as in transformers."""

import gzip
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


# ---------------------------------------------------------------------------------------------
# RoBERTa's.


@pytest.fixture
def of_roberta(golden_dir):
  return BertTokenizer.from_pretrained(golden_dir / "roberta" / "tiny")


def test_tokens_of_roberta(of_roberta, tmp_path):
  assert (of_roberta.cls_token_id, of_roberta.sep_token_id, of_roberta.pad_token_id) == (0, 2, 1)
  assert (of_roberta.mask_token, of_roberta.do_lower_case) == ("<mask>", False)
  assert of_roberta(["A", "It"], padding="max_length", max_length=5)["input_ids"] == [
    [0, of_roberta.convert_tokens_to_ids("A"), 2, 1, 1],
    [0, of_roberta.convert_tokens_to_ids("It"), 2, 1, 1],
  ]
  pair = of_roberta("It rains <mask>.", "No")
  assert set(pair["token_type_ids"]) == {0}
  assert of_roberta.decode(pair["input_ids"]) == "<s>It rains<mask>.</s></s>No</s>"
  assert of_roberta.decode(pair["input_ids"], skip_special_tokens=True) == "It rains.No"
  of_roberta.save_pretrained(tmp_path)
  config = json.loads((tmp_path / "tokenizer_config.json").read_text())
  assert (config["tokenizer_class"], config["mask_token"]) == ("RobertaTokenizer", "<mask>")
  assert BertTokenizer.from_pretrained(tmp_path)("It rains <mask>.", "No") == pair


@pytest.mark.ci
def test_recorded_texts_of_roberta(of_roberta, golden_dir):
  with gzip.open(golden_dir / "roberta" / "tokenization.jsonl.gz", "rt") as lines:
    rows = [json.loads(line) for line in lines]
  rows = [row for row in rows if row.get("b") != ""]  # here an empty second text is none
  for row in rows:
    assert of_roberta(row["a"], row.get("b"))["input_ids"] == row["ids"], row


def test_a_damaged_configuration_of_the_tokenizer_is_named(tmp_path):
  (tmp_path / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n")
  for content, message in (("{", "is not valid JSON"), ("[]", "a JSON object is needed, not list")):
    (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(ValueError, match=rf"tokenizer_config\.json:? {message}"):
      BertTokenizer.from_pretrained(tmp_path)


def test_settings_of_transformers_are_kept(tmp_path):
  folders = [tmp_path / "there", tmp_path / "back"]
  folders[0].mkdir()
  (folders[0] / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nüber\nuber\n")
  (folders[0] / "tokenizer_config.json").write_text('{"strip_accents": false}')
  BertTokenizer.from_pretrained(folders[0]).save_pretrained(folders[1])
  for folder in folders:
    assert BertTokenizer.from_pretrained(folder).tokenize("Über") == ["über"]
  (folders[0] / "config.json").write_text('{"tokenizer_class": "HerbertTokenizer"}')
  with pytest.raises(ValueError, match="HerbertTokenizer; this tokenizer is not supported"):
    BertTokenizer.from_pretrained(folders[0])
