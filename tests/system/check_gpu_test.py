"""Tests of `make check-gpu`: its rows, table, exit codes, and what it says without a GPU.

Alone: python -m pytest tests/system/check_gpu_test.py (seconds; `-m slow`: the whole command on the
CPU, some minutes)
"""

import ast
import doctest
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import common, fine_tuning
from tests.kit import check_gpu, check_report, gpu_tests, gpu_training, several_devices
from tests.kit.gpu_tests import FAILED, NOT_RUN, PASSED, Outcome, Process
from tests.kit.paths import ROOT

GPU = {"name": "NVIDIA H100", "capability": "9.0", "bytes": 80 << 30}
NO_GPU = {"tensorflow": "2.21.0", "python": "3.11.7", "cuda": None, "cudnn": None, "gpus": []}
ONE_GPU = {**NO_GPU, "cuda": "12.5.1", "cudnn": "9", "gpus": [GPU]}
LISTED = [{"name": "NVIDIA H100", "driver": "580.1"}]
ROW = Process({"losses": ["a_test.py::test_loss", "b_test.py::test_all"]}, computes=True)


def test_worked_examples():
  for module in (check_report, gpu_tests, gpu_training):
    failed, tried = doctest.testmod(module)
    assert tried, module
    assert not failed, module


# ---------------------------------------------------------------------------------------------
# Rows of tests.


@pytest.mark.parametrize("name", gpu_tests.TESTS)
def test_every_test_that_is_named_is_there(name):
  for ids in gpu_tests.TESTS[name].rows.values():
    for path, function in (each.split("::") for each in ids):
      tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
      functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
      assert function.partition("[")[0] in functions, path


def test_mirrored_is_checked_with_every_script():
  assert set(gpu_tests.MIRRORED_SCRIPTS) == set(several_devices.SCRIPTS)


def _log(tests, peak=0):
  empty = {"outcome": "passed", "why": "", "seconds": 1.0, "share": 0.0, "difference": 0.0}
  filled = {name: {**empty, "properties": {}, **test} for name, test in tests.items()}
  return "2 passed in 3 s\n" + json.dumps({"tests": filled, "gpu_peak_bytes": peak}) + "\n"


def _row(tests, peak=1, is_gpu=True):
  [row] = gpu_tests.rows_of_tests(ROW, _log(tests, peak), 0, is_gpu)
  return row.result, row.figure


def test_a_row_has_the_difference_that_is_nearest_to_its_limit():
  tests = {
    "a_test.py::test_loss": {"share": 0.5, "difference": 1e-6},
    "b_test.py::test_all[1]": {"share": 0.25, "difference": 0.1, "properties": {"note": "so"}},
    "c_test.py::test_of_another_row": {"outcome": "failed"},
  }
  assert _row(tests) == (
    PASSED,
    "2 tests; largest difference 1e-06, 50% of what is allowed; so",
  )
  [row] = gpu_tests.rows_of_tests(ROW, _log(tests, 1), 0, True)
  assert (row.check, row.seconds) == ("losses", 2.0)


def test_what_is_skipped_is_not_counted_as_passed():
  skipped = {"outcome": "skipped", "why": "golden is not there"}
  assert _row({"a_test.py::test_loss": skipped}) == (NOT_RUN, "golden is not there")
  both = {"a_test.py::test_loss": skipped, "b_test.py::test_all": {}}
  assert _row(both) == (PASSED, "1 test; 1 not run: golden is not there")


def test_what_fails_is_named():
  failed = {"outcome": "failed", "why": "Not equal " * 20, "share": 71.0, "difference": 0.5}
  tests = {"a_test.py::test_loss": {}, "b_test.py::test_all[7]": failed}
  assert _row(tests) == (
    FAILED,
    "1 of 2 tests failed; largest difference 0.5, 7,100% of what is allowed; test_all[7]: "
    + "Not equal " * 12,
  )


