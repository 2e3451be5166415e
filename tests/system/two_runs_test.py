"""Two runs in one output_dir: the second is refused before it writes anything.

Alone: python -m pytest tests/system/two_runs_test.py
"""

import os
import pathlib

import pytest

from bert import run_classifier
from tests.kit import folder_holder, several_devices
from tests.kit.script_runs import Script
from tests.kit.several_devices import SCRIPTS


@pytest.fixture(scope="module")
def held(tmp_path_factory):
  """A folder that another process holds, and that process."""
  folder = tmp_path_factory.mktemp("held")
  with folder_holder.held(folder) as process:
    yield folder, process


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
  folder = tmp_path_factory.mktemp("data")
  for name in SCRIPTS:
    several_devices.write_data(name, folder)
  return folder


@pytest.mark.parametrize("do_train", [True, False])
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_second_run_is_refused_before_it_writes_anything(held, data, name, do_train):
  folder, process = held
  flags = {**several_devices.flags_of(name, data), "output_dir": folder, "do_train": do_train}
  message = Script(SCRIPTS[name]).error_of(**flags)
  assert message.startswith(f"ERROR: {folder} is in use by process {process.pid} on ")
  assert (f"--init_checkpoint={folder}" in message) != do_train
  assert os.listdir(folder) == [".lock"]


def test_a_run_holds_its_folder_while_it_writes_features(data, tmp_path, monkeypatch):
  seen = []

  def look(*args):
    seen.append(folder_holder.refused(tmp_path))
    raise OSError("That is all.")

  monkeypatch.setattr(run_classifier, "file_based_convert_examples_to_features", look)
  flags = {**several_devices.flags_of("run_classifier", data), "output_dir": tmp_path}
  assert "That is all." in Script(run_classifier).error_of(**flags)
  assert f"{tmp_path} is in use by process {os.getpid()} on" in seen[0]
  assert ".lock" not in os.listdir(tmp_path)
