"""A process that is switched to TensorFlow 1.x; recorded outputs of the original; a graph.

All: make test-tf1. One file: python -m pytest tf1/tests/FOLDER/NAME_test.py
"""

import os
import pathlib

import pytest

from tests.kit.paths import SHARED

if "PYTEST_XDIST_WORKER" in os.environ:
  # One thread for each worker: small models gain nothing from more, and workers share two cores.
  for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from bert_tf1.real import tf  # reads these


def _shared(folder: str) -> pathlib.Path:
  path = SHARED / folder
  if path.is_dir():
    return path
  message = f"{folder} of the original is not beside this checkout ({path})"
  if os.environ.get("BERT_REQUIRE_GOLDEN") == "1":
    pytest.fail(message)
  pytest.skip(message)


@pytest.fixture(scope="session")
def golden_dir() -> pathlib.Path:
  """Recorded outputs of the original; skips without them, fails if BERT_REQUIRE_GOLDEN=1."""
  return _shared("golden")


@pytest.fixture(scope="session")
def data_dir() -> pathlib.Path:
  """Real data and weights; skips without them, fails if BERT_REQUIRE_GOLDEN=1."""
  return _shared("data")


@pytest.fixture(scope="session")
def released_vocab_file(data_dir) -> pathlib.Path:
  """The vocabulary of the released uncased models, 30,522 tokens."""
  return data_dir / "vocab" / "uncased_vocab.txt"


@pytest.fixture
def graph():
  """A graph of the test's own, as the default one."""
  with tf.Graph().as_default() as graph:
    yield graph
