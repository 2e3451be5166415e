"""Real processes that compute: what they send back, how they end, and that none is left.

Alone: python -m pytest tests/serving/channel_test.py (seconds; no TensorFlow)
"""

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import sys
import time

import pytest

from bert.io import installation
from bert.serving.channel import Channel
from bert.serving.errors import NotReady, WorkerDied
from bert.serving.worker import Done, EngineLoad, Failed, Work
from tests.kit import made_up_engines
from tests.kit.made_up_engines import DIES, HANGS, RAISES


@contextlib.asynccontextmanager
async def started(**options):
  channel = Channel([made_up_engines.engine_load()], **options)
  ready = await channel.start(timeout_s=60)
  try:
    yield channel, ready
  finally:
    channel.kill()


def work(*rows):
  return Work(0, [{"input_ids": list(row)} for row in rows])


async def sums(channel, *rows, timeout_s=60.0):
  reply = await channel.compute(work(*rows), timeout_s)
  return [int(outputs["sum"]) for outputs in reply.outputs(len(rows))]


def is_running(pid):
  try:
    os.kill(pid, 0)
  except ProcessLookupError:
    return False
  return True


def wait_until_gone(pid):
  end = time.monotonic() + 20
  while is_running(pid):
    assert time.monotonic() < end, "the process is still there"
    time.sleep(0.02)


def test_a_process_computes_fails_and_goes_on():
  async def main():
    async with started() as (channel, ready):
      assert ready.names == ["sums"]
      assert ready.tokens_per_second > 0
      # Rows of like lengths are computed together, and come back in their order.
      reply = await channel.compute(work([1] * 60, [2], [1] * 61, [3]), 60)
      assert isinstance(reply, Done)
      assert [indexes for indexes, _ in reply.batches] == [[1, 3], [0, 2]]
      assert [int(outputs["sum"]) for outputs in reply.outputs(4)] == [60, 2, 61, 3]
      reply = await channel.compute(work([1], [RAISES]), 60)
      assert reply == Failed(f"FloatingPointError: a sum of {RAISES}")
      for name in ("SIGINT", "SIGTERM"):  # a whole group gets them when the server stops
        os.kill(channel.pid, getattr(signal, name))
      assert await sums(channel, [4, 5]) == [9]
      pid = channel.pid
    wait_until_gone(pid)

  asyncio.run(main())


def test_what_a_dying_process_computed_fails():
  async def main():
    async with started() as (channel, _):
      with pytest.raises(WorkerDied, match="ended by signal 9"):
        await sums(channel, [DIES])
      with pytest.raises(WorkerDied):  # and so does what comes later
        await sums(channel, [1])

  asyncio.run(main())


def test_a_process_that_hangs_is_killed():
  async def main():
    async with started() as (channel, _):
      with pytest.raises(WorkerDied, match=r"longer than 0\.2 s"):
        await sums(channel, [HANGS], timeout_s=0.2)
      wait_until_gone(channel.pid)

  asyncio.run(main())


def test_a_stopped_process_does_not_stop_the_loop():
  async def main():
    async with started() as (channel, _):
      os.kill(channel.pid, signal.SIGSTOP)
      large = [[1] * 100_000] * 3  # more than a pipe holds
      waiting = asyncio.create_task(sums(channel, *large, timeout_s=1.0))
      turns = 0
      while not waiting.done():
        await asyncio.sleep(0.01)
        turns += 1
      assert turns > 10
      with pytest.raises(WorkerDied):
        await waiting

  asyncio.run(main())


def test_an_engine_that_cannot_be_loaded_says_why(tmp_path):
  (tmp_path / "number").write_text("none")
  load = EngineLoad(functools.partial(made_up_engines.load, str(tmp_path / "number")), {}, [])

  async def main():
    with pytest.raises(NotReady, match="number holds no number"):
      await Channel([load]).start(timeout_s=60)

  asyncio.run(main())


_FRONT = """
import asyncio, os, sys
from bert.serving.channel import Channel
from tests.kit import made_up_engines

async def main():
  channel = Channel([made_up_engines.engine_load()])
  await channel.start(timeout_s=60)
  print(channel.pid, flush=True)

if __name__ == "__main__":
  asyncio.run(main())
  {how}
"""


@pytest.mark.parametrize("how", ["pass", "os.kill(os.getpid(), 9)"], ids=["ends", "is killed"])
def test_no_process_outlives_the_front(how, tmp_path):
  script = tmp_path / "front.py"
  script.write_text(_FRONT.replace("{how}", how))
  environment = installation.importable_environment()
  run = subprocess.run(
    [sys.executable, script], stdout=subprocess.PIPE, env=environment, timeout=60, check=False
  )
  wait_until_gone(int(run.stdout))
