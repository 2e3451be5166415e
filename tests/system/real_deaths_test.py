"""Processes that really die, and system calls that really fail: nothing is lost or half there.

Slow, most of an hour: python -m pytest -m slow -rP tests/system/real_deaths_test.py
"""

import functools
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.kit import faults
from tests.kit.fault_trials import LONG_TRAINING, PROGRAMS, Trial
from tests.kit.paths import ROOT

pytestmark = pytest.mark.slow

# A process that has imported everything and forks for each run, before TensorFlow's runtime starts.
# It reads lines of JSON, and prints the number of each child, then how it ended. A child waits for
# a file to appear, so that strace can be attached before.
_SERVER = """
import contextlib, json, os, pathlib, sys, time, traceback
sys.path.insert(0, sys.argv[1])
from tests.kit import fault_trials, faults

def work(program, folder, die_at, go, log):
  while not os.path.exists(go):
    time.sleep(0.005)
  out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
  os.dup2(out, 1)
  os.dup2(out, 2)
  dying = faults.die_at(folder, die_at) if die_at else contextlib.nullcontext()
  try:
    with dying:
      fault_trials.PROGRAMS[program].run(pathlib.Path(folder))
  except (OSError, ValueError) as error:
    os.write(2, f"ERROR: {error}".encode())
    os._exit(1)
  except BaseException:
    os.write(2, traceback.format_exc().encode())
    os._exit(3)
  os._exit(0)

print("ready", flush=True)
for line in sys.stdin:
  child = os.fork()
  if not child:
    work(**json.loads(line))
  print(child, flush=True)
  print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Server:
  """Runs programs in processes of their own; see `_SERVER`."""

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self._process = subprocess.Popen(
      [sys.executable, "-c", _SERVER, str(ROOT)],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      text=True,
    )
    assert self._answer() == "ready"
    self.log, self.trace = folder / "log", folder / "trace"

  def _answer(self) -> str:
    return self._process.stdout.readline().strip()

  def run(self, program, folder, die_at=0, inject=None, kill_when=None) -> int:
    """Runs a program to its end, which may be violent; returns the exit code.

    Args:
      program: one of `PROGRAMS`.
      folder: where it writes.
      die_at: see `faults.die_at`; 0 for never.
      inject: what strace is to do, such as `fsync:error=EIO:when=3`.
      kill_when: a function; once it returns True, the program is killed.
    """
    go = self._folder / "go"
    go.unlink(missing_ok=True)
    request = {"program": program, "folder": str(folder), "die_at": die_at, "go": str(go)}
    self._process.stdin.write(json.dumps({**request, "log": str(self.log)}) + "\n")
    self._process.stdin.flush()
    child = int(self._answer())
    tracer = self._trace(child, inject) if inject else None
    go.touch()
    if kill_when:
      while not kill_when():
        time.sleep(0.005)
      os.kill(child, signal.SIGKILL)
    code = int(self._answer())
    if tracer:
      tracer.wait(timeout=60)
    return code

  def _trace(self, child: int, inject: str) -> subprocess.Popen:
    calls = inject.split(":")[0]
    command = ["strace", "-f", "-y", "-o", str(self.trace), "-e", f"trace={calls}"]
    tracer = subprocess.Popen(
      [*command, "-e", f"inject={inject}", "-p", str(child)], stderr=subprocess.PIPE, text=True
    )
    told = tracer.stderr.readline()
    if "attached" not in told:
      os.kill(child, signal.SIGKILL)
      self._answer()
      pytest.skip(f"strace cannot attach to a process here: {told.strip()}")
    return tracer

  def close(self) -> None:
    self._process.stdin.close()
    self._process.wait(timeout=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
  server = Server(tmp_path_factory.mktemp("server"))
  yield server
  server.close()


@pytest.mark.parametrize("name", ["data", "vectors", "results", "export", "training"])
def test_a_real_death_leaves_what_was_foretold(server, tmp_path, name):
  """Copies of a folder before each operation stand for deaths: here are the deaths."""
  trial = Trial(PROGRAMS[name], tmp_path / "trial")
  deaths = 0
  while True:
    faults.fresh_copy(trial._seed, trial.work)
    code = server.run(name, trial.work, die_at=deaths + 1)
    if code == 0:
      break
    assert code == faults.EXIT_CODE, server.log.read_text()
    deaths += 1
    trial._check_whole(f"death {deaths}")
    trial._check_second_run(f"death {deaths}")
  faults.fresh_copy(trial._seed, trial.work)
  run = functools.partial(PROGRAMS[name].run, trial.work)
  _, moments = faults.states_of_death(run, trial.work, tmp_path / "states")
  assert moments == deaths + 1  # the last of them is the end of the run
  print(f"faults tried: {deaths} real deaths of {name}; none lost, none unreadable")


def newest_step(folder) -> int:
  return max(int(path.stem.rpartition("-")[2]) for path in folder.glob("model.ckpt-*.index"))


def test_fifty_kills_at_random_moments(server, tmp_path):
  """Each of them somewhere after a checkpoint more: while a step runs, or while the next is saved.

  `tests/system/run_pretraining_kill_test.py` does it to a whole script.
  """
  trial = Trial(LONG_TRAINING, tmp_path / "trial")
  faults.fresh_copy(trial._seed, trial.work)
  rng, reached = random.Random(1), []
  for _ in range(50):
    reached.append(newest_step(trial.work))

    def is_time(step=reached[-1]):
      if newest_step(trial.work) <= step:  # fewer, while that step is written once more
        return False
      time.sleep(rng.uniform(0.0, 0.03))
      return True

    code = server.run("long training", trial.work, kill_when=is_time)
    assert code == -signal.SIGKILL, server.log.read_text()[-2000:]
    trial._check_whole(f"killed {len(reached)} times")
  assert reached == sorted(reached)
  trial._check_second_run("the end")
  print(f"killed {len(reached)} times, from step {reached[0]} to {newest_step(trial.work)}")


# What is done to a program, as strace has it; a program may die or be told of an error.
INJECTIONS = [
  ("write,pwrite64,writev", "error=ENOSPC"),
  ("write,pwrite64,writev", "error=EIO"),
  ("write,pwrite64,writev", "signal=KILL"),
  ("fsync,fdatasync", "error=EIO"),
  ("fsync,fdatasync", "signal=KILL"),
  ("rename,renameat,renameat2", "error=EIO"),
  ("rename,renameat,renameat2", "signal=KILL"),
  ("mkdir,mkdirat", "error=ENOSPC"),
  ("mkdir,mkdirat", "signal=KILL"),
]


@pytest.mark.parametrize(("calls", "what"), INJECTIONS)
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "long training"])
def test_system_calls(server, tmp_path, name, calls, what):
  """The n-th call of each thread and process fails, or is the last: also those of C++."""
  if not shutil.which("strace"):
    pytest.skip("there is no strace: apt-get install strace")
  trial = Trial(PROGRAMS[name], tmp_path / "trial")
  tried = nth = 0
  while True:
    nth += 1
    faults.fresh_copy(trial._seed, trial.work)
    code = server.run(name, trial.work, inject=f"{calls}:{what}:when={nth}")
    trace = server.trace.read_text()
    injected = [line for line in trace.splitlines() if "(INJECTED)" in line or "SIGKILL" in line]
    if not injected:
      break
    here = [line for line in injected if str(trial.work) in line]
    is_kill = what == "signal=KILL"
    tried += bool(here) or is_kill
    about = f"{calls}, {what}, {nth}, exit code {code}: {server.log.read_text()[-2000:]} {here}"
    trial._check_whole(about)
    if is_kill:
      assert code != 0 or name == "data of workers", about
    elif here:
      assert code in (0, 1), about
      if code == 1:
        assert str(trial.work) in server.log.read_text(), about
      else:
        assert trial._program.facts(trial.work) == trial._facts, about
    trial._check_second_run(about)
  print(f"faults tried: {tried} of {name}, {calls}, {what}; none lost, none unreadable")
