"""Tables of characters and decomposition."""

import unicodedata

from hypothesis import given, settings
from hypothesis import strategies as st

from bert import tokenization
from bert.text import characters

COMBINING = "\u0301\u0323\u0307\u0344\u0903\u0902\u302e\u1b44aé가\u0f73"


@given(st.text(COMBINING, max_size=80))
@settings(deadline=None)
def test_own_decomposition_of_long_words_is_nfd(text):
  long_word = text + "b" * characters.LONG_WORD
  assert characters.decompose(long_word) == unicodedata.normalize("NFD", long_word)


def test_the_blanks_to_drop_are_all_there_are():
  """Where `str.split` and the tokenizer disagree about what separates words."""
  dropped = ""
  for char in map(chr, range(0x110000)):
    if not (char.isspace() or unicodedata.category(char) in ("Zs", "Cc", "Cf")):
      continue  # an ordinary character, which stays as it is
    cleaned = tokenization._clean_character(char)
    if char.isspace() and not cleaned:
      dropped += char
      assert not char.isprintable()
    assert char.isspace() or cleaned != " "
  assert dropped == characters.DROPPED_BLANKS
