"""benchmarks/distillation.py: which runs it makes and skips, and its table; nothing trains."""

import doctest
import json
import sys
from unittest import mock

import pytest

from benchmarks import common, distillation
from bert import distill, run_classifier
from bert.scripts import command_line, flag_groups

SCRIPTS = {"distill": distill, "run_classifier": run_classifier}


def test_worked_examples():
  assert doctest.testmod(distillation).failed == 0


@pytest.fixture
def study(tmp_path, monkeypatch):
  """Starts the study with scripts that only write their results; returns their names and words."""
  commands = []

  def run_script(name, *words, nice):
    assert nice == 3
    commands.append((name, words))
    flags = dict(word.removeprefix("--").partition("=")[::2] for word in words)
    folder = tmp_path / flags["output_dir"]
    folder.mkdir(parents=True)
    better = 0.1 if flags.get("method") == "logits" and "label_weight" not in flags else 0.0
    score = 0.6 + 0.01 * int(flags.get("seed", 20)) + better
    (folder / "eval_results.txt").write_text(f"eval_accuracy = {score}\nglobal_step = 7\n")

  speeds = {
    name: {"texts/s": [speed] * 5, "bytes": 1000000 * speed}
    for name, speed in (("teacher", 10), ("2 layers", 30), ("3 layers", 20))
  }
  monkeypatch.setattr(common, "run_script", run_script)
  monkeypatch.setattr(distillation, "_speeds", lambda args, folder: speeds)

  def start(*words):
    folders = [f"--glue_dir={tmp_path}", f"--output_dir={tmp_path}/out", f"--weights={tmp_path}"]
    monkeypatch.setattr(common, "_model_folder", str)
    monkeypatch.setattr("sys.argv", ["distillation.py", *folders, "--nice=3", *words])
    commands.clear()
    distillation.main()
    return list(commands)

  return start


def test_its_runs_are_made_once_and_compared_by_seed(study, capsys):
  made = study("--seeds=1,2")
  assert len(made) == 1 + 2 * 2 * 3
  assert study("--seeds=1,2") == []
  assert len(study("--seeds=1,2,3")) == 6
  *_, table, line = capsys.readouterr().out.rpartition("| model")
  rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in line.splitlines()[:-1]]
  assert ["teacher", "labels", "1", "80.00", "", "10", "10.0"] in rows
  assert ["2 layers", "labels", "3", "62.00 ± 1.00", "", "30", "30.0"] in rows
  assert [
    "3 layers",
    "logits",
    "3",
    "72.00 ± 1.00",
    "+10.00 [+10.00, +10.00]",
    "20",
    "20.0",
  ] in rows
  assert json.loads(line.splitlines()[-1])["task"] == "MRPC"
  assert table == "| model"


def test_its_flags_exist(study):
  for name, words in study("--seeds=1", "--layers=2"):
    module = SCRIPTS[name]
    argv = [f"{name}.py", *words]
    with mock.patch.object(sys, "argv", argv), flag_groups.defined_flags(module.define_flags):
      known = {flag.name for flag in flag_groups.script_flags()}
      names = {word.removeprefix("--").partition("=")[0] for word in words}
      assert {
        each for each in names if each not in known and each.removeprefix("no") not in known
      } == set()
      assert command_line.parse(argv) == argv[:1]
