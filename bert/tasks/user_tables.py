"""Your own data: tables in TSV, CSV or JSON Lines, columns and labels as you name them.

  processor = CsvProcessor("data", text_a_column="review", label_column="verdict")
  examples = processor.get_train_examples("data")

`read_table` is for tasks of your own: rows as dicts, with keys that the task names.

  def example_of(row):
    if row["stars"] not in ("1", "2", "3"):
      raise row.error(f"{row['stars']} stars.")   # data/train.csv, line 7: 9 stars. ...
    return row.text("text"), int(row["stars"])

  examples = read_table("data", {"text": "review", "stars": "rating"}, example_of, split="train")

Pure Python, no TensorFlow.
"""

import ast
import dataclasses
import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from absl import logging

from bert.io import filesystem, tables
from bert.io.table_columns import Column, TableReader, find_columns, names_of
from bert.io.tables import (
  SKIP_ADVICE,
  DataError,
  Row,
  folder_listing,
  is_json_lines,
)
from bert.tasks import label_counts
from bert.tasks.processors import Columns, TableProcessor

_ENDINGS = ("tsv", "csv", "jsonl")
_FOUND_BY_NAME = ("train", "dev", "test", "val", "validation")
TABLE_ENDINGS = (".tsv", ".csv", ".jsonl", ".json")
"""Of tables of the user's own."""
SPLIT_RECORD = "split.json"
"""Says in a directory that its tables are parts of one."""


class TableRow(dict[str, Any]):
  """A row of `read_table`: key -> value, text, or in a JSON Lines file any value of JSON.

  Attributes:
    source: its place, for messages: "train.csv, line 3".
    number: of the row, from 0, the header and blank lines counted.
  """

  def __init__(self, values: Mapping[str, Any], row: Row):
    super().__init__(values)
    self.source, self.number, self._row = row.source, row.number, row

  def error(self, reason: str, advice: str = SKIP_ADVICE) -> DataError:
    """Makes an error about this row, with file, line and advice; raise it."""
    return self._row.error(reason, advice)

  def text(self, key: str) -> str:
    """Returns the text of a key; a DataError for a blank or other value."""
    if not isinstance(self[key], str) or not self[key].strip():
      raise self.error(f"{key} is {self[key]!r:.80}, not text.")
    return self[key]


def read_table(
  path: str | os.PathLike,
  columns: Mapping[str, Column],
  convert: Callable[[TableRow], Any] | None = None,
  needed: Collection[str] | None = None,
  split: str | None = None,
  skip_bad_rows: bool = False,
  header: bool = True,
  flags: Mapping[str, str] | None = None,
) -> list:
  """Reads a table: `.csv`, `.tsv` or `.jsonl`, see `CsvProcessor` for the formats.

  Args:
    path: of the file, or with `split` of its folder.
    columns: key -> the column with its values, by name or by number from 0.
    convert: makes an example of a row; raises `row.error` for a malformed one.
    needed: keys whose column must exist; by default all. The value of others may be None.
    split: `train`, `dev` or `test`: the name of the file, without its ending.
    skip_bad_rows: whether malformed rows are skipped, with a warning, instead of raised.
    header: whether the first row of a TSV or CSV file names the columns.
    flags: key -> the flag that sets its column, for errors; by default the key.

  Returns:
    What `convert` has made of each row; without it, the `TableRow`s.

  Raises:
    DataError: names file, line, fault and remedy.
    OSError: the file cannot be read.
  """
  path = find_table(os.fsdecode(path), split) if split else os.fsdecode(path)
  reader = TableReader(skip_bad_rows)
  rows = read_rows(path, reader)
  header = header or is_json_lines(path)
  names, wanted = names_of(rows[0], header), set(columns)
  if needed is not None:
    wanted = {
      key
      for key, column in columns.items()
      if key in needed or not isinstance(column, str) or column.strip() in names
    }
  sought = {key: column for key, column in columns.items() if key in wanted}
  numbers = find_columns(sought, rows[0], header, flags)

  def to_example(row: Row):
    values = {key: row[numbers[key]] if key in wanted else None for key in columns}
    return convert(TableRow(values, row)) if convert else TableRow(values, row)

  return reader.convert(rows, to_example, f"{split} examples" if split else "rows", header)


