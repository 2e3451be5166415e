"""Pre-training that is killed and started again equals a run that never stopped, bit for bit.

Alone: python -m pytest tests/system/run_pretraining_kill_test.py (`-m slow` for fifty kills in one
run, which take ten minutes)
"""

import functools
import json
import os
import pathlib
import random
import re
import select
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import tensorflow as tf

from bert.figures import event_files
from bert.io.record_files import write_records
from tests.kit import tiny_bert
from tests.kit.paths import ROOT

STEPS = 400
# Of values that are not of the clock.
EXACT = {
  "loss",
  "learning_rate",
  "masked_lm_loss",
  "next_sentence_loss",
  "masked_lm_accuracy",
  "next_sentence_accuracy",
  "tokens_per_example",
}
CONFIG = {
  **tiny_bert.sizes(40, 16, 2, 16, 16, type_vocab_size=2),
  "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1,
}


def make_records(count, seed):
  """Unmasked sequences of different lengths: masks are drawn while training, too."""
  rng = np.random.default_rng(seed)
  for i in range(count):
    mask = np.arange(16) < rng.integers(8, 17)
    ids = rng.integers(5, 40, 16)
    ids[0] = 2
    yield {
      "input_ids": ids * mask,
      "input_mask": mask.astype(int),
      "segment_ids": mask * (np.arange(16) > 6),
      "next_sentence_labels": [i % 2],
    }


@pytest.fixture(scope="module")
def command(tmp_path_factory):
  """The command line of a tiny model, without `--output_dir`."""
  folder = tmp_path_factory.mktemp("model")
  (folder / "config.json").write_text(json.dumps(CONFIG))
  tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{i}" for i in range(35))]
  (folder / "vocab.txt").write_text("\n".join(tokens))
  for i in range(3):
    write_records(folder / f"part-{i}.tfrecord", make_records(37, seed=i))
  flags = {
    "do_train": True,
    "dynamic_masking": True,
    "vocab_file": folder / "vocab.txt",
    "input_file": folder / "part-*.tfrecord",
    "bert_config_file": folder / "config.json",
    "max_seq_length": 16,
    "max_predictions_per_seq": 3,
    "train_batch_size": 8,
    "learning_rate": 0.01,
    "num_train_steps": STEPS,
    "num_warmup_steps": 10,
    "save_checkpoints_steps": 7,
    "save_summary_steps": 1,
    "report": False,
  }
  script = [sys.executable, str(ROOT / "run_pretraining.py")]
  return script + [f"--{name}={value}" for name, value in flags.items()]


def start(command, out):
  with open(f"{out}.log", "ab") as log:
    return subprocess.Popen([*command, f"--output_dir={out}"], stdout=log, stderr=log)


# Imports take longer than fifty of these runs: one process makes them, and forks for each run,
# before TensorFlow's runtime starts. It prints the number of each child, then how it ended.
_FORKS = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
from bert import modeling, optimization, run_pretraining
from bert.pretraining import dynamic_masking
from bert.scripts import command_line
from bert.training import estimator, input_pipeline

for line in sys.stdin:
  argv, log = json.loads(line)
  child = os.fork()
  if not child:
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    try:
      command_line.run(run_pretraining.main, run_pretraining.define_flags, argv)
    except SystemExit as error:
      os._exit(error.code or 0)
    finally:
      os._exit(3)
  print(child, flush=True)
  print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Fork:
  """A run in a process that was forked; as far as it is needed, a `subprocess.Popen`."""

  def __init__(self, parent: subprocess.Popen, command, out):
    argv = [*map(str, command[1:]), f"--output_dir={out}"]
    parent.stdin.write(json.dumps([argv, f"{out}.log"]).encode() + b"\n")
    self._answers = parent.stdout
    self._pid = int(self._answers.readline())
    self._code = None

  def poll(self) -> int | None:
    if self._code is None and select.select([self._answers], [], [], 0)[0]:
      self.wait()
    return self._code

  def send_signal(self, number) -> None:
    if self.poll() is None:
      os.kill(self._pid, number)

  def wait(self, timeout=300) -> int:
    if self._code is None:
      assert select.select([self._answers], [], [], timeout)[0], "it does not end"
      self._code = int(self._answers.readline())
    return self._code


