"""Which type of matrix products a machine gets. Run: pytest tests/hardware_test.py"""

import pytest

import hardware


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


def test_a_machine_that_says_nothing_has_no_flags(tmp_path):
  assert hardware.cpu_flags(str(tmp_path / "missing")) == frozenset()
  assert hardware.cpu_flags(write(tmp_path, "model: x\n")) == frozenset()


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


def test_gpu_capabilities_of_this_machine_are_pairs():
  assert all(len(capability) == 2 for capability in hardware.gpu_capabilities())


def test_auto_is_the_preferred_type_and_others_stand_for_themselves(monkeypatch):
  monkeypatch.setattr(hardware, "cpu_flags", lambda: frozenset({"amx_bf16"}))
  monkeypatch.setattr(hardware, "gpu_capabilities", list)
  assert hardware.choose_dtype("auto") == "bfloat16"
  assert hardware.choose_dtype("float16") == "float16"
  monkeypatch.setattr(hardware, "cpu_flags", frozenset)
  assert hardware.choose_dtype("auto") == "float32"
