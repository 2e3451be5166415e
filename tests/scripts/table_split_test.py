"""One table for a run, divided into train, dev and test."""

import collections
import csv
import json

import pytest

from bert import run_classifier, run_similarity, run_swag
from bert.io.tables import DataError, read_table
from bert.predicting import load_run
from bert.scripts import run_subject, table_split
from bert.tasks import user_tables
from tests.kit import teachers

LABELS = ["early", "late", "rare"]
PARTS = ("train", "dev", "test")
# 120 rows: `late` and `early`, sorted, a rare label, and 20 rows whose texts occur twice or more.
ROWS = [
  *((f"text {i}", "late") for i in range(60)),
  *((f"text {i}, early", "early") for i in range(30)),
  *((f"text {i} ", "late") for i in range(20)),
  *((f"rare {i}", "rare") for i in range(10)),
]


def settings_of(tmp_path, path, task=run_classifier.Classification, **values):
  known = {"seed": 1, "do_train": True}
  known |= {"task_name": "csv"} if "task_name" in task.settings_class.declared() else {}
  known |= {"output_dir": str(tmp_path / "out"), "data_dir": str(path)}
  return task.settings_class(**{**known, **values})


def write(path, rows=ROWS, header=("text", "label")):
  with open(path, "w", newline="", encoding="utf-8") as file:
    csv.writer(file).writerows([*([header] if header else []), *rows])
  return path


def split(tmp_path, path, task=run_classifier.Classification, **values):
  return table_split.with_split(task, settings_of(tmp_path, path, task, **values)).data_dir


def parts_of(folder):
  tables = {part: read_table(user_tables.find_table(folder, part)) for part in PARTS}
  return {part: [tuple(row) for row in rows] for part, rows in tables.items()}


def test_every_row_is_in_one_part_by_label_and_equal_texts_together(tmp_path):
  found = parts_of(split(tmp_path, write(tmp_path / "tickets.csv")))
  assert all(rows[0] == ("text", "label") for rows in found.values())
  found = {part: rows[1:] for part, rows in found.items()}
  assert sorted(row for rows in found.values() for row in rows) == sorted(ROWS)
  texts = [{text.strip() for text, _ in rows} for rows in found.values()]
  assert sum(map(len, texts)) == len(set.union(*texts))
  labels = {part: collections.Counter(label for _, label in rows) for part, rows in found.items()}
  for label, size in collections.Counter(label for _, label in ROWS).items():
    assert abs(labels["train"][label] - 0.8 * size) <= 3
    assert all(abs(labels[part][label] - 0.1 * size) <= 3 for part in ("dev", "test"))
  assert [len(rows) for rows in found.values()] == pytest.approx([96, 12, 12], abs=2)


def test_the_split_is_that_of_the_seed_and_written_once(tmp_path):
  path = write(tmp_path / "tickets.csv")
  first = parts_of(split(tmp_path, path))
  names = {file: file.stat().st_mtime_ns for file in (tmp_path / "out/split").iterdir()}
  assert parts_of(split(tmp_path, path, seed=2)) == first  # a run that goes on
  assert parts_of(split(tmp_path, path, do_train=False)) == first
  assert {file: file.stat().st_mtime_ns for file in (tmp_path / "out/split").iterdir()} == names
  again, other = (str(tmp_path / name) for name in ("again", "other"))
  assert parts_of(split(tmp_path, path, output_dir=again)) == first
  assert parts_of(split(tmp_path, path, output_dir=other, seed=2)) != first
  record = json.loads((tmp_path / "out/split/split.json").read_text())
  assert (record["file"], record["seed"]) == (str(path), 1)
  assert record["rows"] == {part: len(rows) - 1 for part, rows in first.items()}


def test_a_later_report_of_the_table_reads_its_dev_rows(tmp_path):
  path = write(tmp_path / "tickets.csv")
  facts = {"task_name": "csv", "problem_type": "classification", "labels": LABELS}
  heads = {"output_weights": (3, 16), "output_bias": (3,)}
  vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  folder = teachers.write(tmp_path / "out", vocab, facts, heads, {"max_seq_length": 16})
  parts = parts_of(split(tmp_path, path))
  run, known = load_run.find_run(folder), {"task_name": "csv", "data_dir": str(tmp_path / "gone")}
  task = run_subject.task_of(run, str(folder), known, run_subject.Chosen(data_dir=str(path)))
  found = [(each.text_a, each.label) for each in task.data_sets("dev")[0].examples]
  assert found == parts["dev"][1:]
  # Of another table each row is read.
  other = write(tmp_path / "others.csv", ROWS[:70])
  task = run_subject.task_of(run, str(folder), known, run_subject.Chosen(data_dir=str(other)))
  assert len(task.data_sets("dev")[0].examples) == 70


def test_a_table_that_has_changed_is_refused(tmp_path):
  path = write(tmp_path / "tickets.csv")
  split(tmp_path, path)
  write(path, ROWS[1:])
  for do_train in (True, False):
    with pytest.raises(DataError, match=r"tickets.csv: .*/out/split has the split of") as raised:
      split(tmp_path, path, do_train=do_train)
    assert f"--data_dir={tmp_path}/out/split" in str(raised.value)