@pytest.fixture
def fork(command):
  """`start` for many runs: `fork(command, out)`."""
  parent = subprocess.Popen(
    [sys.executable, "-c", _FORKS, str(ROOT)],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    bufsize=0,
  )
  yield functools.partial(Fork, parent)
  parent.stdin.close()
  parent.wait(timeout=60)


def wait_well(process, out):
  assert process.wait(timeout=300) == 0, pathlib.Path(f"{out}.log").read_text()[-3000:]


def newest_step(out) -> int:
  steps = [int(re.findall(r"-(\d+)\.index$", path.name)[0]) for path in out.glob("model.*.index")]
  return max(steps, default=0)


def kill_at(start_run, out, step, delay) -> int:
  """Starts a run, kills it `delay` seconds after `step` is saved; the newest saved step."""
  process = start_run(out)
  try:
    deadline = time.monotonic() + 300
    while newest_step(out) < step and process.poll() is None and time.monotonic() < deadline:
      time.sleep(0.001)
    time.sleep(delay)
  finally:
    process.send_signal(signal.SIGKILL)
  assert process.wait() == -signal.SIGKILL, "it came to an end before it could be killed"
  return newest_step(out)


@pytest.fixture(scope="module")
def straight(command, tmp_path_factory):
  """The folder of a run that never stopped."""
  out = tmp_path_factory.mktemp("straight") / "out"
  wait_well(start(command, out), out)
  return out


def tensors(out, steps) -> dict[str, np.ndarray]:
  prefix = str(out / f"model.ckpt-{steps}")
  return {name: tf.train.load_variable(prefix, name) for name, _ in tf.train.list_variables(prefix)}


def all_values(out) -> dict[tuple[str, int], set[float]]:
  """All values that event files tell for a tag and a step: of each process that got there."""
  found: dict[tuple[str, int], set[float]] = {}
  for path in sorted(out.glob("events.out.tfevents.*")):
    for event in event_files.read_events(str(path)):
      for value in event.summary.value:
        if value.tag in EXACT:
          key = value.tag, event.step
          found.setdefault(key, set()).add(float(tf.make_ndarray(value.tensor)))
  return found


def check_kills(start_run, straight, out, kills, seed, steps=STEPS):
  rng, saved = random.Random(seed), 0
  for number in range(kills):
    # Somewhere in the next part of the run; a delay of some milliseconds hits the middle of a
    # step, of writing a checkpoint, or of writing summaries.
    step = steps * number // (kills + 1) + rng.randrange(1, steps // (2 * (kills + 1)))
    saved = kill_at(start_run, out, max(step, saved + 1), rng.uniform(0.0, 0.05))
    assert saved < steps
  wait_well(start_run(out), out)

  log = pathlib.Path(f"{out}.log").read_text()
  assert log.count("Resumed from") == kills
  expected, found = tensors(straight, steps), tensors(out, steps)
  assert expected.keys() == found.keys()
  assert "bert/embeddings/word_embeddings/adam_v" in expected
  for name, value in expected.items():
    np.testing.assert_array_equal(found[name], value, err_msg=name)
  told = all_values(straight)
  assert {key[1] for key in told} == set(range(1, steps + 1))
  assert {key[0] for key in told} == EXACT
  # Steps after the last checkpoint were made, and told, twice: the values were the same.
  assert all_values(out) == told


@pytest.mark.ci
def test_one_kill(command, straight, tmp_path):
  check_kills(functools.partial(start, command), straight, tmp_path / "out", kills=1, seed=1)


@pytest.mark.slow
def test_fifty_kills(command, fork, tmp_path):
  steps = 2000
  run = functools.partial(fork, [*command, f"--num_train_steps={steps}"])
  straight = tmp_path / "straight"
  wait_well(run(straight), straight)
  check_kills(run, straight, tmp_path / "out", kills=50, seed=2, steps=steps)
