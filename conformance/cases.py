"""What the suites share: a case with its outcome, where the clones lie, and errors of reading.

A suite is a module with `FOLDERS` (the clones that it reads) and `cases(context)`, which yields a
`Case` for each thing that the other project tests. Nothing of these projects is kept here: texts,
ids and values are read from the clones at run time.
"""

import dataclasses
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

# What can become of a case. LISTED: ours differs from the suite and equals the 2018 original.
PASSED, FAILED, LISTED, SKIPPED = "passed", "failed", "listed", "skipped"
OUTCOMES = (PASSED, FAILED, LISTED, SKIPPED)


@dataclasses.dataclass(frozen=True)
class Case:
  """One thing that a suite tests.

  Attributes:
    name: in the suite's own words: its file, test and number.
    outcome: one of `OUTCOMES`.
    reason: why it was skipped, failed or differs, in words of this project; may go into documents.
    detail: what differs, with the suite's values; printed only.
    difference: the largest difference of numbers, if the case compares any.
  """

  name: str
  outcome: str
  reason: str = ""
  detail: str = ""
  difference: float | None = None


class SuiteError(ValueError):
  """A file of a suite is missing or has another shape than expected; says which, and where."""


@dataclasses.dataclass
class Context:
  """Where things are.

  Attributes:
    suites: the folder of the clones.
    weights: a folder with all-MiniLM-L6-v2 as a checkpoint of the original's format, or None.
    vocab: the uncased vocabulary of 30,522 pieces, or None.
    scratch: an empty folder for files that are needed for a moment.
  """

  suites: pathlib.Path
  weights: pathlib.Path | None = None
  vocab: pathlib.Path | None = None
  scratch: pathlib.Path = dataclasses.field(
    default_factory=lambda: pathlib.Path(tempfile.mkdtemp(prefix="conformance-"))
  )

  def folder(self, name: str) -> pathlib.Path:
    """The clone of a suite."""
    return self.suites / name

  def has(self, name: str) -> bool:
    """Whether a suite was cloned."""
    return self.folder(name).is_dir()


def read_text(path: pathlib.Path) -> str:
  """A file of a suite.

  Raises:
    SuiteError: it is not there, or is not UTF-8.
  """
  try:
    with open(path, encoding="utf-8", newline="") as stream:
      return stream.read()
  except FileNotFoundError:
    raise SuiteError(f"{path}: not there; the suite has another layout than expected.") from None
  except (OSError, UnicodeDecodeError) as error:
    raise SuiteError(f"{path}: cannot be read: {error}") from None


_OTHER_SHAPE = "has another shape than expected"


def read_with(path: pathlib.Path, read: Callable[[pathlib.Path], Iterator[Case]]) -> Iterator[Case]:
  """The cases of a file; a file that cannot be read, or that has none, is a failed case."""
  count = 0
  try:
    for count, case in enumerate(read(path), start=1):  # noqa: B007
      yield case
  except SuiteError as error:
    yield Case(path.name, FAILED, _OTHER_SHAPE, str(error))
    return
  except (AttributeError, LookupError, TypeError, ValueError) as error:
    # A list where a dictionary was, a field that is gone: the case after the last one.
    detail = f"{path}: after {count} cases: {type(error).__name__}: {error}"
    yield Case(path.name, FAILED, _OTHER_SHAPE, detail)
    return
  if not count:
    yield Case(path.name, FAILED, _OTHER_SHAPE, f"{path}: no case was found")


def compare(name: str, theirs: Any, ours: Any, original: Any = None, what: str = "") -> Case:
  """Ours against the suite's value, with the 2018 original as the judge.

  Args:
    name: of the case.
    theirs: the value that the suite expects.
    ours: the same of this project.
    original: the same of google-research/bert, or None if that is not known.
    what: input of the case, for the detail.

  Returns:
    Passed if ours equals theirs, and the original as far as it is known or theirs is its value;
    listed if ours equals the original alone; else failed.

  Example:
    >>> compare("a", [1], [1]).outcome, compare("a", [1], [2], [2]).outcome
    ('passed', 'listed')
    >>> compare("a", [1], [2]).outcome, compare("a", [1], [1], [2]).outcome
    ('failed', 'failed')
  """
  detail = f"{what!r}: the suite has {theirs!r}, ours is {ours!r}, the original's {original!r}"
  if original is not None and ours != original:
    return Case(name, FAILED, "ours differs from the original's own output", detail)
  if ours == theirs:
    return Case(name, PASSED)
  if original is not None:
    return Case(name, LISTED, "the original's own output, which is ours", detail)
  return Case(name, FAILED, "ours differs from the suite", detail)
