"""Many runs as a user starts them, in processes of their own: killed, resumed, predicted from.

Alone: python -m pytest tests/many_runs/real_runs_test.py (a minute)
"""

import fcntl
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.kit import many_runs
from tests.kit.paths import ROOT
from tests.kit.script_runs import assert_same_tensors, json_in
from tests.reports.pages import check_alone

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def flags(tmp_path_factory) -> dict:
  folder = tmp_path_factory.mktemp("many")
  return {**many_runs.flags_on_mrpc(folder), "do_predict": True}


@pytest.fixture(scope="module")
def straight(flags):
  """The folder of two runs that nothing stopped. Tests only read it."""
  text = run_well(command(flags))
  assert "2 runs of run_classifier.py" in text
  page = (flags["output_dir"] / "report.html").read_text(encoding="utf-8")
  check_alone(page)
  assert "Learning curves" in page
  return flags["output_dir"]


def command(flags, **more):
  values = {**flags, **more}
  return [
    *(sys.executable, str(ROOT / "run_classifier.py"), "--num_runs=2", "--learning_rate=0.005"),
    *("--num_train_epochs=8", "--save_checkpoints_steps=4", "--train_batch_size=4"),
    *(f"--{name}={value}" for name, value in values.items()),
  ]


def start(words):
  return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def run_well(words) -> str:
  process = start(words)
  out, _ = process.communicate(timeout=300)
  assert process.returncode == 0, out
  return out


def wait_for(path):
  for _ in range(3000):
    if path.exists():
      return
    time.sleep(0.1)
  raise AssertionError(f"{path} never came")


def comparable(results):
  """A report without what differs between two folders and two times."""
  runs = [{**run, "folder": "", "seconds": 0} for run in results["runs"]]
  return {**results, "runs": runs}


def test_killed_and_resumed_runs_are_the_same_to_the_bit(flags, straight, tmp_path):
  resumed = tmp_path / "resumed"
  words = command(flags, output_dir=resumed)
  process = start(words)
  wait_for(resumed / "seed_12345" / "model.ckpt-4.index")
  process.send_signal(signal.SIGTERM)
  out, _ = process.communicate(timeout=300)
  assert process.returncode == 128 + signal.SIGTERM, out
  assert "The same command continues" in out

  # Killed without warning: the run that it leaves behind still holds the folder.
  process = start(words)
  wait_for(resumed / "seed_12346" / "model.ckpt-4.index")
  left = int((resumed / "seed_12346" / ".lock").read_text().split()[1])
  os.kill(left, signal.SIGSTOP)
  process.kill()
  process.communicate()
  done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
  assert "in use by another command of many runs" in done.stderr
  os.kill(left, signal.SIGKILL)
  wait_for_lock(resumed)

  run_well(words)
  for seed in (12345, 12346):
    prefix = f"seed_{seed}/model.ckpt-{newest_step(straight / f'seed_{seed}')}"
    assert_same_tensors(resumed / prefix, straight / prefix)
  for name in ("eval_results.txt", "dev_summary.json", "test_results.tsv", "predictions.tsv"):
    one, other = (out / "seed_12346" / name for out in (resumed, straight))
    assert one.read_bytes() == other.read_bytes(), name
  found, expected = (json_in(out / "results.json") for out in (resumed, straight))
  assert comparable(found) == comparable(expected)


def newest_step(folder) -> int:
  return max(int(path.stem.split("-")[1]) for path in folder.glob("model.ckpt-*.index"))


def wait_for_lock(folder) -> None:
  """Waits until no process of many runs is left in a folder."""
  with open(folder / ".lock", "ab") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