def test_a_model_is_not_asked_what_it_has_learned(tmp_path):
  path = write(tmp_path / "tickets.csv")
  first = split(tmp_path, path)
  for do_train in (True, False):
    values = {"output_dir": str(tmp_path / "new"), "init_folder": str(tmp_path / "out")}
    assert split(tmp_path, path, **values, do_train=do_train) == first
  write(path, ROWS[1:])
  with pytest.raises(DataError, match="has the split of"):
    split(tmp_path, path, **values, do_train=False)


def test_without_training_another_table_is_read_whole(tmp_path):
  split(tmp_path, write(tmp_path / "tickets.csv"))
  path = write(tmp_path / "new.csv", ROWS[:7])
  assert split(tmp_path, path, do_train=False) == str(path)
  settings = settings_of(tmp_path, path, do_train=False, labels=["early", "late"])
  task = run_classifier.Classification(settings)
  assert [len(task.data_sets(part)[0]) for part in ("dev", "test")] == [7, 7]


def test_few_rows_are_refused(tmp_path):
  path = write(tmp_path / "tickets.csv", [("a", "x"), ("a", "x"), ("b", "y"), ("c", "y")])
  with pytest.raises(DataError, match="4 rows, of which 1 repeat the text of another one, are too"):
    split(tmp_path, path)
  assert not (tmp_path / "out/split").exists()


@pytest.mark.parametrize("skip_bad_rows", [True, False])
def test_bad_rows_are_named_by_their_place_in_the_table(tmp_path, skip_bad_rows):
  rows = [*ROWS[:3], ("no label", ""), *ROWS[3:], ("none", "")]
  path = write(tmp_path / "tickets.csv", rows)
  if skip_bad_rows:
    found = parts_of(split(tmp_path, path, skip_bad_rows=True))
    assert sum(len(rows) - 1 for rows in found.values()) == len(ROWS)
    return
  with pytest.raises(DataError, match=r"tickets.csv, line 5: .* 2 of 122 rows .*\(lines 5, 123\)"):
    split(tmp_path, path)


@pytest.mark.parametrize("name", ["tickets.jsonl", "tickets.tsv", "semicolons.csv"])
def test_values_are_those_of_the_table(tmp_path, name):
  rows = [(f'"{i}" is, or; was', "a" if i % 2 else "b", i) for i in range(40)]
  header = ("text", "label", "number")
  if name.endswith(".jsonl"):
    lines = [json.dumps(dict(zip(header, row, strict=True))) for row in rows]
  elif name.endswith(".tsv"):
    rows = [(text, label, str(number)) for text, label, number in rows]
    lines = ["\t".join(row) for row in [header, *rows]]
  else:
    rows = [(f"{i} is, or was", *row[1:2], str(i)) for i, row in enumerate(rows)]
    lines = [";".join(row) for row in [header, *rows]]
  (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
  found = parts_of(split(tmp_path, tmp_path / name))
  assert sorted(row for part in found.values() for row in part[1:]) == sorted(rows)


def test_a_table_without_header(tmp_path):
  path = write(tmp_path / "tickets.csv", header=None)
  values = {"header": False, "text_a_column": "0", "label_column": "1"}
  found = parts_of(split(tmp_path, path, **values))
  assert sorted(row for rows in found.values() for row in rows) == sorted(ROWS)


def test_of_several_labels_all_are_in_train(tmp_path):
  rows = [(f"text {i}", "a,b" if i == 30 else "a" if i % 2 else "") for i in range(31)]
  path = write(tmp_path / "tickets.csv", rows)
  found = parts_of(split(tmp_path, path, problem_type="multi_label"))
  assert ("text 30", "a,b") in found["train"]
  assert {label for _, label in found["dev"][1:]} <= {"a", ""}


def test_numbers_are_divided_by_their_size(tmp_path):
  rows = [(f"text {i}", str(i)) for i in range(100)]
  path = write(tmp_path / "scores.csv", rows)
  found = parts_of(split(tmp_path, path, problem_type="regression"))
  for part in ("dev", "test"):
    assert sorted(int(score) // 10 for _, score in found[part][1:]) == pytest.approx(
      range(10), abs=1
    )


def test_pairs_and_questions_are_divided_too(tmp_path):
  rows = [(f"a {i}", f"b {i % 25}", i / 50) for i in range(50)]
  path = write(tmp_path / "pairs.csv", rows, ("text_a", "text_b", "score"))
  found = parts_of(split(tmp_path, path, run_similarity.Similarity))
  assert [len(found[part]) - 1 for part in PARTS] == [40, 5, 5]
  questions = [(f"context {i}", "one", "two", i % 2) for i in range(20)]
  path = write(tmp_path / "swag.csv", questions, ("sent1", "ending0", "ending1", "label"))
  found = parts_of(split(tmp_path / "swag", path, run_swag.MultipleChoice))
  assert [len(found[part]) - 1 for part in PARTS] == [16, 2, 2]
