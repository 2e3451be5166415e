"""Requests to an ASGI application as a network may bring them: slowly, in parts, cut off.

answer = await ask(app, "POST", "/embed", b'{"inputs": "a"}', headers={"x-api-key": "k"})
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Answer(NamedTuple):
  """What was sent back; `status` 0 if nothing was."""

  status: int
  headers: dict[str, str]
  content: bytes

  def json(self) -> Any:
    return json.loads(self.content)


def scope_of(method: str, path: str, headers: Mapping[str, str]) -> dict[str, Any]:
  return {
    "type": "http",
    "asgi": {"version": "3.0", "spec_version": "2.3"},
    "http_version": "1.1",
    "method": method,
    "scheme": "http",
    "path": path,
    "raw_path": path.encode(),
    "query_string": b"",
    "root_path": "",
    "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    "client": ("192.0.2.1", 5),
    "server": ("127.0.0.1", 80),
  }


async def ask(
  app,
  method: str,
  path: str,
  body: bytes | Sequence[bytes] = b"",
  *,
  headers: Mapping[str, str] | None = None,
  is_complete: bool = True,
  gone: asyncio.Event | None = None,
) -> Answer:
  """Asks once.

  Args:
    app: the application.
    method, path, headers: of the request.
    body: or the parts in which it comes.
    is_complete: whether the body ends; else the client says nothing more.
    gone: is set when the client goes away.
  """
  parts = [body] if isinstance(body, bytes) else list(body)
  ends = [False] * (len(parts) - 1) + [is_complete]
  messages = [
    {"type": "http.request", "body": part, "more_body": not end}
    for part, end in zip(parts, ends, strict=True)
  ]
  sent: list[dict[str, Any]] = []

  async def receive():
    if messages:
      return messages.pop(0)
    await (gone or asyncio.Event()).wait()
    return {"type": "http.disconnect"}

  async def send(message):
    sent.append(message)

  await app(scope_of(method, path, headers or {}), receive, send)
  if not sent:
    return Answer(0, {}, b"")
  pairs = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
  return Answer(sent[0]["status"], pairs, b"".join(each.get("body", b"") for each in sent[1:]))
