"""Tests of bert/scripts/result_files.py."""

import csv
import logging
import os

import numpy as np
import pytest

from bert.scripts import result_files


def test_eval_results_have_the_originals_keys_first_and_print_as_float32(tmp_path, caplog):
  caplog.set_level(logging.INFO, logger="absl")
  path = tmp_path / "eval_results.txt"
  result_files.write_eval_results(
    str(path),
    {
      "eval_f1": 0.5,
      "loss": 0.4508,
      "confusion matrix": "table\nof lines",
      "global_step": 343,
      "eval_accuracy": 345 / 408,  # the original's famous first result
      "a_metric": float("nan"),
      "eval_loss": 1e-8,
    },
  )
  assert path.read_text() == (
    "eval_accuracy = 0.8455882\n"
    "eval_loss = 1e-08\n"
    "global_step = 343\n"
    "loss = 0.4508\n"
    "a_metric = nan\n"
    "eval_f1 = 0.5\n"
  )
  assert "  confusion matrix:\ntable\nof lines" in caplog.text
  assert "  eval_accuracy = 0.8455882" in caplog.text


def test_eval_results_of_another_script(tmp_path):
  path = tmp_path / "eval_results.txt"
  results = {"loss": 2.0, "a": 1.0, "b": np.float64(0.1), "n": np.int64(3)}
  result_files.write_eval_results(str(path), results, original_keys=["b", "absent"])
  assert path.read_text() == "b = 0.1\na = 1.0\nloss = 2.0\nn = 3.0\n"


def float32(*rows):
  return [np.array(row, np.float32) for row in rows]


def test_predictions_of_classes(tmp_path):
  probabilities = float32([0.1, 0.9], [0.75, 0.25], [1e-9, 1.0])
  guids = ["test-1", "a\tb\nc", "x\ry"]
  result_files.write_predictions(
    str(tmp_path), "_mismatched", guids, probabilities, ["no", "yes\t!"], "classification"
  )
  assert (tmp_path / "test_results_mismatched.tsv").read_bytes() == (
    b"0.1\t0.9\n0.75\t0.25\n1e-09\t1.0\n"
  )
  assert (tmp_path / "predictions_mismatched.tsv").read_bytes() == (
    b"id\tlabel\tprobability_no\tprobability_yes !\n"
    b"test-1\tyes !\t0.1\t0.9\n"
    b"a b c\tno\t0.75\t0.25\n"
    b"x y\tyes !\t1e-09\t1.0\n"
  )
  assert sorted(os.listdir(tmp_path)) == [
    "predictions_mismatched.tsv",
    "test_results_mismatched.tsv",
  ]


def test_predictions_with_their_texts(tmp_path):
  texts = {"text_a": ["one\ttab", "two"], "text_b": ["", "b\n"]}
  probabilities = float32([0.1, 0.9], [0.75, 0.25])
  arguments = (["no", "yes"], "classification")
  result_files.write_predictions(
    str(tmp_path), "", ["a", "b"], probabilities, *arguments, texts=texts
  )
  assert (tmp_path / "test_results.tsv").read_bytes() == b"0.1\t0.9\n0.75\t0.25\n"
  assert (tmp_path / "predictions.tsv").read_text() == (
    "id\tlabel\tprobability_no\tprobability_yes\ttext_a\ttext_b\n"
    "a\tyes\t0.1\t0.9\tone tab\t\n"
    "b\tno\t0.75\t0.25\ttwo\tb \n"
  )
  with pytest.raises(ValueError, match="shorter"):
    result_files.write_predictions(
      str(tmp_path), "", ["a", "b"], probabilities, *arguments, texts={"text_a": ["one"]}
    )


def test_predictions_are_read_alike_with_quotes_and_without(tmp_path):
  texts = ['"I wait," she said', 'a 5" screen', '"']
  rows = float32(*[[0.25, 0.75]] * 3)
  arguments = (str(tmp_path), "", "abc", rows, ["no", "yes"], "classification")
  result_files.write_predictions(*arguments, texts={"text_a": texts})
  content = (tmp_path / "predictions.tsv").read_text()
  assert [row[-1] for row in csv.reader(content.splitlines(), delimiter="\t")][1:] == texts
  assert content.splitlines()[2] == 'b\tyes\t0.25\t0.75\ta 5" screen'


def test_predictions_of_scores(tmp_path):
  result_files.write_predictions(
    str(tmp_path), "", [7, "b"], float32([4.5], [-0.25]), ["score"], "regression"
  )
  assert (tmp_path / "test_results.tsv").read_text() == "4.5\n-0.25\n"
  assert (tmp_path / "predictions.tsv").read_text() == "id\tscore\n7\t4.5\nb\t-0.25\n"


@pytest.mark.parametrize("separator", [",", ";", " | "])
def test_predictions_of_several_labels(tmp_path, separator):
  probabilities = float32([0.5, 0.4999, 0.9], [0.1, 0.1, 0.1])
  result_files.write_predictions(
    *(str(tmp_path), "", ["a", "b"], probabilities, ["x", "y", "z"], "multi_label", separator)
  )
  assert (tmp_path / "predictions.tsv").read_text().splitlines()[1:] == [
    f"a\tx{separator}z\t0.5\t0.4999\t0.9",
    "b\t\t0.1\t0.1\t0.1",
  ]


def test_one_prediction_of_one_example(tmp_path):
  result_files.write_predictions(
    str(tmp_path), "", ["a"], float32([1.0]), ["only"], "classification"
  )
  assert (tmp_path / "predictions.tsv").read_text().splitlines()[1:] == ["a\tonly\t1.0"]


def test_a_prediction_too_few_is_an_error(tmp_path):
  with pytest.raises(ValueError, match="shorter"):
    result_files.write_predictions(
      str(tmp_path), "", ["a", "b"], float32([0.1, 0.9]), ["0", "1"], "classification"
    )
  assert not (tmp_path / "predictions.tsv").exists()
