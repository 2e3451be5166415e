"""A `python` for tests that run many commands: TensorFlow is imported once, each command is a fork.

  with forked_python.started(folder, environment) as python:
    subprocess.run([python.command, "predict.py", "--init_checkpoint=out"], env=python.environment)

`python.command` connects to a server, which has imported TensorFlow and forks itself: the fork has
the command's arguments, folder, variables and streams, and dies with it. A command starts a new
interpreter instead
- for the first run of each script at the root in a session: each has one start like a user's;
- under variables for TensorFlow or Python that are not the server's: those are read at import;
- for `bert tf1`, which patches what is imported, and for `-m` of other modules.

A run of the sample and its export, see `_KEPT`, are made once in a session and copied where the
same command is given again.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Read when Python starts or TensorFlow and Keras are imported.
_READ_AT_IMPORT = ("TF_", "PYTHON", "KERAS_", "CUDA_", "XLA_", "JAX_", "OMP_")


class Kept(NamedTuple):
  """A command whose result is kept for a session."""

  words: tuple[str, ...]  # of the command, but the flag that names the folder it writes
  flag: str
  default: str | None  # of the flag

  def folder(self, words: list[str]) -> pathlib.Path | None:
    """Returns the folder that a command writes if it is this one, else None."""
    others = words[len(self.words) :]
    if tuple(words[: len(self.words)]) != self.words or len(others) > 1:
      return None
    folder = others[0].removeprefix(self.flag) if others else self.default
    return pathlib.Path(folder) if folder and others != [folder] else None


_KEPT = (
  Kept(("run_classifier.py", "--task_name=MRPC"), "--output_dir=", "output/mrpc_sample"),
  Kept(
    (
      *("export_hub.py", "--init_checkpoint=output/mrpc_sample"),
      *("--vocab_file=samples/vocab.txt", "--bert_config_file=samples/bert_config.json"),
    ),
    "--export_dir=",
    None,
  ),
)


class Python(NamedTuple):
  """What runs commands."""

  command: str  # a program that takes the arguments of `python`
  environment: dict[str, str]  # in which `python` is this program


@contextlib.contextmanager
def started(shared: pathlib.Path, environment: Mapping[str, str]) -> Iterator[Python]:
  """Keeps a server running.

  Args:
    shared: a folder that all servers of a session are given.
    environment: variables of the commands.
  """
  shared.mkdir(exist_ok=True)
  with tempfile.TemporaryDirectory() as folder:  # a socket's path is at most 107 bytes
    command = pathlib.Path(folder) / "python"
    parts = [sys.executable, "-IS", __file__, "run", f"{folder}/socket", str(shared)]
    command.write_text("#!/bin/sh\nexec " + " ".join(map(_quoted, parts)) + ' "$@"\n')
    command.chmod(0o755)
    server = subprocess.Popen(
      [sys.executable, __file__, "serve", f"{folder}/socket"],
      env=environment,
      stdin=subprocess.PIPE,
    )
    path = os.pathsep.join([folder, environment["PATH"]])
    try:
      yield Python(str(command), {**environment, "PATH": path})
    finally:
      server.stdin.close()
      server.wait()


def _quoted(text: str) -> str:
  return "'" + text.replace("'", "'\\''") + "'"


# ---------------------------------------------------------------------------------------------
# The command. It imports nothing but the standard library, and starts in a few milliseconds.


def run(server: str, shared: pathlib.Path, words: list[str]) -> int:
  """Runs `python WORDS`; returns its exit code."""
  script = _script(words)
  for kept in _KEPT:
    folder = kept.folder(words)
    if folder and not folder.exists():
      return _run_once(shared / script, words, folder)
  if script is None or (script in _scripts_at_root() and _is_first(shared / f"{script}.started")):
    os.execv(sys.executable, [sys.executable, *words])
  return _run_in_fork(server, words)


def _script(words: list[str]) -> str | None:
  """Returns what `python WORDS` runs: a script's name, -c or -m; None if a fork cannot run it."""
  if words[:1] == ["-c"]:
    return "-c"
  if words[:2] == ["-m", "bert"]:
    return f"{words[2]}.py" if words[2:] and words[2] != "tf1" else None
  return words[0] if words and words[0].endswith(".py") else None


def _scripts_at_root() -> set[str]:
  return {path.name for path in ROOT.glob("*.py")}


def _is_first(marker: pathlib.Path) -> bool:
  """Returns whether no other process has asked this yet."""
  with contextlib.suppress(FileExistsError):
    os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    return True
  return False


