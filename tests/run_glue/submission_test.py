"""Tests of run_glue.py: predictions with the best runs, and the submission to GLUE's server."""

import os
import zipfile

import pytest

from bert.sweeps import glue_submission
from tests.kit.glue_bench import folder_of, write


def test_the_submission_is_as_glue_wants_it(bench):
  done = bench.add("RTE", "STS-B", "MNLI", "AX").run_well()
  with zipfile.ZipFile(bench.out / "submission.zip") as archive:
    texts = {name: archive.read(name).decode() for name in archive.namelist()}
  assert set(texts) == {f"{name}.tsv" for name in ("RTE", "STS-B", "MNLI-m", "MNLI-mm", "AX")}
  assert texts["RTE.tsv"] == "index\tprediction\n10\t1\n11\t1\n"
  assert texts["STS-B.tsv"] == "index\tprediction\n10\t5.000\n11\t5.000\n"
  for name in ("MNLI-m", "MNLI-mm", "AX"):
    assert texts[f"{name}.tsv"] == "index\tprediction\n10\tneutral\n11\tneutral\n"
    assert (bench.out / "submission" / f"{name}.tsv").read_text() == texts[f"{name}.tsv"]
  assert "GLUE's server expects CoLA, SST-2, MRPC, QQP, QNLI, WNLI as well" in done.err
  predicted = [call for call in bench.calls() if "do_predict" in call]
  assert [call["task_name"] for call in predicted] == ["STS-B", "MNLI", "RTE", "AX"]
  best = os.path.join("MNLI", "lr3e-05_epochs2_seed2")
  assert folder_of(predicted[1]) == best
  assert predicted[3]["init_checkpoint"] == str(bench.out / best)
  assert folder_of(predicted[3]) == os.path.join("out", "AX")


def test_another_test_set_is_predicted_anew(bench):
  bench.add("RTE").run_well()
  write(bench.glue / "RTE" / "test.tsv", "index\ttext\n0\tc\n1\td\n2\te\n")
  bench.run_well()
  assert len(bench.trained()) == 4
  text = (bench.out / "submission" / "RTE.tsv").read_text()
  assert text == "index\tprediction\n0\t1\n1\t1\n2\t1\n"


def test_a_failed_prediction_is_reported_and_the_table_is_made(bench):
  bench.add("RTE", "MRPC").tell("RTE", **{"no prediction": True})
  done = bench.run()
  assert done.code == 1
  assert "PROBLEM: predicting the test set with RTE, rate 3e-05" in done.out
  assert bench.best_of("RTE")
  with zipfile.ZipFile(bench.out / "submission.zip") as archive:
    assert archive.namelist() == ["MRPC.tsv"]


def test_predictions_that_lack_rows_are_not_submitted(tmp_path):
  write(tmp_path / "test.tsv", "index\ttext\n0\ta\n1\tb\n")
  write(tmp_path / "predictions.tsv", "id\tlabel\ntest-1\t1\t0.5\n")
  said = r"has 2 rows, but .* has 1: GLUE accepts only complete submissions"
  with pytest.raises(ValueError, match=said):
    glue_submission.submission_text(
      "RTE", str(tmp_path / "predictions.tsv"), str(tmp_path / "test.tsv")
    )
