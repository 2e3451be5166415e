"""TensorFlow is imported here, and the lines that its C++ libraries write to stderr stay hidden."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

# Written whatever TF_CPP_MIN_LOG_LEVEL says, and of no use to users.
_START_LINE = re.compile(
  rb"WARNING: All log messages before absl::InitializeLog|"
  rb"INFO: Created TensorFlow Lite XNNPACK delegate for CPU|"
  rb"[IWE]0000 .*(oneDNN custom operations|Could not find cuda drivers|failed call to cuInit)"
)
# Waits for the end of the process that holds its stdin, then copies its stdout, a file, to stderr.
_WATCHER = """import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.read(0, 1)
os.lseek(1, 0, 0)
while text := os.read(1, 1 << 16):
  os.write(2, text)"""


def start_tensorflow(allow_tf32: bool = False, threads: int | None = None) -> None:
  """Imports TensorFlow and sets up its devices, hiding log lines that do not matter to users.

  TF_CPP_MIN_LOG_LEVEL=0 in the environment shows them; anything else they write is passed on.

  Args:
    allow_tf32: whether GPUs since Ampere may round the factors of float32 products to TF32, 10 bits
      of 23. They do by default in TensorFlow; here float32 is float32 unless it is asked for.
    threads: of the processor, for an operation and for operations beside each other; by default
      TensorFlow's own choice.
  """
  with hidden():
    import tensorflow as tf

    if threads:
      tf.config.threading.set_intra_op_parallelism_threads(threads)
      tf.config.threading.set_inter_op_parallelism_threads(threads)
    let_gpu_memory_grow()
  tf.config.experimental.enable_tensor_float_32_execution(allow_tf32)


def let_gpu_memory_grow() -> None:
  """Has TensorFlow take memory of GPUs as it needs it: several processes may share one."""
  import tensorflow as tf

  for gpu in tf.config.list_physical_devices("GPU"):
    # TensorFlow raises an error if it has used the device already, as in a notebook (RuntimeError),
    # or if the caller has divided it into logical devices, each with a limit (ValueError).
    with contextlib.suppress(RuntimeError, ValueError):
      tf.config.experimental.set_memory_growth(gpu, True)


@contextlib.contextmanager
def hidden(all_lines: bool = False) -> Iterator[None]:
  """Leaves those lines out of what is written to stderr within; the rest follows at the end.

  With `all_lines` nothing follows: the block's exception says it better. If the process dies
  within, all of it follows.
  TF_CPP_MIN_LOG_LEVEL=0 or 1 in the environment shows them all.
  """
  if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") in ("0", "1"):
    yield
    return
  with tempfile.TemporaryFile() as written:
    stderr = os.dup(2)
    os.dup2(written.fileno(), 2)
    try:
      with _shown_after_crash(written, stderr):
        yield
    finally:
      os.dup2(stderr, 2)
      os.close(stderr)
      written.seek(0)
      for line in () if all_lines else written:
        if not _START_LINE.match(line):
          os.write(2, line)


@contextlib.contextmanager
def _shown_after_crash(written: BinaryIO, stderr: int) -> Iterator[None]:
  """Writes a file to stderr if this process dies within the block, as where the CPU lacks AVX."""
  command = [sys.executable, "-I", "-S", "-c", _WATCHER]
  try:
    watcher = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=written, stderr=stderr)
  except OSError:  # no further process can be started
    yield
    return
  with watcher:
    try:
      yield
    finally:
      watcher.kill()
