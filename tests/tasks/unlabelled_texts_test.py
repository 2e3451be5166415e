"""Tests of bert/tasks/unlabelled_texts.py: texts in lines, and in tables.

Alone: python -m pytest tests/tasks/unlabelled_texts_test.py
"""

import pytest

from bert.io.tables import DataError
from bert.tasks import unlabelled_texts


def read(path, content, *columns, has_pairs=True):
  path.write_text(content, encoding="utf-8")
  return [
    (example.text_a, example.text_b, example.label, example.is_labelled)
    for example in unlabelled_texts.read(str(path), has_pairs, *columns)
  ]


def test_the_same_texts_in_lines_and_tables(tmp_path):
  expected = [("a b", "c", None, False), ("d", "e", None, False)]
  assert read(tmp_path / "a.txt", "a b\tc\n\nd\te\n") == expected
  assert read(tmp_path / "a.csv", "text_b,label,text_a\nc,1,a b\ne,0,d\n") == expected
  assert read(tmp_path / "a.tsv", "x\ty\na b\tc\nd\te\n", "x", "y") == expected
  rows = '{"text_a": "a b"}\n{"text_a": "d"}\n'
  singles = [("a b", None, None, False), ("d", None, None, False)]
  assert read(tmp_path / "a.jsonl", rows, has_pairs=False) == singles


@pytest.mark.parametrize(
  ("name", "content", "columns", "message"),
  [
    ("a.txt", "", (), "a.txt: the file has no texts."),
    ("a.txt", "a\tb\nc\n", (), "a.txt, line 2: one text, but the examples of the task have two"),
    ("a.csv", "x,y\na,b\n", (), "Name one of these columns as --text_a_column"),
    ("a.csv", "text_a,y\na,b\n", (None, "text_b"), "column 'text_b' is not in the header"),
    ("a.csv", "text_a,y\na,b\n", (), "a.csv, line 2: one text, but the examples of the task"),
    ("a.jsonl", '{"text_a": 5, "text_b": "b"}\n', (), "a.jsonl, line 1: text_a is 5, not text."),
  ],
)
def test_a_bad_file_is_named(tmp_path, name, content, columns, message):
  with pytest.raises(DataError) as error:
    read(tmp_path / name, content, *columns)
  assert message in str(error.value)
