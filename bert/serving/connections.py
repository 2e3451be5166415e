"""uvicorn's connections, for clients that are slow on purpose or have fallen asleep.

uvicorn waits for ever for the headers of a request, and for a client that does not read its answer.
Both hold memory and a connection; here both end.
"""

import asyncio

_HEADERS_S = 10.0
"""From the first byte of a request, or from the connection, to the end of its headers."""
_READING_S = 30.0
"""For a client to read on, when the buffers between are full."""
_ANSWER = (
  b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\nconnection: close\r\n"
  b"content-length: 78\r\n\r\n"
  b'{"error":"The headers did not come within 10 seconds.","error_type":"Timeout"}'
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
      transport.write(_ANSWER)
      transport.close()

  def _abort(self) -> None:
    self.transport.abort()  # type: ignore[attr-defined]  # closing waits for the client to read


def _cancel(timer: asyncio.TimerHandle | None) -> asyncio.TimerHandle | None:
  if timer is not None:
    timer.cancel()
  return None


def protocol_class() -> type[asyncio.Protocol]:
  """Returns uvicorn's fastest protocol that is installed, with timers."""
  try:
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as Protocol
  except ImportError:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol  # type: ignore[assignment]
  return type("PatientProtocol", (Timers, Protocol), {})
