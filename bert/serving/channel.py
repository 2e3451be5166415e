"""A process that computes, as the event loop sees it: one call at a time, awaited.

  channel = Channel(engines, threads=2)
  ready = await channel.start()
  reply = await channel.compute(Work(0, rows), timeout_s=60)
  channel.kill()

Work and answers go through a pair of sockets, which the event loop itself writes and reads, as much
as they take at a time: neither a full one nor a process that was stopped in the middle of an answer
can stop the loop, and no other thread has to wake up for a request. A thread for each process does
what blocks: it starts the process, and waits for its end.
"""

import asyncio
import atexit
import contextlib
import multiprocessing
import multiprocessing.util  # whose own function at exit is registered before ours, and runs later
import socket
import threading
import weakref
from collections.abc import Awaitable, Sequence
from typing import Any

from bert.serving import worker
from bert.serving.errors import NotReady, WorkerDied
from bert.serving.worker import Done, EngineLoad, Failed, Ready, Work

_EXIT_S = 5.0  # that a process takes to be gone once it was killed
_BUFFER_BYTES = 1 << 24  # of an answer: more than a batch usually has
_alive: "weakref.WeakSet[Channel]" = weakref.WeakSet()


class Channel:
  """One process, from its start to its end."""

  def __init__(self, engines: Sequence[EngineLoad], threads: int | None = None):
    """Takes what the process loads, and the number of its threads."""
    self._engines, self._threads = list(engines), threads
    self._process: Any = None
    self._is_killed = False
    self._ended: asyncio.Future  # of the process; its error where it could not start
    self._reader: asyncio.StreamReader
    self._writer: asyncio.StreamWriter | None = None
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
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=_BUFFER_BYTES)
    loop = asyncio.get_running_loop()
    self._ended = loop.create_future()
    threading.Thread(
      target=self._live, args=(theirs, loop), daemon=True, name="bert-worker"
    ).start()
    reply = await self._timed(self._received(), timeout_s)
    if isinstance(reply, Failed):
      self.kill()
      raise NotReady(reply.reason)
    return reply

  async def compute(self, work: Work, timeout_s: float) -> Done | Failed:
    """Sends work, and waits for the answer.

    Raises:
      WorkerDied: the process ended, or took too long and was killed.
    """
    assert self._writer
    self._writer.write(worker.packed(work))  # never waits: what the socket does not take is kept
    return await self._timed(self._received(), timeout_s)

  def kill(self) -> None:
    """Ends the process at once; called in the event loop."""
    self._kill_process()
    if self._writer:
      self._writer.transport.abort()
    _alive.discard(self)

  def _kill_process(self) -> None:
    self._is_killed = True
    if self._process is not None and self._process.is_alive():
      with contextlib.suppress(OSError):
        self._process.kill()

  # -------------------------------------------------------------------------------------------
  # In the event loop.

  async def _timed(self, reply: Awaitable[Any], timeout_s: float) -> Any:
    """Waits for a reply; after a timeout the process is killed, and there is none."""
    is_late = False

    def end() -> None:
      nonlocal is_late
      is_late = True
      self.kill()  # which ends `reply`, too

    timer = asyncio.get_running_loop().call_later(timeout_s, end)
    try:
      return await reply
    except WorkerDied:
      if is_late:
        raise WorkerDied(f"The model took longer than {timeout_s:g} s, and was stopped.") from None
      raise
    finally:
      timer.cancel()

  async def _received(self) -> Any:
    try:
      size = worker.size_of(await self._reader.readexactly(worker.HEAD_BYTES))
      return worker.unpacked(await self._reader.readexactly(size))
    except (asyncio.IncompleteReadError, OSError):
      raise await self._death() from None

  async def _death(self) -> WorkerDied:
    if not self._is_killed:
      await asyncio.wait([self._ended], timeout=_EXIT_S)
    if self._ended.done() and (error := self._ended.exception()):
      raise error
    code = self._process.exitcode
    how = f"by signal {-code}" if code and code < 0 else f"with code {code}"
    return WorkerDied(f"The process that computes ended {how}. It is started again.")

  # -------------------------------------------------------------------------------------------
  # In the thread.

  def _live(self, theirs: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
    """Starts the process, waits for its end, and tells the loop."""
    error = None
    try:
      self._start_process(theirs)
      if self._is_killed:  # before it was there
        self._kill_process()
      self._process.join()
    except Exception as caught:  # whoever waits gets it
      error = caught
    with contextlib.suppress(RuntimeError):  # the loop may be closed
      loop.call_soon_threadsafe(_settle, self._ended, error)

  def _start_process(self, theirs: socket.socket) -> None:
    with theirs:  # it has its own then, with whose end ours ends
      context = multiprocessing.get_context("spawn")
      arguments = (theirs, self._engines, self._threads)
      process = context.Process(target=worker.run, args=arguments, daemon=True)
      process.start()
      self._process = process


def _settle(ended: asyncio.Future, error: Exception | None) -> None:
  if error is None:
    ended.set_result(None)
  else:
    ended.set_exception(error)
    ended.exception()  # nobody may ask for it


@atexit.register
def _kill_all() -> None:
  """Kills what is left, because Python would wait for processes that ignore its signal to end."""
  for channel in list(_alive):
    channel._kill_process()
