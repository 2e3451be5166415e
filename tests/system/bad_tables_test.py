"""Tables of one's own as people and programs write them, which are refused.

What tests/system/bad_inputs_test.py has of tables are damaged files; here are those that a
spreadsheet, pandas or a download leaves. Each is refused as tests/kit/bad_inputs.py says. What is
read nevertheless is in tests/tasks/user_tables_test.py.
"""

import gzip

import pytest

from bert.tasks import multiple_choice, user_tables
from tests.kit.bad_inputs import Family, case, check, loading, rows_of

_ROWS = "text_a,label\n" + "a film,pos\nanother,neg\n" * 6


def _own(file, cases, **options):
  def read(folder):
    processor = user_tables.CsvProcessor(str(folder), **options)
    return processor.get_labels() and processor.get_train_examples(str(folder))

  title = " ".join([file, *(f"{name}={value}" for name, value in options.items())])
  return Family(title, file, loading(read), cases)


def _elsewhere(file, content, *words):
  """A folder with a file that is not called `train`."""
  family = _own("train.csv", [case("missing", None, "The folder holds: ", file, *words)])
  return family._replace(title=file, others={file: content}, named="train.csv")


# A year of such numbers is no class.
_MEASURED = "text_a,label\n" + "".join(f"x,{i / 7:.3f}\n" for i in range(40))
_TEXTS = "text_a,label\n" + "".join(f"film number {i},pos\n" for i in range(40))

CSV = [
  _own(
    "train.csv",
    [
      case("UTF-16 of Excel", _ROWS.encode("utf-16"), "UTF-16", "Save it as UTF-8"),
      case("Windows-1252", _ROWS.replace("film", "caf\xe9").encode("cp1252"), "1252", "line 2"),
      case("an Excel workbook", b"PK\x03\x04\x14\x00\x06\x00\x08\x00", "Excel", "as CSV"),
      case("an old Excel workbook", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Excel", "as CSV"),
      case("compressed", gzip.compress(_ROWS.encode(), mtime=0), "gzip", "gunzip"),
      case("Parquet", b"PAR1\x15\x04", "Parquet", "CSV or JSON"),
      case("a web page", "<!DOCTYPE html>\n<html></html>\n", "is a web page", "Download the file"),
      case("lines that end in CR", _ROWS.replace("\n", "\r"), "carriage return", "LF or CRLF"),
      case(
        "another case", "Text,Label\na,b\n", "Did you mean 'Text' and 'Label'?", "--text_a_column"
      ),
      case("no header", _ROWS.split("\n", 1)[1], "line 1", "--noheader"),
      case("two columns of one name", "text_a,label,label\na,1,1\n", "2 columns 'label'", "number"),
      case("one column", "text_a\nx\ny\n", "'label' is not in the header", "has text_a"),
      case("a header of 400 columns", ",".join(f"c{i}" for i in range(400)), "c19, ..."),
      case("words as columns", "text a    label\nx    1\n", "has text a    label"),
      case("single quotes", "text_a,label\n'a, b',pos\n", "line 2", "3 columns, expected 2"),
      case("a quote after a space", 'text_a,label\n"a" ,pos\n', "line 2", "quoting is broken"),
      case("backslashes before quotes", 'text_a,label\n"a \\"b\\" c",x\n', "line 2", "quoting"),
      case("no label in a row", _ROWS + "x,\n", "line 14", "the label is empty"),
      case("measured numbers", _MEASURED, "40 different labels", "--problem_type=regression"),
    ],
  ),
  _own(
    "train.csv",
    [case("texts", _TEXTS, "40 different labels in 40 rows", "Correct --label_column")],
    text_a_column="label",
    label_column="text_a",
  ),
  _own(
    "train.csv",
    [case("text", _ROWS, "column 1 is given as text and as label", "--label_column")],
    text_a_column="label",
  ),
  _own(
    "train.csv",
    [case("no such column", _ROWS, "line 1", "no column 7", "--label_column")],
    label_column="7",
  ),
  _own(
    "train.csv",
    [case("no second text", _ROWS, "column 'other'", "--text_b_column")],
    text_b_column="other",
  ),
  _own(
    "train.csv",
    [case("labels of another case", _ROWS, "'pos' is unknown", "Did you mean 'Pos'?", "line 2")],
    labels=["Pos", "Neg"],
  ),
  _own(
    "train.csv",
    [
      case("a decimal comma", 'text_a,label\nx,"3,5"\n', "line 2", "'3,5'", "no comma: 3.5"),
      case("a German spreadsheet", "text_a;label\nx;3,5\ny;1,0\n", "line 2", "no comma: 3.5"),
      case("thousands", 'text_a,label\nx,"1,234.5"\n', "line 2", "separators of thousands"),
      case("percent", "text_a,label\nx,50%\n", "line 2", "without a unit"),
      case("a fraction", "text_a,label\nx,4/5\n", "line 2", "'4/5' is not a finite number"),
      case("no number", "text_a,label\nx,\n", "line 2", "'' is not a finite number"),
      case("a date", "text_a,label\nx,2020-01-02\n", "line 2", "'2020-01-02'"),
    ],
    problem_type="regression",
  ),
  _own(
    "train.jsonl",
    [
      case("a list", '[{"text_a": "x", "label": "a"}]\n', "line 1", "list on one line"),
      case("a list over lines", '[\n{"text_a": "x", "label": "a"}\n]\n', "several lines"),
      case("an object over lines", '{\n"text_a": "x",\n"label": "a"\n}\n', "several lines"),
      case(
        "other keys",
        '{"body": "x", "label": "a"}\n',
        "'text_a' is not in the header, which has body",
        "--text_a_column",
      ),
      case(
        *("a key of another case", '{"text_a": "x", "label": 1}\n{"Text_a": "y", "label": 0}\n'),
        *("line 2", "column 0 (text_a) contains None"),
      ),
    ],
  ),
  _elsewhere("train.xlsx", b"PK\x03\x04"),
  _elsewhere("Train.csv", _ROWS.encode()),
  _elsewhere("train.csv.gz", gzip.compress(_ROWS.encode(), mtime=0)),
  _elsewhere("train.json", b"[]"),
]


def _read_file_as_folder(folder):
  return user_tables.CsvProcessor(str(folder / "train.txt")).get_labels()


FILE_AS_FOLDER = Family(
  "a file as --data_dir",
  "train.txt",
  loading(_read_file_as_folder),
  [case("lines", _ROWS, "takes a folder, and this is a file", "Give its folder")],
)

_SWAG = Family(
  "swag",
  "swag.csv",
  loading(lambda folder: multiple_choice.read_swag_examples(folder / "swag.csv")),
  [
    case("semicolons", "sent1;ending0;ending1;label\na;b;c;7\n" * 2, "line 2", "from 0 to 1"),
    case("an Excel workbook", b"PK\x03\x04", "Excel"),
  ],
)


@pytest.mark.parametrize(("family", "row"), rows_of([*CSV, FILE_AS_FOLDER, _SWAG]))
def test_a_table_is_refused(family, row, tmp_path):
  check(family, row, tmp_path)
