"""bert-as-service's protocol over ZeroMQ, spoken by hand.

Alone: python -m pytest tests/serving/zmq_server_test.py (a second; needs pyzmq)
"""

import asyncio
import json

import numpy as np
import pytest

from bert.serving.metrics import Metrics
from bert.serving.service import Service
from bert.serving.settings import Settings
from tests.kit.server_program import two_free_ports
from tests.serving import fake_models

zmq = pytest.importorskip("zmq")
pytest.importorskip("zmq.asyncio")

TEXT, OTHER = "The storm closed both runways.", "No aircraft could land."


class Client:
  """A client of two sockets."""

  def __init__(self, port: int):
    context = zmq.asyncio.Context.instance()
    self.requests, self.answers = context.socket(zmq.PUSH), context.socket(zmq.SUB)
    self.requests.setsockopt(zmq.LINGER, 0)
    self.answers.setsockopt(zmq.SUBSCRIBE, b"me")
    self.requests.connect(f"tcp://127.0.0.1:{port}")
    self.answers.connect(f"tcp://127.0.0.1:{port + 1}")

  async def ask(self, content: bytes, number: bytes = b"7") -> list[bytes]:
    await self.requests.send_multipart([b"me", content, number, b"1"])
    return await asyncio.wait_for(self.answers.recv_multipart(), 10)

  def close(self):
    self.requests.close()
    self.answers.close()


def run(talk):
  """Runs `talk(client, models)` with a server."""
  from bert.serving import zmq_server

  models = fake_models.FakeModels({"encoder": fake_models.encoder()})
  service = Service(models, Settings(max_inputs=3), Metrics())

  async def main():
    port = two_free_ports()
    async with zmq_server.served(service, "127.0.0.1", port):
      client = Client(port)
      try:
        return await talk(client, models)
      finally:
        client.close()

  return asyncio.run(main())


def array_of(frames):
  identity, facts, values, number = frames
  assert (identity, number) == (b"me", b"7")
  facts = json.loads(facts)
  return np.frombuffer(values, facts["dtype"]).reshape(facts["shape"]), facts


def vectors(models, items):
  ability = models.models["encoder"].servable.abilities["vectors"]
  rows = [ability.processor.featurize(item) for item in items]
  return [ability.processor.finish(its, [ability.scores(its[0])]) for its in rows]


@pytest.mark.parametrize(
  ("texts", "items"),
  [
    ([TEXT, OTHER], [TEXT, OTHER]),
    ([f"{TEXT} ||| {OTHER}"], [(TEXT, OTHER)]),
    ([["the", "storm"]], [{"words": ["the", "storm"]}]),
  ],
)
def test_texts_become_vectors(texts, items):
  async def talk(client, models):
    found, _ = array_of(await client.ask(json.dumps(texts).encode()))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, vectors(models, items))

  run(talk)


@pytest.mark.parametrize("command", [b"SHOW_CONFIG", b"SHOW_STATUS"])
def test_what_clients_ask_first(command):
  async def talk(client, models):
    identity, facts, _, number = await client.ask(command)
    assert (identity, number) == (b"me", b"7")
    facts = json.loads(facts)
    assert facts["max_seq_len"] == fake_models.LENGTH
    assert {"server_version", "show_tokens_to_client"} <= set(facts)

  run(talk)


@pytest.mark.parametrize(
  ("content", "words"),
  [
    (b"{", "not JSON"),
    (b'"a"', "a list is needed"),
    (b"[]", "no text"),
    (b'["a", ""]', "`texts`[1] is an empty text."),
    (b"[5]", "`texts`[0] is 5"),
    (b'["\\ud800"]', "half of a surrogate pair"),
    (b'["a", "b", "c", "d"]', "has 4 texts"),
  ],
)
def test_bad_texts_have_an_empty_array_and_a_reason(content, words):
  async def talk(client, models):
    found, facts = array_of(await client.ask(content))
    assert found.size == 0
    assert words in facts["error"]
    found, _ = array_of(await client.ask(b'["a"]'))
    assert found.shape == (1, fake_models.WIDTH)

  run(talk)


def test_nobody_can_stop_the_server_or_break_it():
  async def talk(client, models):
    for frames in ([b"me", b"TERMINATION", b"1", b"1"], [b""], [b"me"] * 5, [b"x" * 999] * 4):
      await client.requests.send_multipart(frames)
    found, _ = array_of(await client.ask(b'["a"]'))
    assert found.shape == (1, fake_models.WIDTH)

  run(talk)


def test_a_mistake_of_the_model_is_answered():
  async def talk(client, models):
    models.models["encoder"].trouble = ZeroDivisionError("secret")
    _, facts = array_of(await client.ask(b'["a"]'))
    assert facts["error"] == "The server made a mistake."

  run(talk)


def test_a_port_in_use_is_one_line():
  from bert.serving import zmq_server

  service = Service(fake_models.all_kinds(), Settings(), Metrics())

  async def main():
    port = two_free_ports()
    async with zmq_server.served(service, "127.0.0.1", port):
      with pytest.raises(OSError, match=f"--zmq_port={port}: port {port}: Address already in use"):
        async with zmq_server.served(service, "127.0.0.1", port):
          pass

  asyncio.run(main())
