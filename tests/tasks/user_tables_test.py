"""Tables as people and spreadsheets write them.

Files that are refused are in tests/system/bad_inputs_test.py, good ones in glue_test.py.
"""

import shlex
import subprocess

import pytest

from bert.io.tables import DataError
from bert.tasks.user_tables import CsvProcessor, read_table

ROWS = ["text_a,label", "good; but long,pos", "bad,neg", "fine,pos", "poor,neg"]


def processor(folder, *rows, name="train.csv", **options):
  (folder / name).write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
  return CsvProcessor(str(folder), **options)


def read(folder, *rows, split="train", **options):
  examples = getattr(processor(folder, *rows, **options), f"get_{split}_examples")(str(folder))
  return [(example.text_a, example.label) for example in examples]


@pytest.mark.parametrize(
  ("delimiter", "name", "said"),
  [
    (";", "train.csv", "semicolons"),
    ("\t", "train.csv", "tabs"),
    ("|", "train.csv", "vertical bars"),
    (",", "train.tsv", "commas"),
  ],
)
@pytest.mark.parametrize("header", [True, False])
def test_another_delimiter_is_found(tmp_path, caplog, delimiter, name, said, header):
  caplog.set_level("INFO", logger="absl")
  rows = [f"text_a{delimiter}label"] if header else []
  rows += [f'"one{delimiter}two"{delimiter}pos', f"three{delimiter}neg", f"four{delimiter}pos"]
  options = {} if header else {"header": False, "text_a_column": "0", "label_column": "1"}
  own = processor(tmp_path, *rows, name=name, **options)
  assert own.get_labels() == ["neg", "pos"]
  examples = own.get_train_examples(str(tmp_path))
  assert [example.text_a for example in examples] == [f"one{delimiter}two", "three", "four"]
  # Once: the rows that were read for the labels are those of the examples.
  assert caplog.text.count(f"the fields are separated by {said}") == 1


def test_the_expected_delimiter_wins_over_one_in_the_texts(tmp_path, caplog):
  rows = ["text_a,label", "a; b,x", "c; d,y", "e; f,x"]
  assert read(tmp_path, *rows)[0] == ("a; b", "x")
  assert not caplog.messages
  tsv = [row.replace(",", "\t").replace(";", ",") for row in rows]
  (tmp_path / "train.csv").unlink()
  assert read(tmp_path, *tsv, name="train.tsv")[0] == ("a, b", "x")


def test_a_line_that_excel_wrote_for_itself_is_left_out(tmp_path):
  rows = ["sep=;", *(f"{a};{b}" for a, b in (("text_a", "label"), ("x", "1"), ("y", "0")))]
  assert read(tmp_path, *rows) == [("x", "1"), ("y", "0")]


def test_spaces_around_names_of_columns_do_not_count(tmp_path):
  rows = ["Text , Label", "x,a", "y,b"]
  expected = [("x", "a"), ("y", "b")]
  assert read(tmp_path, *rows, text_a_column="Text", label_column="Label ") == expected


def test_a_column_of_another_case_is_suggested_with_its_flag(tmp_path):
  with pytest.raises(DataError, match=r"Did you mean 'Label'\? Name one .* as --label_column"):
    read(tmp_path, "text_a,Label", "x,a")
  with pytest.raises(DataError, match="without a header needs --noheader"):
    read(tmp_path, "a film,good", "another,bad")


def test_a_column_called_text_needs_no_flag(tmp_path):
  assert read(tmp_path, "id, text ,label", "1,x,a", "2,y,b") == [("x", "a"), ("y", "b")]
  rows = ("text,label,text_a", "x,a,y", "y,b,z")
  assert read(tmp_path, *rows) == [("y", "a"), ("z", "b")]
  assert read(tmp_path, *rows, text_a_column="text") == [("x", "a"), ("y", "b")]
  (tmp_path / "train.csv").unlink()
  row = '{"text": "x", "label": "a"}'
  assert read(tmp_path, row, row.replace('"a"', '"b"'), name="train.jsonl")[0] == ("x", "a")


