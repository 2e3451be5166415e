"""A `python` for tests that run many commands: TensorFlow is imported once, each command is a fork.

  with forked_python.started(folder, environment) as python:
    subprocess.run([python.command, "predict.py", "--init_checkpoint=out"], env=python.environment)

`python.command` connects to a server, which has imported TensorFlow and forks itself: the fork has
the command's arguments, folder, variables and streams, and dies with it. A command starts a new
interpreter instead
- for the first run of each script at the root in a session: each has one start like a user's;
- under variables for TensorFlow or Python that are not the server's: those are read at import;
- for `bert tf1`, which patches what is imported, and for `-m` of other modules.

The sample run, `python run_classifier.py --task_name=MRPC`, is made once in a session and copied
where the same command is given again.
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
# The sample run, whose folder may be named with another flag.
_SAMPLE_RUN = ["run_classifier.py", "--task_name=MRPC"]
_OUTPUT = "--output_dir="


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
  command = _command(words)
  if command:
    first, *others = [word for word in command if not word.startswith(_OUTPUT)]
    if [first, *others] == _SAMPLE_RUN:
      folders = [word.removeprefix(_OUTPUT) for word in command if word.startswith(_OUTPUT)]
      folder = pathlib.Path(*folders or ["output/mrpc_sample"])
      if not folder.exists():
        return _copy_sample_run(shared, words, folder)
  if command is None or (first in _scripts_at_root() and _is_first(shared, first)):
    os.execv(sys.executable, [sys.executable, *words])
  return _run_in_fork(server, words)


def _command(words: list[str]) -> list[str] | None:
  """Returns the script's name (or -c) and its words; None for what a fork cannot run."""
  if os.environ.get("KERAS_BACKEND", "tensorflow") != "tensorflow":
    return None
  if words[:2] == ["-m", "bert"] and words[2:] and words[2] != "tf1":
    return [f"{words[2]}.py", *words[3:]]
  return words if words and (words[0] == "-c" or words[0].endswith(".py")) else None


def _scripts_at_root() -> set[str]:
  return {path.name for path in ROOT.glob("*.py")}


def _is_first(shared: pathlib.Path, script: str) -> bool:
  """Returns whether no other process has asked this yet."""
  with contextlib.suppress(FileExistsError):
    os.close(os.open(shared / f"{script}.started", os.O_CREAT | os.O_EXCL))
    return True
  return False


def _copy_sample_run(shared: pathlib.Path, words: list[str], folder: pathlib.Path) -> int:
  """Copies the folder of the session's sample run and prints its log; the first one runs."""
  kept, log = shared / "sample_run", shared / "sample_run.log"
  with open(shared / "sample_run.lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    if kept.exists():
      shutil.copytree(kept, folder)
    else:
      _is_first(shared, _SAMPLE_RUN[0])
      with open(log, "w") as output:
        code = subprocess.call([sys.executable, *words], stdout=output, stderr=output)
      if code:
        print(log.read_text("utf-8"))
        return code
      shutil.copytree(folder, kept)
  print(log.read_text("utf-8"), end="")
  return 0


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

  until = time.monotonic() + 120
  while True:
    try:
      return connection.connect(server)
    except FileNotFoundError:
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
        if number:
          os.kill(running[ready], number[0])
        else:
          os.killpg(running[ready], signal.SIGKILL)
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
