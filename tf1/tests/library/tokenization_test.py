"""The original's tokenizer, for scripts without one of their own."""

import json

import pytest

from bert_tf1.library import tokenization


@pytest.fixture
def vocab_file(tmp_path):
  path = tmp_path / "vocab.txt"
  path.write_text("[UNK]\n[CLS]\n[SEP]\nwant\n##want\n##ed\nwa\nun\nrunn\n##ing\n,\n")
  return str(path)


@pytest.mark.parametrize("casing", ["uncased", "cased"])
def test_tokens_are_the_originals(casing, golden_dir, released_vocab_file):
  tokenizer = tokenization.FullTokenizer(released_vocab_file, do_lower_case=casing == "uncased")
  lines = (golden_dir / "tokenization.jsonl").read_text("utf-8").split("\n")
  records = [json.loads(line) for line in lines if line]
  assert len(records) == 5920
  for record in records:
    assert tokenizer.tokenize(record["text"]) == record[casing], record["text"]


def test_tokens_and_ids(vocab_file):
  tokenizer = tokenization.FullTokenizer(vocab_file)
  tokens = tokenizer.tokenize("UNwant\u00c9d, running")
  assert tokens == ["un", "##want", "##ed", ",", "runn", "##ing"]
  ids = tokenizer.convert_tokens_to_ids(tokens)
  assert ids == tokenization.convert_tokens_to_ids(tokenizer.vocab, tokens) == [7, 4, 5, 10, 8, 9]
  assert tokenizer.convert_ids_to_tokens(ids) == tokens
  assert tokenization.convert_ids_to_tokens(tokenizer.inv_vocab, ids) == tokens
  assert tokenizer.tokenize(b"want" * 60) == ["[UNK]"]
  with pytest.raises(KeyError, match="'other' is not in the vocabulary of 11 entries"):
    tokenizer.convert_tokens_to_ids(["other"])


def test_the_steps():
  basic = tokenization.BasicTokenizer(do_lower_case=False)
  assert basic.tokenize(" \tHeLLo!how\xa0 \n 博士 \u200bÀ\0? ") == [
    *("HeLLo", "!", "how", "博", "士", "À", "?")
  ]
  wordpiece = tokenization.WordpieceTokenizer({"un": 0, "##aff": 1, "##able": 2})
  assert wordpiece.tokenize("unaffable unaffected") == ["un", "##aff", "##able", "[UNK]"]
  assert tokenization.whitespace_tokenize(" two\t words\n") == ["two", "words"]
  assert tokenization.printable_text(b"caf\xc3\xa9 \xff!") == "café !"
  with pytest.raises(ValueError, match="must be str or bytes, not int"):
    tokenization.convert_to_unicode(3)
  assert [f("\n") for f in (tokenization._is_whitespace, tokenization._is_control)] == [True, False]
  assert tokenization._is_punctuation("$")


def test_vocabularies(tmp_path):
  path = tmp_path / "vocab.txt"
  path.write_bytes("\ufeffa \r\n\nb\u2028\n\u2028x\na".encode())
  assert tokenization.load_vocab(str(path)) == {"a": 4, "": 1, "b": 2, "x": 3}
  path.write_bytes(b"a\n\xe9\n")
  with pytest.raises(ValueError, match="line 2: byte 0xe9 is not valid UTF-8"):
    tokenization.load_vocab(str(path))
  path.write_bytes(b"\n\n")
  with pytest.raises(ValueError, match="is empty"):
    tokenization.load_vocab(str(path))


@pytest.mark.parametrize(
  ("lower", "model", "is_right"),
  [
    (True, "uncased_L-12_H-768_A-12", True),
    (False, "uncased_L-12_H-768_A-12", False),
    (True, "multi_cased_L-12_H-768_A-12", False),
    (False, "cased_L-24_H-1024_A-16", True),
    (True, "other", True),
  ],
)
def test_casing_and_checkpoint(lower, model, is_right):
  def validate():
    tokenization.validate_case_matches_checkpoint(lower, f"models/{model}/bert_model.ckpt")

  if is_right:
    validate()
  else:
    with pytest.raises(ValueError, match=f"Pass --do_lower_case={not lower}"):
      validate()
  tokenization.validate_case_matches_checkpoint(lower, None)