def test_all_malformed_rows_are_named_at_once(tmp_path):
  rows = ["text,label", "x,a", "y,", "short", "z,a,more", "u,b", "v,"]
  with pytest.raises(DataError) as raised:
    read(tmp_path, *rows)
  said = str(raised.value)
  assert said.startswith(f"{tmp_path}/train.csv, line 3: the label is empty. Correct the row, or")
  assert "4 of 6 rows are malformed: 2 (lines 3, 7) the label is empty" in said
  assert all(part in said for part in ("1 (line 4) column 1", "1 (line 5) 3 columns, expected 2"))
  # The label of a row that is left out is none of the model's.
  assert processor(tmp_path, *rows, "w,c,d", skip_bad_rows=True).get_labels() == ["a", "b"]


def test_a_bad_first_row_is_no_header(tmp_path):
  (tmp_path / "train.csv").write_bytes(b"text,la\xffbel\nx,a\n")
  with pytest.raises(DataError, match="line 1: the row is not valid UTF-8"):
    CsvProcessor(str(tmp_path)).get_labels()


def test_a_file_is_every_split(tmp_path):
  path = str(tmp_path / "tickets.csv")
  own = processor(tmp_path, "text,label", "a,late", "b,early", name="tickets.csv")
  own.data_dir = path
  assert own.get_labels() == ["early", "late"]
  assert [e.source for e in own.get_dev_examples(path)] == [f"{path}, line {n}" for n in (2, 3)]


def test_all_columns_that_are_not_there_are_named_at_once(tmp_path):
  expected = r"'text_a' is not in the header, which has text a, Label. Nor is 'label'. Did you mean"
  given = "Name its columns as --text_a_column and --label_column"
  with pytest.raises(DataError, match=rf"{expected} 'text a' and 'Label'\? {given}"):
    read(tmp_path, "text a,Label", "x,a")
  (tmp_path / "x.csv").write_text("a,b\n1,2\n")
  with pytest.raises(DataError, match=r"'c' is not .* Nor are 'd' and 'e'\."):
    read_table(str(tmp_path / "x.csv"), {name: name for name in "cbde"})


def test_one_and_one_point_zero_are_one_label(tmp_path):
  own = processor(tmp_path, "text_a,label", "x,1", "y,0")
  (tmp_path / "dev.csv").write_text("text_a,label\nx,1.0\ny,0.0\n")
  assert own.get_labels() == ["0", "1"]
  assert [e.label for e in own.get_dev_examples(str(tmp_path))] == ["1", "0"]
  floats = processor(tmp_path, "text_a,label", "x,1.0", "y,0.0")
  (tmp_path / "dev.jsonl").write_text('{"text_a": "x", "label": 1}\n')
  (tmp_path / "dev.csv").unlink()
  assert floats.get_labels() == ["0.0", "1.0"]
  assert [e.label for e in floats.get_dev_examples(str(tmp_path))] == ["1.0"]


def test_a_first_row_that_is_no_header_is_said(tmp_path, caplog):
  options = {"text_a_column": "0", "label_column": "1"}
  processor(tmp_path, *ROWS[1:], **options).get_labels()
  assert "line 1 is read as the names of the columns, but has the label 'pos'" in caplog.text
  caplog.clear()
  processor(tmp_path, *ROWS, **options).get_labels()
  assert not caplog.messages


@pytest.mark.parametrize("column", ["review", "review.body"])
def test_an_object_in_place_of_a_text_is_to_be_written_flat(tmp_path, column):
  row = '{"review": {"body": "x"}, "label": 1}'
  with pytest.raises(DataError, match="write what is inside of it as a field of its own") as raised:
    read(tmp_path, row, name="train.jsonl", text_a_column=column)
  assert "skip" not in str(raised.value)


def test_texts_given_as_labels_are_refused_unless_listed(tmp_path):
  rows = [f"a film of {number} hours,pos" for number in range(30)]
  options = {"text_a_column": "label", "label_column": "text_a"}
  with pytest.raises(DataError, match=r"30 different labels in 30 rows, such as 'a film of"):
    processor(tmp_path, "text_a,label", *rows, **options).get_labels()
  listed = [row.split(",")[0] for row in rows]
  assert len(read(tmp_path, "text_a,label", *rows, **options, labels=listed)) == 30
  numbers = [f"x,{number / 7}" for number in range(30)]
  with pytest.raises(DataError, match="--problem_type=regression"):
    processor(tmp_path, "text_a,label", *numbers).get_labels()


