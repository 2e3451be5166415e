"""Tests of run_glue.py: the grid, its processes, resuming, the table and the submission.

Alone: python -m pytest tests/run_glue_test.py (about half a minute)

Most tests put a small program in the place of run_classifier.py: it leaves the same files within
milliseconds. One runs the real one, and all that comes after it, on miniature data.
"""

import contextlib
import io
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import zipfile
from typing import NamedTuple

import numpy as np
import pytest
from matplotlib import image

from bert import run_classifier, run_glue
from bert.figures import drawing
from bert.scripts import command_line, glue_report, glue_runs, parallel_processes
from bert.scripts.glue_runs import DIAGNOSTIC, TASKS, Outcome, Run
from bert.tasks import glue, metrics
from tests.kit.paths import ROOT

# In the place of run_classifier.py. CONTROL/TASK.json may hold what a run is to do: {"fail":
# [folders], "hang": true}; every start is a line of CONTROL/calls.
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


class Done(NamedTuple):
  """What a sweep left: exit code, standard output, standard error."""

  code: int | None
  out: str
  err: str


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
    monkeypatch.setattr(run_glue, "COMMAND", self.command)
    monkeypatch.setattr(drawing, "plot_table", lambda rows, path, *_: pathlib.Path(path).touch())

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

  def with_checkpoint(self) -> list[str]:
    return sorted(
      str(path.parent.relative_to(self.out)) for path in self.out.rglob("model.ckpt-9.index")
    )


def write(path, text):
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(text)


def folder_of(call) -> str:
  return os.sep.join(pathlib.Path(call["output_dir"]).parts[-2:])


@pytest.fixture
def bench(tmp_path, monkeypatch) -> Bench:
  return Bench(tmp_path, monkeypatch)


# ---------------------------------------------------------------------------------------------
# The grid.


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


def test_the_default_is_the_papers_grid(bench):
  for name in ("learning_rates", "epochs", "seeds"):
    del bench.flags[name]
  done = bench.add("RTE").run("--dry_run")
  lines = done.out.splitlines()
  assert len(lines) == 27
  for rate in ("2e-05", "3e-05", "5e-05"):
    assert sum(f"--learning_rate={rate} " in line for line in lines) == 9
  for epochs in (2, 3, 4):
    assert sum(f"--num_train_epochs={epochs} " in line for line in lines) == 9
  assert bench.calls() == []
  assert not bench.out.exists()


def test_a_dry_run_tells_what_has_finished(bench):
  bench.add("RTE").run_well(seeds="2")
  lines = bench.run("--dry_run").out.splitlines()
  assert ["# has finished" in line for line in lines] == [False, True, False, True]


def test_flags_after_two_dashes_reach_every_process(bench):
  bench.add("RTE", "MNLI", "AX").run_well("--", "--warmup_proportion=0.2", "--nopad_to_max_length")
  assert {call["warmup_proportion"] for call in bench.calls()} == {"0.2"}
  assert {call["nopad_to_max_length"] for call in bench.calls()} == {True}


@pytest.mark.parametrize(
  ("argv", "said"),
  [
    (["--", "--seed=3"], "--seed=3 after -- would replace what run_glue.py gives each run"),
    (["--", "--nodo_train"], "--nodo_train after --"),
    (["--", "--max_seq_length=3"], "--max_seq_length=3 after --"),
    (["--", "--warmup_proportion=7"], "--warmup_proportion=7.0: must be between 0 and 1"),
    (["--", "--warmup_proportion=x"], "--warmup_proportion"),
    (["--tasks=MRPC,Moon"], "--tasks: Moon is none of CoLA"),
    (["--tasks=RTE,qqp,ax"], "does not have QQP, AX."),
    (["--learning_rates=0"], "--learning_rates: positive numbers are needed, not '0'"),
    (["--seeds=1.5"], "--seeds: whole numbers are needed, not '1.5'"),
    (["--epochs="], "--epochs"),
    (["--epochs=nan"], "positive numbers are needed, not 'nan'"),
    (["--parallel_runs=0"], "--parallel_runs=0: must be at least 1"),
    (["--glue_dir=nowhere"], "--glue_dir=nowhere is no folder"),
    (["--glue_dir=."], "holds no task of GLUE"),
    (["--init_checkpoint=nowhere"], "--init_checkpoint=nowhere: there is no checkpoint"),
  ],
)
def test_one_message_says_what_is_wrong_before_anything_runs(bench, argv, said, monkeypatch):
  bench.add("RTE")
  monkeypatch.chdir(bench.control)
  assert said in bench.error_of(*argv)
  assert bench.calls() == []


