"""What the tests of run_glue.py share: a bench for sweeps."""

import pytest

from tests.kit.glue_bench import Bench


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Bench:
  return Bench(tmp_path, monkeypatch)
