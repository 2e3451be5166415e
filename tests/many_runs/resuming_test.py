"""Tests of many runs that stop, fail, are repeated, added to, or refused."""

import signal

import pytest

from tests.kit.script_runs import json_in


def test_finished_runs_are_not_repeated_and_more_seeds_are_added(processes, mrpc):
  processes.run_well(**mrpc, num_runs=2, seed=1)
  assert processes.folders() == ["seed_1", "seed_2"]
  before = (mrpc["output_dir"] / "results.json").read_text()
  processes.run_well(**mrpc, num_runs=2, seed=1)
  assert len(processes.started) == 2
  assert (mrpc["output_dir"] / "results.json").read_text() == before
  processes.run_well(**mrpc, num_runs=3, seed=1)
  assert processes.folders()[2:] == ["seed_3"]
  assert len(json_in(mrpc["output_dir"] / "results.json")["runs"]) == 3


def test_predictions_that_are_asked_for_later_train_nothing_again(processes, mrpc):
  processes.run_well(**mrpc, num_runs=2)
  processes.run_well(**mrpc, num_runs=2, do_predict=True)
  assert ["do_train" in each for each in processes.started[2:]] == [False, False]
  assert (mrpc["output_dir"] / "seed_12345" / "predictions.tsv").is_file()


def test_a_signal_leaves_the_rest_for_the_same_command(processes, mrpc):
  processes.stops_at = 1
  done = processes.run(**mrpc, num_runs=2)
  assert done.code == 128 + signal.SIGTERM
  assert "1 of 2 runs have finished. The same command continues" in done.err
  processes.stops_at = None
  processes.run_well(**mrpc, num_runs=2)
  assert processes.folders() == ["seed_12345", "seed_12346"]


def test_a_run_that_fails_stops_no_other_and_is_named(processes, mrpc):
  processes.fails = lambda flags: flags.get("seed") == "2"
  done = processes.run(**mrpc, num_runs=3, seed=1)
  assert done.code == 1
  assert "PROBLEM: seed 2 did not finish: exit code 1: it fails." in done.out
  results = json_in(mrpc["output_dir"] / "results.json")
  assert [run["name"] for run in results["runs"] if run["results"]] == ["seed 1", "seed 3"]
  [summary] = results["groups"][0]["summaries"]
  assert summary["of_metrics"]["eval_accuracy"]["count"] == 2
  processes.fails = lambda flags: False
  processes.run_well(**mrpc, num_runs=3, seed=1)
  assert processes.folders()[3:] == ["seed_2"]


def test_other_settings_are_refused_with_their_names(processes, mrpc):
  processes.run_well(**mrpc, num_runs=1)
  message = processes.error_of(**mrpc, num_runs=1, learning_rate=1e-3)
  assert "seed_12345: learning_rate was 5e-05, now 0.001" in message
  assert message.count("\n") <= 3


@pytest.mark.parametrize("name", ["dev.tsv"])
def test_changed_data_are_noticed(processes, mrpc, name):
  processes.run_well(**mrpc, num_runs=1)
  path = mrpc["data_dir"] / name
  path.write_text(path.read_text().replace("good", "bad", 1))
  assert "seed_12345: data was " in processes.error_of(**mrpc, num_runs=2)


def test_single_and_many_runs_do_not_share_a_folder(processes, mrpc):
  processes.run_well(**mrpc, num_runs=1)
  message = processes.error_of(**mrpc)
  assert "holds 1 run of --num_runs" in message
  single = {**mrpc, "output_dir": mrpc["output_dir"] / "seed_12345"}
  assert "holds a single run (checkpoint)" in processes.error_of(**single, num_runs=2)


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"num_runs": 0}, "--num_runs=0: must be from 1"),
    ({"num_runs": 2, "seed": (1 << 63) - 1}, "it must be below 2^63"),
    ({"num_runs": 2, "do_eval": False}, "add --do_eval"),
    ({"num_runs": 2, "parallel_runs": 0}, "--parallel_runs=0"),
    ({"num_runs": 2, "distribution_strategy": "multi_worker"}, "multi_worker cannot be combined"),
  ],
)
def test_bad_flags_are_one_line_before_anything_is_read(processes, mrpc, values, message):
  (mrpc["data_dir"] / "train.tsv").unlink()
  found = processes.error_of(**{**mrpc, **values})
  assert message in found
  assert len(found.strip().splitlines()) == 2  # the message and the hint
  assert not mrpc["output_dir"].exists()