def test_a_misspelt_flag_for_the_runs_is_named_at_once(bench):
  done = bench.add("RTE").run("--dry_run", "--", "--warmup_proportoin=0.2")
  assert "Did you mean --warmup_proportion?" in done.err


def test_folders_are_found_however_they_are_written(tmp_path, caplog):
  for name in ("sst2", "MNLI", "sts_b", "diagnostic", "SNLI", "QQP"):
    (tmp_path / name).mkdir()
  for name in ("sst2/train", "sst2/dev", "sts_b/train", "sts_b/dev", "QQP/train"):
    write(tmp_path / f"{name}.tsv", "")
  for name in ("MNLI/train", "MNLI/dev_matched", "SNLI/train", "diagnostic/diagnostic"):
    write(tmp_path / f"{name}.tsv", "")
  found = glue_runs.find_tasks(str(tmp_path))
  assert {name: os.path.basename(path) for name, path in found.items()} == {
    "SST-2": "sst2",
    "STS-B": "sts_b",
    "MNLI": "MNLI",
    "AX": "diagnostic",
  }
  assert list(found) == ["SST-2", "STS-B", "MNLI", "AX"]


def test_a_task_without_a_dev_set_is_left_out_and_named(bench):
  bench.add("RTE", "QQP")
  (bench.glue / "QQP" / "dev.tsv").unlink()
  done = bench.run_well()
  assert f"QQP is left out: {bench.glue / 'QQP'} has no dev.tsv." in done.err
  assert list(bench.results()["tasks"]) == ["RTE"]


def test_each_task_has_the_metrics_that_run_classifier_writes():
  for task in TASKS.values():
    processor = glue.create_processor(task.name)
    written = {f"eval_{name}" for name in (*processor.metrics, "accuracy")}
    assert {metric.key for metric in task.metrics} <= written
    assert {metric.key.removeprefix("eval_") for metric in task.metrics} <= set(metrics.METRICS)
    assert f"eval_{processor.headline_metric}" in {metric.key for metric in task.metrics}
  assert {glue_runs.plain(name) for name in (*TASKS, DIAGNOSTIC.name)} == {
    glue_runs.plain(name)
    for name in glue.PROCESSORS
    if name not in ("xnli", "mnli-mm", "imdb", "csv")
  }


# ---------------------------------------------------------------------------------------------
# Going on.


def test_what_has_finished_is_not_repeated(bench):
  bench.add("RTE").run_well()
  before = bench.calls()
  results = bench.results()
  bench.run_well()
  assert bench.calls() == before
  assert bench.results() == results


def test_a_larger_grid_runs_only_what_is_new(bench):
  bench.add("RTE").run_well(seeds="1")
  bench.run_well(seeds="1,2")
  assert bench.trained() == sorted(
    os.path.join("RTE", f"lr{rate}_epochs2_seed{seed}")
    for rate in ("2e-05", "3e-05")
    for seed in "12"
  )


def test_a_run_that_did_not_finish_goes_on_in_its_folder(bench):
  """Results alone do not make it finished: they are written before the process ends."""
  bench.add("RTE").run_well(learning_rates="2e-5", seeds="1")
  [folder] = (bench.out / "RTE").iterdir()
  state = glue_runs.read_state(folder)
  glue_runs.write_state(folder, **{**state, "finished": False})
  (folder / "mine").touch()
  bench.run_well(learning_rates="2e-5", seeds="1")
  assert len(bench.trained()) == 2
  assert (folder / "mine").exists()


