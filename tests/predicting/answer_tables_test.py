"""Tables in, tables out."""

import csv
import io
import json
import types

import numpy as np
import pytest

from bert.io.tables import DataError
from bert.predicting import answer_tables


class Predictor:
  """Says of a text how long it is."""

  def __init__(self, names=("text_a", "text_b"), lists=(), texts_in=None):
    self.processor = types.SimpleNamespace(inputs=names, list_inputs=lists, texts_in=texts_in or {})
    self.items = []

  def stream(self, items, source):
    for number, item in enumerate(items, 1):
      self.items.append(item)
      if "refused" in item.values():
        raise ValueError(f"{source(number)}: refused.")
      is_long = len(str(item)) > 40
      probabilities = np.float32([0.1, 0.9] if is_long else [0.9, 0.1])
      label = "long" if is_long else "short"
      yield {"label": label, "label_names": ["short", "long"], "probabilities": probabilities}


def run(path, out="out.csv", predictor=None, **options):
  predictor = predictor or Predictor()
  rows = answer_tables.read(str(path), predictor, is_streamed=".jsonl" in out, **options)
  write = answer_tables.writer(out)
  found = [write(row, result) for row, result in answer_tables.answered(predictor, rows)]
  return b"".join(found).decode(), predictor.items


def write(folder, content, name="new.csv"):
  (folder / name).write_text(content, encoding="utf-8")
  return folder / name


TABLE = 'id,text,label\n7,"Hi, you",late\n8,"a ""b""\nc",\n'


def test_a_table_keeps_its_columns_and_rows(tmp_path):
  printed, items = run(write(tmp_path, TABLE))
  assert items == [{"text_a": "Hi, you"}, {"text_a": 'a "b"\nc'}]
  assert list(csv.reader(io.StringIO(printed))) == [
    ["id", "text", "label", "prediction", "probability_short", "probability_long"],
    ["7", "Hi, you", "late", "short", "0.9", "0.1"],
    ["8", 'a "b"\nc', "", "short", "0.9", "0.1"],
  ]


def test_the_format_is_that_of_the_outputs_ending(tmp_path):
  path = write(tmp_path, TABLE)
  lines = run(path, "out.tsv")[0].split("\n")
  assert lines[:2] == [
    "id\ttext\tlabel\tprediction\tprobability_short\tprobability_long",
    "7\tHi, you\tlate\tshort\t0.9\t0.1",
  ]
  assert lines[2].startswith('8\ta "b" c\t\tshort')
  first, second = map(json.loads, run(path, "out.jsonl")[0].splitlines())
  assert list(first)[:4] == ["id", "text", "label", "prediction"]
  assert (first["label"], first["prediction"], second["label"]) == ("late", "short", "")
  assert first["probabilities"] == pytest.approx([0.9, 0.1])
  path = write(tmp_path, '{"text": "a", "id": [7]}\n\n{"text": "b", "more": 1}\n', "new.jsonl")
  printed, items = run(path, "out.csv")
  assert items == [{"text_a": "a"}, {"text_a": "b"}]
  assert list(csv.DictReader(io.StringIO(printed)))[1]["more"] == "1"
  assert json.loads(run(path, "out.jsonl")[0].splitlines()[0])["id"] == [7]


@pytest.mark.parametrize(
  ("texts_in", "content", "item"),
  [
    ({"text_a": "review", "header": True}, "text_b,review\nx,y\n", {"text_a": "y"}),
    ({"text_a": "a", "text_b": "b", "header": True}, "b,a\nx,y\n", {"text_a": "y", "text_b": "x"}),
    ({"text_a": "review", "header": True}, "id,text\nx,y\n", {"text_a": "y"}),
    ({"text_a": 1, "header": False}, "x,y\n", {"text_a": "y"}),
    ({"text_a": 1, "header": False}, "text,z\ny,x\n", {"text_a": "y"}),
    ({}, "text_b,text\nx,y\n", {"text_a": "y", "text_b": "x"}),
  ],
)
def test_columns_are_those_of_the_run(tmp_path, texts_in, content, item):
  predictor = Predictor(texts_in=texts_in)
  assert run(write(tmp_path, content), predictor=predictor)[1] == [item]