class CsvProcessor(TableProcessor):
  """Your own data: `train`, `dev` and `test` files ending in .tsv, .csv or .jsonl.

  In TSV files quotes are text; CSV files have quoted fields, separated by commas, semicolons, tabs
  or vertical bars; JSON Lines one object per line. Columns are given by name, or by number counted
  from 0. Labels of the test file are ignored. A whole number is the same label with `.0` and
  without, if the training file has it in one form.
  """

  def __init__(
    self,
    data_dir: str | None = None,
    text_a_column: Column = "text_a",
    text_b_column: Column | None = None,
    label_column: Column = "label",
    id_column: Column | None = None,
    labels: Sequence[str] | None = None,
    problem_type: str = "classification",
    label_separator: str = ",",
    header: bool = True,
    skip_bad_rows: bool = False,
  ):
    """Describes the data.

    Args:
      data_dir: folder of the training file, from which labels are inferred if necessary. Or a
        file: each split is then the whole of it.
      text_a_column: the text; by default `text` if there is no `text_a`.
      text_b_column: the second text of a pair; by default `text_b` if that column exists.
      label_column: the label: a class, a number, or classes joined by `label_separator`. Also
        several columns, `toxic,insult`, with a 0 or 1 for each class of "multi_label".
      id_column: identifies an example in predictions; by default `id` if that column exists.
      labels: all classes, in the order of the model's outputs; by default the label columns, if
        there are several, or those of the training file, sorted (as numbers if all are integers).
      problem_type: "classification", "multi_label" or "regression".
      label_separator: separates the classes of a multi-label example.
      header: whether the first row of a TSV or CSV file names the columns.
      skip_bad_rows: whether malformed rows are skipped instead of raised.
    """
    super().__init__(skip_bad_rows)
    if problem_type not in _METRICS:
      raise ValueError(f"problem_type is {problem_type!r}, not one of {list(_METRICS)}.")
    self.problem_type = problem_type
    self.metrics = _METRICS[problem_type]
    self.headline_metric = self.metrics[0]
    self.data_dir = data_dir
    self.label_separator = label_separator
    self.columns = Columns(
      text_a_column, text_b_column, label_column, id_column, header, by_flags=True
    )
    self._rows_read: dict[str, list[Row]] = {}
    self.labels = tuple(labels or ())
    self.labels_of = ""  # the folder of the trained model whose labels these are, for errors

  def get_train_examples(self, data_dir):
    """See base class."""
    return self._read_split(data_dir, "train")

  def get_dev_examples(self, data_dir):
    """See base class."""
    return self._read_split(data_dir, "dev")

  def get_test_examples(self, data_dir):
    """See base class."""
    return self._read_split(data_dir, "test")

  def get_labels(self):
    """See base class."""
    if self.problem_type == "regression":
      return ["score"]
    if not self.labels:
      self.labels = tuple(self._infer_labels())
    return list(self.labels)

  def _infer_labels(self) -> list[str]:
    if self.data_dir is None:
      raise DataError("the labels are unknown.", advice="Give labels, or data_dir to infer them.")
    path = find_table(self.data_dir, "train")
    rows = self._rows_of(path, "train")
    if self.labels:
      return list(self.labels)
    columns, found = self._labels_of(rows, "train")
    label_counts.check_is_label(found, path)
    _check_header(rows[0], columns, found)
    names = _sorted_labels(set(found))
    if not names:
      self._reader.finish(path, 0)
    return names

  def labels_in(self, data_dir: str, *splits: str) -> list[str]:
    """Returns the labels that occur in `train`, `dev` or both, sorted."""
    parts = ((self._rows_of(find_table(data_dir, split), split), split) for split in splits)
    return _sorted_labels({label for part in parts for label in self._labels_of(*part)[1]})

  def _labels_of(self, rows: list[Row], split: str) -> tuple[Columns, list[str]]:
    columns = self._columns_in(split, rows)
    found: list[str] = []
    for row in rows[1:] if columns.header else rows:
      try:
        self._reader.check_row(row, rows[0], columns.header)
        label = self._parse_label(row[columns.label], row)
      except DataError as e:
        self._reader.on_bad_row(e)
      else:
        found += label if isinstance(label, tuple) else [label]
    return columns, found

  def _read_split(self, data_dir, split):
    path = find_table(data_dir, split)
    rows = self._rows_of(path, split)
    self.get_labels()  # their errors are of another file, or of all rows
    try:
      examples = self._create_examples(rows, split, path)
    finally:
      self._rows_read.pop(path)
    if not self.skip_bad_rows:
      for other, rows in self._rows_read.items():  # which the labels are from
        self._reader.finish(other, len(rows) - 1)
    if not filesystem.exists(os.path.join(data_dir, SPLIT_RECORD)):
      _warn_of_texts(examples, path)  # else they were looked at when the table was divided
    return examples

  def _rows_of(self, path: str, split: str) -> list[Row]:
    """Reads the rows, which the labels of the training file need as well as its examples."""
    if path not in self._rows_read:
      rows = self._read_rows(path)
      if split != "test" and (numbers := self._label_numbers(rows[0])):
        self.labels = self.labels or tuple(numbers)
        rows = self._with_lists(rows, numbers)
      self._rows_read[path] = rows
    return self._rows_read[path]

  def _label_numbers(self, first_row: Row) -> dict[str, int]:
    """Returns class -> its column of 0 and 1, where `label_column` names several."""
    given, has_header = str(self.columns.label), self._has_header(first_row)
    names = names_of(first_row, has_header)
    parts = [part.strip() for part in given.split(",")]
    known = [part for part in parts if part in names or part.isdecimal()]
    if given.strip() in names or not parts[1:] or not known:
      return {}
    if self.problem_type != "multi_label":
      advice = "Give --problem_type=multi_label, or one column."
      raise first_row.error(f"--label_column={given} names several columns.", advice)
    flags = dict.fromkeys(parts, "--label_column")
    numbers = find_columns({part: part for part in parts}, first_row, has_header, flags)
    return {names[n] if names else part: n for part, n in numbers.items()}

  def _has_header(self, first_row: Row) -> bool:
    return self.columns.header or is_json_lines(first_row.file)

  def _with_lists(self, rows: list[Row], numbers: Mapping[str, int]) -> list[Row]:
    """Puts the names of the classes that are 1 in place of the first class's value."""
    has_header = self._has_header(rows[0])
    found = rows[:1] if has_header else []
    for row in rows[has_header:]:
      try:
        row[next(iter(numbers.values()))] = [
          name for name, number in numbers.items() if _is_one(row[number], name, row)
        ]
        found.append(row)
      except DataError as e:
        self._reader.on_bad_row(e)
    return found

  def _read_rows(self, path):
    return read_rows(path, self._reader)

  def _columns_in(self, set_type, lines):
    columns = self.columns
    if set_type == "test":
      columns = dataclasses.replace(columns, label=None)
    elif numbers := self._label_numbers(lines[0]):
      columns = dataclasses.replace(columns, label=next(iter(numbers.values())))
    return resolve_columns(columns, lines[0])

  def _guid(self, row, set_type, columns):
    return guid_of(row, set_type, columns)

  def _parse_label(self, value, row):
    if self.problem_type == "multi_label":
      parts = list_in(value) if isinstance(value, str) else value
      if isinstance(parts, str):
        parts = parts.split(self.label_separator)
      if not isinstance(parts, list | None):
        raise row.error(f"the labels {value!r:.80} are neither text nor a list.")
      names = [self._known(_class_name(part, row).strip()) for part in parts or ()]
      if len(set(names)) < len(names) and set(names) <= {"0", "1"}:
        raise row.error(
          f"the labels {value!r:.80} are a 0 or 1 for each class.",
          "Write the names of those that are 1, or a column for each class: --label_column=a,b,c.",
        )
      return tuple(name for name in names if name)
    label = super()._parse_label(value, row)
    return label if self.problem_type == "regression" else self._known(_class_name(label, row))

  def _check_label(self, label, row):
    try:
      super()._check_label(label, row)
    except DataError as error:
      if not self.labels_of:
        raise
      raise row.error(
        error.reason,
        f"The model in {self.labels_of} has learned these. If the data are of another task, give "
        "the folder of its run as --output_dir; if not, correct the row, or skip such rows with "
        "--skip_bad_rows.",
      ) from None

  def _known(self, name: str) -> str:
    """Returns the label, of 1 and 1.0 the known one: pandas writes whole numbers as both."""
    if name in self.labels or not self.labels:
      return name
    other = name.removesuffix(".0") if name.endswith(".0") else name + ".0"
    return other if other in self.labels else name


