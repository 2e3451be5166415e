"""File operations that fail on purpose, and what a disk holds when a process dies at any of them.

  for failure in every_failure(folder, errno.ENOSPC):       # SQLite's anomaly loop: the 1st, 2nd ..
    with failure:                                           # .. operation fails, until none is left
      program(folder)

  for state in states_of_death(program, folder, states):    # copies of `folder`, one per moment
    check(state)

Watched are the operations of Python, and those of TensorFlow that start in Python, on names below
one folder, by this process. What TensorFlow's C++ does inside one of its calls is seen by strace
alone, see `tests/system/real_deaths_test.py`.

A process that dies takes along what it had not yet handed to the system, and nothing else: the
folder as it is just before an operation is the folder after a death there. So one run, copied
before each of its operations, stands for as many deaths as it has operations. `die_at` really ends
a process, and a test compares the two. A power cut takes more, all that was not forced to disk:

  states_of_death(program, folder, states, Loss.CONTENTS)   # renamed files may come out empty
  states_of_death(program, folder, states, Loss.NAMES)      # new names may be missing
"""

import builtins
import contextlib
import enum
import errno
import hashlib
import io
import os
import pathlib
import shutil
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

KINDS = ("open", "write", "rename", "fsync", "mkdir")
EXIT_CODE = 137  # as after SIGKILL


class Operation(NamedTuple):
  """Something that changes the disk."""

  kind: str  # one of `KINDS`, or "remove"
  path: str  # what is changed; of a rename, the new name


# ---------------------------------------------------------------------------------------------
# Watching.


@contextlib.contextmanager
def watch(folder: str | os.PathLike, before: Callable[[Operation], None]) -> Iterator[None]:
  """Calls `before` ahead of each operation below `folder`, within the block.

  A write is announced when half of it is done: half-written files are what deaths leave. An OSError
  that `before` raises is how the operation ends.
  """
  root = os.path.realpath(folder)

  def announce(kind: str, path: str) -> None:
    absolute = os.path.join(os.path.realpath(os.path.dirname(path) or "."), os.path.basename(path))
    if (absolute + os.sep).startswith(root + os.sep):
      before(Operation(kind, absolute))

  patches = [*_python_patches(announce), *_tensorflow_patches(announce)]
  originals = [(owner, name, getattr(owner, name)) for owner, name, _ in patches]
  try:
    for owner, name, function in patches:
      setattr(owner, name, function)
    yield
  finally:
    for owner, name, function in originals:
      setattr(owner, name, function)


def _python_patches(announce) -> Iterator[tuple[Any, str, Callable]]:
  """(owner, name, what takes its place) of Python's own functions."""

  def announced(name, kind, path_of):
    original = getattr(os, name)

    def function(*args, **kwargs):
      announce(kind, path_of(*args, **kwargs))
      return original(*args, **kwargs)

    return os, name, function

  for name in ("replace", "rename", "link"):
    yield announced(name, "rename", lambda _, target, **__: os.fspath(target))
  for name in ("remove", "unlink", "rmdir"):
    yield announced(name, "remove", _path_in_folder)
  yield announced("mkdir", "mkdir", _path_in_folder)
  yield announced("fsync", "fsync", _path_of_descriptor)
  opened = _announced_open(announce, builtins.open)
  yield builtins, "open", opened
  yield io, "open", opened


def _path_in_folder(path, *_, dir_fd=None, **__) -> str:
  folder = "" if dir_fd is None else _path_of_descriptor(dir_fd)
  return os.path.join(folder, os.fspath(path))


def _path_of_descriptor(descriptor: int) -> str:
  return os.readlink(f"/proc/self/fd/{descriptor}")


