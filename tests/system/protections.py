"""Every protection of the programs, how to break it, and the test that has to notice.

A test of a protection is worth something if it fails once the protection is gone. Each entry names
a function, some text in it that protects, what replaces this text, and the test that then fails.
`tests/system/protections_test.py` checks that functions, texts and tests exist; its slow test
breaks one protection after the other in a copy of the project, and runs the test.

Functions and tests are found by name, wherever they are (see tests/kit/definitions.py), and a text
is looked up within its function alone, so code may move without a change here.

  python -m tests.system.protections          # the table of docs/reliability.md
"""

import functools
import pathlib
from typing import NamedTuple

from tests.kit.definitions import PROGRAM, TESTS, Definition, definitions, find
from tests.kit.paths import ROOT
from tests.system import (
  protections_of_data,
  protections_of_families,
  protections_of_faults,
  protections_of_runs,
)


class Protection(NamedTuple):
  """A part of a function that protects from something.

  Attributes:
    what: what it does, and what would happen otherwise.
    where: the function, class or constant: as much of its dotted name as is unique.
    text: the part, which the function contains once.
    broken: what replaces it.
    test: the test that then fails, named in the same way: `heads_test.test_shapes[case]`.
  """

  what: str
  where: str
  text: str
  broken: str
  test: str

  def definition(self) -> Definition:
    """Where the protection is.

    Raises:
      ValueError: no definition has this name, or several have.
    """
    return find(self.where, _definitions(PROGRAM))

  def broken_source(self, root: pathlib.Path = ROOT) -> str:
    """The whole file without the protection.

    Raises:
      ValueError: the function or the text is missing or not unique.
    """
    definition = self.definition()
    source = definition.source(root)
    count = source.count(self.text)
    if count != 1:
      raise ValueError(f"{definition.name} contains {count} times, not once: {self.text!r}")
    return definition.replaced(root, source.replace(self.text, self.broken))

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


def markdown_table() -> str:
  """A table of all protections for each subject, in the order of `PROTECTIONS`."""
  lines = []
  for subject, protections in PROTECTIONS.items():
    lines += ["", f"**{subject}**", "", "| what is promised | where | test that fails without |"]
    lines.append("|---|---|---|")
    for each in protections:
      lines.append(f"| {each.what} | `{each.where}` | `{each.test.partition('[')[0]}` |")
  return "\n".join([*lines[1:], ""])


def _all_protections() -> dict[str, tuple[Protection, ...]]:
  parts = protections_of_runs, protections_of_faults, protections_of_data, protections_of_families
  subjects = {name: rows for part in parts for name, rows in part.SUBJECTS.items()}
  return {name: tuple(Protection(*row) for row in rows) for name, rows in subjects.items()}


PROTECTIONS = _all_protections()
"""Subject -> its protections."""


if __name__ == "__main__":
  print(markdown_table(), end="")
