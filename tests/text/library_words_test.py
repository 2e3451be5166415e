"""Word pieces as the library `tokenizers` makes them, held against it.

Alone: python -m pytest tests/text/library_words_test.py (seconds)
"""

import pickle

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.text.library_words import LibraryWordPieces, Normalization

VOCAB = {
  token: index
  for index, token in enumerate(
    ["[UNK]", *"abcdeéè博士.,!?'", *(f"##{char}" for char in "abcdeéè士."), "abc", "##bc", "de"]
  )
}
OPTIONS = [
  Normalization(*bits)
  for bits in ((True, None, True), (True, None, False), (False, True, False), (False, False, True))
]


def library(normalization):
  made = tokenizers.Tokenizer(tokenizers.models.WordPiece(VOCAB, unk_token="[UNK]"))
  made.normalizer = tokenizers.normalizers.BertNormalizer(
    clean_text=True, **normalization._asdict()
  )
  made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
  return made


@pytest.mark.parametrize("normalization", OPTIONS)
def test_each_character_is_normalized_as_there(normalization):
  normalizer = library(normalization).normalizer
  for start in [*range(0, 0x32000, 0x1000), 0xE0000, 0xF0000]:
    codes = (code for code in range(start, start + 0x1000) if not 0xD800 <= code < 0xE000)
    # A mark of the lowest class after each shows which of them change places.
    text = "a".join(chr(code) + "\u0334" for code in codes)
    assert normalization.apply(text) == normalizer.normalize_str(text), hex(start)


def test_each_character_is_cut_as_there():
  pieces, cut = LibraryWordPieces(VOCAB, Normalization(False, False, False)), library(OPTIONS[2])
  cut.normalizer = tokenizers.normalizers.Sequence([])
  for start in range(0, 0x20000, 0x1000):
    codes = (code for code in range(start, start + 0x1000) if not 0xD800 <= code < 0xE000)
    text = "a".join(map(chr, codes))
    expected = [word for word, _ in cut.pre_tokenizer.pre_tokenize_str(text)]
    assert pieces.words(text) == expected, hex(start)


TEXTS = st.text(
  st.sampled_from("abcdeABCéÉ博士.,!? \t\n\u0301\u0323\u0334\u200b\u2028İΣς\U0002b820")
)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS | st.text(), number=st.integers(0, len(OPTIONS) - 1))
def test_any_text_has_the_same_tokens_offsets_and_words(text, number):
  normalization = OPTIONS[number]
  pieces, expected = LibraryWordPieces(VOCAB, normalization), library(normalization).encode(text)
  words = list(pieces.locate_in(text))
  located = [token for word in words for token in word]
  assert pieces.ids(text) == expected.ids
  assert [token for token, _, _ in located] == expected.tokens
  assert [(start, end) for _, start, end in located] == expected.offsets
  assert [number for number, word in enumerate(words) for _ in word] == expected.word_ids


def test_a_long_word_is_unknown():
  pieces = LibraryWordPieces(VOCAB)
  assert [len(pieces.ids(length * "a")) for length in (100, 101)] == [100, 1]
  assert pickle.loads(pickle.dumps(pieces)).ids("abc de") == pieces.ids("abc de")
  with pytest.raises(ValueError, match="lacks its unknown token"):
    LibraryWordPieces({"a": 0})
