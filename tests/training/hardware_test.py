"""Which type of matrix products a machine gets. Run: pytest tests/training/hardware_test.py"""

import gc
import importlib
import importlib.util
import os
import sys
import types

import pytest

from bert.io import installation
from bert.io.wording import counted
from bert.training import hardware


def write(tmp_path, text):
  path = tmp_path / "cpuinfo"
  path.write_text(text)
  return str(path)


def test_cpu_flags_are_those_of_the_first_processor(tmp_path):
  path = write(tmp_path, "processor : 0\nflags\t\t: fpu avx512_bf16\n\nprocessor: 1\nflags : x\n")
  assert hardware.cpu_flags(path) == {"fpu", "avx512_bf16"}
  assert hardware.cpu_flags(write(tmp_path, "Features : fp asimd bf16\n")) == {
    "fp",
    "asimd",
    "bf16",
  }


@pytest.mark.parametrize(
  ("flags", "gpus", "is_tpu", "dtype", "said"),
  [
    ({"avx2"}, [], False, "float32", "none of amx_bf16, avx512_bf16"),
    ({"avx512_bf16", "amx_bf16"}, [], False, "bfloat16", "amx_bf16"),
    ({"avx512_bf16"}, None, False, "bfloat16", "avx512_bf16"),
    ({"amx_bf16"}, [(8, 0), (9, 0)], False, "bfloat16", "8.0"),
    ({"amx_bf16"}, [(9, 0), (7, 0)], False, "float32", "7.0"),
    ({"amx_bf16"}, [(0, 0)], False, "float32", "0.0"),
    (set(), [], True, "bfloat16", "TPU"),
  ],
)
def test_preferred_dtype(flags, gpus, is_tpu, dtype, said):
  chosen, reason = hardware.preferred_dtype(frozenset(flags), gpus, is_tpu)
  assert chosen == dtype
  assert said in reason


def test_auto_is_the_preferred_type_and_others_stand_for_themselves(monkeypatch):
  monkeypatch.setattr(hardware, "cpu_flags", lambda: frozenset({"amx_bf16"}))
  monkeypatch.setattr(hardware, "gpu_capabilities", list)
  assert hardware.choose_dtype("auto") == "bfloat16"
  assert hardware.choose_dtype("float16") == "float16"
  monkeypatch.setattr(hardware, "cpu_flags", frozenset)
  assert hardware.choose_dtype("auto") == "float32"


# ---------------------------------------------------------------------------------------------
# How much there is.

MEMINFO = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n"


def memory(tmp_path, groups=(), own=""):
  """Memory by files that say so: `groups` is (path below the root, content)."""
  for name, text in groups:
    path = tmp_path / "cgroup" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
  (tmp_path / "meminfo").write_text(MEMINFO)
  (tmp_path / "own").write_text(own)
  return hardware.memory(*(str(tmp_path / name) for name in ("meminfo", "cgroup", "own")))


def test_memory_is_the_machines_without_a_group(tmp_path):
  assert memory(tmp_path) == (1000 << 10, 400 << 10)
  unlimited = [("memory.max", "max\n"), ("memory.current", "5\n")]
  assert memory(tmp_path, unlimited) == (1000 << 10, 400 << 10)


def test_a_job_has_what_its_own_group_leaves(tmp_path):
  groups = [("job_7/memory.max", "90\n"), ("job_7/memory.current", "100\n")]
  assert memory(tmp_path, groups, own="0::/job_7\n") == (90, 0)
  older = [
    ("memory/job_8/memory.limit_in_bytes", "80\n"),
    ("memory/job_8/memory.usage_in_bytes", "30\n"),
  ]
  assert memory(tmp_path, older, own="9:memory:/job_8\n") == (80, 50)


def test_gpu_memory_is_what_the_driver_tells(tmp_path):
  command = tmp_path / "nvidia-smi"
  command.write_text("#!/bin/sh\necho '81920, 80000'\necho '40960, 1'\n")
  command.chmod(0o755)
  assert hardware.gpu_memory(str(command)) == [(81920 << 20, 80000 << 20), (40960 << 20, 1 << 20)]
  assert hardware.gpu_memory(str(tmp_path / "missing")) == []
  command.write_text("#!/bin/sh\nexit 9\n")
  assert hardware.gpu_memory(str(command)) == []


@pytest.mark.parametrize(
  ("visible", "gpus", "is_told"),
  [
    *((None, 0, True), ("0", 0, True), ("GPU-1a", 0, True), (None, 1, False)),
    *(("-1", 0, False), ("", 0, False), ("NoDevFiles", 0, False)),
  ],
)
def test_gpus_that_tensorflow_does_not_see_are_told(monkeypatch, caplog, visible, gpus, is_told):
  import tensorflow as tf

  monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
  if visible is not None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
  monkeypatch.setattr(hardware, "gpu_memory", lambda: [hardware.Memory(1, 1)] * 2)
  monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"] * gpus)
  hardware.warn_of_unseen_gpus()
  assert ("lists 2 GPUs, but TensorFlow sees none" in caplog.text) == is_told


def test_devices_are_told_with_their_model(monkeypatch):
  import tensorflow as tf

  assert hardware.devices_of() == f"CPU ({counted(installation.num_cores(), 'core')})"
  details = {"device_name": "NVIDIA A100", "compute_capability": (8, 0)}
  devices = [types.SimpleNamespace(name=f"/device:GPU:{number}") for number in range(2)]
  monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: devices)
  monkeypatch.setattr(tf.config, "list_logical_devices", lambda kind: devices)
  monkeypatch.setattr(tf.config.experimental, "get_device_details", lambda device: details)
  assert hardware.devices_of() == "GPU (NVIDIA A100)"
  for kind, told in (("GPU", "2 GPUs (NVIDIA A100)"), ("TPU", "2 TPUs")):
    names = [f"/job:worker/replica:0/task:0/device:{kind}:{number}" for number in range(2)]
    strategy = types.SimpleNamespace(extended=types.SimpleNamespace(worker_devices=names))
    assert hardware.devices_of(strategy) == told


def test_a_module_is_hidden_while_tensorflow_is_imported():
  assert "this" not in sys.modules
  with hardware._as_if_missing(["this", "os"]):
    assert importlib.util.find_spec("this") is None
    with pytest.raises(ImportError):
      importlib.import_module("this")
    assert importlib.import_module("os") is os, "what is there stays"
  assert importlib.util.find_spec("this")


@pytest.mark.parametrize("allow_tf32", [False, True])
def test_float32_is_float32_unless_tf32_is_asked_for(allow_tf32):
  import tensorflow as tf

  enabled = tf.config.experimental.tensor_float_32_execution_enabled
  try:
    hardware.start_tensorflow(allow_tf32)
    assert enabled() is allow_tf32
    hardware.start_tensorflow()
    assert not enabled()
  finally:
    tf.config.experimental.enable_tensor_float_32_execution(True)


def test_collections_are_paused_within_the_block_even_after_an_error():
  assert gc.isenabled()
  found = []

  def fail():
    with hardware.without_collections():
      found.append(gc.isenabled())
      raise RuntimeError

  with pytest.raises(RuntimeError):
    fail()
  assert (found, gc.isenabled()) == ([False], True)