def test_a_check_that_left_the_gpu_idle_has_failed():
  tests = {"a_test.py::test_loss": {}}
  assert _row(tests, peak=0) == (FAILED, "TensorFlow computed nothing on the GPU")
  assert _row(tests, peak=0, is_gpu=False)[0] == PASSED


def test_a_process_that_dies_or_runs_nothing_has_failed():
  [row] = gpu_tests.rows_of_tests(ROW, "collecting\nF0 Check failed: x\n", -6, True)
  assert (row.result, row.figure) == (
    FAILED,
    "pytest ended with exit code -6: F0 Check failed: x",
  )
  assert _row({}) == (FAILED, "none of its tests was found")


@pytest.mark.ci
def test_the_plug_in_tells_how_tests_ended(tmp_path):
  (tmp_path / "some_test.py").write_text(
    "import numpy as np\nimport pytest\n"
    "def test_near(record_property):\n  record_property('note', 'here')\n"
    "  np.testing.assert_allclose([1.0, 2.0], [1.0, 2.5], rtol=0, atol=1)\n"
    "def test_far():\n  np.testing.assert_allclose(1.0, 2.0, rtol=0, atol=0.5)\n"
    "@pytest.fixture\ndef golden():\n  pytest.skip('no golden')\n"
    "def test_golden(golden):\n  pass\n"
  )
  command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.kit.check_report", "some_test.py"]
  environment = several_devices.environment()
  done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
  report = common.last_json(done.stdout)
  near, far, golden = (
    report["tests"][f"some_test.py::test_{n}"] for n in ("near", "far", "golden")
  )
  assert (near["outcome"], near["share"], near["properties"]) == ("passed", 0.5, {"note": "here"})
  assert (far["outcome"], far["share"], far["difference"]) == ("failed", 2.0, 1.0)
  assert "Not equal to tolerance" in far["why"]
  assert (golden["outcome"], golden["why"]) == ("skipped", "no golden")
  assert report["gpu_peak_bytes"] == 0


def test_differences_that_no_tolerance_allows_or_that_are_no_numbers():
  test = {"share": 0.0, "difference": 0.0}
  check_report.note_difference(test, [0.0, np.nan], [0.0, np.nan], rtol=0, atol=0)
  check_report.note_difference(test, ["a"], ["a"], rtol=0, atol=0)
  check_report.note_difference(test, [1.0], [1.0, 2.0, 3.0][:2], rtol=0, atol=0.25)
  assert test == {"share": 4.0, "difference": 1.0}
  check_report.note_difference(test, [1.0, 2.0], [1.0, 2.0, 3.0], rtol=0, atol=1)  # no such shapes
  assert test["share"] == 4.0


# ---------------------------------------------------------------------------------------------
# The machine.


def test_without_nvidia_smi_there_is_no_driver(tmp_path):
  assert check_gpu.nvidia_smi(str(tmp_path / "nvidia-smi")) == []
  broken = _program(tmp_path / "broken", "echo NVIDIA-SMI has failed; exit 9")
  assert check_gpu.nvidia_smi(broken) == []
  good = _program(tmp_path / "good", "echo 'NVIDIA H100 80GB, 580.1'; echo 'NVIDIA A, B, 580.1'")
  names = [gpu["name"] for gpu in check_gpu.nvidia_smi(good)]
  assert names == ["NVIDIA H100 80GB", "NVIDIA A, B"]


def _program(path: pathlib.Path, line: str) -> str:
  path.write_text(f"#!/bin/sh\n{line}\n")
  path.chmod(0o755)
  return str(path)


def test_a_gpu_that_tensorflow_does_not_see_is_named():
  problem = check_gpu.unseen_gpu(NO_GPU, LISTED, is_hidden=False)
  assert "NVIDIA H100" in problem
  assert '".[gpu]"' in problem
  assert check_gpu.unseen_gpu(NO_GPU, LISTED, is_hidden=True) is None
  assert check_gpu.unseen_gpu(NO_GPU, [], is_hidden=False) is None
  assert check_gpu.unseen_gpu(ONE_GPU, LISTED, is_hidden=False) is None


