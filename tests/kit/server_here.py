"""A server whose models compute in the test's own process, which has TensorFlow already.

  with server_here.client({"film": folder}, max_seq_length=16) as client:
    client.post("/answer", json={"items": ["good film"]}).json()["answers"]

Routes, models, queue and engines are real; only the process of each model is not.
"""

import contextlib
import os
import queue
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from starlette.testclient import TestClient

from bert.serving import app, worker, worker_pool
from bert.serving.metrics import Metrics
from bert.serving.served_models import ServedModels, ServingOptions
from bert.serving.service import Settings


class _Here:
  """Stands for `channel.Channel`."""

  pid = None

  def __init__(self, engines, threads=None):
    del threads  # TensorFlow has its own already
    self._loads = engines
    self._engines: list = []

  async def start(self, timeout_s):
    del timeout_s
    self._engines, ready = worker._loaded(self._loads, None)
    return ready

  async def compute(self, work, timeout_s):
    del timeout_s
    return worker._computed(self._engines[work.engine], work.rows)

  def kill(self):
    pass


@contextlib.contextmanager
def client(folders: Mapping[str, str | os.PathLike], **options: Any) -> Iterator[TestClient]:
  """Serves folders by name within the block; `options` are those of `servable.find`."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(worker_pool, "Channel", _Here)
    given = {name: os.fspath(folder) for name, folder in folders.items()}
    models = ServedModels(given, ServingOptions(reload=False), **options)
    ended: queue.SimpleQueue = queue.SimpleQueue()
    with TestClient(app.create(models, Settings(), Metrics(), started=ended.put)) as found:
      if error := ended.get(timeout=100):
        raise error
      yield found
