"""Tests of the report of a sweep: `results.txt`, `results.json`, and what a run's files say."""

import json

import pytest

from bert.reports.runs import Entry, Runs
from bert.scripts import result_files
from bert.sweeps import many_runs, results, sweep
from bert.sweeps.outcomes import Outcome, Run

WHY = "accuracy 0.6838 is not above 0.6838, the share of the most frequent label (1)"


def entry(seed, accuracy=None, **more):
  scores = {} if accuracy is None else {"eval_accuracy": accuracy, "eval_f1": accuracy + 0.05}
  return Entry(f"seed {seed}", f"seed_{seed}", scores, seconds=accuracy and 90.0, **more)


@pytest.fixture
def runs():
  return [
    entry(1, 0.78),
    entry(2, 0.80, is_best=True),
    entry(3, 0.6838, collapsed=WHY),
    entry(4, failure="exit code 1: no space"),
  ]


def test_the_table_and_all_figures(runs, tmp_path):
  problem = "seed 4 did not finish: exit code 1: no space"
  text = results.write(Runs("MRPC", "out", runs, problems=[problem]), str(tmp_path))
  assert text == (tmp_path / "results.txt").read_text()
  rows = {line.split("  ")[0]: line.split()[2:] for line in text.splitlines()}
  assert "MRPC, 4 runs: 0.7546 mean accuracy" in text
  assert rows["seed 2"] == ["0.8000", "0.8500", "1.5", "best"]
  assert rows["seed 3"] == ["0.6838", "0.7338", "1.5", "FAILED"]
  assert rows["seed 4"][-3:] == ["did", "not", "finish"]
  assert rows["mean, without failed runs"][-2:] == ["0.7900", "0.8400"]
  assert "FAILED: seed 3: accuracy 0.6838 is not above 0.6838" in text
  assert f"PROBLEM: {problem}" in text
  assert "Best run: seed 2, out/seed_2." in text
  assert max(map(len, text.splitlines())) <= 100
  [group] = json.loads((tmp_path / "results.json").read_text())["groups"]
  every, others = group["summaries"]
  assert group["best"] == "seed_2"
  assert (every["of_metrics"]["eval_accuracy"]["count"], every["with_failed"]) == (3, True)
  assert others["of_metrics"]["eval_accuracy"]["mean"] == pytest.approx(0.79)


def test_no_run_at_all(runs, tmp_path):
  text = results.write(Runs("MRPC", "out", runs[3:]), str(tmp_path))
  assert "No run has finished." in text


def test_the_best_of_failed_runs_is_a_failed_run(runs, tmp_path):
  text = results.write(Runs("MRPC", "out", runs[2:3]), str(tmp_path))
  assert "FAILED: seed 3" in text
  assert "best" not in text.lower(), "none is"
  assert "without" not in text, "nothing is left without it"


def test_only_a_finite_score_counts(tmp_path):
  (tmp_path / "eval_results.txt").write_text("eval_accuracy = nan\n")
  result_files.write_summary(str(tmp_path), "eval_accuracy", ["eval_accuracy"], None, 3)
  with pytest.raises(ValueError, match="eval_accuracy is nan"):
    Outcome(Run(1, str(tmp_path))).read()


def test_a_second_set_has_columns_of_its_own(tmp_path):
  (tmp_path / "eval_results.txt").write_text("eval_accuracy = 0.5\nglobal_step = 7\n")
  (tmp_path / "eval_results_mismatched.txt").write_text("eval_accuracy = 0.6\n")
  result_files.write_summary(str(tmp_path), "eval_accuracy", ["eval_accuracy"], None, 3)
  run = Outcome(Run(1, str(tmp_path)))
  run.read()
  assert run.metrics == ("eval_accuracy", "eval_accuracy_mismatched")
  assert run.score == 0.5


def test_what_the_first_run_warns_of_is_said_once(tmp_path, caplog):
  many_runs.repeat_warnings(str(tmp_path))
  lines = ["INFO:tensorflow:a", "WARNING:tensorflow:b: c", "WARNING:tensorflow:b: c", ""]
  (tmp_path / "run.log").write_text("\n".join(lines))
  many_runs.repeat_warnings(str(tmp_path))
  assert caplog.messages == ["b: c"]


def test_a_run_may_be_of_a_script_of_ones_own(tmp_path):
  ours, own = sweep.program_of("run_ner"), sweep.program_of(str(tmp_path / "task.py"))
  assert (ours[1:], own[1:]) == (["-m", "bert.run_ner"], [str(tmp_path / "task.py")])