_METRICS = {
  "classification": ("accuracy", "f1_macro"),
  "multi_label": ("f1_micro", "f1_macro", "accuracy"),
  "regression": ("pearson", "spearman", "mse"),
}


def list_in(text: str) -> Any:
  """Reads a list as pandas writes it to CSV, or a JSON file of text; other texts stay.

  Example:
    >>> list_in("['a', 'b']"), list_in("a,b"), list_in("[sic]")
    (['a', 'b'], 'a,b', '[sic]')
  """
  if text.strip()[:1] == "[":
    try:
      return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, RecursionError):
      pass
  return text


def _is_one(value, name: str, row: Row) -> bool:
  text = str(value).strip().lower().removesuffix(".0")
  if text not in ("0", "1", "false", "true"):
    raise row.error(f"column {name!r} has {value!r:.80}, not 0 or 1.")
  return text in ("1", "true")


def _class_name(value, row: Row) -> str:
  """Writes a class as text. JSON may hold a number or a boolean: 1 is "1", true is "true"."""
  if isinstance(value, str):
    return value
  if not isinstance(value, int) and not (isinstance(value, float) and math.isfinite(value)):
    raise row.error(
      f"the label {value!r:.80} cannot be the name of a class.",
      "For several labels give --problem_type=multi_label."
      if isinstance(value, list)
      else SKIP_ADVICE,
    )
  return json.dumps(value)


