"""Training in each type beside transformers' Trainer: the rows of `make check-gpu` about speed.

Both train on the same sentence pairs from the same weights, with the settings of
`benchmarks/fine_tuning.py`. The mean loss of our steps must be near that of float32, whose run has
the same data and the same dropout. On a GPU TF32 is off in both.
"""

import argparse
import json
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator

from benchmarks import common, fine_tuning
from tests.kit.paths import SAMPLE_VOCAB, SAMPLES
from tools.gpu_tests import FAILED, NOT_RUN, PASSED, Outcome, Plan, last_line, write_log

LOSS_LIMIT = 0.05
FLOAT32 = "--dtype=float32"
# Flag -> type of the peer; `--fast` is bfloat16 on GPUs since Ampere.
VARIANTS = {
  FLOAT32: "float32",
  "--dtype=bfloat16": "bfloat16",
  "--dtype=float16": "float16",
  "--fast": "bfloat16",
}
# Without --weights: BERT-Base's size on a GPU.
_SIZES = {True: {"layers": 12, "hidden_size": 768}, False: {"layers": 1, "hidden_size": 64}}


def run_training(plan: Plan) -> Iterator[Outcome]:
  """Yields a row for each of `VARIANTS`, and one more where the peer did not run."""
  with tempfile.TemporaryDirectory() as folder:
    try:
      training = _Training(plan, folder)
    except SystemExit as error:
      write_log(plan, "training_weights", str(error))
      yield Outcome("training", FAILED, last_line(str(error)))
      return
    for flag in VARIANTS:
      yield from training.rows(flag)


class _Training:
  """Runs of one model; float32's comes first, and others are compared with it."""

  def __init__(self, plan: Plan, folder: str):
    self._plan, self._npz, self._loss, self._peers = plan, f"{folder}/weights.npz", None, {}
    given = {**vars(plan.args), "weights": plan.args.weights or folder}
    data = plan.args.mrpc or str(SAMPLES / "MRPC")
    self._args = argparse.Namespace(**given, task="MRPC", data_dir=data, peer_epochs=1)
    if plan.args.weights:
      fine_tuning.write_npz(plan.args.weights, self._npz)
    else:
      write_random_weights(folder, **_SIZES[plan.is_gpu])
    # Only the first GPU: the Trainer would divide its batches among all.
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    self._environment = [f"CUDA_VISIBLE_DEVICES={first}"] if plan.is_gpu else []

  def rows(self, flag: str) -> Iterator[Outcome]:
    """Trains with a flag, then the peer in its type unless it has; a row, or two without peer."""
    begin, check = time.monotonic(), f"training {flag}"
    try:
      ours = fine_tuning.ours(self._args, [flag], ["TF_CPP_MIN_LOG_LEVEL=0", *self._environment])(1)
    except (SystemExit, TypeError, ValueError) as error:  # no such line in the log
      write_log(self._plan, f"training_{flag.strip('-')}", str(error))
      yield Outcome(check, FAILED, last_line(str(error)), time.monotonic() - begin)
      return
    if flag == FLOAT32:
      self._loss = ours["mean_loss"]
    result, figure = judged(ours, self._loss, self._plan.is_gpu)
    theirs, why = self._peer(VARIANTS[flag])
    if theirs:
      figure += f"; {self._beside(ours, theirs, VARIANTS[flag])}"
    yield Outcome(check, result, figure, time.monotonic() - begin)
    if why:
      yield Outcome(f"{check} beside transformers", NOT_RUN, why)

  def _beside(self, ours, theirs, dtype):
    speed = "later_examples_per_second"
    times = f"{ours[speed] / theirs[speed]:.2f} times " if self._plan.is_gpu else ""
    return f"{times}transformers {dtype} (mean loss {theirs['mean_loss']:.4f})"

  def _peer(self, dtype):
    """(figures of the peer, why there are none)."""
    if dtype not in self._peers:
      self._peers[dtype] = self._run_peer(dtype)
    return self._peers[dtype]

  def _run_peer(self, dtype):
    if "why" in self._plan.peer:
      return None, self._plan.peer["why"]
    if not self._plan.is_gpu and dtype == "float16":
      return None, "PyTorch's float16 needs a GPU"
    device = "cuda" if self._plan.is_gpu else "cpu"
    try:
      return fine_tuning.peer(self._args, self._npz, dtype, device, self._environment)(1), None
    except SystemExit as error:
      write_log(self._plan, f"transformers_{dtype}", str(error))
      return None, f"it failed: {last_line(str(error))}"


def judged(ours: dict[str, float], loss_of_float32: float | None, is_gpu: bool) -> tuple[str, str]:
  """(result, figure) of a run. The few steps on a CPU say nothing of speed.

  Example:
    >>> ours = {"later_examples_per_second": 200.0, "mean_loss": 0.5, "gpus": 1}
    >>> judged(ours, 0.5, True)
    ('passed', '200 examples/s, mean loss 0.5000 (float32 0.5000)')
    >>> judged(ours, 0.5, False)
    ('passed', 'mean loss 0.5000 (float32 0.5000)')
    >>> judged({**ours, "gpus": 0}, 0.5, True)[1]
    'TensorFlow made no GPU device: 200 examples/s, mean loss 0.5000 (float32 0.5000)'
    >>> judged({**ours, "mean_loss": 0.6}, 0.5, False)[0]
    'FAILED'
  """
  loss = ours["mean_loss"]
  speed = f"{ours['later_examples_per_second']:.4g} examples/s, " if is_gpu else ""
  figure = f"{speed}mean loss {loss:.4f}"
  if loss_of_float32 is not None:
    figure += f" (float32 {loss_of_float32:.4f})"
    if not abs(loss - loss_of_float32) <= LOSS_LIMIT:
      return FAILED, f"{figure}, more than {LOSS_LIMIT} apart"
  if is_gpu and not ours["gpus"]:
    return FAILED, f"TensorFlow made no GPU device: {figure}"
  return PASSED, figure


def write_random_weights(folder: str, **size) -> None:
  """Writes a model for the vocabulary of the samples, its checkpoint and its `weights.npz`."""
  config = json.loads((SAMPLES / "bert_config.json").read_text())
  with tempfile.TemporaryDirectory() as made:
    common.write_config(pathlib.Path(made), config["vocab_size"], **size)
    worker = [sys.executable, str(common.WORKERS / "random_weights.py"), folder]
    common.run_command([*worker, f"{made}/bert_config.json", str(SAMPLE_VOCAB)])
