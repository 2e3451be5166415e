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


def test_quotes_are_text(tmp_path):
  path = write(tmp_path, 'a\t"He said\tb"\n\'x\t"\t""\n')
  assert tables.read_table(path) == [["a", '"He said', 'b"'], ["'x", '"', '""']]


def test_byte_order_mark_and_crlf_are_no_text(tmp_path):
  path = write(tmp_path, b"\xef\xbb\xbflabel\ttext\r\n1\thello\r\n")
  assert tables.read_table(path) == [["label", "text"], ["1", "hello"]]


@pytest.mark.parametrize("char", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\xa0"])
def test_only_line_feeds_end_rows(tmp_path, char):
  assert tables.read_table(write(tmp_path, f"1\ta{char}b\n")) == [["1", f"a{char}b"]]


def test_blank_lines_are_left_out_but_counted(tmp_path):
  rows = tables.read_table(write(tmp_path, "a\n\n\r\nb\n\n"))
  assert rows == [["a"], ["b"]]
  assert [(row.line, row.number) for row in rows] == [(1, 0), (4, 3)]


def test_last_line_needs_no_end(tmp_path):
  assert tables.read_table(write(tmp_path, "a\tb\nc\td")) == [["a", "b"], ["c", "d"]]


@pytest.mark.mutation("bert.io.tables:_split_quoted", "call field_size_limit")
@pytest.mark.parametrize("quotechar", [None, '"'])
def test_field_above_the_csv_modules_limit(tmp_path, quotechar):
  before = csv.field_size_limit()
  path = write(tmp_path, "x" * 200_000 + "\t1\n")
  assert len(tables.read_table(path, quotechar=quotechar)[0][0]) == 200_000
  assert csv.field_size_limit() == before


def test_empty_file_has_no_rows(tmp_path):
  assert tables.read_table(write(tmp_path, "")) == []
  assert tables.read_jsonl(write(tmp_path, "")) == []


@pytest.mark.mutation("bert.io.tables:check_text", "call encode")
@pytest.mark.parametrize("quotechar", [None, '"'])
@pytest.mark.parametrize(
  ("bad", "reason"), [(b"b\xff\tc", "not valid UTF-8"), (b"b\x00\tc", "NUL")]
)
def test_damaged_row_is_named_or_left_out(tmp_path, bad, reason, quotechar):
  path = write(tmp_path, b"a\tb\n" + bad + b"\nc\td\n")
  with pytest.raises(DataError, match=reason) as info:
    tables.read_table(path, quotechar=quotechar)
  assert "t.tsv, line 2" in str(info.value)
  errors = []
  rows = tables.read_table(path, quotechar=quotechar, on_bad_row=errors.append)
  assert rows == [["a", "b"], ["c", "d"]]
  assert [(error.file, error.line) for error in errors] == [(path, 2)]


def test_missing_file_names_its_neighbours(tmp_path):
  write(tmp_path, "", "train.csv")
  with pytest.raises(DataError, match=r"train\.csv"):
    tables.read_table(str(tmp_path / "train.tsv"))
  with pytest.raises(DataError, match="no folder"):
    tables.read_table(str(tmp_path / "nowhere" / "train.tsv"))
  with pytest.raises(DataError, match="cannot be read"):
    tables.read_table(str(tmp_path))


def test_short_row_is_found_by_whoever_reads_it(tmp_path):
  row = tables.read_table(write(tmp_path, "a\tb\nc\n"))[1]
  with pytest.raises(DataError, match="line 2: column 4") as info:
    row[4]
  # Processors of old caught what a list raises.
  assert isinstance(info.value, IndexError)
  assert row[-1] == "c"
  assert row[:3] == ["c"]


def test_csv_fields_may_hold_delimiters_quotes_and_lines(tmp_path):
  path = write(tmp_path, 'text,label\r\n"a, ""b""\r\nc",1\r\nlast,0\r\n', "t.csv")
  rows = tables.read_table(path, ",", '"', strict=True)
  assert rows == [["text", "label"], ['a, "b"\nc', "1"], ["last", "0"]]
  assert [row.line for row in rows] == [1, 2, 4]


def test_quote_never_closed_names_where_it_opened(tmp_path):
  path = write(tmp_path, 'text,label\nok,1\n"open,1\nx,0\ny,1\n', "t.csv")
  with pytest.raises(DataError, match="line 3: the quoting is broken") as raised:
    tables.read_table(path, ",", '"', strict=True)
  assert (
    "a quote opens here and does not close at the right place in the 2 line(s) after it"
    in str(raised.value)
  )
  # Where such rows are skipped, the rows that the quote would take along stay.
  errors = []
  rows = tables.read_table(path, ",", '"', strict=True, on_bad_row=errors.append)
  assert rows == [["text", "label"], ["ok", "1"], ["x", "0"], ["y", "1"]]
  assert [row.line for row in rows] == [1, 2, 4, 5]
  assert [error.line for error in errors] == [3]


def test_a_file_that_is_not_utf8_is_not_mended_by_skipping_rows(tmp_path):
  good, bad = b"a\tb\n" * 9, b"\xff\tb\n"
  for content, advice in ((good + bad, "--skip_bad_rows"), (good + bad * 2, "2 of 11 rows")):
    with pytest.raises(DataError, match="line 10: the row is not valid UTF-8") as raised:
      tables.read_table(write(tmp_path, content))
    assert ("--skip_bad_rows" in str(raised.value)) == (advice == "--skip_bad_rows")
    assert advice in str(raised.value)


def test_text_after_a_closing_quote_is_tolerated_unless_strict(tmp_path):
  path = write(tmp_path, '"Hello" he said\t1\n')
  assert tables.read_table(path, quotechar='"') == [["Hello he said", "1"]]
  with pytest.raises(DataError, match="quoting"):
    tables.read_table(path, quotechar='"', strict=True)


def test_jsonl_becomes_a_table(tmp_path):
  path = write(tmp_path, '\ufeff{"a": "x", "n": 1}\n\n{"n": 2, "b": ["p"]}\r\n', "t.jsonl")
  rows = tables.read_jsonl(path)
  assert rows == [["a", "n", "b"], ["x", 1, None], [None, 2, ["p"]]]
  assert [row.line for row in rows] == [1, 1, 3]


@pytest.mark.parametrize(
  ("bad", "reason"),
  [
    (b'{"a": "x"', "not JSON"),
    (b"[1]", "not a JSON object"),
    (b'{"a": "\xff"}', "UTF-8"),
    (b'{"a": "\\ud800"}', "UTF-8"),
    (b'{"a": "\\u0000"}', "NUL"),
    (b'{"a":' + b"[" * 200_000, "not JSON"),
  ],
)
def test_bad_json_is_named_or_left_out(tmp_path, bad, reason):
  path = write(tmp_path, b'{"a": "y"}\n' + bad + b'\n{"a": "z"}\n', "t.jsonl")
  with pytest.raises(DataError, match=reason) as info:
    tables.read_jsonl(path)
  assert info.value.line == 2
  assert tables.read_jsonl(path, on_bad_row=lambda e: None) == [["a"], ["y"], ["z"]]


FIELD = st.text(st.characters(exclude_characters="\t\n\r\0", exclude_categories=["Cs"]))


@hypothesis.settings(deadline=None)  # machines may be slow
@hypothesis.given(st.lists(st.lists(FIELD, min_size=1), min_size=1))
def test_what_was_written_is_read(tmp_path_factory, rows):
  hypothesis.assume(not rows[0][0].startswith("\ufeff"))
  path = str(tmp_path_factory.mktemp("t") / "t.tsv")
  with open(path, "wb") as f:
    f.write("".join("\t".join(row) + "\n" for row in rows).encode())
  assert tables.read_table(path) == [row for row in rows if row != [""]]


def _read_csv(path, on_bad_row=tables._raise):
  return tables.read_table(path, ",", '"', strict=True, on_bad_row=on_bad_row)


@pytest.mark.parametrize("read", [tables.read_table, tables.read_jsonl, _read_csv])
@hypothesis.settings(deadline=None)  # machines may be slow
@hypothesis.given(content=st.binary(max_size=200))
def test_any_bytes_give_rows_or_an_error_that_names_the_file(tmp_path_factory, read, content):
  path = write(tmp_path_factory.mktemp("t"), content)
  errors = []
  try:
    read(path, on_bad_row=errors.append)
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
  assert tables.read_own_table(path) == [names, *rows]


def test_values_that_are_not_text_are_written_as_json():
  values = [None, 7, 0.5, True, ["a", 1], {"é": None}, np.float32([0.5, 1])]
  assert (
    tables.row_writer("x.tsv", [])(values)
    == '\t7\t0.5\ttrue\t["a", 1]\t{"é": null}\t[0.5, 1.0]\n'.encode()
  )


def test_a_file_of_one_column_has_delimiters_in_its_texts(tmp_path):
  path = tmp_path / "test.csv"
  path.write_text('Text\nHello, you, there\n"Quoted, ""really"""\nplain\n')
  rows = tables.read_own_table(str(path))
  assert rows == [["Text"], ["Hello, you, there"], ['Quoted, "really"'], ["plain"]]
  assert [row.line for row in rows] == [1, 2, 3, 4]
