"""Every file operation of every program fails once, or is the last: nothing is lost or half there.

Alone: python -m pytest tests/system/fault_injection_test.py (`-rP` shows the numbers; what is
promised: tests/kit/fault_trials.py). Whole scripts: fault_injection_of_scripts_test.py; real deaths
and failures of single system calls: real_deaths_test.py.
"""

import contextlib
import dataclasses
import functools
import shutil

import pytest
import tensorflow as tf

from bert.checkpoints import finding
from bert.io import atomic_files
from tests.kit import faults
from tests.kit.fault_trials import (
  DATA,
  DATA_OF_ELECTRA,
  MODEL,
  RESULTS,
  TRAINING,
  VECTORS,
  Trial,
  answer_of,
  check,
  check_records,
  export_model,
  names,
  train_toy,
  trained_weights,
  visible,
)
from tests.kit.faults import Loss


def test_data(tmp_path):
  check(DATA, tmp_path, step=4)


@pytest.mark.ci
def test_data_of_electra(tmp_path):
  check(DATA_OF_ELECTRA, tmp_path, step=4)


@pytest.mark.ci
def test_vectors(tmp_path):
  check(VECTORS, tmp_path, step=2)


def test_records_keep_their_manifest(tmp_path):
  """Never an old manifest beside a new file, or the other way round: that would be unreadable."""
  program = dataclasses.replace(VECTORS, check_whole=check_records)
  trial = Trial(program, tmp_path / "trial")
  for loss in Loss:
    trial.check_deaths(loss, step=100)


def test_results(tmp_path):
  check(RESULTS, tmp_path, step=3)


@pytest.mark.ci
def test_exports(tmp_path):
  check(MODEL, tmp_path, step=8)


def test_exports_where_folders_cannot_be_exchanged(tmp_path, monkeypatch):
  """A death between two renames: the old export has another name then, and gets its own again."""
  monkeypatch.setattr(atomic_files, "_exchange", lambda *_: False)
  trial = Trial(MODEL, tmp_path / "trial")
  old = visible(trial._seed)

  def is_somewhere(folder):
    places = [folder / "model", folder / ".model.old"]
    assert any(place.exists() for place in places)
    if places[0].exists():
      answer_of(folder)

  moments, states = 0, tmp_path / "moments"
  faults.fresh_copy(trial._seed, trial.work)
  found, moments = faults.states_of_death(lambda: export_model(trial.work), trial.work, states)
  assert moments > 10
  between = [state for state in found if not (state / "model").exists()]
  assert between
  for state in found:
    is_somewhere(state)
  with contextlib.suppress(RuntimeError), atomic_files.folder_written_whole(between[0] / "model"):
    raise RuntimeError("the next export fails, too")
  assert visible(between[0]) == old
  assert names(between[0]) == set(old)


@pytest.mark.ci
def test_training(tmp_path):
  check(TRAINING, tmp_path, step=16)


@pytest.fixture(scope="module")
def trial(tmp_path_factory) -> Trial:
  return Trial(TRAINING, tmp_path_factory.mktemp("training") / "trial")


def test_a_death_after_the_last_step_leaves_nothing_for_ever(trial, tmp_path):
  """No later `save` clears what the last one left: the same command does, as it finds no work."""
  faults.fresh_copy(trial._seed, trial.work)
  run = functools.partial(train_toy, trial.work)
  states, _ = faults.states_of_death(run, trial.work, tmp_path / "states")
  finished = [s for s in states if str(finding.latest(str(s))).endswith("-5")]
  assert [s for s in finished if names(s) != trial._names]
  for state in finished:
    faults.fresh_copy(state, trial.work)
    trial._check_second_run(state.name)


def test_what_is_cleaned_is_ours(tmp_path):
  """A later checkpoint, put there by hand, is none that was about to make room."""
  train_toy(tmp_path, steps=4)
  for path in tmp_path.glob("model.ckpt-4.*"):
    shutil.copy(path, str(path).replace("-4.", "-9."))
  train_toy(tmp_path, steps=4)
  assert [step for step, _ in finding.list_checkpoints(str(tmp_path))] == [2, 4, 9]


class FullDisk:
  """A writer of events that cannot write."""

  def flush(self, *_):
    raise tf.errors.ResourceExhaustedError(None, None, "{{node x}} events.out; No space left")

  as_default = close = flush


@pytest.mark.parametrize("when", ["created", "written"])
def test_events_that_cannot_be_written_cost_no_run(trial, monkeypatch, caplog, when):
  creates = FullDisk().flush if when == "created" else lambda *_: FullDisk()
  monkeypatch.setattr(tf.summary, "create_file_writer", creates)
  faults.fresh_copy(trial._seed, trial.work)
  train_toy(trial.work, save_summary_steps=1)
  assert trained_weights(trial.work) == trial._facts
  assert "the run continues: events.out; No space left" in caplog.text
