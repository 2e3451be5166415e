"""A GLUE folder, and a small program in the place of run_classifier.py, for tests of run_glue.py.

The program leaves the same files as run_classifier.py, within milliseconds.
"""

import contextlib
import io
import json
import os
import pathlib
import sys

import pytest

from bert import run_glue
from bert.sweeps import glue_sweep, parallel_processes
from tests.kit.script_runs import Done

# In the place of run_classifier.py. CONTROL/TASK.json may hold what a run does instead of its work:
# {"fail": [folders], "hang": true}. Every start is a line of CONTROL/calls.
FAKE = r"""
import json, os, signal, sys, time
control, *words = sys.argv[1:]
flags = dict(word[2:].split("=", 1) if "=" in word else (word[2:], True) for word in words)
out, task = flags["output_dir"], flags["task_name"]
with open(os.path.join(control, "calls"), "a") as f:
  f.write(json.dumps(flags) + "\n")
path = os.path.join(control, task + ".json")
todo = json.load(open(path)) if os.path.exists(path) else {}

def write(name, text):
  with open(os.path.join(out, name), "w") as f:
    f.write(text)

def save_and_leave(number, frame):
  write("model.ckpt-5.index", "")
  sys.exit(128 + number)

if flags.get("do_train"):
  if todo.get("hang"):
    signal.signal(signal.SIGTERM, save_and_leave)
    signal.signal(signal.SIGINT, save_and_leave)
    write("started", "")
    time.sleep(60)
  if todo.get("kill") == os.path.basename(out):
    os.kill(os.getpid(), signal.SIGKILL)
  if os.path.basename(out) in todo.get("fail", ()):
    print("warming up\nERROR: dev.tsv, line 3: no label.\n(--verbose_errors shows where)")
    sys.exit(1)
  for name in ("checkpoint", "model.ckpt-0.index", "model.ckpt-9.index", "train.tf_record"):
    write(name, "x")
if flags.get("do_eval"):
  score = float(flags["learning_rate"]) * 1e4 + float(flags["num_train_epochs"]) / 100
  score += int(flags["seed"]) % 10 / 1000
  score = todo.get("scores", {}).get(os.path.basename(out), score)
  if todo.get("mute"):
    sys.exit()
  names = "accuracy f1 matthews_corrcoef pearson spearman".split()
  for suffix, less in (("", 0), ("_mismatched", 0.1)):
    write(f"eval_results{suffix}.txt", "".join(f"eval_{n} = {score - less}\n" for n in names))
  failure = todo.get("collapsed", {}).get(os.path.basename(out))
  headline = {"CoLA": "eval_matthews_corrcoef", "STS-B": "eval_pearson"}.get(task, "eval_accuracy")
  summary = {"headline": headline, "metrics": [headline], "failure": failure, "examples": 9}
  write("dev_summary.json", json.dumps(summary))
if flags.get("do_predict"):
  if todo.get("no prediction"):
    sys.exit(7)
  if task == "AX":
    write("from", flags["init_checkpoint"])
  elif not os.path.exists(os.path.join(out, "model.ckpt-9.index")):
    sys.exit("ERROR: no checkpoint to predict with")
  names = {"MNLI": ("test_matched", "test_mismatched"), "AX": ("AX",)}.get(task, ("test",))
  for name in names:
    rows = open(os.path.join(flags["data_dir"], name + ".tsv")).read().splitlines()[1:]
    value = {"STS-B": "5.25", "MNLI": "neutral", "AX": "neutral"}.get(task, "1")
    lines = ["id\tlabel\n"] + [f"test-{i}\t{value}\t0.5\n" for i in range(len(rows))]
    suffix = "_mismatched" if name == "test_mismatched" else ""
    write(f"predictions{suffix}.tsv", "".join(lines))
"""


class Bench:
  """A GLUE folder, an output folder, and a program in the place of run_classifier.py."""

  def __init__(self, folder, monkeypatch):
    self.glue, self.out, self.control = (folder / name for name in ("glue", "out", "control"))
    self.glue.mkdir()
    self.control.mkdir()
    for name in ("vocab.txt", "config.json"):
      (folder / name).write_text("{}")
    (folder / "fake.py").write_text(FAKE)
    self.flags = {
      "glue_dir": self.glue,
      "output_dir": self.out,
      "vocab_file": folder / "vocab.txt",
      "bert_config_file": folder / "config.json",
      "learning_rates": "2e-5,3e-5",
      "epochs": "2",
      "seeds": "1,2",
    }
    self.command = (sys.executable, "-S", "-E", str(folder / "fake.py"), str(self.control))
    monkeypatch.setattr(glue_sweep, "COMMAND", self.command)
    monkeypatch.setattr(parallel_processes, "POLL_SECONDS", 0.005)

  def add(self, *tasks):
    for task in tasks:
      names = {
        "MNLI": ("train", "dev_matched", "dev_mismatched", "test_matched", "test_mismatched")
      }
      for name in names.get(task, ("AX",) if task == "AX" else ("train", "dev", "test")):
        write(self.glue / task / f"{name}.tsv", "index\ttext\n10\ta\n11\tb\n")
    return self

  def tell(self, task, **todo):
    write(self.control / f"{task}.json", json.dumps(todo))

  def argv(self, *more, **values):
    values = {**self.flags, **values}
    return ["run_glue.py", *(f"--{name}={value}" for name, value in values.items()), *more]

  def run(self, *more, **values) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
      with pytest.raises(SystemExit) as left:
        run_glue.start(self.argv(*more, **values))
    return Done(left.value.code, out.getvalue(), err.getvalue())

  def run_well(self, *more, **values) -> Done:
    done = self.run(*more, **values)
    assert done.code == 0, done.err
    return done

  def error_of(self, *more, **values) -> str:
    done = self.run(*more, **values)
    assert done.code == 1, done.err
    assert "Traceback" not in done.err
    return done.err[done.err.index("ERROR: ") :]

  def calls(self) -> list[dict]:
    """The flags of every process so far."""
    path = self.control / "calls"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

  def trained(self) -> list[str]:
    return sorted(folder_of(call) for call in self.calls() if "do_train" in call)

  def results(self) -> dict:
    return json.loads((self.out / "results.json").read_text())

  def runs_of(self, task: str) -> list[dict]:
    return [run for run in self.results()["runs"] if run["group"] == task]

  def best_of(self, task: str) -> str | None:
    """The folder of the best run, relative to that of all."""
    [best] = [each["best"] for each in self.results()["groups"] if each["name"] == task]
    return best

  def with_checkpoint(self) -> list[str]:
    return sorted(
      str(path.parent.relative_to(self.out)) for path in self.out.rglob("model.ckpt-9.index")
    )


def write(path, text):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(text)


def folder_of(call) -> str:
  return os.sep.join(pathlib.Path(call["output_dir"]).parts[-2:])
