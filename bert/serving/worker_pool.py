"""Processes that compute the rows of one queue, and are started again when they die.

  pool = WorkerPool("mrpc", engines, PoolOptions(workers=2))
  await pool.start()
  found = await pool.compute(0, rows, lengths)      # rows of a request, in a batch or in several
  await pool.stop()

A batch is what waits when a process has nothing to do, as many rows as its tokens allow: nobody
waits for company. What happens to a batch that fails:

- the engine raises: each of its requests is tried alone, once; the one that fails has the error;
- the process dies, or takes longer than `batch_timeout_s` and is killed: all of its requests fail,
  those in the queue wait for the next process.
"""

import asyncio
import math
import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from bert.serving.channel import Channel
from bert.serving.errors import BackendError, NotReady, Overloaded, ServingError
from bert.serving.events import Events
from bert.serving.row_queue import Batch, Part, Request, Row, RowQueue
from bert.serving.worker import Done, EngineLoad, Work, reason_of

_FIRST_PAUSE_S = 0.5  # before a process that could not start, or died soon, is started again
_LONGEST_PAUSE_S = 30.0
_SOON_S = 10.0  # a process that lives longer was a good one
_MOST_STARTS = 8  # that fail one after the other by a fault of this program, in about a minute
_WEIGHT = 0.1  # of the newest batch in the average speed


class PoolOptions(NamedTuple):
  """How a pool works."""

  workers: int = 1  # processes
  threads: int | None = None  # of each; None for one for each core
  max_batch_tokens: int = 2048
  max_wait_s: float = math.inf  # in the queue, until the first row is taken
  batch_timeout_s: float = 60.0
  start_timeout_s: float = 600.0  # for loading and first trials


class Computed(NamedTuple):
  """The outputs of the rows of a request."""

  outputs: list[dict[str, np.ndarray]]
  queue_s: float  # until the first row was taken
  inference_s: float  # of all batches with one of its rows


