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
import math
import os
import re
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bert.io.table_columns import Column, TableReader, find_columns, names_of
from bert.io.tables import NESTED_ADVICE, DataError, Row, read_tsv
from bert.tasks.classification import InputExample
from bert.tasks.label_counts import unknown_label


def task_facts(task_name: str, processor: "DataProcessor", labels: Sequence[str]) -> dict[str, Any]:
  """Collects what must be equal for a run of a task to be resumed.

  Labels are in the order of the outputs. Processors of the original know no problem types.
  """
  problem_type = getattr(processor, "problem_type", "classification")
  return {"task_name": task_name.lower(), "problem_type": problem_type, "labels": labels}


class DataProcessor:
  """The interface of a task. Derive from it for your own data, as with the original.

  Attributes:
    problem_type: "classification" (one class per example), "multi_label" or "regression".
    metrics: names of the task's official metrics, see `metrics.METRICS`.
    headline_metric: the metric that selects the best checkpoint; larger is better.
  """

  problem_type = "classification"
  metrics: tuple[str, ...] = ("accuracy",)
  headline_metric = "accuracy"

  def get_train_examples(self, data_dir: str) -> list[InputExample]:
    """Reads the examples to train on."""
    raise NotImplementedError(f"{type(self).__name__} has no training set.")

  def get_dev_examples(self, data_dir: str) -> list[InputExample]:
    """Reads the examples to evaluate on."""
    raise NotImplementedError(f"{type(self).__name__} has no dev set.")

  def get_test_examples(self, data_dir: str) -> list[InputExample]:
    """Reads the examples to predict; their labels are placeholders."""
    raise NotImplementedError(f"{type(self).__name__} has no test set.")

  def get_labels(self) -> list[str]:
    """Names the outputs of the model: the classes, or `["score"]` for regression."""
    raise NotImplementedError(f"{type(self).__name__} has no labels.")

  @classmethod
  def _read_tsv(cls, input_file: str, quotechar: str | None = None) -> list[Row]:
    """Reads a tab-separated file; quotes are text unless `quotechar` is given."""
    return read_tsv(input_file, quotechar)


def metric_names(processor) -> list[str]:
  """Lists the metrics that a task is evaluated by; classifications also by precision and recall.

  A processor written for the original knows nothing of problem types and metrics.
  """
  names = list(getattr(processor, "metrics", ("accuracy",)))
  if getattr(processor, "problem_type", "classification") == "classification":
    names += ["accuracy", "precision", "recall"]
  return list(dict.fromkeys(names))


@dataclasses.dataclass(frozen=True)
class Columns:
  """The columns of a table of examples."""

  text_a: Column  # column of the first text
  text_b: Column | None = None  # column of the second text, or None
  label: Column | None = None  # column of the label, or None
  # Column that identifies the example; with None, the number of the row does.
  guid: Column | None = None
  header: bool = True  # whether the first row names the columns
  negative: Column | None = None  # column of a text that does not fit the first, or None
  by_flags: bool = False  # whether the user gives the columns, so that errors name the flags
  names: tuple[str, ...] = ()  # what `resolve` found in the header

  def resolve(self, first_row: Row) -> "Columns":
    """Converts names, and numbers counted from the end, to numbers counted from 0.

    Spaces around the names of a header do not count.

    Raises:
      DataError: the file has no such column, or several of that name.
    """
    given = {field: getattr(self, field) for field in _COLUMN_FLAGS}
    wanted = {field: column for field, column in given.items() if column is not None}
    flags, advice = (_COLUMN_FLAGS, _HEADER_ADVICE) if self.by_flags else (None, "")
    found: dict[str, Any]
    try:
      found = {**find_columns(wanted, first_row, self.header, flags, advice)}
    except DataError as error:
      if self.by_flags:
        raise
      # Nobody can name the columns of a task whose files are known.
      reason = error.reason.partition(" Did you mean")[0]
      raise first_row.error(reason, _KNOWN_ADVICE) from None
    return dataclasses.replace(self, **found, names=names_of(first_row, self.header))

  def texts(self) -> dict[str, Any]:
    """Returns the resolved columns of the texts by name, else by number, for the record of a run.

    `header` says whether such a table names its columns.
    """
    numbers = {"text_a": self.text_a, "text_b": self.text_b}
    found = {
      field: (self.names[int(number) :] or [int(number)])[0]
      for field, number in numbers.items()
      if number is not None
    }
    return {**found, "header": self.header}

  def describe(self, column: Column) -> str:
    """Writes a resolved column for messages: its number, and its name if it has one."""
    number = int(column)
    name = self.names[number] if number < len(self.names) else ""
    return f"column {number} ({name})" if name else f"column {number}"


