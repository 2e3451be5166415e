"""Files that appear whole or not at all, and folders that one run at a time writes to."""

import contextlib
import errno
import os
import socket
from collections.abc import Iterator

from absl import logging

try:
  import fcntl
except ImportError:  # Windows: there folders are not held.
  fcntl = None


def write_text(path: str | os.PathLike, text: str) -> None:
  """Writes a text file aside, forces it to disk, and renames it into place.

  Whenever the program is stopped, `path` holds all of the old text or all of the new.

  Args:
    path: final name; its folder has to be there.
    text: written as UTF-8, line ends as they are.

  Raises:
    OSError: it cannot be written; nothing has changed then.
  """
  write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike, data: bytes) -> None:
  """Writes a file of any content as `write_text` writes one of text."""
  path = os.fspath(path)
  temporary = path + ".tmp"  # always the same, so that the next write clears what a crash left
  try:
    with open(temporary, "wb") as writer:
      writer.write(data)
      writer.flush()
      os.fsync(writer.fileno())
    os.replace(temporary, path)
  finally:
    with contextlib.suppress(OSError):
      os.remove(temporary)
  force_to_disk(os.path.dirname(path) or ".")


def force_to_disk(path: str | os.PathLike) -> None:
  """Forces a file's content, or the names in a folder, to disk."""
  is_folder = os.path.isdir(path)
  if is_folder and os.name == "nt":  # Windows cannot open a folder
    return
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  except OSError as error:
    # Some network file systems cannot sync a folder; they have no way to promise more.
    if not (is_folder and error.errno in (errno.EINVAL, errno.ENOTSUP)):
      raise
  finally:
    os.close(descriptor)


def hidden_beside(path: str, suffix: str) -> str:
  """A hidden file of the same folder, which patterns such as `train*` do not match.

  Example:
    >>> hidden_beside("data/train.tf_record", "manifest.json")
    'data/.train.tf_record.manifest.json'
  """
  folder, name = os.path.split(path)
  return os.path.join(folder, f".{name}.{suffix}")


# ---------------------------------------------------------------------------------------------
# Folders of one run at a time.


class FolderInUseError(OSError):
  """Another process writes to this folder."""


_LOCK_NAME = ".lock"
_held: dict[tuple[int, str], int] = {}  # (process, lock file) -> how many blocks hold it


@contextlib.contextmanager
def hold_folder(folder: str | os.PathLike) -> Iterator[None]:
  """Within the block no other process holds this folder; blocks of one process may be nested.

  The operating system keeps the lock and drops it when the process dies, however it dies, so that
  a killed run never stands in the way of its own restart. It is one of POSIX (`lockf`) because
  those work on network file systems, and forked children do not inherit them. A file `.lock` with
  number and machine of the process lies in the folder meanwhile; alone it means nothing.

  Args:
    folder: has to be there.

  Raises:
    FolderInUseError: another process holds it; the message names the process.
  """
  # A child that was forked inside the block holds nothing, hence the process in the key.
  key = os.getpid(), os.path.join(os.path.realpath(folder), _LOCK_NAME)
  descriptor = None if key in _held or fcntl is None else _lock(key[1], os.fspath(folder))
  _held[key] = _held.get(key, 0) + 1
  try:
    yield
  finally:
    _held[key] -= 1
    if not _held[key]:
      del _held[key]
    if descriptor is not None:
      with contextlib.suppress(OSError):
        os.remove(key[1])
      os.close(descriptor)  # which drops the lock


def _lock(path: str, folder: str) -> int | None:
  """Locks a file and returns its descriptor; None where the file system knows no locks."""
  while True:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
      fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
      if _is_still_named(descriptor, path):
        break
      os.close(descriptor)  # Its holder removed it between our opening and locking it.
    except OSError as error:
      holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip()
      os.close(descriptor)
      if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
        logging.warning(
          "%s is on a file system without locks: see that no other run uses it.", folder
        )
        os.remove(path)
        return None
      if error.errno not in (errno.EACCES, errno.EAGAIN):
        raise
      raise FolderInUseError(
        f"{folder} is in use by {holder or 'another process'}: two runs would overwrite each "
        "other's files. Wait for it or end it, or choose another output_dir."
      ) from None
  os.ftruncate(descriptor, 0)
  os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
  return descriptor


def _is_still_named(descriptor: int, path: str) -> bool:
  """Whether a path leads to the open file, and not to a later one of the same name."""
  try:
    return os.path.samestat(os.fstat(descriptor), os.stat(path))
  except FileNotFoundError:
    return False
