"""The process that computes: rows come through a pipe, arrays go back.

  process = context.Process(target=run, args=(pipe, engines, threads))

It loads the engines, tries each with a short and a long row, and says that it is ready. It ignores
the signals that stop a server, because the front process still wants the answers to what is queued,
and it ends when the pipe does, however the front process ended.
"""

import contextlib
import functools
import os
import signal
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

import numpy as np

from bert.predicting.row_batches import LikeLengths, RowBatches

Row = Mapping[str, Any]


class EngineLoad(NamedTuple):
  """An engine that is to be loaded."""

  load: functools.partial  # called with `threads`
  padding: Mapping[str, int]
  trials: Sequence[tuple[Row, int]]  # rows for the first calls, and the tokens of each


class Work(NamedTuple):
  """Rows for one engine."""

  engine: int  # its place among the engines
  rows: list[Row]


class Ready(NamedTuple):
  """The engines are loaded and tried."""

  names: list[str]  # of the engines
  tokens_per_second: float  # of the slowest, with its longest row


class Done(NamedTuple):
  """The outputs of rows: of each batch the indexes of its rows, and arrays `[R, ...]` by name."""

  batches: list[tuple[list[int], dict[str, np.ndarray]]]
  seconds: float  # of the computation

  def outputs(self, num_rows: int) -> list[dict[str, np.ndarray]]:
    """Returns those of each row, in the order of the rows."""
    found: list[dict[str, np.ndarray]] = [{} for _ in range(num_rows)]
    for indexes, arrays in self.batches:
      for place, index in enumerate(indexes):
        found[index] = {name: array[place] for name, array in arrays.items()}
    return found


class Failed(NamedTuple):
  """What cannot be loaded, or computed."""

  reason: str


def run(pipe: Connection, engines: Sequence[EngineLoad], threads: int | None) -> None:
  """Loads, and computes until the pipe ends; the main function of the process.

  Sends `Ready` or `Failed`, and then for each `Work` a `Done` or `Failed`.
  """
  for name in ("SIGINT", "SIGTERM"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
  try:
    loaded, ready = _loaded(engines, threads)
  except Exception as error:  # whatever it is, the front process has to say it
    with contextlib.suppress(OSError):
      pipe.send(Failed(reason_of(error)))
    return
  try:
    pipe.send(ready)
    while True:
      work = pipe.recv()
      pipe.send(_computed(loaded[work.engine], work.rows))
  except (EOFError, OSError):
    # Without the end of Python, whose threads and destructors have nothing to save here.
    os._exit(0)


def _loaded(engines: Sequence[EngineLoad], threads: int | None) -> tuple[list[RowBatches], Ready]:
  found, names, speeds = [], [], [float("inf")]
  for each in engines:
    engine = each.load(threads=threads)
    batches = RowBatches(engine, engine.inputs, batch_shapes=LikeLengths(), padding=each.padding)
    for row, tokens in each.trials:
      for _ in range(2):  # the first call also plans memory
        start = time.perf_counter()
        batches([row])
        seconds = time.perf_counter() - start
      speeds.append(tokens / max(seconds, 1e-6))
    found.append(batches)
    names.append(getattr(engine, "name", ""))
  return found, Ready(names, speeds[-1])


def _computed(batches: RowBatches, rows: list[Row]) -> Done | Failed:
  start = time.perf_counter()
  try:
    found = list(batches.batches(rows))
  except Exception as error:  # of engines, which have many classes; the process can go on
    return Failed(reason_of(error))
  return Done(found, time.perf_counter() - start)


def reason_of(error: BaseException) -> str:
  """Returns an error as one line."""
  text = " ".join(str(error).split()) or "no reason is known"
  known = isinstance(error, ValueError | OSError | ImportError | MemoryError)
  return text if known else f"{type(error).__name__}: {text}"