CHANGES = {
  "max_seq_length": lambda bench: {"max_seq_length": 64},
  "train_batch_size": lambda bench: {"train_batch_size": 16},
  "data": lambda bench: write(bench.glue / "RTE" / "dev.tsv", "other") or {},
  "vocabulary": lambda bench: write(bench.flags["vocab_file"], "other") or {},
  "bert_config": lambda bench: write(bench.flags["bert_config_file"], "other") or {},
  "weights": lambda bench: (
    write(bench.control / "a.index", "w") or {"init_checkpoint": bench.control / "a"}
  ),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_runs_of_other_settings_are_refused_or_redone(bench, changed):
  bench.add("RTE").run_well(seeds="1")
  values = {"seeds": "1,2", **CHANGES[changed](bench)}
  message = bench.error_of(**values)
  assert "2 of the runs were made with other settings" in message
  assert f"{changed} was " in message
  assert len(bench.trained()) == 2
  done = bench.run_well("--redo", **values)
  assert f"{changed} was " in done.err
  assert len(bench.trained()) == 2 + 4
  bench.run_well(**values)
  assert len(bench.trained()) == 2 + 4


def test_settings_that_change_no_result_may_change(bench):
  bench.add("RTE").run_well()
  moved = bench.control / "vocab.txt"
  moved.write_text(bench.flags["vocab_file"].read_text())
  bench.run_well("--", "--log_every_steps=7", "--eval_batch_size=64", vocab_file=moved)
  assert len(bench.trained()) == 4


def test_flags_of_runs_that_came_to_nothing_may_change(bench):
  bench.add("RTE").tell("RTE", fail=["lr2e-05_epochs2_seed1"])
  values = {"learning_rates": "2e-5", "seeds": "1"}
  assert bench.run(**values).code == 1
  bench.tell("RTE")
  bench.run_well(**values, max_seq_length=64)


def test_files_of_somebody_else_are_never_removed(bench):
  other = bench.out / "RTE" / "lr2e-05_epochs2_seed1" / "thesis.txt"
  write(other, "mine")
  bench.add("RTE")
  assert "it has files, but no run.json" in bench.error_of("--redo")
  assert other.read_text() == "mine"


def test_a_second_sweep_in_the_same_folder_is_refused(bench):
  bench.add("RTE").run_well()
  with parallel_processes.exclusive(bench.out):
    assert "is in use by another sweep" in bench.error_of()
  bench.run_well()


# ---------------------------------------------------------------------------------------------
# Failures and signals.


def test_a_failing_run_is_told_and_the_others_go_on(bench):
  bench.add("RTE", "MRPC").tell("RTE", fail=["lr3e-05_epochs2_seed1", "lr3e-05_epochs2_seed2"])
  done = bench.run(parallel_runs=3)
  assert done.code == 1
  why = "exit code 1: dev.tsv, line 3: no label."
  assert f"FAILED: RTE, rate 3e-05, 2 epochs, seed 1: {why}" in done.out
  assert why in done.err
  task = bench.results()["tasks"]["RTE"]
  assert [run["failure"] for run in task["runs"]] == [None, None, why, why]
  assert task["learning_rate"] == 2e-5
  assert "2 of 4, 2 failed" in (bench.out / "results.txt").read_text()
  assert bench.results()["tasks"]["MRPC"]["runs"][3]["failure"] is None
  bench.tell("RTE")
  bench.run_well()
  assert bench.results()["tasks"]["RTE"]["learning_rate"] == 3e-5
  assert bench.results()["problems"] == []


def test_a_task_of_which_every_run_fails_has_no_score(bench):
  names = [glue_runs.folder_name(rate, 2, seed) for rate in (2e-5, 3e-5) for seed in (1, 2)]
  bench.add("RTE", "MRPC").tell("RTE", fail=names)
  assert bench.run().code == 1
  assert "best" not in bench.results()["tasks"]["RTE"]
  assert "RTE" in bench.results()["missing_tasks"]


def test_the_signal_that_ended_a_run_is_named(bench):
  bench.add("RTE").tell("RTE", kill="lr2e-05_epochs2_seed1")
  done = bench.run()
  assert done.code == 1
  assert "ended by SIGKILL (out of memory?)" in done.out


def test_a_run_without_its_results_has_failed(bench):
  bench.add("RTE").tell("RTE", mute=True)
  done = bench.run()
  assert done.code == 1
  assert done.out.count("eval_results.txt") == 4


def test_a_result_that_is_no_number_is_a_failure(bench):
  bench.add("RTE").tell("RTE", scores={"lr3e-05_epochs2_seed2": float("nan")})
  done = bench.run()
  assert done.code == 1
  assert "eval_results.txt: eval_accuracy is nan." in done.out
  assert bench.results()["tasks"]["RTE"]["learning_rate"] == 2e-5


def start_hanging(bench, **values):
  """A sweep in a process of its own, whose two first runs are at work."""
  bench.add("RTE").tell("RTE", hang=True)
  program = (
    "import signal; from bert import run_glue\n"
    # Whoever started the tests may have ignored them, as `nohup` and `&` do.
    "for name in ('SIGINT', 'SIGHUP'): signal.signal(getattr(signal, name), signal.SIG_DFL)\n"
    f"run_glue.COMMAND = {bench.command!r}\nrun_glue.start()"
  )
  sweep = subprocess.Popen(
    [sys.executable, "-c", program, *bench.argv(parallel_runs=2, **values)[1:]],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
  deadline = time.monotonic() + 60
  while len(list(bench.out.rglob("started"))) < 2:
    assert time.monotonic() < deadline
    assert sweep.poll() is None, sweep.communicate()
    time.sleep(0.05)
  return sweep


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_is_passed_on_and_the_same_command_goes_on(bench, name):
  number = getattr(signal, name)
  sweep = start_hanging(bench)
  sweep.send_signal(number)
  out, err = sweep.communicate(timeout=60)
  assert sweep.returncode == 128 + number, err
  assert "Stopped. 0 of 4 runs have finished. The same command goes on from here." in err
  assert f"{name}: waiting for the running processes to save; once more ends them at once." in err
  assert "FAILED" not in err + out
  saved = [path.parent.name for path in bench.out.rglob("model.ckpt-5.index")]
  assert sorted(saved) == ["lr2e-05_epochs2_seed1", "lr2e-05_epochs2_seed2"]
  assert len(bench.calls()) == 2
  bench.tell("RTE")
  bench.run_well()
  assert len(bench.trained()) == 2 + 4


def test_while_runs_of_a_killed_sweep_are_at_work_there_is_no_other_one(bench):
  sweep = start_hanging(bench)
  sweep.kill()
  sweep.communicate(timeout=60)
  assert "or by runs that one has left behind" in bench.error_of()
  for path in bench.out.rglob("started"):
    pid = [
      int(entry)
      for entry in os.listdir("/proc")
      if entry.isdigit() and f"--output_dir={path.parent}\0".encode() in read_command_of(entry)
    ]
    os.kill(pid[0], signal.SIGKILL)
  bench.tell("RTE")
  deadline = time.monotonic() + 60
  while (done := bench.run()).code and time.monotonic() < deadline:
    assert "in use" in done.err
    time.sleep(0.1)
  assert done.code == 0


def read_command_of(pid: str) -> bytes:
  with contextlib.suppress(OSError):
    return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()
  return b""


def test_a_second_signal_ends_processes_at_once(tmp_path):
  program = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print(1, flush=True); time.sleep(60)"
  )
  ends = []
  stop = parallel_processes.stop_signals()

  class Sent(list):
    """Two signals, as soon as the process ignores them."""

    def __len__(self):
      log = tmp_path / parallel_processes.LOG_FILE
      ready = log.exists() and log.stat().st_size
      if ready and super().__len__() < 2:
        self.append(signal.SIGTERM)
      return super().__len__()

  stop.received = Sent()
  job = parallel_processes.Job(
    [sys.executable, "-c", program], str(tmp_path), lambda *end: ends.append(end)
  )
  begin = time.monotonic()
  parallel_processes.run_jobs([job], 1, stop)
  assert time.monotonic() - begin < 30
  assert ends == []


def test_no_process_is_left_when_the_sweep_itself_fails(tmp_path):
  note = tmp_path / "pid"
  noting = (
    f"import os, time\nopen({str(tmp_path / 'new')!r}, 'w').write(str(os.getpid()))\n"
    f"os.rename({str(tmp_path / 'new')!r}, {str(note)!r})\ntime.sleep(600)"
  )
  hanging = [sys.executable, "-c", noting]
  # The other one ends once the first has noted its number.
  waiting = f"import os, time\nwhile not os.path.exists({str(note)!r}): time.sleep(0.05)"
  (tmp_path / "a").mkdir()
  (tmp_path / "b").mkdir()

  def fail(code, seconds):
    raise OSError("no space left")

  jobs = [
    parallel_processes.Job(hanging, str(tmp_path / "a"), fail),
    parallel_processes.Job([sys.executable, "-c", waiting], str(tmp_path / "b"), fail),
  ]
  with pytest.raises(OSError, match="no space left"):
    parallel_processes.run_jobs(jobs, 2, parallel_processes.stop_signals())
  with pytest.raises(ProcessLookupError):
    os.kill(int(note.read_text()), 0)


def test_so_many_run_side_by_side_each_pair_on_other_gpus(tmp_path):
  program = (
    "import os, time; begin = time.time(); time.sleep(0.3); "
    "print(begin, time.time(), os.environ['CUDA_VISIBLE_DEVICES'])"
  )
  jobs = []
  for number in range(5):
    (tmp_path / str(number)).mkdir()
    jobs.append(
      parallel_processes.Job(
        [sys.executable, "-c", program], str(tmp_path / str(number)), lambda *_: None
      )
    )
  parallel_processes.run_jobs(jobs, 2, parallel_processes.stop_signals(), gpus=["4", "7"])
  spans = []
  for number in range(5):
    begin, end, gpu = (tmp_path / str(number) / parallel_processes.LOG_FILE).read_text().split()
    spans.append((float(begin), float(end), gpu))
  for begin, _, _ in spans:
    at_work = [gpu for first, last, gpu in spans if first <= begin < last]
    assert len(at_work) == len(set(at_work)) <= 2
  assert {gpu for _, _, gpu in spans} == {"4", "7"}


# ---------------------------------------------------------------------------------------------
# The best run and its checkpoint.


def outcomes(**scores) -> list[Outcome]:
  """`a1=0.8`: the run of setting a and seed 1; None is to be done, a text a failure."""
  made = []
  for name, score in scores.items():
    run = Run("RTE", float(ord(name[0])), 3.0, int(name[1:]), f"/{name}")
    is_number = isinstance(score, float)
    made.append(
      Outcome(
        run, {"accuracy": score} if is_number else None, score if isinstance(score, str) else None
      )
    )
  return made


def names(runs) -> list[str]:
  return sorted(getattr(each, "run", each).folder[1:] for each in runs)


@pytest.mark.parametrize(
  ("scores", "best", "in_way"),
  [
    # The mean decides between settings, the score between seeds.
    (dict(a1=0.9, a2=0.1, b1=0.6, b2=0.7), ["b2", "b1"], ["a1", "a2", "b1"]),
    # b may still become the best one: its best seed so far is kept.
    (dict(a1=0.9, a2=0.8, b1=0.1, b2=0.2, b3=None), ["a1", "a2"], ["a2", "b1"]),
    # A setting that lost a seed counts only if nothing else does.
    (dict(a1=0.9, a2="failed", b1=0.6, b2=0.7), ["b2", "b1"], ["a1", "b1"]),
    (dict(a1=0.9, a2="failed"), ["a1"], []),
    (dict(a1="failed", b1=None), [], []),
  ],
)
def test_the_best_setting_and_what_it_makes_superfluous(scores, best, in_way):
  assert [outcome.run.folder[1:] for outcome in glue_runs.best_setting(outcomes(**scores))] == best
  assert names(glue_runs.superfluous(outcomes(**scores))) == in_way


def test_one_checkpoint_of_each_task_stays_all_or_none(bench):
  bench.add("RTE", "MRPC")
  best = [os.path.join(task, "lr3e-05_epochs2_seed2") for task in ("MRPC", "RTE")]
  bench.run_well(keep_checkpoints="all")
  assert len(bench.with_checkpoint()) == 8
  bench.run_well()
  assert bench.with_checkpoint() == best
  assert not list((bench.out / "RTE" / "lr2e-05_epochs2_seed1").glob("*.tf_record"))
  assert (bench.out / "RTE" / "lr2e-05_epochs2_seed1" / "eval_results.txt").exists()
  bench.run_well(keep_checkpoints="none")
  assert bench.with_checkpoint() == []
  before = bench.calls()
  bench.run_well(keep_checkpoints="none")
  assert bench.calls() == before


def test_checkpoints_go_while_the_sweep_is_at_work(bench):
  """At no time are there more than the best one's and those of the setting that is running."""
  bench.add("RTE").run_well("--nodo_predict", learning_rates="1e-5,2e-5,3e-5", seeds="1")
  kept = bench.with_checkpoint()
  assert kept == [os.path.join("RTE", "lr3e-05_epochs2_seed1")]
  bench.tell("RTE", fail=["lr4e-05_epochs2_seed1"])
  bench.run("--nodo_predict", learning_rates="1e-5,2e-5,3e-5,4e-5", seeds="1")
  assert bench.with_checkpoint() == kept


def test_a_best_run_whose_checkpoint_is_gone_is_trained_again_to_predict(bench):
  better = {"lr2e-05_epochs2_seed1": 0.8, "lr3e-05_epochs2_seed1": 0.7}
  bench.add("RTE").tell("RTE", scores=better)
  bench.run_well(seeds="1")
  # The new seed turns the order of the settings around.
  bench.tell("RTE", scores={**better, "lr2e-05_epochs2_seed2": 0.1, "lr3e-05_epochs2_seed2": 0.6})
  bench.run_well(seeds="1,2")
  assert bench.results()["tasks"]["RTE"]["best_run"].endswith("lr3e-05_epochs2_seed1")
  assert bench.trained().count(os.path.join("RTE", "lr3e-05_epochs2_seed1")) == 2
  assert (bench.out / "submission" / "RTE.tsv").exists()


# ---------------------------------------------------------------------------------------------
# The table.


def test_the_table_has_best_mean_and_spread_of_the_best_setting(bench):
  bench.add("RTE", "MRPC", "MNLI").tell(
    "RTE", scores={"lr2e-05_epochs2_seed1": 0.8, "lr2e-05_epochs2_seed2": 0.7}
  )
  done = bench.run_well()
  results = bench.results()
  task = results["tasks"]["RTE"]
  assert (task["best"], task["mean"]) == pytest.approx((0.8, 0.75))
  assert task["standard_deviation"] == pytest.approx(np.std([0.8, 0.7], ddof=1))
  assert task["learning_rate"] == 2e-5
  mnli = results["tasks"]["MNLI"]
  assert mnli["best"] == pytest.approx(0.322 - 0.05)
  assert set(mnli["metrics"]) == {"accuracy m", "accuracy mm"}
  best = [results["tasks"][name]["best"] for name in ("RTE", "MRPC", "MNLI")]
  assert results["average"]["best"] == pytest.approx(np.mean(best))
  assert results["missing_tasks"] == ["CoLA", "SST-2", "STS-B", "QQP", "QNLI", "WNLI"]
  lines = done.out.splitlines()
  [row] = [line for line in lines if line.startswith("RTE")]
  assert re.search(r" 80.0 +80.0 +75.0 ± 7.1 +rate 2e-05, 2 epochs +4 of 4$", row)
  [row] = [line for line in lines if line.startswith("MRPC")]
  assert re.search(r" accuracy / F1 +32.2 / 32.2 ", row)
  assert any(line.startswith("Average") and "3 of 9 tasks" in line for line in lines)
  assert "Not in the average: CoLA, SST-2, STS-B, QQP, QNLI, WNLI." in done.out
  assert (bench.out / "results.txt").read_text() in done.out
  assert (bench.out / "results.png").exists()


# Table 1 and the leaderboard's entries of the paper: metrics of each task, average with WNLI.
PUBLISHED = {
  78.3: "52.1 93.5 88.9/84.8 87.1/85.8 71.2/89.2 84.6/83.4 90.5 66.4 65.1",
  80.5: "60.5 94.9 89.3/85.4 87.6/86.5 72.1/89.3 86.7/85.9 92.7 70.1 65.1",
}


@pytest.mark.parametrize("average", PUBLISHED)
def test_the_average_is_that_of_the_leaderboard(average):
  summaries = []
  for task, figures in zip(TASKS.values(), PUBLISHED[average].split(), strict=True):
    values = [float(figure) / 100 for figure in figures.split("/")]
    results = dict(zip([metric.title for metric in task.metrics], values, strict=True))
    summaries.append(
      glue_report.Summary(task.name, [Outcome(Run(task.name, 1, 1, 1, ""), results)])
    )
  report = glue_report.Report(summaries)
  averages = report.averages()
  assert round(100 * averages["average"]["best"], 1) == average
  assert averages["average_without_wnli"]["mean"] > averages["average"]["mean"]
  assert report.missing == []
  assert "WNLI's dev set" in report.text()


# ---------------------------------------------------------------------------------------------
# The submission.


def test_the_submission_is_as_glue_wants_it(bench):
  done = bench.add("RTE", "STS-B", "MNLI", "AX").run_well()
  with zipfile.ZipFile(bench.out / "submission.zip") as archive:
    texts = {name: archive.read(name).decode() for name in archive.namelist()}
  assert set(texts) == {f"{name}.tsv" for name in ("RTE", "STS-B", "MNLI-m", "MNLI-mm", "AX")}
  assert texts["RTE.tsv"] == "index\tprediction\n10\t1\n11\t1\n"
  assert texts["STS-B.tsv"] == "index\tprediction\n10\t5.000\n11\t5.000\n"
  for name in ("MNLI-m", "MNLI-mm", "AX"):
    assert texts[f"{name}.tsv"] == "index\tprediction\n10\tneutral\n11\tneutral\n"
    assert (bench.out / "submission" / f"{name}.tsv").read_text() == texts[f"{name}.tsv"]
  assert "GLUE's server asks for CoLA, SST-2, MRPC, QQP, QNLI, WNLI as well" in done.err
  predicted = [call for call in bench.calls() if "do_predict" in call]
  assert [call["task_name"] for call in predicted] == ["STS-B", "MNLI", "RTE", "AX"]
  best = os.path.join("MNLI", "lr3e-05_epochs2_seed2")
  assert folder_of(predicted[1]) == best
  assert predicted[3]["init_checkpoint"] == str(bench.out / best)
  assert folder_of(predicted[3]) == os.path.join("out", "AX")


def test_another_best_run_predicts_anew(bench):
  bench.add("MNLI", "AX").run_well(learning_rates="2e-5")
  bench.run_well(learning_rates="2e-5,3e-5")
  predicted = [call for call in bench.calls() if "do_predict" in call]
  assert [call["task_name"] for call in predicted] == ["MNLI", "AX"] * 2
  assert "lr3e-05" in predicted[3]["init_checkpoint"]


def test_another_test_set_is_predicted_anew(bench):
  bench.add("RTE").run_well()
  write(bench.glue / "RTE" / "test.tsv", "index\ttext\n0\tc\n1\td\n2\te\n")
  bench.run_well()
  assert len(bench.trained()) == 4
  text = (bench.out / "submission" / "RTE.tsv").read_text()
  assert text == "index\tprediction\n0\t1\n1\t1\n2\t1\n"


def test_ax_is_predicted_even_if_it_comes_when_the_checkpoints_have_gone(bench):
  bench.add("MNLI").run_well(keep_checkpoints="none")
  bench.add("AX").run_well(keep_checkpoints="none")
  assert (bench.out / "submission" / "AX.tsv").exists()


def test_a_failed_prediction_is_told_and_the_table_is_made(bench):
  bench.add("RTE", "MRPC").tell("RTE", **{"no prediction": True})
  done = bench.run()
  assert done.code == 1
  assert "FAILED: predicting the test set with RTE, rate 3e-05" in done.out
  assert bench.results()["tasks"]["RTE"]["best"] > 0
  with zipfile.ZipFile(bench.out / "submission.zip") as archive:
    assert archive.namelist() == ["MRPC.tsv"]


def test_predictions_that_lack_rows_are_not_submitted(tmp_path):
  write(tmp_path / "test.tsv", "index\ttext\n0\ta\n1\tb\n")
  write(tmp_path / "predictions.tsv", "id\tlabel\ntest-1\t1\t0.5\n")
  with pytest.raises(ValueError, match=r"has 2 rows, but .* 1: GLUE takes complete submissions"):
    glue_report.submission_text(
      "RTE", str(tmp_path / "predictions.tsv"), str(tmp_path / "test.tsv")
    )


def test_rows_without_an_index_are_counted(tmp_path):
  write(tmp_path / "test.tsv", "sentence\na\nb\n")
  write(tmp_path / "predictions.tsv", "id\tlabel\ntest-1\t1\t0.5\ntest-2\t0\t0.5\n")
  text = glue_report.submission_text(
    "SST-2", str(tmp_path / "predictions.tsv"), str(tmp_path / "test.tsv")
  )
  assert text == "index\tprediction\n0\t1\n1\t0\n"


def test_a_file_of_an_earlier_submission_does_not_stay(tmp_path):
  glue_report.write_submission(str(tmp_path), {"RTE": "a", "CoLA": "b"})
  path = glue_report.write_submission(str(tmp_path), {"RTE": "c"})
  assert os.listdir(tmp_path / "submission") == ["RTE.tsv"]
  with zipfile.ZipFile(path) as archive:
    assert archive.read("RTE.tsv") == b"c"


# ---------------------------------------------------------------------------------------------
# The real run_classifier.py.

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "film", "was", "good", "bad")
CONFIG = {
  "vocab_size": len(WORDS),
  "hidden_size": 16,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 16,
  "max_position_embeddings": 16,
}
LABELS = ("contradiction", "entailment", "neutral")


