"""What the files of transformers beside a vocabulary state, in every reader of a directory.

Alone: python -m pytest tests/io/tokenizer_settings_test.py (seconds; no TensorFlow)
"""

import itertools
import json

import pytest

from bert import tokenization
from bert.checkpoints import model_files, transformers_folder
from bert.io import tokenizer_settings, vocabulary_kind
from bert.text import byte_pairs, tokenizer_json, tokenizer_kinds
from bert.transformers import AutoTokenizer

TOKENS = [
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ich", "Ich", "möchte", "mochte", "Ö", "ö", "o"),
  *("##l", "福", "島", "##島", "、", "Öl", ".", "über", "Uber", "uber", "Über", "ΑΣ", "e", "é"),
]
TEXT = "Ich möchte Öl. Über 福島、é"
STATED = ("do_lower_case", "strip_accents", "tokenize_chinese_chars")


def write_model(folder, config=None, normalizer=None, is_json=False, **model_config):
  """A directory with the vocabulary in one of its forms."""
  folder.mkdir(exist_ok=True)
  vocab_file = folder / "vocab.txt"
  vocab_file.write_text("\n".join(TOKENS) + "\n", encoding="utf-8")
  if normalizer is not None or is_json:
    content = tokenizer_json.whole(vocab_file, True)
    content["normalizer"] |= normalizer or {}
    (folder / "tokenizer.json").write_text(json.dumps(content))
  if is_json:
    vocab_file.unlink()
  if config is not None:
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
  (folder / "config.json").write_text(json.dumps({"model_type": "bert", **model_config}))
  return folder


def expected_ids(lower, strip, chinese):
  library = pytest.importorskip("tokenizers")
  vocab = {token: index for index, token in enumerate(TOKENS)}
  made = library.BertWordPieceTokenizer(
    vocab, lowercase=lower, strip_accents=strip, handle_chinese_chars=chinese
  )
  return made.encode(TEXT, add_special_tokens=False).ids


@pytest.mark.parametrize("values", itertools.product((True, False), (None, True, False), (1, 0)))
def test_every_reader_splits_words_as_the_library(tmp_path, values):
  lower, strip, chinese = values[0], values[1], bool(values[2])
  config = dict(zip(STATED, (lower, strip, chinese), strict=True))
  names = ("lowercase", "strip_accents", "handle_chinese_chars")
  normalizer = dict(zip(names, (lower, strip, chinese), strict=True))
  expected = expected_ids(lower, strip, chinese)
  stated = write_model(tmp_path / "stated", config)
  folders = [
    stated,
    write_model(tmp_path / "json", None, normalizer, is_json=True),
    write_model(tmp_path / "both", {}, normalizer),
    write_model(tmp_path / "overruled", config, {"lowercase": not lower, "strip_accents": True}),
  ]
  (tmp_path / "copy").mkdir()
  for name, content in tokenizer_kinds.kept_files(stated / "vocab.txt", with_case=True).items():
    (tmp_path / "copy" / name).write_bytes(content)
  (tmp_path / "written").mkdir()
  path = folders[1] / "tokenizer.json"
  transformers_folder.write_tokenizer(tmp_path / "written", path, lower, 16)
  # In a directory without their sidecar, both have all that is stated.
  for folder in (*folders, tmp_path / "copy", tmp_path / "written"):
    vocab_file = model_files.need_vocabulary(folder)
    assert tokenizer_settings.in_folder(folder).do_lower_case is not (not lower)
    tokenizer = tokenization.load_tokenizer(vocab_file)
    assert tokenizer.text_to_ids(TEXT) == expected
    located = tokenizer.tokenize_with_offsets(TEXT)
    assert tokenizer.convert_tokens_to_ids([each.token for each in located]) == expected
    made = tokenizer_json.whole(vocab_file, lower)["normalizer"]
    assert {name: made[name] for name in names} == normalizer
    if folder.name == "copy":
      continue  # whose vocabulary is this project's own
    other = AutoTokenizer.from_pretrained(folder)
    assert other(TEXT, add_special_tokens=False)["input_ids"] == expected


def test_word_pieces_of_a_tokenizer_json(tmp_path):
  folder = write_model(tmp_path / "model", is_json=True)
  vocab_file = model_files.need_vocabulary(folder)
  assert vocab_file == str(folder / "tokenizer.json")
  assert list(tokenization.load_vocab(vocab_file)) == TOKENS
  assert vocabulary_kind.saved_vocabulary_name(vocab_file) == "vocab.txt"
  assert vocabulary_kind.vocab_txt(vocab_file).decode().split("\n") == [*TOKENS, ""]


