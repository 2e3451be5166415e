"""Processors: where a task keeps its texts and labels, and how it is scored.

  class Reviews(TableProcessor):
    labels = ("bad", "good")
    columns = Columns("review", label="verdict")
    test_columns = Columns("review")

Processors written for google-research/bert work unchanged: derive from `DataProcessor`, read with
`_read_tsv`, add the class to `glue.PROCESSORS`. A malformed row (too short, too long, not UTF-8, an
unknown label) is a `DataError` with file, line and remedy; `skip_bad_rows=True` skips such rows,
counts them and logs their number.

Pure Python, no TensorFlow.
"""

import dataclasses
import difflib
import math
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from absl import logging

from bert.io.tables import SKIP_ADVICE, DataError, Row, read_table
from bert.tasks.classification import InputExample
from bert.tasks.label_counts import unknown_label

Column = str | int  # a name in the header, or a 0-based number


def task_facts(task_name: str, processor: "DataProcessor", labels: Sequence[str]) -> dict[str, Any]:
  """What must be equal for a run of a task to be resumed.

  Args:
    task_name: as it was given.
    processor: of the task. Those written for the original know nothing of problem types.
    labels: of the model, in the order of its outputs.
  """
  problem_type = getattr(processor, "problem_type", "classification")
  return {"task_name": task_name.lower(), "problem_type": problem_type, "labels": labels}


class DataProcessor:
  """The interface of a task. Derive from it for your own data, as with the original.

  Attributes:
    problem_type: "classification" (one class per example), "multi_label" or "regression".
    metrics: names of the task's official metrics, see `metrics.METRICS`.
    headline_metric: the metric that selects the best checkpoint; larger is better.
    is_unordered: whether the two texts of an example may change places; see `--double_unordered`.
  """

  problem_type = "classification"
  metrics: tuple[str, ...] = ("accuracy",)
  headline_metric = "accuracy"
  is_unordered = False

  def get_train_examples(self, data_dir: str) -> list[InputExample]:
    """Examples to train on."""
    raise NotImplementedError(f"{type(self).__name__} has no training set.")

  def get_dev_examples(self, data_dir: str) -> list[InputExample]:
    """Examples to evaluate on."""
    raise NotImplementedError(f"{type(self).__name__} has no dev set.")

  def get_test_examples(self, data_dir: str) -> list[InputExample]:
    """Examples to predict; their labels are placeholders."""
    raise NotImplementedError(f"{type(self).__name__} has no test set.")

  def get_labels(self) -> list[str]:
    """One name per output of the model: the classes, or `["score"]` for regression."""
    raise NotImplementedError(f"{type(self).__name__} has no labels.")

  @classmethod
  def _read_tsv(cls, input_file: str, quotechar: str | None = None) -> list[Row]:
    """Rows of a tab-separated file; quotes are text unless `quotechar` is given."""
    return read_table(input_file, quotechar=quotechar)


def metric_names(processor) -> list[str]:
  """The metrics that a task is evaluated by; classifications also by precision and recall.

  Args:
    processor: one written for the original knows nothing of problem types and metrics.
  """
  names = list(getattr(processor, "metrics", ("accuracy",)))
  if getattr(processor, "problem_type", "classification") == "classification":
    names += ["accuracy", "precision", "recall"]
  return list(dict.fromkeys(names))


