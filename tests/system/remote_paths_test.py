"""Paths of files and models in every script: remote ones are read, or refused in a line.

The remote file system is TensorFlow's in memory, `ram://`; `nosuch://` is one it does not have.
Which flags are paths at all, and which refuse remote ones: tests/scripts/path_flags_test.py.
Alone: python -m pytest tests/system/remote_paths_test.py (a minute)
"""

import json
import os

import pytest

from bert import __main__ as bert_command
from bert.io import filesystem
from bert.scripts import flag_groups, path_flags
from tests.kit import every_script
from tests.kit.every_script import RUNS, flags, script, without_model_files

pytestmark = pytest.mark.ci

REMOTE = "ram://remote_paths"
# Of each kind of reader one: a model with its data, texts, a corpus. The others are slow.
_IN_CI = ("run_classifier", "extract_features", "create_pretraining_data")


@pytest.fixture(scope="module")
def local(tmp_path_factory):
  return every_script.write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module")
def remote(local):
  """The same on a remote file system."""
  for path in local.rglob("*"):
    if path.is_file():
      with filesystem.open_to_write(f"{REMOTE}/{path.relative_to(local)}") as writer:
        writer.write(path.read_bytes())
  return REMOTE


@pytest.mark.parametrize(
  "name",
  [pytest.param(name, marks=() if name in _IN_CI else pytest.mark.slow) for name in RUNS],
)
def test_a_script_reads_its_files_from_a_remote_file_system(name, remote, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  done = script(name).run(**flags(name, remote, tmp_path))
  assert done.code in (None, 0), done.err + done.out
  assert not list(tmp_path.glob("ram:*"))
  if "{}" in (output := RUNS[name].get("output_file", "")):
    first = filesystem.read_bytes(output.replace("{}", remote)).splitlines()[0]
    assert json.loads(first)


def _remote_flags():
  """(script, flag) of each path that may be remote and that the run above reads or writes."""
  for name, values in RUNS.items():
    with flag_groups.defined_flags(every_script.module(name).define_flags):
      for flag in filter(path_flags.is_path, flag_groups.script_flags()):
        if not flag.parser.path.local and flag.name in values:
          yield name, flag.name


@pytest.mark.parametrize(("name", "flag"), list(_remote_flags()))
def test_a_file_system_that_tensorflow_does_not_have(name, flag, local, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  done = script(name).run(**flags(name, local, tmp_path, **{flag: "nosuch://bucket/x"}))
  assert done.code == 1
  said = [line for line in (done.out + done.err).splitlines() if "nosuch://bucket/x" in line]
  assert len(said) == 1, done.err
  is_output_of_records = (name, flag) == ("create_pretraining_data", "output_file")
  why = "is remote" if is_output_of_records else "TensorFlow has no file system for nosuch:// here"
  assert why in said[0]
  assert "Traceback" not in done.err
  assert not [path for path in os.listdir(tmp_path) if path.startswith("nosuch")]


def test_every_script_is_in_the_table():
  # All data of these are local, or (serve) read by processes that do not share `ram://`.
  others = {"run_glue", "plots", "report", "serve", "download"}
  assert set(RUNS) | others >= set(bert_command.own_words())


@pytest.mark.parametrize("name", [name for name in RUNS if "init_checkpoint" in RUNS[name]])
def test_a_wrong_name_of_a_model_is_answered_with_the_nearest(name, local, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  given = flags(name, local, tmp_path, init_checkpoint="uncased_L2_H-128_A-2")
  # The name of a released model brings its files.
  done = script(name).run(**without_model_files(given))
  assert done.code == 1
  said = [line for line in (done.out + done.err).splitlines() if "Did you mean" in line]
  assert len(said) == 1, done.err
  assert "neither a file or folder here nor the name of a released model" in said[0]
  assert "mean uncased_L-2_H-128_A-2?" in said[0]
  assert not list(tmp_path.rglob("*.index"))
