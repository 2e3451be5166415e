"""Tests of run_glue.py: the best run of a task, its checkpoint, the table."""

import os
import re

import numpy as np
import pytest

from bert.sweeps import glue_report, glue_runs
from bert.sweeps.glue_runs import TASKS, GridRun
from bert.sweeps.sweep import Outcome
from tests.reports.pages import data_of


def outcomes(**scores) -> list[Outcome]:
  """`a1=0.8`: the run of setting a and seed 1; None is to be done, a text a failure."""
  made = []
  for name, score in scores.items():
    rate = float(ord(name[0]))
    run = GridRun(int(name[1:]), f"/{name}", task="RTE", learning_rate=rate, epochs=3.0)
    outcome = Outcome(run, headline=("accuracy",))
    outcome.results = {"accuracy": score} if isinstance(score, float) else None
    outcome.failure = score if isinstance(score, str) else None
    made.append(outcome)
  return made


def names(runs) -> list[str]:
  return sorted(getattr(each, "run", each).folder[1:] for each in runs)


@pytest.mark.parametrize(
  ("scores", "best", "in_way"),
  [
    # The mean decides between settings, the score between seeds.
    (dict(a1=0.9, a2=0.1, b1=0.6, b2=0.7), ["b2", "b1"], ["a1", "a2", "b1"]),
    # b may still become the best one: its best seed so far is kept.
    (dict(a1=0.9, a2=0.8, b1=0.1, b2=0.2, b3=None), ["a1", "a2"], ["a2", "b1"]),
    # A setting that lost a seed counts only if nothing else does.
    (dict(a1=0.9, a2="failed", b1=0.6, b2=0.7), ["b2", "b1"], ["a1", "b1"]),
    (dict(a1=0.9, a2="failed"), ["a1"], []),
    (dict(a1="failed", b1=None), [], []),
  ],
)
def test_the_best_setting_and_what_it_makes_superfluous(scores, best, in_way):
  assert [outcome.run.folder[1:] for outcome in glue_runs.best_setting(outcomes(**scores))] == best
  assert names(glue_runs.superfluous(outcomes(**scores))) == in_way


def test_one_checkpoint_of_each_task_stays(bench):
  bench.add("RTE", "MRPC")
  best = [os.path.join(task, "lr3e-05_epochs2_seed2") for task in ("MRPC", "RTE")]
  bench.run_well()
  assert bench.with_checkpoint() == best
  assert not list((bench.out / "RTE" / "lr2e-05_epochs2_seed1").glob("*.tf_record"))
  assert (bench.out / "RTE" / "lr2e-05_epochs2_seed1" / "eval_results.txt").exists()


def test_checkpoints_go_while_the_sweep_is_at_work(bench):
  """At no time are there more than the best one's and those of the setting that is running."""
  bench.add("RTE").run_well("--nodo_predict", learning_rates="1e-5,2e-5,3e-5", seeds="1")
  kept = bench.with_checkpoint()
  assert kept == [os.path.join("RTE", "lr3e-05_epochs2_seed1")]
  bench.tell("RTE", fail=["lr4e-05_epochs2_seed1"])
  bench.run("--nodo_predict", learning_rates="1e-5,2e-5,3e-5,4e-5", seeds="1")
  assert bench.with_checkpoint() == kept


def test_a_best_run_whose_checkpoint_is_gone_is_trained_again_to_predict(bench):
  better = {"lr2e-05_epochs2_seed1": 0.8, "lr3e-05_epochs2_seed1": 0.7}
  bench.add("RTE").tell("RTE", scores=better)
  bench.run_well(seeds="1")
  # The new seed turns the order of the settings around.
  bench.tell("RTE", scores={**better, "lr2e-05_epochs2_seed2": 0.1, "lr3e-05_epochs2_seed2": 0.6})
  bench.run_well(seeds="1,2")
  assert bench.results()["tasks"]["RTE"]["best_run"].endswith("lr3e-05_epochs2_seed1")
  assert bench.trained().count(os.path.join("RTE", "lr3e-05_epochs2_seed1")) == 2
  assert (bench.out / "submission" / "RTE.tsv").exists()


