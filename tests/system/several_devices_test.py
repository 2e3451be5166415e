"""Every `run_*` script on one and two replicas and on two worker processes. Slow, three minutes:

  python -m pytest -m slow tests/system/several_devices_test.py

Replicas are on GPUs where there are any. `-k "run_ner and mirrored"` runs one script on two.
tests/training/distribution_test.py does it for two scripts on two workers by default.
"""

import functools
import pathlib
import re
import subprocess
import sys

import pytest

from tools import several_devices
from tools.several_devices import SCRIPTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def names(request) -> list[str]:
  """The scripts whose tests were selected."""
  ids = [item.nodeid for item in request.session.items if item.path == request.path]
  return [name for name in SCRIPTS if any(re.search(rf"\b{name}\b", each) for each in ids)]


@pytest.fixture(scope="module")
def one(tmp_path_factory, names) -> pathlib.Path:
  """The folder in which each script left its files on one device."""
  folder = tmp_path_factory.mktemp("one")
  for name in names:
    several_devices.write_data(name, folder)
    several_devices.run_on_one_device(name, folder, reads_from=folder)
  return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory, names):
  """A function from a strategy to the folder of its files, and its devices; runs it once."""

  @functools.cache
  def run_all(strategy: str) -> tuple[pathlib.Path, str]:
    folder = tmp_path_factory.mktemp(strategy)
    for name in names:
      several_devices.write_data(name, folder)
    return folder, _RUNS[strategy](strategy, folder, names)

  return run_all


def _run_mirrored(strategy, folder, names):
  visible = several_devices.visible_gpus(several_devices.MIRRORED[strategy])
  done = subprocess.run(
    [sys.executable, "-m", "tools.several_devices", strategy, folder, *names],
    env=several_devices.environment(CUDA_VISIBLE_DEVICES=visible),
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-5000:]
  return done.stdout.splitlines()[-1]


def _run_workers(strategy, folder, names):
  ends = several_devices.run_job("tools.several_devices", [strategy, folder, *names], folder)
  assert [code for code, _ in ends] == [0, 0], "\n".join(log[-5000:] for _, log in ends)
  return "two processes"


_RUNS = {
  **dict.fromkeys(several_devices.MIRRORED, _run_mirrored),
  "multi_worker": _run_workers,
}


@pytest.mark.parametrize("strategy", _RUNS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_several_devices_train_as_one(run, one, name, strategy, record_property):
  folder, devices = run(strategy)
  record_property("note", devices)
  several_devices.assert_same_training(folder / name, one / name)


@pytest.mark.parametrize("strategy", _RUNS)
@pytest.mark.parametrize("name", SCRIPTS)
def test_several_devices_write_the_files_of_one(run, one, name, strategy):
  folder, _ = run(strategy)
  several_devices.assert_same_files(folder / name, one / name)
