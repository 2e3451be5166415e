"""Text tables read strictly: TSV, CSV and JSON Lines, every error with its file and line.

  rows = read_table("train.tsv")          # the header is rows[0]
  rows[3].line                            # 4
  rows[3][9]                              # DataError: train.tsv, line 4: column 9 ... is missing
  rows = read_own_table("my.csv")         # the same for .csv, .tsv and .jsonl of any delimiter

A byte order mark, CRLF, quotes inside plain TSV and fields of any length are read as intended.
Errors in the file (bytes that are not UTF-8, NUL, an unclosed quote) raise a `DataError`.
Pure Python: TensorFlow is imported only to open a path such as `gs://bucket/train.tsv`.
"""

import csv
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from absl import logging

from bert.io import filesystem, other_formats

# The csv module refuses fields above 131072 characters, a limit for the whole process.
_CSV_FIELD_LIMIT = 2**31 - 1
SKIP_ADVICE = "Correct the row, or skip such rows with --skip_bad_rows."
_UTF8_ADVICE = (
  "Save the file as UTF-8 (older programs write Windows-1252), or skip such rows with "
  "--skip_bad_rows."
)

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_ROWS_TO_JUDGE = 20  # in which the delimiter of a table is looked for


class DataError(ValueError):
  """An input file is missing, damaged, or has unexpected content.

  Attributes:
    file: its path, or None.
    line: 1-based number of the line, or None if the error concerns the whole file.
    reason: the fault.
    problem: place and fault, for a message that needs no advice.
  """

  def __init__(self, reason: str, file: str | None = None, line: int | None = None, advice=""):
    self.reason, self.file, self.line = reason, file, line
    place = f"{file}: " if line is None else f"{file}, line {line}: "
    self.problem = f"{place if file else ''}{reason}"
    super().__init__(f"{self.problem} {advice}".rstrip())


