"""Which tokenizer reads which vocabulary file."""

from bert import tokenization
from bert.text import tokenizer_kinds


def test_word_pieces_have_no_module_of_their_own(tmp_path):
  (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\na\n", encoding="utf-8")
  assert tokenizer_kinds.of(tmp_path / "vocab.txt") is None
  found = tokenization.load_tokenizer(tmp_path / "vocab.txt")
  assert type(found) is tokenization.FullTokenizer
  assert tokenizer_kinds.kept_content(tmp_path / "vocab.txt").startswith(b"[UNK]")
  assert tokenizer_kinds.of("30k-clean.model").__name__ == "SentencePieceTokenizer"
  assert tokenizer_kinds.of("tokenizer.json").__name__ == "BytePairTokenizer"