def test_columns_of_other_tasks(tmp_path):
  path = write(tmp_path, "id,context,question\n1,It rains.,What?\n")
  predictor = Predictor(("question", "context"))
  assert run(path, predictor=predictor)[1] == [{"question": "What?", "context": "It rains."}]
  path = write(tmp_path, 'context,choices\nShe,"[""a"", ""b""]"\n')
  predictor = Predictor(("context", "choices"), ("choices",))
  assert run(path, predictor=predictor)[1] == [{"context": "She", "choices": ["a", "b"]}]
  path = write(tmp_path, "review\nHi\n")
  predictor = Predictor(("text",), texts_in={"text_a": "review", "header": True})
  assert run(path, predictor=predictor)[1] == [{"text": "Hi"}]
  path = write(tmp_path, '{"words": ["Ann", "left"], "id": 1}\n', "new.jsonl")
  assert run(path, "o.jsonl", Predictor(("text",)))[1] == [{"words": ["Ann", "left"]}]


@pytest.mark.parametrize("name", ["new.csv", "new.jsonl"])
@pytest.mark.parametrize("texts_in", [{}, {"text_a": "#1 String", "header": True}])
def test_missing_columns_are_proposed(tmp_path, name, texts_in):
  predictor = Predictor(texts_in=texts_in)
  content = "id,review\n1,Hi\n" if name == "new.csv" else '{"id": 1, "review": "Hi"}\n'
  column = texts_in.get("text_a", "text_a")
  with pytest.raises(DataError, match=rf"line 1: .*'{column}'.* as --text_a_column"):
    run(write(tmp_path, content, name), "out.jsonl", predictor)
  options = {"columns": {"text_a": "review"}, "predictor": predictor}
  assert run(write(tmp_path, content, name), "out.jsonl", **options)[1] == [{"text_a": "Hi"}]


def test_a_table_without_header_is_explained(tmp_path):
  path = write(tmp_path, "The bus never came.\nIt rained.\n")
  with pytest.raises(
    DataError, match=r"needs --noheader and --text_a_column=0; lines of text need"
  ):
    run(path)
  options = {"header": False, "columns": {"text_a": "0"}}
  assert run(path, **options)[1] == [{"text_a": "The bus never came."}, {"text_a": "It rained."}]
  predictor = Predictor(texts_in={"text_a": 1, "header": False})
  options = {"predictor": predictor, "columns": {"text_a": "review"}}
  assert run(write(tmp_path, "id,review\n1,Hi\n"), **options)[1] == [{"text_a": "Hi"}]


def test_faults_name_file_and_line(tmp_path):
  with pytest.raises(ValueError, match=r"new\.csv, line 3: refused"):
    run(write(tmp_path, "text\nHi\nrefused\n"))
  with pytest.raises(DataError, match=r"new\.csv, line 2: 3 columns, .* 2 of 3 rows are malformed"):
    run(write(tmp_path, 'id,text\n1,Hi,you\n2,yes\n\n3,"open\n', "new.csv"))
  with pytest.raises(DataError, match=r"new\.jsonl, line 2: the line is not JSON"):
    run(write(tmp_path, '{"text": "Hi"}\nHi\n', "new.jsonl"), "out.jsonl")
  with pytest.raises(DataError, match=r"new\.jsonl, line 1: the text_a is 5, not text"):
    run(write(tmp_path, '{"text": 5}\n', "new.jsonl"), "out.jsonl")


def test_bad_rows_are_left_out(tmp_path, caplog):
  printed, _ = run(write(tmp_path, "id,text\n1,Hi\n2\n3,yes\n"), skip_bad_rows=True)
  assert [line[0] for line in printed.splitlines()[1:]] == ["1", "3"]
  assert "Skipped 1 malformed row(s)" in caplog.text


def test_answers_of_an_earlier_prediction_are_replaced(tmp_path):
  (tmp_path / "again.csv").write_text(run(write(tmp_path, TABLE))[0])
  printed, _ = run(tmp_path / "again.csv")
  assert printed == run(tmp_path / "new.csv")[0]
