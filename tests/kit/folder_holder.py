"""Another process that holds a folder, as a run holds its output_dir.

with held(folder) as process:   # until its standard input is closed, or the block ends
  ...
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

from bert.io import atomic_files
from tests.kit.paths import ROOT

_HOLDER = """
import sys
from bert.io import atomic_files

with atomic_files.hold_folder(*sys.argv[1:]):
  print("held", flush=True)
  sys.stdin.read()
"""


def _start(folder: str | os.PathLike, lock: str = atomic_files.LOCK_NAME) -> subprocess.Popen:
  return subprocess.Popen(
    [sys.executable, "-c", _HOLDER, str(folder), lock],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )


@contextlib.contextmanager
def held(
  folder: str | os.PathLike, lock: str = atomic_files.LOCK_NAME
) -> Iterator[subprocess.Popen]:
  """Gives the process once it holds the folder, by default as a run that trains does."""
  process = _start(folder, lock)
  try:
    assert process.stdout.readline() == "held\n"
    yield process
  finally:
    process.kill()
    process.communicate()


def refused(folder: str | os.PathLike) -> str:
  """The error of a process that may not hold the folder."""
  process = _start(folder)
  printed, error = process.communicate("")
  assert process.returncode != 0, printed
  return error