@pytest.mark.parametrize(
  ("score", "advice"),
  [
    ("3,5", "no comma: 3.5"),
    ("1,234.5", "separators of thousands"),
    ("1 234", "separators of thousands"),
    ("50%", "without a unit"),
  ],
)
def test_numbers_of_spreadsheets_are_explained(tmp_path, score, advice):
  with pytest.raises(DataError, match=advice):
    read(tmp_path, "text_a,label", f'x,"{score}"', problem_type="regression")


# ---------------------------------------------------------------------------------------------
# `read_table`, for a task of one's own.

COLUMNS = {"text": "review", "stars": "rating", "who": "author"}


def write(folder, name, *rows):
  path = folder / name
  path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
  return path


def test_rows_are_dicts_with_their_place(tmp_path):
  path = write(tmp_path, "dev.csv", "rating,review", '3,"good, long"', "1,bad")
  first, second = read_table(tmp_path, COLUMNS, needed=("text", "stars"), split="dev")
  assert first == {"text": "good, long", "stars": "3", "who": None}
  assert (second.source, second.number) == (f"{path}, line 3", 2)
  assert str(second.error("too few.", "Add one.")) == f"{path}, line 3: too few. Add one."
  assert second.text("text") == "bad"
  with pytest.raises(DataError, match=r"line 2: who is None, not text\."):
    first.text("who")
  assert read_table(write(tmp_path, "a.tsv", "b\t4"), {"n": 1}, header=False) == [{"n": "4"}]
  values = read_table(write(tmp_path, "a.jsonl", '{"s": [1, 2]}'), {"spans": "s"}, header=False)
  assert values == [{"spans": [1, 2]}]


@pytest.mark.parametrize(
  ("rows", "message"),
  [
    ((), "the file is empty."),
    (("review,rating,author",), "the file contains no rows."),
    (("review,rating", "a,1"), "'author' is not in the header, which has review, rating. Name"),
    (
      ("review,rating,Author", "a,1,x"),
      "Did you mean 'Author'? Name one of these",
    ),
    (("review,rating,author", "a,1"), "line 2: column 2 (counted from 0) is missing"),
    (("review,rating,author", "a,1,x,y"), "line 2: 4 columns, expected 3 as in the first row."),
  ],
)
def test_a_table_for_a_task_is_refused_with_place_and_remedy(tmp_path, rows, message):
  path = write(tmp_path, "train.csv", *rows)
  with pytest.raises(DataError) as error:
    read_table(path, COLUMNS, flags={"who": "--who"})
  assert str(error.value).startswith(str(path))
  assert message in str(error.value)


def test_malformed_rows_are_left_out_and_counted(tmp_path, caplog):
  path = write(tmp_path, "train.csv", "review,n", "a,1", "b,c,2", "d,3")
  with pytest.raises(DataError, match="line 3: 3 columns"):
    read_table(path, {"text": "review"})

  def text_of(row):
    if row["text"] == "d":
      raise row.error("it is d.")
    return row["text"]

  assert read_table(path, {"text": "review"}, text_of, skip_bad_rows=True) == ["a"]
  assert f"Skipped 2 malformed row(s). The first: {path}, line 3: 3 columns" in caplog.text
  assert "Of 3 rows: 1 (line 3) 3 columns, expected 2 as in the first row; 1 (line 4) it is d." in (
    caplog.text
  )


TOXIC = ["id,text_a,toxic,rude", "1,a,0,0", "2,b,1,0.0", "3,c,True,1", "4,d,0,1"]


@pytest.mark.parametrize("column", ["toxic,rude", " toxic , rude ", "2,3"])
def test_columns_of_0_and_1_are_labels(tmp_path, column):
  options = {"problem_type": "multi_label", "label_column": column}
  own = processor(tmp_path, *TOXIC, **options)
  assert own.get_labels() == ["toxic", "rude"]
  labels = [example.label for example in own.get_train_examples(str(tmp_path))]
  assert labels == [(), ("toxic",), ("toxic", "rude"), ("rude",)]
  (tmp_path / "test.csv").write_text("id,text_a\n9,e\n")  # has no such columns
  assert own.get_test_examples(str(tmp_path))[0].label == ()


