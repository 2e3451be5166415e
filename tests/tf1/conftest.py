"""A graph for the tests that build into one.

One file alone: BERT_TF1_TESTS=1 python -m pytest tests/tf1/FOLDER/NAME_test.py
"""

import pytest

from bert.tf1.real import tf


@pytest.fixture
def graph():
  """A graph of the test's own, as the default one."""
  with tf.Graph().as_default() as graph:
    yield graph
