"""Around all routes: who may ask, how large and how slow a request may be, and what it leaves.

Pure ASGI, so that a client that goes away is seen at once, and its work cancelled. A refusal has
the form of the dialect, see `errors.py`.
"""

import asyncio
import gzip
import hmac
import io
import ipaddress
import re
import time
import uuid
import zlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

from absl import logging

from bert.serving import errors
from bert.serving.errors import (
  BadJson,
  Forbidden,
  InternalError,
  NoKey,
  Overloaded,
  ServingError,
  TimedOut,
  TooLarge,
  TooSlow,
  UnknownEncoding,
)
from bert.serving.metrics import Metrics
from bert.serving.request_log import RequestLog
from bert.serving.service import FACTS, STARTED, Settings

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CLIENT_IS_GONE = 499  # as nginx writes it into its log; nobody receives it
_SAFE = ("GET", "HEAD", "OPTIONS")
_OPEN_PATHS = ("/", "/health", "/live", "/docs", "/favicon.ico")
_OPEN_FOLDER = "/page/"
# What a client may still send after it was refused: it would not read the answer before.
_DRAINED_BYTES = 16_000_000
_DRAIN_S = 3.0
_LONGEST_LENGTH = 18  # digits of a length that anybody can mean
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\[\]:@/]+?))\.?(?::\d*)?")  # and a port
# https://www.w3.org/TR/trace-context/#traceparent-header; zeros alone name no trace.
_TRACEPARENT = re.compile(
  rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
_REQUEST_ID = re.compile(rb"[\w.:/+=@-]{1,128}")

_HEADERS = [
  (b"x-content-type-options", b"nosniff"),
  (b"referrer-policy", b"no-referrer"),
  (b"x-frame-options", b"DENY"),
  (
    b"content-security-policy",
    b"default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  ),
]
_NO_STORE = (b"cache-control", b"no-store")


class Limits:
  """An ASGI application around another one."""

  def __init__(self, app, settings: Settings, metrics: Metrics, log: RequestLog | None):
    """Takes the application with the routes; without a log nothing is written."""
    self._app = app
    self._settings = settings
    self._metrics = metrics
    self._log = log
    self._receiving = 0  # requests whose bodies are on their way

  async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
    """Answers a request; see ASGI."""
    if scope["type"] == "websocket":
      await send({"type": "websocket.close", "code": 1000})
    elif scope["type"] == "http":
      facts = _ids(dict(scope["headers"]))
      await self._answer({**scope, STARTED: time.perf_counter(), FACTS: facts}, receive, send)
    else:
      await self._app(scope, receive, send)

  async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
    sender = _Sender(scope, send)
    try:
      self._check(scope)
      if scope["method"] in _SAFE:
        await self._app(_as_get(scope), receive, sender)
      else:
        content = await self._body(scope, receive, sender)
        await self._compute(scope, content, receive, sender)
    except ServingError as error:
      await sender.refuse(error)
    except _ClientGoneError:
      sender.status = CLIENT_IS_GONE
    except asyncio.CancelledError:  # the server ends, and could not wait longer
      await sender.refuse(TimedOut("The server stops."))
    except Exception:
      place = scope["method"], scope["path"], scope[FACTS]["request_id"]
      logging.exception("A mistake of the server, at %s %s (request %s)", *place)
      await sender.refuse(InternalError("The server made a mistake; its log says which."))
    finally:
      self._note(scope, sender)

  # -------------------------------------------------------------------------------------------
  # Who asks.

  def _check(self, scope: Scope) -> None:
    headers = dict(scope["headers"])
    path = scope["path"]
    for name, value in scope["headers"]:
      if name == b"host" and not self._is_known_host(host := value.decode("latin-1")):
        raise Forbidden(
          f"{host[:80]!r} is not a name of this machine: --allowed_host=NAME lets requests use it."
        )
    is_open = path in _OPEN_PATHS or path.startswith(_OPEN_FOLDER)
    is_open = is_open and scope["method"] in _SAFE
    if self._settings.api_keys and not is_open and not self._knows(headers):
      raise NoKey("A key is needed: send `Authorization: Bearer KEY`.")
    if scope["method"] not in _SAFE and not self._is_of_known_site(headers):
      raise Forbidden("A page of another site may not ask this server (--cors_origin).")

  def _is_known_host(self, host: str) -> bool:
    known = self._settings.allowed_hosts
    if known is None:
      return True
    match = _HOST.fullmatch(host.lower())
    name = (match[1] or match[2]) if match else ""
    return name in known or _is_local(name)

  def _knows(self, headers: Mapping[bytes, bytes]) -> bool:
    """Tells whether a request has a key; takes as long whatever is wrong with it."""
    scheme, _, key = headers.get(b"authorization", b"").partition(b" ")
    given = [key.strip()] if scheme.lower() == b"bearer" else []
    given += [headers[name] for name in (b"api-key", b"x-api-key") if name in headers]
    keys = [key.encode() for key in self._settings.api_keys]
    return any(
      [  # noqa: C419  all of them, always
        hmac.compare_digest(each, key) for each in given for key in keys
      ]
    )

  def _is_of_known_site(self, headers: Mapping[bytes, bytes]) -> bool:
    """Tells whether a browser says that the page of a request is ours, or one that may ask.

    Browsers send Sec-Fetch-Site only to this machine, and where HTTPS is spoken.
    """
    origin = headers.get(b"origin")
    if b"sec-fetch-site" in headers:
      is_ours = headers[b"sec-fetch-site"] not in (b"cross-site", b"same-site")
    else:
      host = headers.get(b"host", b"").lower()
      is_ours = origin is None or origin.lower() in (b"http://" + host, b"https://" + host)
    origins = self._settings.cors_origins
    return is_ours or "*" in origins or (origin or b"").decode("latin-1") in origins

  # -------------------------------------------------------------------------------------------
  # What is sent.

  async def _body(self, scope: Scope, receive: Receive, sender: "_Sender") -> bytes:
    """Receives the body; without a length, too, it cannot become too large."""
    limit = self._settings.max_body_bytes
    length = dict(scope["headers"]).get(b"content-length", b"")
    too_large = TooLarge(f"The body is larger than {limit:,} bytes (--max_body_bytes).")
    if length.isdigit() and (len(length) > _LONGEST_LENGTH or int(length) > limit):
      await _drain(receive)
      sender.closes = True
      raise too_large
    if self._receiving >= self._settings.max_concurrent_requests:
      sender.closes = True
      raise Overloaded("Too many requests are being received.", retry_after_s=1)
    self._receiving += 1
    try:
      content = await asyncio.wait_for(_received(receive, limit), self._settings.body_timeout_s)
    except asyncio.TimeoutError:
      sender.closes = True
      raise TooSlow(
        f"The body did not come within {self._settings.body_timeout_s:g} seconds."
      ) from None
    finally:
      self._receiving -= 1
    if content is None:
      await _drain(receive)
      sender.closes = True
      raise too_large
    encoding = dict(scope["headers"]).get(b"content-encoding", b"").decode("latin-1")
    content = await _unpacked(content, encoding.strip().lower(), limit)
    if len(content) > limit:
      raise TooLarge(f"The body, unpacked, is larger than {limit:,} bytes (--max_body_bytes).")
    return content

  async def _compute(self, scope: Scope, content: bytes, receive: Receive, sender: "_Sender"):
    """Runs the routes, until they have answered, the client is gone, or time is up."""
    run = asyncio.ensure_future(self._app(scope, _once(content), sender))
    gone = asyncio.ensure_future(receive())  # nothing else can come now
    try:
      await asyncio.wait(
        [run, gone], timeout=self._settings.timeout_s, return_when=asyncio.FIRST_COMPLETED
      )
      if run.done():
        run.result()
      elif gone.done():
        raise _ClientGoneError
      else:
        seconds = f"{self._settings.timeout_s:g} seconds (--timeout_s)"
        raise TimedOut(f"There was no answer within {seconds}.")
    finally:
      gone.cancel()
      if not run.done():
        run.cancel()
        await asyncio.wait([run])

  # -------------------------------------------------------------------------------------------
  # What is noted.

  def _note(self, scope: Scope, sender: "_Sender") -> None:
    seconds = time.perf_counter() - scope[STARTED]
    route = scope.get("route")
    path = getattr(route, "path", "other")  # of the route: clients could make up any number
    self._metrics.request(path, sender.status, seconds)
    if self._log:
      facts = {"method": scope["method"], "path": scope["path"][:200], "status": sender.status}
      facts |= {"ms": round(1000 * seconds, 3), **scope[FACTS]}
      client = scope.get("client")
      self._log.request({**facts, "client": client[0] if client else None})


class _ClientGoneError(Exception):
  """Nobody waits for the answer."""


class _Sender:
  """Sends the answer, with headers that all have; knows how it went.

  Attributes:
    status: of the answer.
    closes: whether the connection ends with it.
  """

  def __init__(self, scope: Scope, send: Send):
    self.status = 0
    self.closes = False
    self._scope = scope
    self._send = send

  async def __call__(self, message: Message) -> None:
    """Sends a part of the answer."""
    if message["type"] == "http.response.start":
      self.status = message["status"]
      message = {**message, "headers": self._headers(list(message["headers"]))}
    await self._send(message)

  def _headers(self, headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    headers += [*_HEADERS, (b"x-request-id", self._scope[FACTS]["request_id"].encode())]
    if not any(name == b"cache-control" for name, _ in headers):
      headers.append(_NO_STORE)
    if self.closes:
      headers.append((b"connection", b"close"))
    return headers

  async def refuse(self, error: ServingError) -> None:
    """Sends an error, unless an answer is on its way."""
    if self.status:
      return
    status, headers, content = errors.answer_of(self._scope["path"], error)
    headers["content-length"] = str(len(content))
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await self({"type": "http.response.start", "status": status, "headers": pairs})
    await self({"type": "http.response.body", "body": content})


def _is_local(name: str) -> bool:
  """Tells whether a name is one of the loopback, whatever a name server says."""
  try:
    return ipaddress.ip_address(name).is_loopback
  except ValueError:
    return name == "localhost" or name.endswith(".localhost")


def _ids(headers: Mapping[bytes, bytes]) -> dict[str, str]:
  """Returns how the log names a request: as the client, or a proxy before the server, does."""
  given = headers.get(b"x-request-id", b"")
  found = {"request_id": given.decode() if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex}
  trace = headers.get(b"traceparent", b"")
  return {**found, "traceparent": trace.decode()} if _TRACEPARENT.fullmatch(trace) else found


def _as_get(scope: Scope) -> Scope:
  """HEAD is a GET whose body the server leaves out."""
  return {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope


async def _received(receive: Receive, limit: int) -> bytes | None:
  """Returns the body; None where it is longer than the limit."""
  parts, size = [], 0
  while True:
    message = await receive()
    if message["type"] == "http.disconnect":
      raise _ClientGoneError
    parts.append(message.get("body", b""))
    size += len(parts[-1])
    if size > limit:
      return None
    if not message.get("more_body"):
      return b"".join(parts)


async def _unpacked(content: bytes, encoding: str, limit: int) -> bytes:
  """Returns a body without its encoding; of one beyond the limit, one byte more than that."""
  if encoding in ("", "identity"):
    return content
  if encoding not in ("gzip", "x-gzip"):
    raise UnknownEncoding(
      f"The body has the Content-Encoding {encoding[:40]!r}, but must be gzip or uncompressed."
    )
  try:
    with gzip.open(io.BytesIO(content)) as file:
      return await asyncio.to_thread(file.read, limit + 1)
  except (OSError, EOFError, zlib.error) as error:
    raise BadJson(f"The body is not gzip, as its Content-Encoding says: {error}.") from None


async def _drain(receive: Receive) -> None:
  """Reads on for a while, without keeping anything."""

  async def rest():
    size = 0
    while size < _DRAINED_BYTES:
      message = await receive()
      if message["type"] == "http.disconnect":
        raise _ClientGoneError
      size += len(message.get("body", b""))
      if not message.get("more_body"):
        return

  try:
    await asyncio.wait_for(rest(), _DRAIN_S)
  except asyncio.TimeoutError:
    return


def _once(content: bytes) -> Receive:
  """Returns what an application receives: the body, and then nothing for as long as it waits."""
  messages = [{"type": "http.request", "body": content, "more_body": False}]

  async def receive() -> Message:
    if messages:
      return messages.pop()
    return await asyncio.get_running_loop().create_future()

  return receive
