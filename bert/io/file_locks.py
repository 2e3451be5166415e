"""Locks on open files, which the system frees when their holder ends, even if it is killed.

They are POSIX's, on Windows those of its C library, which differ in two ways: a child process
never inherits a lock, and no file is removed while a process has it open.
"""

import contextlib
import errno
import os

try:
  import fcntl
except ImportError:  # Windows
  fcntl = None
  import msvcrt

# Windows lets no other process read what is locked: a byte far behind the content.
_LOCKED_BYTE = 1 << 30


def try_lock(descriptor: int, *, of_process: bool) -> bool:
  """Locks a file that is open for writing; returns False if somebody else holds it.

  Args:
    descriptor: of the file.
    of_process: whether the lock belongs to this process alone (`lockf`, which also works on network
      file systems), and not to the open file (`flock`), which children may inherit: then it is free
      when the last of them has ended.

  Raises:
    OSError: it cannot be locked, as on a file system without locks.
  """
  try:
    if fcntl is None:
      os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
      msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    else:
      lock = fcntl.lockf if of_process else fcntl.flock
      lock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except OSError as error:
    if error.errno in (errno.EACCES, errno.EAGAIN):
      return False
    raise
  return True


def remove_and_release(descriptor: int, path: str) -> None:
  """Removes a locked file, and closes it, which frees its lock."""
  if fcntl is None:
    os.close(descriptor)  # first: an open file stays, and so does that of whoever locks it next
  with contextlib.suppress(OSError):
    os.remove(path)
  if fcntl is not None:
    os.close(descriptor)
