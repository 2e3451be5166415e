"""Engines that add up numbers, and fail as they are asked to; models and processes around them.

  models = ServedModels({"sums": folder}, find=made_up_engines.find)
  (await models.find().compute("answers", ["1 2 3"])).results       # [6]

All of it can be sent to other processes. `Channel` computes in this one, for tests of what is
around the processes: `monkeypatch.setattr(worker_pool, "Channel", made_up_engines.Channel)`.
"""

import asyncio
import functools
import os
import pathlib
import signal
import time
from typing import ClassVar

import numpy as np

from bert.predicting.processors import ItemRows, Processor
from bert.predicting.servable import Ability, Servable
from bert.serving.worker import Done, EngineLoad, Failed, Ready

RAISES, DIES, HANGS = -1, -2, -3  # numbers that the engine cannot compute
LENGTH = 16


class Sums:
  """The sum of each row, and the process that computed it."""

  name = "sums"
  inputs = ("input_ids",)

  def __init__(self, added: int = 0):
    self._added = added

  def __call__(self, batch):
    ids = batch["input_ids"]
    if (ids == RAISES).any():
      raise FloatingPointError(f"a sum of {RAISES}")
    if (ids == DIES).any():
      os.kill(os.getpid(), signal.SIGKILL)
    if (ids == HANGS).any():
      time.sleep(600)
    return {"sum": ids.sum(axis=1) + self._added, "pid": np.full(len(ids), os.getpid())}


def load(path: str | None = None, threads: int | None = None) -> Sums:
  """Loads the engine, which adds the number in a file to each sum."""
  del threads
  text = pathlib.Path(path).read_text() if path else "0"
  if not text.strip().isdigit():
    raise ValueError(f"{path} holds no number")
  return Sums(int(text))


class Numbers(Processor):
  """A text of numbers to their sum; words are refused."""

  max_seq_length = LENGTH

  def featurize(self, item):
    return ItemRows(item, [{"input_ids": list(map(int, item.split()))}])

  def finish(self, rows, outputs):
    return int(outputs[0]["sum"])

  def trial_items(self):
    return ["1", "1 " * LENGTH]


def find(folder: str) -> Servable:
  """Finds the model in the file `number` of a folder."""
  path = os.path.join(folder, "number")
  if not os.path.exists(path):
    raise ValueError(f"{folder} holds no number")
  engine = functools.partial(load, path)
  found = {
    "answers": Ability("answers", Numbers(), engine),
    "vectors": Ability("vectors", Numbers(), engine),
    "attention": Ability("attention", Numbers(), functools.partial(load, path), is_lazy=True),
  }
  return Servable(folder, found, None, None, "sums", "float32", (path,))


def die(*_: object) -> None:
  """Ends this process as the system does that lacks memory."""
  os.kill(os.getpid(), signal.SIGKILL)


def engine_load(path: str | None = None) -> EngineLoad:
  """An engine as a process gets it."""
  return EngineLoad(functools.partial(load, path), {}, [({"input_ids": [1]}, 1)])


class Channel:
  """Stands for a process; `Channel.all` has every one, `works` what it computed.

  A work waits while `gate` is closed.
  """

  all: ClassVar[list["Channel"]] = []
  gate: ClassVar[asyncio.Event | None] = None
  start_error: ClassVar[Exception | None] = None
  compute_errors: ClassVar[list[Exception]] = []  # of the next works

  def __init__(self, engines, threads=None):
    self.engines, self.threads = engines, threads
    self.works: list[list[list[int]]] = []
    self.is_killed = False
    self.pid = 100 + len(self.all)
    self.all.append(self)

  @classmethod
  def reset(cls) -> None:
    """Forgets what was."""
    cls.all, cls.compute_errors, cls.start_error, cls.gate = [], [], None, None

  async def start(self, timeout_s):
    if self.start_error is not None:
      raise self.start_error
    self.loaded = [each.load() for each in self.engines]
    return Ready([each.name for each in self.loaded], 1000.0)

  async def compute(self, work, timeout_s):
    self.works.append([row["input_ids"] for row in work.rows])
    if self.gate is not None:
      await self.gate.wait()
    if self.compute_errors:
      raise self.compute_errors.pop(0)
    outputs = []
    for index, row in enumerate(work.rows):
      try:
        found = self.loaded[work.engine]({"input_ids": np.array([row["input_ids"]])})
      except FloatingPointError as error:
        return Failed(str(error))
      outputs.append(([index], found))
    return Done(outputs, 0.001)

  def kill(self):
    self.is_killed = True