# The fields of `Columns` -> the flags that set them for a table of one's own.
_COLUMN_FLAGS = {
  "text_a": "--text_a_column",
  "text_b": "--text_b_column",
  "label": "--label_column",
  "guid": "--id_column",
  "negative": "--negative_column",
}
_KNOWN_ADVICE = (
  "Check --data_dir and the task's name; a table of your own is read by --task_name=csv."
)
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
    bad_rows: (file, line) -> error of each malformed row.
    texts_in: the columns of the last file's texts, see `Columns.texts`.
  """

  labels: tuple[str, ...] = ("0", "1")
  columns: Columns
  test_columns: Columns
  texts_in: Mapping[str, Any] = types.MappingProxyType({})

  def __init__(self, skip_bad_rows: bool = False):
    self._reader = TableReader(skip_bad_rows)
    self.skip_bad_rows = skip_bad_rows
    self.bad_rows = self._reader.bad_rows

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
    return read_tsv(path, on_bad_row=self._reader.on_bad_row)

  def _columns_of(self, set_type) -> Columns:
    return self.test_columns if set_type.startswith("test") else self.columns

  def _columns_in(self, set_type, lines) -> Columns:
    return self._columns_of(set_type).resolve(lines[0])

  def _create_examples(self, lines, set_type, path=None):
    """Makes an example of each row of `lines`, the first of which may be the header."""
    self._reader.check_start(lines, path)
    columns = self._columns_in(set_type, lines)
    self.texts_in = columns.texts()
    return self._reader.convert(
      lines,
      lambda row: self._create_example(row, set_type, columns),
      f"{set_type} examples",
      columns.header,
    )

  def _create_example(self, row: Row, set_type: str, columns: Columns) -> InputExample:
    text_a = text_of(row, columns, columns.text_a)
    text_b = (
      None if columns.text_b is None else text_of(row, columns, columns.text_b, optional=True)
    )
    label = self._placeholder_label()
    if columns.label is not None:
      label = self._parse_label(row[columns.label], row)
      self._check_label(label, row)
    guid = self._guid(row, set_type, columns)
    is_labelled = columns.label is not None
    return InputExample(guid, text_a, text_b, label, row.source, is_labelled)

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
    """Returns a class name, a finite float or a tuple of class names, by problem type."""
    if self.problem_type == "regression":
      return parse_score(value, row)
    if value is None or value == "":
      raise row.error("the label is empty.")
    return value

  def _check_label(self, label, row: Row):
    if self.problem_type != "regression":
      known = self.get_labels()
      for name in label if isinstance(label, tuple) else [label]:
        if name not in known:
          raise row.error(unknown_label(name, known))


def text_of(row: Row, columns: Columns, column, optional: bool = False) -> str | None:
  """Returns the text in a column; raises `DataError` for another value, as JSON may hold."""
  value = row[column]
  if not isinstance(value, str) and not (optional and value is None):
    reason = f"{columns.describe(column)} contains {value!r:.200}, not text."
    raise row.error(reason, NESTED_ADVICE) if isinstance(value, dict | list) else row.error(reason)
  return value


def parse_score(value, row: Row) -> float:
  """Returns the finite number in a row; raises `DataError` for anything else."""
  try:
    score = float(value)
  except (TypeError, ValueError, OverflowError):
    score = math.nan
  if not math.isfinite(score):
    reason = f"the label {value!r:.80} is not a finite number."
    raise row.error(" ".join([reason, *_number_advice(str(value))]))
  return score


def _number_advice(text: str) -> Iterator[str]:
  """Yields advice about a number as people and spreadsheets write it."""
  if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", text):
    yield f"Write a decimal point and no comma: {text.strip().replace(',', '.')}."
  elif re.fullmatch(r"\s*[-+]?[\d., '\u00a0\u202f]+\d\s*", text):
    yield "Write numbers without separators of thousands: 1234.5."
  elif text.strip().endswith("%"):
    yield "Write numbers without a unit: 50, not 50%."