@dataclasses.dataclass(frozen=True)
class Columns:
  """The columns of a table of examples.

  Attributes:
    text_a: column of the first text.
    text_b: column of the second text, or None.
    label: column of the label, or None.
    guid: column that identifies the example; with None, the number of the row does.
    header: whether the first row names the columns.
    negative: column of a text that does not fit the first, or None.
    by_flags: whether the user gives the columns, so that errors name the flags.
    names: what `resolve` found in the header.
  """

  text_a: Column
  text_b: Column | None = None
  label: Column | None = None
  guid: Column | None = None
  header: bool = True
  negative: Column | None = None
  by_flags: bool = False
  names: tuple[str, ...] = ()

  def resolve(self, first_row: Row) -> "Columns":
    """Converts names, and numbers counted from the end, to numbers counted from 0.

    Spaces around the names of a header do not count.

    Raises:
      DataError: the file has no such column, or several of that name.
    """
    found: dict[str, Any] = {
      field: self._number(getattr(self, field), first_row, field) for field in _COLUMN_FLAGS
    }
    names = tuple(str(name).strip() for name in first_row) if self.header else ()
    return dataclasses.replace(self, **found, names=names)

  def describe(self, column: int) -> str:
    """A column in messages: its number, and its name if it has one."""
    name = self.names[column] if column < len(self.names) else ""
    return f"column {column} ({name})" if name else f"column {column}"

  def _number(self, column: Column | None, first_row: Row, field: str) -> int | None:
    if isinstance(column, str):
      column = self._number_of_name(column, first_row, field)
    return column + len(first_row) if column is not None and column < 0 else column

  def _number_of_name(self, column: str, first_row: Row, field: str) -> int:
    header = [str(name).strip() for name in first_row] if self.header else []
    if column.strip() in header:
      if header.count(column.strip()) > 1:
        reason = f"the header has {header.count(column.strip())} columns {column.strip()!r}."
        raise first_row.error(reason, f"Give {self._what(field)} by its number, counted from 0.")
      return header.index(column.strip())
    if not column.removeprefix("-").isdecimal():
      raise self._unknown(column, first_row, field)
    if not -len(first_row) <= int(column) < len(first_row):
      reason = f"there is no column {column}: the row has {len(first_row)}, counted from 0."
      raise first_row.error(reason, f"Give another {self._what(field)}.")
    return int(column)

  def _unknown(self, column: str, first_row: Row, field: str) -> DataError:
    if not self.header:
      return first_row.error(
        f"{column!r} is not in the file, which has no header.", "Give columns by number."
      )
    names = [str(name).strip() for name in first_row]
    shown = ", ".join(f"{name:.40}" for name in names[:20]) + (", ..." if names[20:] else "")
    reason = f"column {column!r} is not in the header, which has {shown}."
    near = difflib.get_close_matches(column.lower(), [name.lower() for name in names], n=1)
    meant = next((name for name in names if near and name.lower() == near[0]), None)
    if meant:
      reason = f"{reason} Did you mean {meant!r}?"
    advice = f"Name one of these columns as {self._what(field)}, or give its number from 0."
    if self.by_flags and not meant and not first_row.file.endswith(".jsonl"):
      advice += f" {_HEADER_ADVICE}"
    return first_row.error(reason, advice)

  def _what(self, field: str) -> str:
    return _COLUMN_FLAGS[field] if self.by_flags else field


# The fields of `Columns` -> the flags that set them for a table of one's own.
_COLUMN_FLAGS = {
  "text_a": "--text_a_column",
  "text_b": "--text_b_column",
  "label": "--label_column",
  "guid": "--id_column",
  "negative": "--negative_column",
}
_HEADER_ADVICE = (
  "A file without a header needs --noheader, and columns by number: --text_a_column=0 "
  "--label_column=1."
)


