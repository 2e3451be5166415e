"""Files that appear whole or not at all, and folders that one run at a time writes to."""

import contextlib
import ctypes
import errno
import hashlib
import io
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from absl import logging

from bert.io import file_locks, filesystem


def write_text(path: str | os.PathLike, text: str) -> None:
  """Writes UTF-8 text, line ends as they are, whole or not at all; see `written_whole`."""
  write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike, data: bytes) -> None:
  """Writes a file of any content as `write_text` writes one of text."""
  with written_whole(path) as writer:
    writer.write(data)


def copy_file(source: str | os.PathLike, path: str | os.PathLike) -> None:
  """Copies a small file, from any file system to any; see `written_whole`, also for its errors."""
  write_bytes(path, filesystem.read_bytes(source))


@contextlib.contextmanager
def written_whole(path: str | os.PathLike) -> Iterator[BinaryIO]:
  """Opens a binary file to write to, which becomes `path` when the block ends without an error.

  It is written aside, forced to disk, and renamed into place. If the program is stopped or
  the power fails at any time, `path` holds the complete old content, the complete new content, or
  does not exist. On a remote file system, such as gs://, the guarantees are those of its renames.

  Raises:
    OSError: it cannot be written; the error names `path`.
  """
  path = os.fsdecode(path)
  # A name that is always the same: the next write removes the remains of a crash.
  temporary = hidden_beside(path, "tmp")
  if filesystem.is_remote(path):
    try:
      with errors_naming(path, instead_of=temporary):
        with filesystem.open_to_write(temporary) as writer:
          yield writer
        filesystem.rename(temporary, path)
    finally:
      with contextlib.suppress(OSError):
        filesystem.remove(temporary)
    return
  try:
    with errors_naming(path, instead_of=temporary):
      raw = open(temporary, "wb", buffering=0)  # noqa: SIM115 (the next line closes it)
    with _NamedWriter(raw, path) as writer:
      yield writer
      writer.flush()
      with errors_naming(path):
        os.fsync(writer.fileno())
    with errors_naming(path, instead_of=temporary):
      os.replace(temporary, path)
  finally:
    with contextlib.suppress(OSError):
      os.remove(temporary)
  force_to_disk(os.path.dirname(path) or ".")


class _NamedWriter(io.BufferedWriter):
  """A buffered file whose errors name its final path instead of the temporary one.

  Python's own errors usually name no file: "No space left on device" does not say on which one.
  """

  def __init__(self, raw: io.RawIOBase, name: str):
    super().__init__(raw)
    self._final_name = name

  def write(self, data) -> int:
    """See base class."""
    with errors_naming(self._final_name):
      return super().write(data)

  def flush(self) -> None:
    """See base class."""
    with errors_naming(self._final_name):
      super().flush()

  def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
    """See base class; the buffer is written first."""
    with errors_naming(self._final_name):
      return super().seek(offset, whence)


@contextlib.contextmanager
def folder_written_whole(path: str | os.PathLike) -> Iterator[str]:
  """Makes an empty folder, which becomes `path` when the block ends without an error.

  As `written_whole`; an existing folder is replaced. Where the system cannot exchange two folders
  in one step, a crash in between leaves the complete old one as `.NAME.old`, and the next call
  restores it.

  Raises:
    OSError: it cannot be written; the error names `path`.
  """
  filesystem.check_local(path)
  path = os.path.abspath(path)
  aside, replaced = hidden_beside(path, "new"), hidden_beside(path, "old")
  with errors_naming(path, instead_of=aside):
    _put_back(replaced, path)
    shutil.rmtree(aside, ignore_errors=True)
    os.makedirs(aside)
  try:
    yield aside
    with errors_naming(path, instead_of=aside):
      _force_tree_to_disk(aside)
      _replace_folder(aside, path, replaced)
      force_to_disk(os.path.dirname(path))
  finally:
    _put_back(replaced, path)
    shutil.rmtree(aside, ignore_errors=True)


def _replace_folder(aside, path, replaced):
  """Gives `aside` the name `path`; a folder of that name becomes `aside` or `replaced`."""
  if os.path.exists(path):
    if _exchange(aside, path):
      return
    os.replace(path, replaced)
  os.replace(aside, path)