REFUSED = {
  "mecab": ({"tokenizer_class": "BertJapaneseTokenizer"}, {}, "BertJapaneseTokenizer"),
  "in_config": ({}, {"tokenizer_class": "HerbertTokenizerFast"}, "HerbertTokenizerFast"),
  "pieces": (None, {"tokenizer_class": "XLMRobertaTokenizer"}, "XLMRobertaTokenizer"),
  "accents": ({"keep_accents": True}, {}, "keep_accents is true"),
  "model": ({}, {"model_type": "mpnet"}, "model_type is mpnet, which has MPNetTokenizer"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_tokenizer_that_is_not_supported_is_refused(tmp_path, case):
  config, model_config, message = REFUSED[case]
  folder = write_model(tmp_path / "model", config, **model_config)
  vocab_file = str(folder / "vocab.txt")
  for read in (
    lambda: tokenization.load_tokenizer(vocab_file),
    lambda: tokenizer_kinds.kept_files(vocab_file),
    lambda: tokenizer_json.whole(vocab_file, True),
  ):
    with pytest.raises(ValueError, match=f"{message}.* not supported"):
      read()
  # Without the vocabulary the reason is the same.
  (folder / "vocab.txt").unlink()
  with pytest.raises(ValueError, match=message):
    model_files.need_vocabulary(folder)


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"normalizer": {"type": "Lowercase"}}, "normalizer is Lowercase"),
    ({"normalizer": None}, "normalizer is None"),
    ({"normalizer": {"type": "BertNormalizer", "clean_text": False}}, "clean_text is False"),
    ({"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer is Whitespace"),
  ],
)
def test_other_steps_of_a_tokenizer_json_are_refused(tmp_path, changes, message):
  folder = write_model(tmp_path / "model", None, {})
  path = folder / "tokenizer.json"
  path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
  with pytest.raises(tokenization.VocabularyError, match=f"{message}; this tokenizer is not"):
    tokenization.load_tokenizer(folder / "vocab.txt")


def test_a_unigram_model_without_its_pieces_is_refused(tmp_path):
  content = {"model": {"type": "Unigram", "vocab": [["<unk>", 0.0]]}}
  (tmp_path / "tokenizer.json").write_text(json.dumps(content))
  with pytest.raises(ValueError, match=r"tokenizer\.json has a model of the type Unigram"):
    model_files.need_vocabulary(tmp_path)


def test_pieces_in_a_vocab_txt_are_refused(tmp_path):
  tokens = [*TOKENS[:5], *(f"▁{token}" for token in TOKENS[5:])]
  (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
  for read in (tokenization.load_vocab, tokenization.load_tokenizer):
    with pytest.raises(tokenization.VocabularyError, match=r"KoBERT.*not supported"):
      read(tmp_path / "vocab.txt")
  (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "KoBertTokenizer"}')
  with pytest.raises(tokenization.VocabularyError, match="is KoBertTokenizer; this tokenizer is"):
    tokenization.load_vocab(tmp_path / "vocab.txt")


def test_bpe_of_characters_is_refused(tmp_path):
  vocab = {token: i for i, token in enumerate(["<s>", "<pad>", "</s>", "<unk>", "a", "a</w>"])}
  (tmp_path / "vocab.json").write_text(json.dumps(vocab))
  (tmp_path / "merges.txt").write_text("#version: 0.2\na a</w>\n")
  with pytest.raises(tokenization.VocabularyError, match="HerBERT's: this tokenizer is not"):
    tokenization.load_tokenizer(tmp_path / "vocab.json")


@pytest.mark.parametrize("value", [True, False, None])
def test_a_space_before_the_first_word(tmp_path, monkeypatch, value):
  monkeypatch.setattr(byte_pairs.byte_pair_files, "_read", lambda path: PAIRS)
  config = {} if value is None else {"add_prefix_space": value}
  (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
  found = byte_pairs.read(tmp_path / "tokenizer.json").add_prefix_space
  assert found is (PAIRS.add_prefix_space if value is None else value)


PAIRS = byte_pairs.byte_pair_files.BytePairs({}, [], [], True, "tokenizer.json")
