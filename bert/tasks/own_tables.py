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

from bert.io.tables import DataError, Row, read_jsonl, read_table
from bert.tasks.processors import Column, Columns, TableProcessor


class CsvProcessor(TableProcessor):
  """Your own data: `train`, `dev` and `test` files ending in .tsv, .csv or .jsonl.

  In TSV files quotes are text; CSV files have quoted fields; JSON Lines one object per line.
  Columns are given by name, or by number counted from 0. Labels of the test file are ignored.
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
    self.columns = Columns(text_a_column, text_b_column, label_column, id_column, header)
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
    rows = self._read_rows(path)
    if not rows:
      raise DataError("the file is empty.", path)
    columns = self._columns_in("train", rows)
    found: set[str] = set()
    for row in rows[1:] if columns.header else rows:
      try:
        label = self._parse_label(row[columns.label], row)
      except DataError as e:
        self._on_bad_row(e)
      else:
        found.update(label if isinstance(label, tuple) else [label])
    return _sorted_labels(found)

  def _read_split(self, data_dir, split):
    path = _find_table(data_dir, split)
    return self._create_examples(self._read_rows(path), split, path)

  def _read_rows(self, path):
    if path.endswith(".jsonl"):
      return read_jsonl(path, self._on_bad_row)
    if path.endswith(".csv"):
      return read_table(path, ",", '"', strict=True, on_bad_row=self._on_bad_row)
    return super()._read_rows(path)

  def _columns_in(self, set_type, lines):
    header = self.columns.header or lines[0].file.endswith(".jsonl")
    named = lines[0] if header else ()
    return dataclasses.replace(
      self.columns,
      header=header,
      text_b=_default(self.columns.text_b, "text_b", named),
      guid=_default(self.columns.guid, "id", named),
      label=None if set_type == "test" else self.columns.label,
    ).resolve(lines[0])

  def _guid(self, row, set_type, columns):
    given = None if columns.guid is None else row[columns.guid]
    return f"{set_type}-{row.number}" if given in (None, "") else str(given)

  def _parse_label(self, value, row):
    if self.problem_type == "multi_label":
      parts = value.split(self.label_separator) if isinstance(value, str) else value
      if not isinstance(parts, list | None):
        raise row.error(f"the labels {value!r:.80} are neither text nor a list.")
      names = (_class_name(part, row).strip() for part in parts or ())
      return tuple(name for name in names if name)
    label = super()._parse_label(value, row)
    return label if self.problem_type == "regression" else _class_name(label, row)


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
  names = [f"{split}.{ending}" for ending in ("tsv", "csv", "jsonl")]
  for name in names:
    if os.path.exists(path := os.path.join(data_dir, name)):
      return path
  raise DataError(
    f"the folder contains no {' or '.join(names)}.", data_dir, advice="Check --data_dir."
  )


def _default(column: Column | None, name: str, header: Sequence) -> Column | None:
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
