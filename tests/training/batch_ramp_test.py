"""Batches that grow: which examples a step takes, and that its gradients are those of a batch."""

import numpy as np
import pytest

from bert.checkpoints import finding, reading
from bert.training.batch_ramp import BatchRamp
from bert.training.clock import Clock
from bert.training.estimator import RunConfig
from tests.kit.script_runs import assert_same_tensors, tensors
from tests.kit.toy_training import make, train_input_fn

# Batches of 4 in steps 0 to 2, of 8 in steps 3 to 5.
RAMP = {"batch_ramp": BatchRamp(2, 6)}
LAST = {"train_batch_size": 8}


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
  folder = tmp_path_factory.mktemp("grown")
  make(folder, LAST, save_checkpoints_steps=3, **RAMP).train(train_input_fn, 6)
  return folder


def test_first_small_batches_then_large_ones(grown, tmp_path):
  make(tmp_path / "small").train(train_input_fn, 3)
  assert_same_tensors(grown / "model.ckpt-3", tmp_path / "small" / "model.ckpt-3")
  counts = [reading.read_state(str(grown / f"model.ckpt-{n}"))["run"]["examples"] for n in (3, 6)]
  assert counts == [3 * 4, 3 * 4 + 3 * 8]
  # From there on as undivided batches of 8.
  make(tmp_path / "small", LAST).train(train_input_fn, 6)
  found, expected = (tensors(folder / "model.ckpt-6") for folder in (grown, tmp_path / "small"))
  for name, value in expected.items():
    np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.ci
def test_a_resumed_run_takes_the_same_batches(grown, tmp_path):
  for step in (4, 6):
    make(tmp_path, LAST, **RAMP).train(train_input_fn, step)
  assert_same_tensors(finding.latest(str(grown)), finding.latest(str(tmp_path)))


def test_by_the_clock_its_progress_decides():
  shares = np.array([0.0, 0.24, 0.25, 0.99, 1.0], np.float32)
  assert BatchRamp(4, 10).parts_at(None, shares).numpy().tolist() == [1, 1, 2, 4, 4]


def test_what_cannot_be_combined(tmp_path):
  with pytest.raises(ValueError, match=r"batch_ramp .* gradient accumulation"):
    RunConfig(str(tmp_path), gradient_accumulation_steps=2, clock=Clock(1), **RAMP)
  with pytest.raises(ValueError, match="train_batch_size=9 does not divide"):
    make(tmp_path, {"train_batch_size": 9}, **RAMP).train(train_input_fn, 6)
