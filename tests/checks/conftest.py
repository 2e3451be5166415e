"""A run in which nothing is wrong, for all tests of this folder."""

import pathlib
import shutil

import pytest

from tests.kit import healthy_run


@pytest.fixture(scope="session")
def good_set(tmp_path_factory) -> pathlib.Path:
  """The files of a run without faults; not to be changed."""
  return healthy_run.write(tmp_path_factory.mktemp("good"))


@pytest.fixture
def folder(good_set, tmp_path) -> pathlib.Path:
  """A copy of the good set, to plant faults in."""
  return pathlib.Path(shutil.copytree(good_set, tmp_path / "set"))


@pytest.fixture(autouse=True)
def large_machine(monkeypatch):
  """Results do not depend on what this machine has free."""
  healthy_run.pretend_large_machine(monkeypatch)