def _exchange(first: str, second: str) -> bool:
  """Exchanges two names in one step; returns False where the system cannot do that."""
  try:
    renameat2 = ctypes.CDLL(None).renameat2  # Linux since 3.15; Python has no name for it
  except (AttributeError, OSError, TypeError):
    return False
  here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
  return renameat2(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0


def _put_back(replaced, path):
  """Removes a replaced folder, or renames it back if no new folder took its place."""
  if os.path.exists(path):
    shutil.rmtree(replaced, ignore_errors=True)
  elif os.path.exists(replaced):
    os.replace(replaced, path)


def _force_tree_to_disk(folder):
  for place, _, names in os.walk(folder):
    for path in [*(os.path.join(place, name) for name in names), place]:
      force_to_disk(path)


@contextlib.contextmanager
def errors_naming(path: str | os.PathLike, instead_of: str | None = None) -> Iterator[None]:
  """Adds a file's name to system errors that name none, or `instead_of`, a temporary file.

  Example:
    >>> with errors_naming("answers.jsonl"):
    ...   raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'answers.jsonl'
  """
  try:
    yield
  except OSError as error:
    is_temporary = instead_of is not None and str(error.filename).startswith(instead_of)
    if error.errno is None or not (error.filename is None or is_temporary):
      raise
    raise OSError(error.errno, error.strerror, os.fsdecode(path)) from None


def check_writable(folder: str | os.PathLike) -> None:
  """Checks that files can be written to a folder, with an unnamed file that leaves no trace.

  The OSError of one that cannot be written to names it.
  """
  filesystem.check_local(folder)
  with errors_naming(folder), tempfile.TemporaryFile(dir=os.fsdecode(folder)) as probe:
    probe.write(b"?")
    probe.flush()


def sha256_of(path: str | os.PathLike) -> str:
  """Computes the sha256 of a file's content, in hexadecimal digits; reads it in blocks."""
  digest = hashlib.sha256()
  with filesystem.open_to_read(path) as reader:
    while chunk := reader.read(1 << 20):
      digest.update(chunk)
  return digest.hexdigest()


def force_to_disk(path: str | os.PathLike) -> None:
  """Forces a file's content, or the names in a folder, to disk."""
  is_folder = os.path.isdir(path)
  if is_folder and os.name == "nt":  # Windows cannot open a folder
    return
  try:
    descriptor = os.open(path, os.O_RDWR)  # Windows forces no file that is open to read alone
  except (IsADirectoryError, PermissionError):
    descriptor = os.open(path, os.O_RDONLY)
  try:
    with errors_naming(path):
      os.fsync(descriptor)
  except OSError as error:
    # Some network file systems cannot sync a folder; nothing more can be done there.
    if not (is_folder and error.errno in (errno.EINVAL, errno.ENOTSUP)):
      raise
  finally:
    os.close(descriptor)


def hidden_beside(path: str, suffix: str) -> str:
  """Names a hidden file of the same folder, which patterns such as `train*` do not match.

  Example:
    >>> hidden_beside("data/train.tf_record", "manifest.json")
    'data/.train.tf_record.manifest.json'
  """
  folder, name = os.path.split(path)
  return os.path.join(folder, f".{name}.{suffix}")


# ---------------------------------------------------------------------------------------------
# Folders that only one run at a time may use.


class FolderInUseError(OSError):
  """Another process writes to this folder."""


LOCK_NAME = ".lock"
_held: dict[tuple[int, str], int] = {}  # (process, lock file) -> how many blocks hold it


@contextlib.contextmanager
def hold_folder(folder: str | os.PathLike, lock_name: str = LOCK_NAME) -> Iterator[None]:
  """Locks a folder within the block against other processes; blocks of one may be nested.

  The operating system releases the lock when the process ends, even if it is killed, so a killed
  run never blocks its own restart. It works on network file systems, and forked children do not
  inherit it. Meanwhile a file `.lock` in the folder names the process and its machine; without the
  lock this file has no meaning.

  Args:
    folder: must exist.
    lock_name: of the file; processes that give different names may use the folder together.

  Raises:
    FolderInUseError: another process holds it; the message names the process.
  """
  filesystem.check_local(folder)
  # A child that was forked inside the block holds nothing, hence the process in the key.
  key = os.getpid(), os.path.join(os.path.realpath(folder), lock_name)
  descriptor = None if key in _held else _lock(key[1], os.fsdecode(folder))
  _held[key] = _held.get(key, 0) + 1
  try:
    yield
  finally:
    _held[key] -= 1
    if not _held[key]:
      del _held[key]
    if descriptor is not None:
      file_locks.remove_and_release(descriptor, key[1])


def _lock(path: str, folder: str) -> int | None:
  """Locks a file and returns its descriptor; None if the file system does not support locks."""
  while True:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
      is_ours = file_locks.try_lock(descriptor, of_process=True)
    except OSError as error:
      os.close(descriptor)
      if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
        logging.warning(
          "%s is on a file system without locks: make sure that no other run uses it.", folder
        )
        os.remove(path)
        return None
      raise
    if not is_ours:
      os.lseek(descriptor, 0, os.SEEK_SET)
      holder = os.read(descriptor, 200).decode("utf-8", "replace").strip()
      os.close(descriptor)
      raise FolderInUseError(
        f"{folder} is in use by {holder or 'another process'}: two runs would overwrite each "
        "other's files. Wait for it or end it, or choose another output_dir."
      )
    if _is_still_named(descriptor, path):
      break
    os.close(descriptor)  # its holder removed it between opening and locking
  # The content is for people only: a full disk must not prevent the lock.
  with contextlib.suppress(OSError):
    os.ftruncate(descriptor, 0)
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, f"process {os.getpid()} on {socket.gethostname()}\n".encode())
  return descriptor


def _is_still_named(descriptor: int, path: str) -> bool:
  """Tells whether a path leads to the open file, and not to a later one of the same name."""
  try:
    return os.path.samestat(os.fstat(descriptor), os.stat(path))
  except FileNotFoundError:
    return False
