"""The hardware of this machine: CPU flags, GPU capabilities, the fastest data type, memory.

>>> dtype, reason = preferred_dtype(frozenset({"avx512f", "avx512_bf16"}))
>>> dtype, reason
('bfloat16', 'the CPU multiplies in bfloat16 (avx512_bf16)')
"""

import contextlib
import gc
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from absl import logging

from bert.io import installation, start_lines
from bert.io.processor import cpu_flags
from bert.io.wording import counted

# Instructions for products of bfloat16, best first. Without them the type is emulated, far slower.
BFLOAT16_CPU_FLAGS = ("amx_bf16", "avx512_bf16")

# From this compute capability on a GPU multiplies in bfloat16 (Ampere).
_BFLOAT16_GPU = (8, 0)


def gpu_capabilities() -> list[tuple[int, int]]:
  """Returns the compute capability of each GPU of TensorFlow; `(0, 0)` where unknown."""
  import tensorflow as tf

  details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices("GPU"))
  return [detail.get("compute_capability", (0, 0)) for detail in details]


def unseen_gpus() -> int:
  """Counts the NVIDIA GPUs that TensorFlow does not see, unless CUDA_VISIBLE_DEVICES hides them."""
  import tensorflow as tf

  seen = len(tf.config.list_physical_devices("GPU"))
  visible = os.environ.get("CUDA_VISIBLE_DEVICES")
  if visible is not None and (seen or not re.match(r"\d|GPU-|MIG-", visible)):
    return 0
  return max(0, len(gpu_memory()) - seen)


def warn_of_unseen_gpus() -> None:
  """Warns if this machine's GPUs are of no use to a run, because TensorFlow sees none of them."""
  import tensorflow as tf

  if not tf.config.list_physical_devices("GPU") and (count := unseen_gpus()):
    logging.warning(
      "nvidia-smi lists %s, but TensorFlow sees none: this run uses the CPU. To use them: %s",
      counted(count, "GPU"),
      HOW_TO_SEE_GPUS,
    )


HOW_TO_SEE_GPUS = f'pip install "{installation.DISTRIBUTION}[gpu]", and check the driver.'


def devices_of(strategy=None) -> str:
  """Names the devices that a `tf.distribute.Strategy` uses; without one, a GPU or else the CPU.

  For example `GPU (NVIDIA H100)`, `2 GPUs (NVIDIA A100)` or `CPU (8 cores)`.
  """
  import tensorflow as tf

  own = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
  names = strategy.extended.worker_devices if strategy else [own[0].name]
  kind = tf.DeviceSpec.from_string(names[0]).device_type
  about = counted(installation.num_cores(), "core") if kind == "CPU" else ""
  if kind == "GPU":
    details = map(tf.config.experimental.get_device_details, tf.config.list_physical_devices(kind))
    about = ", ".join(dict.fromkeys(each.get("device_name", "") for each in details))
  shown = f"{len(names)} {kind}s" if len(names) > 1 else kind
  return f"{shown} ({about})" if about else shown


# What TensorFlow and Keras import, if it is there, for wrappers, pictures and converters of their
# own, which no script uses: 1.5 of the 4 seconds of processor time that importing them takes.
_OFFERED = ("jax", "matplotlib", "sklearn")


def start_tensorflow(allow_tf32: bool = False) -> None:
  """Imports TensorFlow for a script, see `start_lines.start_tensorflow`.

  Keras gets no wrappers for `_OFFERED` in this process.
  """
  is_first = "tensorflow" not in sys.modules
  with _as_if_missing(_OFFERED), without_collections():
    start_lines.start_tensorflow(allow_tf32)
    if is_first:
      gc.freeze()  # Its modules stay: no collection needs to walk through them.


@contextlib.contextmanager
def without_collections() -> Iterator[None]:
  """Pauses Python's search for cycles of objects that nothing refers to any more.

  Importing TensorFlow and tracing a graph create objects that stay, some hundred thousand of them.
  The collector counts new objects, and walks through all of them again and again: a tenth of the
  processor time before the first step.
  """
  was_enabled = gc.isenabled()
  gc.disable()
  try:
    yield
  finally:
    if was_enabled:
      gc.enable()


