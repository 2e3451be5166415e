"""Tables in, tables out: what `predict.py` does with .csv, .tsv and .jsonl files.

  write = writer("out.csv")
  for row, result in answered(predictor, read("new.csv", predictor)):
    file.write(write(row, result))         # the columns of new.csv, prediction and probabilities

Columns of texts are those of the table that the model was trained on, else those with the names of
the model's inputs.
"""

import collections
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.io import text_lines
from bert.io.table_columns import Column, TableReader, find_columns, names_of
from bert.io.tables import DataError, Row, is_json_lines, parse_object, row_writer
from bert.predicting.predictor import Predictor
from bert.tasks import user_tables

_WITH_HEADER = (".csv", ".tsv")
FLAGS = ("--text_a_column", "--text_b_column")
"""What sets the columns of a model's first and second text."""

_ADVICE = (
  "A table without a header needs --noheader and --text_a_column=0; lines of text need another "
  "ending, such as .txt."
)

# Input -> other names of it, of the record of a run and of columns.
_OTHER_NAMES = {"text_a": ("text",), "text": ("text_a",), "text_b": ("text_pair",)}
# What items may have beside a model's inputs.
_OF_ITEMS = {"text", "text_a", "text_b", "text_pair", "words", "token_ids", "input_ids", "truncate"}
# Names of what a result is about, of which a result has one.
_MAIN = ("label", "score", "similarity", "answer", "choice", "entities")


class TableItem(NamedTuple):
  """A row of a table and what a model reads of it."""

  columns: Mapping[str, Any]  # name -> value
  item: Any  # of a `Predictor`
  place: str  # for errors


def is_table(path: str) -> bool:
  """Tells from the ending of its name whether a file is read, or written, as a table."""
  return path.endswith(user_tables.TABLE_ENDINGS)


# ---------------------------------------------------------------------------------------------
# Reading.


def read(
  path: str,
  predictor: Predictor,
  columns: Mapping[str, Column] | None = None,
  header: bool | None = None,
  skip_bad_rows: bool = False,
  is_streamed: bool = True,
) -> Iterator[TableItem]:
  """Yields the rows of a table.

  Args:
    path: of a `.csv`, `.tsv`, `.jsonl` or `.json` file.
    predictor: its model names the texts, and knows their columns in the table of its run.
    columns: name of a text -> its column, where another one is meant.
    header: whether the first row names the columns; by default as in the table of the run.
    skip_bad_rows: whether malformed rows are left out and counted, instead of raised.
    is_streamed: whether rows of JSON Lines, which may differ in their keys, are read one by one.

  Raises:
    DataError: names file, line, fault and remedy.
  """
  find = _Columns(predictor, dict(columns or {}), header)
  if is_json_lines(path) and is_streamed:
    for number, line in enumerate(text_lines.read_lines(path), start=1):
      if line:
        record = parse_object(line, path, number)
        row = Row(record.values(), path, number, number)
        yield find.item_of(row, Row(record, path, number, number))
    return
  reader = TableReader(skip_bad_rows)
  rows = user_tables.read_rows(path, reader)
  has_header = is_json_lines(path) or find.has_header(rows[0])
  first = rows[0] if has_header else Row(map(str, range(len(rows[0]))), path, 1, 0)
  find.of(first, has_header)  # one error, where none of the rows would do
  yield from reader.convert(
    rows, lambda row: find.item_of(row, first, has_header), "rows", has_header
  )


class _Columns:
  """Finds the columns of a model's texts."""

  def __init__(self, predictor: Predictor, given: Mapping[str, Column], header: bool | None):
    processor = predictor.processor
    self._inputs, self._lists = processor.inputs, processor.list_inputs
    self._recorded = processor.texts_in
    self._given, self._header = given, header
    self._found: tuple[Any, dict[str, int]] = (None, {})  # the last names, and their columns

  def has_header(self, first_row: Row) -> bool:
    """Tells whether the first row of CSV or TSV names the columns."""
    if self._header is not None:
      return self._header
    if any(not str(column).lstrip("-").isdecimal() for column in self._given.values()):
      return True
    known = {name for each in self._inputs for name in (each, *_OTHER_NAMES.get(each, ()))}
    return self._recorded.get("header", True) or not known.isdisjoint(names_of(first_row, True))

  def of(self, first: Row, has_header: bool = True) -> dict[str, int]:
    """Returns name of a text -> number of its column; a DataError proposes columns."""
    if self._found[0] != first:
      names = names_of(first, has_header)
      wanted = {each: self._column(each, names) for each in self._inputs}
      flags = dict(zip(self._inputs, FLAGS, strict=False))
      wanted = {each: column for each, column in wanted.items() if column is not None}
      self._found = (first, find_columns(wanted, first, has_header, flags, _ADVICE))
    return self._found[1]

  def _column(self, name: str, names: Sequence[str]) -> Column | None:
    """Returns the column of a text; None where it may be left out."""
    if name in self._given:
      return self._given[name]
    others = _OTHER_NAMES.get(name, ())
    known = (self._recorded[each] for each in (name, *others) if each in self._recorded)
    recorded = next(known, None)
    is_optional = name == "text_b" and recorded is None
    if is_optional and self._recorded:
      return None  # the model was trained on single texts
    if found := next((each for each in (recorded, name, *others) if each in names), None):
      return found
    if is_optional:
      return None
    if isinstance(recorded, int) and names:
      return name  # the run's table had no header
    return name if recorded is None else recorded

  def item_of(self, row: Row, first: Row, has_header: bool = True) -> TableItem:
    """Returns the item of a row of a table whose first row is `first`."""
    names = _unique(first)
    columns = dict(zip(names, [*row, *[None] * (len(names) - len(row))], strict=False))
    try:
      numbers = self.of(first, has_header)
    except DataError:
      known = _OF_ITEMS.intersection(columns) or set(self._inputs).intersection(columns)
      if not known or row.file.endswith(_WITH_HEADER):
        raise
      item = {name: columns[name] for name in known if columns[name] is not None}
      return TableItem(columns, item, row.source)
    item = {name: self._value(name, number, row) for name, number in numbers.items()}
    return TableItem(columns, item, row.source)

  def _value(self, name: str, number: int, row: Row) -> Any:
    value = row[number]
    if name in self._lists:
      return user_tables.list_in(value) if isinstance(value, str) else value
    if value is None and name == "text_b":
      return ""
    if not isinstance(value, str):
      raise row.error(f"the {name} is {value!r:.80}, not text.")
    return value


