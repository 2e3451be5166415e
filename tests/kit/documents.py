"""The commands and programs in README.md and docs/, in order, as a reader types them."""

import pathlib
import re
import shlex
from collections.abc import Iterator
from typing import NamedTuple

from tests.kit.paths import ROOT

_FENCE = re.compile(
  r"^(?:<!-- (?P<marker>[^\n]+?) -->\n)?```(?P<language>[\w{}]*)\n(?P<code>.*?)^```$",
  re.MULTILINE | re.DOTALL,
)
# The marker of a block that a page shows because it fails.
FAILS = "fails: "


class Block(NamedTuple):
  """A fenced block."""

  line: int  # where its fence opens, counted from 1
  language: str  # after the fence: bash, python, yaml, text
  code: str  # its lines
  marker: str  # the comment before it, which says why it is not run, or how; or empty


# Folders of docs/ whose pages a program builds from docstrings: directives, no prose.
_BUILT = ("api",)


def pages() -> list[pathlib.Path]:
  """README.md and every page of docs/ and of the folders in it."""
  docs = ROOT / "docs"
  written = (page for page in docs.rglob("*.md") if page.relative_to(docs).parts[0] not in _BUILT)
  return [ROOT / "README.md", *sorted(written)]


def name_of(page: pathlib.Path) -> str:
  """A page's path from the root: README.md, docs/results/server.md."""
  return page.relative_to(ROOT).as_posix()


def blocks(page: pathlib.Path) -> Iterator[Block]:
  """The fenced blocks of a page, in order."""
  text = page.read_text(encoding="utf-8")
  for found in _FENCE.finditer(text):
    line = text.count("\n", 0, found.start("language")) + 1
    yield Block(line, found["language"], found["code"], found["marker"] or "")


def commands(code: str) -> list[list[str]]:
  """The words of each command of a shell block; a quoted word may hold several lines.

  Example:
    >>> commands("python a.py --b='c d'  # why\\nmake test")
    [['python', 'a.py', '--b=c d'], ['make', 'test']]
  """
  found, waiting = [], ""
  for line in code.replace("\\\n", " ").splitlines():
    waiting += line + "\n"
    try:
      words = shlex.split(waiting, comments=True)
    except ValueError:  # a quotation goes on in the next line
      continue
    found.append(words)
    waiting = ""
  return [words for words in found if words]
