"""Every protection of the programs, what to leave out of it, and the test that has to notice.

A test of a protection is worth something if it fails once the protection is gone. Each row of the
tables in docs/reliability/ names a function, what is left out of it, and the test that then
fails. `tests/system/protections_test.py` checks that functions, such places and tests exist; its
slow test leaves out one protection after the other in a copy of the project, and runs the test.
Where a function has several such places ("guard" where it raises three errors), the slow test looks
for the one that its test notices.

Functions and tests are found by name, wherever they are (see tests/kit/definitions.py), and places
in the syntax tree (see tests/kit/mutations.py), so code may move, be formatted and rename its
variables without a change there.
"""

import functools
import pathlib
import re
from typing import NamedTuple

from tests.kit.definitions import PROGRAM, TESTS, Definition, definitions, find
from tests.kit.mutations import mutants
from tests.kit.paths import ROOT


class Protection(NamedTuple):
  """A part of a function that protects from something."""

  what: str  # what it does, and what would happen otherwise
  where: str  # the function, class or constant: as much of its dotted name as is unique
  without: str  # what is left out of it, one of the phrases of tests/kit/mutations.py
  test: str  # the test that then fails, named in the same way: `heads_test.test_shapes[case]`

  def definition(self) -> Definition:
    """Where the protection is.

    Raises:
      ValueError: no definition has this name, or several have.
    """
    return find(self.where, _definitions(PROGRAM))

  def broken_sources(self, root: pathlib.Path = ROOT) -> list[str]:
    """Returns the whole file without the protection, once for each place that it may have.

    Raises:
      ValueError: there is no such function, or no such place in it.
    """
    definition = self.definition()
    source = (root / definition.file).read_text(encoding="utf-8")
    lines = range(definition.first_line, definition.last_line + 1)
    if found := mutants(source, lines, self.without):
      return found
    raise ValueError(f"{definition.name} has no place for {self.without!r}")

  def test_id(self) -> str:
    """The test as pytest names it: `tests/model/heads_test.py::test_shapes[case]`.

    Raises:
      ValueError: no test has this name, or several have.
    """
    name, bracket, case = self.test.partition("[")
    definition = find(name, _definitions(TESTS))
    return f"{definition.file}::{definition.name.rpartition('.')[2]}{bracket}{case}"


@functools.cache
def _definitions(patterns: tuple[str, ...]) -> list[Definition]:
  return definitions(ROOT, patterns)


_FOLDER = ROOT / "docs" / "reliability"
_HEAD = "| what is promised | where | left out | test that fails without |\n|---|---|---|---|\n"
_ROW = re.compile(r"\| (.+) \| `(.+)` \| `(.+)` \| `(.+)` \|")


def _read() -> list[Protection]:
  pages = [page.read_text(encoding="utf-8") for page in sorted(_FOLDER.glob("*.md"))]
  tables = [after.partition("\n\n")[0] for page in pages for after in page.split(_HEAD)[1:]]
  rows = [row for table in tables for row in table.splitlines()]
  return [Protection(*_ROW.fullmatch(row).groups()) for row in rows]


PROTECTIONS = _read()
