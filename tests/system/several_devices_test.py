"""Every `run_*` script on two CPU replicas and on two worker processes. Slow, two minutes or so:

  python -m pytest -m slow tests/system/several_devices_test.py

tests/training/distribution_test.py does it for two scripts on two workers by default.
"""

import subprocess
import sys

import pytest

from tests.kit import several_devices
from tests.kit.several_devices import SCRIPTS

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
  """Strategy -> the folder in which each script left its files; all read the same data."""
  one, mirrored, workers = (tmp_path_factory.mktemp(n) for n in ("one", "mirrored", "workers"))
  for name in SCRIPTS:
    for folder in (one, mirrored, workers):
      several_devices.write_data(name, folder)
    several_devices.run_on_one_device(name, one, reads_from=one)
  program = [sys.executable, "-m", "tests.kit.several_devices"]
  done = subprocess.run(
    [*program, "mirrored", mirrored, *SCRIPTS],
    env=several_devices.environment(),
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr[-5000:]
  ends = several_devices.run_job(
    "tests.kit.several_devices", ["multi_worker", workers, *SCRIPTS], folder=workers
  )
  assert [code for code, _ in ends] == [0, 0], "\n".join(log[-5000:] for _, log in ends)
  return {"one_device": one, "mirrored": mirrored, "multi_worker": workers}


@pytest.mark.parametrize("strategy", ["mirrored", "multi_worker"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_several_devices_train_as_one(folders, name, strategy):
  several_devices.assert_same_training(folders[strategy] / name, folders["one_device"] / name)


@pytest.mark.parametrize("strategy", ["mirrored", "multi_worker"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_several_devices_write_the_files_of_one(folders, name, strategy):
  several_devices.assert_same_files(folders[strategy] / name, folders["one_device"] / name)
