"""Tokens that stay whole in a text, and where they are found in it.

  special = AddedToken("[MASK]", normalized=False, special=True)
  finder = Finder({"[MASK]": (103, special)})
  finder.split("to [MASK] or")       # [Part(0, 3, None), Part(3, 9, 103), Part(9, 12, None)]

At each place the longest token wins. Rules of the library `tokenizers`, whose class `AddedToken`
this one stands for.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, NamedTuple

_WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WHITE_AT_END = re.compile(f"[{_WHITE}]*$")
_WHITE_AT_START = re.compile(f"[{_WHITE}]*")
_JOINERS = "\u200c\u200d"


class AddedToken:
  """A token that stays whole in a text.

  Attributes:
    content: its text.
    single_word: whether it counts only where no letter or digit is beside it.
    lstrip: whether it takes the white space on its left.
    rstrip: whether it takes the white space on its right.
    normalized: whether it is looked for in the normalized text (lower-cased, for instance).
    special: whether decoding can skip it.
  """

  __slots__ = ("_normalized", "content", "lstrip", "rstrip", "single_word", "special")
  NAMES = ("content", "single_word", "lstrip", "rstrip", "normalized", "special")

  def __init__(
    self,
    content: str = "",
    single_word: bool = False,
    lstrip: bool = False,
    rstrip: bool = False,
    normalized: bool | None = None,
    special: bool = False,
  ):
    """By default it is normalized unless it is special; a TypeError if `content` is no text."""
    if not isinstance(content, str):
      raise TypeError(f"The content of an AddedToken must be str, not {type(content).__name__}.")
    self.content = content
    self.single_word = single_word
    self.lstrip = lstrip
    self.rstrip = rstrip
    self.special = special
    self._normalized = normalized

  @property
  def normalized(self) -> bool:
    """See the class; unless it was said, what is special is not."""
    return not self.special if self._normalized is None else self._normalized

  @normalized.setter
  def normalized(self, value: bool | None) -> None:
    self._normalized = value

  def copy(self, **changed: Any) -> "AddedToken":
    """Makes another one, with other values of some attributes."""
    values = {**self.settings(), "normalized": self._normalized}
    return AddedToken(**{**values, **changed})

  @classmethod
  def of(cls, token: Any) -> "AddedToken":
    """Makes one of a text, of its settings by name, or of the library's class."""
    if isinstance(token, cls):
      return token
    if isinstance(token, str):
      return cls(token)
    if isinstance(token, Mapping):
      return cls(**{name: token[name] for name in cls.NAMES if name in token})
    if all(hasattr(token, name) for name in cls.NAMES):
      return cls(**{name: getattr(token, name) for name in cls.NAMES})
    raise TypeError(f"A token must be str or AddedToken, not {type(token).__name__}: {token!r:.80}")

  def settings(self) -> dict[str, Any]:
    """Returns the attributes by name, as files have them."""
    return {name: getattr(self, name) for name in self.NAMES}

  def __getstate__(self):
    return self.settings()

  def __setstate__(self, state: Mapping[str, Any]):
    for name, value in state.items():
      setattr(self, name, value)

  def __eq__(self, other):
    return isinstance(other, AddedToken) and self.settings() == other.settings()

  def __hash__(self):
    return hash(self.content)

  def __str__(self):
    return self.content

  def __repr__(self):
    names = ("rstrip", "lstrip", "single_word", "normalized", "special")
    settings = ", ".join(f"{name}={getattr(self, name)}" for name in names)
    return f'AddedToken("{self.content}", {settings})'


class Part(NamedTuple):
  """A piece of a text: `text[start:end]`, and the id of the token that it is, if any."""

  start: int
  end: int
  id: int | None


class Finder:
  """Finds tokens in a text."""

  def __init__(self, tokens: Mapping[str, tuple[int, AddedToken]]):
    """`tokens` are what is looked for -> the id and the token that it is."""
    self._tokens = {content: found for content, found in tokens.items() if content}
    longest_first = sorted(self._tokens, key=len, reverse=True)
    self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

  def __bool__(self):
    return bool(self._tokens)

  def split(self, text: str, split_special_tokens: bool = False) -> list[Part]:
    """Lists the tokens in a text and what stands between them, in order; nothing is empty.

    Args:
      text: the text.
      split_special_tokens: leave special tokens alone.
    """
    parts: list[Part] = []
    done = 0
    for match in self._pattern.finditer(text) if self._tokens else ():
      index, token = self._tokens[match.group()]
      start, end = match.span()
      if split_special_tokens and token.special:
        continue
      if token.single_word and (_is_word(text[start - 1 : start]) or _is_word(text[end : end + 1])):
        continue
      if token.lstrip:
        start = max(done, _WHITE_AT_END.search(text, done, start).start())
      if token.rstrip:
        end = _WHITE_AT_START.match(text, end).end()
      if done < start:
        parts.append(Part(done, start, None))
      parts.append(Part(start, end, index))
      done = end
    if done < len(text):
      parts.append(Part(done, len(text), None))
    return parts


def _is_word(char: str) -> bool:
  if not char:
    return False
  category = unicodedata.category(char)
  return char.isalnum() or category[0] == "M" or category == "Pc" or char in _JOINERS
