"""Data in JavaScript files: object and array literals, strings, numbers. Nothing is run.

javascript_constants("export const A = {x: [1, 'b'], y: B.C};", {"B": {"C": 2}})
# {"A": {"x": [1, "b"], "y": 2}}
"""

import pathlib
import re
from typing import Any

from conformance.cases import SuiteError

_BLANK = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:\.[A-Za-z_$][\w$]*)*")
_KEY = re.compile(r"[A-Za-z_$][\w$]*")
_CONSTANT = re.compile(r"(?:export\s+)?const\s+([A-Za-z_$][\w$]*)\s*=\s*(?=[{\[])")
_ESCAPE = re.compile(r"\\(u\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|\r?\n|.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}
_WORDS = {"true": True, "false": False, "null": None, "undefined": None}


def javascript_constants(
  text: str, names: dict[str, Any] | None = None, path: str | pathlib.Path = "text"
) -> dict[str, Any]:
  """The objects and arrays that a file calls by `const NAME =`.

  Args:
    text: of the file.
    names: values of names that come from other files; `A.B` is looked up in `names["A"]`.
    path: of the file, for errors.

  Raises:
    SuiteError: a value is no data; names the line.
  """
  names, found = dict(names or {}), {}
  for match in _CONSTANT.finditer(text):
    reader = _Reader(text, match.end(), names, path)
    found[match.group(1)] = names[match.group(1)] = reader.value()
  return found


class _Reader:
  def __init__(self, text: str, at: int, names: dict[str, Any], path):
    self.text, self.at, self.names, self.path = text, at, names, path

  def error(self, message: str) -> SuiteError:
    line = self.text.count("\n", 0, self.at) + 1
    return SuiteError(f"{self.path}:{line}: {message}")

  def peek(self) -> str:
    self.at = _BLANK.match(self.text, self.at).end()
    return self.text[self.at : self.at + 1]

  def take(self, expected: str) -> None:
    if self.peek() != expected:
      raise self.error(f"{expected!r} was expected, not {self.text[self.at : self.at + 20]!r}")
    self.at += 1

  def value(self) -> Any:
    first = self.peek()
    if first == "{":
      return dict(self.items("{", "}", self.pair))
    if first == "[":
      return list(self.items("[", "]", self.value))
    if first and first in "\"'`":
      return self.string(first)
    number = _NUMBER.match(self.text, self.at)
    if number:
      self.at = number.end()
      return float(number[0]) if re.search(r"[.eE]", number[0]) else int(number[0])
    name = _NAME.match(self.text, self.at)
    if not name:
      raise self.error(f"a value was expected, not {self.text[self.at : self.at + 20]!r}")
    self.at = name.end()
    return self.named(name[0])

  def items(self, start: str, end: str, item):
    self.take(start)
    while self.peek() != end:
      yield item()
      if self.peek() != end:
        self.take(",")
    self.take(end)

  def pair(self) -> tuple[str, Any]:
    first = self.peek()
    if first and first in "\"'":
      key = self.string(first)
    else:
      match = _KEY.match(self.text, self.at)
      if not match:
        raise self.error(f"a key was expected, not {self.text[self.at : self.at + 20]!r}")
      key, self.at = match[0], match.end()
    self.take(":")
    return key, self.value()

  def string(self, quote: str) -> str:
    end = self.at + 1
    while end < len(self.text) and self.text[end] != quote:
      end += 2 if self.text[end] == "\\" else 1
    if end >= len(self.text):
      raise self.error("a string does not end")
    inner = self.text[self.at + 1 : end]
    self.at = end + 1
    plain = _ESCAPE.sub(_unescaped, inner)
    # Halves of a pair, each escaped, are one character.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

  def named(self, name: str) -> Any:
    if name in _WORDS:
      return _WORDS[name]
    found: Any = self.names
    for part in name.split("."):
      if not isinstance(found, dict) or part not in found:
        raise self.error(f"the name {name} has no value that can be read")
      found = found[part]
    return found


def _unescaped(match: re.Match) -> str:
  code = match[2] or match[3] or match[4]
  if code:
    return chr(int(code, 16))
  letter = match[1]
  return "" if letter.strip() == "" and letter != " " else _LETTERS.get(letter, letter)
