"""A graph for the tests that build into one."""

import pytest

from bert.tf1.real import tf


@pytest.fixture
def graph():
  """A graph of the test's own, as the default one."""
  with tf.Graph().as_default() as graph:
    yield graph
