"""Trains, evaluates, exports and predicts again and again in one process, and measures it.

  python -m tools.soak MINUTES FIGURES.jsonl

Each cycle has three parts: `run_classifier.py` from its flags to its export in a new folder, in
which everything is built anew; a `Predictor` of what it trained and one of what it exported; and an
estimator that lives as long as the process does, which must not trace anything twice. After each
cycle a line of figures is written, see `figures`.

A program of its own, because pytest keeps what a test logs.
"""

import gc
import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time

from bert import run_classifier
from bert.predicting import predictor
from tests.kit import toy_training, two_workers
from tests.kit.script_runs import Script
from tools import several_devices


class Soak:
  """The parts of a cycle, in a folder of their own."""

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    several_devices.write_data("run_classifier", folder)
    (folder / "toy").mkdir()
    two_workers.write_records(folder / "toy")
    self._model = toy_training.make(folder / "toy" / "out", save_checkpoints_steps=5)
    self._steps = 0

  def cycle(self) -> None:
    """Everything once."""
    self._run_script()
    self._predict()
    self._go_on()

  def _run_script(self):
    """In a folder as new as the one of the first cycle."""
    flags = several_devices.flags_of("run_classifier", self._folder)
    shutil.rmtree(flags["output_dir"], ignore_errors=True)
    Script(run_classifier).run_well(**flags, do_export=True)

  def _predict(self):
    out, vocabulary = (
      self._folder / "run_classifier",
      self._folder / "data_run_classifier/vocab.txt",
    )
    for model in (
      predictor.Predictor.load(str(out / "export")),
      predictor.Predictor.load(str(out), vocab_file=str(vocabulary)),
    ):
      assert len(model([("a", "b")] * 5)) == 5

  def _go_on(self):
    """Five steps further, on variables and graphs that stay."""
    self._steps += 5
    train, rest = (
      two_workers.input_fn(self._folder / "toy", training) for training in (True, False)
    )
    self._model.train(train, self._steps)
    self._model.evaluate(rest)
    assert len(list(self._model.predict(rest))) == 38


def figures() -> dict[str, int]:
  """What must not grow.

  Returns:
    Resident memory in KB, all of it and without mapped files, which the system drops and reads
    again as it likes; open files; threads; graphs of functions that Python keeps alive; functions
    that TensorFlow's runtime knows; and traces of the estimator that stays.
  """
  from tensorflow.python.eager import context
  from tensorflow.python.framework.func_graph import FuncGraph

  gc.collect()
  status = pathlib.Path("/proc/self/status").read_text()
  kilobytes = dict(re.findall(r"^(VmRSS|RssAnon):\s+(\d+) kB$", status, re.MULTILINE))
  return {
    "resident": int(kilobytes["VmRSS"]),
    "memory": int(kilobytes["RssAnon"]),
    "files": len(os.listdir("/proc/self/fd")),
    "threads": len(os.listdir("/proc/self/task")),
    "graphs": sum(isinstance(each, FuncGraph) for each in gc.get_objects()),
    "functions": len(context.context().list_function_names()),
    "traces": len(toy_training.TRACES),
  }


def main(minutes: str, path: str) -> None:
  """Repeats cycles for a number of minutes; writes a line of figures for each cycle."""
  end = time.monotonic() + 60.0 * float(minutes)
  with tempfile.TemporaryDirectory() as folder, open(path, "w", encoding="utf-8") as file:
    soak = Soak(pathlib.Path(folder))
    while time.monotonic() < end:
      begin = time.monotonic()
      soak.cycle()
      row = {**figures(), "seconds": round(time.monotonic() - begin, 1)}
      print(json.dumps(row), file=file, flush=True)


if __name__ == "__main__":
  main(*sys.argv[1:])
