"""Folders that several tests read, made once in a session, whichever worker needs them first.

made = once.folder(tmp_path_factory, "distributions", build)
"""

import os
import pathlib
import shutil
from collections.abc import Callable


def session_folder(tmp_path_factory) -> pathlib.Path:
  """The session's folder for temporary files; its pytest workers share it."""
  base = tmp_path_factory.getbasetemp()
  # Below the session's folder, each worker has its own.
  return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def folder(tmp_path_factory, name: str, make: Callable[[pathlib.Path], None]) -> pathlib.Path:
  """Returns the folder that `make` fills; others wait behind a lock meanwhile."""
  import fcntl  # Not on Windows, where nothing is shared.

  base = session_folder(tmp_path_factory)
  made, aside = base / name, base / f"{name}.new"
  with open(base / f"{name}.lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not made.exists():
      shutil.rmtree(aside, ignore_errors=True)
      make(aside)
      aside.rename(made)
  return made
