"""The table of all suites, for the terminal and for docs/results/conformance.md.

The document shows names of cases, reasons in this project's words and differences of numbers, never
texts, ids or values of the suites.
"""

import collections
import dataclasses
import datetime
import re
from collections.abc import Iterator, Sequence

from conformance.cases import FAILED, LISTED, OUTCOMES, PASSED, SKIPPED, Case

BEGIN, END = "<!-- Results: written by make conformance -->", "<!-- End of results -->"


@dataclasses.dataclass(frozen=True)
class Clone:
  """A suite's repository, the commit that was run, and the one that is known to work."""

  repository: str
  commit: str
  tried: str


@dataclasses.dataclass(frozen=True)
class Result:
  """The cases of a suite.

  Attributes:
    name: of its module.
    title: what it compares.
    cases: all of them.
    seconds: how long it took.
  """

  name: str
  title: str
  cases: list[Case]
  seconds: float


def counts(result: Result) -> dict[str, int]:
  """Outcome -> number of cases."""
  found = collections.Counter(case.outcome for case in result.cases)
  return {outcome: found[outcome] for outcome in OUTCOMES}


def details(results: Sequence[Result]) -> Iterator[str]:
  """Each failed or listed case with what differs, and the reasons of skipped ones."""
  for result in results:
    for outcome in (FAILED, LISTED):
      for case in result.cases:
        if case.outcome == outcome:
          yield f"{outcome}: {case.name}: {case.reason}. {case.detail}".rstrip(". ")
    for reason, names in _by_reason(result, SKIPPED).items():
      yield f"skipped: {result.title}: {len(names)} x {reason}"


def table(results: Sequence[Result]) -> list[str]:
  """A table of plain text: a line for each suite, and their sums."""
  rows = [["suite", *OUTCOMES], *map(_row, results)]
  sums = [sum(counts(result)[outcome] for result in results) for outcome in OUTCOMES]
  rows.append(["all", *map(str, sums)])
  widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
  return [
    "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
  ]


def _row(result: Result) -> list[str]:
  return [result.title, *(str(number) for number in counts(result).values())]


def _by_reason(result: Result, outcome: str) -> dict[str, list[str]]:
  found: dict[str, list[str]] = {}
  for case in result.cases:
    if case.outcome == outcome:
      found.setdefault(case.reason, []).append(case.name)
  return found


# ---------------------------------------------------------------------------------------------
# The document.


def document(text: str, results: Sequence[Result], clones: Sequence[Clone]) -> str:
  """A document with the results between its marks.

  A suite that has marks of its own, `<!-- Results of NAME: ... -->`, is shown there by file; the
  part of all others stays as it is if none of them ran.

  Raises:
    ValueError: it has no such marks.
  """
  others = []
  for result in results:
    begin = f"<!-- Results of {result.name}: written by make conformance -->"
    if begin in text:
      text = _between(text, begin, _of_one_suite(result, clones))
    else:
      others.append(result)
  if results and not others:
    return text
  return _between(text, BEGIN, _markdown(others, clones))


def _between(text: str, begin: str, lines: Iterator[str]) -> str:
  before, found, rest = text.partition(begin)
  _, end, after = rest.partition(END)
  if not found or not end:
    raise ValueError(f"The document lacks the line {END if found else begin!r}.")
  return f"{before}{begin}\n" + "\n".join(lines) + f"\n{END}{after}"


def _of_one_suite(result: Result, clones: Sequence[Clone]) -> Iterator[str]:
  """The counts of each file, and why tests failed or were skipped."""
  files: dict[str, list[Case]] = {}
  for case in result.cases:
    files.setdefault(case.name.partition(": ")[0], []).append(case)
  commits = ", ".join(f"{each.repository} at `{each.commit[:12]}`" for each in clones)
  yield f"Run of {datetime.date.today().isoformat()}, {result.seconds / 60:.0f} minutes; {commits}."
  yield from ("", "| file | passed | failed | skipped |", "|---|---|---|---|")
  for name, cases in {**files, "all": result.cases}.items():
    found = collections.Counter(case.outcome for case in cases)
    yield f"| {name} | {found[PASSED]} | {found[FAILED]} | {found[SKIPPED]} |"
  found = collections.Counter(case.outcome for case in result.cases)
  share = found[PASSED] / max(1, found[PASSED] + found[FAILED])
  yield from ("", f"{share:.1%} of what was not skipped passed.")
  for outcome, heading in ((FAILED, "Failed"), (SKIPPED, "Skipped")):
    yield from _reasons([result], outcome, heading)


def _markdown(results: Sequence[Result], clones: Sequence[Clone]) -> Iterator[str]:
  yield f"Run of {datetime.date.today().isoformat()}."
  yield ""
  yield "| suite | passed | failed | listed | skipped |"
  yield "|---|---|---|---|---|"
  for result in results:
    found = counts(result)
    row = [result.title, *(str(found[each]) for each in (PASSED, FAILED, LISTED, SKIPPED))]
    yield f"| {' | '.join(row)} |"
  yield from _numbers(results)
  for outcome, heading in ((FAILED, "Failed"), (LISTED, "Listed"), (SKIPPED, "Skipped")):
    yield from _reasons(results, outcome, heading)
  yield ""
  yield "### Commits"
  yield "| repository | commit |"
  yield "|---|---|"
  yield from (f"| {clone.repository} | `{clone.commit[:12]}` |" for clone in clones)


def _numbers(results: Sequence[Result]) -> Iterator[str]:
  found = [case for result in results for case in result.cases if case.difference is not None]
  if found:
    yield from ("", "### Numbers", "| case | | difference |", "|---|---|---|")
    for case in found:
      note = case.reason if case.outcome == PASSED else case.outcome
      yield f"| {case.name} | {note} | {case.difference:.1e} |"


def _reasons(results: Sequence[Result], outcome: str, heading: str) -> Iterator[str]:
  rows = [
    f"| {result.title} | {len(names)} | {reason}: {_names(names)} |"
    if outcome != SKIPPED
    else f"| {result.title} | {len(names)} | {reason} |"
    for result in results
    for reason, names in _by_reason(result, outcome).items()
  ]
  if rows:
    yield from ("", f"### {heading}", "| suite | cases | why |", "|---|---|---|", *rows)


def _names(names: Sequence[str]) -> str:
  """The tests of cases, without the numbers of their runs.

  Example:
    >>> _names(["a_test.py: b[0], text 1", "a_test.py: b[2]"])
    '`a_test.py: b`'
  """
  tests = dict.fromkeys(re.sub(r"\[\d+\].*$", "", name) for name in names)
  return ", ".join(f"`{test}`" for test in tests)
