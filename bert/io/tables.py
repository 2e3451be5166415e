"""Text tables read strictly: TSV, CSV and JSON Lines, every error with its file and line.

  rows = read_table("train.csv")          # the header is rows[0]
  rows[3].line                            # 4
  rows[3][9]                              # DataError: train.csv, line 4: column 9 ... is missing

A byte order mark, CRLF, quotes inside plain TSV and fields of any length are read as intended.
Errors in the file (bytes that are not UTF-8, NUL, an unclosed quote) raise a `DataError`.
Pure Python: TensorFlow is imported only to open a path such as `gs://bucket/train.tsv`.
"""

import collections
import csv
import io
import itertools
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from absl import logging

from bert.io import filesystem, other_formats

# The csv module refuses fields above 131072 characters, a limit for the whole process.
_CSV_FIELD_LIMIT = 2**31 - 1
SKIP_ADVICE = "Correct the row, or skip such rows with --skip_bad_rows."
QUOTE_ADVICE = (
  'Close it, or write a quote inside a text twice (""), or skip such rows with --skip_bad_rows.'
)
NESTED_ADVICE = "A field has to be text: write what is inside of it as a field of its own."
_UTF8_ADVICE = (
  "Save the file as UTF-8 (older programs write Windows-1252), or skip such rows with "
  "--skip_bad_rows."
)
_REASONS_SHOWN = 4
_LINES_SHOWN = 10
_LETTERS_SHOWN = 40

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_ROWS_TO_JUDGE = 20  # in which the delimiter of a table is looked for


class DataError(ValueError):
  """An input file is missing, damaged, or has unexpected content.

  Attributes:
    file: its path, or None.
    line: 1-based number of the line, or None if the error concerns the whole file.
    reason: the fault.
    advice: the remedy; may be empty.
    problem: place and fault, for a message that needs no advice.
  """

  def __init__(self, reason: str, file: str | None = None, line: int | None = None, advice=""):
    self.reason, self.file, self.line, self.advice = reason, file, line, advice
    place = f"{file}: " if line is None else f"{file}, line {line}: "
    self.problem = f"{place if file else ''}{reason}"
    super().__init__(f"{self.problem} {advice}".rstrip())


class ShortRowError(DataError, IndexError):
  """A row lacks a column. An `IndexError` too, which processors have always caught."""


def is_json_lines(path: str) -> bool:
  """Tells whether a table has an object in each line; its keys are always its header."""
  return path.endswith((".jsonl", ".json"))


class Row(list):
  """The fields of one row, and their place in the file.

  Attributes:
    file: path of the file.
    line: 1-based number of the row's first line.
    number: 0-based number of the row, the header and blank lines counted.
  """

  __slots__ = ("file", "line", "number")

  def __init__(self, fields: Iterable[Any], file: str, line: int, number: int):
    super().__init__(fields)
    self.file, self.line, self.number = file, line, number

  def __getitem__(self, column):
    try:
      return super().__getitem__(column)
    except IndexError:
      shown = _shown(str(super().__getitem__(0)) if self else "")
      raise ShortRowError(
        f"column {column} (counted from 0) is missing, the row has {len(self)} column(s): {shown}.",
        self.file,
        self.line,
        SKIP_ADVICE,
      ) from None

  @property
  def source(self) -> str:
    """The place of the row, for messages: "train.csv, line 3"."""
    return f"{self.file}, line {self.line}"

  def error(self, reason: str, advice: str = SKIP_ADVICE) -> DataError:
    """Makes an error about this row."""
    return DataError(reason, self.file, self.line, advice)


# ---------------------------------------------------------------------------------------------
# Reading. Bytes are split at line feeds alone (`str.splitlines` would also split at U+2028 and
# others, which occur inside texts) and decoded by row, so an error can name its line.


def _shown(field: str) -> str:
  """Quotes the beginning of a field, or of a line."""
  return repr(field if len(field) <= _LETTERS_SHOWN else field[:_LETTERS_SHOWN] + "...")


OnBadRow = Callable[[DataError], None]


def _raise(error: DataError) -> None:
  raise error


def read_lines(path: str) -> Iterator[str]:
  """Yields lines without their ends; bytes not UTF-8 become surrogates (`check_text`)."""
  for number, line in enumerate(_binary_lines(os.fsdecode(path))):
    if number == 0:
      if other := other_formats.find(line):
        raise DataError(f"the file is {other[0]}.", path, advice=other[1])
      line = line.removeprefix(b"\xef\xbb\xbf")
    yield line.rstrip(b"\r\n").decode("utf-8", "surrogateescape")


