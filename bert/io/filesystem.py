"""Files by path, on a local disk or on a remote file system: `gs://bucket/vocab.txt`, `s3://`, ...

A path with `://` in it is remote and goes through TensorFlow, whose plug-ins know these file
systems; TensorFlow is imported for such a path only. Local paths need the operating system alone.
What does not exist, or cannot be read, written or reached, is an `OSError` that names the path, on
either side.
"""

import contextlib
import errno
import glob
import io
import os
import re
import stat
from collections.abc import Iterator
from typing import BinaryIO

from absl import logging

_BUFFER_BYTES = 1 << 20
_PIPE = "A pipe can be read only once. Write it to a file first"


def is_remote(path: str | os.PathLike) -> bool:
  """Tells whether only TensorFlow knows the file system of a path.

  Example:
    >>> is_remote("gs://bucket/vocab.txt"), is_remote("/tmp/vocab.txt")
    (True, False)
  """
  return "://" in os.fsdecode(path)


def is_web_address(path: str | os.PathLike) -> bool:
  """Tells whether a path is an address that a browser opens, which no file system here does.

  Example:
    >>> is_web_address("https://host/vocab.txt"), is_web_address("gs://bucket/vocab.txt")
    (True, False)
  """
  return os.fsdecode(path).startswith(("https://", "http://"))


def meant_as_remote(path: str | os.PathLike) -> str | None:
  """Guesses the remote path that one with a lost slash means; None for other paths.

  Example:
    >>> meant_as_remote("gs:/bucket/out"), meant_as_remote("/tmp/out"), meant_as_remote("C:/out")
    ('gs://bucket/out', None, None)
  """
  path = os.fsdecode(path)
  match = re.match(r"(gs|s3a?|hdfs|https?|file|abfss?|dbfs):/+", path)
  return f"{match[1]}://{path[match.end() :]}" if match and not is_remote(path) else None


def check_local(path: str | os.PathLike) -> None:
  """Refuses a remote path, which the functions of the operating system cannot use.

  To them `gs://bucket/out` is a folder `gs:` in the current one.
  """
  if is_remote(path):
    raise OSError(errno.ENOTSUP, "It is remote, but must be on a local disk", os.fsdecode(path))


def open_to_read(path: str | os.PathLike, once: bool = False) -> BinaryIO:
  """Opens a binary file; reading raises nothing but OSErrors either.

  Args:
    path: of a file; of a pipe (`mkfifo`, a shell's `<(...)`) only if `once`.
    once: whether the caller reads it once, from its beginning to its end. A second reading of a
      pipe would wait for ever, or find nothing. As for any Unix tool, a named pipe is waited for
      until a program writes to it; the log says so.

  Raises:
    OSError: the file cannot be opened, or is a pipe.
  """
  if not is_remote(path):
    if _is_pipe(path):
      if not once:
        raise OSError(errno.ESPIPE, _PIPE, os.fsdecode(path))
      logging.info("%s is a pipe: waiting for the program that writes to it.", os.fsdecode(path))
    return open(path, "rb")
  if not exists(path):
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
  return io.BufferedReader(_RemoteFile(os.fsdecode(path)), _BUFFER_BYTES)


def _is_pipe(path: str | os.PathLike) -> bool:
  try:
    return stat.S_ISFIFO(os.stat(path).st_mode)
  except OSError:  # which `open` names
    return False


def read_bytes(path: str | os.PathLike) -> bytes:
  """Reads the content of a file."""
  with open_to_read(path) as file:
    return file.read()


@contextlib.contextmanager
def open_to_write(path: str | os.PathLike) -> Iterator[BinaryIO]:
  """Opens a binary file to write to, not atomically: see `atomic_files.written_whole`."""
  if not is_remote(path):
    with open(path, "wb") as writer:
      yield writer
    return
  gfile = _gfile(path)
  with _os_errors(path), gfile.GFile(os.fsdecode(path), "wb") as writer:
    yield writer


def exists(path: str | os.PathLike) -> bool:
  """Tells whether there is a file or a folder of this name."""
  if not is_remote(path):
    return os.path.exists(path)
  with _os_errors(path):
    return _gfile(path).exists(os.fsdecode(path))


def is_folder(path: str | os.PathLike) -> bool:
  """Tells whether there is a folder of this name."""
  if not is_remote(path):
    return os.path.isdir(path)
  # `isdir` alone is false where `exists` says that there is no connection.
  return exists(path) and _gfile(path).isdir(os.fsdecode(path))