@contextlib.contextmanager
def _as_if_missing(names: Iterable[str]) -> Iterator[None]:
  """Makes imports fail within the block, but for those that were done before."""
  hidden = [name for name in names if name not in sys.modules]
  sys.modules.update(dict.fromkeys(hidden))  # None: not to be found
  try:
    yield
  finally:
    for name in hidden:
      del sys.modules[name]


def choose_dtype(name: str, is_tpu: bool = False) -> str:
  """Returns the data type for a value of `--dtype`; `auto` is this machine's preferred type."""
  if name != "auto":
    return name
  dtype, reason = preferred_dtype(cpu_flags(), gpu_capabilities(), is_tpu)
  logging.info("dtype auto is %s: %s.", dtype, reason)
  return dtype


def preferred_dtype(
  flags: frozenset[str], gpus: list[tuple[int, int]] | None = None, is_tpu: bool = False
) -> tuple[str, str]:
  """Chooses the fastest type of matrix products that needs no loss scaling.

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


# ---------------------------------------------------------------------------------------------
# Memory.


class Memory(NamedTuple):
  """Memory of this machine, or of one GPU, in bytes."""

  total: int
  available: int


def memory(
  meminfo: str = "/proc/meminfo",
  cgroup_root: str = "/sys/fs/cgroup",
  own: str = "/proc/self/cgroup",
) -> Memory | None:
  """Returns the memory that this process may use: the machine's, or its control group's.

  A container or a job of SLURM is killed at the limit of its group, however much the machine has.
  The files are Linux's; control groups are of version 1 or 2. It is None where nothing is known, as
  on Windows.
  """
  kilobytes = {key: int(value) for key, value in re.findall(r"(\w+):\s+(\d+) kB", _text(meminfo))}
  if "MemTotal" in kilobytes:
    found = Memory(kilobytes["MemTotal"] << 10, kilobytes.get("MemAvailable", 0) << 10)
  else:
    found = _memory_of_posix()
  if found is None:
    return None
  for limit, used in _limits_of_groups(cgroup_root, _text(own)):
    found = Memory(min(found.total, limit), max(0, min(found.available, limit - used)))
  return found


def _memory_of_posix() -> Memory | None:
  try:
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
  except (AttributeError, ValueError, OSError):
    return None
  return Memory(total, total)  # macOS has no single number for free memory


def _limits_of_groups(root: str, own: str) -> Iterator[tuple[int, int]]:
  """Reads (limit, bytes in use) of the control groups of this process that have a limit."""
  paths = {"", *(line.split(":", 2)[2].strip("/") for line in own.split() if line.count(":") > 1)}
  names = (
    ("", "memory.max", "memory.current"),
    ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
  )
  for path in sorted(paths):
    for controller, limit_name, used_name in names:
      folder = os.path.join(root, controller, path)
      limit, used = (_text(os.path.join(folder, name)).strip() for name in (limit_name, used_name))
      if limit.isdecimal() and used.isdecimal():  # "max": no limit
        # The kernel frees cached files before it kills a process.
        statistics = _text(os.path.join(folder, "memory.stat"))
        cached = re.search(r"^(?:total_)?inactive_file (\d+)$", statistics, re.MULTILINE)
        yield int(limit), int(used) - (int(cached[1]) if cached else 0)


def _text(path: str) -> str:
  try:
    with open(path, encoding="utf-8", errors="replace") as reader:
      return reader.read()
  except OSError:
    return ""


def gpu_memory(command: str = "nvidia-smi") -> list[Memory]:
  """Reads the memory of each NVIDIA GPU, including those that TensorFlow cannot use."""
  query = [command, "--query-gpu=memory.total,memory.free", "--format=csv,noheader,nounits"]
  try:
    done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True)
  except (OSError, subprocess.SubprocessError):
    return []
  pairs = re.findall(r"^\s*(\d+),\s*(\d+)\s*$", done.stdout, re.MULTILINE)
  return [Memory(int(total) << 20, int(free) << 20) for total, free in pairs]
