"""Tests of many runs that stop, fail, are repeated, added to, or refused."""

import signal

import pytest

from bert.scripts import run_states
from tests.kit.script_runs import json_in


@pytest.fixture
def flags(mrpc):
  """Runs alone: what is averaged has tests of its own."""
  return {**mrpc, "average_weights": False}


def test_finished_runs_are_not_repeated_and_more_seeds_are_added(processes, flags):
  processes.run_well(**flags, num_runs=2, seed=1)
  assert processes.folders() == ["seed_1", "seed_2", "ensemble"]
  before = (flags["output_dir"] / "results.json").read_text()
  processes.run_well(**flags, num_runs=2, seed=1)
  assert len(processes.started) == 3
  assert (flags["output_dir"] / "results.json").read_text() == before
  processes.run_well(**flags, seeds="1,2,9")
  assert processes.folders()[3:] == ["seed_9", "ensemble"]
  assert len(json_in(flags["output_dir"] / "results.json")["runs"]) == 3


def test_predictions_that_are_asked_for_later_train_nothing_again(processes, flags):
  processes.run_well(**flags, num_runs=2)
  processes.run_well(**flags, num_runs=2, do_predict=True)
  assert ["do_train" in each for each in processes.started[3:]] == [False, False, False]
  assert (flags["output_dir"] / "ensemble" / "predictions.tsv").is_file()


def test_a_signal_leaves_the_rest_for_the_same_command(processes, flags):
  processes.stops_at = 1
  done = processes.run(**flags, num_runs=2)
  assert done.code == 128 + signal.SIGTERM
  assert "1 of 2 runs have finished. The same command continues" in done.err
  processes.stops_at = None
  processes.run_well(**flags, num_runs=2)
  assert processes.folders() == ["seed_12345", "seed_12346", "ensemble"]


def test_a_run_that_fails_stops_no_other_and_is_named(processes, flags):
  processes.fails = lambda flags: flags.get("seed") == "2"
  done = processes.run(**flags, seeds="1,2,3")
  assert done.code == 1
  assert "PROBLEM: seed 2 did not finish: exit code 1: it fails." in done.out
  results = json_in(flags["output_dir"] / "results.json")
  assert [run["seed"] for run in results["runs"] if run["results"]] == [1, 3]
  assert results["metrics"]["eval_accuracy"]["count"] == 2
  processes.fails = lambda flags: False
  processes.run_well(**flags, seeds="1,2,3")
  assert processes.folders()[4:] == ["seed_2", "ensemble"]


def test_other_settings_are_refused_with_their_names(processes, flags):
  processes.run_well(**flags, num_runs=1)
  message = processes.error_of(**flags, num_runs=1, learning_rate=1e-3)
  assert "seed_12345 was made with other settings: learning_rate was 5e-05, now 0.001" in message
  assert message.count("\n") <= 3


@pytest.mark.ci
def test_changed_data_are_noticed(classifier, flags):
  classifier.run_well(**flags, num_runs=1)
  path = flags["data_dir"] / "train.tsv"
  path.write_text(path.read_text().replace("good", "bad", 1))
  done = classifier.run(**flags, num_runs=2)
  assert done.code == 1
  assert "train.tf_record was made from other data" in done.out


def test_runs_exist_before_they_are_reported_without_training(processes, flags):
  message = processes.error_of(**{**flags, "do_train": False}, num_runs=2)
  assert "has no finished seed_12345, seed_12346: train with --do_train" in message


def test_single_and_many_runs_do_not_share_a_folder(processes, flags):
  processes.run_well(**flags, num_runs=1)
  message = processes.error_of(**flags)
  assert "holds 1 run of --num_runs" in message
  single = {**flags, "output_dir": flags["output_dir"] / "seed_12345"}
  assert "holds a single run (checkpoint)" in processes.error_of(**single, num_runs=2)


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"num_runs": 0}, "--num_runs=0: must be from 1"),
    ({"num_runs": 2, "seeds": "1,2"}, "--num_runs=2 and --seeds=1,2 exclude each other"),
    ({"seeds": "3,4,3"}, "--seeds=3,4,3: two runs would have seed 3"),
    ({"seeds": "1,two"}, "--seeds: must be whole numbers below 2^63, not 'two'"),
    ({"seeds": "1.5"}, "not '1.5'"),
    ({"seeds": ""}, "--seeds is empty"),
    ({"seeds": "1", "seed": 2}, "--seed=2 and --seeds=1 exclude each other"),
    ({"num_runs": 2, "do_eval": False}, "add --do_eval"),
    ({"num_runs": 2, "parallel_runs": 0}, "--parallel_runs=0"),
    ({"num_runs": 2, "distribution_strategy": "multi_worker"}, "multi_worker cannot be combined"),
    ({"num_runs": 2, "average_runs": "a"}, "--do_train cannot be combined with it"),
    ({"average_runs": "a,b"}, "--do_train cannot be combined with it"),
    ({"num_runs": 2, "features_dir": "a"}, "--num_runs sets --features_dir for its runs"),
  ],
)
def test_bad_flags_are_one_line_before_anything_is_read(processes, mrpc, values, message):
  (mrpc["data_dir"] / "train.tsv").unlink()
  found = processes.error_of(**{**mrpc, **values})
  assert message in found
  assert len(found.strip().splitlines()) == 2  # the message and the hint
  assert not mrpc["output_dir"].exists()


@pytest.mark.parametrize("name", ["model.safetensors", "model.keras"])
def test_weights_in_one_file_are_known_by_its_content(tmp_path, name):
  (tmp_path / name).write_bytes(b"weights")
  known = run_states.identity_of_weights(str(tmp_path / name))
  assert known == run_states.identity([str(tmp_path / name)])
