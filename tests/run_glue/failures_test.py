"""Tests of run_glue.py: runs that fail, and signals."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.kit.paths import ROOT


def test_a_failing_run_is_reported_and_the_others_go_on(bench):
  bench.add("RTE", "MRPC").tell("RTE", fail=["lr3e-05_epochs2_seed1", "lr3e-05_epochs2_seed2"])
  done = bench.run(parallel_runs=3)
  assert done.code == 1
  why = "exit code 1: dev.tsv, line 3: no label."
  assert f"PROBLEM: RTE, rate 3e-05, 2 epochs, seed 1 did not finish: {why}" in done.out
  assert why in done.err
  assert [run["failure"] for run in bench.runs_of("RTE")] == [None, None, why, why]
  assert "lr2e-05" in bench.best_of("RTE")
  assert "2 of 4, 2 did not finish" in (bench.out / "results.txt").read_text()
  assert bench.runs_of("MRPC")[3]["failure"] is None
  bench.tell("RTE")
  bench.run_well()
  assert "lr3e-05" in bench.best_of("RTE")
  assert bench.results()["problems"] == []


def test_a_run_of_one_answer_is_marked_and_is_no_error(bench):
  why = "accuracy 0.6913 is not above 0.6913, the share of the most frequent label (1)"
  bench.add("CoLA", "MRPC").tell("CoLA", collapsed={"lr2e-05_epochs2_seed2": why})
  bench.run_well()
  text = (bench.out / "results.txt").read_text()
  assert [run["collapsed"] for run in bench.runs_of("CoLA")] == [None, why, None, None]
  assert not any(run["collapsed"] for run in bench.runs_of("MRPC"))
  assert "4 of 4, 1 failed" in text
  assert f"FAILED: CoLA, rate 2e-05, 2 epochs, seed 2: {why}." in " ".join(text.split())


def test_runs_that_are_killed_or_leave_no_number_have_failed(bench):
  scores = {"lr3e-05_epochs2_seed2": float("nan")}
  bench.add("RTE").tell("RTE", kill="lr2e-05_epochs2_seed1", scores=scores)
  done = bench.run(seeds="1,2,3")
  assert done.code == 1
  assert "ended by SIGKILL (out of memory?)" in done.out
  assert "eval_results.txt: eval_accuracy is nan." in done.out


def start_hanging(bench, **values):
  """A sweep in a process of its own, whose two first runs are at work."""
  bench.add("RTE").tell("RTE", hang=True)
  program = (
    "import signal; from bert import run_glue; from bert.sweeps import glue_sweep\n"
    # Whoever started the tests may have ignored them, as `nohup` and `&` do.
    "for name in ('SIGINT', 'SIGHUP'): signal.signal(getattr(signal, name), signal.SIG_DFL)\n"
    f"glue_sweep.COMMAND = {bench.command!r}\nrun_glue.start()"
  )
  sweep = subprocess.Popen(
    [sys.executable, "-c", program, *bench.argv(parallel_runs=2, **values)[1:]],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
  deadline = time.monotonic() + 60
  while len(list(bench.out.rglob("started"))) < 2:
    assert time.monotonic() < deadline
    assert sweep.poll() is None, sweep.communicate()
    time.sleep(0.05)
  return sweep


@pytest.mark.parametrize(
  "name", ["SIGTERM", *(pytest.param(name, marks=pytest.mark.ci) for name in ("SIGINT", "SIGHUP"))]
)
def test_a_signal_is_passed_on_and_the_same_command_continues(bench, name):
  number = getattr(signal, name)
  sweep = start_hanging(bench)
  sweep.send_signal(number)
  out, err = sweep.communicate(timeout=60)
  assert sweep.returncode == 128 + number, err
  assert "Stopped. 0 of 4 runs have finished. The same command continues from here." in err
  assert f"{name}: waiting for the running processes to save; once more ends them at once." in err
  assert "PROBLEM" not in err + out
  saved = [path.parent.name for path in bench.out.rglob("model.ckpt-5.index")]
  assert sorted(saved) == ["lr2e-05_epochs2_seed1", "lr2e-05_epochs2_seed2"]
  assert len(bench.calls()) == 2
  bench.tell("RTE")
  bench.run_well()
  assert len(bench.trained()) == 2 + 4


def test_while_runs_of_a_killed_sweep_are_at_work_there_is_no_other_one(bench):
  sweep = start_hanging(bench)
  sweep.kill()
  sweep.communicate(timeout=60)
  assert "or by runs that one has left behind" in bench.error_of()
  for path in bench.out.rglob("started"):
    pid = [
      int(entry)
      for entry in os.listdir("/proc")
      if entry.isdigit() and f"--output_dir={path.parent}\0".encode() in read_command_of(entry)
    ]
    os.kill(pid[0], signal.SIGKILL)
  bench.tell("RTE")
  deadline = time.monotonic() + 60
  while (done := bench.run()).code and time.monotonic() < deadline:
    assert "in use" in done.err
    time.sleep(0.1)
  assert done.code == 0


def read_command_of(pid: str) -> bytes:
  with contextlib.suppress(OSError):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
  return b""
