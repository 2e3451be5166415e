"""The process that computes: rows come through a socket, arrays go back.

  process = context.Process(target=run, args=(connection, engines, threads))

It loads the engines, tries each with a short and a long row, and says that it is ready. It ignores
the signals that stop a server, because the front process still wants the answers to what is queued,
and it ends when the socket does, however the front process ended.
"""

import contextlib
import functools
import os
import pickle
import signal
import socket
import struct
import time
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

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
  devices: Sequence[str] = ()  # of the engines: `cpu` or `gpu`


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


# ---------------------------------------------------------------------------------------------
# What goes through the socket: the size of a pickle, then the pickle. Both ends are processes of
# this program, as with the connections of `multiprocessing`, which pickle too. The socket has no
# name that others could connect to.

_HEAD = struct.Struct("!Q")
HEAD_BYTES = _HEAD.size


def packed(message: NamedTuple) -> bytes:
  """Returns the bytes of a message, with their size before them."""
  content = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
  return _HEAD.pack(len(content)) + content


def unpacked(content: bytes) -> Any:
  """Returns the message; only for what the process at the other end of the socket sent."""
  return pickle.loads(content)


def size_of(head: bytes) -> int:
  """Returns how many bytes come after the first `HEAD_BYTES`."""
  return _HEAD.unpack(head)[0]


def _received(file: BinaryIO) -> Work:
  """Waits for work; an `EOFError` where the socket has ended."""
  head = file.read(HEAD_BYTES)
  if len(head) < HEAD_BYTES:
    raise EOFError
  content = file.read(size_of(head))
  if len(content) < size_of(head):
    raise EOFError
  return unpacked(content)


# ---------------------------------------------------------------------------------------------
# The process.


def run(connection: socket.socket, engines: Sequence[EngineLoad], threads: int | None) -> None:
  """Loads, and computes until the socket ends; the main function of the process.

  Sends `Ready` or `Failed`, and then for each `Work` a `Done` or `Failed`.
  """
  for name in ("SIGINT", "SIGTERM"):
    signal.signal(getattr(signal, name), signal.SIG_IGN)
  try:
    loaded, ready = _loaded(engines, threads)
  except Exception as error:  # whatever it is, the front process has to say it
    with contextlib.suppress(OSError):
      connection.sendall(packed(Failed(reason_of(error))))
    return
  file = connection.makefile("rb")
  try:
    connection.sendall(packed(ready))
    while True:
      work = _received(file)
      connection.sendall(packed(_computed(loaded[work.engine], work.rows)))
  except (EOFError, OSError):
    # Without the end of Python, whose threads and destructors have nothing to save here.
    os._exit(0)


def _loaded(engines: Sequence[EngineLoad], threads: int | None) -> tuple[list[RowBatches], Ready]:
  found, names, devices, speeds = [], [], [], [float("inf")]
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
    devices.append(_device_of(engine))
  return found, Ready(names, speeds[-1], devices)


def _device_of(engine: Any) -> str:
  """Returns `gpu` or `cpu`; TensorFlow computes on the first GPU that it sees."""
  if getattr(engine, "name", "") != "tensorflow":
    return getattr(engine, "device", "cpu")
  import tensorflow as tf

  return "gpu" if tf.config.list_logical_devices("GPU") else "cpu"


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