def test_a_peer_that_is_missing_or_broken_says_why(tmp_path):
  assert "make bench-setup" in check_gpu.find_peer(str(tmp_path / "python"), False)["why"]
  broken = _program(tmp_path / "broken", "echo 'ImportError: No torch' >&2; exit 1")
  assert check_gpu.find_peer(broken, False)["why"].endswith("ImportError: No torch")
  found = '{"torch": "2.1", "transformers": "5.2", "sees_gpu": false}'
  good = _program(tmp_path / "good", f"echo '{found}'")
  assert check_gpu.find_peer(good, False)["torch"] == "2.1"
  assert check_gpu.find_peer(good, True)["why"].endswith("PyTorch 2.1 sees no GPU")


def test_an_unknown_group_is_named(capsys):
  with pytest.raises(SystemExit) as left:
    check_gpu.parse(["--only=goldens,speed"])
  assert left.value.code == 2
  assert "no speed among goldens, mirrored, memory, kill, training" in capsys.readouterr().err


# ---------------------------------------------------------------------------------------------
# Training, and devices.


@pytest.fixture
def train(monkeypatch, tmp_path):
  """Rows of training whose runs are made up: (result, figure) by flag."""

  def fake(what):
    def answer(*args):
      if isinstance(what, str):
        sys.exit(what)
      return {"later_examples_per_second": 20.0, "gpus": 1, **what}

    return answer

  def run(ours, peer=None, is_gpu=True):
    ours = {**{flag: {"mean_loss": 0.5} for flag in gpu_training.VARIANTS}, **ours}
    peer_speed = {"later_examples_per_second": 10.0, "mean_loss": 0.4}
    monkeypatch.setattr(gpu_training, "write_random_weights", lambda folder, **size: None)
    monkeypatch.setattr(fine_tuning, "ours", lambda args, flags, environment: fake(ours[flags[0]]))
    monkeypatch.setattr(fine_tuning, "peer", lambda *args: fake(peer or peer_speed))
    args = check_gpu.parse([f"--log_dir={tmp_path}"])
    found = {"why": "no peer"} if peer == {} else {"torch": "2.1"}
    rows = gpu_training.run_training(gpu_tests.Plan(args, ONE_GPU, is_gpu, found))
    return {row.check.partition(" ")[2]: (row.result, row.figure) for row in rows}

  return run


def test_each_type_is_beside_the_same_type_of_the_peer(train):
  rows = train({})
  assert list(rows) == list(gpu_training.VARIANTS)
  figure = "20 examples/s, mean loss 0.5000 (float32 0.5000); 2.00 times transformers bfloat16"
  assert rows["--dtype=bfloat16"] == rows["--fast"] == (PASSED, f"{figure} (mean loss 0.4000)")
  on_cpu = train({}, is_gpu=False)
  beside = "--dtype=float16 beside transformers"
  assert on_cpu.pop(beside) == (NOT_RUN, "PyTorch's float16 needs a GPU")
  assert list(on_cpu) == list(rows)
  assert "examples/s" not in on_cpu["--fast"][1]


def test_a_type_that_fails_or_learns_otherwise_leaves_the_others(train, tmp_path):
  rows = train({"--dtype=float16": "python ...\nfailed:\nERROR: It broke.\n(hint)"})
  assert rows["--dtype=float16"] == (FAILED, "ERROR: It broke.")
  assert "(hint)" in (tmp_path / "training_dtype=float16.log").read_text()
  assert rows["--dtype=bfloat16"][0] == PASSED
  assert train({"--fast": {"mean_loss": 0.7}})["--fast"][0] == FAILED
  assert train({"--fast": {"mean_loss": float("nan")}})["--fast"][0] == FAILED