def _binary_lines(path: str) -> Iterator[bytes]:
  try:
    with filesystem.open_to_read(path) as file:
      yield from file
  except FileNotFoundError:
    raise DataError("there is no such file.", path, advice=_listing(path)) from None
  except OSError as error:
    raise DataError(f"the file cannot be read ({error.strerror}).", path) from error


def _listing(path: str) -> str:
  folder = os.path.dirname(path) or "."
  if not filesystem.is_folder(folder):
    return f"There is no folder {folder} either; check --data_dir."
  return f"{folder_listing(folder)} Check --data_dir and the task's name."


def folder_listing(folder: str) -> str:
  """Lists a folder, as a sentence of an error about a file that is not there."""
  if not filesystem.is_folder(folder):
    return f"There is no such folder: {folder}."
  names = filesystem.list_folder(folder)
  links = {
    name
    for name in names
    if os.path.islink(path := os.path.join(folder, name)) and not os.path.exists(path)
  }
  names = [f"{name} (a link to nothing)" if name in links else name for name in names]
  shown = ", ".join(names[:20]) + (", ..." if names[20:] else "")
  return f"The folder holds: {shown or 'nothing'}."


def check_text(row: Row) -> None:
  """Raises `DataError` if a field of the row was not UTF-8 or holds a NUL byte."""
  text = "".join(field for field in row if isinstance(field, str))
  if "\0" in text:
    raise row.error("the row holds a NUL byte; the file is damaged or not UTF-8.")
  try:
    text.encode("utf-8")
  except UnicodeEncodeError:
    raise row.error("the row is not valid UTF-8.", _UTF8_ADVICE) from None


def read_table(path: str, on_bad_row: OnBadRow = _raise) -> list[Row]:
  """Reads a table by the ending of its name: `.jsonl`, `.json`, `.tsv`, or anything else as CSV.

  In a TSV file quotes are text; CSV has quoted fields. Where the first rows have another delimiter
  than the name says (semicolons, as Excel writes in much of Europe), the file is read as CSV with
  that one, which is logged. Where the header has one column, every row is one text.

  Args:
    path: UTF-8, with or without byte order mark, lines ending in LF or CRLF.
    on_bad_row: called with each `DataError`; raises it, or returns to skip the row.

  Returns:
    The header if the file has one, and the rows, without blank lines. Fields are strings. Of JSON
    Lines the first row has all keys in order of appearance, and a field any value; None where a key
    is missing. Nothing at all for an empty file.

  Raises:
    DataError: the file is missing or UTF-16, or whatever `on_bad_row` raises.
  """
  if is_json_lines(path):
    return _read_jsonl(path, on_bad_row)
  is_tsv = path.endswith(".tsv")
  expected = "\t" if is_tsv else ","
  delimiter = _delimiter_of(path, expected)
  if delimiter != expected:
    logging.info("%s: the fields are separated by %s.", path, DELIMITERS[delimiter])
  elif is_tsv:
    return read_tsv(path, on_bad_row=on_bad_row)
  rows = _checked(_split_quoted(path, delimiter, '"', True, on_bad_row), on_bad_row)
  if rows and rows[0][0].startswith("sep=") and not any(rows[0][1:]):
    del rows[0]  # Excel writes such a line for itself
  if not rows or len(rows[0]) > 1:
    return rows
  return [Row([delimiter.join(row)], row.file, row.line, row.number) for row in rows]


