"""Tests of run_glue.py: the best run of a task, its checkpoint, the table."""

import os
import re

import numpy as np
import pytest

from bert.sweeps import outcomes as outcomes_
from bert.sweeps.outcomes import Outcome, Run
from tests.reports.pages import data_of


def outcomes(**scores) -> list[Outcome]:
  """`a1=0.8`: the run of setting a and seed 1; None is to be done, a text a failure."""
  made = []
  for name, score in scores.items():
    outcome = Outcome(Run(int(name[1:]), f"/{name}", setting=name[0]), headline=("accuracy",))
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
  assert [outcome.run.folder[1:] for outcome in outcomes_.best_setting(outcomes(**scores))] == best
  assert names(outcomes_.superfluous(outcomes(**scores))) == in_way


def test_one_checkpoint_of_each_task_stays(bench):
  bench.add("RTE", "MRPC")
  best = [os.path.join(task, "lr3e-05_epochs2_seed2") for task in ("MRPC", "RTE")]
  bench.run_well()
  assert bench.with_checkpoint() == best
  assert not list((bench.out / "RTE" / "lr2e-05_epochs2_seed1").glob("*.tf_record"))
  assert (bench.out / "RTE" / "lr2e-05_epochs2_seed1" / "eval_results.txt").exists()


def test_a_best_run_whose_checkpoint_is_gone_is_trained_again_to_predict(bench):
  better = {"lr2e-05_epochs2_seed1": 0.8, "lr3e-05_epochs2_seed1": 0.7}
  bench.add("RTE").tell("RTE", scores=better)
  bench.run_well(seeds="1")
  # The new seed turns the order of the settings around.
  bench.tell("RTE", scores={**better, "lr2e-05_epochs2_seed2": 0.1, "lr3e-05_epochs2_seed2": 0.6})
  bench.run_well(seeds="1,2")
  assert bench.best_of("RTE").endswith("lr3e-05_epochs2_seed1")
  assert bench.trained().count(os.path.join("RTE", "lr3e-05_epochs2_seed1")) == 2
  assert (bench.out / "submission" / "RTE.tsv").exists()


def test_the_table_has_best_mean_and_spread_of_the_best_setting(bench):
  bench.add("RTE", "MRPC", "MNLI").tell(
    "RTE", scores={"lr2e-05_epochs2_seed1": 0.8, "lr2e-05_epochs2_seed2": 0.7}
  )
  done = bench.run_well()
  results = bench.results()
  best = [bench.best_of(name) for name in ("RTE", "MRPC", "MNLI")]
  assert best[0].endswith("lr2e-05_epochs2_seed1")
  scores = [run["results"] for run in results["runs"] if run["folder"] in best]
  assert scores[1] == pytest.approx({"score": 27.2, "accuracy m": 32.2, "accuracy mm": 22.2})
  best = results["averages"]["With the best seed of each task"]
  assert best == pytest.approx(np.mean([next(iter(each.values())) for each in scores]))
  lines = done.out.splitlines()
  assert f"GLUE, 12 runs: {results['averages']['']:.2f} mean over 3 tasks" in lines
  [row] = [line for line in lines if line.startswith("RTE")]
  assert re.search(r" 80.00 +80.00 +75.00 ± 7.07 +rate 2e-05, 2 epochs +4 of 4$", row)
  [row] = [line for line in lines if line.startswith("MRPC")]
  assert re.search(r" accuracy / F1 +32.20 / 32.20 ", row)
  assert "Not in the average: CoLA, SST-2, STS-B, QQP, QNLI, WNLI." in done.out
  assert (bench.out / "results.txt").read_text() in done.out
  data = data_of((bench.out / "report.html").read_text(encoding="utf-8"))
  assert [run["group"] for run in data["runs"]] == ["MRPC"] * 4 + ["MNLI"] * 4 + ["RTE"] * 4
  assert data["averages"] == results["averages"]


def test_noreport_leaves_the_page_out(bench):
  bench.add("RTE").run_well("--noreport", seeds="1")
  assert (bench.out / "results.txt").exists()
  assert not (bench.out / "report.html").exists()
  assert all("noreport" in call for call in bench.calls())