def test_peers_that_fail_or_are_missing_are_no_fault_of_ours(train):
  rows = train({}, peer="RuntimeError: CUDA")
  ends = {flag: result for flag, (result, _) in rows.items()}
  assert ends == {
    **dict.fromkeys(gpu_training.VARIANTS, PASSED),
    **{f"{flag} beside transformers": NOT_RUN for flag in gpu_training.VARIANTS},
  }
  assert rows["--fast beside transformers"][1] == "it failed: RuntimeError: CUDA"
  rows = train({}, peer={})
  assert rows["--fast beside transformers"] == (NOT_RUN, "no peer")
  assert rows["--fast"] == (PASSED, "20 examples/s, mean loss 0.5000 (float32 0.5000)")


@pytest.mark.parametrize(
  ("gpus", "count", "expected"),
  [
    (4, 2, "2 GPU(s)"),
    (1, 1, "1 GPU(s)"),
    (1, 2, "2 parts of one GPU, without NCCL"),
    (0, 2, "2 logical CPU device(s)"),
  ],
)
def test_devices_of_several_are_gpus_first(monkeypatch, gpus, count, expected):
  devices = {"GPU": [f"GPU:{i}" for i in range(gpus)], "CPU": ["CPU:0"]}
  visible, parts = [], []
  monkeypatch.setattr(tf.config, "list_physical_devices", devices.get)
  monkeypatch.setattr(tf.config, "set_visible_devices", lambda *args: visible.append(args))
  monkeypatch.setattr(
    tf.config, "set_logical_device_configuration", lambda *args: parts.append(args)
  )
  assert several_devices.make_devices(count) == expected
  assert visible == ([(devices["GPU"][:count], "GPU")] if gpus >= count else [])
  for device, configurations in parts:
    assert device == ("GPU:0" if gpus else "CPU:0")
    assert len(configurations) == count
    # TensorFlow divides a GPU by limits, and the CPU without.
    assert all(bool(each.memory_limit) == bool(gpus) for each in configurations)
  assert bool(parts) != bool(visible)


@pytest.mark.parametrize(
  ("visible", "count", "expected"),
  [(None, 2, "0,1"), ("4,5,6", 2, "4,5"), ("3", 2, "3"), ("-1", 1, "-1"), ("", 2, "")],
)
def test_a_process_sees_no_more_gpus_than_it_uses(monkeypatch, visible, count, expected):
  monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
  if visible is not None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
  assert several_devices.visible_gpus(count) == expected


# ---------------------------------------------------------------------------------------------
# The whole, without its work.


@pytest.fixture
def run_command(monkeypatch, tmp_path, capsys):
  """Runs the command with made-up devices and rows: (exit status, standard output)."""

  def run(devices, listed, results, *flags, visible=None):
    others = {name: value for name, value in os.environ.items() if name != "CUDA_VISIBLE_DEVICES"}
    visible = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    monkeypatch.setattr(os, "environ", {**others, **visible})  # The command sets it, too.
    said = common.Finished(json.dumps(devices), 1.0, [])
    monkeypatch.setattr(common, "run_command", lambda command: said)
    monkeypatch.setattr(check_gpu, "nvidia_smi", lambda: listed)
    rows = {name: [Outcome(name, result, "a|b", 1.5)] for name, result in results.items()}
    monkeypatch.setattr(gpu_tests, "run_tests", lambda plan, name: rows[name])
    monkeypatch.setattr(gpu_training, "run_training", lambda plan: rows["training"])
    shared = [f"--log_dir={tmp_path}", f"--peer_python={tmp_path}/python"]
    monkeypatch.setattr(sys, "argv", ["check_gpu", *shared, *flags])
    with pytest.raises(SystemExit) as left:
      check_gpu.main()
    return left.value.code, capsys.readouterr().out

  return run


ALL = dict.fromkeys([*gpu_tests.TESTS, "training"], PASSED)