class TableProcessor(DataProcessor):
  """A task in `train.tsv`, `dev.tsv` and `test.tsv`, with quotes read as text.

  Attributes:
    labels: names of the classes, in the order of the model's outputs.
    columns: the columns of the training and dev files.
    test_columns: the columns of the test file, which has no labels.
    skip_bad_rows: whether malformed rows are skipped instead of raised.
    bad_rows: (file, line) -> error of each skipped row.
  """

  labels: tuple[str, ...] = ("0", "1")
  columns: Columns
  test_columns: Columns

  def __init__(self, skip_bad_rows: bool = False):
    self.skip_bad_rows = skip_bad_rows
    self.bad_rows: dict[tuple, DataError] = {}

  def get_train_examples(self, data_dir):
    """See base class."""
    return self._read_examples(data_dir, "train.tsv", "train")

  def get_dev_examples(self, data_dir):
    """See base class."""
    return self._read_examples(data_dir, "dev.tsv", "dev")

  def get_test_examples(self, data_dir):
    """See base class."""
    return self._read_examples(data_dir, "test.tsv", "test")

  def get_labels(self):
    """See base class."""
    return list(self.labels)

  def _read_examples(self, data_dir, file_name, set_type):
    path = os.path.join(data_dir, file_name)
    return self._create_examples(self._read_rows(path), set_type, path)

  def _read_rows(self, path) -> list[Row]:
    return read_table(path, on_bad_row=self._on_bad_row)

  def _on_bad_row(self, error: DataError) -> None:
    if not self.skip_bad_rows:
      raise error
    self.bad_rows[error.file, error.line] = error

  def _columns_of(self, set_type) -> Columns:
    return self.test_columns if set_type.startswith("test") else self.columns

  def _columns_in(self, set_type, lines) -> Columns:
    return self._columns_of(set_type).resolve(lines[0])

  def _create_examples(self, lines, set_type, path=None):
    """One example per row of `lines`, whose first row is the header if the file has one."""
    if not lines:
      raise DataError("the file is empty.", path)
    columns = self._columns_in(set_type, lines)
    if columns.header:
      self._check_header_was_read(lines[0])
    examples = []
    for row in lines[1:] if columns.header else lines:
      try:
        examples.append(self._create_example(row, set_type, columns, width=len(lines[0])))
      except DataError as e:
        self._on_bad_row(e)
    self._report_bad_rows(lines[0].file)
    if not examples:
      raise DataError(f"the file contains no {set_type} examples.", lines[0].file)
    return examples

  def _check_header_was_read(self, first_row):
    # If a bad header were skipped like any row, the first example would be taken for the header.
    for error in self._bad_rows_of(first_row.file):
      if error.line < first_row.line:
        raise error

  def _report_bad_rows(self, file):
    if errors := self._bad_rows_of(file):
      logging.warning("Skipped %d malformed row(s). The first: %s", len(errors), errors[0].problem)

  def _bad_rows_of(self, file) -> list[DataError]:
    return [error for error in self.bad_rows.values() if error.file == file]

  def _create_example(self, row: Row, set_type: str, columns: Columns, width: int):
    if any(row[width:]):
      raise row.error(
        f"{len(row)} columns, expected {width} as in the first row.",
        "Does a text contain the delimiter? " + SKIP_ADVICE,
      )
    text_a = _text(row, columns, columns.text_a)
    text_b = None if columns.text_b is None else _text(row, columns, columns.text_b, optional=True)
    label = self._placeholder_label()
    if columns.label is not None:
      label = self._parse_label(row[columns.label], row)
      self._check_label(label, row)
    guid = self._guid(row, set_type, columns)
    source = f"{row.file}, line {row.line}"
    is_labelled = columns.label is not None
    return InputExample(guid, text_a, text_b, label, source, is_labelled)

  def _guid(self, row, set_type, columns):
    return f"{set_type}-{row.number if columns.guid is None else row[columns.guid]}"

  def _placeholder_label(self):
    # A test file has no labels. The original writes the first class in their place.
    if self.problem_type == "regression":
      return 0.0
    if self.problem_type == "multi_label":
      return ()
    labels = self.get_labels()
    if not labels:
      raise DataError("The labels are unknown: the training file has no rows. Give --labels.")
    return labels[0]

  def _parse_label(self, value, row: Row):
    """A class name, a finite float or a tuple of class names, by problem type."""
    if self.problem_type == "regression":
      return _parse_score(value, row)
    if value is None or value == "":
      raise row.error("the label is empty.")
    return value

  def _check_label(self, label, row: Row):
    if self.problem_type != "regression":
      known = self.get_labels()
      for name in label if isinstance(label, tuple) else [label]:
        if name not in known:
          raise row.error(unknown_label(name, known))


def _text(row: Row, columns: Columns, column, optional: bool = False) -> str | None:
  value = row[column]
  if not isinstance(value, str) and not (optional and value is None):
    raise row.error(f"{columns.describe(column)} contains {value!r}, not text.")
  return value


def _parse_score(value, row: Row) -> float:
  try:
    score = float(value)
  except (TypeError, ValueError, OverflowError):
    score = math.nan
  if not math.isfinite(score):
    reason = f"the label {value!r:.80} is not a finite number."
    raise row.error(" ".join([reason, *_number_advice(str(value))]))
  return score


def _number_advice(text: str) -> Iterator[str]:
  """What is wrong with a number as people and spreadsheets write it."""
  if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", text):
    yield f"Write a decimal point and no comma: {text.strip().replace(',', '.')}."
  elif re.fullmatch(r"\s*[-+]?[\d., '\u00a0\u202f]+\d\s*", text):
    yield "Write numbers without separators of thousands: 1234.5."
  elif text.strip().endswith("%"):
    yield "Write numbers without a unit: 50, not 50%."