def test_columns_of_0_and_1_in_json_lines_and_without_header(tmp_path):
  rows = ['{"text_a": "a", "toxic": 1, "rude": 0}', '{"text_a": "b", "toxic": false, "rude": true}']
  options = {"problem_type": "multi_label", "label_column": "rude,toxic"}
  assert read(tmp_path, *rows, name="train.jsonl", **options) == [
    ("a", ("toxic",)),
    ("b", ("rude",)),
  ]
  options |= {"label_column": "1,2", "text_a_column": "0", "header": False}
  (tmp_path / "train.jsonl").unlink()
  assert read(tmp_path, "a,1,0", "b,0,1", **options) == [("a", ("1",)), ("b", ("2",))]


@pytest.mark.parametrize(
  ("rows", "options", "said"),
  [
    (TOXIC, {}, "names several columns. Give --problem_type=multi_label"),
    ([*TOXIC, "5,e,0.7,0"], {"problem_type": "multi_label"}, "line 6: column 'toxic' has '0.7'"),
    ([*TOXIC, "5,e,,0"], {"problem_type": "multi_label"}, "line 6: column 'toxic' has ''"),
    ([*TOXIC, "5,e,1"], {"problem_type": "multi_label"}, "line 6: column 3"),
    (["text_a,toxic,rode", "a,0,1"], {"problem_type": "multi_label"}, "Did you mean 'rode'"),
    (["text_a,label", "a,0"], {"problem_type": "multi_label"}, "column 'toxic,rude' is not in"),
  ],
)
def test_wrong_columns_of_0_and_1_are_named(tmp_path, rows, options, said):
  with pytest.raises(DataError) as caught:
    read(tmp_path, *rows, label_column="toxic,rude", **options)
  assert said in str(caught.value)


def test_a_column_whose_name_has_a_comma_is_one(tmp_path):
  rows = ['text_a,"a,b"', "x,1", "y,0"]
  assert read(tmp_path, *rows, label_column="a,b") == [("x", "1"), ("y", "0")]


def test_lists_in_label_cells(tmp_path):
  expected = [("a", ("x", "y")), ("b", ()), ("c", ("[sic]",)), ("d", ("1",))]
  rows = ["text_a,label", "a,\"['x', 'y']\"", "b,[]", "c,[sic]", "d,[1]"]
  assert read(tmp_path, *rows, problem_type="multi_label") == expected
  rows = ['{"text_a": "a", "label": ["x", "y"]}', '{"text_a": "b", "label": "[\\"x\\"]"}']
  (tmp_path / "train.csv").unlink()
  options = {"name": "train.jsonl", "problem_type": "multi_label"}
  assert read(tmp_path, *rows, **options) == [("a", ("x", "y")), ("b", ("x",))]
  with pytest.raises(DataError, match=r"line 1: .* give --problem_type=multi_label"):
    read(tmp_path, *rows, name="train.jsonl")


@pytest.mark.parametrize("cell", ["[0, 1, 0]", '"0,1,0"'])
def test_a_0_or_1_for_each_class_is_no_list_of_classes(tmp_path, cell):
  row = f'{{"text_a": "a", "label": {cell}}}'
  with pytest.raises(DataError, match=r"line 1: .* are a 0 or 1 for each class"):
    read(tmp_path, row, name="train.jsonl", problem_type="multi_label")


@pytest.mark.parametrize(
  "row", [r'"so \"good\" it is",pos', r'"it \"is\"",pos', r'"a \"b, c\" d",pos', r'"end\"",pos']
)
def test_backslashes_before_quotes_are_named(tmp_path, row):
  with pytest.raises(DataError, match=r'line 3: the quoting is broken: in CSV, \\" does not') as e:
    read(tmp_path, "text_a,label", "fine,neg", row)
  if row.count('"') > 3:  # what the message says mends it
    command = e.value.advice.partition("instead: ")[2].partition(" > ")[0]
    made = subprocess.run(shlex.split(command), capture_output=True, check=True, text=True).stdout
    assert read(tmp_path, *made.splitlines())[1][0] == row.rpartition(",")[0][1:-1].replace(
      "\\", ""
    )