def test_without_a_gpu_one_line_says_so(run_command):
  code, out = run_command(NO_GPU, [], ALL)
  assert code == 0
  assert out.splitlines()[0].startswith("No GPU is checked: TensorFlow and nvidia-smi see none.")
  facts = common.last_json(out)
  assert (facts["is_gpu"], facts["driver"]) == (False, None)
  assert out.splitlines()[-1].startswith("{")


def test_the_table_names_the_machine_and_has_a_row_for_each_check(run_command):
  code, out = run_command(ONE_GPU, LISTED, {**ALL, "memory": NOT_RUN})
  assert code == 0
  assert "No GPU" not in out
  assert "GPU: NVIDIA H100 (80 GiB free, compute capability 9.0); CUDA 12.5.1, cuDNN 9, " in out
  assert "driver 580.1" in out
  assert "TensorFlow 2.21.0" in out
  table = [line for line in out.splitlines() if line.startswith("|")]
  assert [line.split("|")[1].strip() for line in table[2:]] == list(ALL)
  assert table[2].replace(" ", "") == "|goldens_forward|passed|a\\|b|2|"
  assert "6 passed, 1 not run, 0 FAILED, in 0 s." in out
  facts = common.last_json(out)
  assert facts["counts"] == {"passed": 6, "not run": 1, "FAILED": 0}
  assert facts["results"][-1]["check"] == "training"


@pytest.mark.parametrize("devices", [NO_GPU, ONE_GPU], ids=["cpu", "gpu"])
def test_a_check_that_fails_is_the_exit_status(run_command, devices):
  listed = LISTED if devices["gpus"] else []
  code, out = run_command(devices, listed, {**ALL, "kill": FAILED})
  assert code == 1
  assert "6 passed, 0 not run, 1 FAILED" in out


def test_a_check_that_breaks_loses_no_row(run_command, monkeypatch):
  rows = dict.fromkeys([name for name in ALL if name != "mirrored"], PASSED)
  code, out = run_command(ONE_GPU, LISTED, rows)
  assert code == 1
  assert "the check itself: KeyError: 'mirrored'" in out
  assert common.last_json(out)["counts"]["passed"] == 6


def test_some_groups_are_enough(run_command):
  code, out = run_command(ONE_GPU, LISTED, ALL, "--only=kill,goldens")
  assert code == 0
  checks = [row["check"] for row in common.last_json(out)["results"]]
  assert checks == ["goldens_forward", "goldens_losses", "goldens_steps", "kill"]


def test_an_unseen_gpu_ends_the_command(run_command):
  code, out = run_command(NO_GPU, LISTED, ALL)
  assert "TensorFlow 2.21.0 sees no GPU" in code  # which `sys.exit` prints, with status 1
  assert not out
  code, out = run_command(NO_GPU, LISTED, ALL, "--cpu")
  assert code == 0
  assert out.startswith("No GPU is checked: it was not to be used.")


def test_only_a_gpu_that_is_hidden_is_left_alone(run_command):
  for visible in ("-1", ""):
    assert run_command(NO_GPU, LISTED, ALL, visible=visible)[0] == 0
  assert "sees no GPU" in run_command(NO_GPU, LISTED, ALL, visible="0")[0]


@pytest.mark.slow
def test_the_command_checks_itself_on_the_cpu(tmp_path, golden_dir):
  command = [sys.executable, "-m", "tests.kit.check_gpu", "--cpu", f"--log_dir={tmp_path}"]
  peer = f"--peer_python={tmp_path}/none"
  done = subprocess.run([*command, peer], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stdout + done.stderr
  facts = common.last_json(done.stdout)
  not_run = [row["check"] for row in facts["results"] if row["result"] != PASSED]
  assert not_run == [f"training {flag} beside transformers" for flag in gpu_training.VARIANTS]
  assert facts["counts"] == {"passed": 11, "not run": 4, "FAILED": 0}