class ShortRowError(DataError, IndexError):
  """A row lacks a column. An `IndexError` too, which processors have always caught."""


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
      raise ShortRowError(
        f"column {column} (counted from 0) is missing, the row has {len(self)} column(s).",
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


OnBadRow = Callable[[DataError], None]


def _raise(error: DataError) -> None:
  raise error


def read_lines(path: str) -> Iterator[str]:
  """Yields lines without their ends; bytes not UTF-8 become surrogates (`check_text`)."""
  for number, line in enumerate(_binary_lines(os.fspath(path))):
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


def read_own_table(path: str, on_bad_row: OnBadRow = _raise) -> list[Row]:
  """Reads a table of the user's own, by the ending of its name: `.jsonl`, `.json`, `.tsv` or CSV.

  In a TSV file quotes are text; CSV has quoted fields. Where the first rows have another delimiter
  than the name says (semicolons, as Excel writes in much of Europe), the file is read as CSV with
  that one, which is logged. Where the header has one column, every row is one text.

  Args:
    path: the file.
    on_bad_row: as in `read_table`.

  Returns:
    The header if the file has one, and the rows, as of `read_table` and `read_jsonl`.
  """
  if path.endswith((".jsonl", ".json")):
    return read_jsonl(path, on_bad_row)
  is_tsv = path.endswith(".tsv")
  expected = "\t" if is_tsv else ","
  delimiter = _delimiter_of(path, expected)
  if delimiter != expected:
    logging.info("%s: the fields are separated by %s.", path, DELIMITERS[delimiter])
  elif is_tsv:
    return read_table(path, on_bad_row=on_bad_row)
  rows = read_table(path, delimiter, '"', strict=True, on_bad_row=on_bad_row)
  names_delimiter = bool(rows) and rows[0][0].startswith("sep=") and not any(rows[0][1:])
  rows = rows[1:] if names_delimiter else rows  # Excel writes such a line for itself
  return _one_column(rows, delimiter) if rows and len(rows[0]) == 1 else rows


def _one_column(rows: list[Row], delimiter: str) -> list[Row]:
  """Joins the rows of a file whose header has one column: a delimiter is part of the text."""
  if divided := sum(len(row) > 1 for row in rows):
    logging.info(
      "%s: the header has one column, so %s in a row is part of its text (rows: %d).",
      rows[0].file,
      repr(delimiter),
      divided,
    )
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


def read_table(
  path: str,
  delimiter: str = "\t",
  quotechar: str | None = None,
  strict: bool = False,
  on_bad_row: OnBadRow = _raise,
) -> list[Row]:
  """Reads the rows of a text table, strings, including the header, without blank lines.

  Args:
    path: UTF-8, with or without byte order mark, lines ending in LF or CRLF.
    delimiter: one character.
    quotechar: None reads quotes as text, as GLUE's files need; '"' reads CSV's quoted fields.
    strict: whether text after a closing quote, or a quote never closed, is an error.
    on_bad_row: called with each `DataError`; raises it, or returns to skip the row.

  Raises:
    DataError: the file is missing or UTF-16, or whatever `on_bad_row` raises.
  """
  split = _split_plain if quotechar is None else _split_quoted
  return _checked(split(path, delimiter, quotechar, strict, on_bad_row), on_bad_row)


def _checked(rows: Iterable[Row], on_bad_row: OnBadRow) -> list[Row]:
  good = []
  for row in rows:
    try:
      check_text(row)
    except DataError as e:
      on_bad_row(e)
    else:
      good.append(row)
  return good


def _split_plain(path, delimiter, quotechar, strict, on_bad_row) -> Iterator[Row]:
  del quotechar, strict, on_bad_row
  for number, line in enumerate(read_lines(path)):
    if line:
      yield Row(line.split(delimiter), path, number + 1, number)


def _split_quoted(path, delimiter, quotechar, strict, on_bad_row, count=None) -> list[Row]:
  """Reads all rows, or the first `count`."""
  # A list and not a generator: the raised limit must not outlive this call.
  limit = csv.field_size_limit(_CSV_FIELD_LIMIT)
  try:
    rows = _parse_quoted(path, delimiter, quotechar, strict, on_bad_row)
    return list(itertools.islice(rows, count))
  finally:
    csv.field_size_limit(limit)


def _parse_quoted(path, delimiter, quotechar, strict, on_bad_row) -> Iterator[Row]:
  lines = (line + "\n" for line in read_lines(path))
  reader = csv.reader(lines, delimiter=delimiter, quotechar=quotechar, strict=strict)
  for number in itertools.count():
    line = reader.line_num + 1
    try:
      fields = next(reader)
    except StopIteration:
      return
    except csv.Error as e:
      on_bad_row(_csv_error(e, path, line))
    else:
      if fields:
        yield Row(fields, path, line, number)


def _csv_error(error: csv.Error, path: str, line: int) -> DataError:
  if "new-line character" in str(error):
    advice = "Save the file with line feeds (LF or CRLF), or put such a text in double quotes."
    return DataError("a carriage return (CR) stands alone.", path, line, advice)
  return DataError(f"the quoting is broken ({error}).", path, line, SKIP_ADVICE)


def read_jsonl(path: str, on_bad_row: OnBadRow = _raise) -> list[Row]:
  """Reads one JSON object a line of UTF-8 into the same shape as `read_table`.

  Returns:
    First a row of all keys in order of appearance, then the values, None where a key is missing;
    nothing at all for an empty file.
  """
  records: list[tuple[int, dict]] = []
  for number, line in enumerate(read_lines(path), 1):
    if line.strip():
      try:
        records.append((number, _parse_object(line, path, number)))
      except DataError as e:
        on_bad_row(e)
  if not records:
    return []
  keys = list(dict.fromkeys(key for _, record in records for key in record))
  rows = (Row([record.get(key) for key in keys], path, n, n) for n, record in records)
  return [Row(keys, path, 1, 0), *_checked(rows, on_bad_row)]


def _parse_object(line: str, path: str, number: int) -> dict:
  try:
    record = json.loads(line)
  except (ValueError, RecursionError) as e:
    advice = SKIP_ADVICE
    if number == 1 and line.strip() in ("[", "{"):
      advice = "The file is JSON over several lines; write each object on one line."
    raise DataError(f"the line is not JSON ({e}).", path, number, advice) from None
  if not isinstance(record, dict):
    raise DataError(
      "the line is not a JSON object {...}.",
      path,
      number,
      "Write each object of the list on one line." if isinstance(record, list) else SKIP_ADVICE,
    )
  return record
