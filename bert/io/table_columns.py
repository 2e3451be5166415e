"""Columns of a table, found by name or number, and examples made of its rows.

  numbers = find_columns({"text": "review"}, rows[0], has_header=True)
  reader = TableReader(skip_bad_rows=True)
  examples = reader.convert(rows, lambda row: row[numbers["text"]], "train examples")
  reader.bad_rows                                  # (file, line) -> DataError

Malformed rows (too short, too long, not UTF-8, a value that `convert`'s function refuses) are one
`DataError` with the file, the line and the remedy of the first, and all of them counted by reason;
or they are skipped, counted and logged. Pure Python.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from absl import logging

from bert.io import other_formats
from bert.io.tables import (
  NESTED_ADVICE,
  SKIP_ADVICE,
  DataError,
  Row,
  is_json_lines,
  reasons_of,
  with_others,
)

Column = str | int  # a name in the header, or a 0-based number

_Example = TypeVar("_Example")


def names_of(first_row: Row, has_header: bool) -> tuple[str, ...]:
  """Returns the names of the columns, without blanks around them; () without a header."""
  return tuple(re.sub("[\u200b\ufeff]", "", str(name)).strip() for name in first_row if has_header)


def find_columns(
  columns: Mapping[str, Column],
  first_row: Row,
  has_header: bool,
  flags: Mapping[str, str] | None = None,
  advice: str = "",
) -> dict[str, int]:
  """Finds the numbers of columns, counted from 0; one error names all that the header lacks.

  Args:
    columns: key -> a column: its name, its number, or its number counted from the end: -1, also as
      text.
    first_row: of the table.
    has_header: whether that row names the columns.
    flags: key -> what sets its column, such as "--label_column", for errors; by default the key.
    advice: for the error about names that the header does not have, nor any like them.

  Returns:
    Key -> number.

  Raises:
    DataError: the table has no such column, or several of that name.
  """
  names, flags = names_of(first_row, has_header), flags or {}
  unknown = {
    flags.get(key, key): column
    for key, column in columns.items()
    if isinstance(column, str) and column.strip() not in names and not _is_number(column)
  }
  if unknown:
    raise _unknown_columns(unknown, first_row, names, advice)
  return {
    key: _number_of(column, first_row, names, flags.get(key, key))
    for key, column in columns.items()
  }


def _number_of(column: Column, first_row: Row, names: Sequence[str], what: str) -> int:
  name = str(column).strip()
  if isinstance(column, str) and name in names:
    if names.count(name) > 1:
      reason = f"the header has {names.count(name)} columns {name!r}."
      raise first_row.error(reason, f"Give {what} by its number, counted from 0.")
    return names.index(name)
  number = int(column)
  if isinstance(column, str) and not -len(first_row) <= number < len(first_row):
    reason = f"there is no column {column}: the row has {len(first_row)}, counted from 0."
    raise first_row.error(reason, f"Give another {what}.")
  return number + len(first_row) if number < 0 else number


def _is_number(column: str) -> bool:
  return column.removeprefix("-").isdecimal()


def _unknown_columns(
  columns: Mapping[str, str], first_row: Row, names: Sequence[str], more_advice: str
) -> DataError:
  """Makes the error about columns that the header does not have: what sets it -> its name."""
  first, *others = columns.values()
  if other_formats.looks_like_json(str(first_row[0])):
    return first_row.error(
      "the file holds JSON, not a table.", "Name it *.jsonl, with one object {...} on each line."
    )
  if not names:
    return first_row.error(
      f"{first!r} is not in the file, which has no header.", "Give columns by number."
    )
  shown = ", ".join(f"{name:.40}" for name in names[:20]) + (", ..." if names[20:] else "")
  reason = f"column {first!r} is not in the header, which has {shown}."
  advice = f"Name one of these columns as {next(iter(columns))}, or give its number from 0."
  if others:
    reason += f" Nor {'is' if len(others) == 1 else 'are'} {' and '.join(map(repr, others))}."
    advice = f"Name its columns as {' and '.join(columns)}, or give their numbers from 0."
  if any(column.partition(".")[0] in names for column in columns.values()):
    advice = NESTED_ADVICE  # text.body of {"text": {"body": ...}}
  elif near := list(filter(None, (_nearest(column, names) for column in columns.values()))):
    reason += f" Did you mean {' and '.join(map(repr, near))}?"
  elif not is_json_lines(first_row.file):
    advice = f"{advice} {more_advice}".rstrip()
  return first_row.error(reason, advice)


def _nearest(column: str, names: Sequence[str]) -> str | None:
  """Returns the name in a header that is most like this one; None where none is."""
  by_lower = {name.lower(): name for name in reversed(names)}
  near = difflib.get_close_matches(column.lower(), by_lower, n=1)
  return by_lower[near[0]] if near else None


class TableReader:
  """Makes examples of rows; malformed rows are raised together, or skipped, counted and logged.

  Attributes:
    skip_bad_rows: whether malformed rows are skipped instead of raised.
    bad_rows: (file, line) -> error of each malformed row.
  """

  def __init__(self, skip_bad_rows: bool = False):
    self.skip_bad_rows = skip_bad_rows
    self.bad_rows: dict[tuple[str | None, int | None], DataError] = {}

  def on_bad_row(self, error: DataError) -> None:
    """Notes the error of a malformed row, which `finish` raises or logs; of a file it is raised."""
    if error.line is None:
      raise error
    self.bad_rows[error.file, error.line] = error

  def check_start(self, rows: Sequence[Row], path: str) -> None:
    """Raises a DataError where a file has no row, or a malformed one where its header should be."""
    errors = [] if self.skip_bad_rows else self.errors_of(path)
    if errors and (not rows or (errors[0].line or 0) <= rows[0].line):
      self.finish(path, len(rows))
    if not rows:
      raise DataError("the file is empty.", path)

  def convert(
    self,
    rows: Sequence[Row],
    to_example: Callable[[Row], _Example],
    what: str,
    has_header: bool = True,
    first_row: str = "first row",
  ) -> list[_Example]:
    """Makes an example of each row but the header.

    Args:
      rows: of one file, at least one.
      to_example: a function of a row that raises `DataError` for a malformed one.
      what: the examples in messages, such as "train examples".
      has_header: whether the first row names the columns.
      first_row: the row with which the number of columns is compared, in messages.

    Raises:
      DataError: a row is malformed, or there is no example.
    """
    first, examples = rows[0], []
    if has_header:
      self._check_header_was_read(first)
    for row in rows[1:] if has_header else rows:
      try:
        self.check_row(row, first, has_header, first_row)
        examples.append(to_example(row))
      except DataError as error:
        self.on_bad_row(error)
    self.finish(first.file, len(examples))
    if not examples:
      raise DataError(f"the file contains no {what}.", first.file)
    return examples

  @staticmethod
  def check_row(row: Row, first: Row, has_header: bool, first_row: str = "first row") -> None:
    """Raises a DataError for a row that is longer than the first one, or the header once more."""
    if any(row[len(first) :]):
      raise row.error(
        f"{len(row)} columns, expected {len(first)} as in the {first_row}.",
        "Does a text contain the delimiter? " + SKIP_ADVICE,
      )
    if has_header and len(row) > 1 and row == first:
      raise row.error(
        "the names of the columns once more.", "Were files put together? " + SKIP_ADVICE
      )

  def finish(self, file: str, num_good: int) -> None:
    """Raises the errors of a file's rows as one, or counts the skipped ones, beside good ones."""
    if errors := self.errors_of(file):
      if not self.skip_bad_rows:
        for error in errors:  # the file may be read again once it is corrected
          del self.bad_rows[error.file, error.line]
        raise with_others(errors[0], errors, num_good + len(errors))
      reasons = f" Of {num_good + len(errors)} rows: {reasons_of(errors)}." if errors[1:] else ""
      logging.warning(
        "Skipped %d malformed row(s). The first: %s%s", len(errors), errors[0].problem, reasons
      )

  def _check_header_was_read(self, first_row: Row) -> None:
    # If a bad header were skipped like any row, the first example would be taken for the header.
    for error in self.errors_of(first_row.file):
      if error.line is not None and error.line < first_row.line:
        raise error

  def errors_of(self, file: str) -> list[DataError]:
    """Lists the errors of a file's malformed rows, by line."""
    errors = [error for error in self.bad_rows.values() if error.file == file]
    return sorted(errors, key=lambda error: error.line or 0)
