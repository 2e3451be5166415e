"""Requests to a server on this machine, from many clients at once, for a limited time.

  replies = http_load.run("127.0.0.1", 8080, "/embed", bodies, clients=8, seconds=10)
  http_load.speed(replies), http_load.percentile(replies, 99)

A client sends one body, waits for the whole answer, and sends the next on the same connection. One
process and one thread do all of it, with a parser that knows no more of HTTP than these servers
send, so that the load takes little of the processor from the server.
"""

import asyncio
import contextlib
import itertools
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

HOST = "127.0.0.1"  # never another machine


class Reply(NamedTuple):
  """An answer, or none.

  Attributes:
    index: of the body.
    status: of HTTP; 0 where the connection broke.
    seconds: from the first byte sent to the last received.
    done_at: `time.perf_counter` of the last byte.
    retry_after: the header's seconds; None without it.
    body: where it is kept.
  """

  index: int
  status: int
  seconds: float
  done_at: float
  retry_after: float | None = None
  body: bytes = b""


def run(
  port: int,
  path: str,
  bodies: Sequence[bytes],
  clients: int,
  seconds: float,
  *,
  keep: Callable[[Reply], bool] = lambda reply: False,
  rate: float | None = None,
) -> list[Reply]:
  """Sends requests for some seconds, and returns all replies.

  Args:
    port: of the server, on this machine.
    path: of the route.
    bodies: JSON, taken in turns.
    clients: number of connections.
    seconds: after which no request is sent.
    keep: whether the body of a reply is returned.
    rate: requests a second over all clients; by default each sends as soon as it has its answer.
  """
  return asyncio.run(_run(port, path, bodies, clients, seconds, keep, rate))


async def _run(port, path, bodies, clients, seconds, keep, rate) -> list[Reply]:
  stop_at = time.perf_counter() + seconds
  indexes = itertools.cycle(range(len(bodies)))
  moments = _moments(rate)
  replies: list[Reply] = []

  async def client() -> None:
    connection = _Connection(port, path)
    while time.perf_counter() < stop_at:
      await asyncio.sleep(max(0.0, next(moments) - time.perf_counter()))
      index = next(indexes)
      reply = await connection.post(index, bodies[index])
      replies.append(reply if keep(reply) else reply._replace(body=b""))
    await connection.close()

  await asyncio.gather(*(client() for _ in range(clients)))
  return replies


def _moments(rate: float | None) -> Iterator[float]:
  """Yields when the next request is sent."""
  start = time.perf_counter()
  return (start + number / rate if rate else 0.0 for number in itertools.count())


class _Connection:
  """A connection that is kept, and opened again after it broke."""

  def __init__(self, port: int, path: str):
    self._port, self._path = port, path
    self._streams = None

  async def post(self, index: int, body: bytes) -> Reply:
    start = time.perf_counter()
    try:
      status, headers, answer = await self._exchange(body)
    except (OSError, asyncio.IncompleteReadError, ValueError):
      await self.close()
      await asyncio.sleep(0.05)
      status, headers, answer = 0, {}, b""
    done_at = time.perf_counter()
    if headers.get("connection") == "close":
      await self.close()
    retry_after = headers.get("retry-after")
    return Reply(
      index, status, done_at - start, done_at, float(retry_after) if retry_after else None, answer
    )

  async def _exchange(self, body: bytes):
    if self._streams is None:
      self._streams = await asyncio.open_connection(HOST, self._port, limit=1 << 24)
    reader, writer = self._streams
    writer.write(
      f"POST {self._path} HTTP/1.1\r\nHost: {HOST}:{self._port}\r\n"
      f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
      + body
    )
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
      answer = await _chunks(reader)
    elif "content-length" in headers:
      answer = await reader.readexactly(int(headers["content-length"]))
    else:  # of HTTP/1.0: up to the end of the connection
      answer, headers["connection"] = await reader.read(), "close"
    return int(head[0].split()[1]), headers, answer

  async def close(self) -> None:
    if self._streams:
      self._streams[1].close()
      self._streams = None


async def _chunks(reader: asyncio.StreamReader) -> bytes:
  parts = []
  while size := int((await reader.readuntil(b"\r\n")).strip(), 16):
    parts.append(await reader.readexactly(size))
    await reader.readexactly(2)
  await reader.readexactly(2)
  return b"".join(parts)


# ---------------------------------------------------------------------------------------------
# Figures.


def speed(replies: Sequence[Reply], seconds: float) -> float:
  """Computes the answers of status 200 in a second."""
  return sum(reply.status == 200 for reply in replies) / seconds


def percentile(replies: Sequence[Reply], share: float) -> float:
  """Computes a percentile of the times of status 200, in ms; NaN without any."""
  times = sorted(reply.seconds for reply in replies if reply.status == 200)
  if not times:
    return float("nan")
  return 1000 * times[min(len(times) - 1, round(share / 100 * (len(times) - 1)))]


# ---------------------------------------------------------------------------------------------
# Servers.


def free_port() -> int:
  """Finds a port of this machine that nobody listens on."""
  return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
  """Finds some, no two of which are the same."""
  with contextlib.ExitStack() as held:
    found = [held.enter_context(socket.socket()) for _ in range(count)]
    for each in found:
      each.bind((HOST, 0))
    return [each.getsockname()[1] for each in found]


def wait_until_ready(
  process: subprocess.Popen, port: int, path: str, body: bytes, timeout_s: float = 180
) -> None:
  """Waits for the first answer of status 200.

  Raises:
    RuntimeError: the server has ended, or does not answer in time.
  """
  until = time.monotonic() + timeout_s
  while time.monotonic() < until:
    if process.poll() is not None:
      raise RuntimeError(f"The server ended with status {process.returncode}: {process.args}")
    try:
      ask(port, path, body)
      return
    except (OSError, ValueError):
      time.sleep(0.3)
  raise RuntimeError(f"No answer in {timeout_s:.0f} s: {process.args}")


def ask(port: int, path: str, body: bytes | None = None, timeout_s: float = 60):
  """Returns the JSON of an answer; an `OSError` for another status than 200."""
  request = urllib.request.Request(
    f"http://{HOST}:{port}{path}", body, {"Content-Type": "application/json"}
  )
  with urllib.request.urlopen(request, timeout=timeout_s) as answer:
    return json.load(answer)