def _unique(names: Iterable[Any]) -> list[str]:
  """Returns names of columns, those that occur before with a number.

  Example:
    >>> _unique(["id", "text", "text"])
    ['id', 'text', 'text.1']
  """
  found: list[str] = []
  for name in map(str, names):
    found.append(f"{name}.{found.count(name)}" if name in found else name)
  return found


def of_lines(items: Iterable[Any], source: text_lines.Source) -> Iterator[TableItem]:
  """Yields the items of lines of text as rows."""
  for number, item in enumerate(items, start=1):
    columns = {"text": item} if isinstance(item, str) else item
    if isinstance(item, tuple):
      columns = dict(zip(("text_a", "text_b"), item, strict=True))
    yield TableItem(columns, item, text_lines.place(source, number))


# ---------------------------------------------------------------------------------------------
# Results.


def answered(
  predictor: Predictor, rows: Iterable[TableItem], result_name: str | None = None
) -> Iterator[tuple[Mapping[str, Any], dict[str, Any]]]:
  """Yields the columns of each row, and its result by name; `result_name` of one without names."""
  waiting = collections.deque[TableItem]()

  def items() -> Iterator[Any]:
    for row in rows:
      waiting.append(row)
      yield row.item

  for result in predictor.stream(items(), lambda number: waiting[-1].place):
    named = result if isinstance(result, dict) else {result_name or "prediction": result}
    yield waiting.popleft().columns, named


def writer(path: str) -> Callable[[Mapping[str, Any], Mapping[str, Any]], bytes]:
  """Returns what writes the columns of a row and its result, in the format of a file's ending.

  A `.csv` or `.tsv` file has the columns of the first row, `prediction`, and `probability_LABEL` of
  each label, or what else a result has. Any other file has lines of JSON: the columns, then
  `prediction` and all of the result. Results replace columns of their names in CSV and TSV; in JSON
  a column keeps its name, and `prediction` is always that of the result.
  """
  if not path.endswith(_WITH_HEADER):
    return lambda row, result: text_lines.to_json(_in_json(row, result))
  names: list[str] = []

  def write(row: Mapping[str, Any], result: Mapping[str, Any]) -> bytes:
    new = _as_columns(result)
    values = {**{name: value for name, value in row.items() if name not in new}, **new}
    start = b""
    if not names:
      names.extend(values)
      start = row_writer(path, names)(names)
    return start + row_writer(path, names)([values.get(name) for name in names])

  return write


def _in_json(row: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
  further = {name: value for name, value in result.items() if name not in row}
  return {**row, **_main(result), **further}


def _as_columns(result: Mapping[str, Any]) -> dict[str, Any]:
  """Returns the columns of a result.

  Example:
    >>> _as_columns({"label": "b", "probabilities": [0.25, 0.75], "label_names": ["a", "b"]})
    {'prediction': 'b', 'probability_a': 0.25, 'probability_b': 0.75}
  """
  columns = _main(result)
  rest = {name: value for name, value in result.items() if name != _main_name(result)}
  if names := rest.pop("label_names", ()):
    rest.pop("labels", None)  # of which the prediction has the names
    for name, value in zip(names, rest.pop("probabilities"), strict=True):
      columns[f"probability_{name}"] = _short(value)
  return columns | rest


def _main_name(result: Mapping[str, Any]) -> str | None:
  return next((name for name in _MAIN if name in result), None)


def _main(result: Mapping[str, Any]) -> dict[str, Any]:
  name = _main_name(result)
  return {} if name is None else {"prediction": result[name]}


def _short(number: Any) -> float:
  """Returns a float32 with as few digits as it needs."""
  return json.loads(str(np.float32(number)))
