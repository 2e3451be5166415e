"""The rules of `tokenization.BasicTokenizer` for each character, as tables for TensorFlow.

An exported model cannot call Python, and neither ICU nor RE2, which TensorFlow's own text ops use,
has the character classes of our tokenizer. So the tokenizer itself is asked, once for each of the
1,114,112 code points, what becomes of it, and the answers travel in the graph. They are small
(80 KB for a cased model, 500 KB for an uncased one), for most pages of 256 code points look alike
and are stored once.

Nearly every character becomes one character, or none. Three rules need more than that, and tables
of their own (`SlowTables`), which the graph opens only for texts that need them:

  - some become several: Hangul syllables, Indic vowels of two parts;
  - a capital sigma becomes another letter at a word's end;
  - decomposition sorts combining characters, and those that are no accents (Mc) remain.

Plain Python and NumPy, no TensorFlow.
"""

import functools
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bert import tokenization
from bert.text.offsets import words_with_spans

PAGE = 256  # code points that share a page of a table
NUM_PAGES = 0x110000 // PAGE

# Kinds of characters: dropped; a separator of words; a separate word; a part of a word.
DROPPED, SPACE, ALONE, LETTER = range(4)

# Fields of a cell in `CharacterTables.cells`. The code point is stored as the difference (xor) to
# the character's own, so that pages of unchanged characters are equal.
CODE_MASK = (1 << 21) - 1
KIND_SHIFT = 21  # two bits
CHINESE = 1 << 23  # uncased: ALONE before lower-casing, so that accents after it are not its own
ACCENT = 1 << 24  # DROPPED, but as a part of the word before it
SLOW = 1 << 30  # the highest field: one maximum over a batch shows whether any is set

CAPITAL_SIGMA, FINAL_SIGMA = 0x3A3, 0x3C2

# Cells of `SlowTables.sigma`: the effect of a character on a sigma beside it.
SKIPPED, CASED, UNCASED = range(3)

# Cells of `SlowTables.expansion`: 0 for a character that stays, else `start << 5 | length`.
LENGTH_BITS = 5
# Cells of `SlowTables.element`: `combining class << 2 | kind`.
CLASS_SHIFT = 2

_SIDE = "x"  # a letter to put beside a character in question


