"""Unicode for tokenizers: Chinese characters, tables of characters, canonical decomposition."""

import itertools
import re
import unicodedata
from collections.abc import Callable

LONG_WORD = 256  # characters; from here on `decompose` protects against slow normalization

# First and last code point of each block of Chinese characters; kana and Hangul are not among them.
CHINESE_RANGES = (
  (0x4E00, 0x9FFF),
  (0x3400, 0x4DBF),
  (0x20000, 0x2A6DF),
  (0x2A700, 0x2B73F),
  (0x2B740, 0x2B81F),
  (0x2B820, 0x2CEAF),
  (0xF900, 0xFAFF),
  (0x2F800, 0x2FA1F),
)

_SURROGATES = re.compile("[\ud800-\udfff]")

# Where `str.split` splits, the tokenizer drops these like any control character.
DROPPED_BLANKS = "\x0b\x0c\x1c\x1d\x1e\x1f\x85"


class CharacterTable(dict):
  """For `str.translate`: calls `function` once per character, then remembers the result."""

  def __init__(self, function: Callable[[str], str]):
    super().__init__()
    self._function = function

  def __missing__(self, code_point: int) -> str:
    result = self[code_point] = self._function(chr(code_point))
    return result


def _without_accents(char: str) -> str:
  return "".join(c for c in unicodedata.normalize("NFKD", char) if not unicodedata.combining(c))


# NFKD without combining characters. By characters, as canonical order moves only what is dropped;
# so it is linear in the length of a text, where `unicodedata.normalize` sorts a pile of accents.
WITHOUT_ACCENTS = CharacterTable(_without_accents)


def decompose(text: str) -> str:
  """Computes `unicodedata.normalize("NFD", text)`, in n log n time even for a pile of accents.

  Canonical order (Unicode Standard, D108-D109) is a stable sort of each run of combining
  characters by combining class. CPython sorts by insertion, which would take hours for a million
  accents in a row.
  """
  if len(text) < LONG_WORD:
    return unicodedata.normalize("NFD", text)
  chars = itertools.chain.from_iterable(unicodedata.normalize("NFD", char) for char in text)
  ordered: list[str] = []
  for _, run in itertools.groupby(chars, key=lambda char: unicodedata.combining(char) > 0):
    ordered += sorted(run, key=unicodedata.combining)
  return "".join(ordered)


def convert_to_unicode(text: str | bytes) -> str:
  """Returns `text` as `str`, reading bytes as UTF-8 and skipping what is not valid.

  Example:
    >>> convert_to_unicode(b"caf\\xc3\\xa9 \\xff!")
    'café !'

  Raises:
    ValueError: `text` is neither `str` nor `bytes`.
  """
  if isinstance(text, str):
    return text
  if isinstance(text, bytes):
    return text.decode("utf-8", "ignore")
  raise ValueError(f"Text must be str or bytes, not {type(text).__name__}: {text!r:.80}")


def convert_to_utf8(text: str | bytes) -> str:
  """Returns `text` as `str` that UTF-8 can encode: surrogates become U+FFFD."""
  text = convert_to_unicode(text)
  return text if text.isascii() else _SURROGATES.sub("\ufffd", text)
