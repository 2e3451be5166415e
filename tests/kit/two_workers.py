"""One worker of the job that tests/training/distribution_test.py runs: what it sees and does goes
to a JSON file.

TF_CONFIG=... python -m tests.kit.two_workers all FOLDER       everything; worker 1 kills itself
TF_CONFIG=... python -m tests.kit.two_workers resume FOLDER    continues the killed run
"""

import json
import os
import pathlib
import signal
import sys

import numpy as np
import tensorflow as tf

from bert.io import record_files
from bert.training import distribution, input_pipeline, training_loop
from tests.kit import toy_training
from tools import several_devices

STEPS = 8
CONFIG = {"save_checkpoints_steps": 2, "save_summary_steps": 1}


def write_records(folder):
  """More files than workers: each worker must not be given files of its own."""
  rows = toy_training.examples(38)  # The last batch of an evaluation is a short one.
  for i in range(3):
    padded = [
      {**row, "input_ids": np.resize([*row["input_ids"], *[0] * 8], 8)} for row in rows[i::3]
    ]
    record_files.write_records(folder / f"{i}.tf_record", padded)


def input_fn(folder, is_training):
  features = {
    "input_ids": tf.io.FixedLenFeature([8], tf.int64),
    "label_ids": tf.io.FixedLenFeature([], tf.int64),
  }
  paths = sorted(folder.glob("*.tf_record"))
  return input_pipeline.record_input_fn(paths, features, is_training, drop_remainder=is_training)


def make(folder):
  strategy = distribution.create_strategy("multi_worker")
  return toy_training.make(folder, strategy=strategy, **CONFIG)


def on_worker_1_after(step, action):
  """From now on worker 1 does something when it has finished a step."""
  report = training_loop.Training._report

  def report_and_act(self, *args):
    report(self, *args)
    if self._step == step and not distribution.is_chief():
      action()

  training_loop.Training._report = report_and_act
  return report


def train_straight(folder, seen):
  model = make(folder / "straight")
  model.train(input_fn(folder, is_training=True), STEPS)
  results = model.evaluate(input_fn(folder, is_training=False))
  seen["results"] = {name: results[name] for name in ("loss", "eval_loss", "eval_ids")}
  predictions = list(model.predict(input_fn(folder, is_training=False)))
  seen["scores"] = [float(p["score"]) for p in predictions]
  seen["lengths"] = [int(np.count_nonzero(p["ids"])) for p in predictions]


def stop_by_a_signal_to_one(folder, seen):
  report = on_worker_1_after(3, lambda: os.kill(os.getpid(), signal.SIGTERM))
  try:
    make(folder / "stopped").train(input_fn(folder, is_training=True), STEPS)
  except SystemExit as stopped:
    seen["stopped with"] = stopped.code
  training_loop.Training._report = report
  model = make(folder / "stopped")
  seen["stopped at"] = model.latest_checkpoint().rpartition("-")[2]
  model.train(input_fn(folder, is_training=True), STEPS)


def talk(folder, seen):
  index = int(not distribution.is_chief())
  seen["any"] = [distribution.any_worker(flag) for flag in (False, index == 1, True)]
  seen["bytes"] = [len(data) for data in distribution.gather_bytes(b"12345" * (index + 1))]
  texts = np.array([b"a" * (index + 1), b""], object)
  rows = distribution.gather([{"text": texts, "n/m": np.arange(index)}] * (index + 1))
  seen["rows"] = [(row["text"].tolist()[0].decode(), row["n/m"].tolist()) for row in rows]
  with (folder / f"written-by-{index}").open("a") as file:
    seen["written"] = distribution.on_chief(file.write, "once")  # characters
  try:
    distribution.check_equal({"same": [1], "index": index})
  except ValueError as error:
    seen["differ"] = str(error)


# A representative of those that write features, and the one whose loss divides by a count. All
# others are slow tests of tests/system/several_devices_test.py.
SCRIPTS = ("run_classifier", "run_pretraining")


def run_scripts(folder, seen):
  for name in SCRIPTS:
    seen[name] = several_devices.run_script(name, folder, "multi_worker")


def main(what, folder):
  seen = {}
  out = folder / f"{what}-{json.loads(os.environ['TF_CONFIG'])['task']['index']}.json"
  try:
    if what == "all":
      train_straight(folder, seen)
      stop_by_a_signal_to_one(folder, seen)
      talk(folder, seen)
      run_scripts(folder, seen)
      out.write_text(json.dumps(seen))
      on_worker_1_after(5, lambda: os.kill(os.getpid(), signal.SIGKILL))
    make(folder / "killed").train(input_fn(folder, is_training=True), STEPS)
  except distribution.WorkerLostError as error:
    print(f"ERROR: {error}", file=sys.stderr)
    return error.exit_code
  return 0


if __name__ == "__main__":
  sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
