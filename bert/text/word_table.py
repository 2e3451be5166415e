"""Texts to pieces or ids, word by word from a table.

  table = WordTable({"want": 1, "##ed": 2}, plain=tokenizer_ids, do_lower_case=True, max_chars=200)
  table.look_up("Wanted")           # [1, 2]

No step of the tokenizer depends on text beyond a blank. So a word between two blanks has the same
pieces in every text, and a table of words covers nearly all of a text: what remains is to split
the text and look up its words. A new word is split here if it is ASCII; any other is passed to
the plain tokenizer, once. Nothing here depends on a tokenizer's class.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bert.text.characters import CHINESE_RANGES, DROPPED_BLANKS

MAX_WORDS = 1 << 16  # about 15 MB a table; English text of any length reuses most of these
MAX_WORD_CHARS = 64  # of a remembered word: longer ones are hardly ever repeated

_HEAD_CHARS = 3  # tell how long a piece may be: with 2 more are searched for, with 4 more is kept

_ASCII_PARTS = re.compile("[0-9A-Za-z]+|[^0-9A-Za-z]")

_CHINESE = "".join(f"{chr(first)}-{chr(last)}" for first, last in CHINESE_RANGES)
_CHINESE_PARTS = re.compile(f"[{_CHINESE}]|[^{_CHINESE}]+")


class WordTable(dict):
  """Word -> its values, such as ids; a new word is split when it is looked up.

  A word is what stands between two blanks of a text, unchanged. Only short words are kept, and when
  there are `max_words` of them, all are forgotten: frequent ones return at once. Threads may share
  a table; at worst two of them split the same word.

  Example:
    >>> ids = {"un": 0, "##aff": 1, "##able": 2, "!": 3}
    >>> table = WordTable(ids, plain=lambda word: [9], do_lower_case=True, max_chars=200)
    >>> table.look_up("Unaffable! What? Unaffable!")
    [0, 1, 2, 3, 9, 9, 0, 1, 2, 3]
    >>> table["Unaffable!"]
    (0, 1, 2, 3)
  """

  def __init__(
    self,
    values: Mapping[str, Any],
    plain: Callable[[str], Sequence],
    do_lower_case: bool,
    max_chars: int,
    max_words: int = MAX_WORDS,
    cuts_chinese: bool = True,
  ):
    """Makes an empty table.

    Args:
      values: piece -> its value. Pieces after a word's first begin with "##".
      plain: word -> the values of its pieces, by definition. Called for words that are not
        printable ASCII, cannot be split, or are too long.
      do_lower_case: whether words are lower-cased before they are split.
      max_chars: longer words, measured between punctuation, are left to `plain`.
      max_words: the number of words to remember.
      cuts_chinese: whether each Chinese character is a word.
    """
    super().__init__()
    self._first = values
    self._rest = {piece[2:]: value for piece, value in values.items() if piece.startswith("##")}
    self._longest_first = _longest_by_head(self._first)
    self._longest_rest = _longest_by_head(self._rest)
    self._plain = plain
    self._do_lower_case = do_lower_case
    self._max_chars = max_chars
    self._max_words = max_words
    self._cuts_chinese = cuts_chinese

  def look_up(self, text: str) -> list:
    """Looks up the values of all tokens of `text`."""
    if not text.isprintable():  # quicker than seven searches; most texts are printable
      for blank in DROPPED_BLANKS:
        text = text.replace(blank, "")
    return list(itertools.chain.from_iterable(map(self.__getitem__, text.split())))

  def __missing__(self, word: str) -> tuple:
    if not word.isascii() or not word.isprintable():
      values = self._of_other(word)
    else:
      part = word.lower() if self._do_lower_case else word
      if part.isalnum():
        values = self._split(part) or tuple(self._plain(part))
      else:
        values = self._of_ascii(part)
    if len(word) <= MAX_WORD_CHARS:
      if len(self) >= self._max_words:
        self.clear()
      self[word] = values
    return values

  def _of_ascii(self, word: str) -> tuple:
    # In ASCII, all but letters and digits is punctuation: each character is a separate word.
    parts = _ASCII_PARTS.findall(word)
    if len(parts) > 1:
      return self._of_parts(parts)
    return self._split(word) or tuple(self._plain(word))

  def _of_other(self, word: str) -> tuple:
    # Chinese has no spaces, and its sentences rarely repeat: remember characters instead.
    parts = _CHINESE_PARTS.findall(word) if self._cuts_chinese else ()
    return self._of_parts(parts) if len(parts) > 1 else tuple(self._plain(word))

  def _of_parts(self, parts: Sequence[str]) -> tuple:
    return tuple(itertools.chain.from_iterable(map(self.__getitem__, parts)))

  def _split(self, word: str) -> tuple:
    """Returns values of the longest pieces in succession; empty if the word cannot be split."""
    if len(word) > self._max_chars:
      return ()
    value = self._first.get(word)
    if value is not None:  # most words of a text
      return (value,)
    values = []
    known, longest = self._first, self._longest_first
    while word:
      end = longest.get(word[:_HEAD_CHARS], _HEAD_CHARS - 1)  # perhaps beyond the word's end
      value = known.get(word[:end])
      while value is None:
        end -= 1
        if not end:
          return ()
        value = known.get(word[:end])
      values.append(value)
      known, longest = self._rest, self._longest_rest
      word = word[end:]
    return tuple(values)


def _longest_by_head(pieces: Iterable[str]) -> dict[str, int]:
  """Maps the first characters of pieces to the length of the longest piece that begins so.

  Few pieces begin with the same three letters, so that most lengths need not be tried.

  Example:
    >>> _longest_by_head(["a", "able", "ably", "abler", "un"])
    {'a': 1, 'un': 2, 'abl': 5}
  """
  # Of those with the same head, the last one stays.
  return {piece[:_HEAD_CHARS]: len(piece) for piece in sorted(pieces, key=len)}
