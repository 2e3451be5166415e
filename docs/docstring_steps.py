"""From this project's docstrings to reStructuredText, before napoleon reads their sections.

Docstrings here are written for `help()` and editors: code is indented without a sign before it, a
list follows its sentence without an empty line. Three rules are enough for what differs.
"""

import inspect
import re
from collections.abc import Iterator

from sphinx.application import Sphinx

# Headings whose indented lines napoleon reads.
_SECTION = re.compile(
  r"(Args|Attributes|Example|Examples|Note|Raises|Returns|Warning|Yields|Keyword Args):$"
)
_PROGRAM = re.compile(r"^Example:\n(?=\s+(?!>>>)\S)", re.MULTILINE)  # no doctest
_BACKTICKS_IN_WORD = re.compile(r"(`[^`\s][^`]*`)(?=\w)")  # `Error`s
_ITEM = re.compile(r"(?:[-*] |\d+\. )")


def setup(app: Sphinx) -> dict[str, bool]:
  """Connects the step to autodoc, before napoleon (500)."""
  app.connect("autodoc-process-docstring", _process, priority=400)
  return {"parallel_read_safe": True}


def _process(app: Sphinx, what: str, name: str, obj, options, lines: list[str]) -> None:
  del app, name, options
  if what == "data" and "\n".join(lines).strip() == inspect.getdoc(type(obj)):
    lines[:] = []  # of dict itself, say
  elif what in ("attribute", "property"):
    lines[:0] = ["..", ""]  # else napoleon takes what stands before a colon for a type
  lines[:] = as_rest(_PROGRAM.sub("Example::\n\n", "\n".join(lines)).split("\n"))


def as_rest(lines: list[str]) -> Iterator[str]:
  """Yields the lines of a docstring, lists and indented code marked as such.

  Example:
    >>> list(as_rest(["Do it:", "- so", "", "like", "", "  so()"]))
    ['Do it:', '', '- so', '', 'like', '', '::', '', '  so()']
    >>> list(as_rest(["`Error`s"]))
    ['`Error`\\\\ s']
    >>> list(as_rest(["Shapes:", "  B = batch", "Args:", "  x: why"]))
    ['Shapes:', '', '::', '', '  B = batch', '', 'Args:', '  x: why']
  """
  top = ""  # the last line that is not indented
  before = ""
  in_block = False
  for line in lines:
    is_indented = line.startswith(" ")
    if is_indented and not in_block and _starts_block(top, before):
      yield from ["::", ""] if not before else ["", "::", ""]
      in_block = True
    elif line and not is_indented:
      if before and (in_block or (_ITEM.match(line) and not _ITEM.match(top))):
        yield ""
      top = line
      in_block = False
    yield _BACKTICKS_IN_WORD.sub(r"\1\\ ", line)
    before = line


def _starts_block(top: str, before: str) -> bool:
  """Returns whether an indented line below an unindented one is code or a list of letters."""
  is_other = _SECTION.match(top) or _ITEM.match(top) or top.endswith("::")
  return not is_other and (not before or before == top)
