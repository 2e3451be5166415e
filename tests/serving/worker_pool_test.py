"""Batches, their failures, and processes that are started again. No process is started here.

Alone: python -m pytest tests/serving/worker_pool_test.py (a second); real processes:
tests/serving/channel_test.py
"""

import asyncio
import contextlib

import pytest

from bert.serving import worker_pool
from bert.serving.errors import BackendError, NotReady, Overloaded, WorkerDied
from bert.serving.events import Events
from bert.serving.row_queue import RowQueue
from bert.serving.worker_pool import PoolOptions, WorkerPool
from tests.kit.made_up_engines import RAISES, Channel, engine_load


class Heard(Events):
  """Notes the events."""

  def __init__(self):
    self.batches, self.restarts, self.last_queue = [], 0, None

  def batch(self, model, rows, tokens, seconds):
    self.batches.append(tokens)

  def queue(self, model, requests, tokens):
    self.last_queue = (requests, tokens)

  def worker_restarted(self, model):
    self.restarts += 1


pytestmark = pytest.mark.usefixtures("channels")


@contextlib.asynccontextmanager
async def pool_of(events=None, **options):
  pool = WorkerPool("sums", [engine_load()], PoolOptions(**options), events)
  await pool.start()
  try:
    yield pool
  finally:
    await pool.stop()


async def sums(pool, *rows):
  found = await pool.compute(0, [{"input_ids": row} for row in rows], list(map(len, rows)))
  return [int(outputs["sum"][()]) for outputs in found.outputs]


async def settle():
  for _ in range(10):
    await asyncio.sleep(0)


async def until(condition):
  for _ in range(1000):
    if condition():
      return
    await asyncio.sleep(0.002)
  raise AssertionError("it did not happen")


def test_rows_of_one_request_and_of_several():
  async def main():
    heard = Heard()
    async with pool_of(heard) as pool:
      assert await sums(pool, [1, 2], [3]) == [3, 3]
      found = await asyncio.gather(*(sums(pool, [number]) for number in range(5)))
      assert found == [[number] for number in range(5)]
      assert heard.batches == [3, 5]  # what comes together is one batch
      assert heard.last_queue == (0, 0)
      assert (await pool.compute(0, [], [])).outputs == []

  asyncio.run(main())


def test_a_request_whose_turn_does_not_come_is_refused_and_one_that_is_computed_is_not():
  async def main():
    Channel.gate = asyncio.Event()
    async with pool_of(max_wait_s=0.02) as pool:
      computed = asyncio.create_task(sums(pool, [1]))
      await settle()
      with pytest.raises(Overloaded, match=r"has waited 0\.02 s") as caught:
        await sums(pool, [2])
      assert caught.value.retry_after_s == 1
      assert (len(pool.queue), pool.queue.tokens) == (0, 0)
      Channel.gate.set()
      assert await computed == [1]
      assert await sums(pool, [3]) == [3]

  asyncio.run(main())


def test_of_a_batch_that_fails_each_request_is_tried_alone():
  async def main():
    async with pool_of() as pool:
      found = await asyncio.gather(
        *(sums(pool, [1], [number]) for number in (2, RAISES, 3)), return_exceptions=True
      )
      assert (found[0], found[2]) == ([1, 2], [1, 3])
      assert isinstance(found[1], BackendError)
      assert str(found[1]) == f"The model cannot compute this input: a sum of {RAISES}"
      assert len(Channel.all) == 1  # the process goes on
      assert len(Channel.all[0].works) == 4
      assert await sums(pool, [7]) == [7]

  asyncio.run(main())


def test_who_is_gone_is_not_computed():
  async def main():
    Channel.gate = asyncio.Event()
    async with pool_of() as pool:
      first, gone = (asyncio.create_task(sums(pool, [number])) for number in (1, 2))
      await settle()
      later = asyncio.create_task(sums(pool, [3]))
      more = asyncio.create_task(sums(pool, [4]))
      await settle()
      assert len(pool.queue) == 2
      gone.cancel()  # it is being computed
      later.cancel()  # it waits
      await settle()
      assert (len(pool.queue), pool.queue.tokens) == (1, 1)
      Channel.gate.set()
      assert await asyncio.gather(first, more) == [[1], [4]]
      assert Channel.all[0].works == [[[1], [2]], [[4]]]

  asyncio.run(main())


