"""Archives unpacked into a folder, although they may be damaged or hostile.

unpack("name.zip", "folder")
"""

import contextlib
import gzip
import os
import pathlib
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, NamedTuple

from bert.io.http import DownloadError

MAX_UNPACKED_BYTES = 12 << 30
MAX_UNPACKED_FILES = 250_000  # IMDB has 100,000
_CHUNK_BYTES = 1 << 18


class _Member(NamedTuple):
  name: str
  size: int  # bytes
  open: Callable[[], BinaryIO] | None  # None: a folder


def unpack(archive: str | os.PathLike, folder: str | os.PathLike) -> None:
  """Unpacks a zip or tar.gz, possibly a hostile one, into `folder`, which should be empty.

  Only plain files and folders are created, with this process's default permissions, and every
  byte has passed the archive's own checksum.

  Raises:
    DownloadError: damaged; a name that is absolute, has `..`, `:` or occurs twice; a link or a
      device; more bytes or files than the limits.
  """
  archive, folder = pathlib.Path(archive), pathlib.Path(folder)
  try:
    is_zip = zipfile.is_zipfile(archive)
    with (_zip_members if is_zip else _tar_members)(archive) as members:
      _write_members(members, folder)
  except (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, gzip.BadGzipFile),
    *(RuntimeError, NotImplementedError),  # zipfile's words for "encrypted", "unknown method"
  ) as error:
    raise DownloadError(
      f"{archive} is damaged or not an archive ({error}). Delete the file and download it again."
    ) from error
  except DownloadError as error:
    raise DownloadError(f"Refused to unpack {archive}: {error}") from error


def _write_members(members: Iterator[_Member], folder: pathlib.Path) -> None:
  seen, total_bytes = set(), 0
  for count, member in enumerate(members, start=1):
    total_bytes += member.size
    # Before it is written: the readers below stop at these sizes.
    if total_bytes > MAX_UNPACKED_BYTES or count > MAX_UNPACKED_FILES:
      raise DownloadError(
        f"it holds more than {MAX_UNPACKED_BYTES:,} bytes or {MAX_UNPACKED_FILES:,} files."
      )
    target = folder / _checked_name(member.name)
    if member.open is None:
      target.mkdir(parents=True, exist_ok=True)
      continue
    key = str(target).casefold()  # some file systems do not distinguish "A" from "a"
    if key in seen:
      raise DownloadError(f"two members are called {member.name!r}.")
    seen.add(key)
    target.parent.mkdir(parents=True, exist_ok=True)
    with member.open() as source, open(target, "xb") as file:
      shutil.copyfileobj(source, file, _CHUNK_BYTES)


def _checked_name(name: str) -> str:
  r"""Returns `name` if it stays below the folder it is unpacked in, on any system.

  Example:
    >>> _checked_name("model/vocab.txt")
    'model/vocab.txt'
    >>> _checked_name("..\\vocab.txt")
    Traceback (most recent call last):
    bert.io.http.DownloadError: the member '..\\vocab.txt' would land outside the folder.
  """
  # Windows rules take both slashes for separators; a colon means a drive or a hidden stream.
  path = pathlib.PureWindowsPath(name)
  if not path.parts or path.root or ":" in name or "\0" in name or ".." in path.parts:
    raise DownloadError(f"the member {name!r} would land outside the folder.")
  return name


@contextlib.contextmanager
def _zip_members(archive: pathlib.Path) -> Iterator[Iterator[_Member]]:
  with zipfile.ZipFile(archive) as file:

    def members():
      for info in file.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)  # 0: made where there are no Unix modes
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
          raise DownloadError(f"the member {info.filename!r} is a link or a device.")
        opener = None if info.is_dir() else (lambda info=info: file.open(info))
        yield _Member(info.filename, info.file_size, opener)

    yield members()


@contextlib.contextmanager
def _tar_members(archive: pathlib.Path) -> Iterator[Iterator[_Member]]:
  with gzip.open(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as file:

    def members():
      for info in file:
        if not (info.isreg() or info.isdir()):
          raise DownloadError(f"the member {info.name!r} is a link or a device.")
        opener = None if info.isdir() else (lambda info=info: file.extractfile(info))
        yield _Member(info.name, info.size, opener)
      # gzip verifies its checksum at the end of its data, which is after the end of the tar data.
      while stream.read(_CHUNK_BYTES):
        if stream.tell() > MAX_UNPACKED_BYTES:
          raise DownloadError(f"it holds more than {MAX_UNPACKED_BYTES:,} bytes.")

    yield members()
