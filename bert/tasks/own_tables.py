"""Your own data: tables in TSV, CSV or JSON Lines, columns and labels as you name them.

  processor = CsvProcessor("data", text_a_column="review", label_column="verdict")
  examples = processor.get_train_examples("data")

Pure Python, no TensorFlow.
"""

import dataclasses
import json
import math
import os
from collections.abc import Iterable, Sequence

from absl import logging

from bert.io import filesystem
from bert.io.tables import DataError, Row, folder_listing, read_own_table
from bert.tasks import label_counts
from bert.tasks.processors import Column, Columns, TableProcessor

_ENDINGS = ("tsv", "csv", "jsonl")


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
      data_dir: folder of the training file, from which labels are inferred if necessary.
      text_a_column: the text.
      text_b_column: the second text of a pair; by default `text_b` if that column exists.
      label_column: the label: a class, a number, or classes joined by `label_separator`.
      id_column: identifies an example in predictions; by default `id` if that column exists.
      labels: all classes, in the order of the model's outputs; by default those of the training
        file, sorted (as numbers if all are integers).
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

  def get_train_examples(self, data_dir):
    """See base class."""
    return self._read_split(data_dir, "train")

  def get_dev_examples(self, data_dir):
    """See base class."""
    return self._read_split(data_dir, "dev")

  def get_test_examples(self, data_dir):
    """See base class."""
    return self._read_split(data_dir, "test")

  def read_texts(self, path: str):
    """The examples of any table, without their labels, if it has some."""
    return self._create_examples(self._read_rows(path), "test", path)

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
    path = _find_table(self.data_dir, "train")
    rows = self._rows_of(path)
    if not rows:
      raise DataError("the file is empty.", path)
    columns = self._columns_in("train", rows)
    found: list[str] = []
    for row in rows[1:] if columns.header else rows:
      try:
        label = self._parse_label(row[columns.label], row)
      except DataError as e:
        self._on_bad_row(e)
      else:
        found += label if isinstance(label, tuple) else [label]
    label_counts.check_is_label(found, path)
    _check_header(rows[0], columns, found)
    return _sorted_labels(set(found))

  def _read_split(self, data_dir, split):
    path = _find_table(data_dir, split)
    examples = self._create_examples(self._rows_of(path), split, path)
    self._rows_read.pop(path)
    _warn_of_texts(examples, path)
    return examples

  def _rows_of(self, path: str) -> list[Row]:
    """The rows, which the labels of the training file need once more than its examples."""
    if path not in self._rows_read:
      self._rows_read[path] = self._read_rows(path)
    return self._rows_read[path]

  def _read_rows(self, path):
    others = {f"{os.path.splitext(path)[0]}.{ending}" for ending in _ENDINGS} - {path}
    for other in filter(filesystem.exists, sorted(others)):
      logging.warning("Reading %s, and not %s beside it.", path, os.path.basename(other))
    return read_own_table(path, self._on_bad_row)

  def _columns_in(self, set_type, lines):
    header = self.columns.header or lines[0].file.endswith(".jsonl")
    named = lines[0] if header else ()
    columns = dataclasses.replace(
      self.columns,
      header=header,
      text_b=default_column(self.columns.text_b, "text_b", named),
      guid=default_column(self.columns.guid, "id", named),
      label=None if set_type == "test" else self.columns.label,
    ).resolve(lines[0])
    if columns.label is not None and columns.label in (columns.text_a, columns.text_b):
      raise lines[0].error(
        f"column {columns.label} is given as text and as label.", "Correct --label_column."
      )
    return columns

  def _guid(self, row, set_type, columns):
    given = None if columns.guid is None else row[columns.guid]
    return f"{set_type}-{row.number}" if given in (None, "") else str(given)

  def _parse_label(self, value, row):
    if self.problem_type == "multi_label":
      parts = value.split(self.label_separator) if isinstance(value, str) else value
      if not isinstance(parts, list | None):
        raise row.error(f"the labels {value!r:.80} are neither text nor a list.")
      names = (self._known(_class_name(part, row).strip()) for part in parts or ())
      return tuple(name for name in names if name)
    label = super()._parse_label(value, row)
    return label if self.problem_type == "regression" else self._known(_class_name(label, row))

  def _known(self, name: str) -> str:
    """The label, or, of 1 and 1.0, the form that is known: pandas writes whole numbers as both."""
    if name in self.labels or not self.labels:
      return name
    other = name.removesuffix(".0") if name.endswith(".0") else name + ".0"
    return other if other in self.labels else name


_METRICS = {
  "classification": ("accuracy", "f1_macro"),
  "multi_label": ("f1_micro", "f1_macro", "accuracy"),
  "regression": ("pearson", "spearman", "mse"),
}


def _class_name(value, row: Row) -> str:
  """A class as text. JSON may hold it as a number or boolean: 1 is "1", true is "true"."""
  if isinstance(value, str):
    return value
  if not isinstance(value, int) and not (isinstance(value, float) and math.isfinite(value)):
    raise row.error(f"the label {value!r:.80} cannot be the name of a class.")
  return json.dumps(value)


def _find_table(data_dir: str, split: str) -> str:
  names = [f"{split}.{ending}" for ending in _ENDINGS]
  paths = [os.path.join(data_dir, name) for name in names]
  if found := next(filter(filesystem.exists, paths), None):
    return found
  if filesystem.is_file(data_dir):
    advice = f"Give its folder, in which the table is called {' or '.join(names)}."
    raise DataError("--data_dir takes a folder, and this is a file.", data_dir, advice=advice)
  reason = f"the folder contains no {' or '.join(names)}."
  raise DataError(reason, data_dir, advice=f"{folder_listing(data_dir)} Check --data_dir.")


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


def default_column(column: Column | None, name: str, header: Sequence) -> Column | None:
  """The column that was given; without one, that of `name`, if the header has it."""
  return name if column is None and name in header else column


def _sorted_labels(labels: Iterable[str]) -> list[str]:
  """Sorted as numbers if all are integers.

  Example:
    >>> _sorted_labels({"10", "9", "-1"}), _sorted_labels({"b", "a", "10"})
    (['-1', '9', '10'], ['10', 'a', 'b'])
  """
  try:
    return sorted(labels, key=lambda label: (int(label), label))
  except ValueError:
    return sorted(labels)