def find_table(data_dir: str, split: str) -> str:
  """Finds the table of a split in a folder, or raises a DataError; a file is all splits."""
  if is_table(data_dir):
    return data_dir
  names = [f"{split}.{ending}" for ending in _ENDINGS]
  paths = [os.path.join(data_dir, name) for name in names]
  if found := next(filter(filesystem.exists, paths), None):
    return found
  if filesystem.is_file(data_dir):
    advice = f"Give its folder, in which the table is called {' or '.join(names)}."
    raise DataError("--data_dir takes a folder, and this is a file.", data_dir, advice=advice)
  reason = f"the folder contains no {' or '.join(names)}."
  raise DataError(reason, data_dir, advice=f"{folder_listing(data_dir)} Check --data_dir.")


def is_table(path: str) -> bool:
  """Tells whether a path is a file that `tables.read_table` reads."""
  return path.endswith(TABLE_ENDINGS) and filesystem.is_file(path)


def _check_header(first_row: Row, columns: Columns, labels: Iterable[str]) -> None:
  """Warns where the first row looks like an example."""
  if columns.header and str(first_row[columns.label]).strip() in labels:
    logging.warning(
      "%s, line %d is read as the names of the columns, but has the label %r. If the file has no "
      "header, give --noheader.",
      first_row.file,
      first_row.line,
      first_row[columns.label],
    )


def _warn_of_texts(examples: Sequence, path: str) -> None:
  texts = [example.text_a for example in examples]
  quoted = sum(text[:1] == text[-1:] == '"' and len(text) > 1 for text in texts)
  if quoted > len(texts) / 2:
    logging.warning(
      "%d of %d texts in %s stand in double quotes, which belong to the text in a .tsv file. To "
      "have them read as quotes, call the file .csv; its tabs are found.",
      quoted,
      len(texts),
      path,
    )
  empty = [example for example in examples if not example.text_a.strip()]
  if empty:
    logging.warning(
      "%d of %d texts are empty, the first in %s.", len(empty), len(examples), empty[0].source
    )


def read_rows(path: str, reader: TableReader) -> list[Row]:
  """Reads the rows of a table, at least one; see `tables.read_table`."""
  stem = os.path.splitext(path)[0]
  others = {f"{stem}.{ending}" for ending in _ENDINGS} - {path}
  if os.path.basename(stem) not in _FOUND_BY_NAME:
    others.clear()  # the user has named the file
  for other in filter(filesystem.exists, sorted(others)):
    logging.warning("Reading %s, and not %s beside it.", path, os.path.basename(other))
  rows = tables.read_table(path, reader.on_bad_row)
  reader.check_start(rows, path)
  return rows


def resolve_columns(columns: Columns, first_row: Row, **defaults: str) -> Columns:
  """Finds the columns of a table by its first row; see `Columns.resolve`.

  The names in `defaults` are for columns that are not given, and are taken if the header has them.
  `text_b` and `id` have defaults anyway, and `text` stands for `text_a` where that is not there.

  Raises:
    DataError: a column is missing, or is given as text and as label.
  """
  header = columns.header or is_json_lines(first_row.file)
  defaults = {"text_b": "text_b", "guid": "id", **defaults}
  found: dict[str, Any] = {
    field: name
    for field, name in defaults.items()
    if header and name in first_row and getattr(columns, field) is None
  }
  names = names_of(first_row, header)
  if columns.text_a == "text_a" and "text" in names and "text_a" not in names:
    found["text_a"] = "text"
  columns = dataclasses.replace(columns, header=header, **found).resolve(first_row)
  if columns.label is not None and columns.label in (columns.text_a, columns.text_b):
    raise first_row.error(
      f"column {columns.label} is given as text and as label.", "Correct --label_column."
    )
  return columns


def guid_of(row: Row, set_type: str, columns: Columns) -> str:
  """Returns what identifies an example: its id, or the number of its row."""
  given = None if columns.guid is None else row[columns.guid]
  return f"{set_type}-{row.number}" if given in (None, "") else str(given)


def _sorted_labels(labels: Iterable[str]) -> list[str]:
  """Sorts labels, as numbers if all are integers.

  Example:
    >>> _sorted_labels({"10", "9", "-1"}), _sorted_labels({"b", "a", "10"})
    (['-1', '9', '10'], ['10', 'a', 'b'])
  """
  try:
    return sorted(labels, key=lambda label: (int(label), label))
  except ValueError:
    return sorted(labels)
