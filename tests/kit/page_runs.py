"""Runs the commands of a page as a reader types them, and compares the output that it shows.

A block of `text` shows output of the block before it. Its lines must be there, whatever numbers
they hold, since these differ between machines; `...` stands for what was left out.
Commands that start `python` or `bert` run as forks, see `forked_python`.
"""

import collections
import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

from benchmarks.http_load import free_port
from tests.kit.documents import FAILS, Block, blocks
from tests.kit.forked_python import Python
from tests.kit.paths import ROOT

# The marker of a block whose last line starts serve.py, in another terminal.
SERVER = "a server: the blocks below ask it"
_NUMBER = re.compile(r"\d[\d,.:]*(?:e[-+]?\d+)?")


def make_like_a_checkout(folder: pathlib.Path) -> None:
  """Links scripts, samples, examples and tests into a folder where commands may write."""
  names = ("bert", "tf1", "samples", "examples", "benchmarks", "tests", "tools")
  for path in [*ROOT.glob("*.py"), *(ROOT / name for name in names)]:
    (folder / path.name).symlink_to(path)
  (folder / "output").mkdir()


def run_page(page: pathlib.Path, folder: pathlib.Path, python: Python) -> None:
  """Runs a page's blocks in order, all but those whose marker says why not.

  A block marked `fails: ...` must fail; a server that a block starts lasts until the page's end.
  """
  ports = _Ports()
  output = None  # of the block before, if it was run
  with contextlib.ExitStack() as servers:
    for block in blocks(page):
      where = f"{page.name}:{block.line}"
      if block.language == "text" and not block.marker:
        check_shown(block, output, where)
      elif _is_run(block):
        output = run_code(ports.in_place(block.code), block, folder, python, where)
      else:
        output = None
      if block.marker.startswith(SERVER):
        servers.enter_context(served(block.code, ports.of("8080"), folder, python))


@contextlib.contextmanager
def served(code: str, port: int, folder: pathlib.Path, python: Python) -> Iterator[None]:
  """Keeps the serve.py of the last line of `code` running at another port."""
  log = folder / f"server_{port}.log"
  with log.open("wb") as out:
    process = subprocess.Popen(
      ["bash", "-c", f"exec {code.strip()} --port={port}"],
      cwd=folder,
      env=python.environment,
      stdout=out,
      stderr=out,
    )
    try:
      _wait_until_ready(process, port, log)
      yield
    finally:
      process.send_signal(signal.SIGTERM)
      assert process.wait(60) == 0, log.read_text("utf-8")[-3000:]


def environment() -> dict[str, str]:
  """Of the commands: this Python comes first, and says less."""
  path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
  kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
  return kept | {"PATH": path, "TF_CPP_MIN_LOG_LEVEL": "3"}


class _Ports:
  """Free ports in the place of those that a page names, the same throughout the page."""

  def __init__(self):
    self._found: dict[str, int] = collections.defaultdict(free_port)

  def of(self, named: str) -> int:
    return self._found[named]

  def in_place(self, code: str) -> str:
    return re.sub(r"(?<=localhost:)\d+", lambda found: str(self.of(found[0])), code)


def _is_run(block: Block) -> bool:
  return block.language in ("bash", "python") and block.marker[: len(FAILS)] in ("", FAILS)


def run_code(code: str, block: Block, folder: pathlib.Path, python: Python, where: str = "") -> str:
  """Runs a block's code, with its ports in place; returns what it prints."""
  shell = ["bash", "-euo", "pipefail", "-c", f'bert() {{ python -m bert "$@"; }}\n{code}']
  done = subprocess.run(
    shell if block.language == "bash" else [python.command, "-c", code],
    cwd=folder,
    env=python.environment,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    timeout=900,
  )
  failed = done.returncode != 0
  assert failed == block.marker.startswith(FAILS), f"{where}\n{done.stdout[-5000:]}"
  assert "Ignoring the unknown flag" not in done.stdout, where
  return done.stdout


def check_shown(block: Block, output: str | None, where: str) -> None:
  """Checks that each line of a `text` block is in the output before it, whatever its numbers."""
  assert output is not None, f"{where} shows output, but the block before it is not run."
  said = [_without_numbers(line) for line in output.splitlines()]
  for line in block.code.splitlines():
    parts = [re.escape(part) for part in _without_numbers(line).split("...")]
    pattern = re.compile(".*".join(parts))
    assert any(map(pattern.fullmatch, said)), f"{where}: no output is like {line!r}\n{output}"


def _without_numbers(line: str) -> str:
  return " ".join(_NUMBER.sub("N", line.replace("...", "\0")).replace("\0", "...").split())


def _wait_until_ready(process: subprocess.Popen, port: int, log: pathlib.Path) -> None:
  until = time.monotonic() + 120
  while time.monotonic() < until and process.poll() is None:
    with contextlib.suppress(OSError, urllib.error.URLError):
      if urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).status == 200:
        return
    time.sleep(0.2)
  raise AssertionError(log.read_text("utf-8")[-3000:])
