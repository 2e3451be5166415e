"""A process that computes, as the event loop sees it: one call at a time, awaited.

  channel = Channel(engines, threads=2)
  ready = await channel.start()
  reply = await channel.compute(Work(0, rows), timeout_s=60)
  channel.kill()

A thread for each process sends and receives, so that neither a full pipe nor a process that was
stopped in the middle of an answer can stop the event loop.
"""

import asyncio
import atexit
import contextlib
import multiprocessing
import multiprocessing.util  # whose own function at exit is registered before ours, and runs later
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from bert.serving.errors import NotReady, WorkerDied
from bert.serving.worker import Done, EngineLoad, Failed, Ready, Work, run

_EXIT_S = 5.0  # that a process takes to be gone once it was killed
_alive: "weakref.WeakSet[Channel]" = weakref.WeakSet()


class Channel:
  """One process, from its start to its end."""

  def __init__(self, engines: Sequence[EngineLoad], threads: int | None = None):
    """Takes what the process loads, and the number of its threads."""
    self._engines, self._threads = list(engines), threads
    self._process: Any = None
    self._pipe: Any = None
    self._calls: queue.SimpleQueue = queue.SimpleQueue()
    self._thread = threading.Thread(target=self._serve, daemon=True, name="bert-worker")
    _alive.add(self)

  @property
  def pid(self) -> int | None:
    """The number of the process."""
    return self._process.pid if self._process else None

  async def start(self, timeout_s: float) -> Ready:
    """Starts the process, and waits until it is ready.

    Raises:
      WorkerDied: it ended, or took too long.
      NotReady: it cannot load the engines; the text says why.
    """
    self._thread.start()
    reply = await self._call(self._started, timeout_s)
    if isinstance(reply, Failed):
      self.kill()
      raise NotReady(reply.reason)
    return reply

  async def compute(self, work: Work, timeout_s: float) -> Done | Failed:
    """Sends work, and waits for the answer.

    Raises:
      WorkerDied: the process ended, or took too long and was killed.
    """
    return await self._call(lambda: self._exchanged(work), timeout_s)

  def kill(self) -> None:
    """Ends the process at once."""
    if self._process is not None and self._process.is_alive():
      with contextlib.suppress(OSError):
        self._process.kill()
    self._calls.put(None)
    _alive.discard(self)

  # -------------------------------------------------------------------------------------------
  # In the event loop.

  async def _call(self, function: Callable[[], Any], timeout_s: float) -> Any:
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    self._calls.put((function, loop, future))
    done, _ = await asyncio.wait([future], timeout=timeout_s)
    if not done:
      self.kill()
      raise WorkerDied(f"The model took longer than {timeout_s:g} s, and was stopped.")
    return future.result()

  # -------------------------------------------------------------------------------------------
  # In the thread.

  def _serve(self) -> None:
    while (call := self._calls.get()) is not None:
      function, loop, future = call
      try:
        result, error = function(), None
      except Exception as caught:  # whoever waits gets it
        result, error = None, caught
      with contextlib.suppress(RuntimeError):  # the loop may be closed
        loop.call_soon_threadsafe(_settle, future, result, error)
      del call, function, result, error  # which would keep the rows until the next call
    if self._process is not None:
      self._process.kill()  # if it was not there yet when `kill` was called
      self._process.join(_EXIT_S)
      self._pipe.close()

  def _started(self) -> Any:
    context = multiprocessing.get_context("spawn")
    self._pipe, theirs = context.Pipe()
    arguments = (theirs, self._engines, self._threads)
    self._process = context.Process(target=run, args=arguments, daemon=True)
    self._process.start()
    theirs.close()  # so that the end of the process ends the pipe
    return self._received()

  def _exchanged(self, work: Work) -> Any:
    try:
      self._pipe.send(work)
    except OSError:
      raise self._death() from None
    return self._received()

  def _received(self) -> Any:
    try:
      return self._pipe.recv()
    except (EOFError, OSError):
      raise self._death() from None

  def _death(self) -> WorkerDied:
    self._process.join(_EXIT_S)
    code = self._process.exitcode
    how = f"by signal {-code}" if code and code < 0 else f"with code {code}"
    return WorkerDied(f"The process that computes ended {how}. It is started again.")


def _settle(future: asyncio.Future, result: Any, error: Exception | None) -> None:
  """Gives a result or an error to whoever waits, if anybody still does."""
  if future.done():
    return
  if error is None:
    future.set_result(result)
  else:
    future.set_exception(error)
    future.exception()  # nobody may ask for it after a timeout


@atexit.register
def _kill_all() -> None:
  """Kills what is left, because Python would wait for processes that ignore its signal to end."""
  for channel in list(_alive):
    channel.kill()