def _delimiter_of(path: str, expected: str) -> str:
  """Returns the expected delimiter, unless only another one splits header and most rows alike."""
  if next(iter(_widths(path, expected)), 0) > 1:
    return expected
  for delimiter in DELIMITERS:
    widths = _widths(path, delimiter)
    agreeing = sum(width == widths[0] for width in widths)
    if widths and widths[0] > 1 and agreeing > max(1, len(widths) // 2):
      return delimiter
  return expected


def _widths(path: str, delimiter: str) -> list[int]:
  """Counts the fields in each of the first rows."""
  rows = _split_quoted(path, delimiter, '"', False, lambda error: None, _ROWS_TO_JUDGE)
  return [len(row) for row in rows]


def read_tsv(path: str, quotechar: str | None = None, on_bad_row: OnBadRow = _raise) -> list[Row]:
  """Reads rows that tabs separate, whatever the file is called; else as `read_table`.

  Quotes are text, as GLUE's files need, unless `quotechar` is given.
  """
  rows: Iterable[Row]
  if quotechar is None:
    lines = enumerate(read_lines(path))
    rows = (Row(line.split("\t"), path, number + 1, number) for number, line in lines if line)
  else:
    rows = _split_quoted(path, "\t", quotechar, False, on_bad_row)
  return _checked(rows, on_bad_row)


def _checked(rows: Iterable[Row], on_bad_row: OnBadRow) -> list[Row]:
  good = []
  for row in rows:
    try:
      check_text(row)
    except DataError as error:
      on_bad_row(error)
    else:
      good.append(row)
  return good


def reasons_of(errors: Sequence[DataError]) -> str:
  """Counts errors by reason, the most frequent first; values in quotes and numbers do not count.

  Example:
    >>> errors = [("the label 'a' is unknown.", 3), ("it is empty.", 4)]
    >>> errors += [("the label 'b' is unknown.", 7)]
    >>> reasons_of([DataError(reason, "train.csv", line) for reason, line in errors])
    "2 (lines 3, 7) the label 'a' is unknown; 1 (line 4) it is empty"
  """
  largest = by_reason(errors)
  parts = [
    f"{len(group)}{lines_of(group)} {_brief(group[0])}" for group in largest[:_REASONS_SHOWN]
  ]
  if rest := sum(map(len, largest[_REASONS_SHOWN:])):
    parts.append(f"{rest} for other reasons")
  return "; ".join(parts)


def by_reason(errors: Iterable[DataError]) -> list[list[DataError]]:
  """Groups errors by reason, see `reasons_of`."""
  groups: dict[str, list[DataError]] = {}
  for error in errors:
    groups.setdefault(re.sub(r"'[^']*'|\d+", "", error.reason), []).append(error)
  return sorted(groups.values(), key=len, reverse=True)


def with_others(error: DataError, errors: Sequence[DataError], total: int) -> DataError:
  """Returns the error of a row; where others of its file are malformed, it counts them by reason.

  Args:
    error: the first.
    errors: all of the file.
    total: the number of its rows.
  """
  if not errors[1:]:
    return error
  what = f"{len(errors)} of {total} rows are malformed: {reasons_of(errors)}."
  advice = error.advice
  if len(errors) == total:  # nothing would be left to read
    advice = advice.replace(SKIP_ADVICE, "Check that the file is the one that is meant.")
  return DataError(error.reason, error.file, error.line, f"{advice} {what}".lstrip())


def lines_of(errors: Sequence[DataError]) -> str:
  """Lists the first lines of errors in brackets, after a blank; empty where none is known."""
  lines = [str(error.line) for error in errors if error.line is not None]
  more = ", ..." if lines[_LINES_SHOWN:] else ""
  shown = ", ".join(lines[:_LINES_SHOWN]) + more
  return f" ({'lines' if lines[1:] else 'line'} {shown})" if lines else ""


def _brief(error: DataError) -> str:
  reason = error.reason.rstrip(".")
  return reason if len(reason) <= 120 else f"{reason[:117]}..."


def _split_quoted(path, delimiter, quotechar, strict, on_bad_row, count=None) -> list[Row]:
  """Reads all rows, or the first `count`."""
  # A list and not a generator: the raised limit must not outlive this call.
  limit = csv.field_size_limit(_CSV_FIELD_LIMIT)
  try:
    rows = _parse_quoted(path, delimiter, quotechar, strict, on_bad_row)
    return list(itertools.islice(rows, count))
  finally:
    csv.field_size_limit(limit)


class _Lines:
  """The lines of a file for the csv module, of which some can be read again."""

  def __init__(self, path: str):
    self._lines, self._again = read_lines(path), collections.deque[str]()
    self.of_row: list[str] = []  # what the row has taken so far

  def __iter__(self) -> "_Lines":
    return self

  def __next__(self) -> str:
    line = self._again.popleft() if self._again else next(self._lines) + "\n"
    self.of_row.append(line)
    return line

  def keep_first(self) -> None:
    """Gives the lines of the row back, but for the first one."""
    self._again.extendleft(reversed(self.of_row[1:]))
    del self.of_row[1:]


def _parse_quoted(path, delimiter, quotechar, strict, on_bad_row) -> Iterator[Row]:
  lines, line = _Lines(path), 1
  reader = csv.reader(lines, delimiter=delimiter, quotechar=quotechar, strict=strict)
  for number in itertools.count():
    line, lines.of_row = line + len(lines.of_row), []
    try:
      fields = next(reader)
    except StopIteration:
      return
    except csv.Error as e:
      on_bad_row(_csv_error(e, path, line, lines.of_row))
      # A quote that is not closed would take many good rows along.
      lines.keep_first()
    else:
      if fields:
        yield Row(fields, path, line, number)


def _csv_error(error: csv.Error, path: str, line: int, of_row: Sequence[str]) -> DataError:
  """Makes the error about a row that has taken these lines."""
  following = len(of_row) - 1
  if "new-line character" in str(error):
    advice = "Save the file with line feeds (LF or CRLF), or put such a text in double quotes."
    return DataError("a carriage return (CR) stands alone.", path, line, advice)
  if '\\"' in of_row[0] + of_row[-1]:
    reason = r"""the quoting is broken: in CSV, \" does not escape a quote."""
    advice = rf"""Write "" instead: sed 's/\\"/""/g' {path} > FILE. {SKIP_ADVICE}"""
    return DataError(reason, path, line, advice)
  if not following and "unexpected end" not in str(error):
    return DataError(f"the quoting is broken ({error}).", path, line, SKIP_ADVICE)
  where = (
    f"at the right place in the {following} line(s) after it" if following else "before the end"
  )
  reason = f"the quoting is broken: a quote opens here and does not close {where}."
  return DataError(reason, path, line, QUOTE_ADVICE)


def _read_jsonl(path: str, on_bad_row: OnBadRow) -> list[Row]:
  records: list[tuple[int, dict]] = []
  for number, line in enumerate(read_lines(path), 1):
    if line.strip():
      try:
        records.append((number, parse_object(line, path, number)))
      except DataError as e:
        on_bad_row(e)
  if not records:
    return []
  keys = list(dict.fromkeys(key for _, record in records for key in record))
  rows = (Row([record.get(key) for key in keys], path, n, n) for n, record in records)
  return [Row(keys, path, 1, 0), *_checked(rows, on_bad_row)]


def parse_object(line: str, path: str, number: int) -> dict:
  """Parses a line of JSON Lines; the DataError of another line names file and number."""
  try:
    record = json.loads(line)
  except (ValueError, RecursionError) as e:
    advice = SKIP_ADVICE
    if number == 1 and line.strip() in ("[", "{"):
      advice = "Write each object on one line, without what is around them."
      raise DataError("the file is JSON over several lines.", path, advice=advice) from None
    elif line.startswith("{'"):
      advice = "This is Python's way of writing; json.dumps writes JSON."
    fault = f"{e.msg}, character {e.pos + 1}" if isinstance(e, json.JSONDecodeError) else e
    raise DataError(
      f"the line is not JSON ({fault}): {_shown(line)}.", path, number, advice
    ) from None
  if "\\ud" in line.lower():
    try:
      _json(record)
    except UnicodeEncodeError:
      reason = "half of a surrogate pair is not valid UTF-8."
      raise DataError(reason, path, number, SKIP_ADVICE) from None
  if not isinstance(record, dict):
    raise DataError(
      "the line is not a JSON object {...}.",
      path,
      number,
      "Write each object of the list on one line." if isinstance(record, list) else SKIP_ADVICE,
    )
  return record


# ---------------------------------------------------------------------------------------------
# Writing.


def row_writer(path: str, names: Sequence[str]) -> Callable[[Iterable[Any]], bytes]:
  """Returns what writes a row in the format of a file, by the ending of its name.

  Values that are not text are written as JSON. A `.tsv` file has no place for tabs and line breaks
  in texts: they become spaces, see `tsv_field`.

  Args:
    path: of a `.csv`, `.tsv` or `.jsonl` file.
    names: of the columns. The first row of CSV and TSV; the keys of JSON Lines.

  Example:
    >>> row_writer("out.csv", ["id", "text"])([7, 'a "b", c'])
    b'7,"a ""b"", c"\\n'
  """
  if is_json_lines(path):
    return lambda row: _json(dict(zip(names, row, strict=True))) + b"\n"
  if path.endswith(".tsv"):
    return lambda row: ("\t".join(tsv_field(_text(value)) for value in row) + "\n").encode()

  def write(row: Iterable[Any]) -> bytes:
    line = io.StringIO(newline="")
    csv.writer(line, lineterminator="\n").writerow(map(_text, row))
    return line.getvalue().encode()

  return write


def tsv_field(text: str) -> str:
  r"""Returns a field without what would end it.

  A quote means something to the csv module and to pandas where a field begins with it, and there
  alone: such a field is quoted, so that they read the text itself.

  Example:
    >>> tsv_field("a\tb\n"), tsv_field('5" wide')
    ('a b ', '5" wide')
  """
  text = text.translate({ord(c): " " for c in "\t\n\r"})
  return '"' + text.replace('"', '""') + '"' if text.startswith('"') else text


def _text(value: Any) -> str:
  if value is None:
    return ""
  return value if isinstance(value, str) else _json(value).decode()


def _json(value: Any) -> bytes:
  return json.dumps(value, ensure_ascii=False, default=_plain).encode()


def _plain(value: Any) -> Any:
  return value.tolist()  # of NumPy