def write_mnli_and_ax(folder):
  def lines(width, *rows):
    header = [f"column{i}" for i in range(width)]
    header[0] = "index"
    return "".join("\t".join(row) + "\n" for row in [header, *rows])

  def row(i, *labels):
    texts = f"the film was {('good', 'bad')[i % 2]}", "the film " * (i % 3) + "was good"
    return [str(i), *"1234567", *texts, *labels]

  rows = [row(i, LABELS[i % 3]) for i in range(8)]
  for name in ("train", "dev_matched", "dev_mismatched"):
    write(folder / "MNLI" / f"{name}.tsv", lines(11, *rows))
  write(folder / "MNLI" / "test_matched.tsv", lines(10, *map(row, range(5))))
  write(folder / "MNLI" / "test_mismatched.tsv", lines(10, *map(row, range(6))))
  pairs = [f"{i}\tthe film was {('good', 'bad')[i % 2]}\tthe film\n" for i in range(5)]
  write(folder / "AX" / "AX.tsv", "".join(["index\tsentence1\tsentence2\n", *pairs]))


def test_the_whole_way_with_the_real_program(tmp_path):
  write_mnli_and_ax(tmp_path / "glue")
  write(tmp_path / "vocab.txt", "".join(word + "\n" for word in WORDS))
  write(tmp_path / "bert_config.json", json.dumps(CONFIG))
  command = [
    *(sys.executable, str(ROOT / "run_glue.py"), f"--glue_dir={tmp_path / 'glue'}"),
    *(f"--vocab_file={tmp_path / 'vocab.txt'}", "--learning_rates=1e-3", "--epochs=1", "--seeds=5"),
    *(f"--bert_config_file={tmp_path / 'bert_config.json'}", f"--output_dir={tmp_path / 'out'}"),
    *("--max_seq_length=16", "--train_batch_size=4", "--", "--warmup_proportion=0"),
  ]
  done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
  assert done.returncode == 0, done.stderr
  run = tmp_path / "out" / "MNLI" / "lr0.001_epochs1_seed5"
  results = json.loads((tmp_path / "out" / "results.json").read_text())
  lines = (run / "eval_results.txt").read_text().splitlines()
  accuracy = float(dict(line.split(" = ") for line in lines)["eval_accuracy"])
  assert results["tasks"]["MNLI"]["metrics"]["accuracy m"] == accuracy
  assert "global_step = 2" in lines
  assert image.imread(tmp_path / "out" / "results.png").std() > 0.05
  with zipfile.ZipFile(tmp_path / "out" / "submission.zip") as archive:
    sizes = {}
    for name in archive.namelist():
      header, *rows = archive.read(name).decode().splitlines()
      sizes[name] = len(rows)
      assert header == "index\tprediction"
      assert {row.split("\t")[1] for row in rows} <= set(LABELS)
  assert sizes == {"MNLI-m.tsv": 5, "MNLI-mm.tsv": 6, "AX.tsv": 5}
  assert len(list(run.glob("model.ckpt-*.index"))) == 1
  # What predicts AX is MNLI's whole model, its head among it, and not a random one.
  argv = ["run_classifier.py", "--do_predict", "--task_name=AX", f"--output_dir={run}"]
  argv += [f"--data_dir={tmp_path / 'glue' / 'AX'}", "--max_seq_length=16"]
  argv += [word for word in command if word.startswith(("--vocab", "--bert"))]
  with pytest.raises(SystemExit) as left:
    command_line.run(run_classifier.main, run_classifier.define_flags, argv)
  assert left.value.code is None
  files = [folder / "test_results.tsv" for folder in (run, tmp_path / "out" / "AX")]
  np.testing.assert_allclose(*map(np.loadtxt, files), rtol=1e-5)


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
