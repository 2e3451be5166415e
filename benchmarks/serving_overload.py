"""The server at twice the load that it can take, while its workers are killed.

  python benchmarks/serving_overload.py --weights=uncased_L-12_H-768_A-12 --squad_dir=squad \\
    --mrpc=glue/MRPC --seconds=600

First the load that it can take is measured with 64 clients. Then requests come at twice that rate,
whatever the server answers, and SIGKILL ends a worker every --kill_every_s seconds. All of it stays
on this machine, and ends by itself. It prints

  statuses     answers by status: 200; 429 where the queue is full; 503 of requests that were in the
               hands of a killed worker; 0 of broken connections, which must be none
  wrong        vectors that differ from `Predictor`'s by more than 1e-4, of every --check_every-th
  p50, p99     of accepted requests, in ms
  after kill   requests with 503, and seconds until the next answer of status 200, for each kill
  memory       of the server and its workers, MB, at the end of each tenth of the time

and a JSON line.
"""

import argparse
import collections
import itertools
import json
import os
import pathlib
import signal
import statistics
import sys
import tempfile
import threading
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import common, http_load, serving  # noqa: E402


def main():
  args = _parse()
  texts = serving.mixed_texts(args.mrpc, args.squad_dir)
  with tempfile.TemporaryDirectory() as folder:
    export = serving.export(args.weights, folder)
    expected = _expected(export, texts)
    server = serving.ours(export, "float32", f"--workers={args.workers}")
    bodies = [json.dumps(server.body(text)).encode() for text in texts]
    with serving.running(server.command, server.path, server.body(serving.PROBE)) as port:
      http_load.run(port, server.path, bodies, clients=8, seconds=5)
      replies = http_load.run(port, server.path, bodies, clients=64, seconds=15)
      capacity = http_load.speed(replies, 15)
      print(f"{capacity:.1f} texts/s with 64 clients", file=sys.stderr)
      check = _Check(server, expected, args.check_every)
      watch = _Watch(port, args.seconds, args.kill_every_s)
      watch.start()
      replies = http_load.run(
        *(port, server.path, bodies, args.clients, args.seconds),
        keep=check,
        rate=2 * capacity,
      )
      watch.join()
  _report(args, capacity, replies, check, watch)


def _expected(export: str, texts: list[str]) -> np.ndarray:
  """Computes the vectors of all texts without a server, float32 `[N, W]`, of length 1."""
  from bert.predicting.predictor import Predictor

  predictor = Predictor.load(export, "onnxruntime", max_seq_length=serving.MAX_SEQ_LENGTH)
  vectors = np.stack(predictor(texts))
  return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


class _Check:
  """Compares some answers with what they should be, and keeps none of them."""

  def __init__(self, server: serving.Server, expected: np.ndarray, every: int):
    self._server, self._expected, self._every = server, expected, every
    self._seen = self.checked = self.wrong = 0
    self.largest = 0.0

  def __call__(self, reply: http_load.Reply) -> bool:
    self._seen += reply.status == 200
    if reply.status == 200 and self._seen % self._every == 0:
      vector = np.array(self._server.vector(json.loads(reply.body)))
      difference = float(abs(vector - self._expected[reply.index]).max())
      self.checked += 1
      self.wrong += not difference <= 1e-4
      self.largest = max(self.largest, difference)
    return False


class _Watch(threading.Thread):
  """Kills a worker from time to time, and notes the memory of the server.

  Attributes:
    kills: moments, of `time.perf_counter`.
    memory: MB of all processes of the server, at the end of each tenth of the time.
  """

  def __init__(self, port: int, seconds: float, kill_every_s: float):
    super().__init__(daemon=True)
    self._seconds, self._kill_every_s = seconds, kill_every_s
    self._server = _listener(port)
    self.kills: list[float] = []
    self.memory: list[float] = []

  def run(self) -> None:
    start = time.perf_counter()
    next_kill, next_sample = self._kill_every_s, self._seconds / 10
    while (now := time.perf_counter() - start) < self._seconds:
      if now >= next_sample:
        self.memory.append(sum(map(_memory, [self._server, *_descendants(self._server)])))
        next_sample += self._seconds / 10
      if now >= next_kill:
        next_kill += self._kill_every_s
        self._kill()
      time.sleep(0.1)

  def _kill(self) -> None:
    workers = [each for each in _descendants(self._server) if _memory(each) > 50]
    if workers:
      self.kills.append(time.perf_counter())
      os.kill(max(workers, key=_memory), signal.SIGKILL)


