"""A server on a real port, in a thread of the test; its models compute nothing.

with running_server.started(max_body_bytes=1000) as running:
  with running.connect() as connection:
    connection.sendall(HEAD + b"\\r\\n")
    answer = rest_of(connection)
"""

import contextlib
import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Iterator

from bert.serving import app, http_server
from bert.serving.metrics import Metrics
from bert.serving.service import Settings
from tests.serving import fake_models

EMBED = json.dumps({"inputs": "a text"}).encode()
HEAD = b"POST /embed HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"


class Running:
  """A server in a thread."""

  def __init__(self, models: fake_models.FakeModels | None = None, **settings):
    self.models = models or fake_models.FakeModels({"encoder": fake_models.encoder()})
    self.model = self.models.models["encoder"]
    self.port = http_server.open_port("127.0.0.1", 0)
    self.address = self.port.getsockname()[:2]
    made = app.create(self.models, Settings(**settings), Metrics())
    self.server = http_server.make(made, drain_s=5)
    self.thread = threading.Thread(
      target=lambda: http_server.run(self.server, self.port), daemon=True
    )

  def start(self):
    self.thread.start()
    deadline = time.monotonic() + 30
    while not self.server.started and time.monotonic() < deadline:
      time.sleep(0.01)

  def stop(self):
    self.server.stop()
    self.thread.join(30)
    assert not self.thread.is_alive()

  def connect(self) -> socket.socket:
    return socket.create_connection(self.address, timeout=20)

  def ask(self, body=EMBED, path="/embed"):
    connection = http.client.HTTPConnection(*self.address, timeout=20)
    with contextlib.closing(connection):
      connection.request("POST", path, body)
      response = connection.getresponse()
      return response.status, response.read()


def rest_of(connection: socket.socket) -> bytes:
  """All that comes until the server ends the connection."""
  parts = []
  while part := connection.recv(65536):
    parts.append(part)
  return b"".join(parts)


def one_answer(connection: socket.socket) -> bytes:
  """One answer, whole, of a connection that stays open."""
  answer = b""
  while b"\r\n\r\n" not in answer:
    answer += _received(connection)
  head = answer.partition(b"\r\n\r\n")[0]
  length = len(head) + 4 + int(re.search(rb"content-length: (\d+)", head)[1])
  while len(answer) < length:
    answer += _received(connection)
  return answer


def _received(connection: socket.socket) -> bytes:
  part = connection.recv(65536)
  assert part, "the connection has ended"
  return part


@contextlib.contextmanager
def started(models: fake_models.FakeModels | None = None, **settings) -> Iterator[Running]:
  """A server within the block."""
  found = Running(models, **settings)
  found.start()
  try:
    yield found
  finally:
    found.stop()
