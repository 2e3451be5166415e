"""Tests of run_glue.py in a folder that holds a sweep: what is repeated or refused."""

import os

import pytest

from bert.scripts import run_states
from tests.kit.glue_bench import write


def test_what_has_finished_is_not_repeated(bench):
  bench.add("RTE").run_well(seeds="1")
  before, results = bench.calls(), bench.results()
  for folder in (bench.out / "RTE").iterdir():  # as version 0.1 wrote it
    state = run_states.read_state(folder)
    del state["done"]
    run_states.write_state(folder, **state, finished=True)
  bench.run_well(seeds="1")
  assert bench.calls() == before
  assert bench.results() == results
  bench.run_well(seeds="1,2")
  assert bench.trained() == sorted(
    os.path.join("RTE", f"lr{rate}_epochs2_seed{seed}")
    for rate in ("2e-05", "3e-05")
    for seed in "12"
  )


def test_a_run_that_did_not_finish_continues_in_its_folder(bench):
  """Results alone do not make it finished: they are written before the process ends."""
  bench.add("RTE").run_well(learning_rates="2e-5", seeds="1")
  [folder] = (bench.out / "RTE").iterdir()
  state = run_states.read_state(folder)
  run_states.write_state(folder, **{**state, "done": []})
  (folder / "mine").touch()
  bench.run_well(learning_rates="2e-5", seeds="1")
  assert len(bench.trained()) == 2
  assert (folder / "mine").exists()


CHANGES = {
  "max_seq_length": lambda bench: {"max_seq_length": 64},
  "data": lambda bench: write(bench.glue / "RTE" / "dev.tsv", "other") or {},
  "weights": lambda bench: (
    write(bench.control / "a.index", "w") or {"init_checkpoint": bench.control / "a"}
  ),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_runs_of_other_settings_are_refused(bench, changed):
  bench.add("RTE").run_well(seeds="1")
  values = {"seeds": "1,2", **CHANGES[changed](bench)}
  message = bench.error_of(**values)
  assert "2 of the runs were made with other settings" in message
  assert f"{changed} was " in message
  assert len(bench.trained()) == 2


def test_settings_that_change_no_result_may_change(bench):
  bench.add("RTE").run_well()
  moved = bench.control / "vocab.txt"
  moved.write_text(bench.flags["vocab_file"].read_text())
  bench.run_well("--", "--log_every_steps=7", "--eval_batch_size=64", vocab_file=moved)
  assert len(bench.trained()) == 4


def test_files_of_somebody_else_are_never_removed(bench):
  other = bench.out / "RTE" / "lr2e-05_epochs2_seed1" / "thesis.txt"
  write(other, "mine")
  bench.add("RTE")
  assert "it has files, but no run.json" in bench.error_of()
  assert other.read_text() == "mine"
