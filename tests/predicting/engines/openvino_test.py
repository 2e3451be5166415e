"""OpenVINO as an engine: what it refuses, bfloat16. Needs no TensorFlow.

What it computes of each task and family is in tests/exporting/onnx/all_models_test.py.

Alone: python -m pytest tests/predicting/engines/openvino_test.py (seconds)
"""

import subprocess
import sys

import numpy as np
import openvino
import pytest

from bert.io import installation
from bert.predicting.engines import openvino as engine
from tests.kit.onnx_files import BATCH, check_refusal, write


def test_scores(tmp_path):
  loaded = engine.load(write(tmp_path / "model.onnx"), threads=1)
  assert loaded.name == "openvino"
  assert loaded.inputs == ("input_ids", "input_mask")
  first = loaded(BATCH)["scores"]
  longer = {name: np.repeat(values, 3, axis=1) for name, values in BATCH.items()}
  assert loaded(longer)["scores"].tolist() == [[3, 3, 3, 1, 1, 1], [2, 2, 2, 0, 0, 0]]
  assert first.tolist() == [[3, 1], [2, 0]]  # not the memory of a later call


def test_types_and_threads(tmp_path, monkeypatch):
  """Left alone, OpenVINO computes in bfloat16 wherever the processor can."""
  path = write(tmp_path / "model.onnx")
  monkeypatch.setattr(installation, "num_cores", lambda: 1)
  of_type = {"float32": openvino.Type.f32, "bfloat16": openvino.Type.bf16}
  for precision in of_type:
    compiled = engine.load(path, precision=precision)._request.get_compiled_model()
    hint = compiled.get_property("INFERENCE_PRECISION_HINT")
    assert hint == of_type[precision] or (precision == "bfloat16" and not can_bfloat16())
    assert compiled.get_property("INFERENCE_NUM_THREADS") == 1
    assert not compiled.get_property("ENABLE_CPU_PINNING")


def can_bfloat16():
  return "BF16" in openvino.Core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")


BAD_FILES = {  # changes of the model -> message
  "unknown operator": ({"operator": "Foo"}, r"cannot be read by OpenVINO .*Foo.* Export it anew"),
  "another type": ({"mask_kind": 1}, r"reads attention_mask \(f32\); .* as int64 or int32\."),
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
    with pytest.raises(ValueError, match=r"model\.onnx cannot be read by OpenVINO .* Exp") as error:
      engine.load(path)
    assert "\n" not in str(error.value)


def test_batches_that_cannot_be_computed(tmp_path):
  loaded = engine.load(write(tmp_path / "model.onnx"))
  with pytest.raises(ValueError, match=r"model\.onnx reads input_mask, which the batch lacks"):
    loaded({"input_ids": BATCH["input_ids"]})
  for wrong in (4, -1):
    with pytest.raises(ValueError, match=rf"cannot compute the id {wrong}: .* has 4 tokens"):
      loaded({**BATCH, "input_ids": np.array([[wrong, 1], [2, 0]])})
  with pytest.raises(ValueError, match=r"compute input_ids \[2, 2\], .*\[2, 3\]: all inputs have"):
    loaded({**BATCH, "input_mask": np.ones((2, 3), np.int32)})
  with pytest.raises(ValueError, match=r"compute input_ids \[2\], .*\[2\]: all inputs have"):
    loaded({name: values[0] for name, values in BATCH.items()})


def test_nothing_else_is_imported_and_nobody_is_asked(tmp_path):
  path = write(tmp_path / "model.onnx")
  program = (
    "import sys; asked = [];"
    "sys.addaudithook(lambda event, _: event.startswith('socket.') and asked.append(event));"
    f"from bert.predicting.engines import openvino; openvino.load({path!r});"
    "print({'tensorflow', 'onnx', 'torch'} & set(sys.modules), asked)"
  )
  done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
  assert done.stdout.strip() == "set() []"
