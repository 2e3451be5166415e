"""`make check-gpu` checks itself on the CPU, in some minutes.

Alone: python -m pytest -m slow tests/system/check_gpu_test.py
"""

import subprocess
import sys

import pytest

from benchmarks import common
from tests.kit.paths import ROOT
from tools import gpu_training


@pytest.mark.slow
def test_the_command_checks_itself_on_the_cpu(tmp_path, golden_dir):
  command = [sys.executable, "-m", "tools.check_gpu", "--cpu", f"--log_dir={tmp_path}"]
  peer = f"--peer_python={tmp_path}/none"
  done = subprocess.run([*command, peer], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stdout + done.stderr
  facts = common.last_json(done.stdout)
  not_run = [row["check"] for row in facts["results"] if row["result"] != "passed"]
  assert not_run == [f"training {flag} beside transformers" for flag in gpu_training.VARIANTS]
  assert facts["counts"] == {"passed": 11, "not run": 4, "FAILED": 0}
