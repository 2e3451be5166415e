"""Many runs of a script within a test's process, each as `--num_runs` would start it.

  runs = ManyRuns(run_swag, monkeypatch)
  done = runs.run_well(num_runs=2, do_train=True, do_eval=True, ...)
  runs.commands()     # what was started, in order

Each process is a run of the script in this one, so TensorFlow is not loaded again; with the fixture
`fake_estimator` a run takes some tenths of a second. With `results`, no process does anything but
leave these.
"""

import os
import pathlib

from bert.scripts import result_files
from bert.sweeps import parallel_processes
from tests.kit import tiny_bert, tiny_sentences
from tests.kit.script_runs import Done, Script


def flags_on_mrpc(folder: pathlib.Path) -> dict:
  """The flags of runs on MRPC, whose tiny data and model are written; without their number."""
  tiny_sentences.write_mrpc(folder / "data")
  return {
    **tiny_bert.write(folder / "model", tiny_sentences.VOCAB),
    "task_name": "MRPC",
    "data_dir": folder / "data",
    "output_dir": folder / "out",
    "max_seq_length": 16,
    "do_train": True,
    "do_eval": True,
  }


class ManyRuns:
  """Runs of a script.

  Attributes:
    started: flag -> value of each process, in order.
    fails: called with the flags of each process; where it is true, the process fails.
    stops_at: number of the process that never ends: a signal has come.
  """

  def __init__(self, module, monkeypatch, results=None):
    """Replaces the processes.

    Args:
      module: the script.
      monkeypatch: of the test.
      results: flags of a process -> its accuracy, in the place of a run.
    """
    self._results = results
    self._script = Script(module)
    self.started: list[dict[str, str]] = []
    self.fails = lambda flags: False
    self.stops_at: int | None = None
    monkeypatch.setattr(parallel_processes, "run_jobs", self._run_jobs)

  def _run_jobs(self, jobs, parallel, stop, gpus=(), locked_file=None):
    del parallel, gpus, locked_file
    for job in jobs:
      if len(self.started) == self.stops_at:
        stop.received.append(15)
      if stop.received:
        return
      # python -m bert.SCRIPT, or python SCRIPT.py
      words = list(job.command[3 if job.command[1] == "-m" else 2 :])
      flags = dict(word[2:].split("=", 1) if "=" in word else (word[2:], "true") for word in words)
      self.started.append(flags)
      if self.fails(flags):
        code, text = 1, "ERROR: it fails.\n"
      elif self._results:
        code, text = 0, ""
        self._leave_results(pathlib.Path(job.folder), flags)
      else:
        done = self._script.run(*words)
        code, text = done.code or 0, done.err
      pathlib.Path(job.folder, parallel_processes.LOG_FILE).write_text(text)
      job.on_end(code, 1.5)

  def _leave_results(self, folder, flags):
    for name in ("checkpoint", "predictions.tsv") if "do_predict" in flags else ("checkpoint",):
      (folder / name).touch()
    (folder / "eval_results.txt").write_text(f"eval_accuracy = {self._results(flags)}\n")
    result_files.write_summary(str(folder), "eval_accuracy", ["eval_accuracy"], None, 10)

  def run(self, **values) -> Done:
    """Runs the script; `run(num_runs=2)` is `--num_runs=2`."""
    return self._script.run(**values)

  def run_well(self, **values) -> Done:
    """Runs it and expects that nothing fails."""
    done = self.run(**values)
    assert done.code == 0, done.err
    return done

  def error_of(self, **values) -> str:
    """The message of a run that fails before it starts anything."""
    before = len(self.started)
    message = self._script.error_of(**values)
    assert len(self.started) == before
    return message

  def folders(self) -> list[str]:
    """The name of the folder of each process, in order."""
    return [os.path.basename(flags["output_dir"]) for flags in self.started]
