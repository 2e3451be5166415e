"""Programs run side by side: a fixed number at a time, logged, stopped together, none left behind.

with stop_signals() as stop, exclusive(folder) as lock:
  run_jobs([Job(["python", "one.py"], folder, on_end)], parallel=2, stop=stop)
"""

import collections
import contextlib
import dataclasses
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from bert.io import file_locks, installation
from bert.training.stop_signals import StopSignals

LOG_FILE = "run.log"
POLL_SECONDS = 0.05


@dataclasses.dataclass
class Job:
  """A process to run."""

  command: Sequence[str]  # program and arguments
  folder: str  # where its log goes; exists
  # Called with its exit code (negative: the signal that ended it) and its seconds; not called if it
  # stopped because of a signal that was passed on.
  on_end: Callable[[int, float], None]


def stop_signals() -> StopSignals:
  """Notes Ctrl-C, SIGTERM and SIGHUP, for `run_jobs` to pass on to its processes."""
  known = [getattr(signal, name, None) for name in ("SIGINT", "SIGTERM", "SIGHUP")]
  return StopSignals(
    # Windows has no SIGHUP. Ignored signals stay ignored: `nohup` and `&` rely on it.
    [number for number in known if number and signal.getsignal(number) != signal.SIG_IGN],
    "waiting for the running processes to save; once more ends them at once",
    once=False,
  )


def run_jobs(
  jobs: Iterable[Job],
  parallel: int,
  stop: StopSignals,
  gpus: Sequence[str] = (),
  locked_file: int | None = None,
) -> None:
  """Runs processes side by side; returns when all have ended.

  After a signal no further process is started. Those that run receive the signal, on which
  `run_classifier.py` saves and ends; a second signal ends them at once.

  Args:
    jobs: what to run, in this order.
    parallel: the number of processes at a time.
    stop: the signals that have come.
    gpus: numbers for CUDA_VISIBLE_DEVICES; neighbours get different ones.
    locked_file: descriptor that the processes inherit: its lock is free when the last has ended.
  """
  waiting = collections.deque(jobs)
  running: dict[int, _Process] = {}  # slot -> process
  try:
    while running or (waiting and not stop.received):
      while waiting and not stop.received and len(running) < parallel:
        slot = next(slot for slot in range(parallel) if slot not in running)
        gpu = gpus[slot % len(gpus)] if gpus else None
        running[slot] = _Process(waiting.popleft(), gpu, locked_file)
      for process in running.values():
        process.pass_on(stop.received)
      for slot in [slot for slot, process in running.items() if process.has_ended()]:
        running.pop(slot).report()
      time.sleep(POLL_SECONDS)
  finally:  # No process is left behind, whatever failed here.
    for process in running.values():
      process.kill()


@dataclasses.dataclass(frozen=True)
class Processes:
  """How the processes of a sweep are run; see `run_jobs`."""

  parallel: int  # their number at a time
  gpus: Sequence[str]  # numbers of the GPUs over which they are spread; empty: each sees all
  stop: StopSignals  # the signals that have come
  locked_file: int | None  # descriptor of the sweep's lock, see `exclusive`

  def run(self, jobs: Iterable[Job]) -> None:
    """Runs processes side by side; returns when all have ended."""
    run_jobs(jobs, self.parallel, self.stop, self.gpus, self.locked_file)

  def run_one(self, command: Sequence[str], folder: str) -> str | None:
    """Runs one process; returns why it failed, "" after a signal, None if it succeeded."""
    codes: list[int] = []
    os.makedirs(folder, exist_ok=True)
    self.run([Job(command, folder, lambda code, _: codes.append(code))])
    if not codes:
      return ""
    return reason_of_failure(folder, codes[0]) if codes[0] else None


class _Process:
  """A job that runs."""

  def __init__(self, job: Job, gpu: str | None, locked_file: int | None):
    self._job = job
    self._passed_on = 0
    self._begin = time.monotonic()
    environment = installation.importable_environment()
    if gpu is not None:
      environment["CUDA_VISIBLE_DEVICES"] = gpu
    with open(os.path.join(job.folder, LOG_FILE), "ab") as log:
      self._process = subprocess.Popen(
        job.command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        env=environment,
        # A session of its own: Ctrl-C at the terminal reaches it only through `pass_on`, once.
        start_new_session=True,
        pass_fds=() if locked_file is None or os.name == "nt" else (locked_file,),
      )

  def pass_on(self, received: Sequence[int]) -> None:
    """Passes the first signal on; a second one ends the process."""
    if len(received) > self._passed_on:
      self._passed_on = len(received)
      if self._passed_on > 1:
        self._process.kill()
      elif os.name == "nt":
        pass  # No session of its own there: the terminal's Ctrl-C has reached it, too.
      else:  # SIGHUP says that our terminal is gone; the process has none of its own.
        is_interrupt = received[0] == signal.SIGINT
        self._process.send_signal(signal.SIGINT if is_interrupt else signal.SIGTERM)

  def has_ended(self) -> bool:
    return self._process.poll() is not None

  def report(self) -> None:
    if not self._passed_on or self._process.returncode == 0:
      self._job.on_end(self._process.returncode, time.monotonic() - self._begin)

  def kill(self) -> None:
    self._process.kill()
    self._process.wait()


@contextlib.contextmanager
def exclusive(output_dir: str) -> Iterator[int]:
  """Keeps a second sweep out of `output_dir`; yields a descriptor for `run_jobs`.

  The lock is inherited: should this process be killed, it lasts until the last run has ended; on
  Windows until it is killed.

  Raises:
    ValueError: another command of many runs, or a run of one, holds the folder.
  """
  with open(os.path.join(output_dir, ".lock"), "ab") as file:
    if not file_locks.try_lock(file.fileno(), of_process=False):
      raise ValueError(
        f"--output_dir={output_dir} is in use by another command of many runs, or by runs that "
        "one has left behind. Wait until it ends, or end it."
      )
    yield file.fileno()


def reason_of_failure(folder: str, code: int) -> str:
  """Explains why a run ended with `code`: its error message, else its last line."""
  if code < 0:
    name = signal.Signals(-code).name
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"ended by {name}{hint}"
  try:
    with open(os.path.join(folder, LOG_FILE), encoding="utf-8", errors="replace") as reader:
      lines = [line.strip() for line in collections.deque(reader, 200) if line.strip()]
  except OSError:
    lines = []
  errors = [line for line in lines if line.startswith("ERROR: ")]
  last = errors[-1].removeprefix("ERROR: ") if errors else lines[-1] if lines else ""
  return f"exit code {code}: {last}" if last else f"exit code {code}"
