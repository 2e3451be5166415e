"""The registry of tokenizers: a kind that only this test knows, and the kinds of files."""

import sys
import types

from bert import tokenization
from bert.io import vocabulary_kind
from bert.text import tokenizer_kinds
from bert.text.tokenizer import Tokenizer


class Letters(Tokenizer):
  """One token for each letter."""

  def __init__(self, vocab_file, do_lower_case=True, special_tokens=()):
    super().__init__(vocab_file, {letter: i for i, letter in enumerate("abc")}, special_tokens)

  def tokenize(self, text):
    return list(text)


def test_a_kind_is_a_module_and_a_row(monkeypatch, tmp_path):
  module = types.ModuleType("letters")
  module.TOKENIZER = Letters
  module.read_vocab = lambda path: {"a": 0}
  monkeypatch.setitem(sys.modules, "letters", module)
  monkeypatch.setitem(tokenizer_kinds._MODULES, "letters.txt", "letters")
  monkeypatch.setattr(vocabulary_kind, "saved_vocabulary_name", lambda path: "letters.txt")
  assert tokenization.load_tokenizer(tmp_path / "letters.txt").tokenize("cab") == ["c", "a", "b"]
  assert tokenization.load_vocab(tmp_path / "letters.txt") == {"a": 0}


def test_word_pieces_have_no_module_of_their_own(tmp_path):
  (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\na\n", encoding="utf-8")
  assert tokenizer_kinds.of(tmp_path / "vocab.txt") is None
  found = tokenization.load_tokenizer(tmp_path / "vocab.txt")
  assert type(found) is tokenization.FullTokenizer
  assert tokenizer_kinds.kept_content(tmp_path / "vocab.txt").startswith(b"[UNK]")
  assert tokenizer_kinds.of("30k-clean.model").TOKENIZER.__name__ == "SentencePieceTokenizer"
  assert tokenizer_kinds.of("tokenizer.json").TOKENIZER.__name__ == "BytePairTokenizer"