class PagedTable(NamedTuple):
  """An int32 for each code point: `cells[pages[code // 256] + code % 256]`."""

  pages: np.ndarray  # int32 [4352], where the page of 256 cells begins
  cells: np.ndarray  # int32 [256 * number of different pages]

  def __getitem__(self, code: int) -> int:  # type: ignore[override]
    return int(self.cells[self.pages[code // PAGE] + code % PAGE])


class SlowTables(NamedTuple):
  """Tables for texts with a character that is marked `SLOW`."""

  sigma: PagedTable  # `SKIPPED`, `CASED` or `UNCASED`, for the rule of the final sigma
  # Position in `pool` of a character's decomposed lower case, accents included.
  expansion: PagedTable
  pool: np.ndarray  # int32, code points
  element: PagedTable  # kind and combining class of a character after decomposition


class CharacterTables(NamedTuple):
  """The tables of characters for a graph."""

  main: PagedTable  # for each character its kind, its replacement, and flags
  slow: SlowTables | None  # None for models whose characters never change, as most cased ones


def character_tables(
  do_lower_case: bool, strip_accents: bool | None = None, tokenize_chinese_chars: bool = True
) -> CharacterTables:
  """Applies `BasicTokenizer` to all code points, which takes a few seconds once per process.

  The arguments are those of the tokenizer.

  Example:
    >>> cell = character_tables(True).main[ord("É")]
    >>> chr(ord("É") ^ (cell & CODE_MASK)), cell >> KIND_SHIFT == LETTER
    ('e', True)
  """
  strips = do_lower_case if strip_accents is None else strip_accents
  return _tables_of(do_lower_case, strips, tokenize_chinese_chars)


@functools.lru_cache(maxsize=4)
def _tables_of(lower: bool, strips: bool, chinese: bool) -> CharacterTables:
  tokenizer = tokenization.BasicTokenizer(
    lower, strip_accents=strips, tokenize_chinese_chars=chinese
  )
  main = _paged(functools.partial(_main_page, tokenizer))
  return CharacterTables(main, _slow_tables(tokenizer) if _changes(tokenizer) else None)


def _changes(tokenizer: tokenization.BasicTokenizer) -> bool:
  return tokenizer.do_lower_case or tokenizer.strips


def _paged(make_page: Callable[[str], list[int]], dtype: type[np.integer] = np.int32) -> PagedTable:
  """Builds a table; `make_page` gets the characters of a page and returns their cells."""
  known: dict[bytes, int] = {}
  pages = []
  for first in range(0, NUM_PAGES * PAGE, PAGE):
    text = "".join(map(chr, range(first, first + PAGE)))
    if _is_without_characters(text):  # three quarters of all pages
      cells = make_page(text[0]) * PAGE
    else:
      cells = make_page(text)
    pages.append(PAGE * known.setdefault(np.array(cells, dtype).tobytes(), len(known)))
  return PagedTable(np.array(pages, np.int32), np.frombuffer(b"".join(known), dtype))


def _is_without_characters(text: str) -> bool:
  """Checks whether a page is all unassigned or all private: no such page has different cells."""
  return len(set(map(unicodedata.category, text))) == 1 and unicodedata.category(text[0])[0] == "C"


# ---------------------------------------------------------------------------------------------
# The main table.


def _main_page(tokenizer: tokenization.BasicTokenizer, text: str) -> list[int]:
  """Cells of a page; most pages have one kind of character, which is tested first."""
  if not any(map(unicodedata.combining, text)):
    tokens = tokenizer.tokenize(_SIDE + text + _SIDE)
    if tokens == [_SIDE + text + _SIDE]:
      return [LETTER << KIND_SHIFT] * len(text)
    if tokens == [_SIDE, *text, _SIDE]:
      return [_main_cell(tokenizer, text[0])] * len(text)
  return [_main_cell(tokenizer, char) for char in text]


def _main_cell(tokenizer: tokenization.BasicTokenizer, char: str) -> int:
  """Computes the cell of a character from the tokenizer's result for it between two letters."""
  words = list(words_with_spans(tokenizer, _SIDE + char + _SIDE))
  tokens = [token for token, _ in words]
  if tokens == [_SIDE, _SIDE]:
    return SPACE << KIND_SHIFT
  result = "".join(tokens)[1:-1]
  if not result:
    _, spans = words[0]
    is_accent = spans[0] == (0, 2)  # the letter before it now includes the accent
    return DROPPED << KIND_SHIFT | (ACCENT if is_accent else 0)
  cell = ord(char) ^ ord(result[0])
  cell |= (LETTER if len(tokens) == 1 else ALONE) << KIND_SHIFT
  if not _changes(tokenizer):
    return cell
  if len(tokens) > 1 and _separates_accents(tokenizer, char):
    cell |= CHINESE
  if _needs_neighbours_or_room(char, result):
    cell |= SLOW
  return cell


def _separates_accents(tokenizer: tokenization.BasicTokenizer, char: str) -> bool:
  (_, spans), *_ = words_with_spans(tokenizer, char + "\u0301")
  return spans[-1] == (0, 1)


def _needs_neighbours_or_room(char: str, result: str) -> bool:
  return ord(char) == CAPITAL_SIGMA or len(result) > 1 or any(map(unicodedata.combining, result))


# ---------------------------------------------------------------------------------------------
# The tables for rare characters.


def _slow_tables(tokenizer: tokenization.BasicTokenizer) -> SlowTables:
  pool: list[int] = []
  lower: Callable[[str], str] = str.lower if tokenizer.do_lower_case else str
  strips = tokenizer.strips
  expansion = _paged(
    lambda text: [_expansion_cell(char, lower(char), strips, pool) for char in text]
  )
  same = _tables_of(False, False, tokenizer.tokenize_chinese_chars).main
  return SlowTables(
    sigma=_sigma_table() if tokenizer.do_lower_case else _paged(lambda text: [SKIPPED] * len(text)),
    expansion=expansion,
    pool=np.array(pool or [0], np.int32),
    element=_paged(lambda text: [_element_cell(char, same, strips) for char in text], np.int16),
  )


@functools.lru_cache(maxsize=1)
def _sigma_table() -> PagedTable:
  return _paged(lambda text: [_sigma_cell(char) for char in text], np.uint8)


def _sigma_cell(char: str) -> int:
  """Tries `str.lower` on sigmas: a final one has a cased letter before it, and none after it.

  Python has no other function for whether a character is cased, or ignored by this rule.

  Example:
    >>> [_sigma_cell(char) for char in ".a博"] == [SKIPPED, CASED, UNCASED]
    True
  """
  if not ("a" + char + "Σ").lower().endswith("ς"):
    return UNCASED
  return CASED if (char + "Σ").lower().endswith("ς") else SKIPPED


def _expansion_cell(char: str, lowered: str, strips: bool, pool: list[int]) -> int:
  """Appends a character's replacement to `pool`, unless it is unchanged."""
  result = unicodedata.normalize("NFD", lowered) if strips else lowered
  if result == char:
    return 0
  pool.extend(map(ord, result))
  return (len(pool) - len(result)) << LENGTH_BITS | len(result)


def _element_cell(char: str, same: PagedTable, strips: bool) -> int:
  """Computes the kinds where no character changes, which apply to characters after all changes."""
  kind = int(same[ord(char)]) >> KIND_SHIFT & 3
  if not strips:
    return kind
  if unicodedata.category(char) == "Mn":
    kind = DROPPED
  return unicodedata.combining(char) << CLASS_SHIFT | kind
