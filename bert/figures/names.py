"""Names in pictures: which of them a font can draw, and how long ones fit.

  names = drawable(["food", "中文"])
  panel.set_xticks([0, 1], names.texts, family=names.family)

A font lacks most of the world's characters, and draws a box for each. The fonts that are installed
are searched for them; a name that none can draw becomes its number, `#1`, which the log explains.
"""

import contextlib
import functools
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from absl import logging

_DEFAULT_FAMILY = "DejaVu Sans"  # comes with matplotlib
_LOGGED = 20  # names
_RIGHT_TO_LEFT = {"R", "AL"}  # classes of characters in the Unicode standard


class Names(NamedTuple):
  """Names as a picture shows them."""

  texts: list[str]  # each name, or `#N` for number N (from 0) if no font has all its characters
  family: list[str]  # families of fonts, to be tried in this order


def drawable(names: Sequence[str], kind: str = "label") -> Names:
  """Replaces names that would be drawn as boxes by their numbers, and logs what these mean."""
  names = [" ".join(name.split()) for name in names]  # one line each
  characters = {c for name in names for c in name if not c.isspace()}
  families, missing = _cover(characters)
  numbered = {i: name for i, name in enumerate(names) if not missing.isdisjoint(name)}
  if numbered:
    some = ", ".join(f"#{i} = {name}" for i, name in list(numbered.items())[:_LOGGED])
    more = f", and {len(numbered) - _LOGGED} more" if len(numbered) > _LOGGED else ""
    logging.warning(
      "No installed font can draw %d of %d %ss. The picture shows their numbers: %s%s. Install a "
      "font that has them, such as Noto (on Debian and Ubuntu: apt install fonts-noto-cjk), and "
      "draw again.",
      *(len(numbered), len(names), kind, some, more),
    )
  return Names([f"#{i}" if i in numbered else name for i, name in enumerate(names)], families)


def cut_in_the_middle(names: Iterable[str], length: int) -> list[str]:
  """Shortens names; endings stay, since names often differ in them.

  Example:
    >>> cut_in_the_middle(["complaint about the delivery, 12", "praise"], 16)
    ['complaint…ry, 12', 'praise']
  """
  tail = (length - 1) * 2 // 5
  head = length - 1 - tail
  return [name if len(name) <= length else f"{name[:head]}…{name[-tail:]}" for name in names]


def _cover(characters: set[str]) -> tuple[list[str], set[str]]:
  """Families of fonts that together have these characters, and the characters none has."""
  unordered = set() if _lays_out_text() else set(filter(_is_right_to_left, characters))
  families, missing = [], characters - unordered
  for family, path in _fonts():
    found = {c for c in missing if _glyphs(path)(ord(c))}
    if found or not families:
      families.append(family)
      missing = missing - found
    if not missing:
      break
  return families, missing | unordered


def _is_right_to_left(character: str) -> bool:
  return unicodedata.bidirectional(character) in _RIGHT_TO_LEFT


def _lays_out_text() -> bool:
  """Tells whether matplotlib orders right-to-left letters and joins Arabic ones: from 3.11 on."""
  from matplotlib import ft2font

  return hasattr(ft2font, "__libraqm_version__")


def _fonts() -> Iterator[tuple[str, str]]:
  """Yields (family, path) of the fonts that can be drawn, the default one first."""
  from matplotlib import font_manager

  yield _DEFAULT_FAMILY, font_manager.findfont(_DEFAULT_FAMILY)
  known = {entry.fname for entry in font_manager.fontManager.ttflist}
  for path in sorted(set(font_manager.findSystemFonts()) - known):
    # matplotlib lists fonts once and for all: those installed later are added here.
    with contextlib.suppress(Exception):  # A font file may be damaged in any way.
      font_manager.fontManager.addfont(path)
  for entry in font_manager.fontManager.ttflist:
    if entry.style == "normal" and "Last Resort" not in entry.name:  # It draws boxes.
      yield entry.name, entry.fname


@functools.lru_cache(maxsize=64)
def _glyphs(path: str):
  """Returns a font file's function from a code point to its glyph's index, 0 without one."""
  from matplotlib import font_manager

  with contextlib.suppress(Exception):  # A font file may be damaged in any way.
    font = font_manager.get_font(path)
    if font.scalable:  # Fonts of bitmaps, such as colour emoji, cannot be drawn.
      return font.get_char_index
  return lambda _: 0