class _AnnouncedFile(io.FileIO):
  """A file that announces each write in the middle of it."""

  def __init__(self, file, mode, announce, **more):
    super().__init__(file, mode, **more)
    self._announce = announce

  def write(self, data) -> int:
    data = memoryview(data).cast("B")
    half = super().write(data[: len(data) // 2])
    self._announce("write", _path_of_descriptor(self.fileno()))
    return half + super().write(data[half:])


def _announced_open(announce, original):
  """`open` whose files announce that they are opened to be written, and what is written."""

  def function(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, **more):
    if not set(mode) & set("wax+") or isinstance(file, int):
      return original(file, mode, buffering, encoding, errors, newline, **more)
    announce("open", os.fspath(file))
    raw_mode = mode.replace("b", "").replace("t", "")
    raw = _AnnouncedFile(file, raw_mode, announce, **more)
    if buffering == 0:
      return raw
    buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(
      raw, buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
    )
    return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

  return function


def _tensorflow_patches(announce) -> Iterator[tuple[Any, str, Callable]]:
  """The same of TensorFlow, if a program uses it: `tf.io.gfile`, records, checkpoints."""
  if "tensorflow" not in sys.modules:
    return
  import tensorflow as tf
  from tensorflow.python.lib.io import _pywrap_file_io as native

  def clearly(kind, path):
    """An error as TensorFlow reports it."""
    try:
      announce(kind, os.fsdecode(path))
    except OSError as error:
      is_full = error.errno == errno.ENOSPC
      kind_of_error = tf.errors.ResourceExhaustedError if is_full else tf.errors.UnknownError
      raise kind_of_error(None, None, f"{os.fsdecode(path)}; {error.strerror}") from None

  def announced(name, kind, position):
    original = getattr(native, name)

    def function(*args, **kwargs):
      clearly(kind, args[position])
      return original(*args, **kwargs)

    return native, name, function

  yield announced("CreateDir", "mkdir", 0)
  yield announced("RecursivelyCreateDir", "mkdir", 0)
  yield announced("RenameFile", "rename", 1)
  yield announced("DeleteFile", "remove", 0)
  native_file, save = native.WritableFile, tf.raw_ops.SaveV2

  class AnnouncedGFile:
    def __init__(self, path, mode):
      clearly("open", path)
      self._path, self._file = path, native_file(path, mode)

    def append(self, data):
      clearly("write", self._path)
      self._file.append(data)

    def __getattr__(self, name):
      return getattr(self._file, name)

  class AnnouncedRecordWriter(tf.io.TFRecordWriter):
    def __init__(self, path, options=None):
      clearly("open", path)
      super().__init__(path, options)
      self._path = path

    def write(self, record):
      clearly("write", self._path)
      super().write(record)

    def close(self):
      clearly("write", self._path)
      super().close()

  def announced_save(prefix, **kwargs):
    clearly("open", prefix)
    save(prefix=prefix, **kwargs)
    clearly("write", prefix)

  yield native, "WritableFile", AnnouncedGFile
  yield tf.io, "TFRecordWriter", AnnouncedRecordWriter
  yield tf.raw_ops, "SaveV2", announced_save


# ---------------------------------------------------------------------------------------------
# Errors.


class Failure(contextlib.AbstractContextManager):
  """A block in which the n-th operation of some kinds ends with an error.

  A full disk stays full to the end of the block; any other error strikes once.

  Attributes:
    operation: which one failed first, or None.
  """

  def __init__(self, folder, code: int, nth: int, kinds=KINDS):
    self._code, self._nth, self._kinds = code, nth, kinds
    self._count = 0
    self._watch = watch(folder, self._before)
    self.operation: Operation | None = None

  def __enter__(self):
    self._watch.__enter__()
    return self

  def __exit__(self, *exc_info):
    self._watch.__exit__(None, None, None)

  def __str__(self):
    return f"{errno.errorcode[self._code]} at operation {self._nth}, {self.operation}"

  def _before(self, operation: Operation) -> None:
    if operation.kind not in self._kinds:
      return
    self._count += 1
    lasts = self._code == errno.ENOSPC and operation.kind in ("open", "write", "mkdir")
    if self._count == self._nth or (self._count > self._nth and lasts):
      self.operation = self.operation or operation
      # As the system has it: what works on a descriptor knows no name.
      name = [] if operation.kind in ("write", "fsync") else [operation.path]
      raise OSError(self._code, os.strerror(self._code), *name)


def every_failure(folder, code: int, kinds=KINDS, step: int = 1) -> Iterator[Failure]:
  """Yields failures at the 1st, 2nd, ... operation, up to the first that no operation reaches.

  `code` is of the error, such as `errno.EIO`; with a step of 3 it is every third operation.
  """
  nth = 1
  while True:
    failure = Failure(folder, code, nth, kinds)
    yield failure
    if failure.operation is None:
      return
    nth += step


# ---------------------------------------------------------------------------------------------
# Deaths.


class Loss(enum.Enum):
  """What is lost with a process, or with the machine under it."""

  PROCESS = "nothing that the system was given"
  CONTENTS = "what was written to a file since it was forced to disk; its name is there"
  NAMES = "names that a folder got since it was forced to disk"


@contextlib.contextmanager
def die_at(folder, nth: int) -> Iterator[None]:
  """Ends the process, without any clean-up, ahead of its n-th operation, removals included."""
  count = 0

  def before(_):
    nonlocal count
    count += 1
    if count == nth:
      os._exit(EXIT_CODE)

  with watch(folder, before):
    yield


def states_of_death(
  program: Callable[[], Any], folder, states, loss: Loss = Loss.PROCESS
) -> tuple[list[pathlib.Path], int]:
  """Runs a program, and keeps in `states` those of a folder if it died at any moment.

  Returns the copies, each different from the one before, and the number of moments.
  """
  folder, states = pathlib.Path(folder).resolve(), pathlib.Path(states)
  found: list[pathlib.Path] = []
  disk = _Disk(folder)
  moments, last = 0, None

  def keep():
    nonlocal last
    tree = disk.after(loss)
    if tree != last:
      last = tree
      found.append(states / f"{moments:04}")
      _make(tree, found[-1])

  def before(operation):
    nonlocal moments
    moments += 1
    keep()
    if operation.kind == "fsync":
      disk.force(operation.path)

  with watch(folder, before):
    program()
  moments += 1
  keep()
  return found, moments


_Tree = dict  # name -> bytes of a file, or the tree of a folder


class _Disk:
  """What of a folder has been forced to disk; all of it at first."""

  def __init__(self, root: pathlib.Path):
    self._root = root
    self._contents: dict[int, bytes] = {}  # inode -> content of a file
    self._names: dict[int, dict[str, int]] = {}  # inode -> content of a folder
    self._folders: set[int] = set()
    self._open: list[int] = []  # Keeps the numbers of inodes from being used again.
    for path in [root, *root.rglob("*")]:
      self.force(path)

  def force(self, path) -> None:
    """What `fsync` of a path does, just before it happens."""
    path = pathlib.Path(path)
    if not path.exists():  # a nameless file
      return
    inode = path.stat().st_ino
    self._open.append(os.open(path, os.O_RDONLY))
    if path.is_dir():
      self._folders.add(inode)
      self._names[inode] = {entry.name: entry.inode() for entry in os.scandir(path)}
      self._folders |= {entry.inode() for entry in os.scandir(path) if entry.is_dir()}
    else:
      self._contents[inode] = path.read_bytes()

  def after(self, loss: Loss) -> _Tree:
    """What is there after a death."""
    if loss is Loss.NAMES:
      return self._durable(self._root.stat().st_ino)
    return self._present(self._root, loss)

  def _present(self, folder, loss) -> _Tree:
    tree = {}
    for entry in os.scandir(folder):
      if entry.is_dir(follow_symlinks=False):
        tree[entry.name] = self._present(entry.path, loss)
        continue
      content = pathlib.Path(entry.path).read_bytes()
      is_lost = loss is Loss.CONTENTS and self._contents.get(entry.inode()) != content
      tree[entry.name] = b"" if is_lost else content
    return tree

  def _durable(self, inode: int) -> _Tree:
    return {
      name: self._durable(each) if each in self._folders else self._contents.get(each, b"")
      for name, each in self._names.get(inode, {}).items()
    }

  def __del__(self):
    for descriptor in self._open:
      with contextlib.suppress(OSError):
        os.close(descriptor)


def _make(tree: _Tree, folder: pathlib.Path) -> None:
  folder.mkdir(parents=True)
  for name, content in tree.items():
    if isinstance(content, bytes):
      (folder / name).write_bytes(content)
    else:
      _make(content, folder / name)


# ---------------------------------------------------------------------------------------------
# Comparing.


def contents(folder, ignore: Callable[[str], bool] = lambda name: False) -> dict[str, str]:
  """Relative path -> hash of content, of all files below a folder, hidden ones included."""
  folder = pathlib.Path(folder)
  return {
    str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
    for path in sorted(folder.rglob("*"))
    if path.is_file() and not ignore(path.name)
  }


def fresh_copy(source, target) -> pathlib.Path:
  """`target` as a copy of `source`, whatever it was before."""
  shutil.rmtree(target, ignore_errors=True)
  shutil.copytree(source, target, symlinks=True)
  return pathlib.Path(target)
