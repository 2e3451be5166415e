"""Every protection of the programs, how to break it, and the test that has to notice.

A test of a protection is worth something if it fails once the protection is gone. Each entry names
a line that protects, the line that replaces it, and the test that then fails.
`tests/system/protections_test.py` sees to it that the lines are still there; its slow test breaks
one after the other in a copy of the project, and runs the test.

  python -m tests.system.protections          # the table of docs/reliability.md
"""

import pathlib
from typing import NamedTuple

from tests.kit.paths import ROOT
from tests.system import protections_of_data, protections_of_faults, protections_of_runs


class Protection(NamedTuple):
  """A line of the program that protects from something.

  Attributes:
    what: what it does, and what would happen otherwise.
    file: where it stands, relative to the project.
    text: the line, or the part of it, as it stands there once and no more.
    broken: what to put in its place.
    test: the test that then fails, as pytest names it: `file.py::function[case]` in tests/.
  """

  what: str
  file: str
  text: str
  broken: str
  test: str


def source_of(protection: Protection, root: pathlib.Path = ROOT) -> str:
  """The file that holds a protection, as it should be."""
  return (root / protection.file).read_text(encoding="utf-8")


def broken_source_of(protection: Protection, root: pathlib.Path = ROOT) -> str:
  """The same file without the protection.

  Raises:
    ValueError: its line is not there, or more than once.
  """
  source = source_of(protection, root)
  count = source.count(protection.text)
  if count != 1:
    raise ValueError(f"{protection.file} has {count} times, not once: {protection.text!r}")
  return source.replace(protection.text, protection.broken)


def markdown_table() -> str:
  """A table of all protections for each subject, in the order of `PROTECTIONS`."""
  lines = []
  for subject, protections in PROTECTIONS.items():
    lines += ["", f"**{subject}**", "", "| what is promised | where | test that fails without |"]
    lines.append("|---|---|---|")
    for each in protections:
      test = each.test.split("[")[0].replace("::", " ")
      lines.append(f"| {each.what} | `{each.file}` | `{test}` |")
  return "\n".join([*lines[1:], ""])


def _all_protections() -> dict[str, tuple[Protection, ...]]:
  parts = (protections_of_runs, protections_of_faults, protections_of_data)
  subjects = {name: rows for part in parts for name, rows in part.SUBJECTS.items()}
  return {name: tuple(Protection(*row) for row in rows) for name, rows in subjects.items()}


PROTECTIONS = _all_protections()
"""Subject -> its protections."""


if __name__ == "__main__":
  print(markdown_table(), end="")
