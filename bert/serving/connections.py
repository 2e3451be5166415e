"""uvicorn's connections, for clients that are slow on purpose, have fallen asleep, or never end.

uvicorn waits for ever for the headers of a request, and for a client that does not read its answer;
with httptools it also keeps headers of any size. All hold memory and a connection; here they end.
"""

import asyncio
import collections
import json
from typing import Any

_HEADERS_S = 10.0
"""From the first byte of a request, or from the connection, to the end of its headers."""
_READING_S = 30.0
"""For a client to read on, when the buffers between are full."""
_MOST_BYTES = 65_536
"""Of a request beside its body: its headers, and what frames the body."""
_FRAME_BYTES = 16
"""Of a byte of the body: clients may send each in a chunk of its own."""


def _refusal(status: str, kind: str, message: str) -> bytes:
  """Writes an answer to a request that no route will see."""
  content = json.dumps({"error": message, "error_type": kind})
  head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n"
  return f"{head}content-length: {len(content)}\r\n\r\n{content}".encode()


_TOO_SLOW = _refusal(
  "408 Request Timeout", "Timeout", f"The headers did not come within {_HEADERS_S:g} seconds."
)
_TOO_LARGE = _refusal(
  "431 Request Header Fields Too Large",
  "Validation",
  f"The headers are larger than {_MOST_BYTES:,} bytes.",
)


class Timers:
  """What is added to a protocol of uvicorn, whose base it is an earlier one of."""

  headers_s = _HEADERS_S
  reading_s = _READING_S
  _for_headers: asyncio.TimerHandle | None = None
  _for_reading: asyncio.TimerHandle | None = None

  def connection_made(self, transport) -> None:
    """See `asyncio.Protocol`."""
    super().connection_made(transport)  # type: ignore[misc]
    self._wait_for_headers()

  def data_received(self, data: bytes) -> None:
    """See `asyncio.Protocol`."""
    before = self.cycle  # type: ignore[attr-defined]  # a request whose headers are complete
    is_idle = before is None or before.response_complete
    if is_idle and self._for_headers is None:
      self._wait_for_headers()
    super().data_received(data)  # type: ignore[misc]
    if self.cycle is not before:  # type: ignore[attr-defined]
      self._for_headers = _cancel(self._for_headers)

  def pause_writing(self) -> None:
    """See `asyncio.Protocol`."""
    super().pause_writing()  # type: ignore[misc]
    loop = asyncio.get_running_loop()
    self._for_reading = loop.call_later(self.reading_s, self._abort)

  def resume_writing(self) -> None:
    """See `asyncio.Protocol`."""
    super().resume_writing()  # type: ignore[misc]
    self._for_reading = _cancel(self._for_reading)

  def connection_lost(self, exc: Exception | None) -> None:
    """See `asyncio.Protocol`."""
    self._for_headers = _cancel(self._for_headers)
    self._for_reading = _cancel(self._for_reading)
    super().connection_lost(exc)  # type: ignore[misc]

  def _wait_for_headers(self) -> None:
    loop = asyncio.get_running_loop()
    self._for_headers = loop.call_later(self.headers_s, self._refuse)

  def _refuse(self) -> None:
    transport = self.transport  # type: ignore[attr-defined]
    if not transport.is_closing():
      transport.write(_TOO_SLOW)
      transport.close()

  def _abort(self) -> None:
    self.transport.abort()  # type: ignore[attr-defined]  # closing waits for the client to read


class Bounds:
  """What is added to uvicorn's protocol with httptools alone.

  It keeps headers of any size; and of several requests that came at once it tells only the last
  that the client is gone, so that the others are computed, and fail when they write.
  """

  transport: Any  # of uvicorn's protocol, as `cycle`, the request whose headers came last
  cycle: Any
  _bytes = 0  # of the request that is coming, beside its body

  def connection_made(self, transport) -> None:
    """See `asyncio.Protocol`."""
    self._cycles: collections.deque = collections.deque()  # requests that are not answered yet
    super().connection_made(transport)  # type: ignore[misc]

  def on_headers_complete(self) -> None:
    """See uvicorn's protocol."""
    super().on_headers_complete()  # type: ignore[misc]
    while self._cycles and self._cycles[0].response_complete:
      self._cycles.popleft()
    self._cycles.append(self.cycle)

  def connection_lost(self, exc: Exception | None) -> None:
    """See `asyncio.Protocol`."""
    for cycle in self._cycles:
      cycle.disconnected = True
      cycle.message_event.set()
    super().connection_lost(exc)  # type: ignore[misc]

  def data_received(self, data: bytes) -> None:
    """See `asyncio.Protocol`."""
    before = self.cycle
    self._bytes += len(data)
    super().data_received(data)  # type: ignore[misc]
    if self.cycle is not before:  # its headers are complete
      self._bytes = 0
    elif self._bytes > _MOST_BYTES:
      self._end(before)

  def on_body(self, body: bytes) -> None:
    """See uvicorn's protocol."""
    self._bytes -= _FRAME_BYTES * len(body)
    super().on_body(body)  # type: ignore[misc]

  def on_message_complete(self) -> None:
    """See uvicorn's protocol."""
    self._bytes = 0
    super().on_message_complete()  # type: ignore[misc]

  def _unsupported_upgrade_warning(self) -> None:
    """See uvicorn's protocol, which would advise to install more; there are no web sockets here."""

  def _end(self, cycle) -> None:
    """Ends the connection, with a word where nothing else is being answered on it."""
    transport = self.transport
    if cycle is not None and not cycle.response_complete:
      transport.abort()
    elif not transport.is_closing():
      transport.write(_TOO_LARGE)
      transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
  if timer is not None:
    timer.cancel()
  return None


def protocol_class() -> type[asyncio.Protocol]:
  """Returns uvicorn's fastest protocol that is installed, with limits of time and size."""
  try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
  except ImportError:
    from uvicorn.protocols.http.h11_impl import H11Protocol  # has a limit of size itself

    return type("PatientProtocol", (Timers, H11Protocol), {})
  return type("PatientProtocol", (Bounds, Timers, HttpToolsProtocol), {})
