"""Tests of doctor.py: a run without faults is silent; flags, exit codes, formats.

The checks have tests of their own in tests/checks.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import pytest

from bert import doctor
from bert.checks.findings import to_text
from tests.kit import healthy_run
from tests.kit.healthy_run import (
  DATA,
  DATA_FILE,
  PATHS,
  TEXTS,
  bad,
  diagnose,
  subject_of,
  write_table,
)
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script

script = Script(doctor)


@pytest.fixture(scope="module")
def good_set(tmp_path_factory) -> pathlib.Path:
  return healthy_run.write(tmp_path_factory.mktemp("good"))


@pytest.fixture
def folder(good_set, tmp_path) -> pathlib.Path:
  """A copy of the good set, to plant faults in."""
  return pathlib.Path(shutil.copytree(good_set, tmp_path / "set"))


@pytest.fixture(autouse=True)
def large_machine(monkeypatch):
  healthy_run.pretend_large_machine(monkeypatch)


@pytest.mark.parametrize("data", DATA)
def test_a_good_set_is_silent(good_set, data):
  findings = diagnose(good_set, data)
  assert not bad(findings), to_text(findings)
  # Silence means something only if the data were looked at.
  assert any(data in finding.where for finding in findings)


def flags_of(folder, data="tables", **changed) -> dict:
  subject = subject_of(folder, data)
  values = {name: getattr(subject, name) for name in [*PATHS, "task_name", "max_seq_length"]}
  values = {name: value for name, value in values.items() if value is not None}
  return {**values, "output_dir": folder / "out", **changed}


def test_the_script_tells_and_exits_with_0(good_set):
  done = script.run(**flags_of(good_set, do_train=True, learning_rate=2e-5))
  assert done.code == 0, done.out
  assert "40 examples for train" in done.out
  assert done.out.splitlines()[-1].endswith("0 error(s), 0 warning(s).")
  assert "Ignoring" not in done.err


def test_an_error_exits_with_1(folder):
  (folder / DATA_FILE).unlink()
  done = script.run(**flags_of(folder))
  assert done.code == 1
  assert "error    " in done.out
  assert "data files are missing" in done.out


def test_files_may_have_the_names_that_runs_give_them(good_set):
  flags = flags_of(good_set, "conll", train_file=good_set / "conll/train.conll", label_column=-1)
  del flags["data_dir"]
  done = script.run(**flags, dev_file=good_set / "conll/dev.conll", label_scheme="bio")
  assert done.code == 0, done.out
  assert "20 examples for train" in done.out
  assert "10 examples for dev" in done.out


def test_json_holds_the_same(folder):
  write_table(folder / "tables/dev.csv", TEXTS[:10])
  done = script.run(**flags_of(folder, format="json"))
  assert done.code == 0  # a warning is no error
  report = json.loads(done.out)
  assert (report["errors"], report["warnings"]) == (0, 1)
  [finding] = [each for each in report["findings"] if each["level"] == "warning"]
  assert finding["where"] == str(folder / "tables/dev.csv") + ":2"
  assert set(finding) == {"level", "what", "where", "remedy", "leaks"}


@pytest.mark.parametrize("what", ["missing", "folder", "garbage", "empty"])
@pytest.mark.parametrize(
  "name", ["bert_config_file", "vocab_file", "init_checkpoint", "input_file"]
)
def test_nothing_ends_in_a_traceback(good_set, tmp_path, name, what):
  path = tmp_path / "file"
  if what == "folder":
    path.mkdir()
  elif what != "missing":
    path.write_bytes(b"" if what == "empty" else bytes(range(256)) * 4)
  flags = flags_of(good_set, "corpus", **{name: path})
  done = script.run(**flags)
  assert "Traceback" not in done.err + done.out
  assert "ended in" not in done.out, done.out
  assert done.code == 1, done.out


def test_a_released_model_is_not_downloaded():
  done = script.run(init_checkpoint="uncased_L-12_H-768_A-12", max_seq_length=128)
  assert done.code == 0, done.out
  assert "109.5 million parameters" in done.out
  assert "would be downloaded" in done.out


def test_help_does_not_load_tensorflow():
  code = "import sys; from bert import doctor; from bert.scripts import command_line\n"
  code += "try: command_line.run(doctor.main, doctor.define_flags, ['doctor.py', '--help'])\n"
  code += "finally: assert 'tensorflow' not in sys.modules"
  done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  assert "--init_checkpoint" in done.stdout
