"""Windows' rules for this project's code, on Linux: what is missing there, and what is refused.

  BERT_TEST_PLATFORM=windows python -m pytest tests/run_classifier

They hold for calls that come from this project's files, in all Python processes of the run; other
packages, whose wheels for Windows have other code, see Linux as it is. Not here: paths with
backslashes, and what TensorFlow's own code does with files.

- tensorflow_text, fcntl, resource and others cannot be imported; `os` and `signal` lack POSIX's
  names; processes are spawned, never forked. `msvcrt` has its locks.
- A file that is open is neither renamed nor removed nor replaced, and one that is open to read is
  not forced to disk; names have none of the characters that Windows refuses.
- Text without an encoding is refused, lines end in CR LF where `newline` is not given, and stdout
  knows the characters of code page 1252. There is no /proc.
"""

import builtins
import errno
import os
import pathlib
import sys
import types

ROOT = pathlib.Path(__file__).resolve().parents[2]
_OURS = str(ROOT / "bert") + os.sep

MODULES = {
  *("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "syslog", "curses", "readline"),
}
_SIGNALS = {
  *("SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGKILL", "SIGPIPE", "SIGCHLD", "SIGQUIT"),
  *("SIGSTOP", "SIGCONT", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGXCPU", "SIGBUS", "SIGWINCH"),
  *("pause", "alarm", "setitimer", "getitimer", "pthread_sigmask", "pthread_kill", "sigwait"),
  *("siginterrupt", "sigpending", "sigwaitinfo", "sigtimedwait", "ITIMER_REAL"),
}
_FUNCTIONS = {
  *("fork", "forkpty", "nice", "sched_getaffinity", "sched_setaffinity", "sched_yield"),
  *("getuid", "geteuid", "getgid", "getegid", "getgroups", "getpgid", "getpgrp", "getsid"),
  *("setsid", "setpgid", "killpg", "wait", "wait3", "wait4", "waitid", "WNOHANG", "uname"),
  *("chown", "lchown", "fchown", "chroot", "mkfifo", "mknod", "openpty", "ttyname", "ctermid"),
  *("pread", "pwrite", "preadv", "pwritev", "readv", "writev", "sendfile", "posix_fadvise"),
  *("posix_fallocate", "statvfs", "fstatvfs", "sysconf", "confstr", "pathconf", "getloadavg"),
  *("sync", "fdatasync", "lockf", "register_at_fork", "memfd_create", "posix_spawn", "pipe2"),
  *("O_CLOEXEC", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK", "O_SYNC", "O_TMPFILE", "getpriority"),
}


def apply() -> None:
  """Puts the rules in force, until this process ends; once is enough."""
  if hasattr(builtins.open, "of_windows"):
    return
  import fcntl
  import multiprocessing
  import shutil
  import signal

  sys.modules["tensorflow_text"] = None
  multiprocessing.get_all_start_methods = lambda: ["spawn"]
  hidden = {
    "os": _Without(os, _FUNCTIONS, _file_functions(fcntl)),
    "signal": _Without(signal, _SIGNALS, {}),
    "shutil": _Without(shutil, set(), {"rmtree": _rmtree(shutil.rmtree)}),
    "msvcrt": _msvcrt(fcntl),
  }
  builtins.__import__ = _import(builtins.__import__, hidden)
  builtins.open = _open(builtins.open)
  for name in ("read_text", "write_text"):
    setattr(pathlib.Path, name, _with_encoding(getattr(pathlib.Path, name)))


def environment() -> dict[str, str]:
  """Returns variables with which every Python that is started has the rules."""
  site = str(pathlib.Path(__file__).parent / "windows_site")
  paths = [site, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
  return {
    "BERT_TEST_PLATFORM": "windows",
    "PYTHONPATH": os.pathsep.join(dict.fromkeys([*paths, str(ROOT)])),
    "PYTHONIOENCODING": "cp1252",
  }


def _is_ours(file: str | None) -> bool:
  """Tells whether a file is one of the project's; its tests are Linux's."""
  return file is not None and (file.startswith(_OURS) or os.path.dirname(file) == str(ROOT))


class _Without(types.ModuleType):
  """A module that lacks some names and has others in another form."""

  def __init__(self, module, missing, changed):
    super().__init__(module.__name__)
    self.__dict__.update(_module=module, _missing=missing, _changed=changed, _replaced={})

  def __getattr__(self, name):
    if name in self._missing:
      raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name)
    if name in self._changed:
      return self._changed[name]
    return getattr(self._module, name)

  def __setattr__(self, name, value):
    # A test replaces it. It gives it back by deleting: the name is not in `__dict__`.
    form = self._changed.pop(name, None)
    self._replaced.setdefault(name, (form, getattr(self._module, name, None)))
    setattr(self._module, name, value)

  def __delattr__(self, name):
    form, original = self._replaced.pop(name)
    if form is not None:
      self._changed[name] = form
    setattr(self._module, name, original)


def _import(original, hidden):
  def import_(name, scope=None, locals=None, fromlist=(), level=0):
    if level or not scope or not _is_ours(scope.get("__file__")):
      return original(name, scope, locals, fromlist, level)
    top = name.partition(".")[0]
    if top in MODULES:
      raise ModuleNotFoundError(f"No module named {top!r}", name=top)
    if top in hidden and name in (top, f"{top}.path"):
      return hidden[top].path if name != top and fromlist else hidden[top]
    return original(name, scope, locals, fromlist, level)

  return import_


# ---------------------------------------------------------------------------------------------
# Files.


def _refuse(path):
  raise PermissionError(errno.EACCES, "It is open, as Windows has it", os.fspath(path))


def _refuse_open(path) -> None:
  """Refuses a file that this process has open or mapped, or a folder of such files."""
  real = os.path.realpath(path)
  for found in _open_files():
    if found == real or found.startswith(real + os.sep):
      _refuse(path)


def _open_files():
  for number in os.listdir("/proc/self/fd"):
    try:
      yield os.readlink(f"/proc/self/fd/{number}")
    except OSError:
      continue
  with _real_open("/proc/self/maps", encoding="utf-8") as file:
    for line in file:
      if "/" in line:
        yield "/" + line.rstrip("\n").split("/", 1)[1]


_real_open = open


def _file_functions(fcntl):
  def replace(source, target, **options):
    _refuse_open(source)
    _refuse_open(target)
    _check_name(target)
    if os.path.isdir(target):
      _refuse(target)
    os.replace(source, target, **options)

  def rename(source, target, **options):
    if os.path.lexists(target):
      raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(target))
    replace(source, target, **options)

  def remove(path, **options):
    _refuse_open(path)
    os.remove(path, **options)

  def rmdir(path, **options):
    _refuse_open(path)
    os.rmdir(path, **options)

  def fsync(descriptor):
    number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
    is_to_read = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY
    # From folders `os.name` keeps the project on Windows.
    if is_to_read and not os.path.isdir(f"/proc/self/fd/{number}"):
      raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    os.fsync(descriptor)

  def open_(path, *args, **options):
    _check_name(path)
    return os.open(path, *args, **options)

  def makedirs(path, *args, **options):
    _check_name(path)
    os.makedirs(path, *args, **options)

  def symlink(source, target, **options):
    raise OSError(errno.EPERM, "A required privilege is not held", os.fspath(target))

  return dict(
    replace=replace,
    rename=rename,
    remove=remove,
    unlink=remove,
    rmdir=rmdir,
    fsync=fsync,
    open=open_,
    makedirs=makedirs,
    mkdir=lambda path, *args: (_check_name(path), os.mkdir(path, *args))[1],
    symlink=symlink,
  )


def _check_name(path) -> None:
  text = os.fsdecode(path) if not isinstance(path, int) else ""
  if set(text) & set('<>:"|?*\\') or (text.endswith((".", " ")) and text.strip("./")):
    raise OSError(errno.EINVAL, "Windows refuses such a name", text)
  if text.startswith(("/proc/", "/sys/")):
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), text)


