"""Clients on real connections: slow on purpose, asleep, or gone; and the end of the server.

Alone: python -m pytest tests/serving/connections_test.py (seconds)
"""

import asyncio
import contextlib
import json
import socket
import threading
import time

import numpy as np
import pytest

from bert.serving import app, connections, http_server
from bert.serving.metrics import Metrics
from bert.serving.service import Settings
from tests.serving.running_server import EMBED, HEAD, Running, rest_of, started


@pytest.fixture
def running():
  with started(max_body_bytes=1000, body_timeout_s=0.3) as found:
    yield found


@pytest.mark.parametrize("sent", [b"", HEAD])
def test_headers_that_do_not_come(running, monkeypatch, sent):
  monkeypatch.setattr(connections.Timers, "headers_s", 0.2)
  with running.connect() as connection:
    connection.sendall(sent)
    answer = rest_of(connection)
  assert answer.startswith(b"HTTP/1.1 408 ")
  head, _, body = answer.partition(b"\r\n\r\n")
  assert f"content-length: {len(body)}".encode() in head
  assert json.loads(body)["error_type"] == "Timeout"
  assert running.ask()[0] == 200


def test_headers_that_come_byte_by_byte_end_too(running, monkeypatch):
  monkeypatch.setattr(connections.Timers, "headers_s", 0.3)
  start = time.monotonic()
  with running.connect() as connection, contextlib.suppress(ConnectionError):
    for byte in HEAD * 20:
      connection.sendall(bytes([byte]))
      time.sleep(0.02)
      if time.monotonic() - start > 10:
        pytest.fail("the connection is still open")


def test_a_body_that_does_not_come(running):
  with running.connect() as connection:
    connection.sendall(HEAD + b"content-length: 50\r\n\r\n{")
    answer = rest_of(connection)
  assert answer.startswith(b"HTTP/1.1 408 ")
  assert b"connection: close" in answer
  assert running.model.calls == []


def test_a_client_that_reads_nothing_is_let_go(running, monkeypatch):
  monkeypatch.setattr(connections.Timers, "reading_s", 0.2)
  lost = threading.Event()
  earlier = connections.Timers.connection_lost

  def connection_lost(self, exc):
    earlier(self, exc)
    lost.set()

  monkeypatch.setattr(connections.Timers, "connection_lost", connection_lost)
  texts = json.dumps({"inputs": ["a"] * 100}).encode()
  abilities = running.model.servable.abilities
  large = np.full([4000], 1 / 3, np.float32)  # 8 MB of JSON for 100 texts
  abilities["vectors"] = abilities["vectors"]._replace(scores=lambda row: {"vectors": large})
  with socket.socket() as connection:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(running.address)
    connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(texts) + texts)
    assert lost.wait(20)
    assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_a_client_that_goes_away_cancels_its_work(running):
  running.model.wait = lambda: asyncio.sleep(30)
  with running.connect() as connection:
    connection.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(EMBED) + EMBED)
    deadline = time.monotonic() + 10
    while not running.model.calls and time.monotonic() < deadline:
      time.sleep(0.01)
  deadline = time.monotonic() + 10
  while not running.model.cancelled and time.monotonic() < deadline:
    time.sleep(0.01)
  assert running.model.cancelled == 1


def test_the_end_waits_for_requests_in_flight():
  running = Running()
  running.start()
  release = threading.Event()

  async def wait():
    while not release.is_set():
      await asyncio.sleep(0.01)

  running.model.wait = wait
  answers = []
  client = threading.Thread(target=lambda: answers.append(running.ask()), daemon=True)
  client.start()
  deadline = time.monotonic() + 10
  while not running.model.calls and time.monotonic() < deadline:
    time.sleep(0.01)
  running.server.stop()
  deadline = time.monotonic() + 10
  while time.monotonic() < deadline:  # until the port is closed
    try:
      running.connect().close()
    except ConnectionError:
      break
    time.sleep(0.02)
  else:
    pytest.fail("the port is still open")
  assert answers == []
  release.set()
  client.join(20)
  running.thread.join(20)
  assert answers[0][0] == 200
  assert running.models.stopped


def test_a_port_in_use_is_one_line():
  with http_server.open_port("127.0.0.1", 0) as taken:
    taken.listen()
    number = taken.getsockname()[1]
    with pytest.raises(OSError, match=f"--port={number}: the port is in use. Choose another"):
      http_server.open_port("127.0.0.1", number)


@pytest.mark.parametrize("host", ["no.such.host.invalid", "203.0.113.7"])
def test_an_address_that_is_none_is_one_line(host):
  with pytest.raises(OSError, match=f"--host={host}.*no address of this machine"):
    http_server.open_port(host, 0)


def test_a_model_that_cannot_be_loaded_ends_the_server():
  running = Running()
  failures = []

  async def start():
    raise ValueError("no model")

  running.models.start = start

  def started(error):
    failures.append(error)
    running.server.stop()

  made = app.create(running.models, Settings(), Metrics(), started=started)
  running.server = http_server.make(made, drain_s=1)
  http_server.run(running.server, running.port)
  assert [str(error) for error in failures] == ["no model"]