def is_file(path: str | os.PathLike) -> bool:
  """Tells whether there is a file of this name."""
  if is_remote(path):
    return exists(path) and not is_folder(path)
  return os.path.isfile(path)


def size_bytes(path: str | os.PathLike) -> int:
  """Returns the size of a file."""
  if not is_remote(path):
    return os.path.getsize(path)
  with _os_errors(path):
    return _gfile(path).stat(os.fsdecode(path)).length


def list_folder(folder: str | os.PathLike) -> list[str]:
  """Lists a folder's names, sorted; none if it does not exist, or is local and cannot be read."""
  if not is_remote(folder):
    try:
      return sorted(os.listdir(os.fsdecode(folder)))
    except OSError:
      return []
  if not is_folder(folder):
    return []
  with _os_errors(folder):
    return sorted(name.rstrip("/") for name in _gfile(folder).listdir(os.fsdecode(folder)))


def matching(pattern: str | os.PathLike) -> list[str]:
  """Finds the paths that match a pattern such as `gs://bucket/*.txt`, sorted, none hidden.

  A path that exists matches itself, even if it contains characters of patterns.
  """
  pattern = os.fsdecode(pattern)
  if is_remote(pattern):
    wants_hidden = os.path.basename(pattern).startswith(".")
    with _os_errors(pattern):
      found = sorted(_gfile(pattern).glob(pattern))
    return [path for path in found if wants_hidden or not os.path.basename(path).startswith(".")]
  return sorted(glob.glob(pattern)) or ([pattern] if os.path.exists(pattern) else [])


def rename(source: str | os.PathLike, target: str | os.PathLike) -> None:
  """Renames a file on the same file system; an existing target is replaced."""
  if not is_remote(source):
    os.replace(source, target)
    return
  with _os_errors(target):
    _gfile(source).rename(os.fsdecode(source), os.fsdecode(target), overwrite=True)


def remove(path: str | os.PathLike) -> None:
  """Removes a file."""
  if not is_remote(path):
    os.remove(path)
    return
  with _os_errors(path):
    _gfile(path).remove(os.fsdecode(path))


class _RemoteFile(io.RawIOBase):
  """A TensorFlow file with Python's file interface, so that buffers, gzip and `seek` work."""

  def __init__(self, path: str):
    super().__init__()
    self._path, self._file = path, _gfile(path).GFile(path, "rb")

  def readable(self) -> bool:
    """See base class."""
    return True

  def seekable(self) -> bool:
    """See base class."""
    return True

  def readinto(self, buffer) -> int:
    """See base class."""
    with _os_errors(self._path):
      data = self._file.read(len(buffer))
    buffer[: len(data)] = data
    return len(data)

  def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
    """See base class."""
    with _os_errors(self._path):
      self._file.seek(offset, whence)
      return self._file.tell()

  def close(self) -> None:
    """See base class."""
    if not self.closed:
      self._file.close()
    super().close()


def _tensorflow(path: str | os.PathLike):
  """Imports TensorFlow, which knows remote file systems."""
  try:
    import tensorflow
  except ImportError:
    raise OSError(
      errno.ENOTSUP, "TensorFlow is not installed, and remote files need it", os.fsdecode(path)
    ) from None
  return tensorflow


def _gfile(path: str | os.PathLike):
  return _tensorflow(path).io.gfile


@contextlib.contextmanager
def _os_errors(path: str | os.PathLike) -> Iterator[None]:
  """Converts TensorFlow's errors to `OSError`s like those that Python's `open` raises."""
  tf = _tensorflow(path)
  try:
    yield
  except tf.errors.NotFoundError:
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fsdecode(path)) from None
  except tf.errors.UnimplementedError:
    raise OSError(errno.ENOTSUP, _why_unknown(os.fsdecode(path)), os.fsdecode(path)) from None
  except tf.errors.OpError as error:
    reason = (error.message or type(error).__name__).splitlines()[0]
    raise OSError(errno.EIO, reason, os.fsdecode(path)) from None


def _why_unknown(path: str) -> str:
  """Advises about a path of a file system that TensorFlow does not have."""
  if is_web_address(path):
    return "It is an address on the web. Download the file, and give its path"
  scheme = path.partition("://")[0]
  return (
    f"TensorFlow has no file system for {scheme}:// here. Copy the file to a local disk, or mount "
    "the remote one as a folder"
  )