def _open(original):
  def open_(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, *args, **more):
    if _is_ours(sys._getframe(1).f_globals.get("__file__")):
      _check_name(file)
      if "b" not in mode:
        if encoding is None:
          raise EncodingWarning(f"{file} is text of no encoding: of Windows' code page there.")
        if newline is None and set(mode) & set("wax+"):
          newline = "\r\n"
    return original(file, mode, buffering, encoding, errors, newline, *args, **more)

  open_.of_windows = True
  return open_


def _with_encoding(method):
  def call(self, *args, **options):
    if _is_ours(sys._getframe(1).f_globals.get("__file__")) and "encoding" not in options:
      raise EncodingWarning(f"{self} is text of no encoding: of Windows' code page there.")
    return method(self, *args, **options)

  return call


def _rmtree(original):
  def rmtree(path, ignore_errors=False, **options):
    try:
      _refuse_open(path)
    except PermissionError:
      if ignore_errors:
        return
      raise
    original(path, ignore_errors, **options)

  return rmtree


# ---------------------------------------------------------------------------------------------
# Locks.


def _msvcrt(fcntl):
  """`msvcrt.locking` by Linux's locks of open files, which belong to no process either."""
  import struct

  module = types.ModuleType("msvcrt")
  module.LK_UNLCK, module.LK_LOCK, module.LK_NBLCK = 0, 1, 2

  def locking(descriptor, mode, size):
    kind = fcntl.F_WRLCK if mode else fcntl.F_UNLCK
    lock = struct.pack("hhqqi4x", kind, os.SEEK_CUR, 0, size, 0)
    command = fcntl.F_OFD_SETLKW if mode == module.LK_LOCK else fcntl.F_OFD_SETLK
    try:
      fcntl.fcntl(descriptor, command, lock)
    except BlockingIOError:
      raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None

  module.locking = locking
  return module
