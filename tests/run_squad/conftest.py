"""What the tests of run_squad.py share: a tiny model, and a run of it on each version of SQuAD."""

import pytest

from tests.kit import tiny_bert
from tests.kit.script_runs import Trained
from tests.kit.tiny_questions import VOCAB, train_and_predict


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> dict:
  """The flags of a tiny model, the same for every run."""
  return {
    **tiny_bert.write(tmp_path_factory.mktemp("model"), VOCAB),
    "max_seq_length": 24,
    "doc_stride": 8,
    "max_query_length": 4,
    "train_batch_size": 8,
    "learning_rate": 0.01,
  }


@pytest.fixture(scope="session")
def v1(model, tmp_path_factory) -> Trained:
  """A run that trains and predicts. Tests only read its folder."""
  return train_and_predict(model, tmp_path_factory.mktemp("v1"), False)


@pytest.fixture(scope="session")
def v2(model, tmp_path_factory) -> Trained:
  return train_and_predict(model, tmp_path_factory.mktemp("v2"), True)
