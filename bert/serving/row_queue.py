"""Rows of many requests in a fair order, taken in batches of N tokens.

  queue = RowQueue(max_batch_tokens=2048)
  queue.add(Request(0, rows, lengths))
  batch = queue.take()                          # parts of one request or of several

The order is that of fair queueing by tokens: each request is a flow, whose rows have the times at
which they would begin if all requests shared the processor equally. So a single text that comes
after a request of 2,000 texts is in the next batch, and many single texts do not hold up the large
request for ever either. One heap for each engine; a batch is of one engine.
"""

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class Request:
  """The rows of a request, and their outputs as far as they are there.

  Attributes:
    engine: the place of the one that computes them.
    rows: the rows.
    lengths: tokens of each row.
    outputs: of each row; None where it is missing.
    next_row: the first row that no batch has taken.
    is_open: whether anybody still waits for it.
    future: of whoever waits; the queue does not touch it.
  """

  def __init__(self, engine: int, rows: Sequence[Row], lengths: Sequence[int], future: Any = None):
    self.engine = engine
    self.rows = rows
    self.lengths = lengths
    self.outputs: list[Any] = [None] * len(rows)
    self.next_row = 0
    self.is_open = True
    self.future = future
    self.left_tokens = sum(lengths)  # of rows that no batch has taken
    self.start = 0.0  # the time of its next row, in tokens
    self.taken_at: float | None = None  # when its first row was taken, in seconds
    self.inference_s = 0.0  # of all batches with a row of it
    self._missing = len(rows)

  def put(self, index: int, outputs: Any) -> bool:
    """Takes the outputs of a row; returns whether it was the last that was missing."""
    self.outputs[index] = outputs
    self._missing -= 1
    return self._missing == 0


class Part(NamedTuple):
  """Rows of one request in a batch."""

  request: Request
  indexes: list[int]


class Batch(NamedTuple):
  """Rows for one engine."""

  engine: int
  parts: list[Part]
  tokens: int

  def places(self) -> Iterator[tuple[Request, int]]:
    """Yields request and index of each row, in the order of `rows`."""
    for request, indexes in self.parts:
      for index in indexes:
        yield request, index

  def rows(self) -> list[Row]:
    """Returns the rows."""
    return [request.rows[index] for request, index in self.places()]


class RowQueue:
  """The rows that wait; not safe for threads.

  Attributes:
    max_batch_tokens: of a batch; one with a single row may have more.
    tokens: that wait.
  """

  def __init__(self, max_batch_tokens: int):
    self.max_batch_tokens = max_batch_tokens
    self.tokens = 0
    self._heaps: dict[int, list[tuple[float, int, Request]]] = {}
    self._waiting: dict[Request, None] = {}  # in the order of their coming
    self._numbers = itertools.count()
    self._now = 0.0  # tokens that each request would have had until now, had it been there always

  def __len__(self) -> int:
    """The number of requests that wait."""
    return len(self._waiting)

  def add(self, request: Request) -> None:
    """Takes a request, which has at least one row."""
    request.start = self._now
    self.tokens += request.left_tokens
    self._waiting[request] = None
    self._push(request)

  def remove(self, request: Request) -> None:
    """Lets a request leave, whatever is left of it; batches that have been taken keep theirs."""
    request.is_open = False
    if self._waiting.pop(request, self) is not self:
      self.tokens -= request.left_tokens
      request.left_tokens = 0

  def remove_all(self) -> list[Request]:
    """Lets all requests leave, and returns them."""
    found = list(self._waiting)
    for request in found:
      self.remove(request)
    return found

  def tokens_ahead(self, tokens: int) -> int:
    """Returns how many tokens will be computed before a request of N tokens, if it came now.

    Of each request that waits these are the rows whose time has come, the next one at least, and
    then as many tokens as the new one has: for the rest the new one comes first.
    """
    found = 0
    for request in self._waiting:
      due = max(0.0, self._now - request.start)
      share = max(tokens, request.lengths[request.next_row])
      found += min(request.left_tokens, math.ceil(due) + share)
    return found

  def take(self) -> Batch | None:
    """Takes the rows whose turn it is, as many as the tokens of a batch allow; None without any."""
    heap = self._first_heap()
    if heap is None:
      return None
    flows, tokens = len(self._waiting), 0
    found: dict[Request, list[int]] = {}
    while heap:
      request = heap[0][2]
      length = request.lengths[request.next_row] if request.is_open else 0
      if found and tokens + length > self.max_batch_tokens:
        break
      heapq.heappop(heap)
      if request.is_open:
        found.setdefault(request, []).append(request.next_row)
        tokens += length
        self._move_on(request, length)
    self._now += tokens / flows
    parts = [Part(request, indexes) for request, indexes in found.items()]
    return Batch(parts[0].request.engine, parts, tokens)

  def _first_heap(self) -> list | None:
    """Returns the heap of the engine whose turn it is, with a request at its top."""
    for heap in self._heaps.values():
      while heap and not heap[0][2].is_open:
        heapq.heappop(heap)
    return min((heap for heap in self._heaps.values() if heap), default=None, key=_top)

  def _move_on(self, request: Request, length: int) -> None:
    request.next_row += 1
    request.left_tokens -= length
    request.start += length
    self.tokens -= length
    if request.next_row < len(request.lengths):
      self._push(request)
    else:
      del self._waiting[request]

  def _push(self, request: Request) -> None:
    heap = self._heaps.setdefault(request.engine, [])
    heapq.heappush(heap, (request.start, next(self._numbers), request))


def _top(heap: list[tuple[float, int, Request]]) -> tuple[float, int]:
  return heap[0][:2]
