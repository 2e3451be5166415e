"""Texts without labels, for a student that learns from what a teacher says of them.

  examples = read("reviews.txt", has_pairs=False)

A file of text has a text in each line, or two that are separated by a tab. `.csv`, `.tsv` and
`.jsonl` files are tables with the columns `text_a` and `text_b`, or others by name. Pure Python.
"""

import os

from bert.io import tables
from bert.io.table_columns import Column
from bert.io.tables import DataError
from bert.tasks.classification import InputExample
from bert.tasks.user_tables import TableRow, read_table

_TABLES = (".csv", ".tsv", ".jsonl")


def read(
  path: str,
  has_pairs: bool,
  text_a_column: Column | None = None,
  text_b_column: Column | None = None,
) -> list[InputExample]:
  """Reads a file's texts as examples that have no label and are not meant to have one.

  Args:
    path: of the file.
    has_pairs: whether the task has two texts in each example.
    text_a_column: of a table; `text_a` by default.
    text_b_column: of a table; `text_b` by default, if it has one.

  Raises:
    DataError: the file is empty, or a line has not as many texts as the task.
    OSError: the file cannot be read.
  """
  if os.path.splitext(path)[1].lower() in _TABLES:
    columns = {"text_a": text_a_column or "text_a", "text_b": text_b_column or "text_b"}
    needed = ["text_a"] if text_b_column is None else ["text_a", "text_b"]
    flags = {"text_a": "--text_a_column", "text_b": "--text_b_column"}
    examples = read_table(path, columns, _example_of_row, needed, flags=flags)
  else:
    examples = [
      _example_of_line(line, number, path)
      for number, line in enumerate(tables.read_lines(path), start=1)
      if line.strip()
    ]
  if not examples:
    raise DataError("the file has no texts.", path)
  for example in examples:
    if bool(example.text_b) != has_pairs:
      raise DataError(
        f"{example.source}: {'one text' if has_pairs else 'two texts'}, but the examples of the "
        f"task have {'two, separated by a tab here' if has_pairs else 'one'}."
      )
  return examples


def _example_of_row(row: TableRow) -> InputExample:
  for key, value in row.items():
    if not isinstance(value, str) and (key == "text_a" or value is not None):
      raise row.error(f"{key} is {value!r:.80}, not text.")
  guid, (text_a, text_b) = f"row-{row.number}", row.values()
  return InputExample(guid, text_a, text_b, source=row.source, is_labelled=False)


def _example_of_line(line: str, number: int, path: str) -> InputExample:
  text_a, _, text_b = line.partition("\t")
  source = f"{path}, line {number}"
  return InputExample(f"line-{number}", text_a, text_b or None, source=source, is_labelled=False)