def test_the_table_has_best_mean_and_spread_of_the_best_setting(bench):
  bench.add("RTE", "MRPC", "MNLI").tell(
    "RTE", scores={"lr2e-05_epochs2_seed1": 0.8, "lr2e-05_epochs2_seed2": 0.7}
  )
  done = bench.run_well()
  results = bench.results()
  task = results["tasks"]["RTE"]
  assert (task["best"], task["mean"]) == pytest.approx((0.8, 0.75))
  assert task["standard_deviation"] == pytest.approx(np.std([0.8, 0.7], ddof=1))
  assert task["learning_rate"] == 2e-5
  mnli = results["tasks"]["MNLI"]
  assert mnli["best"] == pytest.approx(0.322 - 0.05)
  assert set(mnli["metrics"]) == {"accuracy m", "accuracy mm"}
  best = [results["tasks"][name]["best"] for name in ("RTE", "MRPC", "MNLI")]
  assert results["average"]["best"] == pytest.approx(np.mean(best))
  assert results["missing_tasks"] == ["CoLA", "SST-2", "STS-B", "QQP", "QNLI", "WNLI"]
  lines = done.out.splitlines()
  [row] = [line for line in lines if line.startswith("RTE")]
  assert re.search(r" 80.0 +80.0 +75.0 ± 7.1 +rate 2e-05, 2 epochs +4 of 4$", row)
  [row] = [line for line in lines if line.startswith("MRPC")]
  assert re.search(r" accuracy / F1 +32.2 / 32.2 ", row)
  assert any(line.startswith("Average") and "3 of 9 tasks" in line for line in lines)
  assert "Not in the average: CoLA, SST-2, STS-B, QQP, QNLI, WNLI." in done.out
  assert (bench.out / "results.txt").read_text() in done.out
  data = data_of((bench.out / "report.html").read_text(encoding="utf-8"))
  assert [run["group"] for run in data["runs"]] == ["MRPC"] * 4 + ["MNLI"] * 4 + ["RTE"] * 4
  assert data["averages"][""] == pytest.approx(100 * results["average"]["mean"])


def test_noreport_leaves_the_page_out(bench):
  bench.add("RTE").run_well("--noreport", seeds="1")
  assert (bench.out / "results.txt").exists()
  assert not (bench.out / "report.html").exists()
  assert all("noreport" in call for call in bench.calls())


def test_a_run_knows_its_steps(tmp_path):
  (tmp_path / "eval_results.txt").write_text("eval_accuracy = 0.5\nglobal_step = 234\n")
  run = GridRun(1, str(tmp_path), task="RTE", learning_rate=1.0, epochs=3.0)
  glue_runs.read_results(outcome := Outcome(run))
  assert (outcome.results, outcome.steps) == ({"accuracy": 0.5}, 234)


# Table 1 and the leaderboard's entries of the paper: metrics of each task, average with WNLI.
PUBLISHED = {
  78.3: "52.1 93.5 88.9/84.8 87.1/85.8 71.2/89.2 84.6/83.4 90.5 66.4 65.1",
  80.5: "60.5 94.9 89.3/85.4 87.6/86.5 72.1/89.3 86.7/85.9 92.7 70.1 65.1",
}


@pytest.mark.parametrize("average", PUBLISHED)
def test_the_average_is_that_of_the_leaderboard(average):
  summaries = []
  for task, figures in zip(TASKS.values(), PUBLISHED[average].split(), strict=True):
    values = [float(figure) / 100 for figure in figures.split("/")]
    results = dict(zip([metric.title for metric in task.metrics], values, strict=True))
    run = GridRun(1, "", task=task.name, learning_rate=1.0, epochs=1.0)
    outcome = Outcome(run, results, headline=tuple(results))
    summaries.append(glue_report.TaskScore(task.name, [outcome]))
  report = glue_report.GlueReport(summaries)
  averages = report.averages()
  assert round(100 * averages["average"]["best"], 1) == average
  assert averages["average_without_wnli"]["mean"] > averages["average"]["mean"]
  assert report.missing == []
  assert "WNLI's dev set" in report.text()
