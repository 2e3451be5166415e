"""The tokenizer's steps once more, slow and literal, and texts at which an implementation may slip.

assert tokenizer.tokenize(text) == defined_tokens(text, do_lower_case, tokenizer.vocab)
"""

import pathlib
import unicodedata

from hypothesis import strategies as st

VOCABULARY = (
  "[UNK] [CLS] [SEP] [MASK] want ##want ##ed wa un runn ##ing , ##n e ##e i ##i a ##a . ' [ ] mask "
  "博 σ ##ς john johan ##son s house \u1112 ##\u1161 ##\u11ab ##σ x ##x"
)
PIECES = VOCABULARY.split()

# Letters and punctuation; blanks of all kinds, also those at which `str.split` splits and BERT does
# not; controls, accents with several combining classes (also ones that are no accents), expanding
# and contextual lower case, decompositions (into punctuation too), Chinese and its neighbours, lone
# surrogates.
TRAPS = (
  "aAbBeEiInxX12,.!'-_$#[]~^ \t\n\r\0\x01\x0b\x0c\x1b\x1c\x1d\x1e\x1f\x7f\x85\xa0\xad\u1680\u180e"
  "\u2000\u200b\u200d\u2028\u2029"
  "\u202f\u205f\u3000\ufeff\ufffd\u0301\u0323\u0307\u0903\u093c\u0902\u302e\u1b44\u1baa\U0001d165"
  "éÅ\u0130\u0131ßΣσςΆ\u1fef\u037e\u0344\u0f73\u1e9b\u0323가한\u1100\u1161\u11a8"
  "博士中㐀\u4dc0\u9fff\ua000\uf900\ufb00\U00020000\U0002b820\U0002ceb0\U0002ebe0\U0002f800\u3042アﾊ"
  "१Ⅷ²½\U0001f600\ufe0f\U000e0041\U00010400\ue000\ud800\udfff\U0010ffff«»\u2014\u166d\u1734\ua9bd"
)
any_text = st.text(
  st.one_of(st.sampled_from(TRAPS), st.characters(exclude_categories=[])), max_size=60
)
_word_like = st.sampled_from(["unwanted", "Un", "running!", "[MASK]", "X1", "a" * 70, "b" * 201])
mixed_text = st.lists(st.one_of(any_text, _word_like), max_size=6).map(" ".join)


def write_vocab(folder: pathlib.Path, content: str | bytes) -> pathlib.Path:
  """Writes `vocab.txt`."""
  path = folder / "vocab.txt"
  path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
  return path


class OneCharacterPieces(dict):
  """A vocabulary that has every single character, so that tokens show what steps 1 to 5 made."""

  def __init__(self):
    super().__init__({"##x": 0})  # gives the length of the longest piece

  def __contains__(self, piece):
    return len(piece) == 1 or (len(piece) == 3 and piece.startswith("##"))


def defined_basic_tokens(text, do_lower_case):
  cleaned = ""
  for char in text:
    category, code = unicodedata.category(char), ord(char)
    if char in "\t\n\r" or category == "Zs":
      cleaned += " "
    elif code in (0, 0xFFFD) or category in ("Cc", "Cf"):
      continue
    elif (
      0x4E00 <= code <= 0x9FFF
      or 0x3400 <= code <= 0x4DBF
      or 0x20000 <= code <= 0x2A6DF
      or 0x2A700 <= code <= 0x2B73F
      or 0x2B740 <= code <= 0x2B81F
      or 0x2B820 <= code <= 0x2CEAF
      or 0xF900 <= code <= 0xFAFF
      or 0x2F800 <= code <= 0x2FA1F
    ):
      cleaned += " " + char + " "
    else:
      cleaned += char
  tokens = []
  for word in cleaned.split():
    if do_lower_case:
      word = unicodedata.normalize("NFD", word.lower())
      word = "".join(char for char in word if unicodedata.category(char) != "Mn")
    spaced = ""
    for char in word:
      is_symbol = char in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
      is_punctuation = is_symbol or unicodedata.category(char)[0] == "P"
      spaced += f" {char} " if is_punctuation else char
    tokens += spaced.split()
  return tokens


def defined_wordpiece_tokens(word, vocab):
  if len(word) > 200:
    return ["[UNK]"]
  tokens, rest = [], word
  while rest:
    candidates = [rest[:end] for end in range(len(rest), 0, -1)]
    known = [part for part in candidates if ("##" if tokens else "") + part in vocab]
    if not known:
      return ["[UNK]"]
    tokens.append(("##" if tokens else "") + known[0])
    rest = rest[len(known[0]) :]
  return tokens


def defined_tokens(text, do_lower_case, vocab):
  words = defined_basic_tokens(text, do_lower_case)
  return [piece for word in words for piece in defined_wordpiece_tokens(word, vocab)]
