"""Text to word pieces exactly as the library `tokenizers` makes them, without that library.

  pieces = LibraryWordPieces(load_vocab("vocab.txt"), Normalization(lowercase=True))
  pieces.ids("Unaffable!")                # those of ["una", "##ffa", "##ble", "!"]

The steps are those of `bert/tokenization.py`; they differ from the original's in the classes of
characters (`library_characters.py`), in that accents go before lower case, and in that each of the
steps can be left out. `BertTokenizerFast` of transformers is built of them.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bert.text.library_characters import (
  CLEANED,
  LOWER,
  SPACED_CHINESE,
  UNCLEANED_WORDS,
  WITHOUT_ACCENT,
  WORDS,
  decomposed,
  decomposed_char,
)
from bert.text.word_table import MAX_WORD_CHARS as MAX_KEPT_CHARS
from bert.text.word_table import MAX_WORDS, WordTable
from bert.tokenization import WordpieceTokenizer

MAX_WORD_CHARS = 100  # a longer word is one unknown token

# A block that the original and the table of words take for Chinese, and the library does not.
_CHINESE_ELSEWHERE = re.compile("[\U0002b820-\U0002b91f]")

Located = tuple[str, int, int]  # a token or word, its start and end (exclusive)


class Normalization(NamedTuple):
  """What is done to a text before it is cut into words, beside dropping control characters."""

  handle_chinese_chars: bool = True  # make each Chinese character a word
  strip_accents: bool | None = None  # drop accents; None: if `lowercase`
  lowercase: bool = True

  @property
  def strips(self) -> bool:
    """Whether accents are dropped."""
    return self.lowercase if self.strip_accents is None else self.strip_accents

  def apply(self, text: str) -> str:
    """Normalizes a text.

    Example:
      >>> Normalization().apply("Où\\t\\u200best")
      'ou est'
    """
    text = text.translate(CLEANED)
    if self.handle_chinese_chars and not text.isascii():
      text = text.translate(SPACED_CHINESE)
    if self.strips and not text.isascii():
      text = decomposed(text).translate(WITHOUT_ACCENT)
    if self.lowercase:
      text = text.lower() if text.isascii() else text.translate(LOWER)
    return text

  def normalize_str(self, sequence: str) -> str:
    """As `apply`, by the library's name."""
    return self.apply(sequence)

  def apply_with_sources(self, text: str) -> tuple[str, list[int]]:
    """Normalizes a text, and says of which character of it each of the result is."""
    chars, sources = _mapped(list(text), list(range(len(text))), CLEANED)
    if self.handle_chinese_chars:
      chars, sources = _mapped(chars, sources, SPACED_CHINESE)
    if self.strips and not text.isascii():
      # Combining characters change places, but not what they are said to come from.
      sources = [
        source for char, source in zip(chars, sources, strict=True) for _ in decomposed_char(char)
      ]
      chars, sources = _mapped(list(decomposed("".join(chars))), sources, WITHOUT_ACCENT)
    if self.lowercase:
      chars, sources = _mapped(chars, sources, LOWER)
    return "".join(chars), sources


UNCASED = Normalization()


def _mapped(chars: list[str], sources: list[int], table) -> tuple[list[str], list[int]]:
  results = [table[ord(char)] for char in chars]
  inherited = [
    source for result, source in zip(results, sources, strict=True) for _ in range(len(result))
  ]
  return list("".join(results)), inherited


class LibraryWordPieces:
  """Normalized text to the pieces of a vocabulary.

  Attributes:
    vocab: piece -> id.
    normalization: see `Normalization`.
    unk_token: the token of a word that cannot be spelled.
    max_chars: the number of characters from which on a word is unknown.
  """

  def __init__(
    self,
    vocab: Mapping[str, int],
    normalization: Normalization = UNCASED,
    unk_token: str = "[UNK]",
    max_chars: int = MAX_WORD_CHARS,
  ):
    """Makes the tables of words; raises a ValueError if `vocab` lacks `unk_token`."""
    if unk_token not in vocab:
      raise ValueError(
        f"The vocabulary of {len(vocab)} tokens lacks its unknown token {unk_token!r}."
      )
    self.vocab = dict(vocab)
    self.normalization = normalization
    self.unk_token = unk_token
    self.max_chars = max_chars
    self._pieces = WordpieceTokenizer(self.vocab, unk_token, max_chars)
    self._table = self._new_table()
    self._located: dict[str, list[list[Located]]] = {}

  def _new_table(self) -> WordTable | None:
    if not self.normalization.handle_chinese_chars:  # the table always cuts Chinese
      return None
    lowercase = self.normalization.lowercase
    return WordTable(self.vocab, self._ids_by_steps, lowercase, self.max_chars, MAX_WORDS)

  def __getstate__(self):
    return {**vars(self), "_table": None, "_located": {}}

  def __setstate__(self, state):
    vars(self).update(state)
    self._table = self._new_table()

  def ids(self, text: str) -> list[int]:
    """Returns the ids of the pieces of a text that is not normalized yet."""
    if self._table is None or _CHINESE_ELSEWHERE.search(text):
      return self._ids_by_steps(text)
    return self._table.look_up(text)

  def _ids_by_steps(self, text: str) -> list[int]:
    return self.ids_of_normalized(self.normalization.apply(text))

  def ids_of_normalized(self, text: str) -> list[int]:
    """Returns the ids of the pieces of a normalized text."""
    return [self.vocab[piece] for word in self.words(text) for piece in self.split_word(word)]

  def words(self, text: str) -> list[str]:
    """Cuts a normalized text into words and punctuation."""
    return WORDS.findall(text)

  def split_word(self, word: str) -> list[str]:
    """Splits a word into its pieces."""
    return self._pieces.tokenize(word)

  def locate_in(self, text: str) -> Iterator[list[Located]]:
    """Yields the pieces of each word of a text that is not normalized, with their places in it."""
    for match in UNCLEANED_WORDS.finditer(text):
      raw, first = match.group(), match.start()
      words = self._located.get(raw)
      if words is None:
        words = self._locate_and_remember(raw)
      for word in words:
        yield [(piece, first + start, first + end) for piece, start, end in word]

  def _locate_and_remember(self, raw: str) -> list[list[Located]]:
    normalized, sources = self.normalization.apply_with_sources(raw)
    words = [
      [(piece, sources[start], sources[end - 1] + 1) for piece, start, end in word]
      for word in self.locate(normalized)
    ]
    if len(raw) <= MAX_KEPT_CHARS:
      if len(self._located) >= MAX_WORDS:
        self._located.clear()
      self._located[raw] = words
    return words

  def locate(self, normalized: str) -> Iterator[list[Located]]:
    """Yields the pieces of each word of a normalized text, with their places in it."""
    for match in WORDS.finditer(normalized):
      word, start = match.group(), match.start()
      pieces = self.split_word(word)
      if len(pieces) == 1:
        yield [(pieces[0], start, match.end())]
        continue
      located = []
      for piece in pieces:
        end = start + len(piece) - (2 if located else 0)
        located.append((piece, start, end))
        start = end
      yield located
