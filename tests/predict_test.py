"""predict.py: lines in, lines of JSON out, and its messages."""

import csv
import json
import os

import numpy as np
import pytest

from bert import predict
from bert.predicting import servable
from tests.kit.filters import run_filter
from tests.kit.script_runs import check_help


def test_lines_in_json_out(exported, answer, tmp_path):
  lines = [
    "good film",
    "good ||| bad",
    "",
    '{"text_a": "good", "text_b": "bad"}',
    "{the film",
    "päť",
  ]
  (tmp_path / "in.txt").write_text("\n".join(lines), encoding="utf-8")
  code, printed, err = run_filter(predict, init_checkpoint=exported, input_file=tmp_path / "in.txt")
  assert code is None, err
  results = list(map(json.loads, printed.splitlines()))
  assert len(results) == len(lines)
  expected = answer(["good film", ("good", "bad"), "", ("good", "bad"), "{the film", "päť"])
  for result, wanted in zip(results, expected, strict=True):
    assert result["label"] == wanted["label"]
    np.testing.assert_allclose(result["probabilities"], wanted["probabilities"], atol=1e-6)
  assert "päť" in printed, "text is written as it is"
  stdin = (tmp_path / "in.txt").read_bytes()
  code, _, err = run_filter(
    predict, stdin, init_checkpoint=exported, output_file=tmp_path / "out.jsonl"
  )
  assert code is None, err
  assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == printed


def test_tables_in_tables_out(exported, answer, trained, encode, tmp_path):
  (tmp_path / "in.csv").write_text('id,text,label\n7,"good, film",\n8,bad,x\n')
  files = {"input_file": tmp_path / "in.csv", "output_file": tmp_path / "out.csv"}
  code, _, err = run_filter(predict, init_checkpoint=exported, **files)
  assert code is None, err
  with open(tmp_path / "out.csv", newline="") as file:
    found = list(csv.DictReader(file))
  assert [(row["id"], row["text"], row["label"]) for row in found] == [
    *(("7", "good, film", ""), ("8", "bad", "x"))
  ]
  for row, wanted in zip(found, answer(["good, film", "bad"]), strict=True):
    assert row["prediction"] == wanted["label"]
    for name, value in zip(wanted["label_names"], wanted["probabilities"], strict=True):
      assert float(row[f"probability_{name}"]) == pytest.approx(value, abs=1e-6)
  flags = {"task": "vectors", "init_checkpoint": trained, "max_seq_length": 16}
  code, printed, err = run_filter(predict, **flags, input_file=tmp_path / "in.csv")
  assert code is None, err
  vectors = [json.loads(line)["vector"] for line in printed.splitlines()]
  np.testing.assert_allclose(vectors, encode(["good, film", "bad"]), atol=1e-5)
  files = {"output_file": tmp_path / "lines.csv"}
  code, _, err = run_filter(predict, b"good\nbad\n", init_checkpoint=exported, **files)
  assert code is None, err
  assert (tmp_path / "lines.csv").read_text().startswith("text,prediction,probability_")


def test_faults_of_tables_are_told(exported, tmp_path):
  (tmp_path / "in.csv").write_text("id,review\n7,good\n")
  code, printed, err = run_filter(predict, init_checkpoint=exported, input_file=tmp_path / "in.csv")
  assert (code, printed) == (1, "")
  assert "in.csv, line 1: column 'text_a' is not in the header, which has id, review." in err
  assert "Name one of these columns as --text_a_column" in err
  code, _, err = run_filter(predict, init_checkpoint=exported, input_file=tmp_path / "no.csv")
  assert (code, f"{tmp_path}/no.csv" in err, "data_dir" in err) == (1, True, False)
  flags = {"runner": "beam", "input_file": tmp_path / "in.csv", "output_file": "x"}
  code, _, err = run_filter(predict, init_checkpoint="x", **flags)
  assert (code, "in.csv is a table. Workers read lines of text" in err) == (1, True)


def test_vectors_of_lines(trained, encode):
  lines = [
    "the film",
    "good ||| bad",
    '{"text_a": "good", "text_b": "bad"}',
    '{"text": "the film"}',
  ]
  flags = {"task": "vectors", "init_checkpoint": trained, "max_seq_length": 16}
  code, printed, err = run_filter(predict, "\n".join(lines).encode(), **flags)
  assert code is None, err
  found = np.array([json.loads(line)["vector"] for line in printed.splitlines()])
  expected = encode(["the film", ("good", "bad"), ("good", "bad"), "the film"])
  np.testing.assert_allclose(found, expected, atol=1e-5)
  code, _, err = run_filter(predict, b'good\n{"question": "good"}', **flags)
  assert (code, "standard input, line 2: Expected a text or a pair of texts" in err) == (1, True)


@pytest.mark.ci
@pytest.mark.parametrize("task", ["vectors", "answers"])
def test_the_same_bits_in_every_batch(trained, exported, task):
  lines = [b"the film", b"good ||| bad", b"", b"the film was good , good , good ."]
  flags = {"vectors": {"init_checkpoint": trained, "max_seq_length": 16}}
  flags = {"task": task, **flags.get(task, {"init_checkpoint": exported}), "batch_invariant": True}

  def run(lines, batch_size):
    code, printed, err = run_filter(predict, b"\n".join(lines), **flags, batch_size=batch_size)
    assert code is None, err
    return printed.splitlines()

  assert run(lines, 32) == run(lines[::-1], 2)[::-1]


def test_an_item_that_does_not_fit_is_named_by_its_line(exported, tmp_path):
  (tmp_path / "in.txt").write_text('good\n{"text_a": "good", "text": "bad"}\n')
  code, _, err = run_filter(predict, init_checkpoint=exported, input_file=tmp_path / "in.txt")
  assert (code, f"{tmp_path}/in.txt, line 2: " in err) == (1, True)
  assert "does not fit this model, whose inputs are text_a, text_b" in err


def test_no_line_at_all_is_said(exported, tmp_path):
  code, printed, err = run_filter(predict, b"", init_checkpoint=exported)
  assert (code, printed) == (None, "")
  assert "standard input has no line: nothing was predicted." in err


def test_a_file_appears_whole_or_not_at_all(exported, tmp_path):
  (tmp_path / "out.jsonl").write_text("old\n")
  bad = b"good\n\xff\n"
  code, _, err = run_filter(
    predict, bad, init_checkpoint=exported, output_file=tmp_path / "out.jsonl"
  )
  assert code == 1
  assert "ERROR: standard input, line 2: byte 0xff is not UTF-8." in err
  assert (tmp_path / "out.jsonl").read_text() == "old\n"
  assert os.listdir(tmp_path) == ["out.jsonl"]


def test_wrong_paths_are_told_before_anything_is_loaded(exported, tmp_path, monkeypatch):
  monkeypatch.setattr(servable, "find", None)
  code, _, err = run_filter(
    predict, init_checkpoint=exported, output_file=tmp_path / "no" / "out.jsonl"
  )
  assert (code, "there is no folder" in err) == (1, True)
  code, _, err = run_filter(predict, init_checkpoint=exported, output_file=tmp_path)
  assert (code, "is a folder; name a file in it" in err) == (1, True)
  code, _, err = run_filter(predict)
  assert (code, "Name a model: --init_checkpoint." in err) == (1, True)


def test_help_is_quick_and_complete(tmp_path):
  check_help(predict, tmp_path, {"Prediction", "Model"})
