"""What the tests of many runs share: tiny data, tiny models, and runs that do not train."""

import pytest

from bert import run_classifier
from tests.kit import many_runs
from tests.kit.many_runs import ManyRuns


@pytest.fixture
def classifier(fake_estimator, monkeypatch) -> ManyRuns:
  return ManyRuns(run_classifier, monkeypatch)


@pytest.fixture
def processes(monkeypatch) -> ManyRuns:
  """Runs of run_classifier.py that leave an accuracy of 0.7, and do nothing."""
  return ManyRuns(run_classifier, monkeypatch, results=lambda flags: 0.7)


@pytest.fixture
def mrpc(tmp_path) -> dict:
  """The flags of runs on MRPC, without the number of runs."""
  return many_runs.flags_on_mrpc(tmp_path)