def test_only_what_a_dying_process_computed_is_lost():
  async def main():
    heard = Heard()
    async with pool_of(heard, max_batch_tokens=2) as pool:
      Channel.gate = asyncio.Event()
      lost = [asyncio.create_task(sums(pool, [number])) for number in (1, 2)]
      await settle()
      kept = asyncio.create_task(sums(pool, [3]))
      Channel.compute_errors = [WorkerDied("gone")]
      Channel.gate.set()
      found = await asyncio.gather(*lost, return_exceptions=True)
      assert [type(each) for each in found] == [WorkerDied, WorkerDied]
      assert await kept == [3]
      assert heard.restarts == 1
      assert [channel.is_killed for channel in Channel.all] == [True, False]

  asyncio.run(main())


@pytest.mark.parametrize(
  ("error", "words"),
  [
    (NotReady("no such file"), "no such file"),
    (TypeError("cannot pickle"), "cannot be loaded: TypeError: cannot pickle"),
  ],
)
def test_a_pool_that_cannot_start_says_why_and_leaves_no_process(monkeypatch, error, words):
  original = Channel.start

  async def start(self, timeout_s):
    if self.pid == 101:  # the first one, 100, can
      raise error
    return await original(self, timeout_s)

  async def main():
    monkeypatch.setattr(Channel, "start", start)
    pool = WorkerPool("sums", [engine_load()], PoolOptions(workers=2))
    with pytest.raises(NotReady, match=words):
      await pool.start()
    assert not pool.is_ready
    assert all(channel.is_killed for channel in Channel.all)
    assert len(Channel.all) == 2

  asyncio.run(main())


def test_a_model_that_cannot_be_started_again_refuses_and_pauses(monkeypatch):
  pauses = []
  original = asyncio.sleep

  async def sleep(seconds):
    if seconds:
      pauses.append(seconds)
    await original(0)

  async def main():
    async with pool_of(max_batch_tokens=1) as pool:
      monkeypatch.setattr(worker_pool.asyncio, "sleep", sleep)
      Channel.compute_errors = [WorkerDied("gone")]
      Channel.start_error = NotReady("no memory")
      lost, waiting = (asyncio.create_task(sums(pool, [1])) for _ in range(2))
      while len(pauses) < 20:
        await original(0)
      assert waiting.done()
      with pytest.raises(WorkerDied):
        await lost
      with pytest.raises(NotReady, match="cannot be loaded: no memory"):
        await waiting
      with monkeypatch.context() as patch:
        patch.delattr(RowQueue, "add")  # it is refused at once
        with pytest.raises(NotReady, match="no memory"):
          await sums(pool, [1])
      assert not pool.is_ready
      Channel.start_error = None
      while not pool.is_ready:
        await original(0)
      assert pool.fault is None
      assert await sums(pool, [1]) == [1]

  asyncio.run(main())
  assert pauses[:4] == [0.001, 0.002, 0.004, 0.008]
  assert max(pauses) == worker_pool._LONGEST_PAUSE_S


def test_a_fault_of_the_program_is_not_tried_for_ever(monkeypatch, caplog):
  monkeypatch.setattr(worker_pool, "_FIRST_PAUSE_S", 1e-6)

  async def main():
    async with pool_of() as pool:
      Channel.compute_errors = [WorkerDied("gone")]
      Channel.start_error = KeyError("a mistake")
      with pytest.raises(WorkerDied):
        await sums(pool, [1])
      await asyncio.wait_for(pool._tasks[0], 5)
      assert len(Channel.all) == 1 + worker_pool._MOST_STARTS
      assert not pool.is_ready
      with pytest.raises(NotReady, match="cannot be loaded: KeyError: 'a mistake'"):
        await sums(pool, [1])

  asyncio.run(main())
  assert caplog.messages[-1].count("sums: the process that computes could not be started 8 times")


def test_the_speed_is_that_of_full_batches():
  async def main():
    async with pool_of(max_batch_tokens=100, workers=2) as pool:
      assert pool.tokens_per_second == 2000
      assert pool.wait_s(10) == 0
      pool._learn_speed(100, 1.0)
      after_full = pool.tokens_per_second
      assert 200 < after_full < 1900
      pool._learn_speed(1, 0.05)  # a single token says little
      assert after_full * 0.97 < pool.tokens_per_second < after_full

  asyncio.run(main())
