"""Folders that are downloaded once and then kept in a cache.

  folder = provide("models/x", ["https://host/x.zip"], unpack_all, needs=["vocab.txt"])

`checkpoints/released_models.py` and `tasks/public_data.py` define the folders.
Guarantees:

1. A returned folder is complete. It is unpacked aside and becomes visible by one rename, so a run
   that is killed leaves no half folder behind, and a folder that exists costs no request.
2. An interrupted download continues where it stopped, now or in the next run, if the server still
   has the same file; else it starts over. Of two processes, one downloads and the other waits.
3. Requests use HTTPS only (plain HTTP only to a server on this machine), and no archive writes
   outside its folder, makes links, or unpacks to more than `MAX_UNPACKED_BYTES`.
4. Every failure is a `DownloadError` whose message says what to do manually.

The cache is the argument `cache_dir`, else $BERT_CACHE_DIR, else $XDG_CACHE_HOME/bert, else
~/.cache/bert. $BERT_DOWNLOAD_BASE_URL names a mirror that has the files as
`models/2018_10_18/NAME.zip`, `glue/CoLA.zip`, `mrpc/...`, `xnli/...` and `imdb/...`. Without a
network, put an archive where the message says; the next run unpacks it from there.

There are no published checksums of these files. What is checked: HTTPS, the declared length, the
CRC of every archive member, and that the expected files exist.
"""

import contextlib
import gzip
import os
import pathlib
import shutil
import sys
import tarfile
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from absl import logging

from bert.io import file_locks
from bert.io.http import DownloadError, fetch

MAX_UNPACKED_BYTES = 12 << 30
_CHUNK_BYTES = 1 << 20


def cache_root(cache_dir: str | os.PathLike | None) -> pathlib.Path:
  """Returns the folder of the cache, see the top of this file."""
  # An empty variable counts as absent, as the XDG specification requires.
  cache_dir = cache_dir or os.environ.get("BERT_CACHE_DIR")
  if cache_dir:
    return pathlib.Path(cache_dir).expanduser().absolute()
  user_caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path("~/.cache").expanduser()
  return pathlib.Path(user_caches).absolute() / "bert"


def url_of(path: str, source: str, public_url: str, base_url: str | None = None) -> str:
  """Returns the address of a file.

  The path is relative to the address of its source: `base_url`, or the folder `source` of a mirror
  in place of `public_url`.
  """
  mirror = os.environ.get("BERT_DOWNLOAD_BASE_URL")
  base_url = base_url or (f"{mirror.rstrip('/')}/{source}" if mirror else public_url)
  return base_url.rstrip("/") + "/" + path


# ---------------------------------------------------------------------------------------------
# The cache: one folder per model or task, complete or absent.


def provide(
  place: str,
  urls: Sequence[str],
  build: Callable[[list[pathlib.Path], pathlib.Path], None],
  needs: Sequence[str],
  cache_dir: str | os.PathLike | None = None,
) -> str:
  """Provides a folder of the cache, built if the cache does not have it, and returns its path.

  Args:
    place: its path in the cache.
    urls: the files that it is made of.
    build: called with the downloaded files and an empty folder to fill; `unpack_all`, for instance.
    needs: names that a complete folder has.
    cache_dir: the cache; see the top of this file for the default.

  Raises:
    DownloadError: no network, a file or archive that cannot be used, or no space.
  """
  folder = cache_root(cache_dir) / place
  if not folder.exists():
    try:
      folder.parent.mkdir(parents=True, exist_ok=True)
      with _lock(folder.with_name(folder.name + ".lock")):
        # Another process may have finished it while this one waited for the lock.
        if not folder.exists():
          _fetch_and_build(folder, urls, build, needs)
    except OSError as error:
      raise DownloadError(
        f"Cannot write the cache {folder.parent}: {error.strerror}. Make room, or set another "
        "folder in the environment variable BERT_CACHE_DIR."
      ) from error
  missing = [name for name in needs if not (folder / name).exists()]
  if missing:
    raise DownloadError(
      f"{folder} lacks {', '.join(missing)}. Delete the folder to fetch it again."
    )
  return str(folder)


def _fetch_and_build(folder, urls, build, needs) -> None:
  downloads = [_obtain(url, folder.parent / url.rsplit("/", 1)[1]) for url in urls]
  aside = folder.with_name(f".{folder.name}.unpacking")
  _remove(aside)  # left by a run that was killed
  aside.mkdir()
  try:
    print(f"Unpacking to {folder}", file=sys.stderr)
    build([download.path for download in downloads], aside)
    missing = [name for name in needs if not (aside / name).exists()]
    if missing:
      raise DownloadError(f"{', '.join(urls)} did not contain {', '.join(missing)}.")
    if hasattr(os, "sync"):
      os.sync()  # the rename must not reach the disk before the files do
    os.rename(aside, folder)
  except BaseException as error:
    _remove(aside)
    if isinstance(error, DownloadError):
      # An archive that cannot be unpacked must not be resumed or reused: it is fetched again.
      _discard(downloads)
    raise
  _discard(downloads)


