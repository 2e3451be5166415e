"""bert-as-service's own protocol, so that its client gets vectors from here: two sockets of ZeroMQ.

  from bert_serving.client import BertClient          # on any machine
  BertClient(port=5555, port_out=5556, check_version=False).encode(["First do it"])

A client pushes `[its identity, texts as JSON or a command, number of the request, count]` to the
first port, and hears at the second what is published under its identity: `[identity, shape and type
as JSON, the numbers, number of the request]`. It has no keys, so it is for this machine, or for a
network whose members may all ask. The command that stops a server does nothing here.
"""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import zmq
import zmq.asyncio
from absl import logging

from bert.serving import bert_as_service_routes, json_bodies
from bert.serving.errors import EmptyInput, InvalidInput, ServingError, TooLarge
from bert.serving.service import Service

# Clients compare it with their own version; this one is the last that was released.
_VERSION = "1.10.0"
_COMMANDS = (b"SHOW_CONFIG", b"SHOW_STATUS")
_STOP = b"TERMINATION"
_NUM_FRAMES = 4
_SUBSCRIPTION_MS = 2000
_LONGEST_NAME = 255  # bytes of an identity and of a number


@contextlib.asynccontextmanager
async def served(service: Service, host: str, port: int) -> AsyncIterator[None]:
  """Serves vectors in the block, at a port and the one after it.

  Args:
    service: the models; the one with vectors answers.
    host: an address.
    port: of requests; answers are published at the next.

  Raises:
    OSError: a port is in use.
  """
  context = zmq.asyncio.Context()
  requests, answers = context.socket(zmq.PULL), context.socket(zmq.XPUB)
  try:
    for socket, number in ((requests, port), (answers, port + 1)):
      socket.setsockopt(zmq.MAXMSGSIZE, service.settings.max_body_bytes)  # of what comes in
      try:
        socket.bind(f"tcp://{host}:{number}")
      except zmq.ZMQError as error:
        raise OSError(f"--zmq_port={port}: port {number}: {error}.") from None
    server = _Server(service, requests, answers, port)
    work = [asyncio.ensure_future(each) for each in (server.serve(), server.hear_subscribers())]
    yield
    for each in work:
      each.cancel()
    await asyncio.wait(work)
  finally:
    context.destroy(linger=0)


class _Server:
  """Takes requests and publishes answers, each in a task of its own."""

  def __init__(self, service: Service, requests: Any, answers: Any, port: int):
    self._service = service
    self._requests = requests
    self._answers = answers
    self._port = port
    self._tasks: set[asyncio.Task] = set()
    self._subscribers: set[bytes] = set()

  async def hear_subscribers(self) -> None:
    """Notes who listens, until it is cancelled: what is published before is lost."""
    while True:
      message = await self._answers.recv()
      change = self._subscribers.add if message[:1] == b"\x01" else self._subscribers.discard
      change(message[1:])

  async def serve(self) -> None:
    """Serves until it is cancelled; then the requests in flight are, too."""
    try:
      while True:
        frames = await self._requests.recv_multipart()
        if len(self._tasks) >= self._service.settings.max_concurrent_requests:
          continue  # the protocol has no word for it: the client's own timeout ends the request
        task = asyncio.ensure_future(self._answer(frames))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
    finally:
      for task in self._tasks:
        task.cancel()

  async def _answer(self, frames: list[bytes]) -> None:
    if len(frames) != _NUM_FRAMES or any(len(frames[i]) > _LONGEST_NAME for i in (0, 2, 3)):
      logging.warning("A message is not one of bert-as-service's: %d frames.", len(frames))
      return
    identity, content, number, _ = frames
    if content == _STOP:
      return
    try:
      if content in _COMMANDS:
        answer = [json.dumps(self._facts()).encode(), content]
      else:
        answer = _array(await self._vectors(content))
    except ServingError as error:  # the protocol has no errors: an empty array is none of texts
      logging.warning("A request of bert-as-service's client is refused: %s", error)
      answer = _array(np.zeros([0, 0], np.float32), error=str(error))
    except Exception:
      logging.exception("A mistake of the server, at a request of bert-as-service's client")
      answer = _array(np.zeros([0, 0], np.float32), error="The server made a mistake.")
    if await self._listens(identity):
      await self._answers.send_multipart([identity, *answer, number])

  async def _listens(self, identity: bytes) -> bool:
    """Waits for a client that has only just connected; tells whether it hears its answers."""
    for _ in range(_SUBSCRIPTION_MS // 10):
      if identity in self._subscribers:
        return True
      await asyncio.sleep(0.01)
    return False

  async def _vectors(self, content: bytes) -> np.ndarray:
    texts = json_bodies.read_json(content)
    if not isinstance(texts, list):
      raise InvalidInput(f"The texts are {json_bodies.shown(texts)}, but a list is needed.")
    if not texts:
      raise EmptyInput("There is no text to compute.")
    if len(texts) > self._service.settings.max_inputs:
      raise TooLarge(f"The request has {len(texts)} texts.")
    items = bert_as_service_routes.items_of(texts, is_tokenized=isinstance(texts[0], list))
    computed = await self._service.model(None, "vectors").compute("vectors", items)
    self._service.metrics.computed("vectors", computed)
    return np.stack(computed.results).astype(np.float32)

  def _facts(self) -> dict[str, Any]:
    """Returns what clients ask for before they encode."""
    model = self._service.model(None, "vectors")
    return {
      "server_version": _VERSION,
      "max_seq_len": model.servable.abilities["vectors"].processor.max_seq_length,
      "show_tokens_to_client": False,
      "port": self._port,
      "port_out": self._port + 1,
      "model_dir": model.name,
      "ventilator -> worker": [],
      "worker -> sink": "",
    }


def _array(values: np.ndarray, **more: Any) -> list[bytes]:
  facts = {"dtype": str(values.dtype), "shape": values.shape, **more}
  return [json.dumps(facts).encode(), np.ascontiguousarray(values).tobytes()]
