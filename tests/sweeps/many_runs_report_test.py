"""Tests of the report of many runs."""

import json
import types

import pytest

from bert.scripts import result_files
from bert.sweeps import dev_scores
from bert.sweeps.many_runs import ManyRuns
from bert.sweeps.many_runs_report import ManyRunsReport
from bert.sweeps.sweep import Outcome, Run


def outcome(seed, accuracy, **more):
  results = {"eval_accuracy": accuracy, "eval_f1": accuracy + 0.05}
  run = Run(seed, f"out/seed_{seed}")
  names = tuple(results)
  return Outcome(run, results, headline=names[:1], metrics=names, seconds=90.0, **more)


@pytest.fixture
def runs():
  why = "accuracy 0.6838 is not above 0.6838, the share of the most frequent label (1)"
  return [
    outcome(1, 0.78, examples=408),
    outcome(2, 0.80, examples=408),
    outcome(3, 0.6838, examples=408, collapsed=why),
    Outcome(Run(4, "out/seed_4"), failure="exit code 1: no space"),
  ]


def test_the_table(runs):
  text = ManyRunsReport("run_classifier", runs).text()
  rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
  assert "4 runs of run_classifier.py, 408 dev examples" in text
  assert rows["2"] == ["0.8000", "0.8500", "1.5", "best"]
  assert rows["3"] == ["0.6838", "0.7338", "1.5", "FAILED"]
  assert rows["4"][-3:] == ["did", "not", "finish"]
  means = [line.split()[1] for line in text.splitlines() if line.startswith("mean  ")]
  assert means == ["0.7546", "0.7900"], "with the failed run and without it"
  assert "without the 1 failed run:" in text
  assert "FAILED: seed 3: accuracy 0.6838 is not above 0.6838" in text
  assert "PROBLEM: seed 4 did not finish: exit code 1: no space" in text
  assert max(map(len, text.splitlines())) <= 100
  assert "Student's t" in text


def test_all_figures_are_in_the_json(runs):
  content = json.loads(ManyRunsReport("run_classifier", runs).json())
  assert content["headline"] == "eval_accuracy"
  assert content["best_seed"] == 2
  assert content["failed_seeds"] == [3]
  assert content["metrics"]["eval_accuracy"]["count"] == 3
  assert content["metrics_without_failed"]["eval_accuracy"]["mean"] == pytest.approx(0.79)


def test_no_run_at_all(runs, tmp_path):
  report = ManyRunsReport("run_classifier", runs[3:])
  report.write(str(tmp_path))
  assert "No run has finished." in (tmp_path / "results.txt").read_text()


def test_only_a_finite_score_counts(tmp_path):
  (tmp_path / "eval_results.txt").write_text("eval_accuracy = nan\n")
  result_files.write_summary(str(tmp_path), "eval_accuracy", ["eval_accuracy"], None, 3)
  with pytest.raises(ValueError, match="eval_accuracy is nan"):
    dev_scores.read(Outcome(Run(1, str(tmp_path))))


def test_a_second_set_has_columns_of_its_own(tmp_path):
  (tmp_path / "eval_results.txt").write_text("eval_accuracy = 0.5\nglobal_step = 7\n")
  (tmp_path / "eval_results_mismatched.txt").write_text("eval_accuracy = 0.6\n")
  result_files.write_summary(str(tmp_path), "eval_accuracy", ["eval_accuracy"], None, 3)
  run = Outcome(Run(1, str(tmp_path)))
  dev_scores.read(run)
  assert run.metrics == ("eval_accuracy", "eval_accuracy_mismatched")
  assert run.score == 0.5


def test_the_best_of_failed_runs_is_a_failed_run(runs):
  text = ManyRunsReport("run_classifier", runs[2:3]).text()
  assert "Every run has FAILED" in text
  assert "best" not in text.lower(), "none is"
  assert "without the" not in text, "nothing is left without it"


def test_what_the_first_run_warns_of_is_said_once(tmp_path, caplog):
  first = Run(1, str(tmp_path))
  sweep = types.SimpleNamespace(outcomes={first: None, Run(2, "none"): None})
  ManyRuns._repeat_warnings(sweep)
  lines = ["INFO:tensorflow:a", "WARNING:tensorflow:b: c", "WARNING:tensorflow:b: c", ""]
  (tmp_path / "run.log").write_text("\n".join(lines))
  ManyRuns._repeat_warnings(sweep)
  assert caplog.messages == ["b: c"]
