"""onnxruntime as an engine: what it reads, what it refuses. Needs no TensorFlow.

Alone: python -m pytest tests/predicting/engines/onnxruntime_test.py (seconds)
"""

import os
import subprocess
import sys

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto

from bert.exporting.onnx.names import INT8_BITS
from bert.io import processor
from bert.predicting.engines import onnxruntime as engine
from tests.kit.onnx_files import BATCH, check_refusal, write


@pytest.mark.parametrize(
  "module", ["bert.predicting.engines.registry", "bert.exporting.onnx.names"]
)
def test_nothing_is_reported_to_others(module):
  program = f"import os, {module}; print(os.environ['ORT_DISABLE_TELEMETRY'])"
  without = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
  command = [sys.executable, "-c", program]
  assert subprocess.run(command, env=without, capture_output=True, check=True).stdout == b"1\n"


@pytest.mark.parametrize(
  ("version", "expected"), [("1.23.2", ["0", None]), ("1.27.0", [None, "100"])]
)
def test_threads_leave_the_cores_to_others(tmp_path, monkeypatch, version, expected):
  """By no spinning at all, or a short one where onnxruntime has it: one of the two settings."""
  found = []
  session = onnxruntime.InferenceSession

  def opened(path, options, **more):
    found.append([_entry(options, name) for name in ("allow_spinning", "spin_duration_us")])
    return session(path, options, **more)

  monkeypatch.setattr(onnxruntime, "InferenceSession", opened)
  monkeypatch.setattr(onnxruntime, "__version__", version)
  path = write(tmp_path / "model.onnx")
  for shares, entries in ((True, expected), (False, [None, None])):
    engine.load(path, threads=2, shares_cores=shares)
    assert found.pop() == entries


def _entry(options, name):
  try:
    return options.get_session_config_entry(f"session.intra_op.{name}")
  except RuntimeError:  # it is not set
    return None


@pytest.mark.parametrize("computes", [True, False])
def test_cuda_comes_first_where_it_is_installed(tmp_path, monkeypatch, computes):
  """Without a GPU onnxruntime falls back to the processor, and the engine says so."""
  asked, calls = [], []
  session = onnxruntime.InferenceSession

  def opened(path, options, providers):
    asked.append(providers)
    made = session(path, options, providers=["CPUExecutionProvider"])
    if computes:
      cuda = ["CUDAExecutionProvider", "CPUExecutionProvider"]
      monkeypatch.setattr(type(made), "get_providers", lambda self: cuda)
    return made

  available = ["TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"]
  monkeypatch.setattr(onnxruntime, "InferenceSession", opened)
  monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: available)
  monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: calls.append(1), raising=False)
  path = write(tmp_path / "model.onnx")
  loaded = engine.load(path, threads=1)
  (cuda, settings), cpu = asked[0]
  assert (cuda, cpu, calls) == ("CUDAExecutionProvider", "CPUExecutionProvider", [1])
  assert settings == {"arena_extend_strategy": "kSameAsRequested", "use_tf32": "0"}
  assert loaded.device == ("gpu" if computes else "cpu")
  monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: available[2:])
  engine.load(path, threads=1)
  assert asked[1] == ["CPUExecutionProvider"]


@pytest.mark.parametrize("kind", [TensorProto.INT64, TensorProto.INT32])
def test_scores(tmp_path, kind):
  loaded = engine.load(write(tmp_path / "model.onnx", kind=kind), threads=1)
  assert loaded.name == "onnxruntime"
  assert loaded.inputs == ("input_ids", "input_mask")
  assert loaded(BATCH)["scores"].tolist() == [[3, 1], [2, 0]]
  assert loaded({**BATCH, "segment_ids": None})["scores"].dtype == np.float32


BAD_FILES = {  # changes of the model -> message
  "another format": ({"ir_version": 99}, r"of version 99 of ONNX' format, .* reads up to \d+\. In"),
  "another opset": ({"opset": 99}, r"operators of opset 99, .* up to opset \d+\. Install a newer"),
  "unknown operator": ({"operator": "Foo"}, r"cannot be read by .*Foo.* Export it anew"),
  "an image": ({"inputs": ["pixels"]}, r"reads pixels \(tensor\(int64\)\); models of texts read"),
  "no ids": ({"inputs": ["attention_mask"]}, r"reads no input_ids; models of texts read"),
  "another type": (
    {"mask_kind": TensorProto.FLOAT},
    r"reads attention_mask \(tensor\(float\)\); .* as int64 or int32\. E",
  ),
}


@pytest.mark.parametrize("what", BAD_FILES)
def test_models_that_are_refused(tmp_path, what):
  check_refusal(engine.load, tmp_path, *BAD_FILES[what])


def test_files_that_are_no_model(tmp_path):
  path = tmp_path / "model.onnx"
  with pytest.raises(FileNotFoundError, match=r"model\.onnx does not exist"):
    engine.load(path)
  write(path)
  for content in (b"", b"version https://git-lfs", path.read_bytes()[:100]):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.onnx is no model of ONNX, or is damaged\. Exp"):
      engine.load(path)


def test_batches_that_cannot_be_computed(tmp_path, capfd):
  loaded = engine.load(write(tmp_path / "model.onnx"))
  with pytest.raises(ValueError, match=r"model\.onnx reads input_mask, which the batch lacks"):
    loaded({"input_ids": BATCH["input_ids"]})
  with pytest.raises(ValueError, match=r"cannot compute input_ids \[2, 2\], .*idx=9.* vocabulary"):
    loaded({**BATCH, "input_ids": np.array([[9, 1], [2, 0]])})
  assert capfd.readouterr().err == ""  # said once


def test_warning_of_int8_without_vnni(tmp_path, monkeypatch, caplog):
  path = write(tmp_path / "model.onnx", **{INT8_BITS: "8"})
  for flags, count in (({"avx2", "avx512_vnni"}, 0), ({"avx2"}, 1), ((), 1), ({"asimd"}, 1)):
    monkeypatch.setattr(processor, "cpu_flags", lambda flags=flags: frozenset(flags))
    engine.load(path)
    assert caplog.text.count("this processor has no VNNI") == count
  monkeypatch.setattr(processor, "cpu_flags", lambda: frozenset({"avx2"}))
  engine.load(write(tmp_path / "model.onnx", **{INT8_BITS: "7"}))
  assert caplog.text.count("this processor has no VNNI") == 1
