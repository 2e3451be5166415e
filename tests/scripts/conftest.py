"""The small script of the tests of command lines."""

import functools

import pytest

from tests.kit import small_script


@pytest.fixture
def run(tmp_path):
  """Runs the small script with arguments; keywords are environment variables."""
  return functools.partial(small_script.run, tmp_path)
