"""Bytes that are no HTTP, too much of it, or half of it: the server stays as it was.

Alone: python -m pytest tests/serving/raw_bytes_test.py -m ci (seconds)
"""

import contextlib
import json
import logging
import re
import socket
import time

import pytest

from bert.serving import connections
from tests.serving.running_server import EMBED, HEAD, rest_of, started

pytestmark = pytest.mark.ci

REQUEST = HEAD + b"content-length: %d\r\n\r\n" % len(EMBED) + EMBED
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"
MEGABYTE = b"x" * 1_000_000
LARGE = HEAD + b"content-length: 1900000\r\n\r\n" + b" " * 1_900_000


@pytest.fixture
def running(caplog):
  """A server of which nothing is left at the end: no connection, no task, no error in the log."""
  with started(body_timeout_s=1) as found, caplog.at_level(logging.INFO):
    yield found
    assert found.ask()[0] == 200
    state = found.server.server_state
    deadline = time.monotonic() + 20
    while (state.connections or state.tasks) and time.monotonic() < deadline:
      time.sleep(0.02)
    assert (state.connections, state.tasks) == (set(), set())
  assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []
  assert "Traceback" not in caplog.text


def test_who_asks_for_a_web_socket_gets_an_answer(running, caplog):
  upgrade = b"connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\r\n"
  with running.connect() as connection:
    connection.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n" + upgrade)
    assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
  assert caplog.text == ""


def test_a_request_that_is_cut_anywhere(running):
  for end in range(len(REQUEST)):
    with running.connect() as connection:
      connection.sendall(REQUEST[:end])
  assert running.model.calls == []


def test_many_requests_at_once_are_answered_in_their_order(running):
  lengths = range(1, 200)
  bodies = [json.dumps({"inputs": ["a"] * length}).encode() for length in lengths]
  sent = b"".join(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body for body in bodies)
  with running.connect() as connection:
    connection.sendall(sent + b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    answers = rest_of(connection)
  assert answers.count(b"HTTP/1.1 200 ") == len(lengths) + 1
  assert [len(items) for _, items in running.model.calls] == list(lengths)
  sizes = [int(size) for size in re.findall(rb"content-length: (\d+)", answers)]
  assert sizes[:-1] == sorted(sizes[:-1])


ENDLESS = {
  "a path": b"GET /",
  "a name": b"GET / HTTP/1.1\r\nhost: x\r\nx",
  "a value": b"GET / HTTP/1.1\r\nhost: x\r\na: ",
}


@pytest.mark.parametrize("what", ENDLESS)
def test_headers_without_an_end_are_refused(running, what):
  with running.connect() as connection:
    connection.sendall(ENDLESS[what].ljust(65_537, b"x"))
    head, _, body = rest_of(connection).partition(b"\r\n\r\n")
  assert head.startswith(b"HTTP/1.1 431 ")
  assert f"content-length: {len(body)}".encode() in head
  assert json.loads(body)["error"] == "The headers are larger than 65,536 bytes."


WITHOUT_END = {
  **{what: (start, MEGABYTE) for what, start in ENDLESS.items()},
  "headers": (HEAD, b"a: b\r\n" * 100_000),
  "headers of a second request": (REQUEST + HEAD, b"a: b\r\n" * 100_000),
  "headers after a body": (LARGE + HEAD, b"a: b\r\n" * 100_000),
  "trailers": (CHUNKED + b"1\r\n{\r\n0\r\n", b"a: b\r\n" * 100_000),
  "what is said of a chunk": (CHUNKED + b"1;", MEGABYTE),
}


@pytest.mark.parametrize("what", WITHOUT_END)
def test_what_has_no_end_is_not_kept(running, what):
  start, part = WITHOUT_END[what]
  with running.connect() as connection:
    connection.sendall(start)
    with pytest.raises(ConnectionError):
      connection.sendall(20 * part)


def test_300_connections_that_say_nothing(running, monkeypatch):
  monkeypatch.setattr(connections.Timers, "headers_s", 0.5)
  with contextlib.ExitStack() as opened:
    idle = [opened.enter_context(running.connect()) for _ in range(300)]
    assert running.ask()[0] == 200
    for connection in idle:
      assert rest_of(connection).startswith(b"HTTP/1.1 408 ")


def test_a_client_that_only_listens_on(running):
  for sent in (REQUEST, REQUEST[:-3], HEAD, b""):
    with running.connect() as connection:
      connection.sendall(sent)
      connection.shutdown(socket.SHUT_WR)
      assert rest_of(connection)[:13] in (b"", b"HTTP/1.1 200 ")
