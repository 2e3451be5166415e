"""Files that workers write: whole, even where two workers write the same one.

  with whole("/shared/out-00003-of-00010") as path:
    ...                                  # writes `path`, and files beside it, such as a manifest

A runner repeats the work of a worker that it has lost, which may still be running. So each attempt
writes into a folder of its own, and what comes last replaces what came before it.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator

from bert.io import filesystem
from bert.io.atomic_files import errors_naming, force_to_disk

_MARK = ".attempt-"


@contextlib.contextmanager
def whole(path: str) -> Iterator[str]:
  """Yields a name for a file that gets its place, `path`, when the block ends without an error.

  Files beside it come along; they belong to it and replace those of an older file. A remote file is
  copied to its place when it is complete.

  Raises:
    OSError: it cannot be written; the error names `path`.
  """
  parent, name = os.path.split(path)
  is_remote = filesystem.is_remote(path)
  beside = tempfile.gettempdir() if is_remote else os.path.abspath(parent)
  prefix = f".{name}{_MARK}"
  with errors_naming(path, instead_of=os.path.join(beside, prefix)):
    folder = tempfile.mkdtemp(prefix=prefix, dir=beside)
    try:
      yield os.path.join(folder, name)
      others = sorted(set(os.listdir(folder)) - {name})
      (_copy_all if is_remote else _rename_all)(folder, parent, name, others)
    finally:
      shutil.rmtree(folder, ignore_errors=True)


def _rename_all(folder: str, parent: str, name: str, others: list[str]) -> None:
  for other in others:
    with contextlib.suppress(FileNotFoundError):
      os.remove(os.path.join(parent, other))  # of an older file
  for each in [name, *others]:
    os.replace(os.path.join(folder, each), os.path.join(parent, each))
  force_to_disk(parent or ".")


def _copy_all(folder: str, parent: str, name: str, others: list[str]) -> None:
  for each in [name, *others]:
    _copy(os.path.join(folder, each), f"{parent}/{each}")


def _copy(local: str, remote: str) -> None:
  from apache_beam.io.filesystems import FileSystems

  with open(local, "rb") as source, FileSystems.create(remote) as target:
    while data := source.read(1 << 22):
      target.write(data)


def remove_remains(paths: Collection[str]) -> None:
  """Removes what attempts at local files left behind whose workers were killed."""
  local = [path for path in paths if not filesystem.is_remote(path)]
  for parent in {os.path.dirname(path) for path in local}:
    names = {f".{os.path.basename(path)}" for path in local if os.path.dirname(path) == parent}
    for entry in filesystem.list_folder(parent or "."):
      of_file, mark, _ = entry.rpartition(_MARK)
      if mark and of_file in names:
        shutil.rmtree(os.path.join(parent, entry), ignore_errors=True)