def _run_once(kept: pathlib.Path, words: list[str], folder: pathlib.Path) -> int:
  """Copies what an earlier run of the same command wrote, with its log; the first one runs."""
  with open(f"{kept}.lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not kept.exists():
      _is_first(kept.with_name(f"{kept.name}.started"))
      aside = kept.with_name(f"{kept.name}.new")
      aside.mkdir()
      with open(aside / "out", "w") as out, open(aside / "err", "w") as err:
        code = subprocess.call([sys.executable, *words], stdout=out, stderr=err)
      (aside / "written_to").write_text(str(folder))
      if code:
        _print(aside, folder)
        shutil.rmtree(aside)
        return code
      shutil.copytree(folder, aside / "folder")
      aside.rename(kept)
    else:
      shutil.copytree(kept / "folder", folder)
  _print(kept, folder)
  return 0


def _print(kept: pathlib.Path, folder: pathlib.Path) -> None:
  """Prints the log of a command that was run, with another folder in the place of its own."""
  first = (kept / "written_to").read_text()
  for name, stream in (("out", sys.stdout), ("err", sys.stderr)):
    stream.write((kept / name).read_text("utf-8").replace(first, str(folder)))


def _run_in_fork(server: str, words: list[str]) -> int:
  with socket.socket(socket.AF_UNIX) as connection:
    _connect(connection, server)
    asked = {"words": words, "folder": os.getcwd(), "variables": dict(os.environ)}
    message = json.dumps(asked).encode()
    socket.send_fds(connection, [len(message).to_bytes(4, "big")], (0, 1, 2))
    connection.sendall(message)
    for number in (signal.SIGTERM, signal.SIGINT):
      signal.signal(number, lambda number, _: connection.sendall(bytes([number])))
    answer = connection.recv(1)
  if not answer:
    raise RuntimeError("the server of forked_python.py has ended")
  if answer[0] == _REFUSED:
    os.execv(sys.executable, [sys.executable, *words])
  return answer[0]


def _connect(connection: socket.socket, server: str) -> None:
  """Connects, once the server has imported TensorFlow."""
  import time

  until = time.monotonic() + 300
  while True:
    try:
      return connection.connect(server)
    except OSError:
      if time.monotonic() > until:
        raise
      time.sleep(0.05)


_REFUSED = 255  # no exit code of a program here


# ---------------------------------------------------------------------------------------------
# The server.


def serve(path: str) -> tuple[list[str], str] | None:
  """Forks for each command until standard input ends.

  Returns:
    In a fork, the words of its command and its folder; in the server None, at the end.
  """
  import tensorflow  # noqa: F401  # Only imported: a fork of a TensorFlow that has run would hang.

  own = _read_at_import(os.environ)
  listener = socket.socket(socket.AF_UNIX)
  listener.bind(f"{path}.new")
  listener.listen(16)
  os.rename(f"{path}.new", path)
  running: dict[socket.socket, int] = {}
  while True:
    wait = 0.01 if running else None
    for ready in select.select([sys.stdin, listener, *running], [], [], wait)[0]:
      if ready is sys.stdin:
        for process in running.values():
          os.killpg(process, signal.SIGKILL)
        return None
      if ready is listener:
        connection, _ = listener.accept()
        streams, asked = _received(connection)
        if _read_at_import(asked["variables"]) != own:
          connection.sendall(bytes([_REFUSED]))
          connection.close()
        elif process := os.fork():
          with contextlib.suppress(OSError):  # The fork does this, too; whichever comes first.
            os.setpgid(process, process)
          running[connection] = process
        else:
          for other in (listener, connection, *running):
            other.close()
          _become(streams, asked)
          return asked["words"], asked["folder"]
        for stream in streams:
          os.close(stream)
      else:  # A signal for the command; or its end, and then all that it started ends.
        number = ready.recv(1)
        os.killpg(running[ready], number[0] if number else signal.SIGKILL)
        if not number:
          os.waitpid(running.pop(ready), 0)
          ready.close()
    for connection, process in list(running.items()):
      ended, status = os.waitpid(process, os.WNOHANG)
      if ended:
        code = os.waitstatus_to_exitcode(status)
        with contextlib.suppress(OSError):
          connection.sendall(bytes([code if code >= 0 else 128 - code]))
        connection.close()
        del running[connection]


def _read_at_import(variables: Mapping[str, str]) -> dict[str, str]:
  return {name: v for name, v in variables.items() if name.startswith(_READ_AT_IMPORT)}


def _received(connection: socket.socket) -> tuple[list[int], dict]:
  size, streams, _, _ = socket.recv_fds(connection, 4, 3)
  left, message = int.from_bytes(size, "big"), b""
  while len(message) < left:
    message += connection.recv(left - len(message))
  return streams, json.loads(message)


def _become(streams: list[int], asked: dict) -> None:
  """Makes this fork a process with the streams, folder and variables of a command."""
  os.setpgid(0, 0)
  for number, stream in enumerate(streams):
    os.dup2(stream, number)
    os.close(stream)
  os.chdir(asked["folder"])
  os.environ.clear()
  os.environ.update(asked["variables"])
  if "multiprocessing.process" in sys.modules:  # whose workers start there
    sys.modules["multiprocessing.process"].ORIGINAL_DIR = asked["folder"]


def run_words(words: list[str], folder: str) -> None:
  """Runs `python WORDS` in this process."""
  import runpy
  import types

  if words[0] == "-m":
    sys.path.insert(0, folder)
    sys.argv = words[1:]
    runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    return
  main = types.ModuleType("__main__")
  sys.modules["__main__"] = main
  if words[0] == "-c":
    sys.path.insert(0, "")
    sys.argv = ["-c", *words[2:]]
    source, name = words[1], "<string>"
  else:
    sys.path.insert(0, os.path.dirname(os.path.realpath(words[0])))
    sys.argv = words
    main.__file__ = name = os.path.abspath(words[0])
    with open(name, encoding="utf-8") as file:
      source = file.read()
  exec(compile(source, name, "exec"), main.__dict__)


def main() -> None:
  """Runs a command or the server."""
  task, path, *words = sys.argv[1:]
  if task == "run":
    shared, *words = words
    sys.exit(run(path, pathlib.Path(shared), words))
  sys.path.pop(0)  # This folder: its modules have names that others may import.
  forked = serve(path)
  if forked:
    run_words(*forked)
    sys.exit()  # Ends the fork as a program ends, so that all that it has opened is closed.


if __name__ == "__main__":
  main()
