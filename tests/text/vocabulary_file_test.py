"""Odd and unusable vocabulary files."""

import pytest

from bert import tokenization
from bert.io import vocabulary_kind
from bert.pretraining import piece_tables, record_settings
from tests.kit.tokenizer_definition import write_vocab

GOOD = "[UNK]\n[CLS]\n[SEP]\nthe\n"


SPECIALS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}


def test_vocabulary_of_a_plain_file(tmp_path, recwarn):
  vocab = tokenization.load_vocab(write_vocab(tmp_path, "[UNK]\n[CLS]\n[SEP]\nthe"))
  assert list(vocab.items()) == [("[UNK]", 0), ("[CLS]", 1), ("[SEP]", 2), ("the", 3)]
  assert not recwarn.list


def test_vocabulary_of_a_released_model(released_vocab_file, recwarn):
  vocab = tokenization.load_vocab(str(released_vocab_file))
  assert len(vocab) == 30522
  assert (vocab["[PAD]"], vocab["[UNK]"], vocab["[CLS]"], vocab["[SEP]"]) == (0, 100, 101, 102)
  assert not recwarn.list


@pytest.mark.parametrize(
  ("content", "expected"),
  [
    ("[UNK]\r\n[CLS]\r\n[SEP]\r\n", SPECIALS),
    (" [UNK]\t\n[CLS]  \n\u00a0[SEP]\n", SPECIALS),
    ("[UNK]\n[CLS]\n[SEP]\na\u2028b\n\x85\x1cc", {**SPECIALS, "a\u2028b": 3, "c": 4}),
    ("[UNK]\n[CLS]\n[SEP]\na\0b\n", {**SPECIALS, "a\0b": 3}),
    ("[UNK]\n[CLS]\n[SEP]\na\rb\n", {**SPECIALS, "ab": 3}),
  ],
  ids=["CRLF", "surrounding blanks", "only newline separates", "NUL", "inner CR"],
)
def test_vocabulary_oddities_the_original_took_silently(tmp_path, recwarn, content, expected):
  assert tokenization.load_vocab(write_vocab(tmp_path, content)) == expected
  assert not recwarn.list


@pytest.mark.parametrize(
  ("content", "expected", "warning"),
  [
    ("\ufeff[UNK]\n[CLS]\n[SEP]\n", SPECIALS, r"byte order mark.*\(line 1\)"),
    ("[UNK]\n\n[CLS]\n[SEP]\n", {"[UNK]": 0, "": 1, "[CLS]": 2, "[SEP]": 3}, r"blank.*\(line 2\)"),
    ("[UNK]\n[CLS]\n[SEP]\n\n", {**SPECIALS, "": 3}, r"blank.*\(line 4\)"),
    ("[UNK]\n[CLS]\n[SEP]\na\n a\n", {**SPECIALS, "a": 4}, r"\(line 5 repeats 'a' of line 4\)"),
    ("[CLS]\na\n", {"[CLS]": 0, "a": 1}, r"missing.*\('\[UNK\]', '\[SEP\]'\)"),
    ("[UNK]\n[CLS]\n[SEP]" + "\n" * 9, {**SPECIALS, "": 10}, r"4, .* line 8 and 3 more\)"),
  ],
  ids=["BOM", "blank line", "blank last line", "duplicate", "no [UNK], [SEP]", "many"],
)
def test_vocabulary_oddities_that_warn(tmp_path, content, expected, warning):
  with pytest.warns(tokenization.VocabularyWarning, match=r"vocab\.txt: .*" + warning) as caught:
    assert tokenization.load_vocab(write_vocab(tmp_path, content)) == expected
  assert len(caught) == 1


def test_an_empty_last_line_changes_no_other_id_and_is_said_once(tmp_path):
  path = write_vocab(tmp_path, GOOD + "[MASK]\n\n \n")
  with pytest.warns(tokenization.VocabularyWarning) as caught:
    vocab = tokenization.FullTokenizer(path).vocab
  assert [str(each.message).partition(": ")[2] for each in caught] == [
    "blank lines take up ids that no word can have; a model whose vocab_size leaves out such last "
    "lines ignores them (line 6, line 7)."
  ]
  assert [vocab[token] for token in ("[UNK]", "[CLS]", "[SEP]", "the")] == [0, 1, 2, 3]
  assert vocab["[MASK]"] == 4
  assert vocabulary_kind.size(vocab) == 5
  assert vocabulary_kind.size({"[UNK]": 0, "": 1, "the": 2}) == 3
  settings = record_settings.RecordSettings(vocab_file=str(path))
  assert settings.facts(vocab)["vocab_size"] == 5
  with pytest.warns(tokenization.VocabularyWarning):
    assert piece_tables.load_tables(settings).random_ids.tolist() == [0, 1, 2, 3, 4]