def _report(args, capacity, replies, check, watch) -> None:
  statuses = collections.Counter(reply.status for reply in replies)
  waits = [reply.retry_after for reply in replies if reply.status == 429]
  without = sum(wait is None for wait in waits)
  after = [_after_kill(replies, moment) for moment in watch.kills]
  facts = {
    "capacity": capacity,
    "rate": 2 * capacity,
    "statuses": dict(statuses),
    "without_retry_after": without,
    "retry_after_s": statistics.median([wait for wait in waits if wait]) if waits else None,
    "accepted_per_s": statuses[200] / args.seconds,
    "p50_ms": http_load.percentile(replies, 50),
    "p99_ms": http_load.percentile(replies, 99),
    "max_ms": http_load.percentile(replies, 100),
    "checked": check.checked,
    "wrong": check.wrong,
    "largest_difference": check.largest,
    "kills": after,
    "memory_mb": [round(each) for each in watch.memory],
  }
  for name, value in facts.items():
    print(f"{name:20} {value}")
  print(json.dumps({"benchmark": "serving_overload", "machine": common.machine(), **facts}))


def _after_kill(replies: list[http_load.Reply], moment: float) -> dict:
  """Counts the 503s within ten seconds after a kill, and the time until the next good answer."""
  later = [reply for reply in replies if moment <= reply.done_at < moment + 10]
  good = [reply.done_at - moment for reply in later if reply.status == 200]
  return {
    "failed": sum(reply.status == 503 for reply in later),
    "longest_gap_s": round(max(_gaps([0.0, *sorted(good)]), default=10.0), 2),
  }


def _gaps(moments: list[float]) -> list[float]:
  return [later - earlier for earlier, later in itertools.pairwise(moments)]


# ---------------------------------------------------------------------------------------------
# Processes.


def _listener(port: int) -> int:
  """Finds the process that listens on a port of this machine."""
  wanted = f"--port={port}".encode()
  for entry in pathlib.Path("/proc").iterdir():
    if entry.name.isdigit() and wanted in _read(entry / "cmdline").split(b"\0"):
      return int(entry.name)
  raise RuntimeError(f"No process has --port={port}.")


def _descendants(pid: int) -> list[int]:
  children = _read(pathlib.Path(f"/proc/{pid}/task/{pid}/children")).split()
  for thread in pathlib.Path(f"/proc/{pid}/task").glob("*"):
    children += _read(thread / "children").split()
  found = sorted({int(each) for each in children})
  return found + [each for child in found for each in _descendants(child)]


def _memory(pid: int) -> float:
  """Reads the memory that a process holds, in MB; 0 of one that has ended."""
  fields = _read(pathlib.Path(f"/proc/{pid}/statm")).split()
  return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6 if fields else 0.0


def _read(path: pathlib.Path) -> bytes:
  try:
    return path.read_bytes()
  except OSError:
    return b""


def _parse() -> argparse.Namespace:
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  serving.add_flags(parser)
  parser.add_argument("--seconds", type=float, default=600, help="of the load")
  parser.add_argument("--kill_every_s", type=float, default=60, help="a worker is killed")
  parser.add_argument("--clients", type=int, default=800, help="connections")
  parser.add_argument("--workers", type=int, default=1, help="of the server")
  parser.add_argument("--check_every", type=int, default=5, help="answers that are compared")
  return parser.parse_args()


if __name__ == "__main__":
  main()
