"""Reading TSV, CSV and JSON Lines."""

import csv

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from bert.io import tables
from bert.io.tables import DataError


def write(tmp_path, content, name="t.tsv"):
  path = tmp_path / name
  path.write_bytes(content if isinstance(content, bytes) else content.encode())
  return str(path)


def test_rows_of_tsv(tmp_path):
  content = "label\ttext\r\n\r\n1\t\"He said\n\n'x\ta\u2028b\x85\x0b"
  rows = tables.read_table(write(tmp_path, b"\xef\xbb\xbf" + content.encode()))
  assert rows == [["label", "text"], ["1", '"He said'], ["'x", "a\u2028b\x85\x0b"]]
  assert [(row.line, row.number) for row in rows] == [(1, 0), (3, 2), (5, 4)]


def test_field_above_the_csv_modules_limit(tmp_path):
  before = csv.field_size_limit()
  path = write(tmp_path, "x" * 200_000 + ",1\n", "t.csv")
  assert len(tables.read_table(path)[0][0]) == 200_000
  assert csv.field_size_limit() == before


@pytest.mark.parametrize("name", ["t.tsv", "t.csv"])
@pytest.mark.parametrize(("bad", "reason"), [(b"b\xff\t", "not valid UTF-8"), (b"b\0\t", "NUL")])
def test_damaged_row_is_named_or_left_out(tmp_path, bad, reason, name):
  path = write(tmp_path, b"a\tb\n" + bad + b"\nc\td\n", name)
  with pytest.raises(DataError, match=rf"{name}, line 2: .*{reason}"):
    tables.read_table(path)
  errors = []
  assert tables.read_table(path, errors.append) == [["a", "b"], ["c", "d"]]
  assert [(error.file, error.line) for error in errors] == [(path, 2)]


def test_missing_file_names_its_neighbours(tmp_path):
  write(tmp_path, "", "train.csv")
  for path, words in (("train.tsv", r"train\.csv"), ("no/train.tsv", "no folder"), (".", "cannot")):
    with pytest.raises(DataError, match=words):
      tables.read_tsv(str(tmp_path / path))


def test_short_row_is_found_by_whoever_reads_it(tmp_path):
  row = tables.read_table(write(tmp_path, "a\tb\nc\n"))[1]
  with pytest.raises(DataError, match="line 2: column 4") as info:
    row[4]
  # Processors of old caught what a list raises.
  assert isinstance(info.value, IndexError)
  assert (row[-1], row[:3]) == ("c", ["c"])


def test_csv_fields_may_hold_delimiters_quotes_and_lines(tmp_path):
  path = write(tmp_path, 'text,label\r\n"a, ""b""\r\nc",1\r\nlast,0\r\n', "t.csv")
  rows = tables.read_table(path)
  assert rows == [["text", "label"], ['a, "b"\nc', "1"], ["last", "0"]]
  assert [row.line for row in rows] == [1, 2, 4]


def test_quote_never_closed_names_where_it_opened(tmp_path):
  path = write(tmp_path, 'text,label\nok,1\n"open,1\nx,0\ny,1\n', "t.csv")
  said = "line 3: .* a quote opens here and does not close at the right place in the 2 line"
  with pytest.raises(DataError, match=said):
    tables.read_table(path)
  # Where such rows are skipped, the rows that the quote would take along stay.
  errors = []
  rows = tables.read_table(path, errors.append)
  assert rows == [["text", "label"], ["ok", "1"], ["x", "0"], ["y", "1"]]
  assert [row.line for row in rows] == [1, 2, 4, 5]
  assert [error.line for error in errors] == [3]


def test_quotes_of_tsv_are_read_where_a_processor_wants_it(tmp_path):
  path = write(tmp_path, '"Hello" he said\t1\n')
  assert tables.read_tsv(path, quotechar='"') == [["Hello he said", "1"]]


def test_jsonl_becomes_a_table(tmp_path):
  path = write(tmp_path, '\ufeff{"a": "x", "n": 1}\n\n{"n": 2, "b": ["p"]}\r\n', "t.jsonl")
  rows = tables.read_table(path)
  assert rows == [["a", "n", "b"], ["x", 1, None], [None, 2, ["p"]]]
  assert [row.line for row in rows] == [1, 1, 3]
  assert tables.read_table(write(tmp_path, "", "t.jsonl")) == []


@pytest.mark.parametrize(
  ("bad", "reason"),
  [
    (b'{"a": "\xff"}', "UTF-8"),
    (b'{"a": "\\ud800"}', "UTF-8"),
    (b'{"a": "\\u0000"}', "NUL"),
    (b'{"a":' + b"[" * 200_000, "not JSON"),
  ],
)
def test_bad_json_is_named_or_left_out(tmp_path, bad, reason):
  path = write(tmp_path, b'{"a": "y"}\n' + bad + b'\n{"a": "z"}\n', "t.jsonl")
  with pytest.raises(DataError, match=reason) as info:
    tables.read_table(path)
  assert info.value.line == 2
  assert tables.read_table(path, lambda error: None) == [["a"], ["y"], ["z"]]


@pytest.mark.parametrize("name", ["t.tsv", "t.csv", "t.jsonl"])
@hypothesis.settings(deadline=None)  # machines may be slow
@hypothesis.given(content=st.binary(max_size=200))
def test_any_bytes_give_rows_or_an_error_that_names_the_file(tmp_path_factory, name, content):
  path = write(tmp_path_factory.mktemp("t"), content, name)
  errors = []
  try:
    tables.read_table(path, errors.append)
  except DataError as e:  # what concerns the file as a whole is raised whatever the caller says
    errors.append(e)
  for error in errors:
    assert error.file == path
    assert error.line is None or 1 <= error.line <= content.count(b"\n") + 1


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_rows_that_were_written_are_read(tmp_path, ending):
  path, names = f"{tmp_path}/x.{ending}", ["a", "b, c"]
  rows = [['say "hi", then', "two\nlines"], ["", "\t;|"], ["é", "=1"]]
  with open(path, "wb") as file:
    write = tables.row_writer(path, names)
    file.writelines(map(write, [*([names] if ending == "csv" else []), *rows]))
  assert tables.read_table(path) == [names, *rows]


def test_values_that_are_not_text_are_written_as_json():
  values = [None, 7, 0.5, True, ["a", 1], {"é": None}, np.float32([0.5, 1])]
  assert (
    tables.row_writer("x.tsv", [])(values)
    == '\t7\t0.5\ttrue\t["a", 1]\t{"é": null}\t[0.5, 1.0]\n'.encode()
  )


def test_a_file_of_one_column_has_delimiters_in_its_texts(tmp_path):
  path = write(tmp_path, 'Text\nHello, you, there\n"Quoted, ""really"""\nNice; but slow\n', "t.csv")
  rows = tables.read_table(path)
  assert rows == [["Text"], ["Hello, you, there"], ['Quoted, "really"'], ["Nice; but slow"]]
  assert [row.line for row in rows] == [1, 2, 3, 4]
