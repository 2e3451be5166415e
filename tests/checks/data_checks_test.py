"""bert/checks/data_checks.py: planted faults of tables, questions, tagged and plain text."""

import json
import shutil

import pytest

from bert.checks import data_checks
from bert.checks.findings import to_text
from tests.kit import healthy_run as run
from tests.kit.healthy_run import (
  TEXTS,
  WORDS,
  Fault,
  bad,
  bytes_changed,
  diagnose,
  spoil_nothing,
  squad_file,
  subject_of,
  write_json,
  write_lines,
  write_table,
)

LONG = [f"{text} {' '.join(WORDS)}" for text in TEXTS[:40]]
FOREIGN = [f"{text} при вет мир да" for text in TEXTS[:40]]
SQUAD = {"data": "squad"}
CONLL = {"data": "conll"}
CORPUS = {"data": "corpus"}


def table_of(name, texts, label_of=lambda row: row % 2):
  return lambda folder: write_table(folder / f"tables/{name}.csv", texts, label_of)


def squad_with(change):
  def plant(folder):
    content = squad_file()
    change(content["data"][0]["paragraphs"])
    write_json(folder / "squad/train.json", content)

  return plant


FAULTS = {
  # Tables.
  "unknown label": Fault(
    table_of("dev", TEXTS[40:56], lambda row: "maybe" if row == 3 else row % 2),
    "the label 'maybe' is unknown",
    "dev.csv:5",
  ),
  "a short row": Fault(
    lambda folder: write_lines(folder / "tables/train.csv", ["text_a,label", "ada,0", "bob"]),
    "column 1",
    "train.csv:3",
  ),
  "a header and nothing else": Fault(
    lambda folder: write_table(folder / "tables/train.csv", []), "no train examples", "train.csv"
  ),
  "one label hardly occurs": Fault(
    table_of("train", TEXTS[:40], lambda row: int(row == 0)), "98% of the", "train.csv", "warning"
  ),
  "one label never occurs": Fault(
    spoil_nothing,
    "has the label '2'",
    "train.csv",
    "warning",
    {"settings": {"labels": ["0", "1", "2"]}},
  ),
  "repeated examples": Fault(
    table_of("train", [*TEXTS[:20], *TEXTS[:20]]),
    "20 example(s) of train repeat",
    "train.csv:22",
    "warning",
  ),
  "dev in train": Fault(
    table_of("dev", [*TEXTS[40:50], *TEXTS[:5]]), "5 of 15 examples of dev", "dev.csv:12", "warning"
  ),
  "empty texts": Fault(
    table_of("train", [*TEXTS[:40], " "]), "1 example of train without", "train.csv:42", "warning"
  ),
  "long texts": Fault(table_of("train", LONG), "longer than --max_seq", "train.csv", "warning"),
  "texts of another language": Fault(
    table_of("train", FOREIGN), "Words such as при, вет, мир", "train.csv:2", "warning"
  ),
  "words in single letters": Fault(
    table_of("train", [f"abcdefgh {text[:7]}" for text in TEXTS[:40]]),
    "train are [UNK]. A word has 4.7 pieces on average: this vocabulary does not suit these texts.",
    "train.csv",
    "warning",
  ),
  "a folder without tables": Fault(
    spoil_nothing, "contains no train.tsv", "squad", flags={"data_dir": "squad"}
  ),
  "a table in place of a task's folder": Fault(
    spoil_nothing,
    "tables/train.csv is not a folder: give the one with train, dev and test",
    "",
    flags={"data_dir": "tables/train.csv", "task_name": "MRPC"},
  ),
  "labels that differ in case alone": Fault(
    table_of("train", TEXTS[:40], lambda row: ["a", "A", "b"][row % 3]),
    "The labels 'a' (14), 'A' (13) are 2 classes",
    "",
    "warning",
  ),
  "rows that are left out": Fault(
    lambda folder: write_lines(
      folder / "tables/train.csv", ["text_a,label", "ada,0", "bob", "cat,1", "dog"]
    ),
    "Skipped 2 malformed row(s)",
    "",
    "warning",
    {"settings": {"skip_bad_rows": True}},
  ),
  "no file to predict": Fault(
    spoil_nothing, "contains no test.tsv", "tables", flags={"settings": {"do_predict": True}}
  ),
  # SQuAD.
  "answers a few characters beside their place": Fault(
    squad_with(lambda paragraphs: paragraphs[0]["qas"][0]["answers"][0].update(answer_start=1)),
    "is not exactly at its answer_start",
    "",
    "warning",
    SQUAD,
  ),
  "an answer elsewhere": Fault(
    squad_with(lambda paragraphs: paragraphs[0]["qas"][0]["answers"][0].update(answer_start=999)),
    "1 of 10 questions were skipped: their answer is not at the given position",
    "",
    "warning",
    SQUAD,
  ),
  "a question without answer": Fault(
    squad_with(lambda paragraphs: paragraphs[1]["qas"][0].update(answers=[])),
    "needs an answer to each question",
    "train.json",
    flags=SQUAD,
  ),
  "broken JSON": Fault(
    bytes_changed("squad/train.json", lambda data: data[:-1]), "not JSON", "json:1", flags=SQUAD
  ),
  # CoNLL.
  "a word without a label": Fault(
    lambda folder: write_lines(folder / "conll/train.conll", ["ada B-PER", "bob O", "cat", ""] * 3),
    "",
    "train.conll:3",
    flags=CONLL,
  ),
  "words that are left out": Fault(
    lambda folder: write_lines(folder / "conll/train.conll", ["ada B", "  O", "bob O", ""]),
    "Skipped 1 malformed",
    "",
    "warning",
    {**CONLL, "settings": {"skip_bad_rows": True}},
  ),
  "a short file where most words have no label": Fault(
    lambda folder: write_lines(folder / "conll/train.conll", ["ada", "bob", "met B-PER", ""]),
    "",
    "train.conll:1",
    flags=CONLL,
  ),
  "only one label": Fault(
    lambda folder: write_lines(folder / "conll/train.conll", ["ada O", "bob O", ""]),
    "Every label is 'O'",
    "train.conll",
    "warning",
    CONLL,
  ),
  "labels of another scheme": Fault(
    lambda folder: write_lines(folder / "conll/train.conll", ["ada I-PER", "bob O", ""] * 9),
    "All of them fit --label_scheme=iob1",
    "",
    "warning",
    CONLL,
  ),
  "a file without blank lines": Fault(
    lambda folder: write_lines(folder / "conll/train.conll", ["ada B-PER", "bob O"] * 101),
    "is one sentence of 202 words",
    "",
    "warning",
    CONLL,
  ),
  "types that differ in case alone": Fault(
    lambda folder: write_lines(folder / "conll/train.conll", ["ada B-PER", "bob B-per", ""] * 9),
    "The types 'PER', 'per' are 2",
    "",
    "warning",
    CONLL,
  ),
  # Text.
  "a text without documents": Fault(
    bytes_changed("corpus.txt", lambda data: data.replace(b"\n\n", b"\n")),
    "one document",
    "corpus.txt",
    "warning",
    CORPUS,
  ),
  "a text full of repetitions": Fault(
    bytes_changed("corpus.txt", lambda data: data * 2), "repeat", "corpus.txt", "warning", CORPUS
  ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(folder, name):
  run.assert_found(FAULTS[name], folder)


def test_answers_of_questions_to_predict_are_not_checked(folder):
  FAULTS["an answer elsewhere"].plant(folder)
  path = str(folder / "squad/train.json")
  flags = {"data_dir": None, "input_file": path, "settings": {"predict_file": path}}
  assert not bad(diagnose(folder, "squad", **flags))


def test_of_several_texts_the_first_is_not_blamed(folder):
  shutil.copy(folder / "corpus.txt", folder / "b.txt")
  (folder / "b.txt").write_bytes(b"ada \xff bob.\n" * 2)
  files = f"{folder}/corpus.txt,{folder}/b.txt"
  [finding] = bad(diagnose(folder, "corpus", input_file=files))
  assert finding.where == ""
  assert f"2 lines are not valid UTF-8, the first is {folder}/b.txt, line 1" in finding.what


def test_all_findings_come_in_one_pass(folder):
  rows = ["text_a,label", "ada,0", "bob", "cat,1", " ,1", "dog", "elk,0,x", ",1", "cat,1", "cat,A"]
  write_lines(folder / "tables/train.csv", [*rows, "gnu,a"])
  write_lines(folder / "tables/dev.csv", ["text_a,label", "ada,0", " ,0", "fig,maybe", "hen,"])
  found = [(f.level, f.where.rpartition("/")[2], str(f)) for f in bad(diagnose(folder))]
  for level, where, said in (
    ("error", "train.csv:3", "column 1 (counted from 0) is missing"),
    ("error", "train.csv:3", "3 columns, expected 2"),
    ("error", "dev.csv:4", "the label 'maybe' is unknown"),
    ("error", "dev.csv:4", "the label is empty"),
    ("warning", "train.csv:5", "2 examples of train without text"),
    ("warning", "dev.csv:3", "1 example of dev without text"),
    ("warning", "train.csv:9", "2 example(s) of train repeat an earlier one"),
    ("warning", "", "The labels 'A' (1), 'a' (1) are 2 classes"),
    ("warning", "dev.csv:2", "1 of 2 examples of dev are in train"),
  ):
    assert any((level, where) == each[:2] and said in each[2] for each in found), (said, found)


def test_empty_texts_are_no_duplicates(folder):
  write_table(folder / "tables/train.csv", [*TEXTS[:38], "", " "])
  write_table(folder / "tables/dev.csv", [*TEXTS[40:50], ""])
  said = to_text(diagnose(folder))
  assert "repeat" not in said
  assert "are in train, too" not in said


def test_one_table_is_looked_at_whole(folder):
  path = str(folder / "tables/train.csv")
  for data_dir, input_file, task_name in (
    (path, None, "csv"),
    (path, None, None),
    (None, path, None),
  ):
    findings = diagnose(folder, data_dir=data_dir, input_file=input_file, task_name=task_name)
    assert not bad(findings)
    assert "40 examples for train" in to_text(findings)
    assert "divides this table" in to_text(findings)


def test_tables_are_looked_at_by_folder(good_set):
  findings = diagnose(good_set, data_dir=None, task_name=None, input_file="tables/*.csv")
  assert "give the --data_dir of train, dev and test" in to_text(bad(findings))


def test_data_to_be_downloaded_are_a_note(good_set):
  subject = subject_of(good_set)
  subject.data_dir = "download"
  findings = list(data_checks.check_data(subject))
  assert [finding.level for finding in findings] == ["note"]


def test_questions_in_json_lines(good_set, tmp_path):
  path = tmp_path / "train.jsonl"
  rows = [
    {
      "context": text,
      "question": f"who is {text}",
      "id": text,
      "answers": {"text": [text[:3]] if number else [], "answer_start": [0] if number else []},
    }
    for number, text in enumerate(TEXTS[:3])
  ]
  write_lines(path, map(json.dumps, rows))
  assert data_checks.recognise(str(path)) == "squad"
  findings = diagnose(good_set, data_dir=None, task_name=None, input_file=str(path))
  assert not bad(findings)
  assert "3 examples for train" in to_text(findings)


def test_data_are_recognised(good_set, tmp_path):
  names = {
    "records/a.tfrecord": "records",
    "squad/train.json": "squad",
    "conll/train.conll": "ner",
    "tables/train.csv": "sentences",
    "corpus.txt": "text",
  }
  for name, kind in names.items():
    assert data_checks.recognise(str(good_set / name)) == kind
    # The content tells, except for what only a delimiter makes a table.
    if kind != "sentences":
      copied = shutil.copy(good_set / name, tmp_path / "data")
      assert data_checks.recognise(str(copied)) == kind