class _Download(NamedTuple):
  path: pathlib.Path
  by_hand: bool  # put there by the user, who keeps it


def _obtain(url: str, path: pathlib.Path) -> _Download:
  """Fetches `url` to `path` + ".part", unless the user has put the file at `path` already."""
  if path.exists():
    return _Download(path, by_hand=True)
  part = path.with_name(path.name + ".part")
  try:
    fetch(url, part)
  except DownloadError as error:
    raise DownloadError(
      f"{error} Or download it by other means, save it as {path}, and run again."
    ) from error
  return _Download(part, by_hand=False)


def _discard(downloads: list[_Download]) -> None:
  for download in downloads:
    if not download.by_hand:
      _remove(download.path)
      _remove(download.path.with_name(download.path.name + ".json"))


def _remove(path: pathlib.Path) -> None:
  if path.is_dir():
    shutil.rmtree(path)
  else:
    path.unlink(missing_ok=True)


@contextlib.contextmanager
def _lock(path: pathlib.Path) -> Iterator[None]:
  """Holds `path` locked; waits for another holder. The system frees it when a process dies."""
  with open(path, "a+b") as file:
    if not file_locks.try_lock(file.fileno(), of_process=False):
      logging.warning(
        "Waiting for another process that downloads %s; it holds the lock %s.", path.stem, path
      )
      while not file_locks.try_lock(file.fileno(), of_process=False):
        time.sleep(0.2)
    yield  # closing the file frees the lock


# ---------------------------------------------------------------------------------------------
# From downloaded files to a folder.


def unpack_all(archives: list[pathlib.Path], folder: pathlib.Path) -> None:
  """Unpacks `archives` into `folder`, without the single folder that wraps the files of each."""
  for archive in archives:
    staging = folder / ".archive"
    staging.mkdir()
    unpack(archive, staging)
    for path in _without_wrapper(staging).iterdir():
      # Two archives of one task may both have a README: the first one's stays.
      if not (folder / path.name).exists():
        os.rename(path, folder / path.name)
    shutil.rmtree(staging)


def unpack(archive: str | os.PathLike, folder: str | os.PathLike) -> None:
  """Unpacks a zip or tar.gz, possibly a hostile one, into `folder`, which should be empty.

  Only files and folders below it are created, and every byte has passed the archive's own checksum.

  Raises:
    DownloadError: damaged; a tar member that is a link or a device, or lies outside; too large.
  """
  try:
    if zipfile.is_zipfile(archive):
      with zipfile.ZipFile(archive) as zipped:
        _check_unpacked_bytes(archive, sum(info.file_size for info in zipped.infolist()))
      shutil.unpack_archive(archive, folder, "zip")  # without names that lead outside, and links
      return
    # All of it first: the checksum is behind the end of the tar data.
    total_bytes = 0
    with gzip.open(archive) as stream:
      while chunk := stream.read(_CHUNK_BYTES):
        total_bytes += len(chunk)
        _check_unpacked_bytes(archive, total_bytes)
    shutil.unpack_archive(archive, folder, "gztar", filter=_plain_member)
  except (
    *(zipfile.BadZipFile, tarfile.TarError, shutil.ReadError, zlib.error, EOFError),
    gzip.BadGzipFile,
    *(RuntimeError, NotImplementedError),  # zipfile's words for "encrypted", "unknown method"
  ) as error:
    raise DownloadError(
      f"{archive} is damaged, hostile or not an archive ({error}). Delete the file and download it "
      "again."
    ) from error


def _check_unpacked_bytes(archive: str | os.PathLike, total_bytes: int) -> None:
  if total_bytes > MAX_UNPACKED_BYTES:
    raise DownloadError(
      f"Refused to unpack {archive}: it holds more than {MAX_UNPACKED_BYTES:,} bytes."
    )


def _plain_member(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo | None:
  """Refuses links, which the library lets pass within the folder, and what it refuses."""
  if not (member.isreg() or member.isdir()):
    raise tarfile.SpecialFileError(member)
  return tarfile.data_filter(member, folder)


def _without_wrapper(folder: pathlib.Path) -> pathlib.Path:
  inside = [path for path in folder.iterdir() if not path.name.startswith((".", "__MACOSX"))]
  return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder
