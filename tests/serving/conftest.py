"""Fixtures of the tests of the server."""

import pytest


@pytest.fixture
def channels(monkeypatch):
  """Made-up processes in place of real ones; returns their class, which knows all of them."""
  from bert.serving import worker_pool
  from tests.kit.made_up_engines import Channel

  Channel.reset()
  monkeypatch.setattr(worker_pool, "Channel", Channel)
  monkeypatch.setattr(worker_pool, "_FIRST_PAUSE_S", 0.001)
  yield Channel
  Channel.reset()
