"""Two runs in one output_dir: of two that train, or two that do not, the second is refused."""

import os
import pathlib
import subprocess
import sys
import time

import pytest

from bert import run_classifier
from tests.kit import folder_holder
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script, results_in
from tools import several_devices
from tools.several_devices import SCRIPTS


@pytest.fixture(scope="module", params=[".lock", ".lock.evaluation"])
def held(tmp_path_factory, request):
  """A folder that another process holds, that process, and its lock: of training or evaluation."""
  folder = tmp_path_factory.mktemp("held")
  with folder_holder.held(folder, request.param) as process:
    yield folder, process, request.param


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> pathlib.Path:
  folder = tmp_path_factory.mktemp("data")
  for name in SCRIPTS:
    several_devices.write_data(name, folder)
  return folder


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_second_run_is_refused_before_it_writes_anything(held, data, name):
  folder, process, lock = held
  do_train = lock == ".lock"
  flags = {**several_devices.flags_of(name, data), "output_dir": folder, "do_train": do_train}
  message = Script(SCRIPTS[name]).error_of(**flags)
  assert message.startswith(f"ERROR: {folder} is in use by process {process.pid} on ")
  assert (f"--init_checkpoint={folder}" in message) != do_train
  assert os.listdir(folder) == [lock]


def test_a_run_holds_its_folder_while_it_writes_features(data, tmp_path, monkeypatch):
  seen = []

  def look(*args):
    seen.append(folder_holder.refused(tmp_path))
    raise OSError("That is all.")

  monkeypatch.setattr(run_classifier, "convert_single_example", look)
  flags = {**several_devices.flags_of("run_classifier", data), "output_dir": tmp_path}
  assert "That is all." in Script(run_classifier).error_of(**flags)
  assert f"{tmp_path} is in use by process {os.getpid()} on" in seen[0]
  assert ".lock" not in os.listdir(tmp_path)


@pytest.mark.ci
def test_evaluation_and_prediction_beside_a_running_training(data, tmp_path):
  """As scripts of 2018 do; the training would never end by itself, so nothing depends on speed."""
  out = tmp_path / "out"
  flags = {**several_devices.flags_of("run_classifier", data), "output_dir": out}
  endless = {
    **{**flags, "do_train": True, "do_eval": True, "num_train_epochs": 1e6},
    **{"eval_every_steps": 5, "save_checkpoints_steps": 5, "keep_checkpoint_max": 1},
  }
  command = [sys.executable, str(ROOT / "run_classifier.py")]
  with open(tmp_path / "log", "w") as log:
    training = subprocess.Popen(
      [*command, *(f"--{name}={value}" for name, value in endless.items())], stderr=log
    )
  try:
    while not (out / "model.ckpt-10.index").exists() and training.poll() is None:
      time.sleep(0.1)
    features = (out / "eval.tf_record").stat().st_mtime_ns
    script = Script(run_classifier)
    for job in ("do_eval", "do_predict"):
      script.run_well(**{**flags, "do_train": False, job: True})
    # The best weights so far, not the newest.
    assert int(results_in(out / "eval_results.txt")["global_step"]) in range(5, 10**9, 5)
    assert (out / "predictions.tsv").exists()
    assert (out / "eval.tf_record").stat().st_mtime_ns == features, "the training reads it again"
    refused = script.error_of(**{**flags, "do_train": True})
    assert f"{out} is in use by process {training.pid} on " in refused
    assert training.poll() is None, (tmp_path / "log").read_text()
  finally:
    training.terminate()
    code = training.wait()
  assert code == 143, (tmp_path / "log").read_text()
  assert not [name for name in os.listdir(out) if name.startswith((".lock", ".features"))]
