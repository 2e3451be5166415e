"""Event files of runs, whole or torn; the best step; folders without any."""

import dataclasses
import json

import numpy as np
import pytest

from bert.checkpoints import saving
from bert.figures import event_files
from bert.training.resumption import RunState
from tests.kit.event_files import write_events, write_run


@pytest.fixture
def run(tmp_path):
  """A run with training and evaluation."""
  return write_run(tmp_path / "run")


def test_values_and_steps_are_those_written(run):
  curves = event_files.read_curves(run)
  assert list(curves["loss"]) == list(range(1, 51))
  np.testing.assert_allclose(list(curves["loss"].values()), np.linspace(8, 3, 50), rtol=1e-6)
  assert event_files.read_curves(run / "eval") == {"loss": {50: 5.0}, "masked_lm_loss": {50: 4.0}}
  assert event_files.read_curves(run / "nothing") == {}


def test_the_later_of_two_files_counts_where_they_overlap(tmp_path):
  """By the time of the events: names hold a counter, and 10 is sorted in front of 9."""
  first = write_events(tmp_path, {"loss": [1.0, 2.0, 3.0]})
  second = write_events(tmp_path, {"loss": [4.0, 5.0]}, first_step=3)
  first.rename(tmp_path / f"{second.name}9")
  assert event_files.read_curves(tmp_path) == {"loss": {1: 1.0, 2: 2.0, 3: 4.0, 4: 5.0}}


@pytest.mark.parametrize("cut", [1, 30])
def test_a_file_that_ends_within_an_event_shows_what_is_there(tmp_path, cut):
  path = write_events(tmp_path, {"loss": [1.0, 2.0, 3.0]})
  path.write_bytes(path.read_bytes()[:-cut])
  assert event_files.read_curves(tmp_path) == {"loss": {1: 1.0, 2: 2.0}}


def save_state(folder, **state):
  """A checkpoint at step 50 with the state of a run, as training saves it."""
  run = dataclasses.asdict(RunState(seed=1, **state))
  info = {"run": run, "fingerprint": {"problem_type": "regression"}}
  return saving.save(str(folder), 50, {"x": np.zeros(1, np.float32)}, info)


def test_the_best_step_is_that_of_the_newest_checkpoint(run):
  assert event_files.read_run(run).best is None
  save_state(run, best_value=4.0, best_step=50)
  read = event_files.read_run(run)
  assert (read.best, read.problem_type) == ((50, 4.0), "regression")
  assert read.best_tags() == ["masked_lm_loss"], "the metric that was watched"


def test_a_damaged_state_marks_no_best_step_and_hides_no_curve(run):
  path = save_state(run, best_value=4.0, best_step=50) + ".state.json"
  with open(path, encoding="utf-8") as reader:
    sidecar = json.load(reader)
  with open(path, "w", encoding="utf-8") as writer:
    json.dump({**sidecar, "state": {}}, writer)
  read = event_files.read_run(run)
  assert read.best is None
  assert read.training["loss"]


def test_folders_without_curves_are_named_and_so_are_runs_in_them(run, tmp_path):
  with pytest.raises(ValueError, match=r"nothing does not exist\. .*--output_dir"):
    event_files.read_run(tmp_path / "nothing")
  with pytest.raises(event_files.NoScalarsError, match=r"but these folders in it do: run\."):
    event_files.read_run(tmp_path)
  (tmp_path / "log.txt").write_text("")
  with pytest.raises(event_files.NoScalarsError, match=r"log\.txt is a file\. Give the folder"):
    event_files.read_run(tmp_path / "log.txt")
