"""Tests of run_glue.py: which runs the flags ask for, and what is wrong with them."""

import os
import subprocess
import sys

import pytest

from bert.sweeps import glue
from bert.sweeps.glue import TASKS
from bert.tasks import glue as glue_tasks
from tests.kit.glue_bench import write
from tests.kit.paths import ROOT


def test_each_point_of_the_grid_is_one_process(bench):
  bench.add("MRPC", "CoLA").run_well("--max_seq_length=64", epochs="2,3")
  calls = [call for call in bench.calls() if "do_train" in call]
  points = [(c["task_name"], c["learning_rate"], c["num_train_epochs"], c["seed"]) for c in calls]
  assert points == [
    (task, rate, epochs, seed)
    for task in ("CoLA", "MRPC")
    for rate in ("2e-05", "3e-05")
    for epochs in "23"
    for seed in "12"
  ]
  assert len({call["output_dir"] for call in calls}) == len(calls)
  for call in calls:
    assert call["max_seq_length"] == "64"
    assert call["data_dir"] == str(bench.glue / call["task_name"])
    assert call["vocab_file"] == str(bench.flags["vocab_file"])
    assert call["do_eval"]
    assert "do_predict" not in call
    assert "init_checkpoint" not in call


@pytest.mark.parametrize(
  ("argv", "said"),
  [
    (["--", "--seed=3"], "--seed=3 after -- would replace what run_glue.py gives each run"),
    (["--", "--warmup_proportion=7"], "--warmup_proportion=7.0: must be between 0 and 1"),
    (["--tasks=MRPC,Moon"], "--tasks: Moon is not one of CoLA"),
    (["--tasks=RTE,qqp,ax"], "does not have QQP, AX."),
    (["--learning_rates=0"], "--learning_rates: must be positive numbers, not '0'"),
    (["--seeds=1.5"], "--seeds: must be whole numbers, not '1.5'"),
    (["--epochs=nan"], "must be positive numbers, not 'nan'"),
    (["--glue_dir=nowhere"], "--glue_dir=nowhere is not a folder"),
    (["--glue_dir=."], "contains no task of GLUE"),
    (["--init_checkpoint=nowhere"], "nowhere is neither a file or folder here"),
  ],
)
def test_one_message_says_what_is_wrong_before_anything_runs(bench, argv, said, monkeypatch):
  bench.add("RTE")
  monkeypatch.chdir(bench.control)
  assert said in bench.error_of(*argv)
  assert bench.calls() == []


def test_folders_are_found_however_they_are_written(tmp_path, caplog):
  for name in ("sst2", "MNLI", "sts_b", "diagnostic", "SNLI", "QQP"):
    (tmp_path / name).mkdir()
  for name in ("sst2/train", "sst2/dev", "sts_b/train", "sts_b/dev", "QQP/train"):
    write(tmp_path / f"{name}.tsv", "")
  for name in ("MNLI/train", "MNLI/dev_matched", "SNLI/train", "diagnostic/diagnostic"):
    write(tmp_path / f"{name}.tsv", "")
  found = glue.find_tasks(str(tmp_path))
  assert {name: os.path.basename(path) for name, path in found.items()} == {
    "SST-2": "sst2",
    "STS-B": "sts_b",
    "MNLI": "MNLI",
    "AX": "diagnostic",
  }
  assert list(found) == ["SST-2", "STS-B", "MNLI", "AX"]


def test_each_task_has_the_metrics_that_run_classifier_writes():
  for task in TASKS.values():
    processor = glue_tasks.create_processor(task.name)
    written = {f"eval_{name}" for name in (*processor.metrics, "accuracy")}
    assert {metric.key.removesuffix("_mismatched") for metric in task.metrics} <= written
    assert f"eval_{processor.headline_metric}" in {metric.key for metric in task.metrics}


def test_help_comes_without_tensorflow():
  program = (
    "import sys; from bert import run_glue\n"
    "try:\n  run_glue.start(['run_glue.py', '--help'])\n"
    "except SystemExit as left:\n  print(left.code, 'tensorflow' in sys.modules)"
  )
  done = subprocess.run(
    [sys.executable, "-c", program],
    cwd=ROOT,
    capture_output=True,
    text=True,
    timeout=60,
    check=True,
  )
  assert "--learning_rates" in done.stdout
  assert done.stdout.splitlines()[-1] == "0 False"
