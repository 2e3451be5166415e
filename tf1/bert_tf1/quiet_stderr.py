"""Keeps lines of TensorFlow's graph optimizer that look like failures out of the log of good runs.

Where the optimizer cannot sort a graph, it says `topological sort failed` or `layout failed` as an
error, leaves the graph as it is, and the run is right. TF_CPP_MIN_LOG_LEVEL cannot tell them from
real errors, so what C++ writes to stderr goes through a second process. Being one, it passes on the
last words of a process that is aborted, too. What Python writes takes the direct way.
"""

import atexit
import contextlib
import os
import re
import signal
import subprocess
import sys

_HARMLESS = re.compile(rb"\S+ [^\]]*\b(?:dependency|meta)_optimizer\.cc:\d+\] ")
_BEGINS_A_LINE_OF_CPP = re.compile(rb"[EW]0|\d{4}-")


def start() -> None:
  """Lets this process's stderr through, but for those lines, until it ends.

  TF_CPP_MIN_LOG_LEVEL=0 or 1 in the environment shows them all.
  """
  if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2") in ("0", "1") or not _is_direct(sys.stderr):
    return
  try:
    reader = subprocess.Popen(
      [sys.executable, "-I", "-S", __file__], stdin=subprocess.PIPE, start_new_session=True
    )
  except OSError:  # No process is to be had: all lines are shown.
    return
  direct = os.dup(2)
  sys.stderr.flush()
  sys.stderr = open(  # noqa: SIM115  (open as long as the process is)
    direct, "w", 1, encoding=sys.stderr.encoding, errors=sys.stderr.errors, closefd=False
  )
  os.dup2(reader.stdin.fileno(), 2)
  reader.stdin.close()
  atexit.register(_end, reader, direct)


def _is_direct(stream) -> bool:
  """Tells whether a stream writes to the process's stderr, and to nothing that a caller put."""
  try:
    return stream.fileno() == 2
  except (AttributeError, OSError, ValueError):
    return False


def _end(reader: subprocess.Popen, direct: int) -> None:
  """Waits until all is passed on; not long, for a process that goes on may hold the pipe."""
  os.dup2(direct, 2)
  with contextlib.suppress(subprocess.TimeoutExpired):
    reader.wait(timeout=1)


def _pass_on() -> None:
  """Copies stdin to stderr without the harmless lines; the program of the second process."""
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # Windows' Ctrl-C reaches it, session or not.
  rest = b""
  while True:
    read = os.read(0, 1 << 16)
    *lines, rest = (rest + read).split(b"\n")
    for line in lines:
      if not _HARMLESS.match(line):
        os.write(2, line + b"\n")
    if rest and not (read and _BEGINS_A_LINE_OF_CPP.match(rest)):  # A bar that is still growing.
      os.write(2, rest)
      rest = b""
    if not read:
      return


if __name__ == "__main__":
  _pass_on()
