"""What this machine computes fast in: the flags of its CPU, the abilities of its GPUs.

>>> dtype, reason = preferred_dtype(frozenset({"avx512f", "avx512_bf16"}))
>>> dtype, reason
('bfloat16', 'the CPU multiplies in bfloat16 (avx512_bf16)')
"""

import re

from absl import logging

# Instructions for products of bfloat16, best first. Without them the type is emulated, far slower.
BFLOAT16_CPU_FLAGS = ("amx_bf16", "avx512_bf16")

# From this compute capability on a GPU multiplies in bfloat16 (Ampere).
_BFLOAT16_GPU = (8, 0)


def cpu_flags(path: str = "/proc/cpuinfo") -> frozenset[str]:
  """The abilities of the first CPU, as Linux names them; none where it says nothing.

  Args:
    path: the file to read.
  """
  try:
    with open(path, encoding="utf-8", errors="replace") as reader:
      match = re.search(r"^(?:flags|Features)\s*:(.*)$", reader.read(), re.MULTILINE)
  except OSError:
    return frozenset()
  return frozenset(match[1].split()) if match else frozenset()


def gpu_capabilities() -> list[tuple[int, int]]:
  """Compute capability of each GPU that TensorFlow sees; `(0, 0)` where it is unknown."""
  import tensorflow as tf

  details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
  return [detail.get("compute_capability", (0, 0)) for detail in details]


def choose_dtype(name: str, is_tpu: bool = False) -> str:
  """What `--dtype` means on this machine: `auto` is the preferred one, others stand for themselves.

  Args:
    name: float32, bfloat16, float16 or auto.
    is_tpu: whether a TPU computes.
  """
  if name != "auto":
    return name
  dtype, reason = preferred_dtype(cpu_flags(), gpu_capabilities(), is_tpu)
  logging.info("dtype auto is %s: %s.", dtype, reason)
  return dtype


def preferred_dtype(
  flags: frozenset[str], gpus: list[tuple[int, int]] | None = None, is_tpu: bool = False
) -> tuple[str, str]:
  """The fastest type of matrix products that needs no loss scaling.

  Args:
    flags: of the CPU, see `cpu_flags`.
    gpus: compute capability of each GPU, see `gpu_capabilities`.
    is_tpu: whether a TPU computes.

  Returns:
    `("bfloat16" or "float32", reason)`.

  Example:
    >>> preferred_dtype(frozenset(), [(7, 5)])
    ('float32', 'not every GPU multiplies in bfloat16 (compute capability 7.5, 8.0 is needed)')
  """
  if is_tpu:
    return "bfloat16", "TPUs multiply in bfloat16"
  if gpus:
    weakest = min(gpus)
    shown = ".".join(map(str, weakest))
    if weakest >= _BFLOAT16_GPU:
      return "bfloat16", f"the GPU multiplies in bfloat16 (compute capability {shown})"
    return "float32", (
      f"not every GPU multiplies in bfloat16 (compute capability {shown}, 8.0 is needed)"
    )
  for flag in BFLOAT16_CPU_FLAGS:
    if flag in flags:
      return "bfloat16", f"the CPU multiplies in bfloat16 ({flag})"
  return "float32", f"the CPU has none of {', '.join(BFLOAT16_CPU_FLAGS)}"