class WorkerPool:
  """The processes, and their queue; used from one event loop.

  Attributes:
    queue: the rows that wait.
    names: of the engines, once a process is ready.
    fault: why no process can start; None where one can.
  """

  def __init__(
    self,
    model: str,
    engines: Sequence[EngineLoad],
    options: PoolOptions | None = None,
    events: Events | None = None,
  ):
    """Takes the name of the model for events, and what each process loads."""
    self.options = options or PoolOptions()
    self.queue = RowQueue(self.options.max_batch_tokens)
    self.names: list[str] = []
    self._devices: Sequence[str] = ()
    self.fault: str | None = None
    self._model, self._engines = model, list(engines)
    self._events = events or Events()
    self._channels: list[Channel] = []  # those that are ready
    self._tasks: list[asyncio.Task] = []
    self._idle: list[asyncio.Future] = []  # of processes that wait for rows
    self._started: asyncio.Future | None = None
    self._tokens_per_second = 0.0  # of one process

  @property
  def is_ready(self) -> bool:
    """Whether a process can compute now."""
    return bool(self._channels)

  @property
  def pids(self) -> list[int]:
    """The numbers of the processes that are ready."""
    return [channel.pid for channel in self._channels if channel.pid]

  @property
  def tokens_per_second(self) -> float:
    """How fast all processes compute; 0 where it is not known yet."""
    return self._tokens_per_second * self.options.workers

  def wait_s(self, tokens: int) -> float:
    """Returns how long a request of N tokens would wait, if it came now, in seconds."""
    return self.compute_s(self.queue.tokens_ahead(tokens))

  def compute_s(self, tokens: int) -> float:
    """Returns how long all processes would compute a request of N tokens, in seconds."""
    return tokens / self.tokens_per_second if self.tokens_per_second else 0.0

  def device_of(self, engine: int) -> str:
    """Returns what the engine at a place computes on, `cpu` or `gpu`."""
    return self._devices[engine] if self._devices else "cpu"

  async def start(self) -> None:
    """Starts the processes, and waits until all are ready.

    Raises:
      NotReady, WorkerDied: one cannot start; the text says why. None is left then.
    """
    self._started = asyncio.get_running_loop().create_future()
    self._tasks = [asyncio.create_task(self._keep()) for _ in range(self.options.workers)]
    try:
      await self._started
    except ServingError:
      await self.stop()
      raise

  async def compute(self, engine: int, rows: Sequence[Row], lengths: Sequence[int]) -> Computed:
    """Computes rows; if it is cancelled they leave the queue at once.

    Args:
      engine: the place of the engine among those of the pool.
      rows: of the request.
      lengths: the tokens of each row.

    Raises:
      BackendError: the engine fails at these rows.
      Overloaded: the rows have waited too long; so they do when the processes become slower than
        they were when the request was taken.
      WorkerDied: the process that computed them died.
      NotReady: no process can start.
    """
    if not rows:
      return Computed([], 0.0, 0.0)
    if self.fault and not self.is_ready:
      raise NotReady(self.fault)
    loop = asyncio.get_running_loop()
    request = Request(engine, rows, lengths, loop.create_future())
    came = time.monotonic()
    self.queue.add(request)
    self._tell_queue()
    self._wake()
    limit_s = self.options.max_wait_s
    timer = loop.call_later(limit_s, self._expire, request) if limit_s < math.inf else None
    try:
      await request.future
    finally:
      if timer:
        timer.cancel()
      self._leave(request)
    taken = request.taken_at or came
    return Computed(request.outputs, taken - came, request.inference_s)

  async def stop(self) -> None:
    """Ends the processes; requests that wait fail."""
    for task in self._tasks:
      task.cancel()
    await asyncio.gather(*self._tasks, return_exceptions=True)
    self._tasks = []
    self._fail_waiting("The server stops.")

  # -------------------------------------------------------------------------------------------
  # A process.

  async def _keep(self) -> None:
    """Starts a process, feeds it, and starts another one when it is gone; for ever.

    What the process itself reports, such as too little memory, may pass. A fault of this program
    that keeps processes from starting does not: after some attempts it is left at that.
    """
    pause, faults = 0.0, 0
    while True:
      began = time.monotonic()
      channel = Channel(self._engines, self.options.threads)
      try:
        await self._bring_up(channel)
        faults = 0
        await self._feed(channel)
      except ServingError as error:
        if self._is_first_failure(error):
          return
        logging.error("%s: %s", self._model, error)
      except Exception as error:  # a fault of this program; the model is still to be served
        logging.exception("%s: the process that computes is lost.", self._model)
        if self._is_first_failure(NotReady(f"The model cannot be loaded: {reason_of(error)}")):
          return
        faults += channel not in self._channels
        if faults == _MOST_STARTS:
          logging.error(
            "%s: the process that computes could not be started %d times and is given up. Start "
            "the server again, or report the error above.",
            *(self._model, faults),
          )
          return
      finally:
        self._dismiss(channel)
      self._events.worker_restarted(self._model)
      lived_long = time.monotonic() - began > _SOON_S and not self.fault
      pause = 0.0 if lived_long else min(_LONGEST_PAUSE_S, max(_FIRST_PAUSE_S, 2 * pause))
      await asyncio.sleep(pause)

  async def _bring_up(self, channel: Channel) -> None:
    try:
      ready = await channel.start(self.options.start_timeout_s)
    except Exception as error:
      if not self.is_ready:
        reason = str(error) if isinstance(error, ServingError) else reason_of(error)
        self.fault = f"The model cannot be loaded: {reason}"
        self._fail_waiting(self.fault)
      raise
    self.fault, self.names, self._devices = None, ready.names, ready.devices
    self._tokens_per_second = self._tokens_per_second or ready.tokens_per_second
    self._channels.append(channel)
    started = self._started
    if started and not started.done() and len(self._channels) == self.options.workers:
      started.set_result(None)

  def _is_first_failure(self, error: ServingError) -> bool:
    """Tells `start` of an error, if it still waits."""
    if self._started is None or self._started.done():
      return False
    self._started.set_exception(error)
    return True

  def _dismiss(self, channel: Channel) -> None:
    channel.kill()
    if channel in self._channels:
      self._channels.remove(channel)

  async def _feed(self, channel: Channel) -> None:
    """Gives batches to a process until it dies.

    Raises:
      WorkerDied: it has.
    """
    while True:
      batch = await self._next_batch()
      try:
        await self._compute_batch(channel, batch)
      except BaseException as error:
        known = isinstance(error, ServingError)
        for request, _ in batch.parts:
          self._fail(request, error if known else NotReady("The server stops."))
        raise
      finally:
        self._tell_queue()

  async def _next_batch(self) -> Batch:
    while True:
      batch = self.queue.take()
      if batch is not None:
        self._note_taken(batch)
        return batch
      future = asyncio.get_running_loop().create_future()
      self._idle.append(future)
      try:
        await future
      finally:
        if future in self._idle:
          self._idle.remove(future)

  def _note_taken(self, batch: Batch) -> None:
    now = time.monotonic()
    for request, _ in batch.parts:
      request.taken_at = request.taken_at or now
    self._tell_queue()
    if len(self.queue):
      self._wake()  # another process, if one waits

  # -------------------------------------------------------------------------------------------
  # A batch.

  async def _compute_batch(self, channel: Channel, batch: Batch) -> None:
    reply = await self._exchange(channel, batch)
    if isinstance(reply, Done):
      self._deliver(batch, reply)
    elif len(batch.parts) == 1:
      self._refuse(batch.parts[0].request, reply.reason)
    else:
      logging.warning("%s: a batch failed, its requests are tried alone: %s", self._model, reply)
      for part in batch.parts:
        if part.request.is_open:
          await self._compute_batch(channel, _alone(part))

  async def _exchange(self, channel: Channel, batch: Batch):
    start = time.monotonic()
    work = Work(batch.engine, batch.rows())
    reply = await channel.compute(work, self.options.batch_timeout_s)
    seconds = time.monotonic() - start
    self._events.batch(self._model, len(work.rows), batch.tokens, seconds)
    if isinstance(reply, Done):
      self._learn_speed(batch.tokens, seconds)
    return reply

  def _learn_speed(self, tokens: int, seconds: float) -> None:
    """Averages over tokens: a batch counts as much as it has of a full one."""
    weight = _WEIGHT * min(1.0, tokens / self.options.max_batch_tokens)
    known = self._tokens_per_second
    # Seconds per token, not the reverse, are averaged: what counts is the time of many batches.
    pace = (1 - weight) / known + weight * seconds / tokens if known else seconds / tokens
    self._tokens_per_second = 1 / max(pace, 1e-9)

  def _deliver(self, batch: Batch, done: Done) -> None:
    for request, _ in batch.parts:
      request.inference_s += done.seconds
    outputs = done.outputs(sum(len(part.indexes) for part in batch.parts))
    for (request, index), its_outputs in zip(batch.places(), outputs, strict=True):
      if request.is_open and request.put(index, its_outputs) and not request.future.done():
        request.future.set_result(None)

  def _refuse(self, request: Request, reason: str) -> None:
    self._fail(request, BackendError(f"The model cannot compute this input: {reason}"))

  def _expire(self, request: Request) -> None:
    if request.taken_at is None:
      waited = f"The request has waited {self.options.max_wait_s:g} s, and it is not its turn yet."
      self._fail(request, Overloaded(waited, retry_after_s=1))

  def _fail(self, request: Request, error: BaseException) -> None:
    self._leave(request)
    if not request.future.done():
      request.future.set_exception(error)

  def _fail_waiting(self, reason: str) -> None:
    for request in self.queue.remove_all():
      self._fail(request, NotReady(reason))
    self._tell_queue()

  def _leave(self, request: Request) -> None:
    self.queue.remove(request)
    self._tell_queue()

  def _wake(self) -> None:
    """Wakes a process that waits for rows."""
    while self._idle:
      future = self._idle.pop()
      if not future.done():
        future.set_result(None)
        return

  def _tell_queue(self) -> None:
    self._events.queue(self._model, len(self.queue), self.queue.tokens)


def _alone(part: Part) -> Batch:
  tokens = sum(part.request.lengths[index] for index in part.indexes)
  return Batch(part.request.engine, [part], tokens)
